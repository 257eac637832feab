"""What launches pass to the driver, for each kind of parameter, array and stream."""

import inspect
import typing

import fake
from fake import Array, CupyArray
from fixture import Exported, arrays


class Parameters(Exported):
    def test_numbers_slices_and_the_record_are_passed_in_order(self):
        entry = self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
        x, y = arrays(2)
        self.kernels.saxpy(2.5, Array(x, (1000,)), Array(y, (999,)), cover=1000, stream=7)
        (launch,) = self.driver.launches
        self.assertEqual((launch.function, launch.grid, launch.block), (entry, (4, 1, 1), (256, 1, 1)))
        self.assertEqual((launch.stream, launch.shared, launch.cooperative), (7, 0, False))
        *values, record = launch.values("fQIQIQ")
        self.assertEqual(values, [2.5, x, 1000, y, 999])
        self.assertNotEqual(record, 0)

    def test_every_number_has_its_type(self):
        self.sizes("numbers", 1, 1, 2, 8, 8, 4, 8, 8)
        (y,) = arrays(1)
        self.kernels.numbers(True, -128, 65535, 0.1, 2**64 - 1, -5, Array(y, (1 << 33,), "<f8"), grid=1, stream=7)
        (launch,) = self.driver.launches
        self.assertEqual(launch.values("?bHdQiQQ"), [True, -128, 65535, 0.1, 2**64 - 1, -5, y, 1 << 33])
        # The kernel's own `stream` has an underscore.
        self.assertIn("stream_", inspect.signature(self.kernels.numbers).parameters)
        self.assertIn("in_", inspect.signature(self.kernels.numbers).parameters)

    def test_bfloat16_is_rounded_to_the_nearest(self):
        from my_app._ferrogrid import module

        spec = module.Spec("k", "k", 1, [module.Value("a", "bf16"), module.Out("y", "bf16", align=2)])
        function = self.kernels._module.kernel(spec)(lambda: None)
        self.driver.sizes["k"] = (2, 8, 4)
        (y,) = arrays(1)
        array = fake.DlpackArray(y, (10,), code=4, bits=16)
        nan, inf = float("nan"), float("inf")
        for value, bits in [
            (1.0, 0x3F80), (-2, 0xC000), (1.00390625, 0x3F80), (1.01171875, 0x3F82), (1.004, 0x3F81),
            (inf, 0x7F80), (-inf, 0xFF80), (3.4e38, 0x7F80), (1e-45, 0),
        ]:  # fmt: skip
            function(value, array, cover=10, stream=7)
            self.assertEqual(self.driver.launches[-1].values("HQI"), [bits, y, 10], value)
        function(nan, array, cover=10, stream=7)
        (bits, *_) = self.driver.launches[-1].values("HQI")
        self.assertEqual((bits & 0x7F80, bits & 0x40), (0x7F80, 0x40))
        for value, kind, said in [("x", TypeError, "expected a number for bf16"), (1e39, ValueError, "beyond bf16")]:
            with self.refused(kind, "kernel `k`: `a` is ", said):
                function(value, array, cover=10, stream=7)

    def test_extents_come_x_first(self):
        self.sizes("plane", 8, 4, 4, 8, 4, 4)
        x, y = arrays(2)
        self.kernels.plane(Array(x, (3, 5)), Array(y, (7, 11)), cover=(100, 20), stream=7)
        (launch,) = self.driver.launches
        self.assertEqual(launch.values("QIIQII"), [x, 5, 3, y, 11, 7])
        self.assertEqual((launch.grid, launch.block), ((4, 3, 1), (32, 8, 1)))

    def test_elements_may_be_arrays(self):
        self.sizes("luma", 8, 4, 8, 4)
        x, y = arrays(2)
        self.kernels.luma(Array(x, (10, 3), "|u1"), Array(y, (10,), "|u1"), cover=10, stream=7)
        self.assertEqual(self.driver.launches[0].values("QIQI"), [x, 10, y, 10])

    def test_atomics_may_share_memory(self):
        self.sizes("count", 8, 4, 8, 4, 8, 4)
        x, y, _ = arrays(3)
        counts = Array(y, (4,), "<u4")
        self.kernels.count(Array(x, (8, 16), "|u1"), counts, counts, cover=8, stream=7)
        self.assertEqual(self.driver.launches[0].values("QIQIQI"), [x, 8, y, 4, y, 4])

    def test_slices_of_shared_memory_are_laid_out_behind_each_other(self):
        self.sizes("chosen", 8, 4, 8, 8, 8, 8)
        (y,) = arrays(1)
        self.kernels.chosen(Array(y, (4,)), 5, 17, cover=4, block=32, stream=7)
        (launch,) = self.driver.launches
        self.assertEqual(launch.values("QIQQQQ"), [y, 4, 0, 5, 32, 17])
        self.assertEqual((launch.shared, launch.block), (64, (32, 1, 1)))
        self.assertIn(("allow_shared", launch.function, 232448), self.driver.calls)
        self.kernels.chosen(Array(y, (4,)), 0, 0, cover=4, stream=7)
        self.assertEqual((self.driver.launches[-1].shared, self.driver.launches[-1].values("QIQQQQ")[2:]), (0, [0, 0, 0, 0]))

    def test_shared_memory_of_static_size_and_a_fixed_block_are_the_kernels(self):
        self.sizes("sums", 8, 4, 4, 8, 4, 4)
        x, y = arrays(2)
        self.kernels.sums(Array(x, (3, 500)), Array(y, (3, 1)), grid=3, stream=7)
        (launch,) = self.driver.launches
        self.assertEqual((launch.grid, launch.block), ((3, 1, 1), (64, 1, 1)))
        self.assertGreater(launch.shared, 0)

    def test_a_template_takes_no_grid(self):
        x, y = arrays(2)
        self.kernels.half(Array(x, (100_000,)), Array(y, (100_000,)), stream=7)
        (launch,) = self.driver.launches
        self.assertGreaterEqual(launch.grid[0] * launch.block[0] * 4, 100_000)
        self.assertNotIn("cover", inspect.signature(self.kernels.half).parameters)

    def test_blocks_of_a_kernel_with_few_threads_are_smaller(self):
        x, y = arrays(2)
        self.kernels.copied(Array(x, (100,), "<i8"), Array(y, (100,), "<i8"), cover=100, stream=7)
        self.assertEqual((self.driver.launches[0].grid[0], self.driver.launches[0].block[0]), (2, 64))

    def test_usual_blocks_are_those_of_rust(self):
        from my_app._ferrogrid import launch, module

        for rank, most, block in [
            (1, None, (256, 1, 1)),
            (2, None, (32, 8, 1)),
            (3, None, (8, 8, 8)),
            (1, 100, (64, 1, 1)),
            (2, 64, (32, 2, 1)),
            (2, 16, (16, 1, 1)),
            (3, 100, (8, 8, 1)),
            (3, 1, (1, 1, 1)),
        ]:
            self.assertEqual(launch.default_block(module.Spec("k", "k", rank, [], max_threads=most)), block)

    def test_a_cooperative_launch_says_so(self):
        (y,) = arrays(1)
        self.kernels.together(Array(y, (100,), "<u4"), cover=100, stream=7)
        self.assertTrue(self.driver.launches[0].cooperative)

    def test_instances_of_a_generic_kernel_are_functions(self):
        (x,) = arrays(1)
        self.kernels.doubled_f64(Array(x, (100,), "<f8"), cover=100, stream=7)
        self.assertTrue(self.driver.launches[0].function.startswith("doubled_f64_"))

    def test_nothing_to_cover_launches_nothing(self):
        x, y = arrays(2)
        none = Array(x, (0,)), Array(y, (0,))
        self.kernels.saxpy(1.0, *none, cover=0, stream=7)
        self.kernels.saxpy(1.0, *none, grid=0, stream=7)
        self.kernels.half(*none, stream=7)
        self.assertEqual(self.driver.launches, [])

    def test_empty_arrays_overlap_nothing(self):
        x, _ = arrays(2)
        self.kernels.saxpy(1.0, Array(x + 8, (0,)), Array(x, (10,)), cover=10, stream=7)
        self.assertEqual(len(self.driver.launches), 1)

    def test_functions_have_documentation_and_types(self):
        said = inspect.getdoc(self.kernels.saxpy)
        self.assertTrue(said.startswith('y <- a*x + y: with a \\ and """.\n\nOn all elements.\n'), said)
        hints = typing.get_type_hints(self.kernels.saxpy)
        self.assertEqual((hints["a"], hints["return"]), (float, type(None)))
        self.assertIn("SupportsDLPack", str(hints["x"]))
        self.assertEqual(self.kernels.saxpy.__name__, "saxpy")


