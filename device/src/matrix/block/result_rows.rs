//! [`ResultRows`]: shared memory through which a block's sums reach device memory by whole rows.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use bytemuck::Pod;

use super::{ProductSums, ROW, ResultTile, each_column};
use crate::atomic::{AtomicLoadStore, DeviceAtomic, Ordering::Relaxed};
use crate::matrix::{COLUMNS, ROWS, unrolled};
use crate::shared::{Shared, without_elements};
use crate::warp::Warp;

/// The bytes that a thread stores at once.
const SIXTEEN: usize = 16;
/// The threads that store 128 bytes of a row.
const ACROSS: usize = ROW / SIXTEEN;
/// The rows that the threads of a warp store 128 bytes of at once.
const DOWN: usize = 32 / ACROSS;

/// Shared memory through which the sums of [`Products`](super::Products) with `M` rows are stored: 128 bytes for each row. See
/// [`ProductSums::store_rows`].
#[repr(C, align(16))]
pub struct ResultRows<const M: usize>([[MaybeUninit<u8>; ROW]; M]);

without_elements!([const M: usize] ResultRows<M>, u8);

/// [`ResultRows`] of all warps of a block, of which each uses its own: [`Shared::into_rows`] makes it.
pub struct WarpRows<'b> {
    /// In parts of 16 bytes.
    start: *mut u128,
    rows: usize,
    block: PhantomData<&'b mut u128>,
}

impl<'b, const M: usize, const ID: usize> Shared<'b, ResultRows<M>, ID> {
    /// The rows of all warps.
    #[inline(always)]
    pub fn into_rows(self) -> WarpRows<'b> {
        WarpRows { start: self.start.cast(), rows: M, block: PhantomData }
    }
}

mod sealed {
    pub trait Pair {}
    pub trait Group {}
}

/// Two neighbours of a row as they are stored, of 8, 16 or 32 bits each: `u16`, `u32` and `u64`.
pub trait StoredPair: Pod + sealed::Pair {}

impl sealed::Pair for u16 {}
impl sealed::Pair for u32 {}
impl sealed::Pair for u64 {}
impl StoredPair for u16 {}
impl StoredPair for u32 {}
impl StoredPair for u64 {}

/// What rows of results are made of: `u32` and `u64`.
pub trait StoredGroup: AtomicLoadStore + Pod + sealed::Group {
    /// Stores groups that follow each other, as one.
    ///
    /// # Safety
    /// `first` is a multiple of 16 bytes, and the address of 16 bytes of such groups.
    #[doc(hidden)]
    #[cfg(target_arch = "nvptx64")]
    unsafe fn store_sixteen(first: *const DeviceAtomic<Self>, bits: u128);
}

macro_rules! groups {
    ($($t:ident: $form:literal;)*) => { $(
        impl sealed::Group for $t {}

        impl StoredGroup for $t {
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            unsafe fn store_sixteen(first: *const DeviceAtomic<Self>, bits: u128) {
                // SAFETY: the caller's. A store of a vector is one of each of its numbers, in any order.
                unsafe {
                    core::arch::asm!(
                        $form, first = in(reg64) first, low = in(reg64) bits as u64,
                        high = in(reg64) (bits >> 64) as u64,
                        options(nostack, preserves_flags),
                    );
                }
            }
        }
    )* };
}
groups! {
    u32: "{{ .reg .b32 %a, %b, %c, %d; mov.b64 {{%a, %b}}, {low}; mov.b64 {{%c, %d}}, {high};
        st.relaxed.gpu.v4.b32 [{first}], {{%a, %b, %c, %d}}; }}";
    u64: "st.relaxed.gpu.v2.b64 [{first}], {{{low}, {high}}};";
}

/// Rows of results in device memory, in groups of 4 or 8 bytes that are stored at once: each row begins a number of groups after the one before.
pub struct GroupedRows<'c, G: StoredGroup> {
    start: *const DeviceAtomic<G>,
    pitch: u32,
    /// The rows, and the groups of each.
    extent: [u32; 2],
    groups: PhantomData<&'c [DeviceAtomic<G>]>,
}

impl<G: StoredGroup> Clone for GroupedRows<'_, G> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<G: StoredGroup> Copy for GroupedRows<'_, G> {}

impl<'c, G: StoredGroup> GroupedRows<'c, G> {
    /// `rows` rows of `columns` groups, which begin every `pitch` groups.
    ///
    /// # Panics
    /// If `groups` ends before the last row does, or a number is 2^32 or more.
    #[track_caller]
    #[inline(always)]
    pub fn new(groups: &'c [DeviceAtomic<G>], pitch: usize, [rows, columns]: [usize; 2]) -> Self {
        let fits = |number: usize| number <= u32::MAX as usize;
        assert!(
            fits(pitch) && fits(rows) && fits(columns),
            "rows of results are fewer than 2^32, and as long"
        );
        let end = if rows == 0 || columns == 0 { 0 } else { (rows - 1) * pitch + columns };
        assert!(end <= groups.len(), "rows of results end with their memory");
        let extent = [rows, columns].map(|it| it as u32);
        GroupedRows { start: groups.as_ptr(), pitch: pitch as u32, extent, groups: PhantomData }
    }

