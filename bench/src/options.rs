//! The command line of a bench.

use std::ffi::OsString;
use std::path::PathBuf;

use ferrogrid::Device;
use lexopt::prelude::*;

use crate::Outcome;

pub(crate) const HELP: &str = "\
Usage: BENCH [OPTIONS] [CASE]

  CASE             only cases whose name contains this
  --bench          measure; without it, each case runs once, to see that it works
  --device DEVICE  cpu, cuda or cuda:N; all devices unless given
  --no-sweep       measure the default block size only
  --json FILE      write the results as JSON
  --plots FOLDER   write a roofline of each device, and a plot of each sweep, as SVG
  --quiet          print no table";

/// The arguments of a bench.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) help: bool,
    /// Whether each case runs once, without measuring.
    pub(crate) quick: bool,
    pub(crate) no_sweep: bool,
    pub(crate) quiet: bool,
    /// A part of the names of the cases to run.
    pub(crate) filter: Option<String>,
    pub(crate) device: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) plots: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments after the program's name.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Outcome<Self> {
        let mut options = Options { quick: true, ..Options::default() };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("bench") => options.quick = false,
                Long("no-sweep") => options.no_sweep = true,
                Long("quiet") => options.quiet = true,
                Long("device") => options.device = Some(parser.value()?.string()?),
                Long("json") => options.json = Some(parser.value()?.into()),
                Long("plots") => options.plots = Some(parser.value()?.into()),
                Long("help") | Short('h') => options.help = true,
                // Arguments that `cargo test` gives to all programs.
                Long("test" | "nocapture" | "show-output" | "exact") => {}
                Long("test-threads" | "color" | "format") => drop(parser.value()?),
                Value(name) => options.filter = Some(name.string()?),
                _ => return Err(format!("{}\n\n{HELP}", argument.unexpected()).into()),
            }
        }
        Ok(options)
    }

    /// The selected ones of all devices.
    pub(crate) fn devices(&self, all: Vec<Device>) -> Outcome<Vec<Device>> {
        let Some(wanted) = &self.device else { return Ok(all) };
        let ordinal = match wanted.as_str() {
            "cpu" => None,
            "cuda" => Some(0),
            other => {
                Some(other.strip_prefix("cuda:").and_then(|number| number.parse().ok()).ok_or_else(|| {
                    format!("`--device {other}` is not a device; expected `cpu`, `cuda` or `cuda:N`")
                })?)
            }
        };
        match ordinal {
            None => Ok(vec![Device::cpu()]),
            Some(ordinal) => Ok(vec![Device::cuda(ordinal)?]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn without_bench_it_is_only_tried() {
        assert!(parsed(&[]).unwrap().quick);
        assert!(parsed(&["--test-threads=1", "--nocapture"]).unwrap().quick);
        let options = parsed(&["--bench", "saxpy", "--json", "a.json", "--device=cpu"]).unwrap();
        let expected = Options {
            filter: Some("saxpy".to_owned()),
            json: Some("a.json".into()),
            device: Some("cpu".to_owned()),
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn meaningless_settings_are_reported() {
        assert!(parsed(&["--bensh"]).unwrap_err().contains("--bensh"));
        let options = parsed(&["--device", "gpu"]).unwrap();
        assert!(options.devices(Vec::new()).unwrap_err().to_string().contains("`--device gpu`"));
    }
}
