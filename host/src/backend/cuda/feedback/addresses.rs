//! Reads the constants of modules to which device addresses in messages point.

use ferrogrid_device::message::{
    ArgumentHead, Description, FormatTrait, LITERAL, MessageHead, NESTED, OPAQUE,
};

use super::super::device::CudaDevice;
use crate::output::message::{self, Argument, Item};

/// The longest constant that is believed: device code that has gone wrong may have written any length.
const LONGEST: u64 = 1 << 16;

/// How deep messages are believed to be in each other, for the same reason: the device sends one in another, no deeper.
const DEEPEST: usize = 4;

/// Memory that addresses of a device lead to.
pub(super) trait Source {
    /// Fills `bytes` with what is at `address`; `false` if it cannot be read.
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool;
}

impl Source for CudaDevice {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        // SAFETY: `bytes` is as long as stated; a wrong address is an error of the call.
        let code = unsafe { self.driver().read_now(bytes.as_mut_ptr().cast(), address, bytes.len()) };
        code.is_success()
    }
}

/// `length` bytes at a device address.
fn bytes(device: &impl Source, address: u64, length: u64) -> Option<Vec<u8>> {
    if length == 0 {
        return Some(Vec::new());
    }
    let mut bytes = vec![0_u8; usize::try_from(length.min(LONGEST)).ok()?];
    device.read(address, &mut bytes).then_some(bytes)
}

/// The text at a device address.
pub(super) fn text(device: &impl Source, address: u64, length: u64) -> String {
    match bytes(device, address, length) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => "<a text that cannot be read>".to_owned(),
    }
}

/// The message that device code has sent as these words.
pub(super) fn message(device: &impl Source, words: &[u64]) -> String {
    message_inside(device, words, 0)
}

/// A message that is `depth` messages deep in another.
fn message_inside(device: &impl Source, words: &[u64], depth: usize) -> String {
    if depth > DEEPEST {
        return "<a message that is too deep>".to_owned();
    }
    let [template, length, arguments, rest @ ..] = words else { return String::new() };
    let head = MessageHead { template: *template, length: *length, arguments: *arguments };
    if head.arguments == LITERAL {
        return text(device, head.template, head.length);
    }
    let Some(template) = bytes(device, head.template, head.length) else {
        return "<a message that cannot be read>".to_owned();
    };
    let mut items = Vec::new();
    let mut rest = rest;
    for _ in 0..head.arguments {
        let Some((item, after)) = item(device, rest, depth) else { break };
        items.push(item);
        rest = after;
    }
    message::format(&template, &items)
}

/// The argument that `words` begin with, and the words after it.
fn item<'a>(device: &impl Source, words: &'a [u64], depth: usize) -> Option<(Item, &'a [u64])> {
    let [description, length, rest @ ..] = words else { return None };
    let head = ArgumentHead { description: *description, length: *length };
    if head.description == 0 {
        return Some((Item::Count(usize::try_from(head.length).ok()?), rest));
    }
    let size = usize::try_from(head.length).ok()?;
    let (words, rest) = rest.split_at_checked(size.div_ceil(8))?;
    let described = description_at(device, head.description)?;
    if described.shape == NESTED && size > 0 {
        let bytes = Some(message_inside(device, words, depth + 1).into_bytes());
        let of_trait = Some(FormatTrait::Display);
        return Some((Item::Argument(Argument { of_trait, ty: "str".to_owned(), bytes }), rest));
    }
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(size).collect();
    let name = text(
        device,
        head.description.wrapping_add(size_of::<Description>() as u64),
        described.name_length.into(),
    );
    let is_known = ![OPAQUE, NESTED].contains(&described.shape);
    let bytes = is_known.then_some(value);
    let of_trait = FormatTrait::from_number(described.of_trait);
    Some((Item::Argument(Argument { of_trait, ty: name, bytes }), rest))
}

fn description_at(device: &impl Source, address: u64) -> Option<Description> {
    let bytes = bytes(device, address, size_of::<Description>() as u64)?;
    bytes.try_into().ok().map(Description::from_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use ferrogrid_device::message::{TEXT, VALUE};

    use super::*;

    /// Where the memory of tests begins.
    pub(in super::super) const START: u64 = 0x1000;

    impl Source for [u8] {
        fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
            let start = address.checked_sub(START).and_then(|start| usize::try_from(start).ok());
            let found = start.and_then(|start| self.get(start..start.checked_add(bytes.len())?));
            found.map(|found| bytes.copy_from_slice(found)).is_some()
        }
    }

    impl Source for Vec<u8> {
        fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
            self.as_slice().read(address, bytes)
        }
    }

    /// The bytes of memory among the bytes of an input; words follow.
    pub(in super::super) const MEMORY: usize = 128;

    /// Device memory with templates at 0 and 24, descriptions at 48, 72 and 96.
    pub(in super::super) fn memory() -> Vec<u8> {
        let mut memory = vec![0; MEMORY];
        let template =
            [&[3][..], b"is ", &[0xc3, 0x20, 0, 0, 0x60, 9, 0, 0xc0, 0xc0, 1], b"!", &[0]].concat();
        memory[..template.len()].copy_from_slice(&template);
        // Width and precision are the items before the value.
        memory[24..32].copy_from_slice(&[0xfe, 0, 0, 1, 0, 2, 0, 0]);
        for (at, shape, of_trait, name) in
            [(48, VALUE, 0, "f32"), (72, TEXT, 1, "[u16; 3]"), (96, NESTED, 0, "core::fmt::Arguments")]
        {
            memory[at] = shape;
            memory[at + 3] = of_trait;
            memory[at + 4] = name.len() as u8;
            memory[at + 8..at + 8 + name.len()].copy_from_slice(name.as_bytes());
        }
        memory
    }

    /// A message of a number, a list, and a message of a number; the words after it.
    pub(in super::super) fn words() -> Vec<u64> {
        let number = [START + 48, 4, u64::from(1.5_f32.to_bits())];
        let inner = [&[START, 18, 1][..], &number].concat();
        let list = [START + 72, 6, 0x0003_0002_0001];
        let nested = [&[START + 96, 8 * inner.len() as u64][..], &inner].concat();
        [&[START, 18, 3][..], &number, &list, &nested].concat()
    }

    /// Memory and words of an input.
    pub(in super::super) fn split(bytes: &[u8]) -> (Vec<u8>, Vec<u64>) {
        let (memory, rest) = bytes.split_at(bytes.len().min(MEMORY));
        (memory.to_vec(), rest.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn joined(words: &[u64]) -> Vec<u8> {
        [memory(), words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
    }

    #[test]
    fn fuzz_messages() {
        assert_eq!(message(&memory(), &words()), "is       1.5[1, 2, 3]is       1.5<?><?>!!");
        // A message in a message in a message.
        let deep = (0..100).fold(Vec::new(), |inner: Vec<u64>, _| {
            [&[START, 18, 1, START + 96, 8 * inner.len() as u64], inner.as_slice()].concat()
        });
        assert!(message(&memory(), &deep).contains("too deep"));
        let literal = [START + 1, 3, LITERAL];
        let counts = [START + 24, 8, 3, 0, 6, 0, 2, START + 48, 4, u64::from(1.5_f32.to_bits())];
        assert_eq!(message(&memory(), &counts), "  1.50");
        let seeds = [joined(&words()), joined(&literal), joined(&deep), joined(&counts)];
        crate::fuzz::survive(&seeds, |bytes| {
            let (memory, words) = split(bytes);
            drop(message(&memory, &words));
        });
    }
}