    /// Those from a row and a group on.
    #[inline(always)]
    pub fn part(self, [row, group]: [usize; 2]) -> Self {
        let [rows, columns] = self.extent;
        let rest = |of: u32, first: usize| (of as usize).saturating_sub(first) as u32;
        let extent = [rest(rows, row), rest(columns, group)];
        // Where there are none, the address is not used.
        GroupedRows { start: self.start.wrapping_add(row * self.pitch as usize + group), extent, ..self }
    }

    /// Those of a tile, up to the end of its batch or group; `of_group` columns have a group.
    #[inline(always)]
    pub fn of_tile(self, ResultTile { rows: [first, end], column, .. }: ResultTile, of_group: usize) -> Self {
        let part = self.part([first, column / of_group]);
        let [rows, columns] = part.extent;
        GroupedRows { extent: [(end - first).min(rows as usize) as u32, columns], ..part }
    }

    /// The groups of a row; none if there is no such row.
    #[inline(always)]
    pub fn row(self, row: usize) -> &'c [DeviceAtomic<G>] {
        let [rows, columns] = self.extent;
        if row >= rows as usize || columns == 0 {
            return &[];
        }
        // SAFETY: `new` has seen that there are so many.
        unsafe { core::slice::from_raw_parts(self.address(row, 0), columns as usize) }
    }

    /// A group of a row.
    #[inline(always)]
    pub fn get(self, row: usize, group: usize) -> Option<&'c DeviceAtomic<G>> {
        let [rows, columns] = self.extent;
        let is_inside = row < rows as usize && group < columns as usize;
        // SAFETY: `new` has seen that there are so many.
        is_inside.then(|| unsafe { &*self.address(row, group) })
    }

    #[inline(always)]
    fn address(self, row: usize, group: usize) -> *const DeviceAtomic<G> {
        self.start.wrapping_add(row as u32 as usize * self.pitch as usize + group)
    }

    /// Stores those of the groups in 16 bytes that there are.
    #[inline(always)]
    fn store(self, row: usize, group: usize, bits: u128) {
        const { assert!(SIXTEEN.is_multiple_of(size_of::<G>())) };
        let of_sixteen = SIXTEEN / size_of::<G>();
        #[cfg(target_arch = "nvptx64")]
        {
            let [rows, columns] = self.extent;
            let is_aligned = (self.start.addr() | self.pitch as usize * size_of::<G>()) % SIXTEEN == 0;
            if is_aligned && row < rows as usize && group + of_sixteen <= columns as usize {
                // SAFETY: all of them are inside, and the first one is at a multiple of 16 bytes: `group` is one of `of_sixteen`.
                return unsafe { G::store_sixteen(self.address(row, group), bits) };
            }
        }
        for i in 0..of_sixteen {
            if let Some(of_row) = self.get(row, group + i) {
                let bits = (bits >> (i * size_of::<G>() * 8)) as u64;
                let mut number = G::zeroed();
                bytemuck::bytes_of_mut(&mut number).copy_from_slice(&bits.to_le_bytes()[..size_of::<G>()]);
                of_row.store(number, Relaxed);
            }
        }
    }
}

/// What neighbouring sums of a row are stored as. Its function is called for each pair, and inlined whatever it does: LLVM leaves long
/// closures that are called so often as functions, and the sums in local memory.
pub(crate) trait RowOfPairs<U> {
    type Pair: StoredPair;

    /// Two neighbours, of which the first one is in that column.
    fn bits(&mut self, column: usize, pair: [U; 2]) -> Self::Pair;
}

impl<U, P: StoredPair, F: FnMut(usize, [U; 2]) -> P> RowOfPairs<U> for F {
    type Pair = P;

    #[inline(always)]
    fn bits(&mut self, column: usize, pair: [U; 2]) -> P {
        self(column, pair)
    }
}

