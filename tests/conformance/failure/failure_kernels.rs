//! Kernels that panic, each in one way and in one thread, and kernels that print. A line that panics ends in
//! a comment with the kernel's name, by which the cases find it.

/// Panics.
#[ferrogrid::module]
pub mod panics {
    use ferrogrid::device::prelude::*;

    /// Whether this is thread number `at`.
    fn is_chosen(t: &Thread<1>, at: u32) -> bool {
        t.index().get() == at as usize
    }

    /// Reads beyond the end.
    #[kernel]
    pub fn bounds(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let source = if is_chosen(&t, at) { data.len() } else { 0 };
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[source]; // bounds
        }
    }

    /// Reads beyond the end of an array, whose length is a constant.
    #[kernel]
    pub fn array_bounds(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let array = [data[0], data[1], data[2], data[3]];
        let source = if is_chosen(&t, at) { data.len() } else { 0 };
        if let Some(out) = output.get_mut(t.index()) {
            *out = array[source]; // array_bounds
        }
    }

    /// The lower half of each warp shuffles, without the upper half.
    #[kernel]
    pub fn half_a_warp(t: Thread<1>, mut output: DisjointSlice<u32>) {
        let mut seen = 0;
        if t.warp().lane() < 16 {
            seen += t.warp().shuffle_xor(t.thread_rank(), 1); // half_a_warp
        }
        if let Some(out) = output.get_mut(t.index()) {
            *out = seen;
        }
    }

    /// The lower half of each warp votes without the upper half, whose lane 16 panics.
    #[kernel]
    pub fn half_a_warp_panics(t: Thread<1>, mut output: DisjointSlice<u32>) {
        let (lane, mut seen) = (t.warp().lane(), 0);
        if lane < 16 {
            seen += t.warp().ballot(true);
        }
        assert!(lane != 16, "not coming"); // half_a_warp_panics
        if let Some(out) = output.get_mut(t.index()) {
            *out = seen;
        }
    }

    /// Panics in one thread of a volume.
    #[kernel]
    pub fn in_a_volume(t: Thread<3>, block: [u32; 3], thread: [u32; 3]) {
        assert!((t.block_idx(), t.thread_idx()) != (block, thread)); // in_a_volume
    }

    /// All lanes arrive, which is not proven: their number, and the number with the same rank modulo 3.
    #[kernel]
    pub fn all_come(t: Thread<1>, zero: &[DeviceAtomic<u32>], mut output: DisjointSlice<[u32; 2]>) {
        let (warp, mut seen) = (t.warp(), [0; 2]);
        if zero[0].load(atomic::Ordering::Relaxed) == 0 {
            let group = warp.labeled_partition(t.thread_rank() % 3);
            seen = [warp.ballot(true).count_ones(), group.reduce_add(1)];
        }
        if let Some(out) = output.get_mut(t.index()) {
            *out = seen;
        }
    }

    /// Panics with a constant message.
    #[kernel]
    pub fn constant(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        if is_chosen(&t, at) {
            panic!("a plain message"); // constant
        }
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// Panics with a message that is formatted.
    #[kernel]
    pub fn formatted(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let value = data[0];
        let (third, flag, word, letter) = (value as f32 / 3.0, value > 1, "wörd", &'c');
        if is_chosen(&t, at) {
            panic!("{value} {third:>8.3} {third:?} {flag} {word:?} {value:#06x} {letter:?}"); // formatted
        }
        if let Some(out) = output.get_mut(t.index()) {
            *out = value;
        }
    }

    /// A failed assertion without a message.
    #[kernel]
    pub fn assertion(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        assert!(!is_chosen(&t, at)); // assertion
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// A failed comparison.
    #[kernel]
    pub fn equality(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let expected = if is_chosen(&t, at) { 9 } else { data[0] };
        assert_eq!(data[0], expected); // equality
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// A failed comparison of arrays, with a message that has a slice.
    #[kernel]
    pub fn arrays(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let found = if is_chosen(&t, at) { [data[0] as f32, 0.5] } else { [1.0, 0.5] };
        assert_eq!(found, [1.0, 0.5], "{:?} {:#?}", &data[1..4], [data[0] > 1]); // arrays
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// A failed comparison with a message of its own.
    #[kernel]
    pub fn inequality(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let other = if is_chosen(&t, at) { 1.5_f64 } else { 2.5 };
        assert_ne!(data[0] as f64, other - 0.5 + data[0] as f64 - 1.0, "in thread {at}"); // inequality
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// A debug assertion.
    #[kernel]
    pub fn debug_assertion(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        debug_assert!(!is_chosen(&t, at), "only in debug"); // debug_assertion
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// Reaches `unreachable!`.
    #[kernel]
    pub fn unreached(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        if is_chosen(&t, at) {
            unreachable!("with {}", data[0]); // unreached
        }
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0];
        }
    }

    /// `unwrap` of nothing.
    #[kernel]
    pub fn unwrapped(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let taken = if is_chosen(&t, at) { data[0] + 1 } else { 0 };
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0].checked_sub(taken).unwrap(); // unwrapped
        }
    }

    /// `expect` of nothing.
    #[kernel]
    pub fn expected(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let taken = if is_chosen(&t, at) { data[0] + 1 } else { 0 };
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0].checked_sub(taken).expect("enough is there"); // expected
        }
    }

    /// `expect` of an error.
    #[kernel]
    pub fn expected_result(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let found: Result<u32, u64> = if is_chosen(&t, at) { Err(77) } else { Ok(data[0]) };
        if let Some(out) = output.get_mut(t.index()) {
            *out = found.expect("a number"); // expected_result
        }
    }

    /// A range that ends beyond the slice.
    #[kernel]
    pub fn range(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let end = if is_chosen(&t, at) { data.len() + 3 } else { 2 };
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[1..end].iter().sum(); // range
        }
    }

    /// A division by zero.
    #[kernel]
    pub fn division(t: Thread<1>, at: u32, data: &[u32], mut output: DisjointSlice<u32>) {
        let divisor = if is_chosen(&t, at) { 0 } else { 2 };
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[0] / divisor; // division
        }
    }

    /// All threads panic.
    #[kernel]
    pub fn everywhere(t: Thread<1>, data: &[u32], mut output: DisjointSlice<u32>) {
        if let Some(out) = output.get_mut(t.index()) {
            *out = data[usize::MAX]; // everywhere
        }
    }
}