class Libraries(Exported):
    def test_cupy_arrays_are_launched_on_its_current_stream(self):
        fake.install_cupy(stream=77)
        self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
        x, y = arrays(2)
        for _ in range(2):
            self.kernels.saxpy(2.5, CupyArray(x, (1000,)), CupyArray(y, (1000,)), cover=1000)
            reads = CupyArray.reads
        self.assertEqual(reads, 2, "the second launch takes the short path")
        first, second = self.driver.launches
        self.assertEqual((first.params, first.stream, first.grid), (second.params, second.stream, second.grid))
        self.assertEqual((first.stream, first.values("fQIQI")), (77, [2.5, x, 1000, y, 1000]))

    def test_a_kernel_without_arrays_needs_a_stream(self):
        from my_app._ferrogrid import module

        function = self.kernels._module.kernel(module.Spec("k", "k", 1, [module.Value("a", "u8")]))(lambda: None)
        self.driver.sizes["k"] = (1,)
        function(200, cover=1, stream=5)
        self.assertEqual((self.driver.launches[0].values("B"), self.driver.launches[0].stream), ([200], 5))
        with self.refused(TypeError, "kernel `k`: no argument is of a library with a current stream: pass `stream=`"):
            function(200, cover=1)

    def test_parameters_may_have_any_name(self):
        from my_app._ferrogrid import module

        fake.install_cupy(stream=77)
        names = ["type", "int", "stream_handle", "cupy_stream", "CALL", "PACK", "SHORT", "SLOTS", "PLACE"]
        values = [module.Value(name, "i32") for name in names]
        spec = module.Spec("k", "k", 1, [*values, module.Out("new_slot", "f32", align=4)], may_panic=True)
        function = self.kernels._module.kernel(spec)(lambda: None)
        self.driver.sizes["k"] = (4,) * len(names) + (8, 4, 8)
        (y,) = arrays(1)
        for stream in (None, None, 5, fake.CudaStream(6)):
            function(*range(len(names)), CupyArray(y, (10,)), cover=10, stream=stream)
            self.assertEqual(self.driver.launches[-1].values("i" * len(names) + "QI"), [*range(len(names)), y, 10])
        self.assertEqual(CupyArray.reads, 1)

    def test_the_short_path_has_planes_arrays_and_explicit_streams(self):
        fake.install_cupy(stream=77)
        self.sizes("plane", 8, 4, 4, 8, 4, 4)
        self.sizes("luma", 8, 4, 8, 4)
        x, y = arrays(2)
        for _ in range(2):
            self.kernels.plane(CupyArray(x, (3, 5)), CupyArray(y, (7, 11)), cover=(1, 1), stream=5)
            self.kernels.luma(CupyArray(x, (10, 3), "|u1"), CupyArray(y, (10,), "|u1"), cover=1, stream=fake.CudaStream(6))
        self.assertEqual(CupyArray.reads, 4)
        *_, plane, luma = self.driver.launches
        self.assertEqual((plane.values("QIIQII"), plane.stream), ([x, 5, 3, y, 11, 7], 5))
        self.assertEqual((luma.values("QIQI"), luma.stream), ([x, 10, y, 10], 6))

    def test_tensors_are_launched_on_the_current_stream_of_pytorch(self):
        fake.install_torch(stream=88)
        self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
        x, y = arrays(2)
        tensors = [fake.Tensor(address, (1000,), "torch.float32") for address in (x, y)]
        for _ in range(2):
            self.kernels.saxpy(1.0, *tensors, cover=1000)
        self.assertEqual(fake.Tensor.reads, 2, "the second launch takes the short path")
        first, second = self.driver.launches
        self.assertEqual((first.params, first.stream, first.grid), (second.params, second.stream, second.grid))
        self.assertEqual((first.stream, first.values("fQIQI")), (88, [1.0, x, 1000, y, 1000]))

    def test_buffers_of_cuda_core_are_bytes(self):
        self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
        self.sizes("luma", 8, 4, 8, 4)
        x, y = arrays(2)
        for _ in range(2):
            self.kernels.saxpy(1.0, fake.Buffer(x, 400), fake.Buffer(y, 800), cover=100, stream=fake.CudaStream(9))
            self.kernels.luma(fake.Buffer(x, 30), fake.Buffer(y, 10), cover=10, stream=5)
        self.assertEqual(fake.Buffer.reads, 4, "the second launches take the short path")
        for saxpy, luma in (self.driver.launches[:2], self.driver.launches[2:]):
            self.assertEqual((saxpy.values("fQIQI"), saxpy.stream), ([1.0, x, 100, y, 200], 9))
            self.assertEqual((luma.values("QIQI"), luma.stream), ([x, 10, y, 10], 5))

    def test_views_of_cuda_core_have_a_shape(self):
        self.sizes("plane", 8, 4, 4, 8, 4, 4)
        x, y = arrays(2)
        for strides in (None, (5, 1)):
            view = fake.StridedMemoryView(x, (3, 5), strides=strides)
            self.kernels.plane(view, fake.StridedMemoryView(y, (7, 11)), cover=(1, 1), stream=5)
            self.assertEqual(self.driver.launches[-1].values("QIIQII"), [x, 5, 3, y, 11, 7])

    def test_dlpack_is_asked_for_memory_on_the_stream(self):
        self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
        x, y = arrays(2)
        one = fake.DlpackArray(x, (100,), offset=16)
        self.kernels.saxpy(1.0, one, Array(y, (100,)), cover=100, stream=7)
        self.kernels.saxpy(1.0, one, Array(y, (100,)), cover=100, stream=0)
        self.assertEqual(one.streams, [7, 1])
        self.assertEqual(self.driver.launches[0].values("fQI"), [1.0, x + 16, 100])

    def test_work_of_the_producer_comes_first(self):
        x, y = arrays(2)
        self.kernels.saxpy(1.0, Array(x, (10,), stream=5), Array(y, (10,), stream=7), cover=10, stream=7)
        self.assertEqual([call for call in self.driver.calls if call[0] == "wait_for"], [("wait_for", 7, 5)])

    def test_streams_are_taken_in_all_their_forms(self):
        x, y = arrays(2)

        class OfCupy:
            ptr = 11

        class OfTorch:
            cuda_stream = 12

        class AsProperty:
            __cuda_stream__ = (0, 13)

        for stream, handle in [(0, 0), (OfCupy(), 11), (OfTorch(), 12), (AsProperty(), 13), (fake.CudaStream(14), 14)]:
            self.kernels.saxpy(1.0, Array(x, (10,)), Array(y, (10,)), cover=10, stream=stream)
            self.assertEqual(self.driver.launches[-1].stream, handle)


