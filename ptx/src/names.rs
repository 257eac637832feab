//! Maps by name, with a hash that is cheap in builds without optimisation, as those of build scripts are: names
//! are short, and the compiler that chooses them is no attacker.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by name, or by a name and numbers.
pub(crate) type NameMap<K, V> = HashMap<K, V, BuildHasherDefault<NameHasher>>;

/// Multiplies 8 bytes at a time to 16 and folds these.
#[derive(Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((word, after)) = rest.split_first_chunk() {
            self.mix(u64::from_le_bytes(*word));
            rest = after;
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::NameHasher;

    #[test]
    fn names_that_differ_in_a_digit_spread_over_a_table() {
        let build = BuildHasherDefault::<NameHasher>::default();
        let names = ["%r", "%rd", "$L__BB12_", "a_name_of_many_bytes_"];
        for name in names {
            let hashes = |shift: u32| -> HashSet<u64> {
                (0..1024).map(|number| build.hash_one(format!("{name}{number}")) >> shift & 1023).collect()
            };
            // A random function leaves 37 % of the places empty. hashbrown uses the lowest and the highest bits.
            for shift in [0, 54] {
                assert!(hashes(shift).len() > 500, "{name} {shift}: {}", hashes(shift).len());
            }
        }
    }
}
