"""Runs the bench of the host runtime (beside the driver's own calls and CUDA C++ in one process), or that of the
algorithms (beside CUB), and writes what came out with the machine.

python3 benches/runtime.py RUST_PROGRAM LIBRARY OUTPUT [BAR]

Writes OUTPUT.json and OUTPUT.csv. The program prints one JSON line per figure.
The bars are those of the design, or BAR for every figure; a figure without one is there to be compared.
"""

import csv
import json
import os
import statistics
import subprocess
import sys

from compare import machine

TURNS = 3
# Ours over theirs; of the pipeline, theirs over ours is to be at least 0.95.
BARS = {
    "launch_3_arguments": 1.03,
    "launch_16_arguments": 1.03,
    "launch_16_arguments_by_value": 1.02,
    "launch_2_streams_1_input": 1.10,
    "event_record": 1.05,
    "event_record_untimed": 1.05,
    "event_query": 1.05,
    "graph_node": 1.02,
    "pinned_upload_262144_KiB": 1.02,
    "pinned_download_262144_KiB": 1.02,
    "pinned_scoped_upload_262144_KiB": 1.02,
    "pinned_scoped_download_262144_KiB": 1.02,
    "pipeline_3_streams": 1 / 0.95,
}


def turn(program, library):
    environment = os.environ | {"FERROGRID_BENCH_LIBRARY": os.path.abspath(library)}
    done = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.returncode


def combined(turns, bar):
    """One row for each figure: the medians over the turns of times and ratios."""
    figures = {}
    for figure in (figure for figures in turns for figure in figures if "ours" in figure):
        figures.setdefault(figure["name"], []).append(figure)
    return [
        {
            "name": name,
            "ours_seconds": statistics.median(figure["ours"][1] for figure in found),
            "theirs_seconds": statistics.median(figure["theirs"][1] for figure in found),
            "ratio": statistics.median(figure["ours"][1] / figure["theirs"][1] for figure in found),
            "bar": BARS.get(name, bar),
        }
        for name, found in figures.items()
    ]


def main():
    program, library, output, *bar = sys.argv[1:]
    turns, codes = zip(*(turn(program, library) for _ in range(TURNS)))
    bar = float(bar[0]) if bar else None
    rows, where = combined(turns, bar), machine()
    counts = [figure for figures in turns for figure in figures if "allocations" in figure]
    with open(output + ".json", "w") as file:
        json.dump({"machine": where, "figures": rows, "allocations": counts, "turns": turns}, file, indent=1)
        file.write("\n")
    with open(output + ".csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "ours_seconds", "theirs_seconds", "ratio", "bar", "gpu", "driver", "date"])
        for row in rows:
            writer.writerow([*row.values(), where["name"], where["driver_version"], where["date"]])
    for row in rows:
        verdict = "" if row["bar"] is None else "met" if row["ratio"] <= row["bar"] else "MISSED"
        us = f"{row['ours_seconds'] * 1e6:12.3f} us beside {row['theirs_seconds'] * 1e6:12.3f} us"
        print(f"{row['name']:34} {us} {row['ratio']:.4f} {verdict}")
    for count in counts:
        print(count)
    missing = set() if bar else BARS.keys() - {row["name"] for row in rows}
    print("not measured:", sorted(missing) or "nothing")
    return max(codes) or bool(missing)


if __name__ == "__main__":
    sys.exit(main())
