//! Kernels that copy boxes of tensors to shared memory and back.

#[ferrogrid::module]
pub mod moving {
    use ferrogrid::device::MapNumber;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::shared::{BoxArray, BoxStages, OutputBox, Published};

    /// Where a box is copied from, the rows' axis first, and where to; along rows they count in 16 bytes.
    pub type Places = [i32; 10];

    /// Copies the box of `x` at the first of each pair of places, and calls `store` with it and the second one; each block for its share.
    #[inline(always)]
    fn copies<A: BoxArray<Element: MapNumber>, const B: usize, const O: usize>(
        t: &Thread<3>,
        (places, x): (&[Places], BoxMap<A>),
        boxes: Shared<BoxStages<A, 2>, B>,
        mut out: Shared<OutputBox<A>, O>,
        corner: impl Fn([isize; 5]) -> A::Corner,
        store: impl Fn(&Published<OutputBox<A>, O>, [usize; 5]),
    ) {
        let (mut boxes, group) = (boxes.into_stages(), 16 / size_of::<A::Element>() as isize);
        let mut number = t.block_idx()[0] as usize;
        while let Some([x0, x1, x2, x3, x4, y0, y1, y2, y3, y4]) =
            places.get(number).map(|it| it.map(|axis| axis as isize))
        {
            let from = corner([x0 * group, x1, x2, x3, x4]);
            x.prefetch(t, from);
            boxes.copy(t, x, from);
            t.advance(&mut boxes);
            let copied = boxes.current();
            out.fill_with(t, |place| copied[place]);
            let published = t.publish(out);
            store(&published, [y0 * group, y1, y2, y3, y4].map(|axis| axis as usize));
            out = t.reclaim(published);
            number += t.grid_dim()[0] as usize;
        }
    }

    /// y <- the boxes of `x`, of one axis, and z <- z + them.
    #[kernel(block = [8, 3, 2])]
    pub fn lines(
        t: Thread<3>,
        places: &[Places],
        x: BoxMap<[u32; 32]>,
        y: BoxMapMut<[u32; 32]>,
        z: BoxMapMut<[u32; 32]>,
        boxes: Shared<BoxStages<[u32; 32], 2>>,
        out: Shared<OutputBox<[u32; 32]>>,
    ) {
        copies(
            &t,
            (places, x),
            boxes,
            out,
            |[x, ..]| x,
            |out, [x, ..]| {
                y.store(&t, out, x);
                z.add(&t, out, x);
            },
        );
    }

    /// As `lines`, of three axes.
    #[kernel(block = [8, 3, 2])]
    pub fn blocks(
        t: Thread<3>,
        places: &[Places],
        x: BoxMap<[[[f32; 12]; 3]; 2]>,
        y: BoxMapMut<[[[f32; 12]; 3]; 2]>,
        z: BoxMapMut<[[[f32; 12]; 3]; 2]>,
        boxes: Shared<BoxStages<[[[f32; 12]; 3]; 2], 2>>,
        out: Shared<OutputBox<[[[f32; 12]; 3]; 2]>>,
    ) {
        copies(
            &t,
            (places, x),
            boxes,
            out,
            |[x, y, z, ..]| [z, y, x],
            |out, [i, j, k, ..]| {
                y.store(&t, out, [k, j, i]);
                z.add(&t, out, [k, j, i]);
            },
        );
    }

    /// As `lines`, of three axes, with rows of 128 bytes.
    #[kernel(block = [8, 3, 2])]
    pub fn swizzled_blocks(
        t: Thread<3>,
        places: &[Places],
        x: BoxMap<[[[u16; 64]; 5]; 3]>,
        y: BoxMapMut<[[[u16; 64]; 5]; 3]>,
        boxes: Shared<BoxStages<[[[u16; 64]; 5]; 3], 2>>,
        out: Shared<OutputBox<[[[u16; 64]; 5]; 3]>>,
    ) {
        copies(
            &t,
            (places, x),
            boxes,
            out,
            |[x, y, z, ..]| [z, y, x],
            |out, [i, j, k, ..]| {
                y.store(&t, out, [k, j, i]);
            },
        );
    }

    /// As `lines`, of four axes.
    #[kernel(block = [8, 3, 2])]
    pub fn of_four_axes(
        t: Thread<3>,
        places: &[Places],
        x: BoxMap<[[[[u64; 2]; 3]; 2]; 4]>,
        y: BoxMapMut<[[[[u64; 2]; 3]; 2]; 4]>,
        z: BoxMapMut<[[[[u64; 2]; 3]; 2]; 4]>,
        boxes: Shared<BoxStages<[[[[u64; 2]; 3]; 2]; 4], 2>>,
        out: Shared<OutputBox<[[[[u64; 2]; 3]; 2]; 4]>>,
    ) {
        copies(
            &t,
            (places, x),
            boxes,
            out,
            |[x, y, z, u, _]| [u, z, y, x],
            |out, [i, j, k, l, _]| {
                y.store(&t, out, [l, k, j, i]);
                z.add(&t, out, [l, k, j, i]);
            },
        );
    }

    /// As `lines`, of five axes, with rows of 128 bytes.
    #[kernel(block = [8, 3, 2])]
    pub fn of_five_axes(
        t: Thread<3>,
        places: &[Places],
        x: BoxMap<[[[[[i32; 32]; 2]; 3]; 2]; 2]>,
        y: BoxMapMut<[[[[[i32; 32]; 2]; 3]; 2]; 2]>,
        z: BoxMapMut<[[[[[i32; 32]; 2]; 3]; 2]; 2]>,
        boxes: Shared<BoxStages<[[[[[i32; 32]; 2]; 3]; 2]; 2], 2>>,
        out: Shared<OutputBox<[[[[[i32; 32]; 2]; 3]; 2]; 2]>>,
    ) {
        copies(
            &t,
            (places, x),
            boxes,
            out,
            |[x, y, z, u, v]| [v, u, z, y, x],
            |out, [i, j, k, l, m]| {
                y.store(&t, out, [m, l, k, j, i]);
                z.add(&t, out, [m, l, k, j, i]);
            },
        );
    }

    /// y <- the element of x at each place, or 1000; the extents of x are in it, too.
    #[kernel]
    pub fn read(
        t: Thread<1>,
        places: &[[u32; 4]],
        x: BoxMap<[[[[u32; 4]; 1]; 1]; 1]>,
        mut y: DisjointSlice<u32>,
    ) {
        let i = t.index();
        if let (Some(y), Some(place)) = (y.get_mut(i), places.get(i.get())) {
            *y = x.get(place.map(|axis| axis as usize)).copied().unwrap_or(1000);
            if i.get() == 0 {
                *y = x.extent().iter().fold(0, |all, axis| all * 10 + *axis as u32);
            }
        }
    }
}
