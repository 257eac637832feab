"""Times PyTorch's attention of one query for each head (scaled_dot_product_attention, each backend that works) beside the program of
benches/attention, and writes both with the machine.

python3 benches/python/decode.py RUST_PROGRAM OUTPUT.csv
"""

import csv
import json
import math
import os
import statistics
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from compare import machine

BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]


def theirs(batches, keys, backend):
    q = torch.randn((batches, 32, 1, 128), device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn((batches, 8, keys, 128), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seconds = []
    try:
        with sdpa_kernel(backend):
            for calls in [3] + [50] * 11:
                start.record()
                for _ in range(calls):
                    torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
                end.record()
                end.synchronize()
                seconds.append(start.elapsed_time(end) / 1000 / calls)
    except RuntimeError:
        return math.inf
    return statistics.median(seconds[1:])


def main():
    program, output = sys.argv[1:]
    done = subprocess.run([program, "decode"], stdout=subprocess.PIPE, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    facts = machine()
    facts = {"gpu": facts.pop("name")} | facts
    with open(output, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "ours_seconds", *[it.name.lower() for it in BACKENDS], "best_over_ours", "ours_gb_per_s", *facts])
        for figure in figures:
            batches, keys = map(int, figure["name"].split("_")[-2:])
            mine, other = figure["seconds"], [theirs(batches, keys, backend) for backend in BACKENDS]
            rate = round(batches * 8 * keys * 128 * 2 * 2 / mine / 1e9)
            row = [figure["name"], mine, *other, round(min(other) / mine, 3), rate, *facts.values()]
            writer.writerow(row)
            print(*row[:6])


if __name__ == "__main__":
    main()
