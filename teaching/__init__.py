"""For instructors and authors; no student's tree holds this package. It imports `lessons` and `labs`, and neither of
them imports it.

cli        the command `teach`
grading    from a release to points and feedback
author     the course made from its sources
"""
