"""The exported package with a fake driver, for each test anew."""

import sys
import unittest

import fake


def arrays(count, length=1000, spacing=1 << 20):
    """Addresses of arrays that do not overlap."""
    return [(1 << 40) + number * spacing for number in range(count)]


class Exported(unittest.TestCase):
    devices = 1
    capability = (9, 0)

    def setUp(self):
        for name in [name for name in sys.modules if name.split(".")[0] in ("my_app", "cupy", "torch")]:
            del sys.modules[name]
        fake.CupyArray.reads = fake.Tensor.reads = fake.Buffer.reads = 0
        import my_app
        from my_app._ferrogrid import driver, panic

        self.app, self.kernels = my_app, my_app.kernels
        self.driver = fake.Driver(driver.CudaError, self.devices, self.capability)
        driver._loaded = self.driver
        # What the process reports at its end is for `panics.py`.
        panic.atexit = type("Atexit", (), {"register": staticmethod(lambda function: None)})

    def sizes(self, name, *sizes):
        """The sizes of the parameters of a kernel, for the driver to read."""
        for spec, _ in self.kernels._module._specs:
            if spec.name == name:
                self.driver.sizes[spec.entry] = sizes
                return spec.entry
        raise KeyError(name)

    def refused(self, kind, *parts):
        """Expects an exception whose message has all parts."""
        return _Refused(self, kind, parts)


class _Refused:
    def __init__(self, test, kind, parts):
        self.test, self.kind, self.parts = test, kind, parts

    def __enter__(self):
        self.before = len(self.test.driver.launches)

    def __exit__(self, kind, error, traceback):
        self.test.assertIsNotNone(error, f"nothing was raised, expected {self.parts}")
        self.test.assertIs(type(error), self.kind, error)
        for part in self.parts:
            self.test.assertIn(part, str(error))
        self.test.assertEqual(len(self.test.driver.launches), self.before, "nothing was launched")
        return True
