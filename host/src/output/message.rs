//! Messages from device code that the host formats: from a template, as rustc encodes
//! `core::fmt::Arguments`, and the bytes of each argument.

use std::fmt::{self, Write};

use ferrogrid_device::message::{FormatTrait, scalar_bytes};

/// A value of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// The trait that formats it; `None` for one that the host does not know.
    pub(crate) of_trait: Option<FormatTrait>,
    /// The name of its type.
    pub(crate) ty: String,
    /// Its bytes; `None` if they are not known.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// An argument, or the width or precision of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Argument(Argument),
    Count(usize),
}

/// The greatest width and precision that `core::fmt` knows: with a greater one it panics.
const WIDEST: usize = u16::MAX as usize;

/// A message as long as this ends, but for the value that it is at: device code that has gone wrong may ask for any widths.
const LONGEST: usize = 1 << 22;

/// Formatting options, as the template has them.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    flags: Option<u32>,
    width: Option<usize>,
    precision: Option<usize>,
}

/// The message as text. Where the template is not as expected, the rest of it is left out.
pub(crate) fn format(template: &[u8], items: &[Item]) -> String {
    let mut out = String::new();
    let mut reader = Reader { bytes: template, at: 0 };
    let mut next = 0;
    while let Some(code) = reader.byte().filter(|_| out.len() < LONGEST) {
        let done = match code {
            0 => return out,
            1..0x80 => reader.text(usize::from(code), &mut out),
            0x80 => reader.short().and_then(|length| reader.text(length, &mut out)),
            _ => placeholder(code, &mut reader, items, &mut next, &mut out),
        };
        if done.is_none() {
            break;
        }
    }
    out
}

