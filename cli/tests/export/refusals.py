"""Arguments that a launch refuses, each with the kernel, the argument, the value and the limit."""

import fake
from fake import Array, CupyArray
from fixture import Exported, arrays

X, Y, Z = arrays(3)


class Arrays(Exported):
    def saxpy(self, x=None, y=None, a=1.0, **options):
        x = Array(X, (10,)) if x is None else x
        y = Array(Y, (10,)) if y is None else y
        self.kernels.saxpy(a, x, y, **{"cover": 10, "stream": 7, **options})

    def test_other_types_of_elements(self):
        with self.refused(TypeError, "kernel `saxpy`: `x` has elements of type f64; expected f32"):
            self.saxpy(Array(X, (10,), "<f8"))
        with self.refused(TypeError, "`x` has elements of type >f4"):
            self.saxpy(Array(X, (10,), ">f4"))
        with self.refused(TypeError, "`x` has elements of type bf16"):
            self.saxpy(fake.DlpackArray(X, (10,), code=4, bits=16))

    def test_other_shapes(self):
        with self.refused(ValueError, "`x` has 2 dimensions, its shape is (2, 5); expected 1", ".ravel()"):
            self.saxpy(Array(X, (2, 5)))
        with self.refused(ValueError, "`colour` has shape (10, 4); its last extent is 4, expected 3"):
            self.kernels.luma(Array(X, (10, 4), "|u1"), Array(Y, (10,), "|u1"), cover=1, stream=7)

    def test_an_argument_of_too_few_dimensions(self):
        with self.assertRaises(ValueError) as caught:
            self.kernels.plane(Array(X, (5,)), Array(Y, (1, 1)), cover=(1, 1), stream=7)
        self.assertEqual(str(caught.exception), "kernel `plane`: `x` has 1 dimensions, its shape is (5,); expected 2")

    def test_strides(self):
        with self.refused(ValueError, "`x` is not contiguous in C order"):
            self.saxpy(Array(X, (10,), strides=(8,)))
        with self.refused(ValueError, "`x` is not contiguous"):
            self.saxpy(fake.DlpackArray(X, (10,), strides=(2,)))
        # The stride of an axis of one element is nothing.
        self.saxpy(Array(X, (1,), strides=(64,)))

    def test_memory_of_the_host(self):
        with self.refused(TypeError, "`x` is a builtins.list; expected an array in the memory of a GPU"):
            self.saxpy([1.0])
        with self.refused(TypeError, "`x` is a fake.DlpackArray; expected an array in the memory of a GPU"):
            self.saxpy(fake.DlpackArray(X, (10,), kind=1))
        fake.install_torch(stream=1)
        with self.refused(TypeError, "`x` is a torch.Tensor; expected an array"):
            self.saxpy(fake.Tensor(X, (10,), "torch.float32", kind="cpu"))

    def test_read_only_outputs(self):
        self.saxpy(Array(X, (10,), read_only=True))
        with self.refused(ValueError, "`y` is read-only, and the kernel writes it"):
            self.saxpy(y=Array(Y, (10,), read_only=True))
        with self.refused(ValueError, "`counts` is read-only"):
            counts = Array(Y, (4,), "<u4", read_only=True)
            self.kernels.count(Array(X, (8, 16), "|u1"), counts, Array(Z, (4,), "<u4"), cover=8, stream=7)

    def test_overlap_with_what_is_written(self):
        for start in (X - 36, X, X + 36):
            with self.refused(ValueError, "`x` and `y` overlap in memory"):
                self.saxpy(y=Array(start, (10,)))
        for start in (X - 40, X + 40):
            self.saxpy(y=Array(start, (10,)))
        with self.refused(ValueError, "`data` and `counts` overlap"):
            counts = Array(X, (4,), "<u4")
            self.kernels.count(Array(X, (8, 16), "|u1"), counts, Array(Z, (4,), "<u4"), cover=8, stream=7)

    def test_overlap_on_the_short_path(self):
        fake.install_cupy(stream=77)
        self.saxpy(CupyArray(X, (10,)), CupyArray(Y, (10,)))
        reads = CupyArray.reads
        with self.refused(ValueError, "`x` and `y` overlap in memory"):
            self.saxpy(CupyArray(X, (10,)), CupyArray(X + 36, (10,)))
        self.assertEqual(CupyArray.reads, reads)

    def test_wrong_cupy_arrays_leave_the_short_path(self):
        fake.install_cupy(stream=77)
        self.saxpy(CupyArray(X, (10,)), CupyArray(Y, (10,)))
        with self.refused(TypeError, "`x` has elements of type f64; expected f32"):
            self.saxpy(CupyArray(X, (10,), "<f8"), CupyArray(Y, (10,)))
        with self.refused(ValueError, "`y` has 2 dimensions"):
            self.saxpy(CupyArray(X, (10,)), CupyArray(Y, (5, 2)))
        with self.refused(ValueError, "`y` is not contiguous"):
            self.saxpy(CupyArray(X, (10,)), CupyArray(Y, (10,), contiguous=False))
        with self.refused(ValueError, "`x` has 4294967296 elements, and the kernel indexes at most 4294967295"):
            self.saxpy(CupyArray(X, (1 << 32,)), CupyArray(X + (1 << 36), (10,)))
        one = CupyArray(X + (1 << 40), (1, 1))
        self.kernels.plane(CupyArray(X, (3, 5)), one, cover=(1, 1), stream=7)
        with self.refused(ValueError, "`x` has 4295032832 elements"):
            self.kernels.plane(CupyArray(X, (65537, 65536)), one, cover=(1, 1), stream=7)
        counts = CupyArray(Y, (4,), "<u4"), CupyArray(Z, (4,), "<u4")
        self.kernels.count(CupyArray(X, (8, 16), "|u1"), *counts, cover=8)
        with self.refused(ValueError, "`data` begins at 0x10000000008; expected a multiple of 16 bytes"):
            self.kernels.count(CupyArray(X + 8, (8, 16), "|u1"), *counts, cover=8)
        with self.refused(ValueError, "`data` has shape (8, 15); its last extent is 15, expected 16"):
            self.kernels.count(CupyArray(X, (8, 15), "|u1"), *counts, cover=8)

    def test_alignment(self):
        data = Array(X + 8, (8, 16), "|u1")
        with self.refused(ValueError, "`data` begins at 0x10000000008; expected a multiple of 16 bytes"):
            self.kernels.count(data, Array(Y, (4,), "<u4"), Array(Z, (4,), "<u4"), cover=8, stream=7)

    def test_lengths_beyond_32_bits(self):
        with self.refused(ValueError, "`x` has 4294967296 elements, and the kernel indexes at most 4294967295"):
            self.saxpy(Array(X, (1 << 32,)), Array(X + (1 << 36), (10,)))
        with self.refused(ValueError, "`x` has 4295032832 elements"):
            x = Array(X, (65537, 65536))
            self.kernels.plane(x, Array(X + (1 << 40), (1, 1)), cover=(1, 1), stream=7)
        # One element less fits.
        longest = Array(X, ((1 << 32) - 1,))
        self.saxpy(longest, Array(X + (1 << 36), (10,)))
        with self.refused(TypeError, "`a` is 'x'; expected a number for f32"):
            self.saxpy(longest, Array(X + (1 << 36), (10,)), a="x")

    def test_shapes_that_differ(self):
        with self.refused(ValueError, "`x` has (10,) elements and `y` (11,)", "the same shape"):
            self.kernels.copied(Array(X, (10,), "<i8"), Array(Y, (11,), "<i8"), cover=10, stream=7)

    def test_buffers(self):
        # On the long path, and on the short one.
        for _ in range(2):
            with self.refused(ValueError, "`x` has 39 bytes; expected a multiple of 4"):
                self.saxpy(fake.Buffer(X, 39), fake.Buffer(Y, 40))
            with self.refused(ValueError, "`x` begins at 0x10000000002; expected a multiple of 4 bytes"):
                self.saxpy(fake.Buffer(X + 2, 40), fake.Buffer(Y, 40))
            with self.refused(TypeError, "`x` is a cuda.core._memory.Buffer; expected an array in the memory of a GPU"):
                self.saxpy(fake.Buffer(X, 40, is_device_accessible=False), fake.Buffer(Y, 40))
            self.saxpy(fake.Buffer(X, 40), fake.Buffer(Y, 40))
            with self.refused(TypeError, "pass `stream=`"):
                self.saxpy(fake.Buffer(X, 40), fake.Buffer(Y, 40), stream=None)
        self.assertEqual(fake.Buffer.reads, 2 + 8)
        for _ in range(2):
            with self.refused(TypeError, "`mask` is a buffer of any bytes; expected an array of bool"):
                self.kernels.picked(fake.Buffer(X, 40), fake.Buffer(Y, 40), cover=40, stream=7)
        self.kernels.picked(Array(X, (40,), "|b1"), fake.Buffer(Y, 40), cover=40, stream=7)
        with self.refused(TypeError, "`x` is a buffer without a shape; expected 2 dimensions"):
            self.kernels.plane(fake.Buffer(X, 40), Array(Y, (1, 1)), cover=(1, 1), stream=7)

    def test_views_of_cuda_core(self):
        for view, kind, said in [
            (fake.StridedMemoryView(X, (10,), "<f8"), TypeError, "`x` has elements of type f64"),
            (fake.StridedMemoryView(X, (10,), strides=(2,)), ValueError, "`x` is not contiguous"),
            (fake.StridedMemoryView(X, (10,), typestr=None), TypeError, "expected an array in the memory of a GPU"),
            (fake.StridedMemoryView(X, (10,), is_device_accessible=False), TypeError, "expected an array in the memory"),
        ]:
            with self.refused(kind, said):
                self.saxpy(view)
        with self.refused(ValueError, "`y` is read-only"):
            self.saxpy(y=fake.StridedMemoryView(Y, (10,), readonly=True))

    def test_tensors_with_a_gradient(self):
        fake.install_torch(stream=1)
        tensor = fake.Tensor(X, (10,), "torch.float32")
        tensor.requires_grad = True
        with self.refused(TypeError, "`x` is a tensor that requires a gradient", "detach()"):
            self.saxpy(tensor)

    def test_wrong_tensors_leave_the_short_path(self):
        fake.install_torch(stream=88)

        def tensor(shape=(10,), dtype="torch.float32", **how):
            return fake.Tensor(X, shape, dtype, **how)

        y = fake.Tensor(Y, (10,), "torch.float32")
        self.saxpy(tensor(), y)
        with self.refused(TypeError, "`x` has elements of type u8; expected f32"):
            self.saxpy(tensor(dtype="torch.uint8"), y)
        with self.refused(ValueError, "`x` has 2 dimensions"):
            self.saxpy(tensor((2, 5)), y)
        with self.refused(ValueError, "`x` is not contiguous"):
            self.saxpy(tensor(contiguous=False), y)
        with self.refused(TypeError, "`x` is a torch.Tensor; expected an array"):
            self.saxpy(tensor(kind="cpu"), y)
        y.requires_grad = True
        with self.refused(TypeError, "`y` is a tensor that requires a gradient"):
            self.saxpy(tensor(), y)

    def test_numbers_that_do_not_fit(self):
        y = Array(Y, (10,), "<f8")
        numbers = [True, 1, 2, 3.0, 4, 5]
        for at, value, kind, said in [
            (0, 1, TypeError, "`a` is 1; expected a bool"),
            (1, 128, ValueError, "`b` is 128, which is beyond i8"),
            (2, -1, ValueError, "`c` is -1, which is beyond u16"),
            (2, 1.5, TypeError, "`c` is 1.5; expected an integer for u16"),
            (3, "x", TypeError, "`d` is 'x'; expected a number for f64"),
            (4, 1 << 64, ValueError, "`in_` is 18446744073709551616, which is beyond usize"),
        ]:
            with self.refused(kind, "kernel `numbers`: " + said):
                self.kernels.numbers(*numbers[:at], value, *numbers[at + 1 :], y, cover=1, stream=7)
        with self.refused(ValueError, "`a` is 1e+300, which is beyond f32"):
            self.saxpy(a=1e300)

    def test_a_refused_launch_leaves_its_memory(self):
        for _ in range(3):
            with self.refused(TypeError, "`a` is None"):
                self.saxpy(a=None)
        self.saxpy()


