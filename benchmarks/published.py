"""Predicted against published efficiencies, each row also with constants that other rows chose.

python benchmarks/published.py [--write]

--write: writes the constants that were chosen (labs/costs/chosen.toml) until they no longer change, as the reach of
rates enters the choice of the others; then the table of labs/machines/README.md.
"""

import argparse
import subprocess
import sys

from labs import files
from labs.costs import published
from labs.costs.chosen import FILE


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write chosen.toml and the table of the README")
    options = parser.parse_args()
    chosen = published.chosen_anew()
    print(published.toml(chosen))
    for what, error in published.carried_rates():
        print(f"rate carried over, {what}: {error:+.3f} of its logarithm")
    for way in published.WAYS:
        print(f"\nLeft out: one {way} at a time")
        found = published.left_out(way)
        for row, (told, by) in found.items():
            inside = told.interval[0] <= row.efficiency <= told.interval[1]
            print(
                f"{row.machine:<16}{row.network:<12}{row.batch:>4}{row.workers:>5}  {row.efficiency:.3f}  predicted "
                f"{told.value:.3f} [{told.interval[0]:.3f}, {told.interval[1]:.3f}]  {'in ' if inside else 'OUT'}  "
                f"overlap {by.overlap:g}, spread {by.spread:g}, "
                f"model error {by.model_error:g}, {by.model_degrees} degrees of freedom"
            )
        inside, count, error = published.summary({row: told for row, (told, _) in found.items()})
        print(f"{inside} of {count} in their intervals ({inside / count:.0%}), median error {error:.3f}")
    if options.write and published.toml(chosen) != FILE.read_text(encoding="utf-8"):
        files.write(FILE, published.toml(chosen))
        print("\nWritten. Again, with these constants:\n", flush=True)
        subprocess.run([sys.executable, __file__, "--write"], check=True)
    elif options.write:
        files.write(published.README, published.readme())


if __name__ == "__main__":
    main()
