//! Kernels with groups that are formed at run time: by branch, by label, by mask.

#[ferrogrid::module]
pub mod grouping {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::warp::CoalescedGroup;

    /// The results of a group's operations. The operation concatenates digits, so that the order is visible.
    fn figures(group: &CoalescedGroup, value: u32) -> [u32; 16] {
        let join = |a: [u32; 2], b: [u32; 2]| {
            [a[0].wrapping_mul(31_u32.wrapping_pow(b[1])).wrapping_add(b[0]), a[1] + b[1]]
        };
        let odd = value % 2 == 1;
        group.sync();
        [
            group.mask(),
            group.size(),
            group.rank(),
            group.ballot(odd),
            group.ballot_lanes(odd),
            u32::from(group.all(odd))
                + 2 * u32::from(group.any(odd))
                + 4 * u32::from(group.elect())
                + 8 * group.lane(),
            group.match_any([value; 3]),
            group.match_all(value % 4).into(),
            group.shuffle([u64::from(value), 7], 1)[0] as u32,
            group.shuffle(value, group.rank() + 3),
            group.shuffle_up(value, 2),
            group.shuffle_down(value, 1),
            group.reduce([value, 1], join)[0],
            group.inclusive_scan([value, 1], join)[0],
            group.exclusive_scan([value, 1], [5, 1], join)[0],
            group.binary_partition(odd).labeled_partition(value % 3).mask(),
        ]
    }

    /// Groups by label in tiles of `N`.
    #[kernel(N = [8, 32])]
    pub fn labeled<const N: usize>(t: Thread<1>, labels: &[u64], x: &[u32], mut y: DisjointSlice<[u32; 16]>) {
        let i = t.index();
        let group = t.warp().tile::<N>().labeled_partition(labels[i.get()]);
        let found = figures(&group, x[i.get()]);
        if let Some(y) = y.get_mut(i) {
            *y = found;
        }
    }

    /// Groups of the lanes that a mask names, and of the others.
    #[kernel]
    pub fn masked(t: Thread<1>, mask: u32, x: &[u32], mut y: DisjointSlice<[u32; 16]>) {
        let (i, warp) = (t.index(), t.warp());
        let found = match warp.masked(mask) {
            Some(group) => figures(&group, x[i.get()]),
            None => match warp.masked(!mask) {
                Some(group) => figures(&group, x[i.get()]),
                None => [0; 16],
            },
        };
        if let Some(y) = y.get_mut(i) {
            *y = found;
        }
    }

    /// Integer reductions, which are one instruction where the architecture has it.
    #[kernel(T = [u32, i32])]
    pub fn reduced<T: DeviceCopy + ferrogrid::device::warp::Word32>(
        t: Thread<1>,
        x: &[T],
        mut y: DisjointSlice<[T; 6]>,
    ) {
        let (i, warp) = (t.index(), t.warp());
        let group = warp.binary_partition(warp.lane() % 3 == 0);
        let x = x[i.get()];
        let found = [
            group.reduce_add(x),
            group.reduce_min(x),
            group.reduce_max(x),
            group.reduce_and(x),
            group.reduce_or(x),
            group.reduce_xor(x),
        ];
        if let Some(y) = y.get_mut(i) {
            *y = found;
        }
    }

    /// Appends odd numbers: one addition for the threads that reach it together.
    #[kernel]
    pub fn append(t: Thread<1>, x: &[u32], kept: &[DeviceAtomic<u32>], count: &[DeviceAtomic<u32>]) {
        let Some(&x) = x.get(t.index().get()) else { return };
        let warp = t.warp();
        if x % 2 == 1 {
            let group = warp.coalesced();
            let first =
                if group.elect() { count[0].fetch_add(group.size(), atomic::Ordering::Relaxed) } else { 0 };
            let place = group.shuffle(first, 0) + group.rank();
            kept[place as usize].store(x, atomic::Ordering::Relaxed);
        }
    }
}
