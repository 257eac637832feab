"""Checks the results of exported kernels against NumPy, for arrays of each library; panics; and refusals."""

import sys
import traceback

import numpy as np

import blur, grayscale, histogram, launches, map as map_, matmul, reduce, saxpy, scan, transpose, vector_add
import libraries

random = np.random.default_rng(7)
failures = []


def floats(*shape):
    return random.random(shape, dtype=np.float32)


def compare(found, expected, tolerance=0.0):
    if tolerance:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


def check_saxpy(lib):
    for n in (1, 255, 100_003):
        x, y = floats(n), floats(n)
        device_x, device_y = lib.put(x), lib.put(y)
        saxpy.kernels.saxpy(2.5, device_x, device_y, cover=n, **lib.options)
        saxpy.synchronize(stream_of(lib))
        compare(lib.get(device_y, y), np.float32(2.5) * x + y, 1e-6)


def check_vector_add(lib):
    a, b = (random.integers(-(2**31), 2**31, 70_001, dtype=np.int32) for _ in range(2))
    c = lib.put(np.zeros_like(a))
    vector_add.kernels.vector_add(lib.put(a), lib.put(b), c, cover=len(a), block=128, **lib.options)
    vector_add.synchronize(stream_of(lib))
    with np.errstate(over="ignore"):
        compare(lib.get(c, a), a + b)


def check_reduce(lib):
    x = floats(1_000_003)
    sums, total = lib.put(np.zeros((128, 1), np.float32)), lib.put(np.zeros((1, 1), np.float32))
    reduce.kernels.sum_by_hand(lib.put(x), sums, grid=128, block=256, **lib.options)
    reduce.synchronize(stream_of(lib))
    flat = lib.put(lib.get(sums, np.zeros((128, 1), np.float32)).ravel())
    reduce.kernels.sum_by_hand(flat, total, grid=1, block=256, **lib.options)
    reduce.synchronize(stream_of(lib))
    compare(lib.get(total, np.zeros((1, 1), np.float32))[0, 0], x.astype(np.float64).sum(), 1e-5)


def check_histogram(lib):
    data = random.integers(0, 256, (5000, 16), dtype=np.uint8)
    counts = lib.put(np.zeros(256, np.uint32))
    histogram.kernels.histogram(lib.put(data), counts, grid=20, **lib.options)
    histogram.synchronize(stream_of(lib))
    compare(lib.get(counts, np.zeros(256, np.uint32)), np.bincount(data.ravel(), minlength=256))


