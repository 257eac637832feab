//! Some threads of a block would not come to the barrier in the function.

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn block_max<const ID: usize>(t: &Thread<1>, tile: &mut Shared<[f32; 256], ID>, x: f32) -> f32 {
        tile.fill_with(t, |_| x);
        t.with_published(tile, |all| all.iter().copied().fold(f32::MIN, f32::max))
    }

    #[kernel(block = 256)]
    pub fn largest(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>, mut tile: Shared<[f32; 256]>) {
        if let Some(x) = x.get(t.index().get()) {
            let largest = block_max(&t, &mut tile, *x);
            if let Some(y) = y.get_mut(t.index()) {
                *y = largest;
            }
        }
    }
}

fn main() {}
