//! Tests among ranks, on CPU devices, or on the GPUs of the machine (`world`): `collectives` against a model, `order` with other work
//! and lifetimes, `failures`, and `processes` as launchers start them.

mod collectives;
mod failures;
mod order;
mod processes;
mod world;
