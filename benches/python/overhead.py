"""The time of a launch from Python: an exported function, cuda.core's `launch` and CuPy's kernels, of the same PTX, with the
same arrays, in one process. Prints CSV: microseconds, the median of loops of 10,000 launches, taken in turns."""

import csv
import datetime
import os
import statistics
import sys
import time

import cupy
import numpy as np

import launches
import libraries
from libraries import core

LOOP, ROUNDS = 10_000, int(os.environ.get("ROUNDS", "25"))
N = 1000


def entry(name):
    return next(spec.entry for spec, _ in launches.kernels._module._specs if spec.name == name)


def median_times(functions, synchronize):
    """The median time of each function, per call, in microseconds."""
    times = {name: [] for name in functions}
    for name, function in functions.items():
        for _ in range(1000):
            function()
        synchronize()
    for _ in range(ROUNDS):
        for name, function in functions.items():
            steps = range(LOOP)
            start = time.perf_counter()
            for _ in steps:
                function()
            times[name].append((time.perf_counter() - start) / LOOP * 1e6)
            synchronize()
    return {name: statistics.median(all) for name, all in times.items()}


def cases():
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    folder = os.path.dirname(launches.__file__)
    ptx = next(os.path.join(folder, file) for file in sorted(os.listdir(folder)) if file.endswith(".ptx"))
    with open(ptx, "rb") as file:
        code = core.ObjectCode.from_ptx(file.read())
    kernel, checked = code.get_kernel(entry("touch")), code.get_kernel(entry("touch_checked"))
    raw = cupy.RawModule(path=ptx)
    cupy_kernel, cupy_checked = raw.get_function(entry("touch")), raw.get_function(entry("touch_checked"))
    config = core.LaunchConfig(grid=4, block=256)
    launch, u32, f32 = core.launch, np.uint32, np.float32
    external = cupy.cuda.ExternalStream(int(stream.handle))
    external.use()
    x, y, z = (cupy.asarray(np.ones(N, np.float32)) for _ in range(3))
    touch, touch_checked = launches.kernels.touch, launches.kernels.touch_checked
    px, py, pz, n, a, no = x.data.ptr, y.data.ptr, z.data.ptr, u32(N), f32(2.0), np.uint64(0)

    def typed():
        launch(stream, config, kernel, f32(2.0), x.data.ptr, u32(x.size), y.data.ptr, u32(y.size), z.data.ptr, u32(z.size))

    def typed_checked():
        launch(stream, config, checked, f32(2.0), x.data.ptr, u32(x.size), y.data.ptr, u32(y.size), z.data.ptr, u32(z.size), no)

    def cupy_typed():
        cupy_kernel((4,), (256,), (f32(2.0), x, u32(x.size), y, u32(y.size), z, u32(z.size)))

    def cupy_typed_checked():
        cupy_checked((4,), (256,), (f32(2.0), x, u32(x.size), y, u32(y.size), z, u32(z.size), no))

    ours = lambda: touch(2.0, x, y, z, cover=N)
    yield "cupy arrays", ours, typed, cupy_typed
    yield (
        "cupy arrays; cuda.core with a prepared scalar and lengths as Python integers",
        ours,
        lambda: launch(stream, config, kernel, a, x.data.ptr, x.size, y.data.ptr, y.size, z.data.ptr, z.size),
        lambda: cupy_kernel((4,), (256,), (a, x, n, y, n, z, n)),
    )
    yield (
        "cupy arrays; cuda.core with all arguments prepared",
        ours,
        lambda: launch(stream, config, kernel, a, px, n, py, n, pz, n),
        None,
    )
    yield (
        "cupy arrays; cuda.core with a configuration for each launch",
        ours,
        lambda: launch(
            stream, core.LaunchConfig(grid=(N + 255) // 256, block=256), kernel,
            f32(2.0), x.data.ptr, u32(x.size), y.data.ptr, u32(y.size), z.data.ptr, u32(z.size),
        ),
        None,
    )
    yield "cupy arrays on a stream of cuda.core", lambda: touch(2.0, x, y, z, cover=N, stream=stream), typed, None
    handle = int(stream.handle)
    yield "cupy arrays on the handle of a stream", lambda: touch(2.0, x, y, z, cover=N, stream=handle), typed, None
    yield (
        "cupy arrays; a kernel that may panic",
        lambda: touch_checked(2.0, x, y, z, cover=N),
        typed_checked,
        cupy_typed_checked,
    )
    buffers = [device.allocate(4 * N, stream=stream) for _ in range(3)]
    bx, by, bz = buffers
    stream.sync()
    yield (
        "buffers of cuda.core",
        lambda: touch(2.0, bx, by, bz, cover=N, stream=stream),
        lambda: launch(stream, config, kernel, f32(2.0), bx, u32(N), by, u32(N), bz, u32(N)),
        None,
    )
    if any(make.name == "torch" for make in libraries.available()):
        import torch

        tx, ty, tz = (torch.ones(N, device="cuda") for _ in range(3))
        torch.cuda.set_stream(torch.cuda.ExternalStream(handle))
        torch.cuda.synchronize()
        yield (
            "torch tensors",
            lambda: touch(2.0, tx, ty, tz, cover=N),
            lambda: launch(
                stream, config, kernel, f32(2.0),
                tx.data_ptr(), u32(tx.numel()), ty.data_ptr(), u32(ty.numel()), tz.data_ptr(), u32(tz.numel()),
            ),
            None,
        )


def main():
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver = cupy.cuda.runtime.driverGetVersion()
    try:
        with open("/proc/driver/nvidia/version") as file:
            driver = next(word for word in file.readline().split() if word.count(".") == 2)
    except OSError:
        pass
    date = datetime.date.today().isoformat()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["name", "ours_us", "cuda_core_us", "cupy_us", "ratio", "gpu", "driver", "date"])
    for case, ours, theirs, cupys in cases():
        functions = {"ours": ours, "core": theirs, **({"cupy": cupys} if cupys else {})}
        found = median_times(functions, cupy.cuda.Device(0).synchronize)
        launches.synchronize()
        cupy_us = f"{found['cupy']:.3f}" if cupys else ""
        ratio = found["ours"] / found["core"]
        ours_us, core_us = f"{found['ours']:.3f}", f"{found['core']:.3f}"
        out.writerow([case, ours_us, core_us, cupy_us, f"{ratio:.3f}", name, driver, date])
        sys.stdout.flush()
    import cuda.core

    print(f"python {sys.version.split()[0]}, cupy {cupy.__version__}, cuda.core {cuda.core.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
