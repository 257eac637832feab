"""Panics of kernels: where they are raised, what they say, and that none is lost."""

import ctypes
import json
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import threading

import fake
from fake import Array
from fixture import Exported, arrays

BOUNDS, CONSTANT, MESSAGE, LANES = 1, 2, 3, 4
X, Y = arrays(2)


class Panics(Exported):
    def setUp(self):
        super().setUp()
        self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
        self.keep = []

    def launch(self, stream=7):
        self.kernels.saxpy(1.0, Array(X, (10,)), Array(Y, (10,)), cover=10, stream=stream)
        return self.driver.launches[-1].values("fQIQIQ")[-1]

    def panic(self, record, kind=BOUNDS, first=7, second=5, words=(), line=12):
        self.keep.append(fake.panic(record, kind, first, second, "src/lib.rs", words, line))

    def raised(self, stream=7):
        with self.assertRaises(self.app.KernelPanic) as caught:
            self.app.synchronize(stream)
        return caught.exception

    def test_synchronize_raises_the_panic_of_its_stream_once(self):
        mine, other = self.launch(stream=7), self.launch(stream=8)
        self.assertNotEqual(mine, other)
        self.panic(mine)
        self.app.synchronize(8)
        panic = self.raised(7)
        said = "kernel `saxpy` panicked at src/lib.rs:12:9 in block (3, 0, 0), thread (7, 1, 0): index out of bounds: "
        self.assertEqual(str(panic), said + "the len is 5 but the index is 7")
        self.assertEqual((panic.kernel, panic.file, panic.line, panic.column), ("saxpy", "src/lib.rs", 12, 9))
        self.assertEqual((panic.block, panic.thread), ((3, 0, 0), (7, 1, 0)))
        self.assertEqual(str(pickle.loads(pickle.dumps(panic))), str(panic))
        self.app.synchronize(7)
        self.assertEqual(self.launch(stream=7), mine, "the record is free again")

    def test_every_stream_is_waited_for(self):
        self.launch(stream=7)
        self.launch(stream=0)
        for stream in (7, 0, 55):
            self.app.synchronize(stream)
            self.assertEqual(self.driver.calls[-1], ("synchronize", stream))
        # A thread without a context has no default stream, but for that of a device that was used.
        self.driver.current, before = None, len(self.driver.calls)
        self.app.synchronize(2)
        self.assertEqual(len(self.driver.calls), before)
        self.app.synchronize(56)
        self.assertEqual(self.driver.calls[-1], ("synchronize", 56))

    def test_launches_allocate_nothing(self):
        """A stream that captures forbids it."""
        self.app.load()
        before = len(self.driver.memory)
        for stream in range(100, 116):
            self.launch(stream)
        self.assertEqual(len(self.driver.memory), before)

    def test_synchronize_waits_before_it_looks(self):
        record = self.launch()
        self.driver.synchronize_stream = lambda stream: self.panic(record)
        self.raised()

    def test_without_a_stream_all_are_asked(self):
        for stream in (7, 8):
            self.panic(self.launch(stream))
        for _ in range(2):
            self.raised(None)
        self.app.synchronize()
        self.assertIn(("synchronize", None), self.driver.calls)

    def test_the_next_launch_on_the_stream_raises_it(self):
        self.panic(self.launch())
        with self.refused(self.app.KernelPanic, "kernel `saxpy` panicked"):
            self.launch()
        self.assertIn(("synchronize", 7), self.driver.calls)
        self.launch()

    def test_several_kernels_may_be_it(self):
        record = self.launch()
        self.kernels.sums(Array(X, (3, 5)), Array(Y, (3, 1)), grid=3, stream=7)
        self.panic(record)
        self.assertEqual(self.raised().kernel, "saxpy or sums")
        # Unless the line is in one of them.
        lines = {spec.name: spec.lines for spec, _ in self.kernels._module._specs}
        for name in ("saxpy", "sums"):
            for line in lines[name][1:]:
                self.launch()
                self.kernels.sums(Array(X, (3, 5)), Array(Y, (3, 1)), grid=3, stream=7)
                self.panic(record, line=line)
                self.assertEqual(self.raised().kernel, name)

    def test_kernels_that_were_waited_for_are_not(self):
        record = self.launch()
        self.kernels.sums(Array(X, (3, 5)), Array(Y, (3, 1)), grid=3, stream=7)
        self.app.synchronize(7)
        self.assertEqual(self.launch(), record)
        self.panic(record)
        self.assertEqual(self.raised().kernel, "saxpy")
        # Nor are those that the device was waited for.
        self.kernels.sums(Array(X, (3, 5)), Array(Y, (3, 1)), grid=3, stream=7)
        self.app.synchronize()
        self.panic(self.launch())
        self.panic(self.launch(stream=8))
        self.assertEqual([self.raised(None).kernel for _ in range(2)], ["saxpy", "saxpy"])

    def test_a_record_that_is_being_written_is_waited_for(self):
        record = self.launch()
        ctypes.c_uint32.from_address(record).value = 1
        threading.Timer(0.05, lambda: self.panic(record)).start()
        self.raised()

    def test_more_streams_than_records_get_more(self):
        records = {self.launch(stream) for stream in range(100, 140)}
        self.assertEqual(len(records), 40)
        for record in records:
            (alarm,) = struct.unpack("<Q", ctypes.string_at(record + 72, 8))
            self.assertNotEqual(alarm, 0)

    def test_each_kind_of_message_is_read(self):
        record = self.launch()
        self.panic(record, LANES, 0xFFFF, 0x00C0)
        self.assertEqual(self.raised().message, "the warp operation with mask 0x0000ffff needs lane 6, which is not there")
        text = ctypes.create_string_buffer(b"boom")
        self.panic(record, CONSTANT, ctypes.addressof(text), 4)
        self.assertEqual(self.raised().message, "boom")
        words = (ctypes.addressof(text), 4, (1 << 64) - 1)
        self.panic(record, MESSAGE, 0, 24, words)
        self.assertEqual(self.raised().message, "boom")

    def test_with_cudas_variable_a_launch_raises_its_own_panic(self):
        self.driver.on_launch = lambda launch: self.panic(launch.values("fQIQIQ")[-1])
        self.launch()
        self.raised()
        for value in ("0", "1"):
            os.environ["CUDA_LAUNCH_BLOCKING"] = value
            self.addCleanup(os.environ.pop, "CUDA_LAUNCH_BLOCKING", None)
            super().setUp()
            self.sizes("saxpy", 4, 8, 4, 8, 4, 8)
            self.driver.on_launch = lambda launch: self.panic(launch.values("fQIQIQ")[-1])
            if value == "0":
                self.launch()
        with self.assertRaises(self.app.KernelPanic):
            self.launch()

    def test_one_that_nothing_raised_is_printed_at_the_end(self):
        script = """
            import ctypes, fake
            from fake import Array
            import my_app
            from my_app._ferrogrid import driver
            driver._loaded = fake.Driver(driver.CudaError)
            entry = next(spec.entry for spec, _ in my_app.kernels._module._specs if spec.name == "saxpy")
            driver._loaded.sizes[entry] = (4, 8, 4, 8, 4, 8)
            my_app.kernels.saxpy(1.0, Array(1 << 40, (10,)), Array(1 << 41, (10,)), cover=10, stream=7)
            record = driver._loaded.launches[0].values("fQIQIQ")[-1]
            keep = fake.panic(record, 1, 7, 5, "src/lib.rs")
        """
        command = [sys.executable, "-B", "-c", textwrap.dedent(script)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        self.assertIn("error: kernel `saxpy` panicked at src/lib.rs:12:9", said)
        self.assertIn("call `synchronize()` of my_app before the results are used", said)


class Messages(Exported):
    def test_a_message_in_a_message_is_formatted(self):
        """The memory and the words of `host/src/backend/cuda/feedback/addresses.rs`."""
        from my_app._ferrogrid import message

        start, memory = 0x1000, bytearray(128)
        template = b"\x03is " + bytes([0xC3, 0x20, 0, 0, 0x60, 9, 0, 0xC0, 0xC0, 1]) + b"!\0"
        memory[: len(template)] = template
        for at, shape, trait, name in [(48, 1, 0, b"f32"), (72, 2, 1, b"[u16; 3]"), (96, 4, 0, b"core::fmt::Arguments")]:
            memory[at : at + 8] = struct.pack("<BBBBI", shape, 0, 0, trait, len(name))
            memory[at + 8 : at + 8 + len(name)] = name
        number = (start + 48, 4, struct.unpack("<I", struct.pack("<f", 1.5))[0])
        inner = (start, 18, 1, *number)
        nested = (start + 96, 8 * len(inner), *inner)
        words = (start, 18, 3, *number, start + 72, 6, 0x0003_0002_0001, *nested)
        read = lambda address, size: bytes(memory[address - start : address - start + size])
        self.assertEqual(message.message_of(read, words), "is       1.5[1, 2, 3]is       1.5<?><?>!!")
        self.assertEqual(message.message_of(lambda *_: None, words), "<a message that cannot be read>")

    def test_values_are_formatted_as_in_rust(self):
        """The Rust half of the test formats the same values."""
        from my_app._ferrogrid import message

        with open(os.environ["FORMATTED"]) as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 1000)
        for name, trait, data, flags, width, precision, expected in cases:
            options = message.Options(flags, width, precision)
            found = message._value(message.Argument(trait, name, bytes.fromhex(data)), options)
            self.assertEqual(found, expected, (name, trait, data, flags, width, precision))
