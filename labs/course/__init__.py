"""A student's course over time: starting over, and a newer release.

release     what a release is: its stamp, its files, the fresh copies; a folder or a zip of one, read
backup      what of the student's is replaced is kept first, in the folder old/
reset       a fresh notebook or script
notebooks   a notebook with a student's work, carried into its newer form
update      a newer release over a course that has begun
"""

from labs.course.release import CourseError, find_course
from labs.course.reset import fresh_files, reset_files
from labs.course.update import update_course
