//! Kernels whose threads reach more than one element: grid-stride loops, and 16 bytes at once. It must
//! not know what is expected of them.

/// Loops over more places than there are threads.
#[ferrogrid::module]
pub mod strided {
    use ferrogrid::device::prelude::*;

    /// Adds one to each element.
    #[kernel]
    pub fn increment(t: Thread<1>, mut data: DisjointSlice<u32>) {
        for i in t.grid_stride(data.len()) {
            if let Some(value) = data.get_mut(i) {
                *value += 1;
            }
        }
    }

    /// Adds to each element its number, with an end far beyond the last.
    #[kernel]
    pub fn first_of_many(t: Thread<1>, end: usize, mut data: DisjointSlice<u32>) {
        for i in t.grid_stride(end).take(2) {
            if let Some(value) = data.get_mut(i) {
                *value += 1 + i.get() as u32;
            }
        }
    }

    /// Adds to each element of a plane its number.
    #[kernel]
    pub fn number_plane(t: Thread<2>, mut plane: DisjointSlice<u32, 2>) {
        let width = plane.width();
        for i in t.grid_stride(width, plane.height()) {
            if let Some(value) = plane.get_mut(i) {
                *value += (i.y() * width + i.x()) as u32;
            }
        }
    }
}

/// Elements of 16 bytes.
#[ferrogrid::module]
pub mod grouped {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y.
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[Aligned16<[f32; 4]>], mut y: DisjointSlice<Aligned16<[f32; 4]>>) {
        for i in t.grid_stride(y.len()) {
            if let Some(y) = y.get_mut(i) {
                for k in 0..4 {
                    y[k] += a * x[i.get()][k];
                }
            }
        }
    }

    /// output <- input.
    #[kernel]
    pub fn copy(t: Thread<1>, input: &[Aligned16<[u16; 8]>], mut output: DisjointSlice<Aligned16<[u16; 8]>>) {
        let i = t.index();
        if let Some(group) = output.get_mut(i) {
            *group = input[i.get()];
        }
    }

    /// Turns each pair around, and multiplies it by a pair.
    #[kernel]
    pub fn swap_pairs(t: Thread<1>, by: Aligned16<[f64; 2]>, mut pairs: DisjointSlice<Aligned16<[f64; 2]>>) {
        if let Some(pair) = pairs.get_mut(t.index()) {
            let [first, second] = pair.into_inner();
            *pair = Aligned16::new([second * by[0], first * by[1]]);
        }
    }
}