fn placeholder(
    code: u8,
    reader: &mut Reader<'_>,
    items: &[Item],
    next: &mut usize,
    out: &mut String,
) -> Option<()> {
    let mut options = Options::default();
    if code & 1 != 0 {
        options.flags = Some(reader.long()?);
    }
    let count = |value: usize, indirect: bool| match (indirect, items.get(value)) {
        (false, _) => Some(value),
        (true, Some(Item::Count(count))) => Some((*count).min(WIDEST)),
        (true, _) => None,
    };
    if code & 2 != 0 {
        options.width = count(reader.short()?, code & 0x10 != 0);
    }
    if code & 4 != 0 {
        options.precision = count(reader.short()?, code & 0x20 != 0);
    }
    if code & 8 != 0 {
        *next = reader.short()?;
    }
    match items.get(*next) {
        Some(Item::Argument(argument)) => argument.format(options, out),
        _ => out.push_str("<?>"),
    }
    *next += 1;
    Some(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn short(&mut self) -> Option<usize> {
        self.take(2).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    fn long(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn text(&mut self, length: usize, out: &mut String) -> Option<()> {
        let bytes = self.take(length)?;
        out.push_str(&String::from_utf8_lossy(bytes));
        Some(())
    }
}

impl Options {
    fn has(self, flag: u32) -> bool {
        self.flags.unwrap_or(0) & flag != 0
    }

    fn plus(self) -> bool {
        self.has(1 << 21)
    }

    fn alternate(self) -> bool {
        self.has(1 << 23)
    }

    fn zeros(self) -> bool {
        self.has(1 << 24)
    }

    fn fill(self) -> char {
        self.flags.and_then(|flags| char::from_u32(flags & 0x1f_ffff)).filter(|&c| c != '\0').unwrap_or(' ')
    }

    /// `text` in the width, which numbers fill from the left and texts from the right.
    fn pad(self, text: &str, is_number: bool, out: &mut String) {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        if is_number && self.zeros() {
            let prefix = sign_and_radix(text);
            out.push_str(&text[..prefix]);
            out.extend(std::iter::repeat_n('0', missing));
            return out.push_str(&text[prefix..]);
        }
        let alignment = self.flags.map_or(3, |flags| flags >> 29 & 3);
        let before = match alignment {
            0 => 0,
            1 => missing,
            2 => missing / 2,
            _ if is_number => missing,
            _ => 0,
        };
        out.extend(std::iter::repeat_n(self.fill(), before));
        out.push_str(text);
        out.extend(std::iter::repeat_n(self.fill(), missing - before));
    }
}

/// The bytes of a number before its digits: `-`, `+0x`.
fn sign_and_radix(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    let radix = ["0x", "0b", "0o"].iter().any(|radix| text[sign..].starts_with(radix));
    if radix { sign + 2 } else { sign }
}

impl Argument {
    fn format(&self, options: Options, out: &mut String) {
        if let Some(elements) = self.elements() {
            return list(&elements, options, out);
        }
        let Some((text, is_number)) = self.text(options) else {
            return options.pad(&format!("<{}>", self.ty), false, out);
        };
        options.pad(&text, is_number, out)
    }

    /// The elements of an array or a slice; `None` if it is none, or they are not known.
    fn elements(&self) -> Option<Vec<Argument>> {
        let inner = self.ty.strip_prefix('[')?.strip_suffix(']')?;
        let ty = inner.split_once("; ").map_or(inner, |(element, _)| element);
        let size = usize::from(scalar_bytes(ty)?);
        let element = |bytes: &[u8]| Argument {
            of_trait: self.of_trait,
            ty: ty.to_owned(),
            bytes: Some(bytes.to_vec()),
        };
        Some(self.bytes.as_deref()?.chunks(size).map(element).collect())
    }

    /// The value without padding, and whether it is a number.
    fn text(&self, options: Options) -> Option<(String, bool)> {
        let bytes = self.bytes.as_deref()?;
        let is_debug = self.of_trait == Some(FormatTrait::Debug);
        if self.ty == "str" {
            let text = String::from_utf8_lossy(bytes);
            let most = options.precision.unwrap_or(usize::MAX);
            let text = if is_debug { format!("{text:?}") } else { text.chars().take(most).collect() };
            return Some((text, false));
        }
        if bytes.len() != usize::from(scalar_bytes(&self.ty)?) {
            return None;
        }
        let text = match self.ty.as_str() {
            "bool" => return Some(((bytes != [0]).to_string(), false)),
            "char" => {
                let value = char::from_u32(u32::from_le_bytes(bytes.try_into().ok()?))?;
                return Some((if is_debug { format!("{value:?}") } else { value.to_string() }, false));
            }
            "f32" => float(f32::from_le_bytes(bytes.try_into().ok()?), self.of_trait, options),
            "f64" => float(f64::from_le_bytes(bytes.try_into().ok()?), self.of_trait, options),
            ty => integer(bytes, ty.starts_with('i'), self.of_trait, options),
        };
        text.map(|text| (text, true))
    }
}

/// As std's `debug_list`: each element with the options of the list, on a separate line in the alternate form.
fn list(elements: &[Argument], options: Options, out: &mut String) {
    let lines = options.alternate() && !elements.is_empty();
    out.push('[');
    for (number, element) in elements.iter().enumerate() {
        if out.len() >= LONGEST {
            break;
        }
        match (lines, number) {
            (true, _) => out.push_str("\n    "),
            (false, 0) => {}
            (false, _) => out.push_str(", "),
        }
        element.format(options, out);
        if lines {
            out.push(',');
        }
    }
    out.push_str(if lines { "\n]" } else { "]" });
}

/// The integer of these bytes, by each trait that integers have.
fn integer(bytes: &[u8], is_signed: bool, of_trait: Option<FormatTrait>, options: Options) -> Option<String> {
    use FormatTrait::*;
    let mut bits = [0; 16];
    bits[..bytes.len()].copy_from_slice(bytes);
    let bits = u128::from_le_bytes(bits);
    let above = 128 - 8 * bytes.len() as u32;
    let signed = (bits << above).cast_signed() >> above;
    let is_negative = is_signed && signed < 0;
    let magnitude = if is_negative { signed.unsigned_abs() } else { bits };
    let mut text = match (is_negative, options.plus()) {
        (true, _) => "-".to_owned(),
        (false, true) => "+".to_owned(),
        (false, false) => String::new(),
    };
    // These show the bits, of a negative number without its sign.
    let is_debug_hex = of_trait == Some(Debug) && (options.has(1 << 25) || options.has(1 << 26));
    if is_negative
        && (is_debug_hex || matches!(of_trait, Some(LowerHex | UpperHex | Binary | Octal | Pointer)))
    {
        text.clear();
    }
    let alternate = options.alternate();
    match of_trait {
        Some(LowerHex) if !alternate => write!(text, "{bits:x}"),
        Some(LowerHex | Pointer) => write!(text, "{bits:#x}"),
        Some(UpperHex) if alternate => write!(text, "{bits:#X}"),
        Some(UpperHex) => write!(text, "{bits:X}"),
        Some(Binary) if alternate => write!(text, "{bits:#b}"),
        Some(Binary) => write!(text, "{bits:b}"),
        Some(Octal) if alternate => write!(text, "{bits:#o}"),
        Some(Octal) => write!(text, "{bits:o}"),
        Some(LowerExp) => match options.precision {
            Some(precision) => write!(text, "{magnitude:.precision$e}"),
            None => write!(text, "{magnitude:e}"),
        },
        Some(UpperExp) => match options.precision {
            Some(precision) => write!(text, "{magnitude:.precision$E}"),
            None => write!(text, "{magnitude:E}"),
        },
        Some(Debug) if options.has(1 << 25) => write!(text, "{bits:x}"),
        Some(Debug) if options.has(1 << 26) => write!(text, "{bits:X}"),
        _ => write!(text, "{magnitude}"),
    }
    .ok()?;
    Some(text)
}

/// A floating-point number by each trait that those have.
fn float<T>(value: T, of_trait: Option<FormatTrait>, options: Options) -> Option<String>
where
    T: fmt::Display + fmt::Debug + fmt::LowerExp + fmt::UpperExp,
{
    use FormatTrait::*;
    let mut text = String::new();
    match (of_trait, options.precision) {
        (Some(LowerExp), Some(precision)) => write!(text, "{value:.precision$e}"),
        (Some(LowerExp), None) => write!(text, "{value:e}"),
        (Some(UpperExp), Some(precision)) => write!(text, "{value:.precision$E}"),
        (Some(UpperExp), None) => write!(text, "{value:E}"),
        (Some(Debug), Some(precision)) => write!(text, "{value:.precision$?}"),
        (Some(Debug), None) => write!(text, "{value:?}"),
        (_, Some(precision)) => write!(text, "{value:.precision$}"),
        (_, None) => write!(text, "{value}"),
    }
    .ok()?;
    if options.plus() && !text.starts_with('-') && text != "NaN" {
        text.insert(0, '+');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(ty: &str, of_trait: u8, bytes: &[u8]) -> Item {
        let of_trait = FormatTrait::from_number(of_trait);
        Item::Argument(Argument { of_trait, ty: ty.to_owned(), bytes: Some(bytes.to_vec()) })
    }

    /// A placeholder with flags, width and precision.
    fn placeholder(flags: Option<u32>, width: Option<u16>, precision: Option<u16>) -> Vec<u8> {
        let mut bytes = vec![0xc0];
        if let Some(flags) = flags {
            bytes[0] |= 1;
            bytes.extend(flags.to_le_bytes());
        }
        for (bit, value) in [(2, width), (4, precision)] {
            if let Some(value) = value {
                bytes[0] |= bit;
                bytes.extend(value.to_le_bytes());
            }
        }
        bytes.push(0);
        bytes
    }

    const SPACE: u32 = 0x20 | 3 << 29;

    #[test]
    fn pieces_and_arguments_come_in_order() {
        let template = [&[5][..], b"y is ", &[0xc0, 4], b" of ", &[0xc0, 0]].concat();
        let items = [argument("u32", 0, &7_u32.to_le_bytes()), argument("f64", 1, &2.0_f64.to_le_bytes())];
        assert_eq!(format(&template, &items), "y is 7 of 2.0");
        let long = [&[0x80, 3, 0][..], b"abc", &[0]].concat();
        assert_eq!(format(&long, &[]), "abc");
    }

    #[test]
    fn options_read_as_in_std() {
        let pi = core::f64::consts::PI;
        let one = |template: Vec<u8>, item: Item| format(&template, &[item]);
        let float = || argument("f64", 0, &pi.to_le_bytes());
        let seven = |of_trait| argument("i32", of_trait, &(-7_i32).to_le_bytes());
        assert_eq!(one(placeholder(None, Some(8), Some(3)), float()), format!("{pi:8.3}"));
        assert_eq!(one(placeholder(Some(SPACE | 1 << 21), None, Some(1)), float()), format!("{pi:+.1}"));
        assert_eq!(one(placeholder(Some(SPACE | 1 << 24), Some(6), None), seven(0)), format!("{:06}", -7));
        assert_eq!(one(placeholder(Some(SPACE), Some(5), None), seven(0)), format!("{:5}", -7));
        assert_eq!(one(placeholder(Some(0x2a), Some(5), None), seven(0)), format!("{:*<5}", -7));
        assert_eq!(one(placeholder(Some(0x2a | 2 << 29), Some(5), None), seven(0)), format!("{:*^5}", -7));
        assert_eq!(one(placeholder(Some(SPACE | 1 << 23), None, None), seven(2)), format!("{:#x}", -7));
        let padded = placeholder(Some(SPACE | 1 << 23 | 1 << 24), Some(12), None);
        assert_eq!(one(padded, seven(2)), format!("{:#012x}", -7));
        assert_eq!(
            one(placeholder(None, Some(4), None), argument("str", 0, b"ab")),
            format!("{:4}", "ab") + ""
        );
        assert_eq!(one(placeholder(None, None, Some(1)), argument("str", 0, b"ab")), "a");
        assert_eq!(one(placeholder(None, None, None), argument("str", 1, b"a\"")), format!("{:?}", "a\""));
        assert_eq!(one(placeholder(None, None, None), argument("char", 1, &[65, 0, 0, 0])), "'A'");
        assert_eq!(one(placeholder(None, None, None), argument("bool", 0, &[1])), "true");
    }

    /// The least and the greatest, and what is next to 0, of each type, by each trait.
    #[test]
    fn integers_of_all_sizes_read_as_in_std() {
        const PLUS: u32 = SPACE | 1 << 21;
        const ALTERNATE: u32 = SPACE | 1 << 23;
        macro_rules! check {
            ($($ty:ident)*) => { $(
                for value in [$ty::MIN, $ty::MIN + 1, <$ty>::MAX, 0, 1, <$ty>::MAX / 3] {
                    let shown = |flags: u32, of_trait: FormatTrait| {
                        let item = argument(stringify!($ty), of_trait as u8, &value.to_le_bytes());
                        format(&placeholder(Some(flags), None, None), &[item])
                    };
                    assert_eq!(shown(SPACE, FormatTrait::Display), format!("{value}"));
                    assert_eq!(shown(PLUS, FormatTrait::Display), format!("{value:+}"));
                    assert_eq!(shown(SPACE, FormatTrait::Debug), format!("{value:?}"));
                    assert_eq!(shown(SPACE | 1 << 25, FormatTrait::Debug), format!("{value:x?}"));
                    assert_eq!(shown(SPACE, FormatTrait::LowerHex), format!("{value:x}"));
                    assert_eq!(shown(ALTERNATE, FormatTrait::UpperHex), format!("{value:#X}"));
                    assert_eq!(shown(ALTERNATE, FormatTrait::Binary), format!("{value:#b}"));
                    assert_eq!(shown(SPACE, FormatTrait::Octal), format!("{value:o}"));
                    assert_eq!(shown(SPACE, FormatTrait::LowerExp), format!("{value:e}"));
                    assert_eq!(shown(PLUS, FormatTrait::UpperExp), format!("{value:+E}"));
                }
            )* };
        }
        check!(u8 u16 u32 u64 usize u128 i8 i16 i32 i64 isize i128);
    }

    #[test]
    fn arrays_and_slices_read_as_in_std() {
        let numbers = [1.5_f32, -2.0, 1e10];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let one = |flags, width, precision, ty: &str, bytes: &[u8]| {
            format(&placeholder(flags, width, precision), &[argument(ty, 1, bytes)])
        };
        assert_eq!(one(None, None, None, "[f32; 3]", &bytes), format!("{numbers:?}"));
        assert_eq!(one(Some(SPACE), Some(9), Some(2), "[f32]", &bytes), format!("{numbers:9.2?}"));
        assert_eq!(one(Some(SPACE | 1 << 23), None, None, "[f32]", &bytes), format!("{numbers:#?}"));
        assert_eq!(one(Some(SPACE | 1 << 23), None, None, "[u8]", &[]), "[]");
        assert_eq!(one(None, None, None, "[bool; 2]", &[1, 0]), format!("{:?}", [true, false]));
        assert_eq!(one(None, None, None, "[char]", &[65, 0, 0, 0]), "['A']");
        let opaque = Argument { of_trait: Some(FormatTrait::Debug), ty: "[u8; 300]".to_owned(), bytes: None };
        assert_eq!(format(&[0xc0, 0], &[Item::Argument(opaque)]), "<[u8; 300]>");
    }

    #[test]
    fn a_width_may_be_an_argument_and_arguments_may_be_numbered() {
        let template = [0xc0 | 2 | 8 | 0x10, 1, 0, 0, 0, 0];
        let items = [argument("u8", 0, &[9]), Item::Count(3)];
        assert_eq!(format(&template, &items), "  9");
    }

    #[test]
    fn unknown_values_are_shown_by_their_type() {
        let opaque = Item::Argument(Argument {
            of_trait: Some(FormatTrait::Debug),
            ty: "app::Point".to_owned(),
            bytes: None,
        });
        assert_eq!(format(&[2, b'p', b'=', 0xc0, 0], &[opaque]), "p=<app::Point>");
        assert_eq!(format(&[0xc0, 0], &[]), "<?>");
        assert_eq!(format(&[9, b'x'], &[]), "", "a template that is cut off");
    }
}
