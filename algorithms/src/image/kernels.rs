//! The kernels of images, and what a pixel is.

/// The kernels.
#[ferrogrid::module(arch = ["sm_75"])]
pub mod kernels {
    use ferrogrid::device::prelude::*;

    /// How pixels between pixels are found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, DeviceCopy)]
    #[repr(u32)]
    pub enum Interpolation {
        /// The pixel in whose square the centre of the new pixel lies (NPP's `NPPI_INTER_NN`).
        Nearest,
        /// From the four pixels around the centre of the new pixel, by distance (NPP's `NPPI_INTER_LINEAR`).
        Linear,
    }

    /// A channel of a pixel: computed in `f32`.
    pub trait Channel: DeviceCopy {
        /// As `f32`.
        fn widen(self) -> f32;
        /// The nearest value; of two the greater one.
        fn narrow(x: f32) -> Self;
        /// The luminance of red, green and blue.
        fn luminance(red: Self, green: Self, blue: Self) -> Self;
    }

    impl Channel for u8 {
        #[inline(always)]
        fn widen(self) -> f32 {
            self.into()
        }
        #[inline(always)]
        fn narrow(x: f32) -> Self {
            (x + 0.5) as u8
        }
        #[inline(always)]
        fn luminance(red: Self, green: Self, blue: Self) -> Self {
            let [red, green, blue] = [red, green, blue].map(u32::from);
            ((299 * red + 587 * green + 114 * blue + 500) / 1000) as u8
        }
    }

    impl Channel for f32 {
        #[inline(always)]
        fn widen(self) -> f32 {
            self
        }
        #[inline(always)]
        fn narrow(x: f32) -> Self {
            x
        }
        #[inline(always)]
        fn luminance(red: Self, green: Self, blue: Self) -> Self {
            0.299 * red + 0.587 * green + 0.114 * blue
        }
    }

    /// A pixel: one channel, or several as an array.
    pub trait Pixel: DeviceCopy {
        /// The mean of four corners, of which the right and the lower ones have these weights.
        fn mean(corners: [[Self; 2]; 2], right: f32, lower: f32) -> Self;
    }

    /// The mean of four channels.
    #[inline(always)]
    fn mean<C: Channel>(corners: [[C; 2]; 2], right: f32, lower: f32) -> C {
        let between = |a: f32, b: f32, weight: f32| a + (b - a) * weight;
        let [upper, below] = corners.map(|[a, b]| between(a.widen(), b.widen(), right));
        C::narrow(between(upper, below, lower))
    }

    impl Pixel for u8 {
        #[inline(always)]
        fn mean(corners: [[Self; 2]; 2], right: f32, lower: f32) -> Self {
            mean(corners, right, lower)
        }
    }

    impl Pixel for f32 {
        #[inline(always)]
        fn mean(corners: [[Self; 2]; 2], right: f32, lower: f32) -> Self {
            mean(corners, right, lower)
        }
    }

    impl<C: Channel, const N: usize> Pixel for [C; N]
    where
        [C; N]: DeviceCopy,
    {
        #[inline(always)]
        fn mean(corners: [[Self; 2]; 2], right: f32, lower: f32) -> Self {
            core::array::from_fn(|k| mean(corners.map(|row| row.map(|pixel| pixel[k])), right, lower))
        }
    }

    /// The pixels between which the centre of pixel `i` of `to` lies on a line of `from`, and the weight of the second.
    #[inline(always)]
    fn between(i: usize, from: usize, to: usize) -> ([usize; 2], f32) {
        // In halves of a new pixel, so that all is whole.
        let centre = (2 * i as i64 + 1) * from as i64 - to as i64;
        let (first, rest) = (centre.div_euclid(2 * to as i64), centre.rem_euclid(2 * to as i64));
        let last = from as i64 - 1;
        ([first.max(0) as usize, (first + 1).min(last) as usize], rest as f32 / (2 * to) as f32)
    }

    /// y <- the image x, `from` pixels wide and high, in another size
    #[kernel(block = [32, 8], wide, P = [u8, [u8; 3], [u8; 4], f32, [f32; 3], [f32; 4]])]
    pub fn resize_pixels<P: Pixel>(
        t: Thread<2>,
        interpolation: Interpolation,
        from: [u64; 2],
        pitch: u64,
        x: &[P],
        mut y: DisjointSlice<P, 2>,
    ) {
        let (index, [width, height]) = (t.index(), y.shape());
        if let Some(y) = y.get_mut(index) {
            let [from_width, from_height] = from.map(|extent| extent as usize);
            let pixel = |row: usize, column: usize| x[row * pitch as usize + column];
            *y = match interpolation {
                Interpolation::Nearest => {
                    let nearest = |i: usize, from: usize, to: usize| (2 * i + 1) * from / (2 * to);
                    pixel(nearest(index.y(), from_height, height), nearest(index.x(), from_width, width))
                }
                Interpolation::Linear => {
                    let (rows, lower) = between(index.y(), from_height, height);
                    let (columns, right) = between(index.x(), from_width, width);
                    P::mean(rows.map(|row| columns.map(|column| pixel(row, column))), right, lower)
                }
            };
        }
    }

    /// A pixel with red, green and blue first.
    pub trait Colour: DeviceCopy {
        /// Of each channel.
        type Channel: Channel;
        /// The luminance.
        fn luminance(self) -> Self::Channel;
    }

    impl<C: Channel> Colour for [C; 3]
    where
        [C; 3]: DeviceCopy,
    {
        type Channel = C;
        #[inline(always)]
        fn luminance(self) -> C {
            let [red, green, blue] = self;
            C::luminance(red, green, blue)
        }
    }

    impl<C: Channel> Colour for [C; 4]
    where
        [C; 4]: DeviceCopy,
    {
        type Channel = C;
        #[inline(always)]
        fn luminance(self) -> C {
            let [red, green, blue, _] = self;
            C::luminance(red, green, blue)
        }
    }

    /// y <- the luminance of x
    #[kernel(block = [32, 8], wide, P = [[u8; 3], [u8; 4], [f32; 3], [f32; 4]])]
    pub fn gray_pixels<P: Colour>(
        t: Thread<2>,
        pitch: u64,
        x: &[P],
        mut y: DisjointSlice<<P as Colour>::Channel, 2>,
    ) {
        let index = t.index();
        if let Some(y) = y.get_mut(index) {
            *y = x[index.y() * pitch as usize + index.x()].luminance();
        }
    }
}
