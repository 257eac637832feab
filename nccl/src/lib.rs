//! Communication between devices: NCCL's collective operations and messages on typed buffers, in stream order. The same
//! program runs on CPU devices of one machine. Programs use it as `ferrogrid::nccl`, with the feature `nccl` of `ferrogrid`.
//!
//! A [`Communicator`] is one rank. Its methods make [`Operation`]s, which are enqueued on streams, by themselves or in a
//! [`Group`]. Buffers are borrowed only until then: they are ordered between streams, and live until the work has run, as with
//! launches and copies. A lost rank is an error of the others, within a time-out.
//!
//! | NCCL | here |
//! |---|---|
//! | `ncclCommInitAll`, `ncclCommInitRankConfig`, `ncclGetUniqueId` | [`Communicator::all`], [`Communicator::new`], [`UniqueId`]; [`Communicator::from_env`] below torchrun, mpirun and srun |
//! | `ncclCommSplit` | [`Communicator::split`], [`Communicator::split_all`] |
//! | `ncclCommGetAsyncError`, `ncclCommAbort` | [`Communicator::check`], [`Communicator::abort`], [`CommunicatorOptions::with_timeout`] |
//! | `ncclCommFinalize`, `ncclCommDestroy` | dropping the communicator |
//! | `ncclGroupStart`, `ncclGroupEnd` | [`Group`] |
//! | operations on a stream that is captured | operations on a recording, [`Stream::capture`](ferrogrid_host::Stream::capture), [`Stream::capture_all`](ferrogrid_host::Stream::capture_all) |
//! | `ncclAllReduce`, `ncclReduce`, `ncclReduceScatter` | [`Communicator::all_reduce`], [`Communicator::reduce`], [`Communicator::reduce_scatter`] |
//! | `ncclRedOp_t`, `ncclRedOpCreatePreMulSum` | [`ReduceOp`] |
//! | `ncclBroadcast`, `ncclAllGather`, `ncclAlltoAll`, `ncclGather`, `ncclScatter` | [`Communicator::broadcast`], [`Communicator::all_gather`], [`Communicator::all_to_all`], [`Communicator::gather`], [`Communicator::scatter`] |
//! | `ncclSend`, `ncclRecv` | [`Communicator::send`], [`Communicator::recv`] |
//! | `ncclDataType_t` | [`Element`] |
//! | `ncclMemAlloc`, `ncclCommRegister`, `ncclCommDeregister`, `ncclMemFree` | [`Communicator::registered_zeros`], and dropping the buffer |
//! | `ncclCommWindowRegister`, `ncclCommWindowDeregister` | [`Communicator::symmetric_zeros`], [`Communicator::symmetric_zeros_all`], and dropping the buffer |
//! | `ncclGetVersion`, `libnccl.so.2` | [`version`]; the variable `FERROGRID_NCCL` |
//!
//! # On GPUs
//! NCCL 2.19 or newer is opened at run time; it comes with `pip install nvidia-nccl-cu13` and with PyTorch. Communicators do not
//! block, and a thread of this crate watches over what has been enqueued. If one thread has several ranks, their operations are in
//! one group. Operations in graphs are captured: each group is a child graph, which keeps the communicator.
//!
//! # On CPU devices
//! Ranks are threads of one process, all on one thread, or processes of one machine. Elements are combined in the order of ranks. What NCCL leaves
//! undefined is an error: lengths, types and operations that differ between ranks. Ranks of a process may share a device; they
//! have buffers of their own, since two ranks that write parts of one buffer would wait for each other.

#![deny(missing_docs)]

mod call;
mod collectives;
mod communicator;
mod cpu;
mod element;
mod gpu;
mod group;
mod meeting;
mod operation;
mod options;
mod process;
mod reduce_op;
mod registration;
mod symmetric;
mod unique_id;

pub use communicator::Communicator;
pub use element::Element;
pub use gpu::version;
pub use group::Group;
pub use operation::Operation;
pub use options::CommunicatorOptions;
pub use process::Process;
pub use reduce_op::ReduceOp;
pub use unique_id::UniqueId;
