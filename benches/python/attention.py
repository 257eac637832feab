"""Times PyTorch's attention (scaled_dot_product_attention, each backend that works) and its gradients in turns with the program of
benches/attention, and writes both with the machine.

python3 benches/python/attention.py RUST_PROGRAM OUTPUT.csv
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

TURNS = 3
TOKENS, WIDTH = 16384, 2048
BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def ours(program):
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {figure["name"]: figure["seconds"] for figure in figures}


def theirs(name, backend):
    try:
        return timed(name, backend)
    except RuntimeError:
        if "_256_" not in name:
            raise
        return math.inf  # not for heads of this size


def timed(name, backend):
    what, dtype, size, *causal, length = name.split("_")
    size, length = int(size), int(length)
    shape = (TOKENS // length, WIDTH // size, length, size)
    q, k, v, dy = (torch.randn(shape, device="cuda", dtype=DTYPES[dtype]) for _ in range(4))
    is_backward = what.startswith("gradients")

    def forward():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))

    for factor in (q, k, v) if is_backward else ():
        factor.requires_grad_()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seconds = []
    with sdpa_kernel(backend):
        y = forward() if is_backward else None

        def call():
            return torch.autograd.grad(y, (q, k, v), dy, retain_graph=True) if is_backward else forward()

        for calls in [2] + [5] * 11:
            start.record()
            for _ in range(calls):
                call()
            end.record()
            end.synchronize()
            seconds.append(start.elapsed_time(end) / 1000 / calls)
    return statistics.median(seconds[1:])


def main():
    program, output = sys.argv[1:]
    turns = []
    for _ in range(TURNS):
        mine = ours(program)
        turns.append({name: (time, {backend.name: theirs(name, backend) for backend in BACKENDS}) for name, time in mine.items()})
    facts = machine()
    facts = {"gpu": facts.pop("name")} | facts
    with open(output, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "ours_seconds", *[backend.name.lower() for backend in BACKENDS], "best_over_ours", "ours_tflops", *facts])
        for name in turns[0]:
            mine = statistics.median(turn[name][0] for turn in turns)
            other = [statistics.median(turn[name][1][backend.name] for turn in turns) for backend in BACKENDS]
            length = int(name.rsplit("_", 1)[1])
            operations = (10 if name.startswith("gradients") else 4) * TOKENS * WIDTH * length / (2 if "causal" in name else 1)
            row = [name, mine, *other, round(min(other) / mine, 4), round(operations / mine / 1e12, 1), *facts.values()]
            writer.writerow(row)
            print(name, *[f"{value:.3f}" if isinstance(value, float) else value for value in row[4:6]], [f"{operations / it / 1e12:.0f}" for it in other])


if __name__ == "__main__":
    main()