class Shapes(Exported):
    def launch(self, **options):
        self.kernels.saxpy(1.0, Array(X, (10,)), Array(Y, (10,)), stream=7, **options)

    def test_a_launch_has_either_elements_or_blocks(self):
        for options in ({}, {"cover": 1, "grid": 1}, {"block": 32}):
            with self.refused(TypeError, "kernel `saxpy`: takes either `cover`", "or `grid`"):
                self.launch(**options)

    def test_limits_of_the_device(self):
        with self.refused(ValueError, "the grid has 2147483648 blocks along x, the device's limit is 2147483647"):
            self.launch(grid=1 << 31, block=1)
        with self.refused(ValueError, "threads along x, and a kernel numbers at most 4294967295"):
            self.launch(grid=1 << 24, block=512)
        self.launch(cover=4294967040)
        self.assertEqual(self.driver.launches[-1].grid, (16777215, 1, 1))
        with self.refused(ValueError, "the grid has 4294967296 threads along x, and a kernel numbers at most 4294967295"):
            self.launch(cover=4294967041)
        with self.refused(ValueError, "a block has 2048 threads along x, the device's limit is 1024"):
            self.launch(cover=10, block=2048)
        with self.refused(ValueError, "a block has 0 threads along x"):
            self.launch(cover=10, block=0)
        with self.refused(ValueError, "`grid` is -1; expected 0 or more"):
            self.launch(grid=-1)
        with self.refused(TypeError, "`cover` is 1.5; expected whole numbers"):
            self.launch(cover=1.5)
        with self.refused(TypeError, "`cover` is (1, 2); expected a number"):
            self.launch(cover=(1, 2))

    def test_limits_of_the_kernel(self):
        with self.refused(ValueError, "a block of (128, 1, 1) has 128 threads, the limit is 64"):
            array = Array(X, (10,), "<i8")
            self.kernels.copied(array, Array(Y, (10,), "<i8"), cover=10, block=128, stream=7)
        with self.refused(ValueError, "is compiled for blocks of (64, 1, 1) and no others, but `block` is (32, 1, 1)"):
            self.kernels.sums(Array(X, (3, 5)), Array(Y, (3, 1)), grid=3, block=32, stream=7)
        self.driver.codes, self.driver.registers_limit = [701], 512
        with self.refused(ValueError, "a block of (1024, 1, 1) has 1024 threads; by its registers the kernel takes 512"):
            self.launch(cover=10, block=1024)

    def test_each_block_needs_its_part(self):
        with self.refused(ValueError, "4 blocks along x, and `y` has parts for 3"):
            self.kernels.sums(Array(X, (4, 5)), Array(Y, (3, 1)), grid=4, stream=7)
        tiles = Array(Y, (16, 32), "<u4")
        self.kernels.tiles_1(tiles, grid=(2, 2), stream=7)
        with self.refused(ValueError, "3 blocks along y, and `y` has parts for 2"):
            self.kernels.tiles_1(tiles, grid=(2, 3), stream=7)
        with self.refused(ValueError, "3 blocks along x, and `y` has parts for 2"):
            self.kernels.tiles_1(tiles, grid=(3, 2), stream=7)

    def test_shared_memory(self):
        y = Array(Y, (10,))
        self.kernels.chosen(y, 58112, 0, cover=1, stream=7)
        with self.refused(ValueError, "needs 232464 bytes of shared memory for a block, but GPU 0 has 232448"):
            self.kernels.chosen(y, 58112, 1, cover=1, stream=7)
        with self.refused(ValueError, "`scratch` is -1; expected 0 or more elements"):
            self.kernels.chosen(y, -1, 1, cover=1, stream=7)
        with self.refused(TypeError, "`more` is a float; expected the number of elements"):
            self.kernels.chosen(y, 1, 1.0, cover=1, stream=7)

    def test_a_cooperative_grid_that_does_not_fit(self):
        self.driver.codes = [720]
        with self.refused(ValueError, "kernel `together`: a cooperative launch", "132 multiprocessors of GPU 0"):
            self.kernels.together(Array(Y, (10,), "<u4"), cover=10, stream=7)