class Code(Exported):
    def chosen(self, capability, ptx, cubin=()):
        from my_app._ferrogrid import module

        self.driver.capability = capability
        image = module.Image("", {arch: arch for arch in ptx}, {arch: f"{arch}.cubin" for arch in cubin})
        image._read = lambda file: file.encode()
        module._limits.clear()
        image.library(0)
        return self.driver.loaded[-1].rstrip(b"\0").decode()

    def test_a_device_loads_the_newest_code_that_it_runs(self):
        ptx = ["sm_75", "sm_80", "sm_90a", "sm_100f"]
        self.assertEqual(self.chosen((7, 5), ptx), "sm_75")
        self.assertEqual(self.chosen((9, 0), ptx), "sm_90a")
        self.assertEqual(self.chosen((8, 9), ptx), "sm_80")
        self.assertEqual(self.chosen((10, 3), ptx), "sm_100f")
        self.assertEqual(self.chosen((12, 0), ptx), "sm_80")

    def test_machine_code_is_for_exactly_its_device(self):
        self.assertEqual(self.chosen((9, 0), ["sm_75"], ["sm_75", "sm_90"]), "sm_90.cubin")
        self.assertEqual(self.chosen((9, 0), ["sm_75"], ["sm_75"]), "sm_75")

    def test_an_older_device_is_told(self):
        with self.refused(RuntimeError, "GPU 0 has compute capability 7.0", "sm_75", "FERROGRID_ARCH=sm_70"):
            self.chosen((7, 0), ["sm_75"])

    def test_a_package_loads_its_kernels_ahead(self):
        self.app.load()
        self.assertEqual((len(self.driver.kernels), len(self.driver.loaded)), (15, 1))
        self.assertTrue(self.driver.loaded[0].endswith(b"\0"))


