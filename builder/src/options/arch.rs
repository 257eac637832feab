//! The name of a device architecture, checked.

use std::fmt;
use std::str::FromStr;

use ferrogrid_syntax::{OLDEST_ARCHITECTURE, architecture_number};

use crate::error::Error;

/// A device architecture as rustc's `-C target-cpu` takes it: `sm_75`, `sm_90`, `sm_90a`, `sm_100`.
///
/// ```
/// use ferrogrid_build::Arch;
/// let arch: Arch = "sm_90a".parse()?;
/// assert_eq!(arch.as_str(), "sm_90a");
/// assert!("sm90".parse::<Arch>().is_err());
/// # Ok::<(), ferrogrid_build::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch(String);

impl Arch {
    /// The default architecture: `sm_75`, which every device since Turing (2018) can load.
    pub fn baseline() -> Self {
        Arch(format!("sm_{OLDEST_ARCHITECTURE}"))
    }

    /// The name: `sm_75`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether devices of this architecture have thread block clusters.
    pub(crate) fn has_clusters(&self) -> bool {
        self.number() >= 90
    }

    /// Whether a device of this compute capability (major, minor) runs code for this architecture. PTX also
    /// runs on newer devices, with `f` (`sm_100f`) within the family only, and with `a` (`sm_90a`) on no
    /// other.
    ///
    /// ```
    /// use ferrogrid_build::Arch;
    /// let arch = |name: &str| name.parse::<Arch>().unwrap();
    /// assert!(arch("sm_75").runs_on((9, 0)) && !arch("sm_90").runs_on((8, 6)));
    /// assert!(arch("sm_90a").runs_on((9, 0)) && !arch("sm_90a").runs_on((10, 0)));
    /// assert!(arch("sm_100f").runs_on((10, 3)) && !arch("sm_100f").runs_on((12, 0)));
    /// ```
    pub fn runs_on(&self, capability: (u32, u32)) -> bool {
        let (own, device) = (self.number(), 10 * capability.0 + capability.1);
        match self.0.as_bytes().last() {
            Some(b'a') => own == device,
            Some(b'f') => own <= device && own / 10 == device / 10,
            _ => own <= device,
        }
    }

    /// The compute capability (major, minor) of its devices: (9, 0) for `sm_90a`.
    pub fn capability(&self) -> (u32, u32) {
        (self.number() / 10, self.number() % 10)
    }

    /// Whether code that devices of `other` run compiles for this architecture, too: only `a` and `f` have
    /// instructions that later architectures may lack.
    pub(crate) fn extends(&self, other: &Arch) -> bool {
        self == other || (other.has_no_suffix() && other.number() <= self.number())
    }

    fn has_no_suffix(&self) -> bool {
        !self.0.ends_with(['a', 'f'])
    }

    /// A key that sorts architectures by number: `sm_90` before `sm_90a` before `sm_100`.
    pub(crate) fn order(&self) -> (u32, String) {
        (self.number(), self.0.clone())
    }

    /// 90 for `sm_90a`.
    pub(crate) fn number(&self) -> u32 {
        architecture_number(&self.0).unwrap_or(0)
    }

    /// Reads a list separated by commas or spaces, leaves out repetitions, keeps the order.
    ///
    /// # Errors
    /// For the first name that is not an architecture, and for an empty list.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, Error> {
        let mut archs = Vec::new();
        for name in text.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()) {
            let arch = name.parse()?;
            if !archs.contains(&arch) {
                archs.push(arch);
            }
        }
        if archs.is_empty() {
            return Err(Error::Arch { given: text.to_owned() });
        }
        Ok(archs)
    }
}

impl FromStr for Arch {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match architecture_number(name) {
            Some(_) => Ok(Arch(name.to_owned())),
            None => Err(Error::Arch { given: name.to_owned() }),
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_architectures_are_taken() {
        for name in ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_100f", "sm_120a"] {
            assert_eq!(name.parse::<Arch>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn ptx_runs_on_newer_devices_within_its_family() {
        for (arch, runs, fails) in [
            ("sm_75", [(7, 5), (12, 1)].as_slice(), [(7, 2), (6, 1)].as_slice()),
            ("sm_90", &[(9, 0), (10, 0)], &[(8, 9)]),
            ("sm_90a", &[(9, 0)], &[(8, 9), (9, 1), (10, 0)]),
            ("sm_100f", &[(10, 0), (10, 3)], &[(9, 0), (11, 0), (12, 0)]),
            ("sm_103f", &[(10, 3), (10, 4)], &[(10, 1), (11, 3)]),
        ] {
            let arch: Arch = arch.parse().unwrap();
            assert!(runs.iter().all(|it| arch.runs_on(*it)), "{arch} on {runs:?}");
            assert!(!fails.iter().any(|it| arch.runs_on(*it)), "{arch} on {fails:?}");
        }
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for name in [
            "",
            "sm_",
            "75",
            "sm75",
            "sm_75b",
            "compute_80",
            "sm_9000",
            "sm_70",
            "sm_+75",
            "sm_777",
            "sm_075",
        ] {
            let error = name.parse::<Arch>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
    }

    #[test]
    fn clusters_require_sm_90() {
        let has = |name: &str| name.parse::<Arch>().unwrap().has_clusters();
        assert_eq!(
            ["sm_75", "sm_89", "sm_90", "sm_90a", "sm_100f"].map(has),
            [false, false, true, true, true]
        );
    }

    #[test]
    fn a_list_keeps_its_order_and_loses_repetitions() {
        let archs = Arch::parse_list("sm_90, sm_75,sm_90").unwrap();
        assert_eq!(archs.iter().map(Arch::as_str).collect::<Vec<_>>(), ["sm_90", "sm_75"]);
        assert!(Arch::parse_list(" , ").is_err());
    }
}
