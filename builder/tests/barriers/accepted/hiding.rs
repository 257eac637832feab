//! The programs of `refused/hiding.rs`, with conditions that are uniform in the block.

#[ferrogrid::module]
mod macros {
    use ferrogrid::device::prelude::*;

    macro_rules! wait_if { ($t:expr, $c:expr) => { if $c { $t.sync_threads() } } }
    macro_rules! some { ($e:expr) => { match $e { Some(v) => v, None => return } } }
    macro_rules! shadow { ($n:ident = $e:expr) => { let $n = $e; } }
    macro_rules! pattern { ($n:ident) => { $n } }
    macro_rules! bail_out { ($i:expr, $n:expr) => { if $i >= $n { return; } } }
    macro_rules! times { ($n:expr, $body:block) => { for _ in 0..$n $body } }

    #[kernel]
    pub fn barrier_in_a_macro(t: Thread<1>) {
        let own = t.block_idx()[0];
        wait_if!(t, own > 3);
    }
    #[kernel]
    pub fn return_in_a_macro(t: Thread<1>) {
        let own = t.block_idx()[0];
        let _v = some!(own.checked_sub(9));
        t.sync_threads();
    }
    fn rounds(t: &Thread<1>, n: u32, mine: u32) {
        shadow!(n = n + mine);
        for _ in 0..n { t.sync_threads(); }
    }
    #[kernel]
    pub fn shadow_in_a_function(t: Thread<1>) {
        let own = t.block_idx()[0];
        rounds(&t, 1, own);
    }
    #[kernel]
    pub fn pattern_of_a_macro(t: Thread<1>) {
        let pattern!(n) = t.block_idx()[0];
        if n < 5 { t.sync_threads(); }
    }
    #[kernel]
    pub fn name_of_a_macro_over_another(t: Thread<1>) {
        let x = 7;
        let _ = x;
        shadow!(x = t.block_idx()[0]);
        if x < 5 { t.sync_threads(); }
    }
    #[kernel]
    pub fn guard_in_a_macro(t: Thread<1>, x: &[u32], mut y: DisjointRows<u32>, mut s: Shared<[u32; 32]>) {
        let own = t.block_idx()[0] as usize;
        bail_out!(own, x.len());
        s.fill_with(&t, |i| x[i]);
        let s = t.publish(s);
        y.fill_with(&t, |_| s.iter().sum());
    }
    #[kernel]
    pub fn loop_in_a_macro(t: Thread<1>) {
        let own = t.block_idx()[0];
        times!(own, { t.sync_threads(); });
    }
}

#[ferrogrid::module]
mod names {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn raw_shadow(t: Thread<1>, n: u32) {
        let r#n = n + t.block_idx()[0];
        for _ in 0..n { t.sync_threads(); }
    }
    fn wait(t: &Thread<1>, n: u32) {
        if n < 5 { t.sync_threads(); }
    }
    #[kernel]
    pub fn cfg_on_an_argument(t: Thread<1>) {
        let own = t.block_idx()[0];
        wait(&t, #[cfg(any())] 5, own);
    }
    #[kernel]
    pub fn cfg_on_a_condition(t: Thread<1>) {
        let own = t.block_idx()[0];
        #[cfg(any())]
        if own > 400 { return; }
        #[cfg(not(any()))]
        if own > 4 { return; }
        t.sync_threads();
    }
    #[kernel]
    pub fn cfg_on_the_device_alone(t: Thread<1>) {
        let own = t.block_idx()[0];
        #[cfg(target_arch = "nvptx64")]
        if own < 5 { t.sync_threads(); }
        let _ = own;
    }
    fn twin(_: &Thread<1>, _: u32) {}
    #[kernel]
    pub fn nested_function_of_the_same_name(t: Thread<1>) {
        fn twin(t: &Thread<1>, n: u32) {
            if n > 6 { t.sync_threads(); }
        }
        let own = t.block_idx()[0];
        twin(&t, own);
        self::twin(&t, own);
    }
    mod inner {
        use ferrogrid::device::prelude::*;
        pub fn twin(t: &Thread<1>, n: u32) {
            if n > 7 { t.sync_threads(); }
        }
    }
    #[kernel]
    pub fn module_with_the_same_name(t: Thread<1>) {
        let own = t.block_idx()[0];
        inner::twin(&t, own);
    }
    use inner::twin as harmless;
    #[kernel]
    pub fn another_name_for_it(t: Thread<1>) {
        let own = t.block_idx()[0];
        harmless(&t, own + 1);
    }
    #[kernel]
    pub fn constant_of_a_shadowed_name(t: Thread<1>) {
        const N: u32 = 4;
        let own = { let n = t.block_idx()[0]; n + N };
        for _ in 0..own { t.sync_threads(); }
    }
}

#[ferrogrid::module]
mod traits {
    use core::ops::{Add, Deref, Index, Not};
    use ferrogrid::device::prelude::*;

