"""What the modules of kernels and their users take from this folder: the runtime of an exported package. It needs Python and
NVIDIA's driver, and no other package."""

from __future__ import annotations

from typing import Optional, Sequence, Union

from .arrays import Array, Stream, stream_handle
from .driver import CudaError
from .module import Image, In, Module, Out, Shared, Spec, Value, unavailable
from .panic import KernelPanic, wait

#: Sizes along the axes of a grid, x first; a number for a grid of one axis.
Dims = Union[int, Sequence[int]]

__all__ = [
    "Array",
    "CudaError",
    "Dims",
    "Image",
    "In",
    "KernelPanic",
    "Module",
    "Out",
    "Shared",
    "Spec",
    "Stream",
    "Value",
    "synchronize",
    "unavailable",
]


def synchronize(stream: Optional[Stream] = None) -> None:
    """Waits for a stream, or for all devices that this package has used, and raises the first panic of its kernels there.

    Call it before results are used. A panic that no call raises comes with the next launch on its stream, or is printed when
    the process ends.

    Raises:
        KernelPanic: A thread of a kernel panicked. The device remains usable; what the kernel has written is incomplete.
        CudaError: The driver has reported a failure, of this package or of other work.
    """
    wait(None if stream is None else stream_handle(stream))


