"""Arrays and streams of other libraries: CuPy arrays, PyTorch tensors, buffers and views of cuda.core, and whatever has
`__cuda_array_interface__` or DLPack. Each is read as an address with a type, a shape and a device."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Protocol, Tuple, Union


class SupportsCudaArray(Protocol):
    """An array that describes itself, as those of CuPy, PyTorch and Numba do."""

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]: ...


class SupportsDLPack(Protocol):
    """An array with DLPack, as those of CuPy, PyTorch, JAX and the buffers of cuda.core are."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


class SupportsCudaStream(Protocol):
    """A stream, as those of cuda.core and of newer CuPy and PyTorch are."""

    def __cuda_stream__(self) -> Tuple[int, int]: ...


#: An array in the memory of a GPU.
Array = Union[SupportsCudaArray, SupportsDLPack]
#: A stream: an object of CuPy, PyTorch or cuda.core, or its handle.
Stream = Union[int, SupportsCudaStream, Any]


class View(NamedTuple):
    """What an argument says of itself."""

    library: str
    address: int
    #: As Rust calls it; empty for bytes without a type.
    dtype: str
    shape: Tuple[int, ...]
    contiguous: bool
    #: None if the array does not say.
    device: Optional[int]
    read_only: bool = False
    #: A stream whose work on the array has to end first.
    after: Optional[int] = None
    #: What has to live until the launch.
    keep: Any = None


_KINDS = {"f": "f", "i": "i", "u": "u"}


def _dtype(typestr: str) -> str:
    """`f32` for `<f4`; the text itself for types that Rust does not have."""
    order, kind, size = typestr[:1], typestr[1:2], typestr[2:]
    if kind == "b" and size == "1":
        return "bool"
    if order == ">" or kind not in _KINDS or not size.isdigit():
        return typestr
    return f"{_KINDS[kind]}{8 * int(size)}"


def _is_contiguous(shape: Tuple[int, ...], strides: Optional[Tuple[int, ...]], unit: int) -> bool:
    """Whether elements follow each other in C order; strides are in units of that many bytes or elements."""
    if strides is None or 0 in shape:
        return True
    expected = unit
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _of_cupy(array: Any) -> View:
    data = array.data
    return View("cupy", data.ptr, _dtype(array.dtype.str), array.shape, array.flags.c_contiguous, data.device_id)


#: The names in PyTorch of the types of Rust.
_TORCH_NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "bool": "bool"}
_TORCH_NAMES.update({f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}" for bits in (8, 16, 32, 64) for sign in "iu"})
#: The types of Rust by those of PyTorch.
_TORCH: Dict[Any, str] = {}


def _of_torch(tensor: Any) -> Optional[View]:
    if tensor.device.type != "cuda":
        return None
    if tensor.requires_grad:
        raise TypeError("is a tensor that requires a gradient, which the kernel would bypass: pass `tensor.detach()`")
    if not _TORCH:
        torch = sys.modules["torch"]
        # Older versions lack some of them.
        named = {dtype: getattr(torch, name, None) for dtype, name in _TORCH_NAMES.items()}
        _TORCH.update({found: dtype for dtype, found in named.items() if found is not None})
    dtype = _TORCH.get(tensor.dtype) or str(tensor.dtype)
    contiguous = tensor.is_contiguous() and not tensor.is_conj()
    return View("torch", tensor.data_ptr(), dtype, tuple(tensor.shape), contiguous, tensor.get_device())


def _of_buffer(buffer: Any) -> Optional[View]:
    """A `cuda.core.Buffer`: bytes."""
    if not buffer.is_device_accessible:
        return None
    device = buffer.device_id
    return View("cuda.core", int(buffer.handle), "", (int(buffer.size),), True, device if device >= 0 else None)


def _of_strided_view(view: Any) -> Optional[View]:
    """A `cuda.core.utils.StridedMemoryView`."""
    if not view.is_device_accessible or view.dtype is None:
        return None
    shape, strides = tuple(view.shape), view.strides
    contiguous = _is_contiguous(shape, None if strides is None else tuple(strides), 1)
    return View("cuda.core", view.ptr, _dtype(view.dtype.str), shape, contiguous, view.device_id, view.readonly)


def _of_interface(array: Any) -> View:
    interface = array.__cuda_array_interface__
    address, read_only = interface["data"]
    shape, strides, dtype = tuple(interface["shape"]), interface.get("strides"), interface["typestr"]
    size = int(dtype[2:]) if dtype[2:].isdigit() else 1
    contiguous = _is_contiguous(shape, None if strides is None else tuple(strides), size)
    if interface.get("mask") is not None:
        raise TypeError("has a mask, which a kernel would ignore")
    after = interface.get("stream")
    return View("", address, _dtype(dtype), shape, contiguous, None, bool(read_only), after)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# Device types and codes of DLPack.
_CUDA, _CUDA_MANAGED = 2, 13
_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "bool"}

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _of_dlpack(array: Any, stream: int) -> Optional[View]:
    """The tensor of an array with DLPack, which becomes usable on `stream`."""
    kind, _ = array.__dlpack_device__()
    if int(kind) not in (_CUDA, _CUDA_MANAGED):
        return None
    # DLPack calls the legacy default stream 1.
    capsule = array.__dlpack__(stream=stream or 1)
    tensor = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else None
    name = _CODES.get(tensor.code, f"DLPack type {tensor.code} of ")
    dtype = "bool" if name == "bool" else f"{name}{tensor.bits}"
    if tensor.lanes != 1:
        dtype = f"{dtype}x{tensor.lanes}"
    address = (tensor.data or 0) + tensor.byte_offset
    contiguous = _is_contiguous(shape, strides, 1)
    return View("", address, dtype, shape, contiguous, tensor.device_id, keep=capsule)


