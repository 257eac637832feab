"""Messages of panics: the template of Rust's `core::fmt::Arguments` with the bytes of its arguments, as device code sends
them. This follows `host/src/output/message.rs` of Ferrogrid."""

from __future__ import annotations

import struct
from typing import Callable, List, NamedTuple, Optional, Tuple, Union

Read = Callable[[int, int], Optional[bytes]]

LITERAL = (1 << 64) - 1
OPAQUE, VALUE, TEXT, DYNAMIC, NESTED, SLICE = range(6)
TRAITS = ("Display", "Debug", "LowerHex", "UpperHex", "Binary", "Octal", "LowerExp", "UpperExp", "Pointer")
# The longest constant that is believed, and how deep messages are in each other: device code may have gone wrong.
LONGEST, DEEPEST, WIDEST = 1 << 16, 4, 0xFFFF

SIZES = {
    "u8": 1, "i8": 1, "bool": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "f32": 4, "char": 4,
    "u64": 8, "i64": 8, "usize": 8, "isize": 8, "f64": 8, "u128": 16, "i128": 16,
}  # fmt: skip


class Argument(NamedTuple):
    """A value of a message; without bytes only its type is known."""

    trait: str
    type: str
    data: Optional[bytes]


class Options(NamedTuple):
    """How a value is formatted."""

    flags: int = 0x6000_0020
    width: int = 0
    precision: Optional[int] = None

    def has(self, bit: int) -> bool:
        return bool(self.flags >> bit & 1)

    @property
    def plus(self) -> bool:
        return self.has(21)

    @property
    def alternate(self) -> bool:
        return self.has(23)


Item = Union[Argument, int]


def text_at(read: Read, address: int, length: int) -> str:
    """The text at a device address."""
    data = _bytes(read, address, length)
    return "<a text that cannot be read>" if data is None else data.decode(errors="replace")


def message_of(read: Read, words: Tuple[int, ...], depth: int = 0) -> str:
    """The message that device code has sent as these words."""
    if depth > DEEPEST:
        return "<a message that is too deep>"
    if len(words) < 3:
        return ""
    template, length, count = words[:3]
    if count == LITERAL:
        return text_at(read, template, length)
    data = _bytes(read, template, length)
    if data is None:
        return "<a message that cannot be read>"
    items: List[Item] = []
    rest = words[3:]
    while len(items) < count:
        found = _item(read, rest, depth)
        if found is None:
            break
        item, rest = found
        items.append(item)
    return formatted(data, items)


def _bytes(read: Read, address: int, length: int) -> Optional[bytes]:
    return b"" if length == 0 else read(address, min(length, LONGEST))


def _item(read: Read, words: Tuple[int, ...], depth: int) -> Optional[Tuple[Item, Tuple[int, ...]]]:
    """The argument that the words begin with, and the words after it."""
    if len(words) < 2:
        return None
    description, size = words[:2]
    if description == 0:
        return size, words[2:]
    count = (size + 7) // 8
    if len(words) < 2 + count:
        return None
    own, rest = words[2 : 2 + count], words[2 + count :]
    head = read(description, 8)
    if head is None:
        return None
    shape, _references, _size, trait, name_length = struct.unpack("<BBBBI", head)
    if shape == NESTED and size > 0:
        return Argument("Display", "str", message_of(read, own, depth + 1).encode()), rest
    value = struct.pack(f"<{count}Q", *own)[:size]
    name = text_at(read, description + 8, name_length)
    known = shape not in (OPAQUE, NESTED)
    trait_name = TRAITS[trait] if trait < len(TRAITS) else ""
    return Argument(trait_name, name, value if known else None), rest


