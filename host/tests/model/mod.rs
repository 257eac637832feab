//! Random work on several streams of any device, compared with a model on the host.

use ferrogrid_host::{Device, DeviceBuffer, Grid, Result, Stream};

use crate::kernels::saxpy;

const LENGTH: usize = 300;

/// A generator of pseudo-random numbers (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % n
    }
}

/// `steps` random uses of four buffers on three streams, each also done to four arrays.
pub(crate) fn random_work_equals_the_model(device: &Device, steps: usize) -> Result<()> {
    let streams = [device.new_stream()?, device.new_stream()?, device.new_stream()?];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut model = [[1.0_f32; LENGTH], [2.0; LENGTH], [3.0; LENGTH], [4.0; LENGTH]];
    let mut buffers = Vec::new();
    for values in &model {
        buffers.push(streams[0].upload(values)?);
    }
    for _ in 0..steps {
        let stream = &streams[random.below(3)];
        let (from, to) = (random.below(4), random.below(4));
        if from == to || model[to][0] > 1e6 {
            model[to] = [to as f32; LENGTH];
            buffers[to] = stream.fill(to as f32, LENGTH)?;
            continue;
        }
        step(stream, random.below(5), &mut buffers, &mut model, (from, to))?;
    }
    for (buffer, values) in buffers.iter().zip(&model) {
        assert_eq!(streams[0].download(buffer)?, values);
    }
    Ok(())
}

fn step(
    stream: &Stream,
    choice: usize,
    buffers: &mut [DeviceBuffer<f32>],
    model: &mut [[f32; LENGTH]; 4],
    (from, to): (usize, usize),
) -> Result<()> {
    let source = model[from];
    let [x, y] = buffers.get_disjoint_mut([from, to]).unwrap();
    match choice {
        0 => {
            stream.copy(&*x, y)?;
            model[to] = source;
        }
        1 => assert_eq!(stream.download(&*y)?, model[to]),
        2 => {
            let (left, _) = y.split_at_mut(100)?;
            saxpy(stream, Grid::cover(100), 0.5, x.slice(..100)?, left)?;
            model[to].iter_mut().zip(source).take(100).for_each(|(y, x)| *y += 0.5 * x);
        }
        _ => {
            saxpy(stream, Grid::cover(LENGTH).with_block(64), 0.25, &*x, y)?;
            model[to].iter_mut().zip(source).for_each(|(y, x)| *y += 0.25 * x);
        }
    }
    Ok(())
}
