//! Kernels with atomics.

/// One operation per thread, each on its own element.
#[ferrogrid::module]
pub mod operations {
    use ferrogrid::device::atomic::{
        AtomicInteger, AtomicLoadStore, AtomicValue, Block, Ordering, Scope, System,
    };
    use ferrogrid::device::prelude::*;

    /// The number of operations of [`numeric`].
    pub const NUMERIC: usize = 9;
    /// The number of operations of [`bitwise`].
    pub const BITWISE: usize = 3;

    /// 0 to 4: from `Relaxed` to `SeqCst`.
    pub fn ordering(number: u32) -> Ordering {
        match number {
            0 => Ordering::Relaxed,
            1 => Ordering::Acquire,
            2 => Ordering::Release,
            3 => Ordering::AcqRel,
            _ => Ordering::SeqCst,
        }
    }

    /// The part of `order` that a read can have.
    fn for_reading(order: Ordering) -> Ordering {
        match order {
            Ordering::Release => Ordering::Relaxed,
            Ordering::AcqRel => Ordering::Acquire,
            other => other,
        }
    }

    /// The part of `order` that a write can have.
    fn for_writing(order: Ordering) -> Ordering {
        match order {
            Ordering::Acquire => Ordering::Relaxed,
            Ordering::AcqRel => Ordering::Release,
            other => other,
        }
    }

    /// Operation `number` with `operand` on `cell`; returns its result.
    fn numeric<T: AtomicValue, S: Scope>(
        number: usize,
        cell: &DeviceAtomic<T, S>,
        operand: T,
        expected: T,
        order: Ordering,
    ) -> T {
        let exchange = |result: Result<T, T>| result.unwrap_or_else(|found| found);
        match number {
            0 => cell.load(for_reading(order)),
            1 => {
                cell.store(operand, for_writing(order));
                operand
            }
            2 => cell.swap(operand, order),
            3 => cell.fetch_add(operand, order),
            4 => cell.fetch_sub(operand, order),
            5 => cell.fetch_min(operand, order),
            6 => cell.fetch_max(operand, order),
            7 => exchange(cell.compare_exchange(expected, operand, order, for_reading(order))),
            _ => exchange(cell.compare_exchange_weak(operand, expected, order, Ordering::Relaxed)),
        }
    }

    /// Operation `number` with `operand` on `cell`; returns its result.
    fn bitwise<T: AtomicInteger, S: Scope>(
        number: usize,
        cell: &DeviceAtomic<T, S>,
        operand: T,
        order: Ordering,
    ) -> T {
        match number {
            0 => cell.fetch_and(operand, order),
            1 => cell.fetch_or(operand, order),
            _ => cell.fetch_xor(operand, order),
        }
    }

    /// to[2 * i] <- the i-th last element of `from`
    #[kernel(T = [u8, i8, u16, i16])]
    pub fn reverse<T: AtomicLoadStore>(
        t: Thread<1>,
        order: u32,
        from: &[DeviceAtomic<T>],
        to: &[DeviceAtomic<T>],
    ) {
        let (i, order) = (t.index().get(), ordering(order));
        if i < from.len() {
            to[2 * i].store(from[from.len() - 1 - i].load(for_reading(order)), for_writing(order));
        }
    }

    macro_rules! integer {
        ($t:ident, $order:ident, $operand:ident, $expected:ident, $cells:ident, $returned:ident) => {
            let i = $t.index();
            let number = i.get();
            if let Some(returned) = $returned.get_mut(i) {
                let (cell, order) = (&$cells[number], ordering($order));
                *returned = match number.checked_sub(NUMERIC) {
                    None => numeric(number, cell, $operand, $expected, order),
                    Some(number) => bitwise(number, cell, $operand, order),
                };
            }
        };
    }

    /// Thread i: operation i on element i.
    #[kernel]
    pub fn on_u32(
        t: Thread<1>,
        order: u32,
        operand: u32,
        expected: u32,
        cells: &[DeviceAtomic<u32>],
        mut returned: DisjointSlice<u32>,
    ) {
        integer!(t, order, operand, expected, cells, returned);
    }

    /// As `on_u32`, in the scope of the block.
    #[kernel]
    pub fn on_u32_in_block(
        t: Thread<1>,
        order: u32,
        operand: u32,
        expected: u32,
        cells: &[DeviceAtomic<u32, Block>],
        mut returned: DisjointSlice<u32>,
    ) {
        integer!(t, order, operand, expected, cells, returned);
    }

    /// As `on_u64`, in the scope of the system.
    #[kernel]
    pub fn on_u64_in_system(
        t: Thread<1>,
        order: u32,
        operand: u64,
        expected: u64,
        cells: &[DeviceAtomic<u64, System>],
        mut returned: DisjointSlice<u64>,
    ) {
        integer!(t, order, operand, expected, cells, returned);
    }

    /// Thread i: operation i on element i.
    #[kernel]
    pub fn on_i32(
        t: Thread<1>,
        order: u32,
        operand: i32,
        expected: i32,
        cells: &[DeviceAtomic<i32>],
        mut returned: DisjointSlice<i32>,
    ) {
        integer!(t, order, operand, expected, cells, returned);
    }

    /// Thread i: operation i on element i.
    #[kernel]
    pub fn on_u64(
        t: Thread<1>,
        order: u32,
        operand: u64,
        expected: u64,
        cells: &[DeviceAtomic<u64>],
        mut returned: DisjointSlice<u64>,
    ) {
        integer!(t, order, operand, expected, cells, returned);
    }

