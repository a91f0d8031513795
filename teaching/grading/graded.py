"""A grading as its later steps see it: what was collected, found and decided, each file of its folder read once."""

from functools import cached_property
from pathlib import Path

from labs.errors import UseError
from teaching.grading import check, collect, marks, points, rubric, store


class Graded:
    """A grading's folder `out`, its Rubric `rules`, and by number of the submission: `paths`, `found` (as check.results
    gives it), `names`, `collected`, and `decided`, the Marks.

    Raises UseError for a damaged file; `found` also where nothing was looked at yet.
    """

    def __init__(self, out):
        self.out, self.paths = Path(out), collect.submissions(out)
        self.names, self.collected = (store.read(self.out / name) for name in ("names.json", "collection.json"))
        self.read()

    @cached_property
    def found(self):
        if found := check.results(self.out, self.paths, self.rules):
            return found
        raise UseError(f"{self.out} holds no results: run `teach in` first.")

    def read(self):
        """Read again what people change meanwhile: marks and rubric."""
        self.decided, self.rules = marks.load(self.out), rubric.load(self.out)

    def own(self, number):
        """The Marks of a submission."""
        return self.decided.get(number) or marks.Marks()

    def lines(self, number):
        """The PointsLines of a submission."""
        return points.points_lines(self.found[number], self.rules, self.own(number))

    def all_lines(self):
        """{number: its PointsLines} of all submissions that were looked at."""
        return {number: self.lines(number) for number in self.found}