impl<const N: usize, U: Copy> ProductSums<N, U> {
    /// Stores sums by whole rows: the threads of a warp write them to their part of shared memory, and each stores 16 bytes of what others
    /// wrote, so that a warp's stores are of 128 bytes of four rows. That is the fastest way for large tiles.
    ///
    /// `of_row` gets a row within the product, once for each of the two of which the thread has sums, and returns a closure:
    /// `bits(column, pair)` makes two neighbours of two sums, the first of which is in that column of the product, as `u32` of 16-bit
    /// results, `u64` of 32-bit ones, `u16` of 8-bit ones. `to` has the rows that the product's are stored to: sums
    /// beyond their edges are left out. All threads of the warp make the call together.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// use ferrogrid::device::half::{HalfFloat, bf16};
    /// use ferrogrid::device::matrix::{GroupedRows, Products, ResultRows};
    ///
    /// /// c <- a b^T of up to 128 rows and 64 columns: a block has one product. `c` has fours of numbers.
    /// #[kernel(block = 384)]
    /// pub fn multiply(
    ///     t: Thread<1>, a: TensorMap<bf16, 64, 128>, b: TensorMap<bf16, 64, 64>, c: &[DeviceAtomic<u64>],
    ///     memory: Shared<Products<bf16, 128, 64, 2>>, rows: Shared<ResultRows<128>>,
    /// ) {
    ///     let (mut rows, fours) = (rows.into_rows(), b.height() / 4);
    ///     let c = GroupedRows::new(c, fours, [a.height(), fours]);
    ///     t.multiply_tiles(memory, a, b, [[0, 0]], |[row, column], sums| {
    ///         let bits = |_, pair| bf16::pair_to_bits(pair);
    ///         sums.store_rows(&t.warp(), &mut rows, |_| bits, c.part([row, column / 4]));
    ///     });
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::device::half::bf16;
    ///
    /// let (a, b) = (stream.fill(bf16::ONE, 100 * 32)?, stream.fill(bf16::ONE, 40 * 32)?);
    /// let mut c = stream.zeros(100 * 40 / 4)?;
    /// kernels::multiply(&stream, Grid::blocks(1), a.view_2d(32, 100)?, b.view_2d(32, 40)?, c.as_atomic())?;
    /// assert_eq!(stream.download(&c)?, [0x4200_4200_4200_4200; 100 * 40 / 4]); // 32.0
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If the memory has fewer rows than the block's products; as any operation of a [`Tile`](crate::Tile).
    #[track_caller]
    #[inline(always)]
    pub fn store_rows<G: StoredGroup, P: StoredPair, B: FnMut(usize, [U; 2]) -> P>(
        &self,
        warp: &Warp,
        memory: &mut WarpRows,
        mut of_row: impl FnMut(usize) -> B,
        to: GroupedRows<G>,
    ) {
        let rows = [of_row(self.first[0]), of_row(self.first[0] + ROWS / 2)];
        self.store_pairs(warp, memory, rows, to);
    }

    /// As [`store_rows`](Self::store_rows), of both rows of the thread.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn store_pairs<G: StoredGroup, R: RowOfPairs<U>>(
        &self,
        warp: &Warp,
        memory: &mut WarpRows,
        [mut upper, mut lower]: [R; 2],
        to: GroupedRows<G>,
    ) {
        let [row, first_column] = self.first;
        assert!(row < memory.rows, "`ResultRows` has as many rows as the block's `Products`");
        let first = row / ROWS * ROWS;
        // The warp's rows.
        let start = memory.start.wrapping_add(first * ACROSS);
        let part = |row: usize, number: usize| {
            start.wrapping_add(row * ACROSS + (number ^ turned(row, size_of::<R::Pair>())))
        };
        let mut lane = row % (ROWS / 2) * 4 + first_column / 2;
        each_column!(n, N, {
            let bytes_before = n * COLUMNS / 2 * size_of::<R::Pair>();
            if bytes_before.is_multiple_of(ROW) {
                lane = computed_anew(lane);
            }
            let (above, own_column) = (lane / 4, lane % 4 * 2);
            let ([a, b, c, d], column) = (self.sums[n], first_column + n * COLUMNS);
            let pairs = [upper.bits(column, [a, b]), lower.bits(column, [c, d])];
            let bytes = bytes_before % ROW + own_column / 2 * size_of::<R::Pair>();
            unrolled!(half in 2, {
                let place = part(above + half * ROWS / 2, bytes / SIXTEEN).cast::<u8>().wrapping_add(bytes % SIXTEEN);
                // SAFETY: in a row of this warp, of which nobody reads before it waits, and this thread's place in it.
                unsafe { place.cast::<R::Pair>().write(pairs[half]) };
            });
            // The bytes up to these columns, of a row of results.
            let end = (n + 1) * COLUMNS / 2 * size_of::<R::Pair>();
            if end.is_multiple_of(ROW) || (n + 1) * COLUMNS == N {
                let begin = (end - 1) / ROW * ROW;
                warp.sync();
                let number = lane % ACROSS;
                unrolled!(k in 4, {
                    let row = k * DOWN + lane / ACROSS;
                    if number < (end - begin) / SIXTEEN {
                        // SAFETY: within a row of this warp, whose threads have written all of it before they waited, and write again
                        // after they have waited.
                        let bits = unsafe { part(row, number).read() };
                        let group = begin / size_of::<G>() + number * (SIXTEEN / size_of::<G>());
                        to.store(first + row, group, bits);
                    }
                });
                warp.sync();
            }
        });
    }
}

/// The number, of which LLVM does not know that it has computed with it before: it would keep all addresses that come of it in registers.
#[inline(always)]
pub(super) fn computed_anew(number: usize) -> usize {
    #[cfg(target_arch = "nvptx64")]
    {
        let mut number = number as u32;
        // SAFETY: no instruction.
        unsafe { core::arch::asm!("// {0}", inout(reg32) number, options(nomem, nostack, preserves_flags)) };
        number as usize
    }
    #[cfg(not(target_arch = "nvptx64"))]
    number
}

/// What the number of a part of a row is changed by, so that threads which write a column of pairs of `size` bytes use all banks.
#[inline(always)]
const fn turned(row: usize, size: usize) -> usize {
    if size == 8 { row % 4 * 2 } else { row % ACROSS }
}