    /// Thread i: operation i on element i.
    #[kernel]
    pub fn on_i64(
        t: Thread<1>,
        order: u32,
        operand: i64,
        expected: i64,
        cells: &[DeviceAtomic<i64>],
        mut returned: DisjointSlice<i64>,
    ) {
        integer!(t, order, operand, expected, cells, returned);
    }

    /// Thread i: operation i on element i.
    #[kernel]
    pub fn on_f32(
        t: Thread<1>,
        order: u32,
        operand: f32,
        expected: f32,
        cells: &[DeviceAtomic<f32>],
        mut returned: DisjointSlice<f32>,
    ) {
        let i = t.index();
        if let Some(returned) = returned.get_mut(i) {
            *returned = numeric(i.get(), &cells[i.get()], operand, expected, ordering(order));
        }
    }

    /// Thread i: operation i on element i.
    #[kernel]
    pub fn on_f64(
        t: Thread<1>,
        order: u32,
        operand: f64,
        expected: f64,
        cells: &[DeviceAtomic<f64>],
        mut returned: DisjointSlice<f64>,
    ) {
        let i = t.index();
        if let Some(returned) = returned.get_mut(i) {
            *returned = numeric(i.get(), &cells[i.get()], operand, expected, ordering(order));
        }
    }
}

/// Many threads on the same elements.
#[ferrogrid::module]
pub mod contended {
    use ferrogrid::device::atomic::{Block, Ordering};
    use ferrogrid::device::prelude::*;

    /// Each thread takes the next number of a counter.
    #[kernel]
    pub fn tickets(t: Thread<1>, counter: &[DeviceAtomic<u32>], mut taken: DisjointSlice<u32>) {
        if let Some(taken) = taken.get_mut(t.index()) {
            *taken = counter[0].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As `tickets`, with 64 bits, downwards.
    #[kernel]
    pub fn tickets_down(t: Thread<1>, counter: &[DeviceAtomic<u64>], mut taken: DisjointSlice<u64>) {
        if let Some(taken) = taken.get_mut(t.index()) {
            *taken = counter[0].fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Counts each byte.
    #[kernel]
    pub fn histogram(t: Thread<1>, data: &[u8], counts: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(data.len()) {
            counts[data[i.get()] as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sum, negative sum, minimum and maximum of all values.
    #[kernel]
    pub fn summary_f32(t: Thread<1>, values: &[f32], result: &[DeviceAtomic<f32>]) {
        for i in t.grid_stride(values.len()) {
            let value = values[i.get()];
            result[0].fetch_add(value, Ordering::Relaxed);
            result[1].fetch_sub(value, Ordering::Relaxed);
            result[2].fetch_min(value, Ordering::Relaxed);
            result[3].fetch_max(value, Ordering::AcqRel);
        }
    }

    /// Sum, negative sum, minimum and maximum of all values.
    #[kernel]
    pub fn summary_f64(t: Thread<1>, values: &[f64], result: &[DeviceAtomic<f64>]) {
        for i in t.grid_stride(values.len()) {
            let value = values[i.get()];
            result[0].fetch_add(value, Ordering::Relaxed);
            result[1].fetch_sub(value, Ordering::Relaxed);
            result[2].fetch_min(value, Ordering::Relaxed);
            result[3].fetch_max(value, Ordering::AcqRel);
        }
    }

    /// The product of all odd numbers below `2 * count`, by a loop around compare-exchange.
    #[kernel]
    pub fn product_of_odds(t: Thread<1>, count: u32, product: &[DeviceAtomic<u64>]) {
        for i in t.grid_stride(count as usize) {
            let factor = 2 * i.get() as u64 + 1;
            let mut found = product[0].load(Ordering::Relaxed);
            while let Err(other) = product[0].compare_exchange_weak(
                found,
                found.wrapping_mul(factor),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                found = other;
            }
        }
    }

    /// Thread i sets bit i of `set`, clears it in `cleared`, and toggles it in `toggled`.
    #[kernel]
    pub fn bits(
        t: Thread<1>,
        count: u32,
        set: &[DeviceAtomic<u32>],
        cleared: &[DeviceAtomic<u32>],
        toggled: &[DeviceAtomic<u32>],
    ) {
        for i in t.grid_stride(count as usize) {
            let (word, bit) = (i.get() / 32, 1 << (i.get() % 32));
            set[word].fetch_or(bit, Ordering::Relaxed);
            cleared[word].fetch_and(!bit, Ordering::Relaxed);
            toggled[word].fetch_xor(bit, Ordering::Relaxed);
        }
    }

    /// Each thread stores its number; the last one to arrive, in any block, adds them up.
    #[kernel]
    pub fn last_one_sums(
        t: Thread<1>,
        count: u32,
        slots: &[DeviceAtomic<u32>],
        arrived: &[DeviceAtomic<u32>],
        sum: &[DeviceAtomic<u64>],
    ) {
        let i = t.index().get();
        if i >= count as usize {
            return;
        }
        slots[i].store(i as u32 + 1, Ordering::Relaxed);
        if arrived[0].fetch_add(1, Ordering::AcqRel) == count - 1 {
            let total = slots.iter().map(|slot| slot.load(Ordering::Relaxed) as u64).sum();
            sum[0].store(total, Ordering::Release);
        }
    }

    /// The threads of each block count themselves, in the scope of the block.
    #[kernel]
    pub fn threads_of_each_block(t: Thread<1>, counts: &[DeviceAtomic<u32, Block>]) {
        counts[t.block_idx()[0] as usize].fetch_add(1, Ordering::Relaxed);
    }
}
