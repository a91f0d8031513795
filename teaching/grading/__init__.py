"""Grading: from a release to points, feedback and a grade sheet.

release     course.zip, what students get, and that it gives nothing away
store       the files of a grading, as they are read
incoming    exports and folders read, whatever comes in
whose       whose the files of an export are
archives    zip and tar, known by their content
cells       cells of notebooks, found by what they say, and where else work could be
collect     submissions brought together under numbers
moodle, canvas  the table of points of each of these platforms
worksheet   a platform's file with the points in it, and feedback as it takes it back
table       a CSV file of which single cells are filled
handed      a collected submission, opened
finding     something in the evidence for a person to look at
evidence    what each run says of itself
copies      runs that are somebody else's
likeness    scripts and answers that are like somebody else's
judge       the checks again: notebooks in the sandbox, the judge outside
walled      that sandbox, and how the judge talks with it
inside      what runs in the sandbox: the notebooks of a student in replay, one after the other
wire        values as JSON between the two
reference   what the solutions say of a check
again       functions called with inputs that no student has seen
needless    given code on which no check depends, and so is not run
magics      cells without what belongs to a session
plain       whether code can be judged beside its judge
examine     all of this for one submission
decides     what has to change before a notebook is judged again
check       for every submission, kept by content
rubric      what counts how much
pins        a comment on a mistake, for all who made it
marks       what a person has decided
graded      a grading as the steps below see it, each file read once
shown       what of a submission stands beside a question: code, scripts, logs, machines
deck        one question across all submissions, and what a key does to an answer
desk        the deck as a notebook
points      points, of what was found, rubric and marks
feedback    PDF for students: what to do next, each mistake
overview    all that is open, and what was decided about findings
oral        three questions for a talk with each student
results     all that comes out; grades.csv: the points of all, for people and spreadsheets
"""
