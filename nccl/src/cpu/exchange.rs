//! Carries out the calls of all ranks in one round. All sources are read before a target is written, so it does not matter
//! whether calls are in place.

use std::slice;

use ferrogrid_host::NcclError;

use super::number::combine;
use crate::call::{Call, Kind};

/// Performs `calls`, each with its rank: one of each rank, or a message's two.
///
/// # Errors
/// [`NcclError::Mismatch`] if they do not fit together; then nothing has been written.
///
/// # Safety
/// The sources and targets are memory of the host, of as many elements as the kinds and counts say, and nothing else uses them meanwhile,
/// except that others may read what is only read.
pub(super) unsafe fn perform(mut calls: Vec<(usize, Call)>) -> Result<(), NcclError> {
    calls.sort_by_key(|(rank, call)| (*rank, matches!(call.kind, Kind::Recv(_))));
    let (first, others) = calls.split_first().expect("a round has calls");
    if let Some(other) = others.iter().find(|(_, call)| !call.fits(&first.1)) {
        let described = |(rank, call): &(usize, Call)| (*rank, call.to_string().into());
        return Err(NcclError::Mismatch { one: described(first), other: described(other) });
    }
    if first.1.count == 0 {
        return Ok(());
    }
    // SAFETY: passed on.
    let results: Vec<Vec<u8>> =
        unsafe { calls.iter().map(|(rank, call)| result(&calls, *rank, call)).collect() };
    for ((_, call), result) in calls.iter().zip(results) {
        // SAFETY: the target has as many bytes as its call gets, or there is neither.
        unsafe { call.target.copy_from_nonoverlapping(result.as_ptr(), result.len()) };
    }
    Ok(())
}

/// What is to be written for the call of `rank`; nothing if that has no target.
///
/// # Safety
/// As for `perform`.
unsafe fn result(calls: &[(usize, Call)], rank: usize, call: &Call) -> Vec<u8> {
    if call.target.is_null() {
        return Vec::new();
    }
    let bytes = call.count * call.element.size();
    let is_sent = |(_, other): &&(usize, Call)| matches!(other.kind, Kind::Send(_));
    // SAFETY: passed on; each kind has sources of the count, or of one part for each rank.
    unsafe {
        match call.kind {
            Kind::AllReduce(_) | Kind::Reduce(..) => reduced(calls, 0),
            Kind::ReduceScatter(_) => reduced(calls, rank * bytes),
            Kind::Broadcast(root) => part(&calls[root].1, 0).to_vec(),
            Kind::Scatter(root) => part(&calls[root].1, rank).to_vec(),
            Kind::AllGather | Kind::Gather(_) => {
                calls.iter().flat_map(|(_, from)| part(from, 0)).copied().collect()
            }
            Kind::AllToAll => calls.iter().flat_map(|(_, from)| part(from, rank)).copied().collect(),
            Kind::Recv(_) => {
                calls.iter().find(is_sent).map_or(Vec::new(), |(_, from)| part(from, 0).to_vec())
            }
            Kind::Send(_) => Vec::new(),
        }
    }
}

/// Part `index` of the source of `call`.
///
/// # Safety
/// As for `perform`; the source has that part.
unsafe fn part(call: &Call, index: usize) -> &[u8] {
    let bytes = call.count * call.element.size();
    // SAFETY: passed on; elements are numbers, whose bytes all have values.
    unsafe { slice::from_raw_parts(call.source.add(index * bytes), bytes) }
}

/// The elements from byte `skipped` of the sources on, combined in the order of ranks.
///
/// # Safety
/// As for `perform`; the sources have so many more bytes.
unsafe fn reduced(calls: &[(usize, Call)], skipped: usize) -> Vec<u8> {
    let (element, count) = (calls[0].1.element, calls[0].1.count);
    let sources: Vec<_> = calls
        .iter()
        .map(|(_, call)| {
            let reduction = call.kind.reduction().expect("all calls of the round reduce");
            // SAFETY: the caller vouches for the bytes.
            (unsafe { call.source.add(skipped) }, reduction)
        })
        .collect();
    // SAFETY: passed on.
    unsafe { combine(element, &sources, count) }
}
