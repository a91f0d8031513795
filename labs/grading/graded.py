"""A grading as its later steps see it: what was collected, found and decided, each file of its folder read once."""

from pathlib import Path

from labs.errors import UseError
from labs.grading import check, collect, disputes, marks, points, rubric, store


class Graded:
    """A grading's folder `out`. By number of the submission: `paths`, `found` (of check.results), `names`, `collected`,
    `disputed`; besides `rules`, the Rubric, and `decided`, {number: Marks}.

    Raises UseError where nothing was looked at yet, and for a damaged file.
    """

    def __init__(self, out):
        self.out, self.found, self.paths = Path(out), check.results(out), collect.submissions(out)
        if not self.found:
            raise UseError(f"{out} holds no results: run `labs grade check` first.")
        self.names, self.collected = (store.read(self.out / name) for name in ("names.json", "collection.json"))
        self.disputed = {number: each for number, each in disputes.every(out).items() if number in self.found}
        self.read()

    def read(self):
        """Read again what people change meanwhile: marks and rubric."""
        self.decided, self.rules = marks.load(self.out), rubric.load(self.out)

    def own(self, number):
        """The Marks of a submission."""
        return self.decided.get(number) or marks.Marks()

    def lines(self, number, rules=None):
        """The PointsLines of a submission, by another Rubric where one is given."""
        return points.lines(self.found[number], rules or self.rules, self.own(number))

    def waits(self, number):
        """The ids of a submission's disputes that no person has answered as they are."""
        return disputes.waits(self.disputed.get(number, {}), self.own(number))
