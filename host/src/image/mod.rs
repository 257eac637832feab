//! Images of device code as bytes: their kind, and the check that they hold as many bytes as their headers
//! declare. The driver takes an address and no length, so what it reads is checked here.
//!
//! `code_type` names the kinds, `archive` reads libraries of objects, `ptx` the parameters (`parameter`) that PTX
//! declares. `jit` has the options of the driver's compiler and linker, `link_input` and `linked` what a linker takes and makes.

pub(crate) mod archive;
mod code_type;
mod jit;
mod link_input;
mod linked;
mod parameter;
pub(crate) mod ptx;

use std::path::Path;

pub use code_type::CodeType;
pub use jit::{JitCacheMode, JitOptions};
pub use link_input::LinkInput;
pub use linked::LinkedImage;
pub use parameter::Parameter;

use crate::error::foreign::ForeignError;

/// A checked image: a copy, aligned for the driver, with a 0 after its last byte.
pub(crate) struct Image {
    kind: CodeType,
    len: usize,
    words: Vec<u64>,
}

const ELF_MAGIC: &[u8] = b"\x7fELF";
const FATBIN_MAGIC: u64 = 0xba55_ed50;
/// Of the structure around a fatbin in an executable, which holds the address of the fatbin itself.
const WRAPPER_MAGIC: u64 = 0x4662_43b1;
/// `EM_CUDA`.
const CUDA_MACHINE: u64 = 190;
/// `SHT_NOBITS`: a section without bytes in the file.
const NO_BITS: u64 = 8;

impl Image {
    /// PTX text.
    pub(crate) fn ptx(text: &str) -> Result<Self, ForeignError> {
        if let Some(at) = text.bytes().position(|byte| byte == 0) {
            return Err(invalid(CodeType::Ptx, format!("byte {at} is 0")));
        }
        Ok(Image::unchecked(CodeType::Ptx, text.as_bytes()))
    }

    /// A cubin: an ELF file for one architecture.
    pub(crate) fn cubin(bytes: &[u8]) -> Result<Self, ForeignError> {
        check_elf(bytes).map_err(|reason| invalid(CodeType::Cubin, reason))?;
        Ok(Image::unchecked(CodeType::Cubin, bytes))
    }

    /// A fatbin: PTX and cubins for several architectures.
    pub(crate) fn fatbin(bytes: &[u8]) -> Result<Self, ForeignError> {
        check_fatbin(bytes).map_err(|reason| invalid(CodeType::Fatbin, reason))?;
        Ok(Image::unchecked(CodeType::Fatbin, bytes))
    }

    /// The kind is recognised by the first bytes.
    pub(crate) fn any(bytes: &[u8]) -> Result<Self, ForeignError> {
        if bytes.starts_with(ELF_MAGIC) {
            return Image::cubin(bytes);
        }
        if matches!(number(bytes, 0, 4), Some(FATBIN_MAGIC | WRAPPER_MAGIC)) {
            return Image::fatbin(bytes);
        }
        // Files of PTX may end in the 0 of a C string.
        let text = std::str::from_utf8(bytes.strip_suffix(&[0]).unwrap_or(bytes));
        Image::ptx(text.map_err(|error| invalid(CodeType::Ptx, format!("it is no text: {error}")))?)
    }

    /// Something that is read by linkers alone, and not checked: an object or a library.
    pub(crate) fn unchecked(kind: CodeType, bytes: &[u8]) -> Self {
        let mut words = vec![0_u64; bytes.len() / 8 + 1];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_ne_bytes(padded);
        }
        Image { kind, len: bytes.len(), words }
    }

    pub(crate) fn kind(&self) -> CodeType {
        self.kind
    }

    /// The text of PTX; empty for machine code.
    pub(crate) fn text(&self) -> &str {
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        match self.kind {
            CodeType::Ptx => std::str::from_utf8(&bytes[..self.len]).unwrap_or_default(),
            _ => "",
        }
    }

    /// The first byte, aligned to 8; a 0 follows the last.
    pub(crate) fn start(&self) -> *const u8 {
        self.words.as_ptr().cast()
    }

    /// The number of bytes without the final 0.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// The name of a file, and its bytes.
pub(crate) fn read_file(path: &Path) -> Result<(String, Vec<u8>), ForeignError> {
    let bytes = std::fs::read(path).map_err(|error| ForeignError::Read {
        path: path.to_string_lossy().into(),
        reason: error.to_string().into(),
    })?;
    Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes))
}

