//! Kernels that store tiles of shared memory to planes.

#[ferrogrid::module]
pub mod storing {
    use ferrogrid::device::half::{bf16, f16};
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::OutputTile;
    use ferrogrid::device::{MapNumber, TensorMapMut};

    /// The rows of a tile.
    pub const HEIGHT: usize = 9;

    /// An element of any type.
    pub trait Numbered: MapNumber {
        /// A number up to 100.
        fn of(number: u8) -> Self;
    }

    macro_rules! numbered {
        ($($t:ident $of:expr;)*) => { $(
            impl Numbered for $t {
                fn of(number: u8) -> Self {
                    $of(number)
                }
            }
        )* };
    }
    numbered! {
        u8 |n| n; i8 |n: u8| n as i8; u16 u16::from; i16 i16::from; u32 u32::from; i32 i32::from; u64 u64::from; i64 i64::from;
        f32 f32::from; f64 f64::from; f16 |n| f16::from_f32(f32::from(n)); bf16 |n| bf16::from_f32(f32::from(n));
    }

    /// Stores at each of the block's share of the places, whose columns count in 16 bytes, a tile whose elements are numbered from place to place.
    #[inline(always)]
    fn number<T: Numbered, const W: usize, const ID: usize>(
        t: &Thread<3>,
        places: &[[u32; 2]],
        y: TensorMapMut<T, W, HEIGHT>,
        mut tile: Shared<OutputTile<T, W, HEIGHT>, ID>,
    ) {
        let each = places.len().div_ceil(t.grid_dim()[0] as usize);
        for own in 0..each {
            let number = t.block_idx()[0] as usize * each + own;
            tile.fill_with(t, |[row, column]| T::of((((number * HEIGHT + row) * W + column) % 100) as u8));
            let published = t.publish(tile);
            if let Some([row, column]) = places.get(number).map(|place| place.map(|it| it as usize)) {
                y.store(t, &published, [row, column * (16 / size_of::<T>())]);
            }
            tile = t.reclaim(published);
        }
    }

    /// As `number`.
    #[kernel(block = [8, 3, 2], T = [u8, i8], W = [16, 128, 256])]
    pub fn bytes<T: Numbered, const W: usize>(
        t: Thread<3>,
        places: &[[u32; 2]],
        y: TensorMapMut<T, W, HEIGHT>,
        tile: Shared<OutputTile<T, W, HEIGHT>>,
    ) {
        number(&t, places, y, tile);
    }

    /// As `number`.
    #[kernel(block = [8, 3, 2], T = [u16, i16, f16, bf16], W = [8, 64])]
    pub fn halves<T: Numbered, const W: usize>(
        t: Thread<3>,
        places: &[[u32; 2]],
        y: TensorMapMut<T, W, HEIGHT>,
        tile: Shared<OutputTile<T, W, HEIGHT>>,
    ) {
        number(&t, places, y, tile);
    }

    /// As `number`.
    #[kernel(block = [8, 3, 2], T = [u32, i32, f32], W = [4, 32, 36])]
    pub fn words<T: Numbered, const W: usize>(
        t: Thread<3>,
        places: &[[u32; 2]],
        y: TensorMapMut<T, W, HEIGHT>,
        tile: Shared<OutputTile<T, W, HEIGHT>>,
    ) {
        number(&t, places, y, tile);
    }

    /// As `number`.
    #[kernel(block = [8, 3, 2], T = [u64, i64, f64], W = [2, 16])]
    pub fn longs<T: Numbered, const W: usize>(
        t: Thread<3>,
        places: &[[u32; 2]],
        y: TensorMapMut<T, W, HEIGHT>,
        tile: Shared<OutputTile<T, W, HEIGHT>>,
    ) {
        number(&t, places, y, tile);
    }

    /// Adds the tile of `x` to the plane at each of the places, whose columns count in 16 bytes; each block for its share.
    #[kernel(block = [8, 3, 2], T = [u32, i32, u64, i64, f32, f64])]
    pub fn add<T: MapNumber + AtomicValue>(
        t: Thread<3>,
        places: &[[u32; 2]],
        x: Plane<T>,
        y: TensorMapMut<T, 16, HEIGHT>,
        mut tile: Shared<OutputTile<T, 16, HEIGHT>>,
    ) {
        tile.fill_with(&t, |[row, column]| x[row][column]);
        let tile = t.publish(tile);
        let mut number = t.block_idx()[0] as usize;
        while let Some(place) = places.get(number) {
            let [row, column] = place.map(|it| it as usize);
            y.add(&t, &tile, [row, column * (16 / size_of::<T>())]);
            number += t.grid_dim()[0] as usize;
        }
    }

    /// y <- the transpose of x, from one tile to another; z <- x, back from there.
    #[kernel(block = [32, 4])]
    pub fn transpose(
        t: Thread<2>,
        x: Plane<f32>,
        y: TensorMapMut<f32, 32, 32>,
        mut z: DisjointTiles<f32, 32, 32>,
        mut tile: Shared<OutputTile<f32, 32, 32>>,
        mut turned: Shared<OutputTile<f32, 32, 32>>,
    ) {
        let [across, down] = t.block_idx().map(|block| block as usize * 32);
        tile.fill_with(&t, |[row, column]| x.get(down + row, across + column).copied().unwrap_or(-1.0));
        let read = t.publish(tile);
        turned.fill_with(&t, |[row, column]| read[[column, row]]);
        let (read, mut tile) = t.publish_and_reclaim(turned, read);
        y.store(&t, &read, [across, down]);
        tile.fill_with(&t, |[row, column]| read[[column, row]]);
        let tile = t.publish(tile);
        z.fill_with(&t, |[row, column]| tile[[row - down, column - across]]);
    }

    /// Panics while tiles are stored.
    #[kernel(block = 64)]
    pub fn panicking(
        t: Thread<1>,
        kind: u32,
        y: TensorMapMut<u32, 32, 64>,
        mut tile: Shared<OutputTile<u32, 32, 64>>,
    ) {
        let rank = t.thread_rank();
        for step in 0..4 {
            tile.fill_with(&t, |[row, column]| (row + column) as u32);
            let published = t.publish(tile);
            y.store(
                &t,
                &published,
                [if kind == 3 { 1 << 31 } else { 64 * step }, if kind == 4 { 2 } else { 32 }],
            );
            if step == 2 {
                match kind {
                    0 => assert!(rank != 0, "the thread that stores"),
                    1 => assert!(rank != 63, "another thread"),
                    2 => panic!("all threads"),
                    _ => (),
                }
            }
            tile = t.reclaim(published);
        }
    }
}
