#!/usr/bin/env python3
"""Mutates code that only GPUs execute, and the passes that rewrite PTX, and reports which mutants the tests detect.

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

from tree import BUILD_LIMIT, HERE, TEST_LIMIT, changed, failed, outcome, parsed, record, renewed_clone, use_target_of

# For one architecture of each kind: the newest one alone detects most mutants. Device code that does not compile fails the facts,
# not the build.
ARCHITECTURES = ["sm_90", "sm_75,sm_80,sm_90"]
FACTS = f"FERROGRID_ARCH={ARCHITECTURES[-1]} -p ferrogrid-ptx-tests"
PASSES = "-p ferrogrid-build --lib passes"
# The columns of gpu.csv that identify a mutant.
COLUMNS = ("file", "from", "to", "occurrence")


def mutated(text, row):
    """The text with the row's occurrence replaced, or None if the text has none."""
    at = -1
    for _ in range(int(row["occurrence"])):
        at = text.find(row["from"], at + 1)
        if at < 0:
            return None
    return text[:at] + row["to"] + text[at + len(row["from"]):]


class Facts:
    """Recompiles the kernels of the facts but no host code, which has none of the mutated code: runs the build script as cargo ran it,
    and gives its output to the facts, which are the same program for all mutants."""

    def __init__(self, clone):
        self.clone, self.last = clone, None
        arguments, _, variables = parsed(FACTS)
        (clone / "tests/ptx/main.rs").touch()
        build = ["cargo", "test", *arguments, "--no-run", "-vv"]
        built = subprocess.run(build, cwd=clone, env=os.environ | variables, capture_output=True, text=True)
        script = re.search(r"^ +Running `(.*ferrogrid-ptx-tests-\w+/build-script-build)`$", built.stderr, re.MULTILINE)
        program = re.search(r"^ +Executable `(.*)`$", built.stderr, re.MULTILINE)
        if built.returncode or not script or not program:
            sys.exit(f"without a mutant, the facts do not compile:\n{built.stderr[-3000:]}")
        *settings, self.script = shlex.split(script[1])
        self.environment = os.environ | variables | dict(setting.split("=", 1) for setting in settings)
        self.folder, self.program = Path(self.environment["OUT_DIR"]) / "ferrogrid", program[1]
        if by := self.missed_by():
            sys.exit(f"without a mutant, this fails: {by}")

    def judge(self, path, text):
        self.last = path
        for architectures in ARCHITECTURES:
            self.compile(path, text, architectures)
            if not list(self.folder.glob("*.ptx")):
                return "unviable", ""
            if by := self.missed_by():
                return "caught", by
        return "missed", ""

    def close(self):
        """Keeps the output of the last mutant from being reused for the file."""
        if self.last:
            self.compile(self.last, self.last.read_text(), ARCHITECTURES[-1])

    def compile(self, path, text, architectures):
        for file in self.folder.glob("*.ptx"):
            file.unlink()
        times, environment = path.stat(), self.environment | {"FERROGRID_ARCH": architectures}
        with changed(path, text):
            subprocess.run([self.script], cwd=self.clone / "tests/ptx", env=environment, timeout=BUILD_LIMIT, capture_output=True)
        # Cargo sees no change.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def missed_by(self):
        """The fact that fails."""
        environment = os.environ | {"FERROGRID_TEST_PTX": str(self.folder)}
        command = [self.program, "--quiet"]
        facts = subprocess.run(command, cwd=self.clone / "tests/ptx", env=environment, timeout=TEST_LIMIT, capture_output=True, text=True)
        return failed(facts.stdout, facts.returncode) if facts.returncode else None


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
    parser.add_argument("--only", default="", help="those whose file or text contains this")
    parser.add_argument("--results", type=Path, help="where each outcome is added")
    arguments = parser.parse_args()
    clone, commit = renewed_clone("gpu")
    use_target_of(clone)
    with (HERE / "gpu.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if arguments.only in row["file"] + "\n" + row["from"]]
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
