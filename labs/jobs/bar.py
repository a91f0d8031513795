"""The progress bar of a job: one line of HTML in a notebook, a line that is written over in a terminal.

The line of HTML stays in the saved notebook as it was at the end, can be read without a kernel, and has a text
alternative.
"""

import html
import sys

from labs import printed
from labs.errors import LabsError
from labs.results import metrics
from labs.results.run import load_record


def _in_notebook():
    """True in a kernel that can show HTML; that a package of Jupyter's was imported says nothing."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    return hasattr(get_ipython(), "kernel")


def _rate(record, several):
    """Images per second as a run record says, with its name where there are several; "" if it does not."""
    try:
        rate = metrics.throughput(load_record(record)).value
    except LabsError:
        return ""
    return (f"{record.stem}: " if several else "") + f"{rate:,.0f} images/s" if rate else ""


def where(progress):
    """Epoch and step of what `Job.progress` says, in words."""
    epoch, step = progress["epochs_done"] + 1, progress["step"]
    return f"epoch {epoch} of {progress['epochs']}, step {step} of {progress['steps'] or '?'}"


class Bar:
    """Progress of the job `name`, or jobs that take turns. show: whether anything is to be seen of it."""

    def __init__(self, name, show=True):
        self.name, self.show, self.handle = name, show, None
        # Of the training that is shown: seconds when it was first seen, its fraction then, its newest fraction.
        self.begin, self.first, self.last = 0.0, None, 0.0
        if show and _in_notebook():
            from IPython.display import display

            self.handle = display(self._html(0.0, "starting"), display_id=True)

    def _html(self, fraction, text):
        from IPython.display import HTML

        return HTML(
            f'<div style="display:flex;gap:.8em;align-items:center"><code>{html.escape(self.name)}</code>'
            f'<progress max="1" value="{fraction:.3f}" aria-label="progress of {html.escape(self.name)}"></progress>'
            f"<span>{html.escape(text)}</span></div>"
        )

    def update(self, progress, seconds, line=None):
        """Show what `Job.progress` says after so many seconds; where it says nothing, a line that the job printed."""
        if not progress:
            self._show(0.0, f"{line or 'starting TensorFlow'} ({seconds:.0f} s)")
            return
        fraction, rate, left = progress["fraction"], progress["images_per_second"], ""
        if self.first is None or fraction < self.last:  # a batch script's next training starts at 0 again
            self.begin, self.first = seconds, fraction
        self.last = fraction
        if fraction - self.first > 0.02:
            left = f", {(seconds - self.begin) * (1 - fraction) / (fraction - self.first):.0f} s left"
        rate = f", {rate:.0f} images/s" if rate else ""  # none while the first epoch traces
        self._show(fraction, f"{printed.several(progress['workers'], 'worker')}, {where(progress)}{rate}{left}")

    def _show(self, fraction, text, end=""):
        if self.handle:
            self.handle.update(self._html(fraction, text))
        elif self.show and sys.stderr.isatty():
            print(f"\r{self.name}: {fraction:4.0%} {text:<72.72}", end=end, file=sys.stderr, flush=True)

    def close(self, job):
        """Show how the job, or the jobs that took turns, ended, and the rates of their records."""
        records = [record for each in getattr(job, "jobs", [job]) for record in each.records]
        finished = job.state == "finished"
        rates = [_rate(record, len(records) > 1) for record in records] if finished and self.show else []
        self._show(float(finished), ", ".join([job.state, *filter(None, rates)]), end="\n")
