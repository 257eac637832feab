//! The operations of a [`Communicator`], each a method that makes an [`Operation`].

use ferrogrid_host::{DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, NcclError};

use crate::call::Kind;
use crate::communicator::Communicator;
use crate::element::Element;
use crate::operation::{Buffers, Extent, Operation};
use crate::reduce_op::ReduceOp;

const WHOLE: (Extent, Extent) = (Extent::Whole, Extent::Whole);

impl Communicator {
    /// Combines the elements of all ranks, and gives all of them the result (`ncclAllReduce`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let x = [stream.upload(&[1_i32, -5])?, stream.upload(&[3, 4])?];
    /// let mut y = [stream.zeros(2)?, stream.zeros(2)?];
    /// let mut group = Group::new();
    /// for ((rank, x), y) in ranks.iter().zip(&x).zip(&mut y) {
    ///     group.push(&stream, rank.all_reduce(ReduceOp::Max, x, y));
    /// }
    /// group.run()?;
    /// assert_eq!([stream.download(&y[0])?, stream.download(&y[1])?], [[3, 4], [3, 4]]);
    /// # Ok(()) }
    /// ```
    pub fn all_reduce<'a, T: Element>(
        &'a self,
        op: ReduceOp<T>,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        let buffers = Buffers::of(Some(source.into_input()), Some(target.into_output()));
        self.operation::<T>(Kind::AllReduce(op.into()), buffers, WHOLE)
    }

    /// As [`Communicator::all_reduce`], in one buffer.
    pub fn all_reduce_in_place<'a, T: Element>(
        &'a self,
        op: ReduceOp<T>,
        data: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        self.operation::<T>(Kind::AllReduce(op.into()), Buffers::in_place(data.into_output()), WHOLE)
    }

    /// Combines the elements of all ranks, and gives the result to rank `root` (`ncclReduce`). Only the root needs a target.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let x = [stream.upload(&[1.0_f64])?, stream.upload(&[0.5])?];
    /// let mut sum = stream.zeros(1)?;
    /// let mut group = Group::new();
    /// group.push(&stream, ranks[0].reduce(ReduceOp::Sum, 0, &x[0], Some(sum.view_mut())));
    /// group.push(&stream, ranks[1].reduce(ReduceOp::Sum, 0, &x[1], None));
    /// group.run()?;
    /// assert_eq!(stream.download(&sum)?, [1.5]);
    /// # Ok(()) }
    /// ```
    pub fn reduce<'a, T: Element>(
        &'a self,
        op: ReduceOp<T>,
        root: usize,
        source: impl DeviceInput<'a, T>,
        target: Option<DeviceViewMut<'a, T>>,
    ) -> Operation<'a> {
        let kind = Kind::Reduce(op.into(), root);
        if root == self.rank() && target.is_none() {
            return self.without_buffer(kind, "target");
        }
        let target = target.filter(|_| root == self.rank());
        self.operation::<T>(kind, Buffers::of(Some(source.into_input()), target), WHOLE)
    }

    /// As [`Communicator::reduce`], in one buffer. Those of other ranks than the root stay as they are.
    pub fn reduce_in_place<'a, T: Element>(
        &'a self,
        op: ReduceOp<T>,
        root: usize,
        data: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        let buffers = Buffers::in_place(data.into_output());
        let buffers = if root == self.rank() { buffers } else { buffers.without_target() };
        self.operation::<T>(Kind::Reduce(op.into(), root), buffers, WHOLE)
    }

    /// Gives all ranks the elements of rank `root` (`ncclBcast`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let mut weights = [stream.zeros(3)?, stream.upload(&[1.0_f32, 2.0, 3.0])?];
    /// let mut group = Group::new();
    /// for (rank, weights) in ranks.iter().zip(&mut weights) {
    ///     group.push(&stream, rank.broadcast_in_place(1, weights));
    /// }
    /// group.run()?;
    /// assert_eq!(stream.download(&weights[0])?, [1.0, 2.0, 3.0]);
    /// # Ok(()) }
    /// ```
    pub fn broadcast_in_place<'a, T: Element>(
        &'a self,
        root: usize,
        data: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        self.operation::<T>(Kind::Broadcast(root), Buffers::in_place(data.into_output()), WHOLE)
    }

    /// Copies the `source` of rank `root` into the targets of all ranks (`ncclBroadcast`). Only the root needs a source.
    pub fn broadcast<'a, T: Element>(
        &'a self,
        root: usize,
        source: Option<DeviceView<'a, T>>,
        target: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        self.out_of_root(Kind::Broadcast(root), root, source, target, WHOLE)
    }

    /// Puts the elements of all ranks one after the other, in the order of ranks, into the target of each (`ncclAllGather`):
    /// it has [`size`](Communicator::size) times as many as the source.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let parts = [stream.upload(&[1_u8, 2])?, stream.upload(&[3, 4])?];
    /// let mut whole = [stream.zeros(4)?, stream.zeros(4)?];
    /// let mut group = Group::new();
    /// for ((rank, part), whole) in ranks.iter().zip(&parts).zip(&mut whole) {
    ///     group.push(&stream, rank.all_gather(part, whole));
    /// }
    /// group.run()?;
    /// assert_eq!(stream.download(&whole[1])?, [1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    pub fn all_gather<'a, T: Element>(
        &'a self,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        let buffers = Buffers::of(Some(source.into_input()), Some(target.into_output()));
        self.operation::<T>(Kind::AllGather, buffers, (Extent::Whole, Extent::PerRank))
    }

    /// As [`Communicator::all_gather`], in one buffer: each rank has its own part of `data`, and then that of all.
    pub fn all_gather_in_place<'a, T: Element>(&'a self, data: impl DeviceOutput<'a, T>) -> Operation<'a> {
        let operation = self.operation::<T>(
            Kind::AllGather,
            Buffers::in_place(data.into_output()),
            (Extent::PerRank, Extent::PerRank),
        );
        operation.with_part_as_source(self.rank())
    }

    /// Combines the elements of all ranks, and gives each rank one part of the result (`ncclReduceScatter`): the source has
    /// [`size`](Communicator::size) times as many as the target.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group, ReduceOp};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let x = [stream.upload(&[1_u32, 2])?, stream.upload(&[10, 20])?];
    /// let mut parts = [stream.zeros(1)?, stream.zeros(1)?];
    /// let mut group = Group::new();
    /// for ((rank, x), part) in ranks.iter().zip(&x).zip(&mut parts) {
    ///     group.push(&stream, rank.reduce_scatter(ReduceOp::Sum, x, part));
    /// }
    /// group.run()?;
    /// assert_eq!([stream.download(&parts[0])?, stream.download(&parts[1])?], [[11], [22]]);
    /// # Ok(()) }
    /// ```
    pub fn reduce_scatter<'a, T: Element>(
        &'a self,
        op: ReduceOp<T>,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        let buffers = Buffers::of(Some(source.into_input()), Some(target.into_output()));
        self.operation::<T>(Kind::ReduceScatter(op.into()), buffers, (Extent::PerRank, Extent::Whole))
    }

    /// As [`Communicator::reduce_scatter`], in one buffer: each rank finds the result in its own part of `data`. The other parts
    /// have any values then.
    pub fn reduce_scatter_in_place<'a, T: Element>(
        &'a self,
        op: ReduceOp<T>,
        data: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        let operation = self.operation::<T>(
            Kind::ReduceScatter(op.into()),
            Buffers::in_place(data.into_output()),
            (Extent::PerRank, Extent::PerRank),
        );
        operation.with_part_as_target(self.rank())
    }

    /// Sends part `r` of the source to rank `r`, for all ranks, and receives theirs in the order of ranks (`ncclAlltoAll`).
    /// Source and target have as many elements.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let rows = [stream.upload(&[1_u32, 2])?, stream.upload(&[3, 4])?];
    /// let mut columns = [stream.zeros(2)?, stream.zeros(2)?];
    /// let mut group = Group::new();
    /// for ((rank, row), column) in ranks.iter().zip(&rows).zip(&mut columns) {
    ///     group.push(&stream, rank.all_to_all(row, column));
    /// }
    /// group.run()?;
    /// assert_eq!([stream.download(&columns[0])?, stream.download(&columns[1])?], [[1, 3], [2, 4]]);
    /// # Ok(()) }
    /// ```
    pub fn all_to_all<'a, T: Element>(
        &'a self,
        source: impl DeviceInput<'a, T>,
        target: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        let buffers = Buffers::of(Some(source.into_input()), Some(target.into_output()));
        self.operation::<T>(Kind::AllToAll, buffers, (Extent::PerRank, Extent::PerRank))
    }

    /// Puts the elements of all ranks one after the other, in the order of ranks, into the target of rank `root`
    /// (`ncclGather`). Only the root needs a target.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let parts = [stream.upload(&[1_i64])?, stream.upload(&[2])?];
    /// let mut whole = stream.zeros(2)?;
    /// let mut group = Group::new();
    /// group.push(&stream, ranks[0].gather(0, &parts[0], Some(whole.view_mut())));
    /// group.push(&stream, ranks[1].gather(0, &parts[1], None));
    /// group.run()?;
    /// assert_eq!(stream.download(&whole)?, [1, 2]);
    /// # Ok(()) }
    /// ```
    pub fn gather<'a, T: Element>(
        &'a self,
        root: usize,
        source: impl DeviceInput<'a, T>,
        target: Option<DeviceViewMut<'a, T>>,
    ) -> Operation<'a> {
        let kind = Kind::Gather(root);
        if root == self.rank() && target.is_none() {
            return self.without_buffer(kind, "target");
        }
        let target = target.filter(|_| root == self.rank());
        let buffers = Buffers::of(Some(source.into_input()), target);
        self.operation::<T>(kind, buffers, (Extent::Whole, Extent::PerRank))
    }

    /// Sends part `r` of the source of rank `root` to rank `r`, for all ranks (`ncclScatter`). Only the root needs a source.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::{Communicator, Group};
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let stream = Device::cpu().new_stream()?;
    /// let whole = stream.upload(&[1_i64, 2])?;
    /// let mut parts = [stream.zeros(1)?, stream.zeros(1)?];
    /// let [first, second] = &mut parts;
    /// let mut group = Group::new();
    /// group.push(&stream, ranks[0].scatter(0, Some(whole.view()), first));
    /// group.push(&stream, ranks[1].scatter(0, None, second));
    /// group.run()?;
    /// assert_eq!([stream.download(&parts[0])?, stream.download(&parts[1])?], [[1], [2]]);
    /// # Ok(()) }
    /// ```
    pub fn scatter<'a, T: Element>(
        &'a self,
        root: usize,
        source: Option<DeviceView<'a, T>>,
        target: impl DeviceOutput<'a, T>,
    ) -> Operation<'a> {
        self.out_of_root(Kind::Scatter(root), root, source, target, (Extent::PerRank, Extent::Whole))
    }

    /// Sends elements to rank `peer`, which receives as many (`ncclSend`). Messages between two ranks keep their order. To send
    /// and receive at the same time, enqueue both in a [`Group`](crate::Group).
    pub fn send<'a, T: Element>(&'a self, peer: usize, source: impl DeviceInput<'a, T>) -> Operation<'a> {
        self.operation::<T>(Kind::Send(peer), Buffers::of(Some(source.into_input()), None), WHOLE)
    }

    /// Receives elements from rank `peer`, which sends as many (`ncclRecv`).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::nccl::Communicator;
    ///
    /// let ranks = Communicator::all(&[Device::cpu(), Device::cpu()])?;
    /// let streams = [Device::cpu().new_stream()?, Device::cpu().new_stream()?];
    /// let sent = streams[0].upload(&[1.0_f32, 2.0])?;
    /// let mut received = streams[1].zeros::<f32>(2)?;
    /// // On GPUs one thread enqueues both in a group.
    /// ranks[0].send(1, &sent).enqueue(&streams[0])?;
    /// ranks[1].recv(0, &mut received).enqueue(&streams[1])?;
    /// assert_eq!(streams[1].download(&received)?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    pub fn recv<'a, T: Element>(&'a self, peer: usize, target: impl DeviceOutput<'a, T>) -> Operation<'a> {
        self.operation::<T>(Kind::Recv(peer), Buffers::of(None, Some(target.into_output())), WHOLE)
    }

    /// An operation whose source only the root has, and must have: that of other ranks is not read.
    fn out_of_root<'a, T: Element>(
        &'a self,
        kind: Kind,
        root: usize,
        source: Option<DeviceView<'a, T>>,
        target: impl DeviceOutput<'a, T>,
        extents: (Extent, Extent),
    ) -> Operation<'a> {
        if root == self.rank() && source.is_none() {
            return self.without_buffer(kind, "source");
        }
        let source = source.filter(|_| root == self.rank());
        self.operation::<T>(kind, Buffers::of(source, Some(target.into_output())), extents)
    }

    /// The operation of a root that lacks a buffer.
    fn without_buffer<'a>(&'a self, kind: Kind, buffer: &'static str) -> Operation<'a> {
        let error = NcclError::RootBuffer { operation: kind.name(), rank: self.rank(), buffer };
        Operation { communicator: self, prepared: Err(Error::from(error)) }
    }
}

impl Operation<'_> {
    /// The same operation, with the rank's part of the buffer as source.
    fn with_part_as_source(mut self, rank: usize) -> Self {
        if let Ok(prepared) = &mut self.prepared {
            let call = &mut prepared.call;
            call.source = call.source.wrapping_add(rank * call.count * call.element.size());
        }
        self
    }

    /// The same operation, with the rank's part of the buffer as target.
    fn with_part_as_target(mut self, rank: usize) -> Self {
        if let Ok(prepared) = &mut self.prepared {
            let call = &mut prepared.call;
            call.target = call.target.wrapping_add(rank * call.count * call.element.size());
        }
        self
    }
}
