"""Launches: the function of a kernel, which checks its arguments and calls the driver.

The function is made as text for the kernel's parameters, as `dataclasses` make theirs: a launch takes a few microseconds, and
loops over parameters would double that. CuPy arrays on a machine with one GPU take its short path, which only asks whether
all is well; `Call.read` reads everything else, and explains what is wrong."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

from . import arrays
from .driver import (
    COOPERATIVE_TOO_LARGE,
    DEFAULT_STREAMS,
    INVALID_CONTEXT,
    INVALID_VALUE,
    KERNEL_MAX_THREADS,
    MULTIPROCESSORS,
    OUT_OF_RESOURCES,
    driver,
)
from .module import In, Limits, Loaded, Out, Shared, Spec, Value
from .panic import FREE, Place, Record

#: With this variable of CUDA, each launch waits for its kernel, so that a panic is raised where it was launched.
BLOCKING = os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")

U32 = 0xFFFF_FFFF
# By the type in Rust: the code of `struct`, and the size in bytes.
NUMBERS = {
    "bool": ("?", 1), "u8": ("B", 1), "i8": ("b", 1), "u16": ("H", 2), "i16": ("h", 2), "u32": ("I", 4), "i32": ("i", 4),
    "u64": ("Q", 8), "i64": ("q", 8), "usize": ("Q", 8), "isize": ("q", 8), "f16": ("e", 2), "bf16": ("H", 2),
    "f32": ("f", 4), "f64": ("d", 8),
}  # fmt: skip
#: What arrays call types of Rust that depend on the machine.
DTYPES = {"usize": "u64", "isize": "i64"}
# CUlaunchConfig: the blocks along x, the rest of the shape, the stream, and the attributes.
CONFIG = struct.Struct("<I28sQ16s")
# The rest of the shape: blocks along y and z, the threads of a block, and the bytes of shared memory.
SHAPE = struct.Struct("<6I4x")
ATTRIBUTES = struct.Struct("<QI4x")
AXES = "xyz"


def default_block(spec: Spec) -> Tuple[int, int, int]:
    """The shape of a block if the launch does not choose it: as `Grid::cover` of Ferrogrid."""
    if spec.block is not None:
        return spec.block
    block = [[256, 1, 1], [32, 8, 1], [8, 8, 8]][spec.rank - 1]
    while spec.max_threads is not None and block[0] * block[1] * block[2] > max(spec.max_threads, 1):
        last = max(axis for axis in range(3) if block[axis] > 1 or axis == 0)
        block[last] //= 2
    return block[0], block[1], block[2]


class Layout:
    """Where the parameters of a launch are in its buffer: behind `CUlaunchConfig`, each at its alignment."""

    def __init__(self, spec: Spec) -> None:
        self._offset = CONFIG.size
        self.format = CONFIG.format
        self.offsets: List[int] = []
        for parameter in spec.parameters:
            if isinstance(parameter, Value):
                self._add(*NUMBERS[parameter.dtype])
            elif isinstance(parameter, Shared):
                self._add("Q", 8)
                self._add("Q", 8)
            else:
                self._add("Q", 8)
                for _ in range(parameter.rank):
                    self._add(*(("Q", 8) if spec.wide else ("I", 4)))
        if spec.may_panic:
            self._add("Q", 8)
        self.size = self._offset

    def _add(self, code: str, size: int) -> None:
        padding = -self._offset % size
        self.format += f"{padding}x{code}" if padding else code
        self.offsets.append(self._offset + padding)
        self._offset += padding + size

    def slot(self) -> Tuple[Any, Any]:
        """Memory for one launch at a time: the configuration with the parameters, and the addresses of these."""
        buffer = ctypes.create_string_buffer(self.size)
        start = ctypes.addressof(buffer)
        return buffer, (ctypes.c_void_p * max(1, len(self.offsets)))(*[start + offset for offset in self.offsets])


class Call:
    """What the launches of a kernel share, and what they rarely need."""

    def __init__(self, spec: Spec, load: Callable[[int], Loaded]) -> None:
        self.spec = spec
        self.load = load
        self.block = default_block(spec)
        self.arrays = [it for it in spec.parameters if isinstance(it, (In, Out))]
        self.namespace: Dict[str, Any] = {}
        self._attribute = ctypes.create_string_buffer(72)
        struct.pack_into("<I4xI", self._attribute, 0, 2, 1)  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        address, count = (ctypes.addressof(self._attribute), 1) if spec.cooperative else (0, 0)
        self.attributes = ATTRIBUTES.pack(address, count)

    def refused(self, what: str, kind: type = ValueError) -> NoReturn:
        raise kind(f"kernel `{self.spec.name}`: {what}")

    def read(self, given: Tuple[Any, ...], stream: Any) -> Tuple[Any, ...]:
        """The kernel on the device of its arrays, the stream, what has to live until the launch, and the address and the
        extents, x first, of each array."""
        handle = None if stream is None else self.handle(stream)
        views: List[Optional[arrays.View]] = [None] * len(given)
        if handle is None:
            handle = self._current_stream(given, views)
        for at, array in enumerate(given):
            if views[at] is None:
                views[at] = self._view(at, array, handle)
        numbers: List[int] = []
        for parameter, view in zip(self.arrays, views):
            numbers += self._numbers(parameter, view)  # type: ignore[arg-type]
        device = self._device(views, handle)
        loaded = self.load(device)
        for view in views:
            if view is not None and view.after is not None and view.after != handle:
                driver().wait_for(handle, view.after)
        if driver().device_count() == 1:
            self._enable_short_path(given, views, loaded)
        return (loaded, handle, views, *numbers)

    def handle(self, stream: Any) -> int:
        try:
            return arrays.stream_handle(stream)
        except (TypeError, ValueError) as error:
            self.refused(str(error), type(error))

    def _view(self, at: int, array: Any, handle: Optional[int]) -> arrays.View:
        name = self.arrays[at].name
        try:
            view = arrays.view_of(array, handle)
        except TypeError as error:
            self.refused(f"`{name}` {error}", TypeError)
        if view is None:
            kind = f"{type(array).__module__}.{type(array).__qualname__}"
            self.refused(f"`{name}` is a {kind}; expected an array in the memory of a GPU", TypeError)
        return view

    def _current_stream(self, given: Tuple[Any, ...], views: List[Optional[arrays.View]]) -> int:
        """The current stream of the library whose arrays these are."""
        found: Dict[int, str] = {}
        for at, array in enumerate(given):
            if type(array).__module__.split(".")[0] in ("cupy", "torch"):
                view = views[at] = self._view(at, array, None)
                current = arrays.current_stream(view)
                if current is not None:
                    found.setdefault(current, view.library)
        if len(found) > 1:
            libraries = " and ".join(found.values())
            self.refused(f"the current streams of {libraries} differ: pass `stream=`")
        if not found:
            self.refused("no argument is of a library with a current stream: pass `stream=`", TypeError)
        return next(iter(found))

    def _numbers(self, parameter: Any, view: arrays.View) -> List[int]:
        """The address and the extents of an argument, x first."""
        name, dtype = parameter.name, DTYPES.get(parameter.dtype, parameter.dtype)
        if isinstance(parameter, Out) or parameter.atomic:
            if view.read_only:
                self.refused(f"`{name}` is read-only, and the kernel writes it")
        shape = self._typed(parameter, view) if not view.dtype else view.shape
        if view.dtype and view.dtype != dtype:
            self.refused(f"`{name}` has elements of type {view.dtype}; expected {dtype}", TypeError)
        rank = parameter.rank + (1 if parameter.array else 0)
        if len(shape) != rank:
            advice = ": pass `.ravel()` of a contiguous array" if rank == 1 and len(shape) > 1 else ""
            self.refused(f"`{name}` has {len(shape)} dimensions, its shape is {shape}; expected {rank}{advice}")
        if parameter.array and shape[-1] != parameter.array:
            self.refused(f"`{name}` has shape {shape}; its last extent is {shape[-1]}, expected {parameter.array}")
        if not view.contiguous:
            self.refused(f"`{name}` is not contiguous in C order: pass a contiguous copy")
        if view.address % parameter.align:
            self.refused(f"`{name}` begins at {view.address:#x}; expected a multiple of {parameter.align} bytes")
        extents = shape[: parameter.rank]
        longest = max([functools.reduce(lambda a, b: a * b, extents, 1), *extents])
        if not self.spec.wide and longest > U32:
            self.too_long(name, longest)
        return [view.address, *reversed(extents)]

    def too_long(self, name: str, length: int) -> NoReturn:
        self.refused(f"`{name}` has {length} elements, and the kernel indexes at most {U32}: declare it `wide` for more")

    def _typed(self, parameter: Any, view: arrays.View) -> Tuple[int, ...]:
        """The shape of bytes without a type as elements of the parameter."""
        if parameter.rank != 1:
            self.refused(f"`{parameter.name}` is a buffer without a shape; expected {parameter.rank} dimensions", TypeError)
        if parameter.dtype == "bool":
            self.refused(f"`{parameter.name}` is a buffer of any bytes; expected an array of bool", TypeError)
        size = NUMBERS[parameter.dtype][1] * (parameter.array or 1)
        length, rest = divmod(view.shape[0], size)
        if rest:
            self.refused(f"`{parameter.name}` has {view.shape[0]} bytes; expected a multiple of {size}")
        return (length, parameter.array) if parameter.array else (length,)

    def _device(self, views: Sequence[Optional[arrays.View]], stream: int) -> int:
        """The device of the arrays, which is that of the stream."""
        calls = driver()
        if calls.device_count() == 1:
            return 0
        own = calls.current_device() if stream in DEFAULT_STREAMS else calls.stream_device(stream)
        for parameter, view in zip(self.arrays, views):
            device = view.device if view is not None else None
            if device is not None and own is not None and device != own:
                what = "the current device" if stream in DEFAULT_STREAMS else "that of the stream"
                self.refused(f"`{parameter.name}` is on device {device}, but {what} is {own}")
            own = device if own is None else own
        return own or 0

    def _enable_short_path(
        self, given: Tuple[Any, ...], views: Sequence[Optional[arrays.View]], loaded: Loaded
    ) -> None:
        """Lets the next launches of such arrays skip all this; there is one device."""
        libraries = {view.library for view in views if view is not None}
        dtypes = {it.dtype: DTYPES.get(it.dtype, it.dtype) for it in self.arrays}
        if libraries == {"cupy"}:
            values = arrays.short_path_of_cupy(dtypes)
        elif libraries == {"torch"}:
            values = arrays.short_path_of_torch(dtypes)
        elif libraries == {"cuda.core"}:
            values = arrays.short_path_of_cuda_core(given)
        else:
            return
        # First, since another thread may take the path as soon as it knows the types.
        self.namespace["__SHORT"] = (loaded, loaded.launch, loaded.pointer)
        self.namespace.update({f"__{name}": value for name, value in values.items()})

    def overlap(self, one: str, first: int, other: str, second: int) -> None:
        """Refuses two arguments whose memory overlaps, unless one has no elements."""
        if first and second:
            self.refused(f"`{one}` and `{other}` overlap in memory, and the kernel writes one of them")

    def same_shape(self, one: str, first: Any, other: str, second: Any) -> NoReturn:
        self.refused(f"`{one}` has {first} elements and `{other}` {second}, x first: the kernel requires the same shape")

    def too_few_parts(self, name: str, blocks: int, parts: int, axis: str) -> NoReturn:
        self.refused(f"{blocks} blocks along {axis}, and `{name}` has parts for {parts}: each block needs one of its own")

    def shared_length(self, name: str, length: Any) -> int:
        try:
            number = length.__index__()
        except (AttributeError, TypeError):
            self.refused(f"`{name}` is a {type(length).__name__}; expected the number of elements in shared memory", TypeError)
        if number < 0:
            self.refused(f"`{name}` is {number}; expected 0 or more elements")
        return int(number)

    def too_much_shared(self, size: int, limits: Limits) -> NoReturn:
        self.refused(f"needs {size} bytes of shared memory for a block, but {limits.name} has {limits.shared}")

    def boolean(self, name: str, value: Any) -> bool:
        if type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        self.refused(f"`{name}` is {value!r}; expected a bool", TypeError)

    def bfloat16(self, name: str, value: Any) -> int:
        """The bits of the nearest number, the even one of two."""
        try:
            bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
        except (struct.error, OverflowError, TypeError):
            self.wrong_values({name: value}, {})
        if bits & 0x7FFF_FFFF > 0x7F80_0000:
            return bits >> 16 | 0x40
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

    def wrong_values(self, values: Dict[str, Any], lengths: Dict[str, int]) -> NoReturn:
        """Explains why numbers cannot be packed."""
        for name, length in lengths.items():
            if length > U32 and not self.spec.wide:
                self.too_long(name, length)
        for parameter in self.spec.parameters:
            if not isinstance(parameter, Value) or parameter.name not in values:
                continue
            value, dtype = values[parameter.name], parameter.dtype
            try:
                struct.pack("<" + ("f" if dtype == "bf16" else NUMBERS[dtype][0]), value)
            except OverflowError:
                self.refused(f"`{parameter.name}` is {value!r}, which is beyond {dtype}")
            except (struct.error, TypeError):
                if isinstance(value, int) and not dtype.startswith(("f", "b")):
                    self.refused(f"`{parameter.name}` is {value!r}, which is beyond {dtype}")
                kind = "an integer" if dtype[0] in "iu" else "a number"
                self.refused(f"`{parameter.name}` is {value!r}; expected {kind} for {dtype}", TypeError)
        self.refused("its arguments do not fit into its parameters")

    def shape(self, cover: Any, grid: Any, block: Any, limits: Limits) -> Tuple[int, ...]:
        """The blocks along each axis and the threads of a block along each; 0 blocks along an axis launch nothing."""
        spec = self.spec
        threads = self.block if block is None else self._dimensions("block", block)
        if spec.block is not None and threads != spec.block:
            self.refused(f"is compiled for blocks of {spec.block} and no others, but `block` is {threads}")
        self._check_block(threads, limits)
        if (grid is None) == (cover is None):
            self.refused("takes either `cover`, the elements along each axis, or `grid`, the blocks", TypeError)
        if grid is not None:
            blocks = self._dimensions("grid", grid)
        else:
            extents = self._dimensions("cover", cover)
            blocks = tuple(-(-extent // size) for extent, size in zip(extents, threads))  # type: ignore[assignment]
        if 0 not in blocks:
            for axis in range(3):
                if blocks[axis] > limits.grid[axis]:
                    limit = limits.grid[axis]
                    self.refused(f"the grid has {blocks[axis]} blocks along {AXES[axis]}, the device's limit is {limit}")
                if blocks[axis] * threads[axis] > U32:
                    count = blocks[axis] * threads[axis]
                    self.refused(f"the grid has {count} threads along {AXES[axis]}, and a kernel numbers at most {U32}")
        return (*blocks, *threads)

    def _check_block(self, threads: Tuple[int, ...], limits: Limits) -> None:
        for axis in range(3):
            if threads[axis] == 0:
                self.refused(f"a block has 0 threads along {AXES[axis]}; it needs at least 1")
            if threads[axis] > limits.block[axis]:
                limit = limits.block[axis]
                self.refused(f"a block has {threads[axis]} threads along {AXES[axis]}, the device's limit is {limit}")
        count = threads[0] * threads[1] * threads[2]
        most = limits.threads if self.spec.max_threads is None else min(limits.threads, self.spec.max_threads)
        if count > most:
            self.refused(f"a block of {threads} has {count} threads, the limit is {most}")

    def _dimensions(self, name: str, value: Any) -> Tuple[int, int, int]:
        rank = self.spec.rank
        sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if len(sizes) != rank:
            expected = "a number" if rank == 1 else f"{rank} numbers, x first"
            self.refused(f"`{name}` is {value!r}; expected {expected}", TypeError)
        try:
            numbers = [int(size.__index__()) for size in sizes]
        except (AttributeError, TypeError):
            self.refused(f"`{name}` is {value!r}; expected whole numbers", TypeError)
        if min(numbers) < 0:
            self.refused(f"`{name}` is {value!r}; expected 0 or more")
        x, y, z = numbers + [1] * (3 - rank)
        return x, y, z

    def raise_pending(self, loaded: Loaded, record: Record, stream: int) -> None:
        """Raises the panic of an earlier launch on the stream, before another one is added to it."""
        if record.state[0] != FREE:
            loaded.records.wait(stream)

    def failed(self, code: int, loaded: Loaded, buffer: Any, params: Any) -> None:
        """Launches once more if the thread lacked a context; raises why the driver refused."""
        calls, limits = driver(), loaded.limits
        if code == INVALID_CONTEXT:
            calls.bind(limits.device)
            code = calls.launch(buffer, loaded.pointer, params, None)
            if not code:
                return
        block = struct.unpack_from("<3I", buffer, 12)
        threads = block[0] * block[1] * block[2]
        if code in (OUT_OF_RESOURCES, INVALID_VALUE):
            most = calls.kernel_attribute(loaded.function, limits.device, KERNEL_MAX_THREADS)
            if threads > most:
                self.refused(f"a block of {block} has {threads} threads; by its registers the kernel takes {most}")
        if code == COOPERATIVE_TOO_LARGE:
            count = calls.attribute(limits.device, MULTIPROCESSORS)
            self.refused(
                "a cooperative launch of so many blocks is too large: all must be resident at the same time on the "
                f"{count} multiprocessors of {limits.name}"
            )
        error = calls.error("cuLaunchKernelEx", code)
        error.args = (f"kernel `{self.spec.name}`: {error}",)
        raise error


def launcher(spec: Spec, load: Callable[[int], Loaded], like: Any) -> Any:
    """A function like `like` that launches the kernel."""
    from .source import launch_source

    call, layout = Call(spec, load), Layout(spec)
    packer = struct.Struct(layout.format)
    names: Dict[str, Any] = {
        "ATTRIBUTES": call.attributes,
        "BUFFER": None,
        "CALL": call,
        "PACK": packer.pack_into,
        "PACKING_ERRORS": (struct.error, OverflowError, TypeError),
        "PLACE": Place(spec.name, *spec.lines),
        "REST": SHAPE.pack(1, 1, *call.block, spec.shared),
        "SHAPE": SHAPE.pack,
        "SHORT": None,
        "SLOTS": [],
        "TENSOR": None,
        "int": int,
        "new_slot": layout.slot,
        "stream_handle": call.handle,
        "type": type,
    }
    # No array has these types: until the first launch has loaded the kernel, none takes the short path.
    names.update({f"{library}_{it.dtype}": object() for it in call.arrays for library in ("cupy", "torch")})
    namespace = call.namespace
    namespace.update({f"__{name}": value for name, value in names.items()})
    source = launch_source(spec, call.block, BLOCKING)
    exec(compile(source, f"<launch of {spec.name}>", "exec"), namespace)
    return functools.update_wrapper(namespace["launch"], like)

