//! Random operations of all types in random groups, communicators, streams, graphs and places, against a model.
//!
//! Nothing is waited for between operations, except where results are compared. `FERROGRID_TEST_COLLECTIVES` is how many operations there
//! are, `FERROGRID_STRESS_SEED` the seed, which is printed.

use std::env;
use std::ops::Range;
use std::time::Duration;

use crate::model::{Drawn, Value, draw};
use crate::world::{Ranks, on_gpus, variable};
use ferrogrid::nccl::{Communicator, Group, Operation, ReduceOp};
use ferrogrid::{DeviceBuffer, DeviceView, DeviceViewMut, Stream};

/// A time-out that nothing reaches.
const LONG: Duration = Duration::from_secs(60);

/// The streams of each rank.
type Streams = [[Stream; 3]];

/// A communicator of some of the ranks.
struct Team {
    /// Which of all ranks each is.
    members: Vec<usize>,
    communicators: Vec<Communicator>,
}

impl Team {
    fn len(&self) -> usize {
        self.members.len()
    }

    /// Teams of the members by random colors, in the order of random keys.
    fn split(&self, random: &mut fastrand::Rng) -> Vec<Team> {
        let choose = |_: &usize| ((random.u8(..5) > 0).then(|| random.u32(..2)), random.i32(-2..3));
        let choices: Vec<(Option<u32>, i32)> = self.members.iter().map(choose).collect();
        let parts = Communicator::split_all(&self.communicators, |rank| choices[rank]).unwrap();
        assert!(parts.iter().zip(&choices).all(|(part, (color, _))| part.is_some() == color.is_some()));
        let mut chosen: Vec<_> = parts.into_iter().enumerate().collect();
        chosen.sort_by_key(|(rank, _)| (choices[*rank], *rank));
        let mut teams: Vec<(u32, Team)> = Vec::new();
        for (rank, part) in chosen {
            let (Some(color), Some(communicator)) = (choices[rank].0, part) else { continue };
            if teams.last().is_none_or(|(last, _)| *last != color) {
                teams.push((color, Team { members: Vec::new(), communicators: Vec::new() }));
            }
            let team = &mut teams.last_mut().unwrap().1;
            team.members.push(self.members[rank]);
            team.communicators.push(communicator);
        }
        let teams: Vec<Team> = teams.into_iter().map(|(_, team)| team).collect();
        for team in &teams {
            for (rank, communicator) in team.communicators.iter().enumerate() {
                assert_eq!((communicator.rank(), communicator.size()), (rank, team.len()), "{choices:?}");
            }
        }
        teams
    }
}

/// An operation of a team, as drawn.
struct Step<T> {
    drawn: Drawn<T>,
    count: usize,
    is_in_place: bool,
    /// Of each rank: the factor of a scaled sum, and where source and target begin.
    factors: Vec<T>,
    places: Vec<[usize; 2]>,
}

impl<T: Value> Step<T> {
    fn draw(random: &mut fastrand::Rng, ranks: usize, length: usize) -> Self {
        let drawn = draw::<T>(random, ranks);
        // Short ones are as frequent as long ones. A buffer has room for the parts of all, from anywhere in its first half.
        let most = (length / 2 / ranks) >> random.u32(..length.ilog2() / 2);
        let count = random.usize(..=most);
        Step {
            drawn,
            count,
            is_in_place: drawn.has_form_in_place() && random.bool(),
            factors: (0..ranks).map(|_| T::small(random.u8(..3))).collect(),
            places: (0..ranks).map(|_| [(); 2].map(|()| random.usize(..length / 2))).collect(),
        }
    }

    /// Where the elements are that `rank` sends, and those that it receives: in source and target, or in place in the source.
    fn ranges(&self, rank: usize) -> [Range<usize>; 2] {
        let (source, target) = self.drawn.lengths(rank, self.places.len(), self.count);
        let [from, mut to] = self.places[rank];
        let [mut own_from, mut own_to] = [0; 2];
        if self.is_in_place {
            to = from;
            match self.drawn {
                Drawn::AllGather => own_from = rank * self.count,
                Drawn::ReduceScatter(_) => own_to = rank * self.count,
                _ => {}
            }
        }
        [from + own_from..from + own_from + source, to + own_to..to + own_to + target]
    }

