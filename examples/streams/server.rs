//! 4.6 server: the requests of many clients, computed in batches on an asynchronous runtime (tokio).
//!
//! Shows: copies and launches that are awaited, so that one thread serves all clients while the device works.
//! Look at: the requests in a batch. Nobody waits for a batch to fill: what has come while the last one was computed is the next one.
//! So batches grow with the load, and the time of a request grows less.
//!
//! `cargo ferrogrid run server`

use std::time::{Duration, Instant};

use ferrogrid::prelude::*;
use tokio::sync::{mpsc, oneshot};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- the logistic function of x, as a network's last layer would compute it.
    #[kernel]
    pub fn logistic(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = 1.0 / (1.0 + (-x[i.get()]).exp());
        }
    }
}

/// Numbers in a request, and requests in a batch at most.
const LENGTH: usize = 1024;
const BATCH: usize = 256;
const REQUESTS_OF_A_CLIENT: usize = 64;

struct Request {
    numbers: Vec<f32>,
    answer: oneshot::Sender<Vec<f32>>,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let device = Device::best()?;
    println!("device  {}", device.name());
    println!("clients  requests/s  median ms  requests in a batch");
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for clients in [1, 8, 64, 512] {
        runtime.block_on(load(&device, clients))?;
    }
    println!("PASS");
    Ok(())
}

/// A server and its clients, each of which sends its next request when it has the answer to the last one.
async fn load(device: &Device, clients: usize) -> Outcome<()> {
    let (requests, arriving) = mpsc::channel(BATCH);
    let server = tokio::spawn(serve(device.clone(), arriving));
    let start = Instant::now();
    let clients: Vec<_> =
        (0..clients).map(|seed| tokio::spawn(client(seed as u64, requests.clone()))).collect();
    drop(requests); // so that the server ends with the last client
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await??);
    }
    let (batches, seconds) = (server.await??, start.elapsed().as_secs_f64());
    times.sort();
    let (count, median) = (times.len() as f64, times[times.len() / 2].as_secs_f64() * 1e3);
    let (rate, mean) = (count / seconds, count / batches as f64);
    println!("{:>7}  {rate:>10.0}  {median:>9.3}  {mean:>19.1}", times.len() / REQUESTS_OF_A_CLIENT);
    Ok(())
}

/// Answers requests until there are no clients; returns the number of batches.
async fn serve(device: Device, mut arriving: mpsc::Receiver<Request>) -> ferrogrid::Result<usize> {
    let stream = device.new_stream()?;
    let (mut x, mut y) = (stream.zeros(BATCH * LENGTH)?, stream.zeros(BATCH * LENGTH)?);
    let mut host = device.pinned_zeros(BATCH * LENGTH)?;
    let mut batch = Vec::with_capacity(BATCH);
    for number in 0.. {
        if arriving.recv_many(&mut batch, BATCH).await == 0 {
            return Ok(number);
        }
        let length = batch.len() * LENGTH;
        for (place, request) in host.chunks_exact_mut(LENGTH).zip(&batch) {
            place.copy_from_slice(&request.numbers);
        }
        // ANCHOR: awaited
        let upload = stream.upload_async(host, &mut x)?;
        kernels::logistic(&stream, Grid::cover(length), x.slice(..length)?, y.slice_mut(..length)?)?;
        host = stream.download_async(&y, upload.await?)?.await?;
        // ANCHOR_END: awaited
        for (answer, request) in host.chunks_exact(LENGTH).zip(batch.drain(..)) {
            // A client that has gone away needs none.
            let _gone = request.answer.send(answer.to_vec());
        }
    }
    unreachable!("batches are counted without end")
}

/// Sends requests and checks the answers; returns how long each took.
async fn client(seed: u64, server: mpsc::Sender<Request>) -> Outcome<Vec<Duration>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut times = Vec::new();
    for _ in 0..REQUESTS_OF_A_CLIENT {
        let numbers: Vec<f32> = (0..LENGTH).map(|_| 20.0 * random.f32() - 10.0).collect();
        let (answer, answered) = oneshot::channel();
        let start = Instant::now();
        server
            .send(Request { numbers: numbers.clone(), answer })
            .await
            .map_err(|_| "the server has ended")?;
        let found = answered.await?;
        times.push(start.elapsed());
        let exact = |x: f32| 1.0 / (1.0 + f64::from(-x).exp());
        if numbers.iter().zip(&found).any(|(&x, &y)| (f64::from(y) - exact(x)).abs() > 1e-6) {
            return Err("an answer is wrong".into());
        }
    }
    Ok(times)
}
