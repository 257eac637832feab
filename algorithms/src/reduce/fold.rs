//! What one thread contributes to a reduction.

/// Device code that all reductions share.
#[ferrogrid::module]
pub mod folds {
    use ferrogrid::device::prelude::*;

    /// The threads of a block.
    pub const THREADS: usize = 256;
    /// The elements that a thread loads before it combines them: enough loads on their way to hide their latency.
    pub const ITEMS: usize = 16;
    /// The elements that a block combines at a time.
    pub const TILE: usize = THREADS * ITEMS;

    /// The values of the thread's elements in tiles `b`, `b + blocks`, `b + 2 * blocks` and so on, for block `b`, combined.
    /// The order depends on the length of `x` and the number of blocks alone.
    #[inline(always)]
    pub fn fold<T: DeviceCopy, A: Copy>(
        t: &Thread<'_, 1>,
        x: &[T],
        identity: A,
        value: impl Fn(T) -> A,
        combine: impl Fn(A, A) -> A,
    ) -> A {
        let of_items = |_, items: [T; ITEMS]| by_pairs(items.map(&value), &combine);
        fold_tiles(t, x, identity, of_items, |_, x| value(x), &combine)
    }

    /// As [`fold`], of pairs of elements of two slices of one length.
    #[inline(always)]
    pub fn fold_pairs<T: DeviceCopy, A: Copy>(
        t: &Thread<'_, 1>,
        (x, y): (&[T], &[T]),
        identity: A,
        value: impl Fn(T, T) -> A,
        combine: impl Fn(A, A) -> A,
    ) -> A {
        let (tiles, _) = y.as_chunks::<TILE>();
        let of_items = |first: usize, items: [T; ITEMS]| {
            // The remainders leave no bounds check but that of the tile.
            let (tile, rank) = (&tiles[first / TILE], first % THREADS);
            by_pairs(core::array::from_fn(|k| value(items[k], tile[k * THREADS + rank])), &combine)
        };
        fold_tiles(t, x, identity, of_items, |index, x| value(x, y[index]), &combine)
    }

    /// Combines neighbours: shorter chains, and fewer roundings for each element, than one after the other.
    #[inline(always)]
    pub fn by_pairs<A: Copy>(mut items: [A; ITEMS], combine: impl Fn(A, A) -> A) -> A {
        let mut half = ITEMS / 2;
        while half > 0 {
            for k in 0..half {
                items[k] = combine(items[k], items[k + half]);
            }
            half /= 2;
        }
        items[0]
    }

    /// Combines `identity`, what `of_items` makes of the thread's items of each tile, and what `of_one` makes of its
    /// elements after the last tile. Both get the index of their first element; items follow each other by `THREADS`.
    #[inline(always)]
    pub fn fold_tiles<T: DeviceCopy, A>(
        t: &Thread<'_, 1>,
        x: &[T],
        identity: A,
        of_items: impl Fn(usize, [T; ITEMS]) -> A,
        of_one: impl Fn(usize, T) -> A,
        combine: impl Fn(A, A) -> A,
    ) -> A {
        // The remainder tells LLVM what the kernel's `block` says, so that no place in a tile is checked.
        let rank = t.thread_rank() as usize % THREADS;
        let ([block], [blocks]) = (t.block_idx(), t.grid_dim());
        let (tiles, rest) = x.as_chunks::<TILE>();
        let (mut own, mut tile) = (identity, block as usize);
        while tile < tiles.len() {
            let items = core::array::from_fn(|k| tiles[tile][k * THREADS + rank]);
            own = combine(own, of_items(tile * TILE + rank, items));
            tile += blocks as usize;
        }
        if tile == tiles.len() {
            let mut place = rank;
            while place < rest.len() {
                own = combine(own, of_one(tile * TILE + place, rest[place]));
                place += THREADS;
            }
        }
        own
    }
}
