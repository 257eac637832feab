//! Libraries of object files (`.a`): their members, by name.

use super::code_type::CodeType;
use crate::error::foreign::ForeignError;

const MAGIC: &[u8] = b"!<arch>\n";
/// The bytes of a member's header.
const HEADER: usize = 60;
/// The end marker of a header.
const END_OF_HEADER: &[u8] = b"`\n";

/// A file in a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    pub(crate) name: String,
    pub(crate) bytes: &'a [u8],
}

/// Whether the first bytes are those of a library.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The members of a library, whose headers are checked.
pub(crate) fn members(bytes: &[u8]) -> Result<Vec<Member<'_>>, ForeignError> {
    let invalid =
        |reason: String| ForeignError::InvalidImage { kind: CodeType::Library.name(), reason: reason.into() };
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| invalid("it does not start as one".into()))?;
    let (mut members, mut long_names) = (Vec::new(), [].as_slice());
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (name, contents, after) =
            next(rest).ok_or_else(|| invalid(format!("its member at byte {at} is cut off or damaged")))?;
        rest = after;
        match name {
            // The symbols that members define.
            b"/" | b"/SYM64/" => {}
            b"//" => long_names = contents,
            _ => members.push(member(name, contents, long_names)),
        }
    }
    Ok(members)
}

/// The name, in the header's own form, and the contents of the first member, and what follows it.
fn next(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let header = header.strip_suffix(END_OF_HEADER)?;
    let size: usize = std::str::from_utf8(&header[48..58]).ok()?.trim_end().parse().ok()?;
    let (contents, rest) = rest.split_at_checked(size)?;
    // Members begin at even bytes.
    let padding = usize::from(size % 2 == 1).min(rest.len());
    Some((header[..16].trim_ascii_end(), contents, &rest[padding..]))
}

/// A member by its own name: GNU keeps those of more than 15 bytes in a table, BSD before the contents.
fn member<'a>(name: &[u8], contents: &'a [u8], long_names: &[u8]) -> Member<'a> {
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Some(length) = name.strip_prefix(b"#1/").and_then(number)
        && let Some((long, contents)) = contents.split_at_checked(length)
    {
        return Member { name: text(long.split(|&byte| byte == 0).next().unwrap_or(long)), bytes: contents };
    }
    let long = name.strip_prefix(b"/").and_then(number).and_then(|start| long_names.get(start..));
    let name = long.and_then(|long| long.split(|&byte| byte == b'\n').next()).unwrap_or(name);
    Member { name: text(name.strip_suffix(b"/").unwrap_or(name)), bytes: contents }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library as GNU's `ar` writes it.
    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, contents) in members {
            bytes.extend(
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, contents.len()).bytes(),
            );
            bytes.extend(*contents);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        bytes
    }

    fn names(bytes: &[u8]) -> Vec<(String, usize)> {
        members(bytes).unwrap().into_iter().map(|member| (member.name, member.bytes.len())).collect()
    }

    #[test]
    fn members_have_their_names_and_bytes() {
        let long = b"a_name_of_many_bytes.o/\nanother_long_name.o/\n";
        let bytes =
            archive(&[("/", b"symbols"), ("//", long), ("short.o/", b"123"), ("/0", b"4"), ("/24", b"56")]);
        let expected = [("short.o", 3), ("a_name_of_many_bytes.o", 1), ("another_long_name.o", 2)];
        assert_eq!(names(&bytes), expected.map(|(name, len)| (name.to_owned(), len)));
        assert_eq!(names(&archive(&[("#1/8", b"bsd.o\0\0\0code")])), [("bsd.o".to_owned(), 4)]);
        assert_eq!(names(MAGIC), []);
    }

    #[test]
    fn damaged_libraries_are_refused() {
        let whole = archive(&[("one.o/", b"12345678"), ("two.o/", b"12")]);
        for len in (MAGIC.len() + 1..whole.len()).filter(|len| *len != MAGIC.len() + HEADER + 8) {
            let error = members(&whole[..len]).unwrap_err().to_string();
            assert!(error.starts_with("invalid library: its member at byte"), "{len} bytes: {error}");
        }
        assert!(members(b"\x7fELF").unwrap_err().to_string().contains("does not start as one"));
    }

    #[test]
    fn fuzz_archive() {
        let seeds = [archive(&[("//", b"long.o/\n"), ("/0", b"1"), ("#1/4", b"bsd1234")]), archive(&[])];
        crate::fuzz::survive(&seeds, |bytes| {
            if let Ok(members) = members(bytes) {
                assert!(members.iter().map(|member| member.bytes.len()).sum::<usize>() <= bytes.len());
            }
        });
    }
}
