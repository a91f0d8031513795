"""How the course is made from its sources.

build       notebooks and scripts from solutions/, and whether they still agree
regions     solution regions made into blanks: the student's form of a file
sources     what each notebook depends on; from one source, the solution and the student's notebook
execute     Run All in a kernel of this Python
names       docs/students/labs.md: the names of labs that notebooks and scripts use
render      batch scripts from their sources and the files of the sites; begin.sh is what each does first
web         the site: the course as web pages, in two editions
students    the tree that students get
hidden      what no student may see, and what gives it away
"""
