"""Runs the GPU benches (Rust against CUDA C++ in one process) and writes the results and a description of the machine.

python3 benches/compare.py RUST_PROGRAM CUBIN OUTPUT

Writes OUTPUT.json and OUTPUT.csv. The program prints one JSON line per
figure. The limits are the design's goals.
"""

import csv
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from datetime import date

TURNS = 3
KERNEL_BAR = 1.02
GEOMETRIC_MEAN_BAR = 1.00
LAUNCH_BAR = 1.05


def turn(program, cubin):
    environment = os.environ | {"FERROGRID_BENCH_CUBIN": os.path.abspath(cubin)}
    done = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.returncode


def machine():
    query = "name,driver_version,memory.total,clocks.max.sm"
    row = subprocess.run(
        ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], check=True, capture_output=True, text=True
    ).stdout.splitlines()[0]
    nvcc = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout.splitlines()[-1]
    return dict(zip(query.split(","), (part.strip() for part in row.split(",")))) | {
        "kernel": platform.release(),
        "nvcc": nvcc,
        "date": date.today().isoformat(),
    }


def combined(turns):
    """One row for each kernel: the median over the turns of times and ratios."""
    kernels = {}
    for figure in (figure for figures in turns for figure in figures if "rust" in figure):
        kernels.setdefault(figure["name"], []).append(figure)
    return [
        {
            "name": name,
            "rust_seconds": statistics.median(figure["rust"] for figure in figures),
            "cpp_seconds": statistics.median(figure["c++"] for figure in figures),
            "ratio": statistics.median(figure["rust"] / figure["c++"] for figure in figures),
        }
        for name, figures in kernels.items()
    ]


def main():
    program, cubin, output = sys.argv[1:]
    turns, codes = zip(*(turn(program, cubin) for _ in range(TURNS)))
    rows = combined(turns)
    mean = math.exp(statistics.mean(math.log(row["ratio"]) for row in rows))
    launches = [figure for figures in turns for figure in figures if figure["name"] == "launch"]
    launch = statistics.median(figure["typed"] / figure["raw"] for figure in launches)
    where = machine()
    result = {"machine": where, "kernels": rows, "geometric_mean": mean, "launch_typed / launch_raw": launch,
              "bars": {"kernel": KERNEL_BAR, "geometric_mean": GEOMETRIC_MEAN_BAR, "launch": LAUNCH_BAR},
              "turns": turns}
    with open(output + ".json", "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    with open(output + ".csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "rust_seconds", "cpp_seconds", "ratio", "gpu", "driver", "date"])
        for row in rows:
            writer.writerow([*row.values(), where["name"], where["driver_version"], where["date"]])
    bars = [(row["name"], row["ratio"], KERNEL_BAR) for row in rows]
    bars += [("geometric mean", mean, GEOMETRIC_MEAN_BAR), ("launch_typed / launch_raw", launch, LAUNCH_BAR)]
    for name, ratio, bar in bars:
        print(f"{name:28} {ratio:.4f}  bar {bar}: {'met' if ratio <= bar else 'MISSED'}")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
