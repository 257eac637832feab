#!/usr/bin/env python3
"""Runs a sample of cargo-mutants' mutants of the code that runs natively, and reports which ones the tests detect.

    tests/mutants/sample.py [--count 30] [--seed N] [--area NAME] [--only TEXT..] [--since COMMIT] [--results FILE.csv]
                            [--again FILE.csv] [--clone NAME] [--stages N]

The sample is the same for the same seed and source. It is spread over the areas below by their weights; each mutant goes
through the stages of its area until one notices it. `--again` runs the mutants of an earlier result that were missed,
by their names without line numbers; `--only` draws from the files whose path has one of the texts, `--since` from the lines
that are new since a commit. Needs `cargo install cargo-mutants --locked`; changes a clone in target/mutants, never this
checkout, whose uncommitted changes it takes along. Ends with 1 where a mutant is missed that tests/mutants/equivalent.csv
does not explain.
"""

import argparse
import csv
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

from schemata import VARIABLE, compile_all, weavable
from tree import BUILD_LIMIT, HERE, ROOT, changed, noticed, outcome, output, parsed, record, renewed_clone, use_target_of

HOST = "-p ferrogrid-host"
LIB = f"{HOST} --lib"
# The cases on the CPU device that take less than a second each.
CPU = (f"{HOST} --test cpu --test cpu_devices --test cpu_failures --test cpu_grids --test cpu_overflow --test cpu_process"
       " --test cpu_warps --test dlpack --test toolkit")
WAITING = f"{HOST} --test cpu_barriers --test cpu_output"
DRIVER = f"{HOST} --test driver"
LOOM = f"{HOST} --test loom"
# Fewer random steps than usual, because it runs for many mutants.
RUNTIME = f"FERROGRID_STRESS=150 FERROGRID_SOAK=500 {HOST} --test runtime"
BUILD = "-p ferrogrid-build --lib"
# Tests with native kernels: they cover the device crate and the macros.
NATIVE = [
    f"{HOST} --test cpu --test cpu_barriers --test cpu_warps --test cpu_grids --test cpu_output",
    # Without GPU code; the two excluded cases need it, or rerun the suite.
    "FERROGRID_DEVICE_RUSTC=none -p ferrogrid-tests --test conformance"
    " -- cpu:: --skip companions_know_name_and_ptx --skip the_suite_holds_with",
    "FERROGRID_DEVICE_RUSTC=none -p ferrogrid-algorithms-tests --test algorithms -- cpu:: --skip the_suite_holds_with",
]
# Name, weight, files, stages of tests (with variables), quick ones first; and the stages whose tests the mutated code itself
# compiles. A file belongs to the first area that lists it.
AREAS = [
    ("host/order", 5, ["order*", "memory/access.rs", "device/retired*", "stream/order.rs"], [LIB, CPU, DRIVER, LOOM, RUNTIME]),
    ("host/memory", 5, ["memory*", "copy*", "device/account*", "view/pitched.rs", "device/peer.rs", "kernel/image.rs", "stream/completion.rs"],
     [LIB, CPU, DRIVER, f"{HOST} --test loom --test memory_limits", RUNTIME]),
    ("host/grid", 3, ["launch/grid*", "launch/extent.rs"], [LIB, CPU, DRIVER]),
    ("host/launch", 4, ["launch*", "kernel*", "device/attribute.rs"],
     [LIB, CPU, DRIVER, RUNTIME]),
    ("host/views", 3, ["view*"], [LIB, CPU, DRIVER, RUNTIME]),
    ("host/graphs", 4, ["graph*", "backend/recording*", "backend/graph.rs", "backend/*/graph.rs", "backend/cuda/graph/*"],
     [LIB, f"{HOST} --test graphs --test loom", DRIVER, CPU, RUNTIME]),
    ("host/foreign", 4, ["foreign*", "image*", "toolkit*", "dlpack*"], [LIB, CPU, DRIVER]),
    ("host/cpu", 5, ["backend/cpu/*"], [LIB, CPU, WAITING, LOOM, RUNTIME]),
    ("host/cuda", 6, ["backend/cuda/*", "backend/*"], [LIB, DRIVER, LOOM, RUNTIME]),
    ("host/rest", 3, ["*"], [LIB, CPU, DRIVER, f"{HOST} --test cpu_output", RUNTIME]),
    ("abi", 2, ["abi/src/*"], ["-p ferrogrid-abi", LIB, BUILD, "-p ferrogrid-device --features half --lib", DRIVER]),
    ("builder", 20, ["builder/src/*"],
     [BUILD, "-p ferrogrid-build --test step", "-p ferrogrid-build --test program --test settings --test contents",
      "-p ferrogrid-build --test codegen --test packages -- panics:: stale::"]),
    ("syntax", 10, ["syntax/src/*"],
     ["-p ferrogrid-syntax --lib", BUILD, "-p ferrogrid-macros-tests"], ["-p ferrogrid --test ui"]),
    ("macros", 8, ["macros/src/*"], ["-p ferrogrid-macros-tests"], [*NATIVE, "-p ferrogrid --test ui"]),
    ("ptx/uniformity", 4, ["ptx/src/uniformity*"], ["-p ferrogrid-ptx --lib --test lanes --test uniformity", "-p ferrogrid-ptx --tests", BUILD,
      "-p ferrogrid-build --test barriers --test lanes"]),
    ("ptx", 8, ["ptx/src/*"], ["-p ferrogrid-ptx --tests", BUILD]),
    ("device", 16, ["device/src/*"], ["-p ferrogrid-device --features half --lib", *NATIVE, "-p ferrogrid-device --features half --doc"]),
]


