use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn copy(t: Thread<2>, from: Plane<u8>, mut picture: DisjointSlice<u8, 2>) {
        let i = t.index();
        if let (Some(from), Some(pixel)) = (from.get(i.y(), i.x()), picture.get_mut(i)) {
            *pixel = *from;
        }
    }
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let from = stream.upload(&[1_u8; 64])?;
    let mut picture = stream.upload(&[0_u8; 64])?;
    kernels::copy(&stream, Grid::cover([8, 8]), &from, picture.view_2d_mut(8, 8)?)?;
    Ok(())
}
