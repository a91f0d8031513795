"""Schedules that a student writes: data parallelism and ZeRO. Notebook 13b shares all but the questions.

programs    the words of a schedule; a program is recorded
engine      a program played on K ranks: its time, memory, bytes, and what is wrong with it
puzzles     what each puzzle is played with, and how good a schedule can be
pictures    a program as a picture
game        a puzzle played and judged; one's best
real        the same schedule run by real processes
"""
