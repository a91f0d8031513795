"""A student's course over time: starting over, a newer release, a question to the instructor.

release     what a release is: its stamp, its files, the fresh copies; a folder or a zip of one, read with care
aside       what is replaced is kept first, in the folder old/
reset       a fresh notebook or script
notebooks   a notebook with a student's work, carried into its newer form
update      a newer release over a course that has begun
question    versions and the ends of the last logs in one text, without names and paths
"""

from labs.course.question import write_question
from labs.course.release import CourseError, filled_in, find_course, is_release
from labs.course.reset import committed_files, fresh_files, reset_files
from labs.course.update import update_course
