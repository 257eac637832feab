#!/usr/bin/env python3
"""Changes code that only GPUs execute, and the passes that rewrite PTX, and says which changes the tests notice.

    tests/mutants/gpu.py [--count N] [--seed N] [--only TEXT] [--results FILE.csv]

Each row of gpu.csv is a mutant: a text of a file (its first, second... occurrence) and what stands there instead. Facts about PTX
(tests/ptx) judge those of the device crate, for an architecture of each kind; the builder's unit tests judge its passes. Needs no GPU.
Changes a clone in target/mutants, never this checkout. Ends with 1 where a mutant is missed.
"""

import argparse
import csv
import os
import random
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path

from tree import HERE, record, renewed_clone

FACTS = ["test", "--quiet", "-p", "ferrogrid-ptx-tests"]
PASSES = ["test", "--quiet", "-p", "ferrogrid-build", "--lib", "passes"]
# Seconds: a build of device code and of the host half that it changes.
LIMIT = 900


def cargo(clone, *arguments):
    """Whether it succeeds."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        return subprocess.run(["cargo", *arguments], cwd=clone, timeout=LIMIT, **silent).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def outcome(clone, row):
    path, at = clone / row["file"], -1
    text = path.read_text()
    for _ in range(int(row["occurrence"])):
        at = text.find(row["from"], at + 1)
        if at < 0:
            return "stale"
    tests = PASSES if row["file"].startswith("builder/") else FACTS
    path.write_text(text[:at] + row["to"] + text[at + len(row["from"]):])
    try:
        # Device code that does not compile is no error of a build, but of the facts.
        if not cargo(clone, *tests, "--no-run"):
            return "unviable"
        return "missed" if cargo(clone, *tests) else "caught"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="how many; all unless given")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="which, if not all")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--results", type=Path, help="where each outcome is added")
    arguments = parser.parse_args()
    clone, commit = renewed_clone("gpu")
    os.environ.setdefault("CARGO_TARGET_DIR", str(clone.parent / "target"))
    os.environ |= {"CARGO_PROFILE_DEV_DEBUG": "0", "FERROGRID_ARCH": "sm_75,sm_80,sm_90"}
    with (HERE / "gpu.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if arguments.only in row["file"]]
    if arguments.count:
        rows = random.Random(arguments.seed).sample(rows, min(arguments.count, len(rows)))
    print(f"{len(rows)} mutants, seed {arguments.seed}, commit {commit}", flush=True)
    counts = Counter()
    for row in rows:
        result = outcome(clone, row)
        counts[result] += 1
        print(f"{result:10} {row['file']}: {row['from']!r} -> {row['to']!r}", flush=True)
        if arguments.results:
            record(arguments.results, row | {"outcome": result, "commit": commit, "date": date.today().isoformat()})
    print(", ".join(f"{number} {result}" for result, number in counts.items()))
    return 0 if set(counts) <= {"caught", "unviable"} else 1


if __name__ == "__main__":
    sys.exit(main())