fn invalid(kind: CodeType, reason: impl Into<Box<str>>) -> ForeignError {
    ForeignError::InvalidImage { kind: kind.name(), reason: reason.into() }
}

/// The little-endian number of `size` bytes at `at`, if it is there.
fn number(bytes: &[u8], at: u64, size: u64) -> Option<u64> {
    let start = usize::try_from(at).ok()?;
    let field = bytes.get(start..start.checked_add(size as usize)?)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// That `count` entries of `size` bytes from `at` on lie in `bytes`.
fn contains(bytes: &[u8], at: u64, count: u64, size: u64) -> bool {
    let end = count.checked_mul(size).and_then(|length| length.checked_add(at));
    end.is_some_and(|end| end <= bytes.len() as u64)
}

fn check_elf(bytes: &[u8]) -> Result<(), String> {
    if !bytes.starts_with(ELF_MAGIC) {
        return Err("it does not start as an ELF file does".into());
    }
    let field = |at, size| number(bytes, at, size).ok_or("its ELF header is cut off");
    if field(4, 1)? != 2 || field(5, 1)? != 1 {
        return Err("it is not a 64-bit little-endian ELF file".into());
    }
    let machine = field(18, 2)?;
    if machine != CUDA_MACHINE {
        return Err(format!("it is an ELF file for machine {machine}, not for CUDA ({CUDA_MACHINE})"));
    }
    let (programs, sections) = (field(32, 8)?, field(40, 8)?);
    let (program_size, program_count) = (field(54, 2)?, field(56, 2)?);
    let (section_size, section_count) = (field(58, 2)?, field(60, 2)?);
    if section_count > 0 && section_size < 64 || program_count > 0 && program_size < 56 {
        return Err("its header tables have entries that are too small".into());
    }
    if !contains(bytes, programs, program_count, program_size)
        || !contains(bytes, sections, section_count, section_size)
    {
        return Err(format!("its header tables do not lie in its {} bytes: it is cut off", bytes.len()));
    }
    for index in 0..section_count {
        let header = sections + index * section_size;
        let (kind, start, size) = (field(header + 4, 4)?, field(header + 24, 8)?, field(header + 32, 8)?);
        if kind != NO_BITS && !contains(bytes, start, size, 1) {
            return Err(format!("section {index} does not lie in its {} bytes: it is cut off", bytes.len()));
        }
    }
    Ok(())
}

fn check_fatbin(bytes: &[u8]) -> Result<(), String> {
    let field = |at, size| number(bytes, at, size).ok_or("its header is cut off");
    match field(0, 4)? {
        FATBIN_MAGIC => {}
        WRAPPER_MAGIC => return Err("it is the wrapper of a fatbin in an executable".into()),
        other => return Err(format!("it starts with {other:#x}, not with {FATBIN_MAGIC:#x}")),
    }
    let (header, size) = (field(6, 2)?, field(8, 8)?);
    if !contains(bytes, header, size, 1) {
        return Err(format!("it should have {size} bytes after its header: it is cut off"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header for `machine`, one section header of a section of `size` bytes at 64, and 8 bytes.
    fn elf(machine: u8, size: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 8 + 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
        bytes[40..48].copy_from_slice(&72_u64.to_le_bytes());
        bytes[58..62].copy_from_slice(&[64, 0, 1, 0]);
        bytes[72 + 4] = 1;
        bytes[72 + 24..72 + 32].copy_from_slice(&64_u64.to_le_bytes());
        bytes[72 + 32..72 + 40].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn fatbin(size: u64, bytes: usize) -> Vec<u8> {
        let mut image = Vec::from(&[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0]);
        image.extend(size.to_le_bytes());
        image.resize(16 + bytes, 7);
        image
    }

    fn refusal(image: Result<Image, ForeignError>) -> String {
        image.err().expect("the image is refused").to_string()
    }

    #[test]
    fn each_kind_is_recognised() {
        for (bytes, kind) in [
            (elf(190, 8), CodeType::Cubin),
            (fatbin(5, 5), CodeType::Fatbin),
            (b".version 8.0\n.target sm_90\n\0".to_vec(), CodeType::Ptx),
        ] {
            assert_eq!(Image::any(&bytes).unwrap().kind(), kind);
        }
    }

    #[test]
    fn an_image_is_copied_whole_and_ends_in_a_0() {
        for text in ["", "1234567", "12345678", "123456789"] {
            let image = Image::ptx(text).unwrap();
            // SAFETY: there are as many bytes and a 0.
            let bytes = unsafe { std::slice::from_raw_parts(image.start(), image.len() + 1) };
            assert_eq!(bytes, format!("{text}\0").as_bytes());
        }
    }

    #[test]
    fn views_beyond_the_end_are_refused() {
        let whole = elf(190, 8);
        for len in 4..whole.len() {
            assert!(refusal(Image::any(&whole[..len])).contains("cut off"), "{len} bytes");
        }
        assert!(refusal(Image::cubin(&elf(190, u64::MAX))).contains("section 0"));
        assert!(refusal(Image::fatbin(&fatbin(6, 5))).contains("cut off"));
        assert!(refusal(Image::fatbin(&fatbin(u64::MAX, 5))).contains("cut off"));
        assert!(refusal(Image::fatbin(&fatbin(5, 5)[..10])).contains("cut off"));
    }

    #[test]
    fn program_headers_that_reach_over_the_end_are_refused() {
        // One program header of 56 bytes at `start`.
        let with_program = |start: u64| {
            let mut bytes = elf(190, 8);
            bytes[32..40].copy_from_slice(&start.to_le_bytes());
            bytes[54..58].copy_from_slice(&[56, 0, 1, 0]);
            bytes
        };
        let last = elf(190, 8).len() as u64 - 56;
        assert!(Image::cubin(&with_program(last)).is_ok());
        for start in [last + 1, last + 56, u64::MAX] {
            assert!(refusal(Image::cubin(&with_program(start))).contains("header tables"), "from {start}");
        }
        let mut small = with_program(64);
        small[54] = 55;
        assert!(refusal(Image::cubin(&small)).contains("too small"));
    }

    #[test]
    fn other_files_are_refused_by_what_they_are() {
        assert!(refusal(Image::any(&elf(62, 8))).contains("machine 62"));
        assert!(refusal(Image::ptx("a\0b")).contains("byte 1 is 0"));
        assert!(refusal(Image::any(&[0xff, 0xfe])).contains("no text"));
        assert!(refusal(Image::any(&0x4662_43b1_u32.to_le_bytes())).contains("wrapper"));
        assert!(refusal(Image::fatbin(b"PK..")).starts_with("invalid fatbin: it starts with"));
    }

    /// Whether all that the headers of an ELF file name lies in it; numbers as wide as they need to be.
    fn lies_within(bytes: &[u8]) -> bool {
        let field = |at: u128, size: usize| {
            let word = &bytes[at as usize..at as usize + size];
            word.iter().rev().fold(0_u128, |value, byte| value << 8 | u128::from(*byte))
        };
        let table = |at: u128, size: u128, count: u128| at + size * count <= bytes.len() as u128;
        let (programs, sections) = (field(32, 8), field(40, 8));
        let section = |index: u128| {
            let header = sections + index * field(58, 2);
            field(header + 4, 4) == 8 || table(field(header + 24, 8), field(header + 32, 8), 1)
        };
        table(programs, field(54, 2), field(56, 2))
            && table(sections, field(58, 2), field(60, 2))
            && (0..field(60, 2)).all(section)
    }

    #[test]
    fn fuzz_elf() {
        let mut two = elf(190, 8);
        two[54..58].copy_from_slice(&[56, 0, 1, 0]);
        two[32] = 72;
        crate::fuzz::survive(&[elf(190, 8), two], |bytes| {
            if let Ok(image) = Image::cubin(bytes) {
                assert!(lies_within(bytes) && image.len() == bytes.len());
            }
            drop(Image::any(bytes));
        });
    }

    #[test]
    fn fuzz_fatbin() {
        crate::fuzz::survive(&[fatbin(5, 5), fatbin(0, 0), fatbin(64, 80)], |bytes| {
            if let Ok(image) = Image::fatbin(bytes) {
                let [_, _, _, _, _, _, a, b, size @ ..] = bytes else { unreachable!() };
                let header = u128::from(u16::from_le_bytes([*a, *b]));
                let size = u128::from(u64::from_le_bytes(*size.first_chunk().unwrap()));
                assert!(header + size <= bytes.len() as u128 && image.len() == bytes.len());
            }
            drop(Image::any(bytes));
        });
    }
}
