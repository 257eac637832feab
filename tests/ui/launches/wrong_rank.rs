use ferrogrid::prelude::*;

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
    let x = stream.upload(&[1.0_f32; 8])?;
    let mut y = stream.upload(&[2.0_f32; 8])?;
    kernels::saxpy(&stream, Grid::cover([8, 1]), 3.0, &x, &mut y)?;
    let _ = (&x, &mut y);
    Ok(())
}
