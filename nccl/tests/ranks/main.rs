//! Tests among ranks, on CPU devices, or on the GPUs of the machine (`world`): `collectives` against a model, `order` with other work
//! and lifetimes, `failures`, and `processes` as launchers start them. `fake_gpus` runs them with a fake NCCL, too.

mod collectives;
mod failures;
mod fake_gpus;
mod order;
mod processes;
mod world;