    trait Reader { fn len(self, r: u32) -> u32; }
    impl Reader for DisjointSlice<'_, u32> { fn len(self, r: u32) -> u32 { r } }
    #[kernel]
    pub fn length_of_a_users_trait(t: Thread<1>, y: DisjointSlice<u32>) {
        let own = t.block_idx()[0];
        if Reader::len(y, own) < 5 { t.sync_threads(); }
    }
    trait Advance { fn row(&mut self, n: u32); }
    impl Advance for &[u32] { fn row(&mut self, n: u32) { *self = &self[n as usize..] } }
    #[kernel]
    pub fn slice_that_moves(t: Thread<1>, x: &[u32]) {
        let own = t.block_idx()[0];
        let mut x = x;
        x.row(own);
        if x.len() > 5 { t.sync_threads(); }
    }
    trait Place: Sized { fn block_dim(self) -> (Self, u32); }
    impl Place for Thread<'_, 1> { fn block_dim(self) -> (Self, u32) { let r = self.block_idx()[0]; (self, r) } }
    #[kernel]
    pub fn block_dim_of_a_users_trait(t: Thread<1>) {
        let (t, n) = Place::block_dim(t);
        if n < 5 { t.sync_threads(); }
    }
    struct Sum(u32);
    impl Add for Sum { type Output = Sum; fn add(self, other: Sum) -> Sum { Sum(self.0 ^ other.0) } }
    #[kernel]
    pub fn operator(t: Thread<1>, n: u32) {
        let own = t.block_idx()[0];
        if (Sum(n) + Sum(own)).0 > 3 { t.sync_threads(); }
    }
    struct Flag(u32);
    impl Not for Flag { type Output = bool; fn not(self) -> bool { self.0 < 3 } }
    #[kernel]
    pub fn negation(t: Thread<1>) {
        let own = t.block_idx()[0];
        if !Flag(own) { t.sync_threads(); }
    }
    struct Held(u32);
    impl Deref for Held { type Target = u32; fn deref(&self) -> &u32 { &self.0 } }
    #[kernel]
    pub fn dereference(t: Thread<1>) {
        let held = Held(t.block_idx()[0]);
        if *held > 3 { t.sync_threads(); }
    }
    struct Table([u32; 2]);
    impl Index<u32> for Table { type Output = u32; fn index(&self, i: u32) -> &u32 { &self.0[usize::from(i > 4)] } }
    #[kernel]
    pub fn index(t: Thread<1>, n: u32) {
        let own = t.block_idx()[0];
        for _ in 0..Table([n, n + 1])[own] { t.sync_threads(); }
    }
    struct Countdown(u32);
    impl Iterator for Countdown {
        type Item = ();
        fn next(&mut self) -> Option<()> { self.0 = self.0.checked_sub(2)?; Some(()) }
    }
    #[kernel]
    pub fn iterator(t: Thread<1>) {
        for () in Countdown(t.block_idx()[0]) { t.sync_threads(); }
    }
    #[kernel]
    pub fn iterator_behind_adapters(t: Thread<1>, n: usize) {
        for () in Countdown(t.block_idx()[0]).take(n) { t.sync_threads(); }
    }
    struct Rounds(u32);
    impl IntoIterator for Rounds {
        type Item = u32;
        type IntoIter = core::ops::Range<u32>;
        fn into_iter(self) -> Self::IntoIter { 0..self.0 / 2 }
    }
    #[kernel]
    pub fn into_iterator(t: Thread<1>) {
        for _ in Rounds(t.block_idx()[0]) { t.sync_threads(); }
    }
    struct Guard<'a, 't>(&'a Thread<'t, 1>, u32);
    impl Drop for Guard<'_, '_> {
        fn drop(&mut self) {
            if self.1 > 2 { self.0.sync_threads(); }
        }
    }
    #[kernel]
    pub fn destructor(t: Thread<1>) {
        let own = t.block_idx()[0];
        let _guard = Guard(&t, own);
    }
    trait Step { fn step(&self, t: &Thread<1>); }
    struct Waits;
    struct Works<'a>(&'a DeviceAtomic<u32>);
    impl Step for Waits { fn step(&self, t: &Thread<1>) { t.sync_threads(); } }
    impl Step for Works<'_> { fn step(&self, _: &Thread<1>) { self.0.store(1, atomic::Ordering::Relaxed); } }
    fn step(t: &Thread<1>, s: impl Step) { s.step(t) }
    #[kernel]
    pub fn implementation_by_branch(t: Thread<1>, y: &[DeviceAtomic<u32>]) {
        let own = t.block_idx()[0];
        if own > 3 { step(&t, Waits) } else { step(&t, Works(&y[0])) }
    }
    trait Twice { fn twice(&self, t: &Thread<1>) -> u32; fn run(&self, t: &Thread<1>) { for _ in 0..self.twice(t) { t.sync_threads(); } } }
    impl Twice for u32 { fn twice(&self, t: &Thread<1>) -> u32 { let own = t.block_idx()[0]; own * self } }
    #[kernel]
    pub fn default_method(t: Thread<1>, n: u32) {
        n.run(&t);
    }
    impl From<Held> for Flag { fn from(held: Held) -> Flag { Flag(held.0 / 3) } }
    #[kernel]
    pub fn conversion(t: Thread<1>) {
        let flag: Flag = Held(t.block_idx()[0]).into();
        if flag.0 > 3 { t.sync_threads(); }
    }
    fn by_size<const N: usize>(t: &Thread<1>, own: u32) { if own > N as u32 { t.sync_threads(); } }
    #[kernel]
    pub fn const_generic(t: Thread<1>) {
        let own = t.block_idx()[0];
        by_size::<12>(&t, own);
    }
    fn by_type<T: Into<u64>>(t: &Thread<1>, v: T) { for _ in 0..v.into() { t.sync_threads(); } }
    #[kernel]
    pub fn generic_argument(t: Thread<1>) {
        let own = t.block_idx()[0];
        by_type(&t, own);
    }
    impl PartialOrd<u32> for Held { fn partial_cmp(&self, o: &u32) -> Option<core::cmp::Ordering> { self.0.partial_cmp(o) } }
    impl PartialEq<u32> for Held { fn eq(&self, o: &u32) -> bool { self.0 == *o } }
    #[kernel]
    pub fn comparison(t: Thread<1>) {
        if Held(t.block_idx()[0]) > 3 { t.sync_threads(); }
    }
}

