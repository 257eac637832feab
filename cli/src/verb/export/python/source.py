"""The text of a launch function: straight code for the parameters of one kernel. `launch.py` compiles it.

Its names begin with two underscores, also those that it takes from elsewhere: a parameter of a kernel may be called
`type`, but its name does not begin so."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

from .module import In, Out, Shared, Spec, Value

U32 = 0xFFFF_FFFF
MAX_BLOCKS = 0x7FFF_FFFF
#: What each launch calls, of the kernel on its device.
FUNCTION = "__launch, __pointer = __loaded.launch, __loaded.pointer"
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "size": 8, "bool": 1}


def size_of(dtype: str) -> int:
    """The bytes of a number of Rust."""
    return SIZES["bool" if dtype == "bool" else dtype.lstrip("iubf")]


class Writer:
    """Lines of the function, in the order of its steps."""

    def __init__(self, spec: Spec, block: Tuple[int, int, int]) -> None:
        self.spec, self.block = spec, block
        self.arrays: List[Any] = [it for it in spec.parameters if isinstance(it, (In, Out))]
        self.lines: List[str] = []

    def add(self, *lines: str, depth: int = 1) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def extents(self, number: int) -> List[str]:
        """The names of the extents of an array, x first."""
        return [f"__n{number}_{axis}" for axis in range(self.arrays[number].rank)]

    def head(self) -> None:
        names = [it.name for it in self.spec.parameters]
        launch = [] if self.spec.elements else ["cover=None", "grid=None", "block=None"]
        self.add(f"def launch({', '.join([*names, '*', *launch, 'stream=None'])}):", depth=0)

    def read(self) -> None:
        """The address and the extents of each array, the stream, and the kernel on its device."""
        names = [name for n in range(len(self.arrays)) for name in (f"__p{n}", *self.extents(n))]
        given = "".join(f"{it.name}, " for it in self.arrays)
        targets = ", ".join(["__loaded", "__stream", "__keep", *names])
        if not self.arrays:
            self.add(f"{targets} = __CALL.read((), stream)", FUNCTION)
            return
        cupy = [condition for it in self.arrays for condition in self._is_plain_cupy(it)]
        # Only arrays of CuPy have all these attributes. Until there is a short path, what these compare with is no type.
        self.add("try:", f"    __short = {' and '.join(cupy)}", "except AttributeError:", "    __short = False")
        self._short_path("if __short:", "{}.data.ptr", "{}.size", "__cupy_stream().ptr")
        torch = [condition for it in self.arrays for condition in self._is_plain_torch(it)]
        self._short_path(f"elif {' and '.join(torch)}:", "{}.data_ptr()", "{}.numel()", "__torch_stream(0)")
        # Not every byte is a bool.
        if all(it.rank == 1 and it.dtype != "bool" for it in self.arrays):
            buffers = [condition for it in self.arrays for condition in self._is_plain_buffer(it)]
            condition = " and ".join(["stream is not None", *buffers])
            self._short_path(f"elif {condition}:", "__int({}.handle)", "{}.size", "0")
        self.add("else:", f"    {targets} = __CALL.read(({given}), stream)", f"    {FUNCTION}")

    def _short_path(self, condition: str, address: str, length: str, current: str) -> None:
        """What is read of arrays of one library, where the condition holds."""
        self.add(condition)
        for number, it in enumerate(self.arrays):
            self.add(f"__p{number} = {address.format(it.name)}", depth=2)
            if "handle" in address:
                self.add(f"__n{number}_0 = {length.format(it.name)} // {self._bytes(it)}", depth=2)
            else:
                self.add(self._extents_of(number, it, length.format(it.name)), depth=2)
        self.add(
            "__loaded, __launch, __pointer = __SHORT",
            "if stream is None:",
            f"    __stream = {current}",
            "elif __type(stream) is __int and stream >= 0:",
            "    __stream = stream",
            "else:",
            "    __stream = __stream_handle(stream)",
            depth=2,
        )

    def _is_plain_cupy(self, it: Any) -> List[str]:
        """What holds of a CuPy array with which nothing is wrong."""
        conditions = [f"{it.name}.dtype is __cupy_{it.dtype}", f"{it.name}.ndim == {self._dimensions(it)}"]
        conditions += [f"{it.name}._c_contiguous", *self._limits(it, f"{it.name}.data.ptr", f"{it.name}.size")]
        return conditions

    def _is_plain_torch(self, it: Any) -> List[str]:
        """What holds of a tensor with which nothing is wrong."""
        conditions = [f"__type({it.name}) is __TENSOR", f"{it.name}.dtype is __torch_{it.dtype}"]
        conditions += [f"{it.name}.ndim == {self._dimensions(it)}", f"{it.name}.is_contiguous()", f"{it.name}.is_cuda"]
        conditions.append(f"not {it.name}.requires_grad")
        return conditions + self._limits(it, f"{it.name}.data_ptr()", f"{it.name}.numel()")

    def _is_plain_buffer(self, it: Any) -> List[str]:
        """What holds of a buffer of cuda.core with which nothing is wrong."""
        conditions = [f"__type({it.name}) is __BUFFER", f"{it.name}.is_device_accessible"]
        if self._bytes(it) > 1:
            conditions.append(f"not {it.name}.size % {self._bytes(it)}")
        if it.align > 1:
            conditions.append(f"not __int({it.name}.handle) & {it.align - 1}")
        return conditions

    def _bytes(self, it: Any) -> int:
        """The size of an element."""
        return size_of(it.dtype) * (int(it.array) or 1)

    def _dimensions(self, it: Any) -> int:
        return int(it.rank) + (1 if it.array else 0)

    def _limits(self, it: Any, address: str, size: str) -> List[str]:
        conditions = []
        if it.array:
            conditions.append(f"{it.name}.shape[-1] == {it.array}")
        if it.align > size_of(it.dtype):
            conditions.append(f"not {address} & {it.align - 1}")
        # The product of the extents; the packing of each refuses longer ones.
        if it.rank > 1 and not self.spec.wide:
            conditions.append(f"0 < {size} <= {U32}")
        return conditions

    def _extents_of(self, number: int, it: Any, length: str) -> str:
        if it.rank == 1 and not it.array:
            return f"__n{number}_0 = {length}"
        targets = ", ".join(reversed(self.extents(number)))
        return f"{targets}{', _' if it.array else ','} = {it.name}.shape"

    def check_memory(self) -> None:
        """No array that is written overlaps another; atomics may share memory with each other."""
        pairs = [
            (one, other)
            for one in range(len(self.arrays))
            for other in range(one)
            if self._conflict(self.arrays[one], self.arrays[other])
        ]
        for number in sorted({number for pair in pairs for number in pair}):
            size = self._bytes(self.arrays[number])
            self.add(f"__e{number} = __p{number} + {self._count(number)} * {size}")
        for one, other in pairs:
            first, second = self.arrays[other].name, self.arrays[one].name
            self.add(f"if __p{one} < __e{other} and __p{other} < __e{one}:")
            self.add(f"    __CALL.overlap({first!r}, {self._count(other)}, {second!r}, {self._count(one)})")

    def _count(self, number: int) -> str:
        return " * ".join(self.extents(number))

    def _conflict(self, one: Any, other: Any) -> bool:
        if isinstance(one, Out) or isinstance(other, Out):
            return True
        return bool(one.atomic) != bool(other.atomic)

    def check_shapes(self) -> None:
        numbers = {it.name: number for number, it in enumerate(self.arrays)}
        for first, *others in self.spec.same_shape:
            for other in others:
                one, two = (", ".join(self.extents(numbers[name])) for name in (first, other))
                self.add(f"if ({one},) != ({two},):", f"    __CALL.same_shape({first!r}, ({one},), {other!r}, ({two},))")

    def shape(self, slices: bool) -> None:
        """The blocks along x, and the rest of the shape: bytes that are made ahead for the usual block."""
        x, y, z = self.block
        usual = ["__rest = __REST"]
        if slices or any(isinstance(it, Out) and it.tile for it in self.arrays):
            usual.append(f"__gy, __gz, __bx, __by, __bz = 1, 1, {x}, {y}, {z}")
        if self.spec.elements:
            first, tile = self.spec.elements
            number = next(number for number, it in enumerate(self.arrays) if it.name == first)
            self.add(f"__gx = ({self._count(number)} + {tile - 1}) // {tile}", *usual)
            self.add("if not __gx:", "    return")
            self.add(f"if __gx > {min(MAX_BLOCKS, U32 // (x * y * z))}:")
            self.add("    __CALL.shape(None, __gx, None, __loaded.limits)")
            return
        depth = 1
        if self.spec.rank == 1:
            most = min(MAX_BLOCKS * x, U32 // x * x)
            self.add(f"if __type(cover) is __int and grid is None and block is None and 0 < cover <= {most}:")
            self.add(f"__gx = (cover + {x - 1}) // {x}", *usual, depth=2)
            self.add("else:")
            depth = 2
        self.add(
            "__gx, __gy, __gz, __bx, __by, __bz = __CALL.shape(cover, grid, block, __loaded.limits)",
            "if not (__gx and __gy and __gz):",
            "    return",
            f"__rest = __SHAPE(__gy, __gz, __bx, __by, __bz, {self.spec.shared})",
            depth=depth,
        )

    def check_blocks(self) -> None:
        """Each block has a part of the outputs that belong to blocks."""
        for number, it in enumerate(self.arrays):
            tile = it.tile if isinstance(it, Out) else None
            if tile == ():
                self._check_parts(it.name, "__gx", f"__n{number}_1", "x")
            for axis, extent in enumerate(tile or ()):
                parts = f"-(-__n{number}_{axis} // {extent})"
                self._check_parts(it.name, f"__g{'xyz'[axis]}", parts, "xyz"[axis])

    def _check_parts(self, name: str, blocks: str, parts: str, axis: str) -> None:
        self.add(f"if {blocks} > {parts}:", f"    __CALL.too_few_parts({name!r}, {blocks}, {parts}, {axis!r})")

    def values(self) -> None:
        """Numbers that are no plain ones for `struct`."""
        for it in self.spec.parameters:
            if isinstance(it, Value) and it.dtype == "bool":
                self.add(f"if {it.name} is not True and {it.name} is not False:")
                self.add(f"    {it.name} = __CALL.boolean({it.name!r}, {it.name})")
            elif isinstance(it, Value) and it.dtype == "bf16":
                self.add(f"{it.name} = __CALL.bfloat16({it.name!r}, {it.name})")

    def shared(self, slices: Sequence[Shared]) -> None:
        """The bytes of shared memory: the regions of static size, then each slice at a multiple of 16."""
        self.add(f"__shared = {self.spec.shared}")
        for number, it in enumerate(slices):
            self.add(
                f"__o{number} = __shared",
                f"{it.name} = __CALL.shared_length({it.name!r}, {it.name})",
                f"__shared = (__shared + {it.name} * {it.size} + 15) // 16 * 16",
            )
        self.add("if __shared > __loaded.limits.shared:")
        self.add("    __CALL.too_much_shared(__shared, __loaded.limits)")
        self.add("__rest = __SHAPE(__gy, __gz, __bx, __by, __bz, __shared)")

    def record(self) -> None:
        """The record of panics of the stream; a panic of earlier work is raised first."""
        if self.spec.may_panic:
            self.add(
                "__record = __loaded.records.by_stream.get(__stream) or __loaded.records.of(__stream)",
                "if __record.state[0]:",
                "    __CALL.raise_pending(__loaded, __record, __stream)",
                "__record.kernels.add(__PLACE)",
            )

    def launch(self, blocking: bool) -> None:
        arguments = ["__gx", "__rest", "__stream", "__ATTRIBUTES", *self._packed()]
        values = ", ".join(f"{it.name!r}: {it.name}" for it in self.spec.parameters if isinstance(it, Value))
        lengths = ", ".join(f"{it.name!r}: {self._count(number)}" for number, it in enumerate(self.arrays))
        self.add(
            # Another thread may take the last slot between a test and this.
            "try:",
            "    __slot = __SLOTS.pop()",
            "except IndexError:",
            "    __slot = __new_slot()",
            "__buffer, __params = __slot",
            "try:",
            f"    __PACK(__buffer, 0, {', '.join(arguments)})",
            "except __PACKING_ERRORS:",
            f"    __CALL.wrong_values({{{values}}}, {{{lengths}}})",
            "__code = __launch(__buffer, __pointer, __params, None)",
            "if __code:",
            "    __CALL.failed(__code, __loaded, __buffer, __params)",
            "__SLOTS.append(__slot)",
        )
        if blocking:
            self.add("__loaded.records.wait(__stream)")

    def _packed(self) -> Sequence[str]:
        packed: List[str] = []
        number, slices = 0, 0
        for it in self.spec.parameters:
            if isinstance(it, Value):
                packed.append(it.name)
            elif isinstance(it, Shared):
                packed += [f"__o{slices}", it.name]
                slices += 1
            else:
                packed += [f"__p{number}", *self.extents(number)]
                number += 1
        return [*packed, "__record.address"] if self.spec.may_panic else packed


def launch_source(spec: Spec, block: Tuple[int, int, int], blocking: bool) -> str:
    """The text of the function `launch`."""
    writer = Writer(spec, block)
    slices = [it for it in spec.parameters if isinstance(it, Shared)]
    writer.head()
    writer.read()
    writer.check_memory()
    writer.check_shapes()
    writer.shape(bool(slices))
    writer.check_blocks()
    writer.values()
    if slices:
        writer.shared(slices)
    writer.record()
    writer.launch(blocking)
    return "\n".join(writer.lines) + "\n"
