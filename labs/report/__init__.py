"""The report on all tasks: from the course's notebooks, scripts and run records to PDF, JSON and one file to hand in.

    made = report.make("report")       report.pdf, report.json, submission.zip in that folder
    report.findings()                  what is stale or does not carry what is said of it, one ReportFinding each
    report.show_pages(made)            its pages as pictures in a notebook

form       what report.json holds, and its schema
course     what there is to report: notebooks, answers, scripts, runs
evidence   tables, figures and lines of logs, made from the run records
stale      what the evidence does not carry, or not any more
gather     the Report of a course
content    what a student wrote, made fit for a page
private    names of people and machines and paths, taken out
document   the Report as PDF (PDF/UA-1) by pandoc and Typst
archive    submission.zip with its manifest
making     the three files
"""

from labs.report.gather import findings, gather_report
from labs.report.making import ReportError, make, show_pages
