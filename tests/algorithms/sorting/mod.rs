//! Sorts, and what sorted numbers allow.
//!
//! `sorts` has radix sorts, and `segmented_sorts` those of segments. `searches` has binary search, merging and the greatest
//! numbers, and `sets` the sets of two sorted slices.

pub(crate) mod searches;
pub(crate) mod segmented_sorts;
pub(crate) mod sets;
pub(crate) mod sorts;
