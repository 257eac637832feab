//! Keys as bits, and how often each digit occurs: what the passes of a radix sort start from.

/// Device code that the passes share, and the kernels that count.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use core::ops::{BitAnd, BitXor, Not};

    use atomic::{AtomicLoadStore, Ordering::Relaxed};
    use ferrogrid::device::prelude::*;

    /// The threads of a block: one for each digit.
    pub const THREADS: usize = 256;
    /// The bits of a digit.
    pub const DIGIT: u32 = 8;
    /// The values of a digit.
    pub const DIGITS: usize = 256;
    /// The elements that a thread counts together.
    const ROWS: usize = 16;
    /// The elements that a block counts together.
    pub const TILE: usize = THREADS * ROWS;
    /// The digits of the longest keys.
    pub const PASSES: usize = 8;

    /// Bits of a key or a value.
    pub trait Bits:
        DeviceCopy
        + Exchange
        + SharedElement
        + AtomicLoadStore
        + BitAnd<Output = Self>
        + BitXor<Output = Self>
        + Not<Output = Self>
    {
        /// All bits.
        const ONES: Self;
        /// All bits if the highest one is set, else none.
        fn sign(self) -> Self;
        /// The lowest bits from `first` on.
        fn from(self, first: u32) -> u32;
        /// As 64 bits.
        fn widen(self) -> u64;
        /// The low half of 64 bits, or a part of it.
        fn narrow(bits: u64) -> Self;
    }

    macro_rules! bits {
        ($($t:ident as $signed:ident),*) => {
            $(impl Bits for $t {
                const ONES: Self = $t::MAX;

                #[inline(always)]
                fn sign(self) -> Self {
                    (self as $signed >> ($t::BITS - 1)) as $t
                }
                #[inline(always)]
                fn from(self, first: u32) -> u32 {
                    self.wrapping_shr(first) as u32
                }
                #[inline(always)]
                fn widen(self) -> u64 {
                    self.into()
                }
                #[inline(always)]
                fn narrow(bits: u64) -> Self {
                    bits as $t
                }
            })*
        };
    }
    bits!(u8 as i8, u16 as i16, u32 as i32, u64 as i64);

    /// An order of keys: bits to flip, so that unsigned numbers have that order. Keys keep their bits in memory.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Flips<K> {
        /// In keys whose highest bit is set.
        pub negative: K,
        /// In all keys.
        pub all: K,
    }

    /// A digit: some bits of a key.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Digit {
        /// The lowest bit.
        pub first: u32,
        /// As many ones as there are bits.
        pub mask: u32,
    }

    /// The unsigned number with the place of this key in the order.
    #[inline(always)]
    pub fn ordered<K: Bits>(key: K, flips: Flips<K>) -> K {
        key ^ (key.sign() & flips.negative) ^ flips.all
    }

    /// The key of [`ordered`].
    #[inline(always)]
    pub fn restored<K: Bits>(ordered: K, flips: Flips<K>) -> K {
        let key = ordered ^ flips.all;
        key ^ (key.sign() & flips.negative)
    }

    /// The digit of an ordered key, below `DIGITS`.
    #[inline(always)]
    pub fn digit_of<K: Bits>(ordered: K, digit: Digit) -> usize {
        (ordered.from(digit.first) & digit.mask) as usize % DIGITS
    }

    /// The results of `f` for 0 to `N`, at most 32. For a GPU, LLVM would not unroll a loop of so much code, and its items would go
    /// to memory.
    #[inline(always)]
    pub fn each<U: Copy, const N: usize>(mut f: impl FnMut(usize) -> U) -> [U; N] {
        let mut results = [f(0); N];
        #[cfg(not(target_arch = "nvptx64"))]
        {
            // Iterators would be compiled anew for each closure.
            let mut k = 1;
            while k < N {
                results[k] = f(k);
                k += 1;
            }
        }
        #[cfg(target_arch = "nvptx64")]
        {
            macro_rules! set {
                ($($k:literal)*) => { $(if $k < N { results[$k] = f($k); })* };
            }
            set!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        }
        results
    }

    /// counts[pass * DIGITS + digit] += how many elements of `x` have that digit in that pass. The digits are those of the bits
    /// from `first` on, up to `end`.
    #[kernel(block = THREADS, wide, K = [u8, u16, u32, u64], native = super::super::native::count_digits)]
    pub fn count_digits<K: Bits>(
        t: Thread<1>,
        flips: Flips<K>,
        first: u32,
        end: u32,
        x: &[K],
        counts: &[DeviceAtomic<u64>],
        mut own: Shared<[DeviceAtomic<u32, atomic::Block>; 2048]>,
    ) {
        own.fill_with(&t, |_| DeviceAtomic::new(0));
        let own = t.publish(own);
        let rank = t.thread_rank() as usize % THREADS;
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        let passes = (counts.len() / DIGITS).min(PASSES);
        let (tiles, rest) = x.as_chunks::<TILE>();
        let add = |key: K, pass: usize| {
            let begin = first + DIGIT * pass as u32;
            let mask = (1 << (end - begin).min(DIGIT)) - 1;
            let digit = digit_of(key, Digit { first: begin, mask });
            own[(pass * DIGITS + digit) % (PASSES * DIGITS)].fetch_add(1, Relaxed);
        };
        let mut tile = block as usize;
        while tile < tiles.len() {
            let items: [K; ROWS] = each(|k| ordered(tiles[tile][k * THREADS + rank], flips));
            for pass in 0..passes {
                each::<(), ROWS>(|k| add(items[k], pass));
            }
            tile += blocks as usize;
        }
        if tile == tiles.len() {
            let mut place = rank;
            while place < rest.len() {
                for pass in 0..passes {
                    add(ordered(rest[place], flips), pass);
                }
                place += THREADS;
            }
        }
        t.sync_threads();
        for pass in 0..passes {
            let place = pass * DIGITS + rank;
            let count = own[place % (PASSES * DIGITS)].load(Relaxed);
            if let Some(sum) = counts.get(place)
                && count > 0
            {
                sum.fetch_add(count.into(), Relaxed);
            }
        }
    }

    /// x[i] <- i
    #[kernel]
    pub fn number(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x = t.index().get32();
        }
    }

    /// starts[pass * DIGITS + digit] <- where that digit begins: a block for each pass.
    #[kernel(block = THREADS, same_shape(counts, starts), native = super::super::native::starts)]
    pub fn starts(
        t: Thread<1>,
        counts: &[u64],
        mut starts: DisjointSlice<u64>,
        mut scratch: Shared<Scratch<u64>>,
    ) {
        let own = counts.get(t.index().get()).copied().unwrap_or(0);
        let before = t.block_exclusive_scan(&mut scratch, own, 0, |a, b| a + b);
        if let Some(start) = starts.get_mut(t.index()) {
            *start = before;
        }
    }
}
