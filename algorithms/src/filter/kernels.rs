//! The kernels of filters: a weighted sum of each element and those around it.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    use crate::number::numbers::Element;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The results of a thread.
    pub const ROUNDS: usize = 4;

    /// What is read beyond the edges.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, DeviceCopy)]
    #[repr(u32)]
    pub enum Border {
        /// 0: `0 0 | a b c | 0 0` (SciPy's `constant`, NPP's `NPP_BORDER_CONSTANT`).
        Zero,
        /// The nearest element: `a a | a b c | c c` (SciPy's `nearest`, NPP's `NPP_BORDER_REPLICATE`).
        Clamp,
        /// Mirrored at the edge, the last element twice: `b a | a b c | c b` (SciPy's `reflect`).
        Reflect,
        /// From the other side: `b c | a b c | a b` (SciPy's `wrap`, NPP's `NPP_BORDER_WRAP`).
        Wrap,
    }

    /// A matrix, the weights, and how a launch divides the matrix.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    #[repr(C)]
    pub struct Filter {
        /// Columns and rows of the matrix.
        pub extent: [u64; 2],
        /// The elements from the start of a row to that of the next.
        pub pitch: u64,
        /// Columns and rows of the weights.
        pub weights: [u32; 2],
        /// Column and row of the weight that an element itself has.
        pub centre: [u32; 2],
        /// The tiles in a row of them.
        pub across: u32,
        /// The logarithm of a tile's columns.
        pub shift: u32,
        /// Beyond the edges.
        pub border: Border,
        /// Whether the last weight comes first.
        pub is_reversed: bool,
        /// Makes the size a multiple of 8.
        pub padding: [u8; 3],
    }

    /// Where element `i` of `len` is, one beyond the edges included; `None` if it is 0.
    #[inline(always)]
    fn place(i: i64, len: u64, border: Border) -> Option<usize> {
        let len = len as i64;
        if 0 <= i && i < len {
            return Some(i as usize);
        }
        let place = match border {
            Border::Zero => return None,
            // `clamp` has a panic with arguments, which takes a stack.
            Border::Clamp => i.max(0).min(len - 1),
            Border::Wrap => i.rem_euclid(len),
            Border::Reflect => {
                let place = i.rem_euclid(2 * len);
                if place < len { place } else { 2 * len - 1 - place }
            }
        };
        Some(place as usize)
    }

    /// The element in this row and column of the matrix, which has some.
    #[inline(always)]
    fn read<T: Element>(x: &[T], f: Filter, [row, column]: [i64; 2]) -> T {
        match (place(row, f.extent[1], f.border), place(column, f.extent[0], f.border)) {
            (Some(row), Some(column)) => x.get(row * f.pitch as usize + column).copied().unwrap_or(T::ZERO),
            _ => T::ZERO,
        }
    }

    /// Weight `number`, in the order in which weights meet elements.
    #[inline(always)]
    fn weight<T: Element>(weights: &[T], f: Filter, number: usize) -> T {
        let number = if f.is_reversed { weights.len().wrapping_sub(number + 1) } else { number };
        weights.get(number).copied().unwrap_or(T::ZERO)
    }

    /// The results of `f` for the number of each round. LLVM does not unroll longer loops.
    #[inline(always)]
    fn each<U>(mut f: impl FnMut(usize) -> U) -> [U; ROUNDS] {
        [f(0), f(1), f(2), f(3)]
    }

    /// y <- for each element of x the sum of the weights times the elements around it, weights in order. `tile` has the
    /// elements for a tile and the weights.
    #[kernel(block = THREADS, wide, T = [f32, f64])]
    pub fn filter_tiles<T: Element + atomic::AtomicLoadStore>(
        t: Thread<1>,
        f: Filter,
        x: &[T],
        weights: &[T],
        y: &[DeviceAtomic<T>],
        mut tile: SharedSlice<T>,
    ) {
        let ([block], rank) = (t.block_idx(), t.thread_rank() as usize % THREADS);
        let [columns, rows] = f.weights.map(|extent| extent as usize);
        let (wide, high) = (1_usize << f.shift, (THREADS * ROUNDS) >> f.shift);
        let corner = [(block / f.across) as usize * high, ((block % f.across) as usize) << f.shift];
        let first = [corner[0] as i64 - i64::from(f.centre[1]), corner[1] as i64 - i64::from(f.centre[0])];
        // In 32 bits, whose division is faster: shared memory is small.
        let (stride, len) = (wide + columns - 1, (wide + columns - 1) * (high + rows - 1));
        tile.fill_with(&t, |number| {
            let (row, column) = (number as u32 / stride as u32, number as u32 % stride as u32);
            match number < len {
                true => read(x, f, [first[0] + i64::from(row), first[1] + i64::from(column)]),
                false => weight(weights, f, number - len),
            }
        });
        let tile = t.publish(tile);
        let places = each(|round| {
            let number = round * THREADS + rank;
            [number >> f.shift, number & (wide - 1)]
        });
        let mut sums = [T::ZERO; ROUNDS];
        for i in 0..rows {
            let none: &[T] = &[];
            let line = |at: usize| tile.get(at..at + columns).unwrap_or(none);
            let [a, b, c, d] = places.map(|[row, column]| line((row + i) * stride + column));
            let items = line(len + i * columns).iter().zip(a).zip(b).zip(c).zip(d);
            sums = items.fold(sums, |[p, q, r, s], ((((w, a), b), c), d)| {
                [p.add(w.multiply(*a)), q.add(w.multiply(*b)), r.add(w.multiply(*c)), s.add(w.multiply(*d))]
            });
        }
        each(|k| {
            let [row, column] = [corner[0] + places[k][0], corner[1] + places[k][1]];
            if row < f.extent[1] as usize
                && column < f.extent[0] as usize
                && let Some(y) = y.get(row * f.extent[0] as usize + column)
            {
                y.store(sums[k], atomic::Ordering::Relaxed);
            }
        });
    }

    /// As `filter_tiles`, for so many weights that tiles do not fit into shared memory: each element is looked up.
    #[kernel(block = THREADS, wide, T = [f32, f64])]
    pub fn filter_elements<T: Element>(
        t: Thread<1>,
        f: Filter,
        x: &[T],
        weights: &[T],
        mut y: DisjointSlice<T>,
    ) {
        let index = t.index();
        if let Some(y) = y.get_mut(index) {
            let ([width, _], [columns, rows]) = (f.extent, f.weights.map(|extent| extent as usize));
            let place = [index.get() as u64 / width, index.get() as u64 % width];
            let first = [place[0] as i64 - i64::from(f.centre[1]), place[1] as i64 - i64::from(f.centre[0])];
            let mut sum = T::ZERO;
            for i in 0..rows {
                for j in 0..columns {
                    let item = read(x, f, [first[0] + i as i64, first[1] + j as i64]);
                    sum = sum.add(weight(weights, f, i * columns + j).multiply(item));
                }
            }
            *y = sum;
        }
    }
}
