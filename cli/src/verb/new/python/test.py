"""Runs with unittest or pytest, after `pip install .` or `maturin develop`; tests of libraries that are missing are skipped."""

import unittest

import NAME


class Saxpy(unittest.TestCase):
    def test_numpy_on_the_cpu(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy")
        x, y = numpy.arange(1000, dtype=numpy.float32), numpy.ones(1000, dtype=numpy.float32)
        NAME.saxpy(2.0, x, y)
        self.assertTrue((y == 2.0 * x + 1.0).all())
        self.assertRaisesRegex(ValueError, "shares memory", NAME.saxpy, 2.0, y, y)
        self.assertRaises(RuntimeError, NAME.saxpy, 2.0, x.astype(numpy.float64), y)

    def test_pytorch_on_its_current_stream(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        if not torch.cuda.is_available():
            self.skipTest("no GPU")
        for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
            with torch.cuda.stream(stream):
                x = torch.rand(1 << 20, device="cuda")
                y = torch.ones_like(x)
                NAME.saxpy(2.0, x, y)
                expected = 2.0 * x + 1.0  # after it, on the same stream
                self.assertTrue(torch.allclose(y, expected))
        NAME.synchronize()

    def test_cupy_on_its_current_stream(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        with cupy.cuda.Stream(non_blocking=True):
            x = cupy.random.random(1 << 20, dtype=cupy.float32)
            y = cupy.ones_like(x)
            NAME.saxpy(2.0, x, y)
            self.assertTrue(cupy.allclose(y, 2.0 * x + 1.0))


if __name__ == "__main__":
    unittest.main()
