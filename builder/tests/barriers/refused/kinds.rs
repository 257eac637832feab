//! Kernels that the build must refuse: `//~` marks the place, and the level of the barrier. The lines of
//! conditions and sources are in the message; `builder/tests/barriers.rs` checks a few of them.

/// Plainly divergent conditions.
#[ferrogrid::module]
mod plain {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn leaves_by_a_varying_break(t: Thread<1>, n: u32, x: &[u32]) {
        for i in 0..n {
            t.sync_threads(); //~ block
            if x[t.index().get()] == i {
                break;
            }
        }
    }

    #[kernel]
    pub fn returns_early(t: Thread<1>, x: &[f32], mut tile: Shared<[f32; 256]>) {
        if t.index().get() >= x.len() {
            return;
        }
        tile.fill_with(&t, |i| x[i]);
        let read = t.publish(tile); //~ block
        let _tile = t.reclaim(read); //~ block
    }

    #[kernel]
    pub fn counter_that_some_change(t: Thread<1>, x: &[u32]) {
        let mut steps = 4;
        if x[t.index().get()] > 3 {
            steps += 1;
        }
        for _ in 0..steps {
            t.sync_threads(); //~ block
        }
    }

    #[kernel]
    pub fn as_often_as_a_thread_says(t: Thread<1>, counts: &[u32]) {
        for _ in 0..counts[t.index().get()] {
            t.sync_threads(); //~ block
        }
    }

    #[kernel(cluster = 2)]
    pub fn one_block_of_a_cluster(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        if t.cluster_rank() == 0 {
            let read = t.publish_cluster(tile); //~ cluster
            if let Some(y) = y.get_mut(t.index()) {
                *y = read[7];
            }
        }
    }

    #[kernel(cooperative)]
    pub fn one_block_of_the_grid(t: Thread<1>) {
        if t.block_idx()[0] == 0 {
            t.sync_grid(); //~ grid
        }
    }

    #[kernel]
    pub fn waits_for_a_grid_that_need_not_be_there(t: Thread<1>) {
        t.sync_grid(); //~ launch
    }

    #[kernel(block = 128)]
    pub fn exchanges_as_often_as_a_thread_says(
        t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut scratch: Shared<ExchangeScratch<u32, 128, 2>>,
    ) {
        let i = t.index();
        let mut items = [x[i.get()]; 2];
        for _ in 0..items[0] {
            items = t.block_blocked_to_striped(&mut scratch, items); //~ block
        }
        if let Some(y) = y.get_mut(i) {
            *y = items[1];
        }
    }

    #[kernel]
    pub fn publishes_by_some_threads(t: Thread<1>, mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        tile.fill_with(&t, |i| i as f32);
        if t.thread_rank() < 32 {
            let read = t.publish(tile); //~ block
            if let Some(y) = y.get_mut(t.index()) {
                *y = read[7];
            }
        }
    }

    #[kernel(block = 256)]
    pub fn sorts_by_some_threads(
        t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>, mut scratch: Shared<SortScratch<u32, 256, 1>>,
    ) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            let [key] = t.block_radix_sort(&mut scratch, [x[i.get()]], sort::Ascending); //~ block
            *y = key;
        }
    }
}

/// Barriers in functions, methods and closures.
#[ferrogrid::module]
mod functions {
    use ferrogrid::device::prelude::*;

