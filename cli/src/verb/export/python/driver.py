"""The CUDA driver, called by ctypes: what launches and panics need, and the errors of its calls."""

from __future__ import annotations

import ctypes
import sys
import threading
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Optional, Tuple

# Attributes of devices (`CUdevice_attribute`) and of kernels (`CUfunction_attribute`).
MAX_THREADS_PER_BLOCK = 1
MAX_BLOCK_DIM = (2, 3, 4)
MAX_GRID_DIM = (5, 6, 7)
MULTIPROCESSORS = 16
MAJOR, MINOR = 75, 76
MAX_SHARED_OPTIN = 97
KERNEL_MAX_THREADS = 0
KERNEL_DYNAMIC_SHARED = 8

# Results (`CUresult`).
INVALID_VALUE = 1
DEINITIALIZED = 4
INVALID_CONTEXT = 201
OUT_OF_RESOURCES = 701
COOPERATIVE_TOO_LARGE = 720

PORTABLE_AND_MAPPED = 3
DISABLE_TIMING = 2

#: Streams without a context of their own: the default ones.
DEFAULT_STREAMS = (0, 1, 2)


class CudaError(RuntimeError):
    """A call of the CUDA driver failed. `code` is its `CUresult`."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call} failed: {text}")
        self.call = call
        self.code = code


class Driver:
    """The driver of this process, initialised. Handles and addresses are integers."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._contexts: dict[int, int] = {}
        # Called by each launch, with addresses that live as long as the slot which holds them.
        self.launch = library.cuLaunchKernelEx
        self._call("cuInit", c_uint(0))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise self.error(name, code)

    def error(self, call: str, code: int) -> CudaError:
        """The error of a call with this result."""
        name, text = c_char_p(), c_char_p()
        self._library.cuGetErrorName(c_int(code), byref(name))
        self._library.cuGetErrorString(c_int(code), byref(text))
        said = [part.value.decode() for part in (name, text) if part.value]
        return CudaError(call, code, ", ".join(said) or f"error {code}")

    def device_count(self) -> int:
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        return count.value

    def device_name(self, device: int) -> str:
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, c_int(256), c_int(device))
        return name.value.decode(errors="replace")

    def attribute(self, device: int, attribute: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), c_int(attribute), c_int(device))
        return value.value

    def _context(self, device: int) -> int:
        """The primary context of a device. It is retained for the rest of the process, as records of panics are."""
        known = self._contexts.get(device)
        if known is None:
            context = c_void_p()
            self._call("cuDevicePrimaryCtxRetain", byref(context), c_int(device))
            known = self._contexts[device] = context.value or 0
        return known

    def bind(self, device: int) -> None:
        """Makes the device's primary context current, in a thread that has none."""
        self._call("cuCtxSetCurrent", c_void_p(self._context(device)))

    def within(self, device: int) -> _Within:
        """A `with` statement in which the device's primary context is current."""
        return _Within(self, self._context(device))

    def current_device(self) -> Optional[int]:
        """The device of the thread's context; None if it has none."""
        device = c_int()
        code = self._library.cuCtxGetDevice(byref(device))
        if code == INVALID_CONTEXT:
            return None
        if code:
            raise self.error("cuCtxGetDevice", code)
        return device.value

    def stream_device(self, stream: int) -> int:
        """The device of a stream that is not a default one."""
        context = c_void_p()
        self._call("cuStreamGetCtx", c_void_p(stream), byref(context))
        with _Within(self, context.value or 0):
            return self.current_device() or 0

    def load(self, image: bytes) -> int:
        """A library (`CUlibrary`) of PTX or machine code. PTX ends with a zero byte."""
        library, log = c_void_p(), ctypes.create_string_buffer(8192)
        options = (c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size in bytes
        values = (c_void_p * 2)(ctypes.addressof(log), 8192)
        code = self._library.cuLibraryLoadData(
            byref(library), image, options, values, c_uint(2), None, None, c_uint(0)
        )
        if code:
            error = self.error("cuLibraryLoadData", code)
            said = log.value.decode(errors="replace").strip()
            raise CudaError(error.call, code, f"{error}\n{said}") if said else error
        return library.value or 0

    def kernel(self, library: int, entry: str) -> int:
        """An entry point (`CUkernel`) of a library."""
        kernel = c_void_p()
        self._call("cuLibraryGetKernel", byref(kernel), c_void_p(library), entry.encode())
        return kernel.value or 0

    def kernel_attribute(self, kernel: int, device: int, attribute: int) -> int:
        value = c_int()
        self._call("cuKernelGetAttribute", byref(value), c_int(attribute), c_void_p(kernel), c_int(device))
        return value.value

    def allow_shared(self, kernel: int, device: int, size: int) -> None:
        """Lets launches have up to `size` bytes of dynamic shared memory."""
        attribute = c_int(KERNEL_DYNAMIC_SHARED)
        self._call("cuKernelSetAttribute", attribute, c_int(size), c_void_p(kernel), c_int(device))

    def allocate_mapped(self, size: int) -> Tuple[int, int]:
        """Host memory of zeros that the current device can write to, for the rest of the process: its two addresses."""
        host, device = c_void_p(), c_uint64()
        self._call("cuMemHostAlloc", byref(host), c_size_t(size), c_uint(PORTABLE_AND_MAPPED))
        address = host.value or 0
        ctypes.memset(address, 0, size)
        self._call("cuMemHostGetDevicePointer_v2", byref(device), host, c_uint(0))
        return address, device.value

    def allocate_zeros(self, size: int) -> int:
        """Zeros in the current device's memory, for the rest of the process."""
        device = c_uint64()
        self._call("cuMemAlloc_v2", byref(device), c_size_t(size))
        self._call("cuMemcpyHtoD_v2", device, bytes(size), c_size_t(size))
        return device.value

    def read(self, address: int, size: int) -> Optional[bytes]:
        """Memory of the current device; None if it cannot be read."""
        data = ctypes.create_string_buffer(size)
        code = self._library.cuMemcpyDtoH_v2(data, c_uint64(address), c_size_t(size))
        return None if code else data.raw

    def synchronize_stream(self, stream: int) -> None:
        self._call("cuStreamSynchronize", c_void_p(stream))

    def synchronize_device(self) -> None:
        """Waits for all work of the current context."""
        self._call("cuCtxSynchronize")

    def wait_for(self, stream: int, earlier: int) -> None:
        """Lets `stream` wait for the work that `earlier` has now."""
        event = c_void_p()
        self._call("cuEventCreate", byref(event), c_uint(DISABLE_TIMING))
        try:
            self._call("cuEventRecord", event, c_void_p(earlier))
            self._call("cuStreamWaitEvent", c_void_p(stream), event, c_uint(0))
        finally:
            self._call("cuEventDestroy_v2", event)


class _Within:
    """Makes a context current for a `with` statement."""

    def __init__(self, driver: Driver, context: int) -> None:
        self._driver = driver
        self._context = context

    def __enter__(self) -> None:
        self._driver._call("cuCtxPushCurrent_v2", c_void_p(self._context))

    def __exit__(self, *_: Any) -> None:
        self._driver._call("cuCtxPopCurrent_v2", byref(c_void_p()))


_loaded: Optional[Driver] = None
_loading = threading.Lock()


def driver() -> Driver:
    """The driver, loaded by the first call, so that packages can be imported without a GPU."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = Driver(_library())
    return _loaded


def _library() -> Any:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
        library.cuLibraryLoadData, library.cuLaunchKernelEx
    except OSError as error:
        raise CudaError("loading the driver", 0, f"{name} cannot be loaded ({error}): is an NVIDIA driver installed?")
    except AttributeError as error:
        raise CudaError("loading the driver", 0, f"{name} is older than CUDA 12.0 ({error})")
    return library
