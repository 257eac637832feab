//! Operations whose calls of the driver `fake_gpus` counts.

use std::io::Write;

use crate::world::devices;
use ferrogrid::nccl::{Communicator, ReduceOp};

pub(crate) const OPERATIONS: usize = 200;

/// What the log has around the operations.
pub(crate) const BEGIN: &str = "mark operations\n";
pub(crate) const END: &str = "mark end\n";

#[test]
fn operations_in_a_row() {
    let Some(log) = std::env::var_os("FAKE_CUDA_LOG") else { return };
    let mark = |text: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let [alone] = Communicator::all(&devices()[..1]).unwrap().try_into().unwrap();
    let stream = alone.device().new_stream().unwrap();
    let (x, mut y) = (stream.upload(&[1_u32, 2]).unwrap(), stream.zeros(2).unwrap());
    alone.all_reduce(ReduceOp::Sum, &x, &mut y).enqueue(&stream).unwrap();
    stream.synchronize().unwrap();
    mark(BEGIN);
    for _ in 0..OPERATIONS {
        alone.all_reduce(ReduceOp::Sum, &x, &mut y).enqueue(&stream).unwrap();
    }
    mark(END);
    assert_eq!(stream.download(&y).unwrap(), [1, 2]);
}
