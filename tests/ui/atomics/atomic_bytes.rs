use ferrogrid::prelude::*;

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::atomic::Ordering;
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn histogram(t: Thread<1>, data: &[u8], counts: &[DeviceAtomic<u32>]) {
        for i in t.grid_stride(data.len()) {
            counts[data[i.get()] as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[kernel]
    pub fn scale(t: Thread<1>, mut fours: DisjointSlice<Aligned16<[f32; 4]>>) {
        if let Some(four) = fours.get_mut(t.index()) {
            four.iter_mut().for_each(|value| *value *= 2.0);
        }
    }
}

fn main() -> ferrogrid::Result<()> {
    let stream = Device::cpu().new_stream()?;
    let data = stream.upload(&[1_u8; 8])?;
    let mut counts = stream.zeros::<u32>(256)?;
    let mut numbers = stream.zeros::<f32>(256)?;
    let mut bytes = stream.zeros::<u8>(4)?;
    kernels::histogram(&stream, Grid::cover(8), &data, bytes.as_atomic())?;
    let _ = (&data, &mut counts, &mut numbers);
    Ok(())
}