    /// The elements that have any values afterwards: those of other ranks, where each has a part of a result in place.
    fn undefined(&self, rank: usize) -> Option<Range<usize>> {
        let is_scattered = self.is_in_place && matches!(self.drawn, Drawn::ReduceScatter(_));
        is_scattered.then(|| self.ranges(rank)[0].clone())
    }

    /// The operations of `rank`.
    fn operations<'a>(
        &self,
        rank: usize,
        it: &'a Communicator,
        buffers: Buffers<'a, T>,
    ) -> Vec<Operation<'a>> {
        let [from, to] = self.ranges(rank);
        let (source, target) = match buffers {
            Buffers::InPlace(data) => return vec![self.in_place(rank, it, data)],
            Buffers::Two(source, target) => (source.slice(from).unwrap(), target.slice(to).unwrap()),
        };
        let is_root = |root| rank == root;
        let operation = match self.drawn {
            Drawn::AllReduce(op) => it.all_reduce(self.own(op, rank), source, target),
            Drawn::Reduce(op, root) => {
                it.reduce(self.own(op, rank), root, source, is_root(root).then_some(target))
            }
            Drawn::Broadcast(root) => it.broadcast(root, is_root(root).then_some(source), target),
            Drawn::AllGather => it.all_gather(source, target),
            Drawn::ReduceScatter(op) => it.reduce_scatter(self.own(op, rank), source, target),
            Drawn::AllToAll => it.all_to_all(source, target),
            Drawn::Gather(root) => it.gather(root, source, is_root(root).then_some(target)),
            Drawn::Scatter(root) => it.scatter(root, is_root(root).then_some(source), target),
            Drawn::Message(from, to) => {
                let send = is_root(from).then(|| it.send(to, source));
                let recv = is_root(to).then(|| it.recv(from, target));
                return send.into_iter().chain(recv).collect();
            }
        };
        vec![operation]
    }

    fn in_place<'a>(&self, rank: usize, it: &'a Communicator, data: DeviceViewMut<'a, T>) -> Operation<'a> {
        let [from, to] = self.ranges(rank);
        let start = self.places[rank][0];
        let data = data.slice(start..from.end.max(to.end)).unwrap();
        match self.drawn {
            Drawn::AllReduce(op) => it.all_reduce_in_place(self.own(op, rank), data),
            Drawn::Reduce(op, root) => it.reduce_in_place(self.own(op, rank), root, data),
            Drawn::Broadcast(root) => it.broadcast_in_place(root, data),
            Drawn::AllGather => it.all_gather_in_place(data),
            Drawn::ReduceScatter(op) => it.reduce_scatter_in_place(self.own(op, rank), data),
            _ => unreachable!("not in place"),
        }
    }

    fn text(&self, members: &[usize]) -> String {
        let (drawn, count, of) = (self.drawn, self.count, std::any::type_name::<T>());
        format!("{drawn:?} of {count} {of} among {members:?}, in place: {}", self.is_in_place)
    }

    fn own(&self, op: ReduceOp<T>, rank: usize) -> ReduceOp<T> {
        if let ReduceOp::ScaledSum(_) = op { ReduceOp::ScaledSum(self.factors[rank]) } else { op }
    }
}

/// What an operation is given.
enum Buffers<'a, T: Value> {
    InPlace(DeviceViewMut<'a, T>),
    Two(DeviceView<'a, T>, DeviceViewMut<'a, T>),
}

/// Source and target of a rank, and what the model has for them.
struct Pair<T: Value> {
    source: DeviceBuffer<T>,
    target: DeviceBuffer<T>,
    values: [Vec<T>; 2],
}

fn small<T: Value>(random: &mut fastrand::Rng, length: usize) -> Vec<T> {
    (0..length).map(|_| T::small(random.u8(1..3))).collect()
}

