"""Arrays of each library with the same content: `put` makes one of a NumPy array, `get` copies it back."""

import numpy as np

try:
    import cuda.core as core
    if not hasattr(core, "Device"):
        raise ImportError
except ImportError:
    import cuda.core.experimental as core
from cuda.bindings import driver


def call(result):
    error, *values = result
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else tuple(values)


class Cupy:
    name = "cupy"

    def __init__(self):
        import cupy

        self.cupy = cupy
        self.options = {}

    def put(self, array):
        return self.cupy.asarray(array)

    def get(self, array, like):
        return self.cupy.asnumpy(array)


class CupyOnStream(Cupy):
    """On a stream of CuPy that is current."""

    name = "cupy, another stream"

    def __init__(self):
        super().__init__()
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self.stream.use()

    def close(self):
        self.cupy.cuda.Stream.null.use()


class Interface(Cupy):
    """Objects that have `__cuda_array_interface__` only."""

    name = "interface"

    class Array:
        def __init__(self, array):
            self.array = array

        @property
        def __cuda_array_interface__(self):
            return self.array.__cuda_array_interface__

    def __init__(self):
        super().__init__()
        self.options = {"stream": 0}

    def put(self, array):
        return self.Array(self.cupy.asarray(array))

    def get(self, array, like):
        return self.cupy.asnumpy(array.array)


class Dlpack(Interface):
    """Objects that have DLPack only."""

    name = "dlpack"

    class Array:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()


class Torch:
    name = "torch"

    def __init__(self):
        import torch

        self.torch = torch
        self.options = {}

    def put(self, array):
        return self.torch.from_numpy(array.copy()).cuda()

    def get(self, array, like):
        return array.cpu().numpy()


class TorchOnStream(Torch):
    name = "torch, another stream"

    def __init__(self):
        super().__init__()
        self.before = self.torch.cuda.current_stream()
        self.torch.cuda.set_stream(self.torch.cuda.Stream())

    def close(self):
        self.torch.cuda.set_stream(self.before)


class Core:
    """Buffers of cuda.core, on a stream of its own. What has more dimensions is a `StridedMemoryView`."""

    name = "cuda.core"

    def __init__(self):
        self.device = core.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.options = {"stream": self.stream}

    def put(self, array):
        buffer = self.device.allocate(array.nbytes, stream=self.stream)
        self.stream.sync()
        call((*driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes), None))
        return buffer if array.ndim == 1 else Shaped(buffer, array)

    def get(self, array, like):
        self.stream.sync()
        out = np.empty_like(like)
        buffer = array.buffer if isinstance(array, Shaped) else array
        call((*driver.cuMemcpyDtoH(out.ctypes.data, int(buffer.handle), out.nbytes), None))
        return out


class Shaped:
    """A buffer of cuda.core with a shape."""

    def __init__(self, buffer, like):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "data": (int(buffer.handle), False),
            "shape": like.shape,
            "typestr": like.dtype.str,
            "strides": None,
            "version": 3,
            "stream": None,
        }


def available():
    """The libraries of this machine, as functions that make their set-up."""
    found = [Cupy, CupyOnStream, Interface, Dlpack, Core]
    try:
        import torch

        if torch.cuda.is_available():
            found += [Torch, TorchOnStream]
        else:
            print("SKIPPED: torch sees no GPU")
    except ImportError:
        print("SKIPPED: torch is not installed")
    return found
