"""The report on all tasks: from the course's notebooks, scripts and run records to PDF, JSON and one file to hand in.

    made = report.make("report")       report.pdf, report.json, submission.zip in that folder
    report.show_pages(made)            its pages as pictures in a notebook

course     what there is to report: notebooks, answers, scripts, runs
private    names of people and machines and paths, taken out of what leaves this machine
evidence   the table of speedups and others, figures and lines of logs, made from the run records
stale      what the evidence does not carry, or not any more
gather     the report of a course, as report.json holds it
content    what a student wrote, made fit for a page (by pandoc)
document   the report as PDF (PDF/UA-1) by Typst
archive    submission.zip with its manifest
making     the three files
"""

from labs.report.gather import gather_report
from labs.report.making import make, show_pages
