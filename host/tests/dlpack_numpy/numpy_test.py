"""Shares tensors between NumPy and the library of lib.rs, both ways, and checks what arrives."""

import ctypes
import gc
import sys

import numpy as np

library = ctypes.CDLL(sys.argv[1])
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
library.counting_versioned.restype = ctypes.c_void_p
library.counting_unversioned.restype = ctypes.c_void_p
library.read_only.restype = ctypes.c_void_p
library.complex_columns.restype = ctypes.c_void_p
library.gather.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
library.double_in_place.argtypes = [ctypes.c_void_p]


class Tensor:
    """What a Python package over this crate would define."""

    def __init__(self, make, name):
        self.make, self.name = make, name

    def __dlpack__(self, **arguments):
        return api.PyCapsule_New(self.make(), self.name, None)

    def __dlpack_device__(self):
        return (1, 0)


def give_away(array):
    capsule = array.__dlpack__()
    pointer = api.PyCapsule_GetPointer(capsule, b"dltensor")
    api.PyCapsule_SetName(capsule, b"used_dltensor")
    return library.double_in_place(pointer)


def gather(array):
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    api.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
    gathered = np.full(array.shape, np.nan)
    assert library.gather(pointer, gathered.ctypes.data) == 0
    return gathered


kinds = [(library.counting_unversioned, b"dltensor")]
if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
    kinds.append((library.counting_versioned, b"dltensor_versioned"))
for make, name in kinds:
    array = np.from_dlpack(Tensor(make, name))
    assert array.shape == (2, 3) and array.dtype == np.float32, (array.shape, array.dtype)
    assert (array == [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]).all(), array
    row = array[1]
    del array
    gc.collect()
    assert (row == [4.5, 5.5, 6.5]).all(), row
    del row
    gc.collect()

if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
    array = np.from_dlpack(Tensor(library.read_only, b"dltensor_versioned"))
    assert array.tolist() == [1, 2, 3] and not array.flags.writeable, array.flags
    array = np.from_dlpack(Tensor(library.complex_columns, b"dltensor_versioned"))
    assert array.dtype == np.complex64 and array.strides == (8, 24), (array.dtype, array.strides)
    assert array.tolist() == [[0, 3 - 3j], [1 - 1j, 4 - 4j], [2 - 2j, 5 - 5j]], array

    numbers = np.arange(24, dtype=np.float64)
    numbers.flags.writeable = False
    cube = numbers.reshape(2, 3, 4)
    for view in [cube, cube.T, cube[:, ::2, 1:3], cube[::-1, :, ::-1], np.broadcast_to(cube[0, 0], (3, 4)), cube[:0]]:
        gathered = gather(view)
        assert (gathered == view).all(), (view, gathered)

array = np.arange(12, dtype=np.int64).reshape(3, 4)
references = sys.getrefcount(array)
assert give_away(array) == 0
assert (array == 2 * np.arange(12).reshape(3, 4)).all(), array
assert give_away(array[1:]) == 0
assert (array[0] == [0, 2, 4, 6]).all() and (array[1] == [16, 20, 24, 28]).all(), array
assert give_away(array[:, 1:]) == 1, "a part with gaps is refused"
assert give_away(array.astype(np.int32)) == 1, "another type is refused"
assert sys.getrefcount(array) == references, "everything taken over was let go of"
print("shared with NumPy", np.__version__)