    fn some_wait(t: &Thread<1>) {
        if t.thread_rank() < 16 {
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn in_a_function(t: Thread<1>) {
        some_wait(&t);
    }

    fn rounds(t: &Thread<1>, rounds: u32) {
        for _ in 0..rounds {
            t.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn argument_of_a_thread(t: Thread<1>, x: &[u32]) {
        rounds(&t, x[t.index().get()]);
    }

    fn block_max<const ID: usize>(t: &Thread<1>, tile: &mut Shared<[f32; 256], ID>, x: f32) -> f32 {
        tile.fill_with(t, |_| x);
        t.with_published(tile, |all| all.iter().copied().fold(f32::MIN, f32::max)) //~ block
    }
    #[kernel(block = 256)]
    pub fn called_by_some(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        if let Some(x) = x.get(t.index().get()) {
            let largest = block_max(&t, &mut tile, *x);
            if let Some(y) = y.get_mut(t.index()) {
                *y = largest;
            }
        }
    }

    #[kernel]
    pub fn inner(t: Thread<1>) {
        t.sync_threads(); //~ block
    }
    #[kernel]
    pub fn kernel_called_by_some(t: Thread<1>) {
        if t.index().get() < 7 {
            inner(t);
        }
    }

    struct Waiter(u32);
    impl Waiter {
        fn wait(&self, t: &Thread<1>) {
            for _ in 0..self.0 {
                t.sync_threads(); //~ block
            }
        }
    }
    #[kernel]
    pub fn method(t: Thread<1>) {
        Waiter(t.thread_rank() % 4).wait(&t);
    }

    #[kernel]
    pub fn closure(t: Thread<1>) {
        (0..t.thread_rank()).for_each(|_| t.sync_threads()); //~ block
    }

    struct AtTheEnd<'a, 't>(&'a Thread<'t, 1>);
    impl Drop for AtTheEnd<'_, '_> {
        fn drop(&mut self) {
            self.0.sync_threads(); //~ block
        }
    }
    #[kernel]
    pub fn destructor(t: Thread<1>) {
        if t.thread_rank() % 2 == 0 {
            let _end = AtTheEnd(&t);
        }
    }
}

/// Conditions that tokens do not show.
#[ferrogrid::module]
mod hidden {
    use core::sync::atomic::{AtomicU32, Ordering};
    use ferrogrid::device::prelude::*;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    macro_rules! leave_if { ($c:expr) => { if $c { return } } }
    macro_rules! bind { ($n:ident, $e:expr) => { let $n = $e; } }

    #[kernel]
    pub fn leaves_by_a_macro(t: Thread<1>) {
        leave_if!(t.thread_rank() < 5);
        t.sync_threads(); //~ block
    }

    #[kernel]
    pub fn name_bound_by_a_macro(t: Thread<1>, n: u32) {
        bind!(n, n + t.thread_rank());
        for _ in 0..n {
            t.sync_threads(); //~ block
        }
    }

    #[kernel]
    pub fn raw_identifier(t: Thread<1>) {
        let r#n = t.thread_rank();
        if n < 5 {
            t.sync_threads(); //~ block
        }
    }

    trait Flip { fn abs(&mut self, v: bool); }
    impl Flip for bool { fn abs(&mut self, v: bool) { *self = v } }
    #[kernel]
    pub fn pure_name_that_writes(t: Thread<1>) {
        let mut b = true;
        b.abs(t.thread_rank() < 3);
        if b {
            t.sync_threads(); //~ block
        }
    }

    trait Ticket { fn rev(self) -> u32; }
    impl Ticket for u32 { fn rev(self) -> u32 { COUNT.fetch_add(self, Ordering::Relaxed) } }
    #[kernel]
    pub fn atomic_in_a_pure_name(t: Thread<1>) {
        if 1u32.rev() < 5 {
            t.sync_threads(); //~ block
        }
    }

    trait Depth { fn depth(&self, r: u32) -> u32; }
    impl Depth for [u32] { fn depth(&self, r: u32) -> u32 { r } }
    #[kernel]
    pub fn extents_of_a_users_trait(t: Thread<1>, x: &[u32]) {
        if x.depth(t.thread_rank()) < 5 {
            t.sync_threads(); //~ block
        }
    }

    #[kernel]
    pub fn cfg_on_a_statement(t: Thread<1>) {
        let n = t.thread_rank();
        #[cfg(any())]
        let n = 5;
        if n < 5 {
            t.sync_threads(); //~ block
        }
    }

    #[kernel]
    pub fn reduction_by_thread(t: Thread<1>, mut s: Shared<Scratch<u32>>) {
        let rank = t.thread_rank();
        let n = t.block_reduce(&mut s, 1, |a, b| if rank % 2 == 0 { a } else { b + 1 });
        for _ in 0..n {
            t.sync_threads(); //~ block
        }
    }

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Mode(pub u32);
    impl PartialEq for Mode {
        fn eq(&self, _: &Mode) -> bool { COUNT.fetch_add(1, Ordering::Relaxed) < 5 }
    }
    #[kernel]
    pub fn operator_of_a_user(t: Thread<1>, p: Mode, q: Mode) {
        let true = (p == q) else { return };
        t.sync_threads(); //~ block
    }
}

/// Regions of shared memory that threads choose for themselves.
#[ferrogrid::module]
mod regions {
    use ferrogrid::device::prelude::*;

    #[kernel(block = 64)]
    pub fn two_regions_in_two_arms(t: Thread<1>, mut y: DisjointSlice<u32>, mut a: Shared<[u32; 64]>, mut b: Shared<[u32; 64]>) {
        a.fill_with(&t, |i| i as u32);
        b.fill_with(&t, |i| i as u32);
        let value = if t.thread_rank() < 32 {
            t.publish(a)[63] //~ block
        } else {
            t.publish(b)[0] //~ block
        };
        if let Some(y) = y.get_mut(t.index()) {
            *y = value;
        }
    }
}