def check_transpose(lib):
    x = random.integers(0, 2**32, (203, 301), dtype=np.uint32)
    flat = lib.put(x.ravel())
    grid = (-(-203 // 32), -(-301 // 32))
    for launch in (
        lambda y: transpose.kernels.naive(flat, y, cover=(203, 301), **lib.options),
        lambda y: transpose.kernels.tiled_0(flat, y, grid=grid, **lib.options),
        lambda y: transpose.kernels.tiled_1(flat, y, grid=grid, **lib.options),
    ):
        y = lib.put(np.zeros((301, 203), np.uint32))
        launch(y)
        transpose.synchronize(stream_of(lib))
        compare(lib.get(y, np.zeros((301, 203), np.uint32)), x.T)


def check_blur(lib):
    x = random.integers(0, 256, (97, 131), dtype=np.uint8)
    y = lib.put(np.zeros_like(x))
    blur.kernels.blur(lib.put(x.ravel()), y, cover=(131, 97), **lib.options)
    blur.synchronize(stream_of(lib))
    edge = np.pad(x.astype(np.uint32), 1, mode="edge")
    total = sum(edge[i : i + 97, j : j + 131] for i in range(3) for j in range(3))
    compare(lib.get(y, x), ((total + 4) // 9).astype(np.uint8))


def check_grayscale(lib):
    colour = random.integers(0, 256, (10_001, 3), dtype=np.uint8)
    grey = lib.put(np.zeros(10_001, np.uint8))
    grayscale.kernels.luma(lib.put(colour), grey, cover=10_001, **lib.options)
    grayscale.synchronize(stream_of(lib))
    expected = (colour.astype(np.uint32) @ np.array([77, 150, 29], np.uint32) + 128) >> 8
    compare(lib.get(grey, np.zeros(10_001, np.uint8)), expected.astype(np.uint8))


def check_matmul(lib):
    m, n, p = 70, 90, 110
    a, b = floats(m, n), floats(n, p)
    flat = lib.put(a.ravel()), lib.put(b.ravel())
    for kernel in (matmul.kernels.naive, matmul.kernels.tiled):
        c = lib.put(np.zeros((m, p), np.float32))
        kernel(n, *flat, c, cover=(p, m), **lib.options)
        matmul.synchronize(stream_of(lib))
        compare(lib.get(c, np.zeros((m, p), np.float32)), a.astype(np.float64) @ b, 1e-5)


def check_scan(lib):
    x = random.integers(0, 1000, 60_000, dtype=np.uint64)
    blocks = -(-len(x) // 256)
    device_x, totals = lib.put(x), lib.put(np.zeros((blocks, 1), np.uint64))
    scan.kernels.scan_blocks(device_x, totals, cover=len(x), **lib.options)
    scan.synchronize(stream_of(lib))
    sums = np.cumsum(lib.get(totals, np.zeros((blocks, 1), np.uint64)).ravel()).astype(np.uint64)
    scan.kernels.add_before(lib.put(sums), device_x, cover=len(x), **lib.options)
    scan.synchronize(stream_of(lib))
    compare(lib.get(device_x, x), np.cumsum(x))


def check_map(lib):
    for dtype, kernel in ((np.float32, map_.kernels.map_sigmoid_f32), (np.float64, map_.kernels.map_sigmoid_f64)):
        x = np.linspace(-8, 8, 5000).astype(dtype)
        device_x = lib.put(x)
        kernel(device_x, cover=5000, **lib.options)
        map_.synchronize(stream_of(lib))
        compare(lib.get(device_x, x), 1 / (1 + np.exp(-x.astype(np.float64))), 1e-6)


def check_numbers(lib):
    y = lib.put(np.zeros(8))
    launches.kernels.numbers(True, -128, 65535, 0.1, 2**40, -5, 1.5, -3.140625, y, cover=8, **lib.options)
    launches.synchronize(stream_of(lib))
    compare(lib.get(y, np.zeros(8)), [1, -128, 65535, 0.1, 2.0**40, -5, 1.5, -3.140625])


def check_cooperative(lib):
    counter, y = lib.put(np.zeros(4, np.uint32)), lib.put(np.zeros(100 * 256, np.uint32))
    launches.kernels.together(counter, y, grid=100, block=256, **lib.options)
    launches.synchronize(stream_of(lib))
    compare(lib.get(y, np.zeros(100 * 256, np.uint32)), 100)
    expect(ValueError, "kernel `together`: a cooperative launch", lambda: launches.kernels.together(counter, y, grid=1_000_000, **lib.options))


def check_shared(lib):
    for block in (64, 256, 1024):
        x = floats(4 * block)
        y = lib.put(np.zeros_like(x))
        launches.kernels.reversed(lib.put(x), y, block, grid=4, block=block, **lib.options)
        launches.synchronize(stream_of(lib))
        compare(lib.get(y, x), x.reshape(4, block)[:, ::-1].ravel())
    # More than 48 KiB, which a launch has to be allowed.
    x = floats(20_000)
    y = lib.put(np.zeros_like(x))
    launches.kernels.reversed(lib.put(x), y, 20_000, grid=1, block=256, **lib.options)
    launches.synchronize(stream_of(lib))


def check_panics(lib):
    x = floats(1000)
    x[777] = -2.5
    y = lib.put(np.zeros(1000, np.float32))
    device_x = lib.put(x)
    launches.kernels.roots(device_x, y, cover=1000, **lib.options)
    try:
        launches.synchronize(stream_of(lib))
    except launches.KernelPanic as panic:
        assert panic.message == "no root of -2.5 at  777, 0xff", panic.message
        assert (panic.kernel, panic.block, panic.thread) == ("roots", (3, 0, 0), (9, 0, 0)), panic
        assert panic.file.endswith("src/lib.rs") and panic.line > 1, panic
    else:
        raise AssertionError("no panic was raised")
    # The device is usable, and other elements are there.
    found = lib.get(y, x)
    keep = np.arange(1000) != 777
    compare(found[keep & (np.arange(1000) < 700)], np.sqrt(x[keep & (np.arange(1000) < 700)]), 1e-6)
    launches.kernels.touch_checked(1.0, device_x, lib.put(x[:10].copy()), y, cover=1000, **lib.options)
    expect(launches.KernelPanic, "index out of bounds: the len is 10 but the index is ", lambda: launches.synchronize())
    launches.kernels.constant_message(y, cover=1000, **lib.options)
    expect(launches.KernelPanic, "nothing is there", lambda: launches.synchronize(stream_of(lib)))
    # The next launch on the stream raises it, too.
    launches.kernels.constant_message(y, cover=1000, **lib.options)
    import time

    time.sleep(0.2)
    expect(launches.KernelPanic, "nothing is there", lambda: launches.kernels.constant_message(y, cover=1000, **lib.options))
    launches.kernels.roots(lib.put(np.abs(x)), y, cover=1000, **lib.options)
    launches.synchronize()
    compare(lib.get(y, x), np.sqrt(np.abs(x)), 1e-6)


def check_refusals(lib):
    x, y = lib.put(floats(100)), lib.put(floats(100))
    k, options = saxpy.kernels.saxpy, {"cover": 100, **lib.options}
    expect(ValueError, "`x` and `y` overlap in memory", lambda: k(1.0, x, x, **options))
    expect(TypeError, "expected an array in the memory of a GPU", lambda: k(1.0, np.zeros(100, np.float32), y, **options))
    expect(TypeError, "takes either `cover`", lambda: k(1.0, x, y, **lib.options))
    expect(TypeError, "`a` is 'x'", lambda: k("x", x, y, **options))
    expect(ValueError, "2048 threads along x, the device's limit is 1024", lambda: k(1.0, x, y, block=2048, **options))
    expect(ValueError, "the grid has", lambda: k(1.0, x, y, grid=1 << 31, block=1, **lib.options))
    if lib.name != "cuda.core":
        wrong = lib.put(np.zeros(100, np.float64))
        expect(TypeError, "`x` has elements of type f64; expected f32", lambda: k(1.0, wrong, y, **options))
        flat = lib.put(np.zeros((10, 10), np.float32))
        expect(ValueError, "`x` has 2 dimensions", lambda: k(1.0, flat, y, **options))
    if lib.name in ("cupy", "torch"):
        expect(ValueError, "`x` is not contiguous", lambda: k(1.0, x[::2], y, **options))
        overlapping = x[1:]
        expect(ValueError, "`x` and `y` overlap", lambda: k(1.0, x[:99], overlapping, **options))
    saxpy.synchronize()


def expect(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), f"{error}\n  expected: {text}"
    else:
        raise AssertionError(f"nothing was raised, expected: {text}")


def stream_of(lib):
    if "stream" in lib.options:
        return lib.options["stream"]
    if lib.name.startswith("torch"):
        return lib.torch.cuda.current_stream()
    return lib.cupy.cuda.get_current_stream()


def check_mixed():
    """A CuPy array and a tensor in one launch, on an explicit stream."""
    import cupy
    import torch

    x, y = cupy.asarray(floats(1000)), torch.zeros(1000, device="cuda")
    torch.cuda.synchronize()
    cupy.cuda.get_current_stream().synchronize()
    saxpy.kernels.saxpy(2.0, x, y, cover=1000, stream=torch.cuda.current_stream())
    saxpy.synchronize()
    compare(y.cpu().numpy(), 2 * cupy.asnumpy(x), 1e-6)
    with torch.cuda.stream(torch.cuda.Stream()):
        expect(ValueError, "current streams of cupy and torch differ", lambda: saxpy.kernels.saxpy(2.0, x, y, cover=1000))
    bf = torch.zeros(8, device="cuda", dtype=torch.bfloat16)
    expect(TypeError, "`x` has elements of type bf16; expected f32", lambda: saxpy.kernels.saxpy(2.0, bf, y, cover=8))


def check_threads():
    """Launches of several threads, each on a stream of its own, some with a panic."""
    import threading

    import cupy

    wrong = []

    def work(number):
        try:
            cupy.cuda.Device(0).use()
            stream = cupy.cuda.Stream(non_blocking=True)
            with stream:
                x = cupy.asarray(np.full(4096, number, np.float32))
                y = cupy.asarray(np.zeros(4096, np.float32))
                short = x[:10]
                for step in range(200):
                    saxpy.kernels.saxpy(1.0, x, y, cover=4096)
                    if step % 50 == 49:
                        saxpy.synchronize(stream)
                        saxpy.kernels.saxpy(0.0, short, y, cover=4096)
                        expect(saxpy.KernelPanic, "the len is 10", lambda: saxpy.synchronize(stream))
                compare(cupy.asnumpy(y)[:10], np.full(10, 200.0 * number, np.float32))
        except BaseException:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong, "\n".join(wrong)


def check_capture():
    """A launch that a stream captures, and replays."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    x, y = cupy.asarray(floats(1000)), cupy.asarray(np.zeros(1000, np.float32))
    cupy.cuda.Stream.null.synchronize()
    saxpy.load()
    with stream:
        stream.begin_capture()
        saxpy.kernels.saxpy(1.0, x, y, cover=1000)
        graph = stream.end_capture()
        for _ in range(5):
            graph.launch()
        saxpy.synchronize(stream)
    compare(cupy.asnumpy(y), 5 * cupy.asnumpy(x), 1e-5)


def run(name, function):
    try:
        function()
        print(f"ok      {name}", flush=True)
    except BaseException as error:
        failures.append(name)
        print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
        traceback.print_exc()


def main():
    checks = [value for name, value in globals().items() if name.startswith("check_")]
    alone = [check_mixed, check_threads, check_capture]
    for make in libraries.available():
        try:
            lib = make()
        except Exception as error:
            failures.append(make.name)
            print(f"FAILED  {make.name} cannot be set up: {type(error).__name__}: {error}")
            continue
        for check in checks:
            if check not in alone:
                run(f"{lib.name}: {check.__name__[6:]}", lambda: check(lib))
        if hasattr(lib, "close"):
            lib.close()
    for check in alone:
        if check is not check_mixed or "torch" in sys.modules:
            run(check.__name__[6:], check)
    print(f"{len(failures)} failed: {', '.join(failures)}" if failures else "PASS")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
