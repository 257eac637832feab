//! How the parts of an error read: places, shapes, lists.

use std::fmt;

use super::{Error, LaunchedKernel};

/// The text, since that is what `unwrap` shows, and a `main` or a test that returns the error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(super) struct On<'a>(pub(super) &'a str);

impl fmt::Display for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " for {}", self.0) }
    }
}

pub(super) struct Place<'a>(pub(super) &'a [u32; 3]);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

/// A thread that may not be known.
pub(super) struct OneThread<'a>(pub(super) &'a Option<[u32; 3]>);

impl fmt::Display for OneThread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(thread) => write!(f, "thread {}", Place(thread)),
            None => f.write_str("a thread"),
        }
    }
}

pub(super) struct Shape<'a>(pub(super) &'a [u32; 3]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "{x} x {y} x {z}")
    }
}

/// What clusters a kernel is compiled for.
pub(super) struct ClustersOf<'a>(pub(super) &'a Option<[u32; 3]>);

impl fmt::Display for ClustersOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cluster) => write!(f, "is compiled for clusters of {}", Shape(cluster)),
            None => f.write_str("is not compiled for clusters: write `#[kernel(cluster)]`"),
        }
    }
}

/// Elements along each axis, without those of extent 1 above the last other one.
pub(super) struct Extents<'a>(pub(super) &'a [usize; 3]);

impl fmt::Display for Extents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [x, 1, 1] => write!(f, "{x}"),
            [x, y, 1] => write!(f, "{x} x {y}"),
            [x, y, z] => write!(f, "{x} x {y} x {z}"),
        }
    }
}

pub(super) struct Free<'a>(pub(super) &'a Option<u64>, pub(super) &'a Option<u64>);

impl fmt::Display for Free<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(free), Some(total)) => write!(f, ", {free} of {total} are free"),
            _ => Ok(()),
        }
    }
}

pub(super) struct List<'a>(pub(super) &'a [&'static str]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no architecture");
        }
        f.write_str(&self.0.join(", "))
    }
}

pub(super) struct LaunchedSince<'a>(pub(super) &'a [LaunchedKernel]);

impl fmt::Display for LaunchedSince<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("no kernel is known to have been launched since the last synchronisation"),
            [one] => write!(f, "launched since the last synchronisation: {one}"),
            [first, others @ ..] => {
                write!(f, "launched since the last synchronisation, one of: {first}")?;
                others.iter().try_for_each(|other| write!(f, ", {other}"))
            }
        }
    }
}
