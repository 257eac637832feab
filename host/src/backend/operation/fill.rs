//! Fills as plain data, and the one rule of how they are split: drivers fill with words of 1, 2 or 4 bytes.

use std::borrow::Cow;

use super::Address;

/// The most words of a value that are written one by one.
pub(crate) const MANY_WORDS: usize = 16;

/// `count` repetitions of a value.
pub(crate) struct Fill<'a> {
    pub(crate) target: Address,
    /// Not empty.
    pub(crate) value: Cow<'a, [u8]>,
    pub(crate) count: usize,
    /// Bytes from the start of one to that of the next.
    pub(crate) pitch: usize,
}

impl<'a> Fill<'a> {
    /// Of values side by side.
    pub(crate) fn new(target: *mut u8, value: &'a [u8], count: usize) -> Self {
        Fill { target: Address(target), value: value.into(), count, pitch: value.len() }
    }

    pub(crate) fn into_owned(self) -> Fill<'static> {
        Fill { value: self.value.into_owned().into(), ..self }
    }

    /// The bytes that it writes.
    pub(crate) fn bytes(&self) -> usize {
        self.value.len() * self.count
    }

    /// The fills with words that do the same for values side by side: one if the value is a word, or all of its bytes are
    /// equal; otherwise one for each word of it. Words are as long as they are aligned.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = Fill<'_>> {
        let (target, value) = (self.target.0, &*self.value);
        let all_equal = value.iter().all(|byte| *byte == value[0]);
        let (value, count) = if all_equal { (&value[..1], self.bytes()) } else { (value, self.count) };
        let fits = |word: &usize| value.len().is_multiple_of(*word) && target.addr().is_multiple_of(*word);
        let word = [4, 2].into_iter().find(fits).unwrap_or(1);
        let pitch = value.len();
        value.chunks_exact(word).enumerate().map(move |(index, part)| {
            let target = Address(target.wrapping_add(index * word));
            Fill { target, value: part.into(), count, pitch }
        })
    }

    /// The value of a fill with words as a number.
    pub(crate) fn word(&self) -> u32 {
        match *self.value {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => unreachable!("words have 1, 2 or 4 bytes"),
        }
    }

    /// The words of a row, and the rows.
    pub(crate) fn extent(&self) -> (usize, usize) {
        if self.pitch == self.value.len() { (self.count, 1) } else { (1, self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the words of a fill of four values begin, how long they are, and how many there are of each.
    fn words(start: usize, value: &[u8]) -> Vec<(usize, usize, (usize, usize))> {
        let fill = Fill::new(std::ptr::without_provenance_mut(start), value, 4);
        fill.words().map(|word| (word.target.0.addr(), word.value.len(), word.extent())).collect()
    }

    #[test]
    fn a_value_is_written_by_the_longest_words_that_it_is_aligned_to() {
        assert_eq!(words(64, &[1, 2, 3, 4]), [(64, 4, (4, 1))]);
        assert_eq!(words(66, &[1, 2, 3, 4]), [(66, 2, (1, 4)), (68, 2, (1, 4))]);
        assert_eq!(words(66, &[1, 2]), [(66, 2, (4, 1))]);
        assert_eq!(words(64, &[1, 2, 3]), [(64, 1, (1, 4)), (65, 1, (1, 4)), (66, 1, (1, 4))]);
        assert_eq!(words(64, &[1; 8][..7]), [(64, 1, (28, 1))]);
        assert_eq!(words(64, &[1, 0, 0, 0, 0, 0, 0, 0]), [(64, 4, (1, 4)), (68, 4, (1, 4))]);
    }

    #[test]
    fn a_word_is_the_number_that_the_host_would_store() {
        let word = |value: &[u8]| Fill::new(std::ptr::null_mut(), value, 1).word();
        assert_eq!(word(&7_u8.to_ne_bytes()), 7);
        assert_eq!(word(&0x1234_u16.to_ne_bytes()), 0x1234);
        assert_eq!(word(&0x1234_5678_u32.to_ne_bytes()), 0x1234_5678);
    }
}