def area_of(file):
    return next(area for area in AREAS if any(fnmatch(file, glob if "/src/" in glob else f"host/src/{glob}")
                                              for glob in area[2]))


def is_left_out(clone, mutant, cache={}):
    """Whether a `cfg` limits it to GPUs or to systems other than Unix, where no test here could detect it."""
    file = mutant["file"]
    if file not in cache:
        lines, hidden, end = (clone / file).read_text().splitlines(), set(), 0
        for number, line in enumerate(lines):
            is_for_gpus = 'target_arch = "nvptx64"' in line and "not(target_arch" not in line and "any(" not in line
            if "#[cfg(" in line and (is_for_gpus or "#[cfg(not(unix))]" in line):
                depth, begun = 0, False
                for end in range(number + 1, len(lines)):
                    depth += lines[end].count("{") - lines[end].count("}")
                    begun |= "{" in lines[end]
                    if depth == 0 and (begun or lines[end].rstrip().endswith((";", ","))):
                        break
                hidden |= set(range(number + 1, end + 2))
        cache[file] = hidden
    return mutant["span"]["start"]["line"] in cache[file]


def plain(name):
    """The mutant's name without line and column."""
    return re.sub(r":\d+:\d+:", ":", name, count=1)


def mutants(clone):
    # The clone lacks the configuration while it is untracked.
    command = ["cargo", "mutants", "--config", ROOT / ".cargo/mutants.toml", "--list", "--json", "--workspace"]
    listed = json.loads(subprocess.run(command, cwd=clone, check=True, capture_output=True).stdout)
    return [mutant for mutant in listed if not is_left_out(clone, mutant)]


def is_since(commit, mutant, cache={}):
    """Whether it starts on a line that is in this checkout but not in the commit."""
    file = mutant["file"]
    if file not in cache:
        changes = output("git", "diff", "--unified=0", "--find-renames", commit, "--", file)
        added = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", changes, re.MULTILINE)
        cache[file] = {line for first, count in added for line in range(int(first), int(first) + int(count or 1))}
    return mutant["span"]["start"]["line"] in cache[file]


def sample(all_mutants, count, seed, only):
    """Chooses `count` mutants by the areas' weights, the same ones for the same seed."""
    areas = [area for area in AREAS if not only or area[0].startswith(only)]
    weight = sum(area[1] for area in areas)
    chosen = []
    for at, area in enumerate(areas):
        mine = [mutant for mutant in all_mutants if area_of(mutant["file"])[0] == area[0]]
        mine.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant['name']}".encode()).digest())
        before = sum(area[1] for area in areas[:at])
        share = count * (before + area[1]) // weight - count * before // weight
        chosen += mine[:share]
    return chosen


def judge(clone, mutant):
    """Applies the patch that cargo-mutants lists and runs the tests."""
    lines = mutant["diff"].splitlines(keepends=True)
    patch = f"--- a/{mutant['file']}\n+++ b/{mutant['file']}\n" + "".join(lines[2:])
    path = clone / mutant["file"]
    with changed(path, path.read_text()):
        subprocess.run(["git", "apply", "-"], cwd=clone, input=patch, text=True, check=True)
        return outcome(clone, all_stages(mutant), mutant["package"])


def quick_stages(mutant):
    return area_of(mutant["file"])[3]


def all_stages(mutant):
    area = area_of(mutant["file"])
    return [*area[3], *(area[4] if len(area) > 4 else [])]


class Limits:
    """A stage's time limit: a multiple of its time without a mutant, with which it must succeed."""

    def __init__(self, clone):
        self.clone, self.known = clone, {}

    def of(self, stage):
        if stage not in self.known:
            arguments, _, variables = parsed(stage)
            begun = time.monotonic()
            by = noticed(self.clone, ["test", "--quiet", *arguments], BUILD_LIMIT, variables)
            if by:
                sys.exit(f"without a mutant, this fails: cargo test {stage}: {by}")
            taken = time.monotonic() - begun
            if taken > 10:
                # The first run may have compiled tools or examples.
                begun = time.monotonic()
                noticed(self.clone, ["test", "--quiet", *arguments], BUILD_LIMIT, variables)
                taken = time.monotonic() - begun
            print(f"{taken:.1f} s: {stage}", flush=True)
            self.known[stage] = 20 + 4 * taken
        return self.known[stage]


