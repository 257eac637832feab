//! Kernels that the build must accept: all threads reach each barrier.

/// Values that the same computation gives to all threads.
#[ferrogrid::module]
mod values {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::println;

    #[kernel]
    pub fn of_if(t: Thread<1>, flag: u32) {
        let n = if flag > 2 { 4 } else { 8 };
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_match(t: Thread<1>, mode: u32) {
        let n = match mode { 0 => 1, 1 => 2, _ => 3 };
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_a_block(t: Thread<1>, x: &[u32]) {
        let n = { let half = x.len() / 2; half + 1 };
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_min(t: Thread<1>, n: u32) {
        for _ in 0..core::cmp::min(n, 8) { t.sync_threads(); }
    }

    const fn twice(n: u32) -> u32 { 2 * n }
    #[kernel]
    pub fn of_a_function(t: Thread<1>, n: u32) {
        for _ in 0..twice(n) { t.sync_threads(); }
    }

    pub struct Config { rounds: u32 }
    impl Config { const SMALL: Config = Config { rounds: 4 }; }
    const CONFIG: Config = Config { rounds: 3 };
    #[kernel]
    pub fn of_a_constant_field(t: Thread<1>) {
        for _ in 0..CONFIG.rounds { t.sync_threads(); }
        for _ in 0..Config::SMALL.rounds { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_the_first_element(t: Thread<1>, x: &[u32]) {
        for _ in 0..x.first().copied().unwrap_or(0) { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_a_labelled_block(t: Thread<1>, n: u32) {
        let m = 'a: { if n > 3 { break 'a 1; } 2 };
        for _ in 0..m { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_a_tuple(t: Thread<1>, p: (u32, u32)) {
        for _ in 0..p.0 * p.1 { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_from(t: Thread<1>, n: u8) {
        for _ in 0..u32::from(n) { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_an_option(t: Thread<1>, n: u32) {
        for _ in 0..n.checked_sub(1).unwrap_or(0) { t.sync_threads(); }
    }

    #[kernel]
    pub fn of_arithmetic(t: Thread<1>, n: u32, x: f32) {
        for _ in 0..n.isqrt() { t.sync_threads(); }
        if x.sqrt() > 3.0 { t.sync_threads(); }
        if n.is_power_of_two() { t.sync_threads(); }
        if (1..5).contains(&n) { t.sync_threads(); }
        if matches!(n, 1..5) { t.sync_threads(); }
    }

    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Mode(u32);
    #[kernel]
    pub fn of_a_structs_operator(t: Thread<1>, mode: Mode, other: Mode) {
        if mode == other { t.sync_threads(); }
    }

    #[kernel]
    pub fn with_output_between(t: Thread<1>, n: u32) {
        for i in 0..n {
            if t.thread_rank() == 0 { println!("round {i}"); }
            t.sync_threads();
        }
    }
}

/// Loops that all threads leave together.
#[ferrogrid::module]
mod loops {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn while_let(t: Thread<1>, n: u32) {
        let mut left = n;
        while let Some(next) = left.checked_sub(1) { t.sync_threads(); left = next; }
    }

    #[kernel]
    pub fn over_a_range_of_a_name(t: Thread<1>, n: u32) {
        let r = 0..n;
        for _ in r { t.sync_threads(); }
    }

    const ROUNDS: [u32; 3] = [1, 2, 3];
    #[kernel]
    pub fn over_an_array(t: Thread<1>) {
        for i in &ROUNDS { let _ = i; t.sync_threads(); }
    }

    #[kernel]
    pub fn over_two_ranges(t: Thread<1>, n: u32) {
        for (i, j) in (0..n).zip(0..n) { let _ = (i, j); t.sync_threads(); }
    }

    #[kernel]
    pub fn backwards(t: Thread<1>, n: u32) {
        for i in (0..=n).rev() { let _ = i; t.sync_threads(); }
    }

    #[kernel]
    pub fn by_halves(t: Thread<1>) {
        let mut half = t.block_dim()[0] / 2;
        while half > 0 { t.sync_threads(); half >>= 1; }
        let mut h = t.block_threads().next_power_of_two() / 2;
        loop { if h == 0 { break } t.sync_threads(); h /= 2; }
    }

    #[kernel]
    pub fn of_an_iterator(t: Thread<1>) {
        (0..3).for_each(|_| t.sync_threads());
    }

    #[kernel]
    pub fn regions_in_turn(t: Thread<1>, n: u32, mut a: Shared<[u32; 64]>, mut y: DisjointSlice<u32>) {
        a.fill_with(&t, |_| 0);
        let mut read = t.publish(a);
        for _ in 0..n {
            let mut w = t.reclaim(read);
            w.fill_with(&t, |_| 1);
            read = t.publish(w);
        }
        if let Some(y) = y.get_mut(t.index()) { *y = read[0]; }
    }
}

/// Conditions.
#[ferrogrid::module]
mod conditions {
    use ferrogrid::device::prelude::*;

    macro_rules! leave_if { ($c:expr) => { if $c { return } } }

    #[kernel]
    pub fn returns_together(t: Thread<1>, n: u32) {
        leave_if!(n < 5);
        t.sync_threads();
    }

    #[kernel]
    pub fn cfg_and_size(t: Thread<1>, n: u32) {
        if cfg!(debug_assertions) && n > 3 { t.sync_threads(); }
        if size_of::<u32>() == 4 { t.sync_threads(); }
    }

    #[kernel]
    pub fn if_let_chain(t: Thread<1>, x: &[u32]) {
        if let Some(&n) = x.get(0) && n > 3 { t.sync_threads(); }
    }

    #[kernel]
    pub fn one_thread_fewer_panics(t: Thread<1>, x: &[u32]) {
        assert!(x[t.thread_rank() as usize] > 3);
        t.sync_threads();
    }
}

/// Barriers in functions, methods, closures, traits and other modules.
mod elsewhere {
    use ferrogrid::device::prelude::*;

    #[ferrogrid::module]
    pub mod library {
        use ferrogrid::device::prelude::*;

        pub fn wait_twice<const R: usize>(t: &Thread<R>) {
            t.sync_threads();
            t.sync_threads();
        }
    }
}

#[ferrogrid::module]
mod functions {
    use ferrogrid::device::prelude::*;

    struct Waiter(u32);
    impl Waiter {
        fn wait(&self, t: &Thread<1>) {
            for _ in 0..self.0 { t.sync_threads(); }
        }
    }
    #[kernel]
    pub fn method(t: Thread<1>, n: u32) {
        Waiter(n).wait(&t);
    }

    trait Step { fn step(&self, t: &Thread<1>); }
    impl Step for u32 { fn step(&self, t: &Thread<1>) { if *self > 1 { t.sync_threads(); } } }
    fn steps<S: Step>(t: &Thread<1>, s: S) { s.step(t); s.step(t); }
    #[kernel]
    pub fn generic(t: Thread<1>, n: u32) {
        steps(&t, n);
    }

    fn twice(f: impl Fn()) { f(); f(); }
    #[kernel]
    pub fn closure(t: Thread<1>) {
        twice(|| t.sync_threads());
    }

    #[kernel]
    pub fn other_module(t: Thread<1>) {
        super::elsewhere::library::wait_twice(&t);
    }

    fn sum<const ID: usize>(t: &Thread<1>, x: &[u32], s: &mut Shared<Scratch<u32>, ID>) -> u32 {
        let mut total = 0;
        for _ in 0..x.len() { total = t.block_reduce(s, 1, |a, b| a + b); }
        total
    }
    #[kernel]
    pub fn slice_of_a_slice(t: Thread<1>, x: &[u32], n: usize, mut s: Shared<Scratch<u32>>) {
        let _ = sum(&t, &x[..n], &mut s);
    }

    #[kernel]
    pub fn reduction(t: Thread<1>, mut s: Shared<Scratch<u32>>) {
        let n = t.block_reduce(&mut s, t.thread_rank(), |a, b| a + b);
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel]
    pub fn inner(t: Thread<1>) { t.sync_threads(); }
    #[kernel]
    pub fn kernel_called_by_all(t: Thread<1>, n: u32) {
        if n > 7 { inner(t); }
    }
}

/// Values made uniform by broadcasts.
#[ferrogrid::module]
mod agreed {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn broadcast(t: Thread<1>, x: &[u32]) {
        for _ in 0..t.broadcast(x[t.index().get()]) { t.sync_threads(); }
    }

    #[kernel]
    pub fn broadcast_of_sixteen_bytes(t: Thread<1>, x: &[[f32; 4]]) {
        if t.broadcast(x[t.index().get()])[3] > 0.0 { t.sync_threads(); }
    }

    #[kernel]
    pub fn assumed(t: Thread<1>, x: &[DeviceAtomic<u32>]) {
        // SAFETY: no thread writes it.
        let n = unsafe { t.assume_uniform(x[0].load(atomic::Ordering::Relaxed)) };
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel(block = 64)]
    pub fn one_region_of_two(t: Thread<1>, n: u32, mut y: DisjointSlice<u32>, mut a: Shared<[u32; 64]>, mut b: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        b.fill_with(&t, |i| i as u32);
        let value = if n < 32 { t.publish(a)[63] } else { t.publish(b)[0] };
        if let Some(y) = y.get_mut(t.index()) { *y = value; }
    }
}