class Streams(Exported):
    def test_no_stream(self):
        with self.refused(TypeError, "kernel `saxpy`: no argument is of a library with a current stream: pass `stream=`"):
            self.kernels.saxpy(1.0, Array(X, (10,)), fake.Buffer(Y, 40), cover=10)

    def test_two_current_streams(self):
        fake.install_cupy(stream=1)
        fake.install_torch(stream=2)
        x, y = CupyArray(X, (10,)), fake.Tensor(Y, (10,), "torch.float32")
        with self.refused(ValueError, "the current streams of cupy and torch differ: pass `stream=`"):
            self.kernels.saxpy(1.0, x, y, cover=10)
        self.kernels.saxpy(1.0, x, y, cover=10, stream=3)

    def test_no_streams(self):
        for stream, kind, said in [
            ("x", TypeError, "kernel `saxpy`: `stream` is a str"),
            (-1, ValueError, "`stream` is -1"),
            (True, TypeError, "`stream` is a bool"),
            (fake.CudaStream(5, version=1), TypeError, "version 1 of the CUDA stream protocol"),
        ]:
            with self.refused(kind, said):
                self.kernels.saxpy(1.0, Array(X, (10,)), Array(Y, (10,)), cover=10, stream=stream)


class Devices(Exported):
    devices = 2

    def test_arrays_of_another_device_than_the_streams(self):
        fake.install_cupy(stream=0)
        self.driver.of_stream = {5: 1}
        here, there = [[CupyArray(at, (10,), device=device) for at in (X, Y)] for device in (0, 1)]
        self.kernels.saxpy(1.0, *there, cover=10, stream=5)
        self.assertEqual(self.driver.launches[-1].stream, 5)
        with self.refused(ValueError, "`x` is on device 0, but that of the stream is 1"):
            self.kernels.saxpy(1.0, *here, cover=10, stream=5)
        with self.refused(ValueError, "`y` is on device 1, but the current device is 0"):
            self.kernels.saxpy(1.0, here[0], there[1], cover=10)

    def test_each_device_loads_its_own_code(self):
        self.driver.of_stream = {5: 1}
        for stream in (4, 5, 4):
            self.kernels.saxpy(1.0, Array(X, (10,)), Array(Y, (10,)), cover=10, stream=stream)
        self.assertEqual((len(self.driver.loaded), len(self.driver.kernels)), (2, 2))


class Unavailable(Exported):
    def test_a_kernel_that_was_not_exported_says_why(self):
        for name, reason in [
            ("located", "`place: Point` is not a number"),
            ("raw", "it is an `unsafe fn`, whose requirements nothing can check"),
            ("pairs", "is a tuple"),
        ]:
            function = getattr(self.kernels, name)
            with self.refused(NotImplementedError, f"kernel `{name}` cannot be launched from Python", reason):
                function(1, 2, stream=7)
            self.assertIn(reason, function.__doc__)