def judge_together(clone, chosen, judged, most):
    """Compiles the mutants of one crate into its tests at once, and runs the first stages, or all; returns the mutants that must run
    one by one."""
    able = weavable(clone, chosen)
    alone = [mutant for mutant in chosen if mutant not in able]
    stages = list(dict.fromkeys(stage for mutant in able for stage in quick_stages(mutant)[:most]))
    originals = {}
    try:
        built = [parsed(stage)[1:] for stage in stages if "--doc" not in stage]
        originals, numbered, unviable, apart = compile_all(clone, able, built)
        for mutant in unviable:
            judged(mutant, "unviable", "")
        alone += apart
        limits = Limits(clone)
        # Runs the first stages for all mutants, then the next ones for the rest: the quick stages detect most.
        for at in range(max(len(quick_stages(mutant)[:most]) for mutant in able) if able else 0):
            for number, mutant in list(numbered.items()):
                stage = next(iter(quick_stages(mutant)[:most][at:]), None)
                if not stage:
                    continue
                limit = limits.of(stage)
                arguments, _, variables = parsed(stage)
                by = noticed(clone, ["test", "--quiet", *arguments], limit, variables | {VARIABLE: str(number)})
                if by:
                    judged(numbered.pop(number), "caught", by)
            print(f"{len(numbered)} left after {at + 1} stages", flush=True)
        if most:
            return []
        for mutant in numbered.values():
            if all_stages(mutant) != quick_stages(mutant):
                alone.append(mutant)
            else:
                judged(mutant, "missed", "")
    finally:
        for file, text in originals.items():
            (clone / file).write_text(text)
    return alone


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--area", help="areas that begin with this")
    parser.add_argument("--only", nargs="+", default=[""], help="only files whose path has one of these texts")
    parser.add_argument("--since", metavar="COMMIT", help="only code that is new since this commit")
    parser.add_argument("--results", type=Path, help="where each outcome is added; what is there already is not run again")
    parser.add_argument("--again", type=Path, help="a result whose missed mutants are run, instead of a sample")
    parser.add_argument("--stages", type=int, help="only the first so many of each area; what they miss is not judged")
    parser.add_argument("--clone", default="native", help="its name in target/mutants; two samples at a time need two")
    arguments = parser.parse_args()
    clone, commit = renewed_clone(arguments.clone)
    use_target_of(clone)
    explained = {row["mutant"] for row in csv.DictReader((HERE / "equivalent.csv").open())}
    if arguments.again:
        missed = {plain(row["mutant"]) for row in csv.DictReader(arguments.again.open()) if row["outcome"] == "missed"}
        chosen = [mutant for mutant in mutants(clone) if plain(mutant["name"]) in missed]
    else:
        all_mutants = [it for it in mutants(clone) if any(text in it["file"] for text in arguments.only)]
        all_mutants = [it for it in all_mutants if not arguments.since or is_since(arguments.since, it)]
        chosen = sample(all_mutants, arguments.count, arguments.seed, arguments.area)
    if arguments.results and arguments.results.exists():
        known = {row["mutant"] for row in csv.DictReader(arguments.results.open())}
        chosen = [mutant for mutant in chosen if mutant["name"] not in known]
    print(f"{len(chosen)} mutants, seed {arguments.seed}, commit {commit}", flush=True)

    counts = Counter()

    def judged(mutant, result, by):
        name = mutant["name"]
        if result == "missed" and plain(name) in explained:
            result = "equivalent"
        counts[result] += 1
        print(f"{result:10} {name}  {by}", flush=True)
        if arguments.results:
            row = {"mutant": name, "outcome": result, "noticed_by": by, "area": area_of(mutant["file"])[0]}
            record(arguments.results, row | {"seed": arguments.seed, "commit": commit, "date": date.today().isoformat()})

    alone = []
    for crate in dict.fromkeys(mutant["file"].split("/")[0] for mutant in chosen):
        of_crate = sorted((mutant for mutant in chosen if mutant["file"].startswith(f"{crate}/")), key=lambda it: it["name"])
        alone += judge_together(clone, of_crate, judged, arguments.stages)
    for mutant in alone:
        judged(mutant, *judge(clone, mutant))
    viable = counts["caught"] + counts["missed"]
    print(f"{counts['caught']} of {viable} viable mutants caught; {counts['equivalent']} equivalent, {counts['unviable']} do not "
          f"compile; seed {arguments.seed}")
    return 1 if counts["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
