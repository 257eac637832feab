#!/usr/bin/env python3
"""Changes code that only GPUs execute, and the passes that rewrite PTX, and says which changes the tests notice.

    tests/mutants/gpu.py [--count N] [--seed N] [--only TEXT] [--results FILE.csv]

Each row of gpu.csv is a mutant: a text of a file (its first, second... occurrence) and what stands there instead. Facts about PTX
(tests/ptx) judge those of the device crate, for an architecture of each kind; the builder's unit tests judge its passes. Needs no GPU.
Changes a clone in target/mutants, never this checkout. Ends with 1 where a mutant is missed.
"""

import argparse
import csv
import random
import sys
from collections import Counter
from datetime import date
from pathlib import Path

from tree import HERE, changed, outcome, record, renewed_clone, use_target_of

# For an architecture of each kind. Device code that does not compile is no error of a build, but of the facts.
FACTS = "FERROGRID_ARCH=sm_75,sm_80,sm_90 -p ferrogrid-ptx-tests"
PASSES = "-p ferrogrid-build --lib passes"


def mutated(text, row):
    """The text with the row's occurrence replaced, if there is one."""
    at = -1
    for _ in range(int(row["occurrence"])):
        at = text.find(row["from"], at + 1)
        if at < 0:
            return None
    return text[:at] + row["to"] + text[at + len(row["from"]):]


def judge(clone, row):
    path = clone / row["file"]
    text = mutated(path.read_text(), row)
    if text is None:
        return "stale", ""
    with changed(path, text):
        return outcome(clone, [PASSES if row["file"].startswith("builder/") else FACTS])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="how many; all unless given")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="which, if not all")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--results", type=Path, help="where each outcome is added")
    arguments = parser.parse_args()
    clone, commit = renewed_clone("gpu")
    use_target_of(clone)
    with (HERE / "gpu.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if arguments.only in row["file"]]
    if arguments.count:
        rows = random.Random(arguments.seed).sample(rows, min(arguments.count, len(rows)))
    print(f"{len(rows)} mutants, seed {arguments.seed}, commit {commit}", flush=True)
    counts = Counter()
    for row in rows:
        result, by = judge(clone, row)
        counts[result] += 1
        print(f"{result:10} {row['file']}: {row['from']!r} -> {row['to']!r}  {by}", flush=True)
        if arguments.results:
            record(arguments.results, row | {"outcome": result, "noticed_by": by, "commit": commit, "date": date.today().isoformat()})
    print(", ".join(f"{number} {result}" for result, number in counts.items()))
    return 0 if set(counts) <= {"caught", "unviable"} else 1


if __name__ == "__main__":
    sys.exit(main())
