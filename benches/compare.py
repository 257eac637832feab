"""Runs benches/gpu (Rust) and baseline (CUDA C++) in turns on one machine and compares medians.

python3 benches/compare.py RUST_PROGRAM CPP_PROGRAM OUTPUT.json

It must not know what is measured: every program prints one JSON line per figure, and figures of one
name are compared. The bars are those of the design.
"""

import json
import platform
import statistics
import subprocess
import sys
from datetime import date

TURNS = 5
BARS = {"saxpy_2^28": 1.02, "launch_typed / launch_raw": 1.05}


def figures(program):
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line["name"]: line["seconds"] for line in map(json.loads, lines)}


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


def medians(turns):
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def main():
    rust_program, cpp_program, output = sys.argv[1:]
    rust_turns, cpp_turns = [], []
    for _ in range(TURNS):
        cpp_turns.append(figures(cpp_program))
        rust_turns.append(figures(rust_program))
    rust, cpp = medians(rust_turns), medians(cpp_turns)
    ratios = {name: rust[name] / cpp[name] for name in rust if name in cpp}
    ratios["launch_typed / launch_raw"] = statistics.median(t["launch_typed"] / t["launch_raw"] for t in rust_turns)
    ratios["launch_typed / launch_raw_c++"] = rust["launch_typed"] / cpp["launch_raw_c++"]
    result = {"machine": machine(), "turns": TURNS, "rust": rust, "c++": cpp, "ratios": ratios, "bars": BARS,
              "rust_turns": rust_turns, "c++_turns": cpp_turns}
    with open(output, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    for name, ratio in ratios.items():
        bar = BARS.get(name)
        verdict = "" if bar is None else f"  bar {bar}: {'met' if ratio <= bar else 'MISSED'}"
        print(f"{name:32} {ratio:.4f}{verdict}")


if __name__ == "__main__":
    main()
