"""After a written answer: what a good one holds, as a list in which the student ticks what is there. Not graded."""

from functools import partial
from pathlib import Path

from labs.checks import judging, kept, tasks


def reflect(id: str) -> None:
    """Show what a good answer to the written task `id` holds, as soon as the saved notebook holds an answer.

    Ticks are kept in progress.json, each at once, and are there when the cell is run again. Nothing is shown where the
    instructor has kept the lists back. Raises TaskError for an unknown id, and for one that is not a written task.
    """
    lesson, item = tasks.find(id)
    if not isinstance(item, tasks.Answer):
        raise tasks.TaskError(f"{id} is not a written task, so there is no list of what a good answer contains.")
    if not item.shown:
        return
    notebook = Path(f"{tasks.lessons()[lesson].notebook}.ipynb")
    if not notebook.is_file():
        judging.show(id, "open", f"{notebook} is not in the folder of this kernel, so your answer cannot be read.")
    elif not kept.answers(notebook).get(id):
        judging.show(id, "open", "write your answer above, save the notebook (Ctrl + S), and run this cell.")
    else:
        from IPython.display import display

        from labs.show import widgets

        title = f"{id}: what of this does your answer hold?"
        note = "Ticks are for you: kept, not graded. They stay when you change your answer, so go through them again."
        ticked = kept.read_progress().get(id, {}).get("ticked") or ()
        display(widgets.checklist(title, item.shown, ticked, partial(kept.keep_tick, item), note))
