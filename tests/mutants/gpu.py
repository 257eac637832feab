#!/usr/bin/env python3
"""Changes code that only GPUs execute, and the passes that rewrite PTX, and says which changes the tests notice.

    tests/mutants/gpu.py [--count N] [--seed N] [--only TEXT] [--results FILE.csv]

Each row of gpu.csv is a mutant: a text of a file (its first, second... occurrence) and what stands there instead. Facts about PTX
(tests/ptx) judge those of the device crate, for an architecture of each kind; the builder's unit tests judge its passes. Needs no GPU.
Changes a clone in target/mutants, never this checkout. What `--results` has already is not run again. Ends with 1 where a mutant is
missed.
"""

import argparse
import csv
import os
import random
import re
import shlex
import subprocess
import sys
from collections import Counter
from datetime import date
from functools import cache
from pathlib import Path

from tree import BUILD_LIMIT, HERE, TEST_LIMIT, changed, noticed, outcome, parsed, record, renewed_clone, use_target_of

# For an architecture of each kind. Device code that does not compile is no error of a build, but of the facts.
FACTS = "FERROGRID_ARCH=sm_75,sm_80,sm_90 -p ferrogrid-ptx-tests"
PASSES = "-p ferrogrid-build --lib passes"
# Of gpu.csv: what says which mutant it is.
COLUMNS = ("file", "from", "to", "occurrence")


def mutated(text, row):
    """The text with the row's occurrence replaced, if there is one."""
    at = -1
    for _ in range(int(row["occurrence"])):
        at = text.find(row["from"], at + 1)
        if at < 0:
            return None
    return text[:at] + row["to"] + text[at + len(row["from"]):]


class Facts:
    """Compiles the kernels of the facts again, but not the host's half, which has none of the code in question: runs the build
    script as cargo ran it, and gives the mutated file its text and time back before cargo looks."""

    def __init__(self, clone):
        self.clone, self.last = clone, None
        self.arguments, _, self.variables = parsed(FACTS)
        self.of_build = ["cargo", "test", *self.arguments, "--no-run", "-vv"]
        (clone / "tests/ptx/main.rs").touch()
        built = subprocess.run(self.of_build, cwd=clone, env=os.environ | self.variables, capture_output=True, text=True)
        script = re.search(r"^ +Running `(.*ferrogrid-ptx-tests-\w+/build-script-build)`$", built.stderr, re.MULTILINE)
        if built.returncode or not script or noticed(clone, ["test", *self.arguments], TEST_LIMIT, self.variables):
            sys.exit(f"without a mutant, the facts do not hold:\n{built.stderr[-3000:]}")
        *settings, self.script = shlex.split(script[1])
        self.environment = os.environ | self.variables | dict(setting.split("=", 1) for setting in settings)

    def judge(self, path, text):
        self.last = path
        if not self.compiles(path, text) or noticed(self.clone, self.of_build[1:], BUILD_LIMIT, self.variables):
            return "unviable", ""
        by = noticed(self.clone, ["test", "--quiet", *self.arguments], TEST_LIMIT, self.variables)
        return ("caught", by) if by else ("missed", "")

    def compiles(self, path, text):
        times = path.stat()
        with changed(path, text):
            script = subprocess.run([self.script], cwd=self.clone / "tests/ptx", env=self.environment, timeout=BUILD_LIMIT,
                                    capture_output=True)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return script.returncode == 0

    def close(self):
        """What was made of the last mutant must not count as made of the file."""
        if self.last:
            self.compiles(self.last, self.last.read_text())


def judge(clone, row, facts):
    path = clone / row["file"]
    text = mutated(path.read_text(), row)
    if text is None:
        return "stale", ""
    if row["file"].startswith("device/"):
        return facts().judge(path, text)
    with changed(path, text):
        return outcome(clone, [PASSES])


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
    if arguments.results and arguments.results.exists():
        known = [[row[column] for column in COLUMNS] for row in csv.DictReader(arguments.results.open(newline=""))]
        rows = [row for row in rows if [row[column] for column in COLUMNS] not in known]
    if arguments.count:
        rows = random.Random(arguments.seed).sample(rows, min(arguments.count, len(rows)))
    print(f"{len(rows)} mutants, seed {arguments.seed}, commit {commit}", flush=True)
    counts, facts = Counter(), cache(lambda: Facts(clone))
    for row in rows:
        result, by = judge(clone, row, facts)
        counts[result] += 1
        print(f"{result:10} {row['file']}: {row['from']!r} -> {row['to']!r}  {by}", flush=True)
        if arguments.results:
            record(arguments.results, row | {"outcome": result, "noticed_by": by, "commit": commit, "date": date.today().isoformat()})
    if facts.cache_info().currsize:
        facts().close()
    print(", ".join(f"{number} {result}" for result, number in counts.items()))
    return 0 if set(counts) <= {"caught", "unviable"} else 1


if __name__ == "__main__":
    sys.exit(main())
