"""What belongs to notebooks only: a folder for each, and modules that several share.

    nbNN/tasks.toml     its title, minutes, and items in order: checks, choices, predictions, written answers (format:
                        labs.checks.tasks)
    nbNN/questions.py   the functions that judge its checks
    nbNN/pictures.py    its pictures, where it has any of its own
    canvas              their figures that can move: drawn within a blink
    drawing             what all of them share
    asked               the question that a measured speedup raises, and what several judges ask of an answer
    connected           a function on several ranks that exchange, played in one process: 02b, 07 to 07c, 09, 10b
    training_scripts    is a training script right, by what it did when it was tried out: 05 to 08
    batch_scripts       is a batch script right: 05b, 07b, 08
    own_runs            the rows of a study that a student has measured, and a figure of them: 05, 08, 08b
    compare             two scripts, or the loss of several runs, side by side: 07 and 08
    on_gpu              what was measured on one GPU, beside the student's own figures: 04, 08b, 10, 10b, 14
    timeline            Horovod's timeline in numbers, timelines its pictures: 07 and 12

A lesson is this folder, its text solutions/NN_name.py, the scripts that it has (solutions/scripts), and its right and
wrong answers tests/lessons/nbNN.py: to add one, copy these. No other code names it; the table of the README lists it
for readers. Notebook 00 draws all.
"""