/// Printing.
#[ferrogrid::module]
pub mod prints {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::{print, println};

    /// Each thread prints a line.
    #[kernel]
    pub fn lines(t: Thread<1>, n: u32, values: &[f32]) {
        let i = t.index().get();
        if i < n as usize {
            let value = values[i];
            println!("{i:>6}: {value:8.3} {value:?} {:+e} {} {:?} {}", value, value < 0.0, 'ß', "tëxt");
        }
    }

    /// Text in parts, an empty line, and a constant.
    #[kernel]
    pub fn parts(t: Thread<1>) {
        if t.index().get() == 0 {
            print!("a{}", 1_u8);
            println!();
            println!("constant");
        }
    }

    /// A type with its own `Display`.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Point {
        /// A coordinate.
        pub x: f32,
    }

    /// Prints a value of a type of the program.
    #[kernel]
    pub fn own_type(t: Thread<1>, point: Point) {
        if t.index().get() == 0 {
            println!("{point:?}");
        }
    }
}

/// Panics of threads that others wait for.
#[ferrogrid::module]
pub mod missed {
    use ferrogrid::device::prelude::*;

    /// Thread `at` of each block panics before the barrier of the block.
    #[kernel]
    pub fn at_a_barrier(t: Thread<1>, at: u32, x: &[u32], mut y: DisjointSlice<u32>) {
        if t.thread_rank() == at {
            assert!(x.is_empty(), "not coming");
        }
        let count = t.sync_threads_count(true);
        if let Some(y) = y.get_mut(t.index()) {
            *y = count;
        }
    }

    /// Thread `at` of block 1 panics before the second barrier of the grid.
    #[kernel(cooperative)]
    pub fn at_a_grid_barrier(t: Thread<1>, at: u32, x: &[u32], arrived: &[DeviceAtomic<u32>]) {
        t.sync_grid();
        if t.block_idx()[0] == 1 && t.thread_rank() == at {
            assert!(x.is_empty(), "not coming");
        }
        t.sync_grid();
        arrived[0].fetch_add(1, atomic::Ordering::Relaxed);
    }
}