impl<T: Value> Pair<T> {
    fn new(streams: &[Stream], length: usize, random: &mut fastrand::Rng) -> Self {
        let values = [(); 2].map(|()| small(random, length));
        let [source, target] = [0, 1].map(|index| streams[index].upload(&values[index]).unwrap());
        Pair { source, target, values }
    }

    /// The old target is the next source.
    fn swap(&mut self) {
        std::mem::swap(&mut self.source, &mut self.target);
        self.values.swap(0, 1);
    }

    /// Gives elements of the source new values.
    fn refill(&mut self, stream: &Stream, range: Range<usize>, random: &mut fastrand::Rng) {
        let values = small(random, range.len());
        stream.upload_into(&values, self.source.slice_mut(range.clone()).unwrap()).unwrap();
        self.values[0][range].copy_from_slice(&values);
    }

    fn compare(&self, stream: &Stream, rank: usize) {
        for (name, buffer, expected) in
            [("source", &self.source, &self.values[0]), ("target", &self.target, &self.values[1])]
        {
            let found = stream.download(buffer).unwrap();
            if let Some(place) = (0..expected.len()).find(|&place| found[place] != expected[place]) {
                let (found, expected, of) = (found[place], expected[place], std::any::type_name::<T>());
                panic!("rank {rank} has {found:?} at {place} of its {name}, expected {expected:?} ({of})");
            }
        }
    }
}

/// Buffers of one type, for all ranks; and what has been drawn for them.
struct Lane<T: Value> {
    pairs: Vec<Pair<T>>,
    length: usize,
    last: Option<(Vec<usize>, Step<T>)>,
}

/// A [`Lane`] of any type.
trait Work {
    /// Performs a random operation of `team` in the model, and adds it to `group`. Returns what it is.
    fn draw<'a>(
        &'a mut self,
        team: &'a Team,
        streams: &'a Streams,
        random: &mut fastrand::Rng,
        group: &mut Group<'a>,
    ) -> String;

    /// As `draw`, in a graph of each rank, which is launched once or several times.
    fn record(&mut self, team: &Team, streams: &Streams, random: &mut fastrand::Rng) -> String;

    /// What comes after the group with the operation.
    fn finish(&mut self, streams: &Streams, random: &mut fastrand::Rng);

    fn compare(&self, streams: &Streams);
}

impl<T: Value> Lane<T> {
    fn boxed(streams: &Streams, length: usize, random: &mut fastrand::Rng) -> Box<dyn Work> {
        let pairs = streams.iter().map(|streams| Pair::new(streams, length, random)).collect();
        Box::new(Lane::<T> { pairs, length, last: None })
    }

    /// Performs an operation in the model.
    fn expect(&mut self, members: &[usize], step: &Step<T>) {
        let source = |(rank, &member): (usize, &usize)| {
            self.pairs[member].values[0][step.ranges(rank)[0].clone()].to_vec()
        };
        let sources: Vec<Vec<T>> = members.iter().enumerate().map(source).collect();
        let targets = step.drawn.model(&step.factors, &sources, step.count);
        for (rank, (&member, target)) in members.iter().zip(targets).enumerate() {
            let range = step.ranges(rank)[1].clone();
            if !range.is_empty() {
                let which = usize::from(!step.is_in_place);
                self.pairs[member].values[which][range].copy_from_slice(&target);
            }
        }
    }
}

