"""Panics of kernels: the records in which threads report them, and how they become exceptions.

Each stream has a record, which its launches pass to kernels that may panic. A panic is raised by `synchronize`, or by the
next launch of such a kernel on the stream; one that nothing has raised is printed when the process ends."""

from __future__ import annotations

import atexit
import ctypes
import struct
import sys
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from . import message
from .driver import DEFAULT_STREAMS, CudaError, Driver, driver

FREE, CLAIMED, COMPLETE = range(3)
BOUNDS, CONSTANT, MESSAGE, LANES = 1, 2, 3, 4
# The fields of `FailureRecord` before its message: state, kind, block, thread, line and column; file, its length, two values
# of the message, and the address of the count of threads that ended early.
HEAD = struct.Struct("<10I5Q")
ALARM = 72
MESSAGE_BYTES = 4096
RECORD_BYTES = HEAD.size + MESSAGE_BYTES
RECORDS = 16


class Place(NamedTuple):
    """A kernel, and where it is in Rust."""

    name: str
    file: str
    first_line: int
    last_line: int

    def has(self, file: str, line: int) -> bool:
        """Whether a line is one of the kernel itself; a panic may be in a function that it calls, too."""
        name = file.replace("\\", "/").rpartition("/")[2]
        return name == self.file and self.first_line <= line <= self.last_line


class KernelPanic(RuntimeError):
    """A thread of a kernel panicked. Others may have, too: this is the first of the stream. The device remains usable."""

    def __init__(
        self,
        kernel: str,
        text: str,
        file: str,
        line: int,
        column: int,
        block: Tuple[int, ...],
        thread: Tuple[int, ...],
    ) -> None:
        super().__init__(
            f"kernel `{kernel}` panicked at {file}:{line}:{column} in block {block}, thread {thread}: {text}"
        )
        #: The name of the kernel; of several, joined by "or", if the panic is outside of them and any may be it.
        self.kernel = kernel
        #: The message, as Rust formats it.
        self.message = text
        #: The source file.
        self.file = file
        #: The line in it, and the column.
        self.line, self.column = line, column
        #: The indices of the block in the grid and of the thread in the block, x first.
        self.block, self.thread = block, thread

    def __reduce__(self) -> Any:
        place = (self.kernel, self.message, self.file, self.line, self.column, self.block, self.thread)
        return KernelPanic, place


class Record:
    """A record, in host memory that the device writes to."""

    def __init__(self, host: int, address: int, alarm: int) -> None:
        #: Its address for device code.
        self.address = address
        #: The kernels launched with it since its stream was last waited for.
        self.kernels: Set[Place] = set()
        self._host = host
        #: Its state is the first number; each launch looks at it.
        self.state = (ctypes.c_uint32 * 1).from_address(host)
        ctypes.c_uint64.from_address(host + ALARM).value = alarm

    def take_kernels(self) -> Set[Place]:
        """The kernels so far; those of later launches are another set."""
        kernels, self.kernels = self.kernels, set()
        return kernels

    def take(self, read: message.Read, kernels: Set[Place]) -> Optional[KernelPanic]:
        """The panic in it, after all work that was given it has run, which was that of `kernels`; it is free afterwards."""
        patience = time.monotonic() + 5.0
        while self.state[0] == CLAIMED and time.monotonic() < patience:
            time.sleep(0)  # another stream's thread is writing
        if self.state[0] != COMPLETE:
            return None
        panic = self._read(read, kernels | self.kernels)
        self.state[0] = FREE
        return panic

    def _read(self, read: message.Read, kernels: Set[Place]) -> KernelPanic:
        data = ctypes.string_at(self._host, RECORD_BYTES)
        head = HEAD.unpack_from(data)
        kind, line, column = head[1], head[8], head[9]
        file, file_length, first, second = head[10:14]
        if kind == BOUNDS:
            text = f"index out of bounds: the len is {second} but the index is {first}"
        elif kind == LANES:
            lane = (second & -second).bit_length() - 1
            text = f"the warp operation with mask {first:#010x} needs lane {lane}, which is not there"
        elif kind == MESSAGE:
            words = struct.unpack_from(f"<{min(second, MESSAGE_BYTES) // 8}Q", data, HEAD.size)
            text = message.message_of(read, words)
        else:
            text = message.text_at(read, first, second)
        path = message.text_at(read, file, file_length)
        names = {place.name for place in kernels if place.has(path, line)} or {place.name for place in kernels}
        kernel = " or ".join(sorted(names)) or "(unknown)"
        return KernelPanic(kernel, text, path, line, column, head[2:5], head[5:8])