class Driver(Exported):
    def test_a_thread_without_a_context_gets_one(self):
        x, y = arrays(2)
        self.driver.codes = [201, 0]
        self.kernels.saxpy(1.0, Array(x, (10,)), Array(y, (10,)), cover=10, stream=0)
        self.assertIn(("bind", 0), self.driver.calls)
        self.assertEqual(len(self.driver.launches), 1)

    def test_other_refusals_name_the_kernel(self):
        from my_app import CudaError

        x, y = arrays(2)
        self.driver.codes = [719]
        with self.refused(CudaError, "kernel `saxpy`: cuLaunchKernelEx failed: CUDA_ERROR_719"):
            self.kernels.saxpy(1.0, Array(x, (10,)), Array(y, (10,)), cover=10, stream=7)

    def test_a_machine_without_a_driver_is_told(self):
        from my_app._ferrogrid import driver

        x, y = arrays(2)
        driver._loaded, ctypes = None, driver.ctypes
        for error, said in [(OSError("no such file"), "libcuda.so.1 cannot be loaded (no such file)"), (None, "older than CUDA 12.0")]:

            def library(name):
                if error:
                    raise error
                return object()

            driver.ctypes = type("Ctypes", (), {"CDLL": staticmethod(library)})
            with self.refused(self.app.CudaError, said):
                self.kernels.saxpy(1.0, Array(x, (10,)), Array(y, (10,)), cover=10, stream=7)
        driver.ctypes = ctypes

    def test_memory_of_a_launch_is_used_again(self):
        x, y = arrays(2)
        for _ in range(3):
            self.kernels.saxpy(1.0, Array(x, (10,)), Array(y, (10,)), cover=10, stream=7)
        self.assertEqual(len(self.kernels.saxpy.__globals__["__SLOTS"]), 1)