impl<T: Value> Work for Lane<T> {
    fn draw<'a>(
        &'a mut self,
        team: &'a Team,
        streams: &'a Streams,
        random: &mut fastrand::Rng,
        group: &mut Group<'a>,
    ) -> String {
        let step = Step::<T>::draw(random, team.len(), self.length);
        self.expect(&team.members, &step);
        let text = step.text(&team.members);
        let (_, step) = self.last.insert((team.members.clone(), step));
        for (member, pair) in self.pairs.iter_mut().enumerate() {
            let Some(rank) = team.members.iter().position(|&it| it == member) else { continue };
            let stream = &streams[member][random.usize(..streams[member].len())];
            let buffers = match step.is_in_place {
                true => Buffers::InPlace(pair.source.view_mut()),
                false => Buffers::Two(pair.source.view(), pair.target.view_mut()),
            };
            for operation in step.operations(rank, &team.communicators[rank], buffers) {
                group.push(stream, operation);
            }
        }
        text
    }

    fn record(&mut self, team: &Team, streams: &Streams, random: &mut fastrand::Rng) -> String {
        let step = Step::<T>::draw(random, team.len(), self.length);
        // Where the next launch would read elements that have any values, or results would not be exact, there is none.
        let is_repeatable = T::WRAPS && (0..team.len()).all(|rank| step.undefined(rank).is_none());
        let launches = if is_repeatable { random.usize(1..4) } else { 1 };
        (0..launches).for_each(|_| self.expect(&team.members, &step));
        let mut pairs: Vec<_> = self.pairs.iter_mut().map(Some).collect();
        let pairs: Vec<&mut Pair<T>> = team.members.iter().map(|&it| pairs[it].take().unwrap()).collect();
        let origins = team.members.iter().map(|&member| &streams[member][0]);
        let (graphs, ()) = Stream::capture_all(origins, |captures| {
            let mut buffers = Vec::new();
            for (capture, Pair { source, target, .. }) in captures.iter().zip(pairs) {
                buffers.push((capture.write(source)?, capture.write(target)?));
            }
            let mut group = Group::new();
            for (rank, (capture, (source, target))) in captures.iter().zip(&mut buffers).enumerate() {
                let buffers = match step.is_in_place {
                    true => Buffers::InPlace(source.view_mut()),
                    false => Buffers::Two(source.view(), target.view_mut()),
                };
                for operation in step.operations(rank, &team.communicators[rank], buffers) {
                    group.push(capture, operation);
                }
            }
            group.run()
        })
        .unwrap();
        let mut graphs: Vec<_> = graphs.into_iter().map(|graph| graph.instantiate().unwrap()).collect();
        for _ in 0..launches {
            for (graph, &member) in graphs.iter_mut().zip(&team.members) {
                graph.launch(&streams[member][random.usize(..streams[member].len())]).unwrap();
            }
        }
        drop(graphs);
        let text = format!("{}, launched {launches} times", step.text(&team.members));
        self.last = Some((team.members.clone(), step));
        text
    }

    fn finish(&mut self, streams: &Streams, random: &mut fastrand::Rng) {
        let Some((members, step)) = self.last.take() else { return };
        for (rank, member) in members.into_iter().enumerate() {
            let stream = &streams[member][random.usize(..streams[member].len())];
            let pair = &mut self.pairs[member];
            if let Some(range) = step.undefined(rank) {
                let [_, own] = step.ranges(rank);
                pair.refill(stream, range.start..own.start, random);
                pair.refill(stream, own.end..range.end, random);
            }
            if T::WRAPS {
                if random.bool() {
                    pair.swap();
                }
                continue;
            }
            // Later results would not be exact.
            pair.compare(stream, member);
            if step.is_in_place {
                pair.refill(stream, 0..self.length, random);
            }
        }
    }

    fn compare(&self, streams: &Streams) {
        for (rank, pair) in self.pairs.iter().enumerate() {
            pair.compare(&streams[rank][0], rank);
        }
    }
}

/// A lane of each type that the ranks have.
fn lanes(streams: &Streams, length: usize, random: &mut fastrand::Rng) -> Vec<Box<dyn Work>> {
    #[cfg_attr(not(feature = "half"), expect(unused_mut, reason = "lanes of halves are added"))]
    let mut lanes = vec![
        Lane::<i8>::boxed(streams, length, random),
        Lane::<u8>::boxed(streams, length, random),
        Lane::<i32>::boxed(streams, length, random),
        Lane::<u32>::boxed(streams, length, random),
        Lane::<i64>::boxed(streams, length, random),
        Lane::<u64>::boxed(streams, length, random),
        Lane::<f32>::boxed(streams, length, random),
        Lane::<f64>::boxed(streams, length, random),
    ];
    #[cfg(feature = "half")]
    if !is_fake() {
        lanes.push(Lane::<ferrogrid::device::half::f16>::boxed(streams, length, random));
        lanes.push(Lane::<ferrogrid::device::half::bf16>::boxed(streams, length, random));
    }
    lanes
}

