//! The device's side: splits the arguments of a message into words for a `Sink`.

use core::fmt;
use core::ptr::with_exposed_provenance;

use super::*;

unsafe extern "C" {
    /// 1 if descriptions have replaced formatting functions; the build step defines it.
    static __ferrogrid_formatters: u64;
}

/// `core::fmt::Arguments` as two words: the template's address, and that of the arguments; or a text's
/// address, and twice its length plus one.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    template: *const u8,
    arguments: *const [usize; 2],
}

impl Arguments {
    /// The arguments that a panic or `print` passes on.
    ///
    /// # Safety
    /// The two words are those of a `core::fmt::Arguments` that lives as long as this value is used.
    #[inline(always)]
    pub(crate) unsafe fn from_words(template: *const u8, arguments: *const u8) -> Self {
        Arguments { template, arguments: arguments.cast() }
    }

    #[inline(always)]
    pub(crate) fn of(arguments: fmt::Arguments<'_>) -> Self {
        // SAFETY: two words (the sizes are compared), which may be anything.
        let [template, arguments]: [*const u8; 2] = unsafe { core::mem::transmute(arguments) };
        Arguments { template, arguments: arguments.cast() }
    }

    /// The text's length, if there are no arguments.
    #[inline(always)]
    fn literal_length(self) -> Option<usize> {
        let word = self.arguments.addr();
        (word & 1 != 0).then_some(word >> 1)
    }
}

/// The destination of a message, word by word.
pub(crate) trait Sink {
    /// Eight bytes.
    fn word(&mut self, word: u64);

    /// `length` bytes, padded with zeros to whole words.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn bytes(&mut self, start: *const u8, length: u64);
}

/// Counts the bytes of a message.
pub(crate) struct Length(pub(crate) u64);

impl Sink for Length {
    fn word(&mut self, _: u64) {
        self.0 += 8;
    }

    unsafe fn bytes(&mut self, _: *const u8, length: u64) {
        self.0 += length.next_multiple_of(8);
    }
}

/// Sends the message; values in it that are messages themselves are opaque.
pub(crate) fn send_flat(message: Arguments, sink: &mut impl Sink) {
    send_with(message, sink, |place, sink| place.send(sink));
}

/// Sends the message.
pub(crate) fn send(message: Arguments, sink: &mut impl Sink) {
    send_with(message, sink, |place, sink| place.send_any(sink));
}

#[inline(always)]
fn send_with<S: Sink>(message: Arguments, sink: &mut S, send_place: impl Fn(Place, &mut S)) {
    sink.word(message.template.addr() as u64);
    if let Some(length) = message.literal_length() {
        sink.word(length as u64);
        return sink.word(LITERAL);
    }
    // SAFETY: an argument list always has a template.
    let (length, count) = unsafe { measure(message.template) };
    // SAFETY: the symbol is a constant `u64` of the module.
    let count = if unsafe { __ferrogrid_formatters } == 0 { 0 } else { count };
    sink.word(length as u64);
    sink.word(count as u64);
    for at in 0..count {
        // SAFETY: the template names an argument of this number, so the list has as many.
        let [value, formatter] = unsafe { *message.arguments.add(at) };
        // A count has no value; the other word is 0 and tells which one holds it.
        if value == 0 || formatter == 0 {
            sink.word(0);
            sink.word(((value | formatter) & 0xffff) as u64);
            continue;
        }
        // SAFETY: an argument's words are the value's address and the formatting function's, in whose
        // place the build step has put a description.
        send_place(unsafe { Place::find(value, formatter) }, sink);
    }
}

/// The length of a template in bytes, and the number of arguments that it names.
///
/// # Safety
/// `template` is one of rustc's.
unsafe fn measure(template: *const u8) -> (usize, usize) {
    // SAFETY (all below): a template ends with a 0 that no piece holds, and what is read is before it.
    let byte = |at: usize| usize::from(unsafe { *template.add(at) });
    let short = |at: usize| byte(at) | byte(at + 1) << 8;
    let (mut at, mut next, mut count) = (0, 0, 0);
    loop {
        let code = byte(at);
        at += 1;
        match code {
            0 => return (at, count),
            1..0x80 => at += code,
            0x80 => at += 2 + short(at),
            _ => {
                at += 4 * (code & 1);
                for (present, indirect) in [(2, 0x10), (4, 0x20)] {
                    if code & present != 0 {
                        if code & indirect != 0 {
                            count = count.max(short(at) + 1);
                        }
                        at += 2;
                    }
                }
                if code & 8 != 0 {
                    next = short(at);
                    at += 2;
                }
                next += 1;
                count = count.max(next);
            }
        }
    }
}

/// The address and the description of an argument's value.
struct Place {
    value: *const usize,
    description: *const Description,
}

impl Place {
    /// # Safety
    /// These are the words of a live argument: the addresses of its value and of the description of its type.
    unsafe fn find(value: usize, description: usize) -> Self {
        let mut description: *const Description = with_exposed_provenance(description);
        let mut value: *const usize = with_exposed_provenance(value);
        // SAFETY: descriptions are constants of the module, and say how many references lead to the value
        // and whether it comes with a table of functions.
        unsafe {
            loop {
                for _ in 0..(*description).references {
                    value = with_exposed_provenance(*value);
                }
                if (*description).shape != DYNAMIC {
                    return Place { value, description };
                }
                let table: *const usize = with_exposed_provenance(*value.add(1));
                description = with_exposed_provenance(*table.add(3));
                value = with_exposed_provenance(*value);
            }
        }
    }

    fn shape(&self) -> u8 {
        // SAFETY: a constant of the module.
        unsafe { (*self.description).shape }
    }

    /// Sends the value, even if it is a message.
    fn send_any(self, sink: &mut impl Sink) {
        if self.shape() != NESTED {
            return self.send(sink);
        }
        // SAFETY: the value is a `core::fmt::Arguments` that lives: two words.
        let message = unsafe { Arguments::from_words(*self.value.cast(), *self.value.add(1).cast()) };
        let mut length = Length(0);
        send_flat(message, &mut length);
        sink.word(self.description.addr() as u64);
        sink.word(length.0);
        send_flat(message, sink);
    }

    /// Sends the value; for a message, only the fact that it is one.
    fn send(self, sink: &mut impl Sink) {
        sink.word(self.description.addr() as u64);
        // SAFETY: the value lives, and is what its description says.
        unsafe {
            match self.shape() {
                VALUE => {
                    let size = u64::from((*self.description).size);
                    sink.word(size);
                    sink.bytes(self.value.cast(), size);
                }
                TEXT => {
                    let length = (*self.value.add(1) as u64).min(TEXT_BYTES);
                    sink.word(length);
                    sink.bytes(with_exposed_provenance(*self.value), length);
                }
                SLICE => {
                    let bytes = (*self.value.add(1) as u64).saturating_mul((*self.description).size.into());
                    let length = bytes.min(TEXT_BYTES);
                    sink.word(length);
                    sink.bytes(with_exposed_provenance(*self.value), length);
                }
                _ => sink.word(0),
            }
        }
    }
}

/// `length` bytes as words, the last padded with zeros.
///
/// # Safety
/// The bytes can be read.
#[inline(always)]
pub(crate) unsafe fn each_word(start: *const u8, length: u64, mut word: impl FnMut(u64)) {
    let mut at = 0;
    while at < length {
        let mut value = 0;
        for byte in 0..(length - at).min(8) {
            // SAFETY: below `length`.
            value |= u64::from(unsafe { *start.add((at + byte) as usize) }) << (8 * byte);
        }
        word(value);
        at += 8;
    }
}
