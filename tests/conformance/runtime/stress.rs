//! Random work by many threads on many streams, against a model: order and
//! ownership. `FERROGRID_STRESS` sets the number of operations of each thread (1000 without it).

use ferrogrid::{Device, DeviceBuffer, PinnedBuffer, Result, Stream, Transfer};

use super::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[("random_work_of_many_threads_equals_the_model", random_work)];

const THREADS: u64 = 8;
const STREAMS: usize = 4;
const LENGTH: usize = 257;

/// A buffer, and what it must hold.
struct Checked {
    buffer: DeviceBuffer<u32>,
    model: Vec<u32>,
}

/// A copy to the host that is under way, and what it must bring.
struct Expected {
    transfer: Transfer<u32>,
    model: Vec<u32>,
}

/// What one thread works with; the streams are everybody's, and so is `shared`, to read.
struct Worker<'a> {
    device: &'a Device,
    streams: &'a [Stream],
    shared: &'a Checked,
    random: fastrand::Rng,
    buffers: Vec<Checked>,
    host: Vec<PinnedBuffer<u32>>,
    under_way: Vec<Expected>,
}

impl Worker<'_> {
    fn step(&mut self) -> Result<()> {
        let streams = self.streams;
        let stream = &streams[self.random.usize(..STREAMS)];
        let chosen = self.random.usize(..self.buffers.len());
        match self.random.u32(..13) {
            0 => self.replace(stream, chosen),
            1 => self.upload(stream, chosen),
            2 | 3 => self.fill_part(stream, chosen),
            4 => self.copy_from_shared(stream, chosen),
            5 | 6 => self.copy(stream, chosen),
            7 | 8 => self.start_download(stream, chosen),
            9 => self.finish_download(),
            10 => self.order(stream),
            11 => self.check(stream, chosen),
            _ => self.drop_download(),
        }
    }

    fn replace(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let value = self.random.u32(..);
        let buffer = stream.fill(value, LENGTH)?;
        self.buffers[chosen] = Checked { buffer, model: vec![value; LENGTH] };
        Ok(())
    }

    fn upload(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let model: Vec<u32> = (0..LENGTH).map(|_| self.random.u32(..)).collect();
        let Checked { buffer, model: expected } = &mut self.buffers[chosen];
        // Dropped at once: the copy goes on.
        drop(stream.upload_async(self.device.pinned_copy(&model)?, buffer)?);
        *expected = model;
        Ok(())
    }

    fn fill_part(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let (value, middle) = (self.random.u32(..), self.random.usize(..LENGTH));
        let Checked { buffer, model } = &mut self.buffers[chosen];
        let (left, right) = buffer.split_at_mut(middle)?;
        let other = &self.streams[self.random.usize(..STREAMS)];
        stream.fill_into(value, left)?;
        other.fill_into(!value, right)?;
        model[..middle].fill(value);
        model[middle..].fill(!value);
        Ok(())
    }

    fn copy_from_shared(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let Checked { buffer, model } = &mut self.buffers[chosen];
        stream.copy(&self.shared.buffer, buffer)?;
        model.clone_from(&self.shared.model);
        Ok(())
    }

    fn copy(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let other = (chosen + 1) % self.buffers.len();
        let [from, to] = self.buffers.get_disjoint_mut([chosen, other]).expect("two buffers");
        let start = self.random.usize(..LENGTH / 2);
        let length = self.random.usize(1..LENGTH / 2);
        stream.copy(from.buffer.slice(start..start + length)?, to.buffer.slice_mut(..length)?)?;
        to.model[..length].copy_from_slice(&from.model[start..start + length]);
        Ok(())
    }

    fn start_download(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let Some(host) = self.host.pop() else { return self.finish_download() };
        let Checked { buffer, model } = &self.buffers[chosen];
        let transfer = stream.download_async(buffer, host)?;
        self.under_way.push(Expected { transfer, model: model.clone() });
        Ok(())
    }

    fn finish_download(&mut self) -> Result<()> {
        if self.under_way.is_empty() {
            return Ok(());
        }
        let chosen = self.random.usize(..self.under_way.len());
        let Expected { transfer, model } = self.under_way.swap_remove(chosen);
        let host = transfer.wait()?;
        assert!(*host == *model, "a copy to the host");
        self.host.push(host);
        Ok(())
    }

    fn drop_download(&mut self) -> Result<()> {
        if let Some(expected) = self.under_way.pop() {
            drop(expected.transfer);
            self.host.push(self.device.pinned_zeros(LENGTH)?);
        }
        Ok(())
    }

    fn order(&mut self, stream: &Stream) -> Result<()> {
        let other = &self.streams[self.random.usize(..STREAMS)];
        match self.random.u32(..3) {
            0 => stream.wait_stream(other),
            1 => stream.wait(&other.record()?),
            _ => stream.host_fn(|| ()),
        }
    }

    fn check(&mut self, stream: &Stream, chosen: usize) -> Result<()> {
        let Checked { buffer, model } = &self.buffers[chosen];
        assert!(stream.download(buffer)? == *model, "a buffer");
        Ok(())
    }

    fn run(&mut self, steps: usize) -> Result<()> {
        for _ in 0..steps {
            self.step()?;
        }
        while !self.under_way.is_empty() {
            self.finish_download()?;
        }
        for chosen in 0..self.buffers.len() {
            self.check(&self.streams[chosen % STREAMS], chosen)?;
        }
        Ok(())
    }
}

fn random_work(device: &Device) -> Outcome {
    let steps = std::env::var("FERROGRID_STRESS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(1000);
    let streams = (0..STREAMS).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
    let model: Vec<u32> = (0..LENGTH as u32).collect();
    let shared = Checked { buffer: streams[0].upload(&model)?, model };
    let finished = std::thread::scope(|scope| {
        let work = |seed| {
            let (streams, shared) = (&streams, &shared);
            move || -> Result<()> {
                let random = fastrand::Rng::with_seed(seed);
                let (buffers, host, under_way) = (Vec::new(), Vec::new(), Vec::new());
                let mut worker = Worker { device, streams, shared, random, buffers, host, under_way };
                for (index, stream) in streams.iter().enumerate() {
                    let buffer = stream.fill(index as u32, LENGTH)?;
                    worker.buffers.push(Checked { buffer, model: vec![index as u32; LENGTH] });
                    worker.host.push(device.pinned_zeros(LENGTH)?);
                }
                worker.run(steps)
            }
        };
        let workers: Vec<_> = (0..THREADS).map(|seed| scope.spawn(work(seed))).collect();
        let results = workers.into_iter().map(|worker| worker.join().expect("no worker panics"));
        results.collect::<Result<Vec<()>>>()
    });
    finished?;
    streams.iter().try_for_each(Stream::synchronize)?;
    Ok(())
}
