"""What belongs to notebooks only: a folder for each, with its name, and modules that several share.

    NAME/tasks.toml     its title, minutes, and items in order: checks, choices, predictions, written answers (format:
                        labs.checks.tasks)
    NAME/questions.py   the functions that judge its checks
    NAME/pictures.py    its pictures, where it has any of its own
    canvas              their figures that can move: drawn within a blink
    drawing             what all of them share
    asked               the question that a measured speedup raises, and what several judges ask of an answer
    connected           a function on several ranks that exchange, played in one process: 02, 08, 20 to 22, 25
    tryout              a training script tried out in a process of its own: what happened, as facts
    scripts             what every judge of a script begins with: is it there, is it blank, where does it stop?
    training_scripts    what is asked of a training script, by what it did when it was tried out: 05 to 09
    batch_scripts       is a batch script right: 06, 08, 09, 20
    own_runs            the runs of a study that a student has measured, and a figure of them: 05, 09, 10
    compare             two scripts, or the loss of several runs, side by side: 08 and 09
    reduce              a ring all-reduce chunk by chunk; what a ring and parameter servers cost: 02 and 26
    memory              what a step keeps on each device, and what sharding divides: 01 and 25
    counts              what a network needs: parameters, multiply-adds, bytes of gradient, memory by part
    step_model          what a training step takes, term by term: 26
    on_gpu              what was measured on one GPU, beside the student's own figures: 04, 10, 24, 25, 27
    sharding            who reads which sample: shares, and what they cover: 05 to 09, 22, 24
    formats             image data in files, and counted reading: 24
    timeline            Horovod's timeline in numbers, timelines its picture: 20 and 26

A lesson is this folder, its text solutions/NN_name.py, the scripts that it has (solutions/scripts), and its right and
wrong answers tests/lessons/answers/NAME.py: to add one, copy these. No other code names it; the table of the README
lists it for readers. Notebook 00 draws all.
"""