class _Reader:
    """Reads a template from its start."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        if len(taken) < count:
            raise EOFError
        self.at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")


def formatted(template: bytes, items: List[Item]) -> str:
    """The message as text. Where the template is not as expected, the rest of it is left out."""
    out: List[str] = []
    reader, following = _Reader(template), 0
    try:
        while True:
            code = reader.number(1)
            if code == 0:
                break
            if code <= 0x80:
                length = reader.number(2) if code == 0x80 else code
                out.append(reader.take(length).decode(errors="replace"))
            else:
                options, following = _placeholder(code, reader, items, following)
                item = items[following] if following < len(items) else None
                out.append(_value(item, options) if isinstance(item, Argument) else "<?>")
                following += 1
    except EOFError:
        pass
    return "".join(out)


def _placeholder(code: int, reader: _Reader, items: List[Item], following: int) -> Tuple[Options, int]:
    """The options of a placeholder, and the number of its item."""

    def count(indirect: int) -> int:
        value = reader.number(2)
        if not code & indirect:
            return value
        item = items[value] if value < len(items) else None
        if not isinstance(item, int):
            raise EOFError
        return min(item, WIDEST)

    options = Options()
    if code & 1:
        flags = reader.number(4)
        # The lower bits are the fill character; 3 above bit 28 means no alignment.
        options = options._replace(flags=flags if flags & 0x1F_FFFF else flags | 0x20)
    if code & 2:
        options = options._replace(width=count(0x10))
    if code & 4:
        options = options._replace(precision=count(0x20))
    if code & 8:
        following = reader.number(2)
    return options, following


def _value(argument: Argument, options: Options) -> str:
    inner = argument.type[1:-1] if argument.type.startswith("[") and argument.type.endswith("]") else ""
    element = inner.split("; ")[0]
    if element in SIZES and argument.data is not None:
        size = SIZES[element]
        parts = [argument.data[at : at + size] for at in range(0, len(argument.data), size)]
        texts = [_value(Argument(argument.trait, element, part), options) for part in parts]
        if options.alternate and texts:
            return "[" + "".join(f"\n    {text}," for text in texts) + "\n]"
        return "[" + ", ".join(texts) + "]"
    found = _text(argument, options)
    return _padded(f"<{argument.type}>", False, options) if found is None else _padded(*found, options)


def _padded(text: str, is_number: bool, options: Options) -> str:
    missing = max(0, options.width - len(text))
    if is_number and options.has(24):
        sign = 1 if text[:1] in ("+", "-") else 0
        prefix = sign + (2 if text[sign : sign + 2] in ("0x", "0b", "0o") else 0)
        return text[:prefix] + "0" * missing + text[prefix:]
    alignment = options.flags >> 29 & 3
    before = {0: 0, 1: missing, 2: missing // 2}.get(alignment, missing if is_number else 0)
    fill = chr(options.flags & 0x1F_FFFF)
    return fill * before + text + fill * (missing - before)


def _text(argument: Argument, options: Options) -> Optional[Tuple[str, bool]]:
    """The value without padding, and whether it is a number."""
    data, name = argument.data, argument.type
    if data is None:
        return None
    debug = argument.trait == "Debug"
    if name == "str":
        text = data.decode(errors="replace")
        return ('"' + _escaped(text, '"') + '"' if debug else text[: options.precision]), False
    if len(data) != SIZES.get(name):
        return None
    if name == "bool":
        return ("false" if data == b"\0" else "true"), False
    if name == "char":
        code = int.from_bytes(data, "little")
        if code > 0x10_FFFF or 0xD800 <= code < 0xE000:
            return None
        return ("'" + _escaped(chr(code), "'") + "'" if debug else chr(code)), False
    if name in ("f32", "f64"):
        return _float(data, argument.trait, options), True
    return _integer(data, name.startswith("i"), argument.trait, options), True


def _escaped(text: str, quote: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\\": "\\\\", quote: "\\" + quote}
    return "".join(named.get(c, c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text)


def _integer(data: bytes, is_signed: bool, trait: str, options: Options) -> str:
    bits, value = int.from_bytes(data, "little"), int.from_bytes(data, "little", signed=is_signed)
    named = trait
    if trait == "Debug":
        trait = "LowerHex" if options.has(25) else "UpperHex" if options.has(26) else trait
    radix = {"LowerHex": "x", "UpperHex": "X", "Binary": "b", "Octal": "o", "Pointer": "x"}.get(trait)
    if radix is not None:
        has_prefix = named != "Debug" and (options.alternate or trait == "Pointer")
        prefix = f"0{radix.lower()}" if has_prefix else ""
        return ("+" if options.plus and value >= 0 else "") + prefix + format(bits, radix)
    sign = "-" if value < 0 else "+" if options.plus else ""
    if trait in ("LowerExp", "UpperExp"):
        return sign + _scientific(str(abs(value)).rstrip("0") or "0", len(str(abs(value))) - 1, trait, options)
    return sign + str(abs(value))


def _float(data: bytes, trait: str, options: Options) -> str:
    narrow = len(data) == 4
    value = struct.unpack("<f" if narrow else "<d", data)[0]
    if value != value:
        return "NaN"
    sign = "-" if data[-1] & 0x80 else "+" if options.plus else ""
    value = abs(value)
    if value == float("inf"):
        return sign + "inf"
    digits, exponent = _shortest(value, narrow)
    if trait in ("LowerExp", "UpperExp"):
        return sign + _scientific(digits, exponent, trait, options, value)
    if options.precision is not None:
        return sign + f"{value:.{options.precision}f}"
    if trait == "Debug" and value != 0 and not -4 <= exponent < 16:
        return sign + _scientific(digits, exponent, "LowerExp", options)
    return sign + _plain(digits, exponent, trait == "Debug")


def _shortest(value: float, narrow: bool) -> Tuple[str, int]:
    """The fewest digits that give the number again, and the exponent of the first."""
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if (_as_f32(float(text)) if narrow else float(text)) == value:
            break
    mantissa, exponent = text.split("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _as_f32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf")


def _plain(digits: str, exponent: int, has_point: bool) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole, part = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{part}" if part else whole + (".0" if has_point else "")


def _scientific(digits: str, exponent: int, trait: str, options: Options, value: Optional[float] = None) -> str:
    e = "e" if trait == "LowerExp" else "E"
    if options.precision is not None:
        text = f"{value if value is not None else float(digits) * 10.0 ** (exponent - len(digits) + 1):.{options.precision}e}"
        mantissa, shown = text.split("e")
        return f"{mantissa}{e}{int(shown)}"
    return digits[0] + ("." + digits[1:] if digits[1:] else "") + f"{e}{exponent}"
