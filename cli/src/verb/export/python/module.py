"""The kernels of a package: which code a device loads, and the description of each kernel and its parameters."""

from __future__ import annotations

import os
import threading
from ctypes import c_void_p
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple, TypeVar, cast

from .driver import MAJOR, MAX_BLOCK_DIM, MAX_GRID_DIM, MAX_SHARED_OPTIN, MAX_THREADS_PER_BLOCK, MINOR, driver
from .panic import Records, records_of

Function = TypeVar("Function", bound=Callable[..., None])


class Value(NamedTuple):
    """A number by value."""

    name: str
    dtype: str


class In(NamedTuple):
    """Elements that are read, or changed by atomic operations."""

    name: str
    dtype: str
    rank: int = 1
    #: The length of the array that each element is; 0 for a number.
    array: int = 0
    align: int = 1
    atomic: bool = False


class Out(NamedTuple):
    """Elements that are written."""

    name: str
    dtype: str
    rank: int = 1
    array: int = 0
    align: int = 1
    #: The extents of the tile that belongs to each block, x first; `()` for a row, None if nothing does.
    tile: Optional[Tuple[int, ...]] = None
    atomic: bool = False


class Shared(NamedTuple):
    """A slice in shared memory, whose length the caller chooses."""

    name: str
    size: int


class Spec(NamedTuple):
    """A kernel: its entry point and what a launch of it has to keep to."""

    name: str
    entry: str
    rank: int
    parameters: Sequence[Any]
    #: The only shape of a block, x first.
    block: Optional[Tuple[int, int, int]] = None
    max_threads: Optional[int] = None
    shared: int = 0
    cooperative: bool = False
    wide: bool = False
    #: The argument whose elements the launch covers, and the elements of a block; then it takes no grid.
    elements: Optional[Tuple[str, int]] = None
    same_shape: Sequence[Sequence[str]] = ()
    #: Its file in Rust, without folders, and its first and last line.
    lines: Tuple[str, int, int] = ("", 0, 0)
    may_panic: bool = False


class Limits:
    """The limits of a device for launches."""

    def __init__(self, device: int) -> None:
        calls = driver()
        self.device = device
        self.name = calls.device_name(device)
        self.threads = calls.attribute(device, MAX_THREADS_PER_BLOCK)
        self.block = tuple(calls.attribute(device, attribute) for attribute in MAX_BLOCK_DIM)
        self.grid = tuple(calls.attribute(device, attribute) for attribute in MAX_GRID_DIM)
        self.shared = calls.attribute(device, MAX_SHARED_OPTIN)
        self.capability = (calls.attribute(device, MAJOR), calls.attribute(device, MINOR))


_limits: Dict[int, Limits] = {}


def limits_of(device: int) -> Limits:
    """The limits of a device, asked for once."""
    known = _limits.get(device)
    if known is None:
        known = _limits[device] = Limits(device)
    return known


class Loaded(NamedTuple):
    """A kernel on a device."""

    function: int
    #: The same as ctypes passes it, and the call of the driver: each launch takes both from here.
    pointer: Any
    launch: Any
    limits: Limits
    records: Records


class Image:
    """The same kernels for several architectures, in files beside this package."""

    def __init__(self, folder: str, ptx: Dict[str, str], cubin: Optional[Dict[str, str]] = None) -> None:
        self._folder = folder
        self._ptx = ptx
        self._cubin = cubin or {}
        self._libraries: Dict[int, int] = {}
        self._lock = threading.Lock()

    def library(self, device: int) -> int:
        """The library of a device, loaded by the first call. A device needs one of its own, since PTX is compiled for it."""
        with self._lock:
            known = self._libraries.get(device)
            if known is None:
                with driver().within(device):
                    known = self._libraries[device] = driver().load(self._code(limits_of(device)))
            return known

    def _code(self, limits: Limits) -> bytes:
        """The machine code for exactly this device, else the PTX of the newest architecture that runs there."""
        major, minor = limits.capability
        for arch in (f"sm_{major}{minor}a", f"sm_{major}{minor}"):
            if arch in self._cubin:
                return self._read(self._cubin[arch])
        usable = [arch for arch in self._ptx if _runs(arch, limits.capability)]
        if not usable:
            raise RuntimeError(
                f"{limits.name} has compute capability {major}.{minor}, and this package has code for "
                f"{', '.join(self._ptx)}: export it with FERROGRID_ARCH=sm_{major}{minor}"
            )
        return self._read(self._ptx[max(usable, key=_order)]) + b"\0"

    def _read(self, file: str) -> bytes:
        with open(os.path.join(self._folder, file), "rb") as opened:
            return opened.read()


def _order(arch: str) -> Tuple[int, str]:
    digits = "".join(c for c in arch if c.isdigit())
    return int(digits), arch.rpartition(digits)[2]


def _runs(arch: str, capability: Tuple[int, int]) -> bool:
    """Whether PTX for `arch` runs there: `sm_90a` on 9.0 alone, `sm_100f` on all 10.x from it on, others on newer ones."""
    number, suffix = _order(arch)
    major, minor = capability
    if suffix == "a":
        return number == 10 * major + minor
    if suffix == "f":
        return number // 10 == major and number % 10 <= minor
    return number <= 10 * major + minor


class Module:
    """The kernels of an annotated module."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._specs: List[Tuple[Spec, Dict[int, Loaded]]] = []

    def kernel(self, spec: Spec) -> Callable[[Function], Function]:
        """Makes a function with the signature of the decorated one launch a kernel."""
        from .launch import launcher

        known: Dict[int, Loaded] = {}
        self._specs.append((spec, known))

        def decorate(function: Function) -> Function:
            return cast(Function, launcher(spec, lambda device: self._load(spec, known, device), function))

        return decorate

    def load(self, device: int) -> None:
        """Loads all kernels for a device, ahead of their first launch."""
        for spec, known in self._specs:
            self._load(spec, known, device)

    def _load(self, spec: Spec, known: Dict[int, Loaded], device: int) -> Loaded:
        loaded = known.get(device)
        if loaded is not None:
            return loaded
        calls, limits = driver(), limits_of(device)
        function = calls.kernel(self._image.library(device), spec.entry)
        uses_shared = any(isinstance(it, Shared) for it in spec.parameters)
        if spec.shared > limits.shared:
            raise ValueError(
                f"kernel `{spec.name}` needs {spec.shared} bytes of shared memory for a block, but {limits.name} has "
                f"{limits.shared}"
            )
        if uses_shared or spec.shared > 48 * 1024:
            calls.allow_shared(function, device, limits.shared)
        loaded = known[device] = Loaded(function, c_void_p(function), calls.launch, limits, records_of(device))
        return loaded


def unavailable(name: str, reason: str) -> Callable[[Function], Function]:
    """Makes a function raise the reason why its kernel was not exported."""

    def decorate(function: Function) -> Function:
        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise NotImplementedError(f"kernel `{name}` cannot be launched from Python: {reason}")

        refuse.__name__ = refuse.__qualname__ = function.__name__
        refuse.__doc__, refuse.__module__ = function.__doc__, function.__module__
        return refuse  # type: ignore[return-value]

    return decorate
