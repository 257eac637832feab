//! Kernels that read textures at any position and write surfaces.

#[ferrogrid::module]
pub mod texturing {
    use ferrogrid::device::half::f16;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::surface::{Clamp, Trap, Zero};
    use ferrogrid::device::{Texel, TextureElement};

    /// out[i] <- x at places[i].
    #[kernel(V = [u8, i8, u16, i16, u32, i32, f32, [f32; 2], [f32; 4], [i8; 2], [u16; 4], [u32; 4]])]
    pub fn sample_1d<V: Texel>(t: Thread<1>, places: &[[f32; 3]], x: Texture<V>, mut out: DisjointSlice<V>) {
        let i = t.index();
        if let (Some(out), Some(&[place, ..])) = (out.get_mut(i), places.get(i.get())) {
            *out = x.sample(place);
        }
    }

    /// The same of rank 2.
    #[kernel(V = [u8, i8, u16, i16, u32, i32, f32, [f32; 2], [f32; 4], [i8; 2], [u16; 4], [u32; 4]])]
    pub fn sample_2d<V: Texel>(
        t: Thread<1>,
        places: &[[f32; 3]],
        x: Texture<V, 2>,
        mut out: DisjointSlice<V>,
    ) {
        let i = t.index();
        if let (Some(out), Some(&[column, row, _])) = (out.get_mut(i), places.get(i.get())) {
            *out = x.sample(column, row);
        }
    }

    /// The same of rank 3.
    #[kernel(V = [u8, i8, u16, i16, u32, i32, f32, [f32; 2], [f32; 4], [i8; 2], [u16; 4], [u32; 4]])]
    pub fn sample_3d<V: Texel>(
        t: Thread<1>,
        places: &[[f32; 3]],
        x: Texture<V, 3>,
        mut out: DisjointSlice<V>,
    ) {
        let i = t.index();
        if let (Some(out), Some(&[column, row, layer])) = (out.get_mut(i), places.get(i.get())) {
            *out = x.sample(column, row, layer);
        }
    }

    /// Each element from `x`, and where it was; the grid is larger.
    #[kernel(T = [u8, i16, f16, u32, f32, [u8; 2], [u8; 4], [f16; 4], [f32; 2], [i32; 4]])]
    pub fn exchange_1d<T: TextureElement>(
        t: Thread<1>,
        x: &[T],
        mut array: Surface<T>,
        mut before: DisjointSlice<T>,
    ) {
        let i = t.index();
        if let (Some(before), Some(found)) = (before.get_mut(i), array.get(i)) {
            *before = found;
        }
        if let Some(&x) = x.get(i.get()) {
            array.set(i, x);
        }
    }

    /// The same of rank 2.
    #[kernel(T = [u8, i16, f16, u32, f32, [u8; 2], [u8; 4], [f16; 4], [f32; 2], [i32; 4]])]
    pub fn exchange_2d<T: TextureElement>(
        t: Thread<2>,
        x: Plane<T>,
        mut array: Surface<T, 2>,
        mut before: DisjointSlice<T, 2>,
    ) {
        let i = t.index();
        if let (Some(before), Some(found)) = (before.get_mut(i), array.get(i)) {
            *before = found;
        }
        if let Some(&x) = x.get(i.y(), i.x()) {
            array.set(i, x);
        }
    }

    /// The same of rank 3.
    #[kernel(T = [u8, i16, f16, u32, f32, [u8; 2], [u8; 4], [f16; 4], [f32; 2], [i32; 4]])]
    pub fn exchange_3d<T: TextureElement>(
        t: Thread<3>,
        x: Volume<T>,
        mut array: Surface<T, 3>,
        mut before: DisjointSlice<T, 3>,
    ) {
        let i = t.index();
        if let (Some(before), Some(found)) = (before.get_mut(i), array.get(i)) {
            *before = found;
        }
        if let Some(&x) = x.get(i.z(), i.y(), i.x()) {
            array.set(i, x);
        }
    }

    /// Writes `value` at the places, and reads them, `0` drops accesses outside and `1` clamps to the edge.
    ///
    /// # Safety
    /// No two places are one element.
    #[kernel]
    pub unsafe fn at_places(
        t: Thread<1>,
        mode: u32,
        places: &[[i32; 2]],
        value: u32,
        array: Surface<u32, 2>,
        mut out: DisjointSlice<u32>,
    ) {
        let i = t.index();
        let (Some(out), Some(&place)) = (out.get_mut(i), places.get(i.get())) else { return };
        // SAFETY: the caller's.
        unsafe {
            *out = if mode == 0 { array.read::<Zero>(place) } else { array.read::<Clamp>(place) };
            let value = value + i.get() as u32;
            if mode == 0 {
                array.write::<Zero>(place, value);
            } else {
                array.write::<Clamp>(place, value);
            }
        }
    }

    /// Ends the launch if `place` is outside.
    ///
    /// # Safety
    /// None is needed for one thread.
    #[kernel]
    pub unsafe fn trap(_t: Thread<1>, place: i32, array: Surface<u32>) {
        // SAFETY: there is one thread.
        unsafe { array.write::<Trap>([place], 7) };
    }

    /// y <- x + y, where x is a texture; each thread is at work for a while.
    #[kernel]
    pub fn add(t: Thread<2>, rounds: u32, x: Texture<f32, 2>, mut y: DisjointSlice<f32, 2>) {
        let i = t.index();
        let mut sum = 0.0;
        for round in 0..rounds {
            // Always the same element, but the compiler cannot know that.
            let zero = if round < u32::MAX { 0.5 } else { 0.0 };
            sum = x.sample(i.x() as f32 + zero, i.y() as f32 + zero);
        }
        if let Some(y) = y.get_mut(i) {
            *y += sum;
        }
    }

    /// Each element one more.
    #[kernel]
    pub fn count(t: Thread<2>, mut x: Surface<u32, 2>) {
        let i = t.index();
        if let Some(found) = x.get(i) {
            x.set(i, found + 1);
        }
    }

    /// Writes all, and panics where a number is negative.
    #[kernel]
    pub fn roots(t: Thread<1>, x: &[f32], mut array: Surface<f32>) {
        let i = t.index();
        if let Some(&x) = x.get(i.get()) {
            assert!(x >= 0.0, "{x} has no root");
            array.set(i, x.sqrt());
        }
    }

    /// A barrier depends on a texture, which is read before and after it.
    #[kernel(block = 64)]
    pub fn meeting(t: Thread<1>, x: Texture<f32>, mut out: DisjointSlice<u32>) {
        let rank = t.thread_rank() as f32;
        let mut sum = 0;
        for round in 0..4 {
            if x.sample(round as f32 + 0.5) > 0.0 {
                sum += t.sync_threads_count(x.sample(rank + 0.5) > 1.0);
            }
        }
        if let Some(out) = out.get_mut(t.index()) {
            *out = sum;
        }
    }
}
