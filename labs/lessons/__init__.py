"""What belongs to one notebook only, a folder each.

    nbNN/tasks.toml     its items, in order: checks, choices, predictions, written answers (format: labs.checks.tasks)
    nbNN/questions.py   the functions that judge its checks
    nbNN/pictures.py    its pictures, where it has any of its own
    drawing             what these share

A lesson is this folder, its text solutions/NN_name.py, and its right and wrong answers tests/lessons/nbNN.py: to add
one, copy these three. No other code names it; the tables of the README and of notebook 00 list it for readers.
"""
