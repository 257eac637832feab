"""A driver, arrays and libraries for tests of exported packages on machines without a GPU. Device memory is host memory."""

import ctypes
import struct
import sys
import types


class Launch:
    """A launch that the driver took."""

    def __init__(self, function, buffer, params, sizes):
        config = struct.unpack_from("<7I4xQQI4x", buffer)
        self.function = function
        self.grid, self.block, self.shared = config[:3], config[3:6], config[6]
        self.stream, (attributes, count) = config[7], config[8:]
        self.cooperative = count == 1 and struct.unpack("<I4xI", ctypes.string_at(attributes, 12)) == (2, 1)
        self.params = [ctypes.string_at(params[number], size) for number, size in enumerate(sizes)]

    def values(self, codes):
        """The parameters as numbers, by the codes of `struct`."""
        return [struct.unpack("<" + code, data)[0] for code, data in zip(codes, self.params)]


class Driver:
    """What `_ferrogrid.driver.Driver` does."""

    def __init__(self, error, devices=1, capability=(9, 0)):
        self.error_type, self.devices, self.capability = error, devices, capability
        self.launches, self.loaded, self.calls, self.codes = [], [], [], []
        self.sizes = {}  # by entry point
        self.kernels = {}
        self.current = 0
        self.registers_limit = 1024
        self.of_stream = {}
        self.on_launch = lambda launch: None
        self.memory = []

    def error(self, call, code):
        return self.error_type(call, code, f"CUDA_ERROR_{code}")

    def launch(self, buffer, function, params, extra):
        assert extra is None
        entry = self.kernels[function.value]
        if self.codes:
            code = self.codes.pop(0)
            if code:
                return code
        launch = Launch(entry, buffer, params, self.sizes.get(entry, []))
        self.launches.append(launch)
        self.on_launch(launch)
        return 0

    def device_count(self):
        return self.devices

    def device_name(self, device):
        return f"GPU {device}"

    def attribute(self, device, attribute):
        major, minor = self.capability
        known = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 0x7FFFFFFF, 6: 65535, 7: 65535, 16: 132, 75: major, 76: minor, 97: 232448}
        return known[attribute]

    def bind(self, device):
        self.calls.append(("bind", device))

    def within(self, device):
        return self

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None

    def current_device(self):
        return self.current

    def stream_device(self, stream):
        return self.of_stream.get(stream, 0)

    def load(self, image):
        self.loaded.append(image)
        return len(self.loaded)

    def kernel(self, library, entry):
        handle = 1000 + len(self.kernels)
        self.kernels[handle] = entry
        return handle

    def kernel_attribute(self, kernel, device, attribute):
        return self.registers_limit

    def allow_shared(self, kernel, device, size):
        self.calls.append(("allow_shared", self.kernels[kernel], size))

    def allocate_mapped(self, size):
        self.memory.append(ctypes.create_string_buffer(size))
        address = ctypes.addressof(self.memory[-1])
        return address, address

    def allocate_zeros(self, size):
        return self.allocate_mapped(size)[0]

    def read(self, address, size):
        return ctypes.string_at(address, size)

    def synchronize_stream(self, stream):
        self.calls.append(("synchronize", stream))

    def synchronize_device(self):
        self.calls.append(("synchronize", None))

    def wait_for(self, stream, earlier):
        self.calls.append(("wait_for", stream, earlier))


class Array:
    """An array with `__cuda_array_interface__`."""

    def __init__(self, address, shape, typestr="<f4", strides=None, read_only=False, stream=None):
        self.interface = {"data": (address, read_only), "shape": shape, "typestr": typestr, "strides": strides, "version": 3}
        self.interface["stream"] = stream

    @property
    def __cuda_array_interface__(self):
        return self.interface


class _Flags:
    def __init__(self, c_contiguous):
        self.c_contiguous = c_contiguous


class DType:
    """A `numpy.dtype`, of which there is one of each."""

    known = {}

    def __new__(cls, text):
        if text not in cls.known:
            cls.known[text] = object.__new__(cls)
            cls.known[text].str = text
        return cls.known[text]


