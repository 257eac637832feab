//! Worlds made of the ranks of another one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ferrogrid_host::{NcclError, Result};

use super::Member;
use super::processes::PendingSplit;
use super::world::World;
use crate::options::deadline;

const OPERATION: &str = "split";

/// The color and the key of a rank.
type Choice = (Option<i32>, i32);

/// What each rank becomes.
type Parts = Vec<Option<(Arc<World>, usize)>>;

/// The splits of a world that some of its ranks have not ended.
pub(super) struct Splits {
    /// How many each rank has begun.
    begun: Vec<u64>,
    open: HashMap<u64, Split>,
}

struct Split {
    choices: Vec<Option<Choice>>,
    /// Once all have chosen.
    parts: Option<Parts>,
    taken: usize,
}

impl Splits {
    pub(super) fn new(size: usize) -> Self {
        Splits { begun: vec![0; size], open: HashMap::new() }
    }

    /// Enters a rank's choice; the number of the split.
    fn choose(&mut self, rank: usize, choice: Choice, timeout: Duration) -> u64 {
        let (size, number) = (self.begun.len(), self.begun[rank]);
        self.begun[rank] += 1;
        let new = || Split { choices: vec![None; size], parts: None, taken: 0 };
        let split = self.open.entry(number).or_insert_with(new);
        split.choices[rank] = Some(choice);
        if let Some(choices) = split.choices.iter().copied().collect::<Option<Vec<_>>>() {
            split.parts = Some(parts(&choices, timeout));
        }
        number
    }

    /// What `rank` becomes, once all have chosen.
    fn take(&mut self, number: u64, rank: usize) -> Option<Option<(Arc<World>, usize)>> {
        let size = self.begun.len();
        let split = self.open.get_mut(&number)?;
        let part = split.parts.as_mut()?[rank].take();
        split.taken += 1;
        if split.taken == size {
            self.open.remove(&number);
        }
        Some(part)
    }

    fn missing(&self, number: u64) -> Vec<usize> {
        (0..self.begun.len()).filter(|&rank| self.begun[rank] <= number).collect()
    }
}

/// The new worlds; in each, ranks are in the order of their keys, and then of their old numbers.
fn parts(choices: &[Choice], timeout: Duration) -> Parts {
    let mut colors: BTreeMap<i32, Vec<(i32, usize)>> = BTreeMap::new();
    for (rank, &(color, key)) in choices.iter().enumerate() {
        if let Some(color) = color {
            colors.entry(color).or_default().push((key, rank));
        }
    }
    let mut parts: Parts = vec![None; choices.len()];
    for mut ranks in colors.into_values() {
        ranks.sort_unstable();
        let world = Arc::new(World::new(ranks.len(), timeout));
        for (rank, &(_, old)) in ranks.iter().enumerate() {
            parts[old] = Some((world.clone(), rank));
        }
    }
    parts
}

/// A rank that has chosen.
pub(super) enum Chosen<'a> {
    Here { member: &'a Member, world: &'a World, rank: usize, number: u64 },
    Guest(PendingSplit),
}

/// What the ranks become, of which this thread has these. Waits for the others.
pub(crate) fn split(members: &[(&Member, Choice)]) -> Result<Vec<Option<Member>>> {
    let start = Instant::now();
    // All choose before one waits.
    let chosen: Vec<_> = members.iter().map(|(member, choice)| member.choose(*choice)).collect();
    chosen.into_iter().map(|chosen| Ok(chosen.wait(start)?)).collect()
}

impl Member {
    pub(super) fn choose(&self, choice: Choice) -> Chosen<'_> {
        match self {
            Member::Here { world, rank, .. } => {
                let number = world.lock().splits.choose(*rank, choice, world.timeout());
                world.announce();
                Chosen::Here { member: self, world, rank: *rank, number }
            }
            Member::Guest(guest) => Chosen::Guest(guest.choose(choice)),
        }
    }

    /// A rank of a new world, for which the same processes take part.
    fn part(&self, world: Arc<World>, rank: usize) -> Self {
        let hosting = match self {
            Member::Here { hosting, .. } => hosting.clone(),
            Member::Guest(_) => None,
        };
        Member::Here { world, rank, hosting }
    }
}

impl Chosen<'_> {
    /// Waits until all have chosen.
    pub(super) fn wait(self, start: Instant) -> Result<Option<Member>, NcclError> {
        match self {
            Chosen::Here { member, world, rank, number } => {
                let part = wait_here(world, rank, number, start)?;
                Ok(part.map(|(world, rank)| member.part(world, rank)))
            }
            Chosen::Guest(pending) => Ok(pending.wait(start)?.map(Member::Guest)),
        }
    }
}

fn wait_here(
    world: &World,
    rank: usize,
    number: u64,
    start: Instant,
) -> Result<Option<(Arc<World>, usize)>, NcclError> {
    let mut state = world.lock();
    loop {
        if let Some(part) = state.splits.take(number, rank) {
            return Ok(part);
        }
        state.check()?;
        let missing = state.splits.missing(number);
        if let Some(&peer) = missing.iter().find(|&&peer| state.has_left(peer)) {
            return Err(NcclError::PeerLost { operation: OPERATION, rank, peer });
        }
        let (changed, has_changed) = world.wait(state, deadline(start, world.timeout()));
        state = changed;
        if !has_changed {
            let missing = state.splits.missing(number).into();
            return Err(world.time_out(&mut state, OPERATION, rank, missing));
        }
    }
}