#[ferrogrid::module]
mod data {
    use ferrogrid::device::prelude::*;

    struct Config { rounds: u32, depth: u32 }
    #[kernel]
    pub fn field_of_a_struct(t: Thread<1>, n: u32) {
        let config = Config { rounds: t.block_idx()[0], depth: n };
        for _ in 0..config.rounds.wrapping_sub(config.depth) { t.sync_threads(); }
    }
    #[kernel]
    pub fn field_by_update(t: Thread<1>, n: u32) {
        let base = Config { rounds: t.block_idx()[0], depth: 1 };
        let config = Config { depth: n, ..base };
        if config.rounds > config.depth { t.sync_threads(); }
    }
    enum Job { Wait(u32), Work }
    #[kernel]
    pub fn variant_of_an_enum(t: Thread<1>) {
        let own = t.block_idx()[0];
        let job = if own > 3 { Job::Wait(2) } else { Job::Work };
        if let Job::Wait(n) = job { for _ in 0..n { t.sync_threads(); } }
    }
    #[kernel]
    pub fn payload_of_an_enum(t: Thread<1>, n: u32) {
        let job = if n > 3 { Job::Wait(t.block_idx()[0]) } else { Job::Work };
        match job { Job::Wait(n) => for _ in 0..n { t.sync_threads(); }, Job::Work => {} }
    }
    #[kernel]
    pub fn element_of_a_tuple(t: Thread<1>, n: u32) {
        let pair = (n, t.block_idx()[0]);
        if pair.1 > pair.0 { t.sync_threads(); }
    }
    #[kernel]
    pub fn element_of_an_array(t: Thread<1>, n: u32) {
        let own = [n, t.block_idx()[0], 3];
        if own.iter().sum::<u32>() > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn array_at_a_place_of_ones_own(t: Thread<1>, n: u32) {
        let table = [n, n + 1, n * 5, n ^ 3, n / 3, n % 5, n >> 2, n << 2];
        let own = t.block_idx()[0] as usize;
        if table[own & 7] > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn array_written_at_a_place_of_ones_own(t: Thread<1>, n: usize) {
        let mut table = [0_u32; 16];
        let own = t.block_idx()[0] as usize;
        table[own & 15] = 1;
        if table[n & 15] == 1 { t.sync_threads(); }
    }
    #[kernel]
    pub fn array_sorted(t: Thread<1>, x: &[u32], n: usize) {
        let own = t.block_idx()[0] as usize;
        let mut table: [u32; 8] = core::array::from_fn(|i| x[own + i]);
        for i in 1..8 {
            let mut j = i;
            while j > 0 && table[j - 1] > table[j] { table.swap(j - 1, j); j -= 1; }
        }
        if table[n & 7] > 3 { t.sync_threads(); }
    }
    #[kernel]
    pub fn option_of_ones_own(t: Thread<1>) {
        let own = Some(t.block_idx()[0]).filter(|v| v % 2 == 0);
        if own.is_none() { t.sync_threads(); }
    }
    union Bits { word: u32, bytes: [u8; 4] }
    #[kernel]
    pub fn union_of_bytes(t: Thread<1>) {
        let bits = Bits { word: t.block_idx()[0] };
        // SAFETY: any bits are bytes.
        if unsafe { bits.bytes[0] } > 9 { t.sync_threads(); }
    }
    #[kernel]
    pub fn union_of_words(t: Thread<1>) {
        let own = t.block_idx()[0] as u8;
        let bits = Bits { bytes: [1, own, 3, 4] };
        // SAFETY: any bytes are a word.
        for _ in 0..unsafe { bits.word } & 1023 { t.sync_threads(); }
    }
    #[kernel]
    pub fn pointer_to_a_local(t: Thread<1>) {
        let mut n = 3;
        let place = &raw mut n;
        // SAFETY: it points to `n`.
        unsafe { *place = t.block_idx()[0] };
        if n < 5 { t.sync_threads(); }
    }
    fn set(place: &mut u32, own: u32) { *place += own; }
    #[kernel]
    pub fn reference_to_a_local(t: Thread<1>) {
        let mut n = 3;
        set(&mut n, t.block_idx()[0]);
        if n < 50 { t.sync_threads(); }
    }
    #[kernel]
    pub fn cell(t: Thread<1>) {
        let n = core::cell::Cell::new(2);
        n.set(t.block_idx()[0]);
        for _ in 0..n.get() { t.sync_threads(); }
    }
    #[kernel]
    pub fn swapped(t: Thread<1>, n: u32) {
        let (mut a, mut b) = (n, t.block_idx()[0]);
        core::mem::swap(&mut a, &mut b);
        if a > 4 { t.sync_threads(); }
    }
    #[kernel]
    pub fn replaced(t: Thread<1>, n: u32) {
        let mut a = n;
        let _ = core::mem::replace(&mut a, t.block_idx()[0]);
        if a > 4 { t.sync_threads(); }
    }
    #[kernel]
    pub fn transmuted(t: Thread<1>) {
        let own = t.block_idx()[0];
        let x = f32::from_bits(own + 0x3f80_0000);
        if x > 1.5 { t.sync_threads(); }
    }
    #[kernel]
    pub fn packed_and_shifted(t: Thread<1>, n: u32) {
        let both = (u64::from(t.block_idx()[0]) << 32) | u64::from(n);
        if both >> 33 > 2 { t.sync_threads(); }
    }
    struct Runner<F: Fn(u32) -> bool> { is_due: F }
    #[kernel]
    pub fn closure_in_a_struct(t: Thread<1>, n: u32) {
        let own = t.block_idx()[0];
        let runner = Runner { is_due: |i| i > own };
        for i in 0..n { if (runner.is_due)(i) { t.sync_threads(); } }
    }
    fn repeat(n: u32, f: impl Fn(u32)) { for i in 0..n { f(i) } }
    #[kernel]
    pub fn closure_as_an_argument(t: Thread<1>) {
        let own = t.block_idx()[0];
        repeat(own, |_| t.sync_threads());
    }
    fn adder(n: u32) -> impl Fn(u32) -> u32 { move |m| n ^ m }
    #[kernel]
    pub fn closure_that_is_returned(t: Thread<1>, n: u32) {
        let own = t.block_idx()[0];
        if adder(own)(n) > 7 { t.sync_threads(); }
    }
    #[kernel]
    pub fn closure_that_changes_what_it_holds(t: Thread<1>, n: u32) {
        let mut a = n;
        let own = t.block_idx()[0];
        let mut change = |by: u32| a = a.wrapping_mul(by);
        change(own);
        if a > 99 { t.sync_threads(); }
    }
    #[inline(never)]
    fn own_function(n: u32) -> u32 { n.wrapping_mul(2_654_435_761) >> 16 }
    #[kernel]
    pub fn result_of_a_function_that_is_called(t: Thread<1>) {
        let own = t.block_idx()[0];
        if own_function(own) > 7 { t.sync_threads(); }
    }
}
