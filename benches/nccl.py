"""Runs the benches of several GPUs: collective operations beside NCCL called from C++ in one process, and training steps on one GPU and
two. Writes what came out with the machine.

python3 benches/nccl.py collectives RUST_PROGRAM LIBRARY OUTPUT
python3 benches/nccl.py training RUST_PROGRAM OUTPUT

Writes OUTPUT.csv and OUTPUT.json. Bandwidth is that of the bus, as nccl-tests computes it: 2 (n - 1) / n of the bytes for an all-reduce
among n ranks, (n - 1) / n for the others, by the time of an operation. The bars are those of the design; operations of less than a MiB
are judged by their time, longer ones by bandwidth.
"""

import csv
import json
import os
import statistics
import subprocess
import sys

from compare import machine
from runtime import combined, turn

TURNS = 3
LATENCY_BAR = 1.02
BANDWIDTH_BAR = 0.99
BANDWIDTH_FROM = 1 << 20
TRAINING_BAR = 1.9


def write(output, header, rows, where, turns):
    with open(output + ".json", "w") as file:
        json.dump({"machine": where, "turns": turns}, file, indent=1)
        file.write("\n")
    with open(output + ".csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*header, "gpu", "driver", "date"])
        for row in rows:
            writer.writerow([*row, where["name"], where["driver_version"], where["date"]])


def bus_bandwidth(operation, size, seconds, ranks):
    """In GB/s."""
    share = (ranks - 1) / ranks * (2 if operation == "all_reduce" else 1)
    return size * share / seconds / 1e9


def collective(figure, ranks):
    """The row of a figure, and whether it meets its bar."""
    operation, _, size = figure["name"].rpartition("_")
    times = [figure["ours_seconds"] * 1e6, figure["theirs_seconds"] * 1e6, figure["ratio"]]
    if not size.isdigit():
        return [figure["name"], "", "", "", "", *(f"{time:.4g}" for time in times), "", ""]
    size = int(size)
    ours, theirs = (bus_bandwidth(operation, size, figure[f"{side}_seconds"], ranks) for side in ("ours", "theirs"))
    is_met = 1 / figure["ratio"] >= BANDWIDTH_BAR if size >= BANDWIDTH_FROM else figure["ratio"] <= LATENCY_BAR
    bar = f"bandwidth {BANDWIDTH_BAR}" if size >= BANDWIDTH_FROM else f"time {LATENCY_BAR}"
    bandwidths = [ours, theirs, 1 / figure["ratio"]]
    return [operation, size, *(f"{number:.4g}" for number in bandwidths + times), bar, "met" if is_met else "MISSED"]


def collectives(program, library, output):
    turns, codes = zip(*(turn(program, library) for _ in range(TURNS)))
    figures = combined(turns, None)
    version = next((it for it in turns[0] if it["name"] == "version"), {"nccl": "none", "ranks": 2})
    rows = [collective(figure, version["ranks"]) for figure in figures]
    header = ["operation", "bytes", "ours_gb_per_s", "theirs_gb_per_s", "bandwidth_ratio", "ours_us", "theirs_us", "time_ratio"]
    write(output, [*header, "bar", "verdict", "nccl"], [[*row, version["nccl"]] for row in rows], machine(), turns)
    for row in rows:
        print("{:22} {:>10}  {:>8} beside {:>8} GB/s, {:>6}  {:>8} beside {:>8} us, {:>6}  {:14} {}".format(*row))
    return max(codes) or not rows or any(row[-1] == "MISSED" for row in rows)


def training(program, output):
    done = [subprocess.run([program], stdout=subprocess.PIPE, text=True) for _ in range(TURNS)]
    lines = [[json.loads(line) for line in it.stdout.splitlines() if line.startswith("{")] for it in done]
    figures = [line for found in lines for line in found if line["name"] == "training"]
    rows = [row for samples in sorted({it["samples"] for it in figures}) for row in modes(samples, figures)]
    header = ["mode", "gpus", "samples_per_gpu", "step_ms", "samples_per_second", "over_one_gpu", "bar", "verdict"]
    write(output, header, rows, machine(), lines)
    for row in rows:
        print("training, {:9} {} GPU(s), {:>6} samples each: {:>7} ms, {:>8} samples/s, {} times one GPU's  {} {}".format(*row))
    # More work for the same gradients: the last row is that of the most samples.
    return max(it.returncode for it in done) or not rows or rows[-1][-1] == "MISSED"


def modes(samples, figures):
    """The rows of that many samples on each GPU. Speeds are compared within each turn."""
    of_samples = [it for it in figures if it["samples"] == samples]
    rows = []
    for mode, gpus in [("alone", 1), ("apart", 2), ("together", 2)]:
        step = statistics.median(it[mode][1] for it in of_samples)
        speed_up = statistics.median(gpus * it["alone"][1] / it[mode][1] for it in of_samples)
        numbers = [f"{step * 1e3:.3f}", f"{gpus * samples / step:.0f}", f"{speed_up:.3f}"]
        is_judged = mode == "together"
        verdict = [TRAINING_BAR, "met" if speed_up >= TRAINING_BAR else "MISSED"] if is_judged else ["", ""]
        rows.append([mode, gpus, samples, *numbers, *verdict])
    return rows


if __name__ == "__main__":
    part, *arguments = sys.argv[1:]
    sys.exit(bool({"collectives": collectives, "training": training}[part](*arguments)))
