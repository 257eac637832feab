//! A hash of a type's layout. Both compilations of a module compute it by the same rule, so the build notices
//! fields that differ where sizes do not. Tools recognise the numbers among the types of a kernel by it.

/// The hash of a type with these fields: the name of each, with its type's hash, its offset or the like.
pub const fn of_type(name: &str, fields: &[(&str, u64)]) -> u64 {
    // FNV-1a with 64 bits: it is short, and works in constants.
    let mut hash = text(0xcbf2_9ce4_8422_2325, name);
    let mut at = 0;
    while at < fields.len() {
        let (field, number) = fields[at];
        hash = bytes(text(hash, field), &number.to_le_bytes());
        at += 1;
    }
    hash
}

/// The hash of an array of `length` elements of the type with the hash `element`.
pub const fn of_array(length: u64, element: u64) -> u64 {
    of_type("array", &[("", length), ("", element)])
}

/// The hash of the atomic form of a type, which differs from that of values that are only read.
pub const fn of_atomic(value: u64) -> u64 {
    of_type("atomic", &[("", value)])
}

const fn text(hash: u64, text: &str) -> u64 {
    // A byte that occurs in no text separates neighbours.
    bytes(bytes(hash, text.as_bytes()), &[0xff])
}

const fn bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
        at += 1;
    }
    hash
}
