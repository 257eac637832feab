use ferrogrid::prelude::*;
use ferrogrid::Out;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    #[kernel]
    pub fn paint(t: Thread<2>, mut picture: DisjointSlice<u8, 2>) {
        if let Some(pixel) = picture.get_mut(t.index()) {
            *pixel = 255;
        }
    }

    /// # Safety
    /// `p` is valid for every thread.
    #[kernel]
    pub unsafe fn raw(_t: Thread<1>, _p: *mut f32) {}
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let mut picture = vec![1_u8; 8];
    kernels::paint(&stream, Grid::cover([4, 2]), Out(&mut picture))?;
    Ok(())
}