class CupyArray:
    """A `cupy.ndarray`, with the attributes that launches read."""

    reads = 0

    def __init__(self, address, shape, dtype="<f4", contiguous=True, device=0):
        self.data = types.SimpleNamespace(ptr=address, device_id=device)
        self.shape, self.dtype, self._c_contiguous = shape, DType(dtype), contiguous
        self.ndim, self.size = len(shape), 1
        for extent in shape:
            self.size *= extent

    @property
    def flags(self):
        CupyArray.reads += 1  # Only the long path asks for it.
        return _Flags(self._c_contiguous)


CupyArray.__module__ = "cupy"


def install_cupy(stream):
    """A module `cupy` whose current stream is `stream`."""
    cupy = types.ModuleType("cupy")
    cupy.ndarray, cupy.dtype = CupyArray, DType
    CupyArray._c_contiguous = True
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=stream))
    sys.modules["cupy"] = cupy


class Tensor:
    """A `torch.Tensor`."""

    requires_grad = False
    reads = 0

    def __init__(self, address, shape, dtype, contiguous=True, device=0, kind="cuda"):
        self.address, self.shape, self.dtype, self.contiguous = address, shape, sys.intern(dtype), contiguous
        self.number, self.kind, self.is_cuda, self.ndim = device, kind, kind == "cuda", len(shape)

    @property
    def device(self):
        Tensor.reads += 1  # Only the long path asks for it.
        return types.SimpleNamespace(type=self.kind)

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def data_ptr(self):
        return self.address

    def is_contiguous(self):
        return self.contiguous

    def is_conj(self):
        return False

    def get_device(self):
        return self.number


Tensor.__module__ = "torch"


def install_torch(stream):
    """A module `torch` whose current stream is `stream`."""
    torch = types.ModuleType("torch")
    torch.Tensor = Tensor
    for name in ("float32", "bfloat16", "uint8", "int64"):
        setattr(torch, name, sys.intern(f"torch.{name}"))
    current = lambda device: types.SimpleNamespace(cuda_stream=stream)
    torch.cuda = types.SimpleNamespace(current_stream=current)
    sys.modules["torch"] = torch


class Buffer:
    """A `cuda.core.Buffer`."""

    handle, size, reads = None, None, 0

    def __init__(self, address, size, is_device_accessible=True):
        self.handle, self.size, self.is_device_accessible = address, size, is_device_accessible

    @property
    def device_id(self):
        Buffer.reads += 1  # Only the long path asks for it.
        return 0


Buffer.__module__ = "cuda.core._memory"


class StridedMemoryView:
    """A `cuda.core.utils.StridedMemoryView`; its strides count elements."""

    ptr, shape = None, None

    def __init__(self, address, shape, typestr="<f4", strides=None, readonly=False, is_device_accessible=True):
        self.ptr, self.shape, self.strides, self.dtype = address, shape, strides, DType(typestr) if typestr else None
        self.device_id, self.readonly, self.is_device_accessible = 0, readonly, is_device_accessible


StridedMemoryView.__module__ = "cuda.core._memoryview"


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class DlpackArray:
    """An array that has DLPack only."""

    def __init__(self, address, shape, code=2, bits=32, strides=None, offset=0, kind=2):
        self.kind, self.streams = kind, []
        extents = (ctypes.c_int64 * len(shape))(*shape)
        steps = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        device = (ctypes.c_int32 * 2)(kind, 0)
        self.tensor = _DLTensor(address, device, len(shape), code, bits, 1, extents, steps, offset, None, None)

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class CudaStream:
    """A stream with the protocol of cuda.core."""

    def __init__(self, handle, version=0):
        self.pair = (version, handle)

    def __cuda_stream__(self):
        return self.pair


def panic(record, kind, first, second, text, words=(), line=12):
    """Writes a panic into the record at an address; the file is a text that must live on."""
    file = text.encode()
    keep = ctypes.create_string_buffer(file, len(file))
    alarm = struct.unpack("<Q", ctypes.string_at(record + 72, 8))[0]
    head = (2, kind, 3, 0, 0, 7, 1, 0, line, 9, ctypes.addressof(keep), len(file), first, second, alarm)
    data = struct.pack("<10I5Q", *head) + struct.pack(f"<{len(words)}Q", *words)
    ctypes.memmove(record, data, len(data))
    return keep
