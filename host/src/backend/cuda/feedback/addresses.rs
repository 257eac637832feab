//! Reading of what device addresses lead to: the constants of modules that messages name. It must not
//! know what is read.

use ferrogrid_device::message::{ArgumentHead, Description, LITERAL, MessageHead, NESTED, OPAQUE};

use super::super::device::CudaDevice;
use crate::message::{self, Argument, Item};

/// The number of `core::fmt::Display`, as the build step counts traits.
const DISPLAY: u8 = 0;

/// The longest constant that is believed: device code that has gone wrong may have written any length.
const LONGEST: u64 = 1 << 16;

/// `length` bytes at a device address.
pub(super) fn bytes(device: &CudaDevice, address: u64, length: u64) -> Option<Vec<u8>> {
    if length == 0 {
        return Some(Vec::new());
    }
    let mut bytes = vec![0_u8; usize::try_from(length.min(LONGEST)).ok()?];
    // SAFETY: `bytes` is as long as stated; a wrong address is an error of the call.
    let code = unsafe { device.driver().read_now(bytes.as_mut_ptr().cast(), address, bytes.len()) };
    code.is_success().then_some(bytes)
}

/// The text at a device address.
pub(super) fn text(device: &CudaDevice, address: u64, length: u64) -> String {
    match bytes(device, address, length) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => "<a text that cannot be read>".to_owned(),
    }
}

/// The message that device code has sent as these words.
pub(super) fn message(device: &CudaDevice, words: &[u64]) -> String {
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
        let Some((item, after)) = item(device, rest) else { break };
        items.push(item);
        rest = after;
    }
    message::format(&template, &items)
}

/// The argument that `words` begin with, and the words after it.
fn item<'a>(device: &CudaDevice, words: &'a [u64]) -> Option<(Item, &'a [u64])> {
    let [description, length, rest @ ..] = words else { return None };
    let head = ArgumentHead { description: *description, length: *length };
    if head.description == 0 {
        return Some((Item::Count(usize::try_from(head.length).ok()?), rest));
    }
    let size = usize::try_from(head.length).ok()?;
    let (words, rest) = rest.split_at_checked(size.div_ceil(8))?;
    let described = description_at(device, head.description)?;
    if described.shape == NESTED && size > 0 {
        let bytes = Some(message(device, words).into_bytes());
        return Some((Item::Argument(Argument { of_trait: DISPLAY, ty: "str".to_owned(), bytes }), rest));
    }
    let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take(size).collect();
    let name = text(device, head.description + size_of::<Description>() as u64, described.name_length.into());
    let is_known = ![OPAQUE, NESTED].contains(&described.shape);
    let bytes = is_known.then_some(value);
    Some((Item::Argument(Argument { of_trait: described.of_trait, ty: name, bytes }), rest))
}

fn description_at(device: &CudaDevice, address: u64) -> Option<Description> {
    let bytes = bytes(device, address, size_of::<Description>() as u64)?;
    let &[shape, references, size, of_trait, a, b, c, d] = bytes.as_slice() else { return None };
    Some(Description { shape, references, size, of_trait, name_length: u32::from_le_bytes([a, b, c, d]) })
}
