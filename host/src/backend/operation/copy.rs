//! Copies as plain data: their rows, and where their memory is.

use super::Address;
use crate::backend::memory::array::ArrayShape;

/// Where memory is, as the device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Device,
}

/// A copy of rows, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// From the start of a row to that of the next.
    pub(crate) source_pitch: usize,
    pub(crate) target_pitch: usize,
}

impl Rows {
    /// How many bytes are copied.
    pub(crate) fn bytes(&self) -> usize {
        self.width * self.height
    }
}

/// A side of a copy: memory, or an array.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Memory(Place, Address),
    /// What `Memory::pointer` is of an array.
    Array(Address),
}

/// A copy of rows between memory, or of all elements of a texture array, from or to it.
#[derive(Clone, Copy)]
pub(crate) struct MemoryCopy {
    pub(crate) target: Side,
    pub(crate) source: Side,
    pub(crate) rows: Rows,
    /// How often there are these rows, those of an array one after the other.
    pub(crate) layers: usize,
}

impl Side {
    pub(crate) fn memory(place: Place, start: *const u8) -> Self {
        Side::Memory(place, Address(start.cast_mut()))
    }

    pub(crate) fn array(handle: *mut u8) -> Self {
        Side::Array(Address(handle))
    }

    /// The first byte; of an array its handle.
    pub(crate) fn start(self) -> *mut u8 {
        let (Side::Memory(_, start) | Side::Array(start)) = self;
        start.0
    }

    pub(crate) fn place(self) -> Place {
        match self {
            Side::Memory(place, _) => place,
            Side::Array(_) => Place::Device,
        }
    }

    fn is_array(self) -> bool {
        matches!(self, Side::Array(_))
    }
}

impl MemoryCopy {
    /// Of `bytes` that lie side by side.
    pub(crate) fn bytes_of(target: Side, source: Side, bytes: usize) -> Self {
        let rows = Rows { width: bytes, height: 1, source_pitch: bytes, target_pitch: bytes };
        MemoryCopy { target, source, rows, layers: 1 }
    }

    /// Of all elements of an array like `shape`; memory has them one after the other.
    pub(crate) fn array(target: Side, source: Side, shape: &ArrayShape) -> Self {
        let [width, height, layers] = shape.extent;
        let width = width * shape.element;
        let rows = Rows { width, height, source_pitch: width, target_pitch: width };
        MemoryCopy { target, source, rows, layers }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.bytes() * self.layers
    }

    pub(crate) fn has_array(&self) -> bool {
        self.target.is_array() || self.source.is_array()
    }

    /// Of the target, and of the source.
    pub(crate) fn places(&self) -> (Place, Place) {
        (self.target.place(), self.source.place())
    }

    /// What it is called.
    pub(crate) fn word(&self) -> &'static str {
        match self.places() {
            (Place::Device, Place::Host) => "upload",
            (Place::Host, Place::Device) => "download",
            _ => "copy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_called_what_they_do() {
        let side = |place| Side::memory(place, std::ptr::null());
        let word = |target, source| MemoryCopy::bytes_of(side(target), side(source), 1).word();
        let (device, host) = (Place::Device, Place::Host);
        let words = [word(device, host), word(host, device), word(device, device), word(host, host)];
        assert_eq!(words, ["upload", "download", "copy", "copy"]);
        let array = Side::array(std::ptr::null_mut());
        assert_eq!(MemoryCopy::bytes_of(array, side(host), 1).word(), "upload");
    }

    #[test]
    fn a_copy_has_the_bytes_of_its_rows_in_each_layer() {
        let side = Side::memory(Place::Device, std::ptr::null());
        let rows = Rows { width: 3, height: 5, source_pitch: 8, target_pitch: 16 };
        assert_eq!(MemoryCopy { target: side, source: side, rows, layers: 7 }.bytes(), 3 * 5 * 7);
    }
}
