"""What belongs to one notebook only, a folder each: its questions, its pictures, its experiments.

    nbNN/questions.py   the questions of notebook NN
    nbNN/pictures.py    its pictures, where it has any of its own

The text of a lesson is solutions/NN_name.py; right and wrong answers are tests/lessons/nbNN.py.
"""