/// The fake NCCL has no halves.
fn is_fake() -> bool {
    env::var_os("FAKE_CUDA").is_some()
}

/// After how many operations there are other teams, and results are compared.
const SPLIT_AFTER: usize = 150;
const COMPARE_AFTER: usize = 40;

/// The most teams, with that of all ranks.
const TEAMS: usize = 4;

/// Replaces teams by parts of a random one.
fn split_again(teams: &mut Vec<Team>, random: &mut fastrand::Rng) {
    let parts = teams[random.usize(..teams.len())].split(random);
    teams.extend(parts);
    while teams.len() > TEAMS {
        teams.swap_remove(random.usize(1..teams.len()));
    }
}

/// How many lanes, the first ones, have integers.
const INTEGERS: usize = 6;

/// The lanes of the next groups. Now and then they are some of integers, of which nothing is waited for, while a stream is held up: then
/// work that does not wait for other streams comes too early.
fn choose_lanes(lanes: usize, streams: &Streams, random: &mut fastrand::Rng) -> Vec<usize> {
    let is_chain = random.bool();
    let mut chosen: Vec<usize> = (0..if is_chain { INTEGERS } else { lanes }).collect();
    random.shuffle(&mut chosen);
    chosen.truncate(random.usize(1..if is_chain { 3 } else { 5 }));
    if is_chain {
        let of_rank = &streams[random.usize(..streams.len())];
        let stream = &of_rank[random.usize(..of_rank.len())];
        stream.launch_host_func(|| std::thread::sleep(Duration::from_millis(2))).unwrap();
    }
    chosen
}

#[test]
fn random_operations_in_random_groups_and_splits_match_a_model() {
    let total = variable("FERROGRID_TEST_COLLECTIVES").unwrap_or(600) as usize;
    let seed = variable("FERROGRID_STRESS_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("FERROGRID_STRESS_SEED={seed} FERROGRID_TEST_COLLECTIVES={total}");
    let mut random = fastrand::Rng::with_seed(seed);
    let Ranks { communicators, streams } = Ranks::with_timeout(LONG);
    let mut teams = vec![Team { members: (0..streams.len()).collect(), communicators }];
    let length = if on_gpus() && !is_fake() { 1 << 16 } else { 1 << 8 };
    let mut lanes = lanes(&streams, length, &mut random);
    let (mut done, mut compared, mut split, mut groups) = (0, 0, 0, 0);
    let (mut chosen, mut left, mut recorded) = (Vec::new(), 0, 0);
    while done < total {
        if done == 0 || done >= split + SPLIT_AFTER {
            split_again(&mut teams, &mut random);
            split = done;
        }
        if left == 0 {
            chosen = choose_lanes(lanes.len(), &streams, &mut random);
            left = random.usize(1..6);
        }
        left -= 1;
        let is_recorded = random.u32(..5) == 0;
        let (mut group, mut texts) = (Group::new(), Vec::new());
        for (index, lane) in lanes.iter_mut().enumerate() {
            if chosen.contains(&index) && done + texts.len() < total {
                let team = &teams[random.usize(..teams.len())];
                texts.push(match is_recorded {
                    true => lane.record(team, &streams, &mut random),
                    false => lane.draw(team, &streams, &mut random, &mut group),
                });
            }
        }
        recorded += if is_recorded { texts.len() } else { 0 };
        group.run().unwrap_or_else(|error| panic!("operation {done}, {texts:?}: {error}"));
        (done, groups) = (done + texts.len(), groups + 1);
        lanes.iter_mut().for_each(|lane| lane.finish(&streams, &mut random));
        if done >= compared + COMPARE_AFTER || done == total {
            lanes.iter().for_each(|lane| lane.compare(&streams));
            compared = done;
        }
    }
    println!("{done} operations in {groups} groups match the model, {recorded} of them in graphs");
}