class Records:
    """The records of a device, by stream."""

    def __init__(self, device: int) -> None:
        self.device = device
        #: Those in use. A stream that is destroyed leaves its record to the next one of that handle.
        self.by_stream: Dict[int, Record] = {}
        self._free: List[Record] = []
        self._lock = threading.Lock()
        # Ahead of the first launch, since a capturing stream forbids allocations.
        self._allocate()

    def of(self, stream: int) -> Record:
        """The record of a stream."""
        with self._lock:
            record = self.by_stream.get(stream)
            if record is None:
                if not self._free:
                    self._allocate()
                record = self.by_stream[stream] = self._free.pop()
            return record

    def _allocate(self) -> None:
        calls = driver()
        with calls.within(self.device):
            host, address = calls.allocate_mapped(RECORDS * RECORD_BYTES)
            alarms = calls.allocate_zeros(RECORDS * 8)
        offsets = [number * RECORD_BYTES for number in range(RECORDS)]
        self._free += [Record(host + at, address + at, alarms + 8 * n) for n, at in enumerate(offsets)]

    def wait(self, stream: int) -> None:
        """Waits for a stream, and raises its panic."""
        calls = driver()
        record = self.by_stream.get(stream)
        kernels = record.take_kernels() if record is not None else set()
        if stream in DEFAULT_STREAMS:
            with calls.within(self.device):
                calls.synchronize_stream(stream)
        else:
            calls.synchronize_stream(stream)
        if record is not None:
            self._raise(record, kernels)

    def wait_for_all(self) -> None:
        """Waits for the device, and raises one panic of its streams; the others stay for the next call."""
        calls = driver()
        given = [(record, record.take_kernels()) for record in list(self.by_stream.values())]
        with calls.within(self.device):
            calls.synchronize_device()
        panicked = [(record, kernels) for record, kernels in given if record.state[0] != FREE]
        for record, kernels in panicked[1:]:
            record.kernels |= kernels
        for record, kernels in panicked[:1]:
            self._raise(record, kernels)

    def _raise(self, record: Record, kernels: Set[Place]) -> None:
        """Raises the panic in a record, if there is one."""
        if record.state[0] == FREE:
            return
        calls = driver()
        with calls.within(self.device):
            panic = record.take(calls.read, kernels)
        if panic is not None:
            raise panic


_records: Dict[int, Records] = {}
_making = threading.Lock()


def records_of(device: int) -> Records:
    """The records of a device, made by the first call."""
    with _making:
        known = _records.get(device)
        if known is None:
            if not _records:
                atexit.register(_report)
            known = _records[device] = Records(device)
        return known


def wait(stream: Optional[int]) -> None:
    """Waits for a stream, or for all devices that this package has used, and raises a panic of their kernels."""
    if stream is None:
        for records in list(_records.values()):
            records.wait_for_all()
        return
    users = [records for records in list(_records.values()) if stream in records.by_stream]
    for records in users:
        records.wait(stream)
    if not users:
        _wait_unused(driver(), stream)


def _wait_unused(calls: Driver, stream: int) -> None:
    """Waits for a stream on which nothing that may panic was launched."""
    if stream in DEFAULT_STREAMS and calls.current_device() is None:
        return  # A thread without a context has no default stream.
    calls.synchronize_stream(stream)


def _report() -> None:
    """Prints the panics that nothing has raised, when the process ends."""
    for records in _records.values():
        while True:
            try:
                records.wait_for_all()
            except KernelPanic as panic:
                print(
                    f"error: {panic}\n  nothing raised it: call `synchronize()` of {__package__.rpartition('.')[0]} "
                    "before the results are used",
                    file=sys.stderr,
                )
                continue
            except CudaError:
                pass  # The driver has ended before, or the device has failed, which other calls have reported.
            break
