//! The launches that may have caused an error: kernels and source locations.

use std::fmt;
use std::panic::Location;

use super::Error;

/// A kernel and the place in the source that launched it (for a graph: where that launch was recorded).
///
/// ```
/// use ferrogrid::Error;
///
/// /// The kernels that may have caused an illegal access on a failed GPU.
/// fn suspects(error: &Error) -> Vec<String> {
///     match error {
///         // As `saxpy` at src/main.rs:20:5, oldest first.
///         Error::LaunchFailed { kernels, .. } => kernels.iter().map(|kernel| kernel.to_string()).collect(),
///         _ => Vec::new(),
///     }
/// }
/// assert!(suspects(&Error::NoDevice).is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LaunchedKernel {
    /// The kernel's name.
    pub name: &'static str,
    /// The call that launched it.
    pub site: &'static Location<'static>,
}

impl LaunchedKernel {
    pub(crate) fn new(name: &'static str, site: &'static Location<'static>) -> Self {
        LaunchedKernel { name, site }
    }
}

impl fmt::Display for LaunchedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` at {}", self.name, self.site)
    }
}

/// The source locations of the launches that may have caused a kernel's error: on the CPU device exactly one;
/// on a GPU, where the kernel itself does not know, each at which it was launched since the last successful
/// synchronisation, as far as the last eight launches of each stream tell, oldest first.
///
/// ```
/// use ferrogrid::Error;
///
/// fn complain(error: &Error) {
///     if let Error::KernelPanic { kernel, launched, .. } = error {
///         for site in launched.iter() {
///             eprintln!("{}:{}: launches `{kernel}`, which panicked", site.file(), site.line());
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LaunchSites(Box<[&'static Location<'static>]>);

impl LaunchSites {
    /// The places, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &'static Location<'static>> {
        self.0.iter().copied()
    }
}

impl FromIterator<&'static Location<'static>> for LaunchSites {
    /// Each place once.
    fn from_iter<I: IntoIterator<Item = &'static Location<'static>>>(sites: I) -> Self {
        let mut each = Vec::new();
        for site in sites {
            if !each.contains(&site) {
                each.push(site);
            }
        }
        LaunchSites(each.into())
    }
}

impl fmt::Display for LaunchSites {
    /// As a part of a sentence, after the kernel's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else { return Ok(()) };
        write!(f, " (launched at {first}")?;
        others.iter().try_for_each(|site| write!(f, " or {site}"))?;
        f.write_str(")")
    }
}

impl Error {
    /// The same, of a kernel that was launched there.
    pub(crate) fn launched_at(mut self, site: &'static Location<'static>) -> Self {
        let launched = match &mut self {
            Error::KernelPanic { launched, .. } => launched,
            Error::Kernel(error) => error.launched(),
            _ => return self,
        };
        *launched = LaunchSites::from_iter([site]);
        self
    }

    /// Whether a device that says so runs nothing more of what it was given.
    pub(crate) fn ends_all_work(&self) -> bool {
        matches!(self, Error::LaunchFailed { .. } | Error::DeviceReset { .. })
    }
}
