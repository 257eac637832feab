//! The layouts that a PTX text states of its kernels, with which the host half compares its own: sizes and
//! alignments behind slices, of shared memory and of constants. The build step writes them as comments before
//! the first directive (`passes::layouts`).

use std::collections::BTreeMap;

/// The beginning of the comments.
pub(crate) const COMMENT: &str = "// Layout of ";

/// The numbers that the PTX states for each entry point. The first is the bytes of shared memory; the shape
/// of a block follows, if it is made of constants.
pub(crate) fn read(ptx: &str) -> BTreeMap<String, Vec<u64>> {
    let comments = ptx.lines().take_while(|line| line.starts_with("//"));
    let layouts = comments.filter_map(|line| {
        let (entry, numbers) = line.strip_prefix(COMMENT)?.split_once(": ")?;
        let numbers = numbers.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
        Some((entry.to_owned(), numbers))
    });
    layouts.collect()
}

/// The threads of a block along each axis, among the numbers of an entry point that makes the shape of
/// constants.
pub(crate) fn block(numbers: &[u64]) -> Option<[u32; 3]> {
    let sizes: [u64; 3] = numbers.get(1..4)?.try_into().ok()?;
    let [x, y, z] = sizes.map(|size| u32::try_from(size).ok());
    Some([x?, y?, z?])
}

/// The bytes of shared memory that the PTX states for `entry`; 0 if it states nothing.
pub(crate) fn shared_bytes(ptx: &str, entry: &str) -> u64 {
    read(ptx).get(entry).and_then(|numbers| numbers.first()).copied().unwrap_or(0)
}
