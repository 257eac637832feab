"""What a training step costs on many GPUs, on paper: fits the time of an all-reduce to what two GPUs measured, and draws it for more.

    python3 benches/scaling.py benches/results/2026-11-28-h200-nccl.csv benches/results/2026-11-28-h200-training.csv docs/src/runtime/scaling-h200.svg

docs/src/runtime/several-gpus.md states the model. The network's figures are assumptions: no cluster was measured.
"""

import csv
import math
import sys

MACHINE = 8  # GPUs of one machine
NETWORK = 50e9  # bytes a second and GPU, each way: 400 Gb/s
HOP = 10e-6  # seconds for a message between machines
LAYERS, BUCKET = 8, 2 * 4096 * 4096  # the network of benches/training: bytes of gradients of a layer
GPUS = [2**i for i in range(11)]


def fit(measured):
    """`(start, bandwidth)` of seconds = start + bytes / bandwidth, by least squares of relative errors."""
    rows = [(1 / t, size / t) for size, t in measured]
    aa, ab, bb = (sum(x * y for x, y in pairs) for pairs in ([(a, a) for a, _ in rows], rows, [(b, b) for _, b in rows]))
    a, b = sum(a for a, _ in rows), sum(b for _, b in rows)
    determinant = aa * bb - ab * ab
    return (a * bb - b * ab) / determinant, determinant / (aa * b - ab * a)


def all_reduce(size, gpus, start, bandwidth):
    """Seconds. Parts go around within each machine while others are between machines; the slower of the two counts."""
    if gpus == 1:
        return 0.0
    inside, machines = min(gpus, MACHINE), math.ceil(gpus / MACHINE)
    within = 2 * (inside - 1) / inside * size / bandwidth
    between = 2 * (machines - 1) / machines * size / (inside * NETWORK)
    return start + max(within, between) + 2 * math.ceil(math.log2(machines)) * HOP


def step(alone, gpus, start, bandwidth):
    """Seconds of a step whose computation takes `alone`. The exchange takes multiprocessors from it, and so its own time."""
    return alone + LAYERS * all_reduce(BUCKET, gpus, start, bandwidth)


def main(collectives, training, picture):
    reduces = [row for row in csv.DictReader(open(collectives)) if row["operation"] == "all_reduce"]
    reduces = [(int(row["bytes"]), float(row["ours_us"]) / 1e6) for row in reduces if int(row["bytes"]) >= 1 << 22]
    start, bandwidth = fit(reduces)
    print(f"an all-reduce of two GPUs: {start * 1e6:.0f} us + bytes / {bandwidth / 1e9:.0f} GB/s")
    worst = max(abs((start + size / bandwidth) / t - 1) for size, t in reduces)
    print(f"largest error for {len(reduces)} sizes: {100 * worst:.0f} %")

    steps = {}
    for row in csv.DictReader(open(training)):
        steps.setdefault(int(row["samples_per_gpu"]), {})[row["mode"]] = float(row["step_ms"]) / 1e3
    lines = []
    for samples, times in sorted(steps.items()):
        # Two GPUs that exchange nothing: what each computes.
        model = [step(times["apart"], gpus, start, bandwidth) for gpus in GPUS]
        error = model[1] / times["together"] - 1
        share = [times["apart"] / t for t in model]
        print(f"{samples:6} samples: 2 GPUs {model[1] * 1e3:.2f} ms, measured {times['together'] * 1e3:.2f} ({100 * error:+.1f} %);",
              f"8: {model[3] * 1e3:.2f}, 64: {model[6] * 1e3:.2f}, 1024: {model[10] * 1e3:.2f} ms, {share[10]:.2f} of one GPU's speed each")
        lines.append((samples, model, [times["alone"], times["together"]]))
    open(picture, "w").write(drawing(lines))


def drawing(lines):
    """Steps in milliseconds over GPUs, both by powers of two: lines are the model, dots were measured."""
    left, top, width, height = 60, 20, 500, 300
    low, high = 3.0, 6.0  # 8 and 64 ms

    def at(gpus, seconds):
        x = left + width * math.log2(gpus) / math.log2(GPUS[-1])
        return x, top + height * (high - math.log2(seconds * 1e3)) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 380" font-family="sans-serif" font-size="13">',
             '<rect width="640" height="380" fill="white"/>']
    for power in range(int(low), int(high) + 1):
        _, y = at(1, 2**power / 1e3)
        parts.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#ddd"/><text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{2**power}</text>')
    for gpus in GPUS[::2]:
        x, _ = at(gpus, 8e-3)
        parts.append(f'<text x="{x:.1f}" y="{top + height + 20}" text-anchor="middle">{gpus}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 42}" text-anchor="middle">GPUs</text>'
                 f'<text x="16" y="{top + height / 2}" transform="rotate(-90 16 {top + height / 2})" text-anchor="middle">ms a step</text>')
    for color, (samples, model, measured) in zip(("#1e88e5", "#43a047", "#f57c00"), lines):
        places = [at(gpus, t) for gpus, t in zip(GPUS, model)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>' for x, y in map(at, GPUS, measured)]
        x, y = places[3]
        parts.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" fill="{color}">{samples} samples a GPU</text>')
    return "\n".join([*parts, "</svg>", ""])


main(*sys.argv[1:])
