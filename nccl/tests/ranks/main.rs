//! Tests among ranks, on CPU devices, or on the GPUs of the machine (`world`): `random` against a `model`, `collectives`, `order` with other work
//! and lifetimes, `failures`, operations in `graphs` and on `registered` and `symmetric` buffers, and `processes` as launchers start them. `fake_gpus` runs
//! them with a fake NCCL, too, and counts the driver's `calls`.

mod calls;
mod collectives;
mod failures;
mod fake_gpus;
mod graphs;
mod model;
mod order;
mod processes;
mod random;
mod registered;
mod symmetric;
mod world;
