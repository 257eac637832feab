//! Formatting of the parts of errors: coordinates, shapes, lists.

use std::fmt::{self, Display, from_fn};

use super::{Error, LaunchedKernel};

/// The text, since that is what `unwrap` shows, and a `main` or a test that returns the error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

pub(super) fn for_object(object: &str) -> impl Display {
    from_fn(move |f| if object.is_empty() { Ok(()) } else { write!(f, " for {object}") })
}

pub(super) fn coordinates([x, y, z]: &[u32; 3]) -> impl Display {
    from_fn(move |f| write!(f, "({x}, {y}, {z})"))
}

/// A thread that may not be known.
pub(super) fn known_thread(thread: &Option<[u32; 3]>) -> impl Display {
    from_fn(move |f| match thread {
        Some(thread) => write!(f, "thread {}", coordinates(thread)),
        None => f.write_str("a thread"),
    })
}

pub(super) fn dimensions([x, y, z]: &[u32; 3]) -> impl Display {
    from_fn(move |f| write!(f, "{x} x {y} x {z}"))
}

/// What clusters a kernel is compiled for.
pub(super) fn clusters_of(required: &Option<[u32; 3]>) -> impl Display {
    from_fn(move |f| match required {
        Some(cluster) => write!(f, "is compiled for clusters of {}", dimensions(cluster)),
        None => f.write_str("is not compiled for clusters: write `#[kernel(cluster)]`"),
    })
}

/// Elements along each axis, without those of extent 1 above the last other one.
pub(super) fn extents(shape: &[usize; 3]) -> impl Display {
    from_fn(move |f| match shape {
        [x, 1, 1] => write!(f, "{x}"),
        [x, y, 1] => write!(f, "{x} x {y}"),
        [x, y, z] => write!(f, "{x} x {y} x {z}"),
    })
}

pub(super) fn free_of(free: &Option<u64>, total: &Option<u64>) -> impl Display {
    from_fn(move |f| match (free, total) {
        (Some(free), Some(total)) => write!(f, ", {free} of {total} are free"),
        _ => Ok(()),
    })
}

pub(super) fn architectures(available: &[&'static str]) -> impl Display {
    if available.is_empty() { "no architecture".to_owned() } else { available.join(", ") }
}

pub(super) fn suspects(kernels: &[LaunchedKernel]) -> impl Display {
    from_fn(move |f| match kernels {
        [] => f.write_str("no kernel is known to have been launched since the last synchronisation"),
        [one] => write!(f, "launched since the last synchronisation: {one}"),
        [first, others @ ..] => {
            write!(f, "launched since the last synchronisation, one of: {first}")?;
            others.iter().try_for_each(|other| write!(f, ", {other}"))
        }
    })
}
