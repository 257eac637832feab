"""Shares tensors on a GPU between CuPy, PyTorch and the library of lib.rs, both ways, and checks what arrives."""

import ctypes
import gc
import os
import sys

os.environ["FERROGRID_DEVICE"] = "cuda"
library = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
library.counting_unversioned.restype = ctypes.c_void_p
library.double_in_place.argtypes = [ctypes.c_void_p]


class Tensor:
    """What a Python package over this crate would define."""

    def __dlpack__(self, **arguments):
        return api.PyCapsule_New(library.counting_unversioned(), b"dltensor", None)

    def __dlpack_device__(self):
        return (2, 0)


def give_away(array):
    capsule = array.__dlpack__()
    pointer = api.PyCapsule_GetPointer(capsule, b"dltensor")
    api.PyCapsule_SetName(capsule, b"used_dltensor")
    return library.double_in_place(pointer)


def check(name, from_dlpack, arange, synchronize):
    array = from_dlpack(Tensor())
    assert tuple(array.shape) == (2, 3), array.shape
    assert array.tolist() == [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]], array
    array += 1
    row = array[1]
    del array
    gc.collect()
    assert row.tolist() == [5.5, 6.5, 7.5], row
    del row
    gc.collect()

    array = arange(12).reshape(3, 4)
    synchronize()
    assert give_away(array) == 0
    assert array.tolist() == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22]], array
    synchronize()
    assert give_away(array[1:]) == 0
    assert array.tolist() == [[0, 2, 4, 6], [16, 20, 24, 28], [32, 36, 40, 44]], array
    assert give_away(array[:, 1:]) == 1, "a part with gaps is refused"
    print("shared with", name)


found = 0
try:
    import cupy

    found += 1
    check(
        f"CuPy {cupy.__version__}",
        cupy.from_dlpack,
        lambda n: cupy.arange(n, dtype=cupy.int64),
        cupy.cuda.Device().synchronize,
    )
except ImportError:
    print("no CuPy")
try:
    import torch

    found += 1
    check(
        f"PyTorch {torch.__version__}",
        torch.from_dlpack,
        lambda n: torch.arange(n, dtype=torch.int64, device="cuda"),
        torch.cuda.synchronize,
    )
except ImportError:
    print("no PyTorch")
sys.exit(0 if found else "neither CuPy nor PyTorch is installed")
