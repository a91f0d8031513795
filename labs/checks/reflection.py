"""After a written answer: the list of what a good one contains. Not graded."""

from pathlib import Path

from labs.checks import judging, kept, tasks


def reflect(id: str) -> None:
    """Show what a good answer to the written task `id` contains, as soon as the saved notebook holds an answer.

    Nothing is shown where the instructor has kept the lists back. Raises TaskError for an unknown id, and for one that
    is not a written task.
    """
    lesson, item = tasks.find(id)
    if not isinstance(item, tasks.Answer):
        raise tasks.TaskError(f"{id} is not a written task, so there is no list of what a good answer contains.")
    if not item.shown:
        return
    notebook = Path(f"{lesson.notebook}.ipynb")
    if not notebook.is_file():
        judging.show(id, "open", f"{notebook} is not in the folder of this kernel, so your answer cannot be read.")
    elif not kept.answers(notebook).get(id):
        judging.show(id, "open", "write your answer above, save the notebook (Ctrl + S), and run this cell.")
    else:
        from IPython.display import display

        text = f"{id}: which of these points does your answer contain?\n\n" + "".join(f"- {e}\n" for e in item.shown)
        display({"text/markdown": text, "text/plain": text}, raw=True)