Reader = Callable[[Any], Optional[View]]
#: The reader of each type that has been seen; `None` for one that is read by DLPack.
_READERS: Dict[type, Optional[Reader]] = {}


def _find_reader(kind: type) -> Optional[Reader]:
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None and issubclass(kind, cupy.ndarray):
        return _of_cupy
    if torch is not None and issubclass(kind, torch.Tensor):
        return _of_torch
    core = any(base.__module__.startswith("cuda.core") for base in kind.__mro__)
    if core and hasattr(kind, "handle") and hasattr(kind, "size"):
        return _of_buffer
    if core and hasattr(kind, "ptr") and hasattr(kind, "shape"):
        return _of_strided_view
    # A property that raises (a tensor of another device) counts as none, as `hasattr` has it.
    return _of_interface if hasattr(kind, "__cuda_array_interface__") else None


def view_of(array: Any, stream: Optional[int]) -> Optional[View]:
    """What an argument says of itself; None if it is no array of a GPU. `stream` is that of the launch, if it is known."""
    kind = type(array)
    if kind in _READERS:
        reader = _READERS[kind]
    else:
        reader = _READERS[kind] = _find_reader(kind)
    if reader is not None:
        return reader(array)
    if hasattr(array, "__cuda_array_interface__"):
        return _of_interface(array)
    if not hasattr(array, "__dlpack__"):
        return None
    if stream is None:
        raise TypeError(f"is a {kind.__name__}, whose library has no current stream: pass `stream=`")
    return _of_dlpack(array, stream)


def cupy_stream() -> int:
    """CuPy's current stream."""
    return sys.modules["cupy"].cuda.get_current_stream().ptr  # type: ignore[no-any-return]


def torch_stream(device: Optional[int]) -> int:
    """PyTorch's current stream of a device."""
    return sys.modules["torch"].cuda.current_stream(device).cuda_stream  # type: ignore[no-any-return]


def short_path_of_cupy(dtypes: Dict[str, str]) -> Dict[str, Any]:
    """What the short path of a launch function compares CuPy arrays with, for types of Rust and of arrays."""
    cupy: Any = sys.modules["cupy"]
    if "bf16" in dtypes or not hasattr(cupy.ndarray, "_c_contiguous"):
        return {}
    found = {f"cupy_{rust}": cupy.dtype(_typestr(dtype)) for rust, dtype in dtypes.items()}
    return {**found, "cupy_stream": cupy.cuda.get_current_stream}


def short_path_of_torch(dtypes: Dict[str, str]) -> Dict[str, Any]:
    """The same for tensors."""
    torch: Any = sys.modules["torch"]
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    found = {f"torch_{rust}": getattr(torch, _TORCH_NAMES[dtype]) for rust, dtype in dtypes.items()}
    return {**found, "TENSOR": torch.Tensor, "torch_stream": raw or torch_stream}


def short_path_of_cuda_core(given: Tuple[Any, ...]) -> Dict[str, Any]:
    """The same for buffers of cuda.core; none for its views."""
    kinds = {type(array) for array in given}
    return {"BUFFER": kinds.pop()} if all(_READERS.get(kind) is _of_buffer for kind in kinds) and len(kinds) == 1 else {}


def _typestr(dtype: str) -> str:
    """`<f4` for `f32`."""
    if dtype == "bool":
        return "|b1"
    size = int(dtype[1:]) // 8
    return f"{'|' if size == 1 else '<'}{dtype[0]}{size}"


def current_stream(view: View) -> Optional[int]:
    """The current stream of the library that an array is of."""
    if view.library == "cupy":
        return cupy_stream()
    if view.library == "torch":
        return torch_stream(view.device)
    return None


def stream_handle(stream: Any) -> int:
    """The handle of a stream."""
    try:
        version, handle = stream.__cuda_stream__()
    except (AttributeError, TypeError):
        return _handle_of_others(stream)
    if version != 0:
        raise TypeError(f"`stream` has version {version} of the CUDA stream protocol; expected 0")
    return int(handle)


def _handle_of_others(stream: Any) -> int:
    """The handle of what has no such method."""
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream < 0:
            raise ValueError(f"`stream` is {stream}; a handle is an address, or 0, 1 or 2 for a default stream")
        return stream
    pair = getattr(stream, "__cuda_stream__", None)
    if isinstance(pair, tuple) and len(pair) == 2 and pair[0] == 0:
        return int(pair[1])
    for name in ("ptr", "cuda_stream"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise TypeError(
        f"`stream` is a {type(stream).__name__}; expected a stream of CuPy, PyTorch or cuda.core, an object with "
        "`__cuda_stream__`, or a handle"
    )
