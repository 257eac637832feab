//! `cargo ferrogrid clean`: empties the cache that the builds of a user share, or lists it.

use std::process::ExitCode;
use std::time::SystemTime;

use ferrogrid_build::{cache, cache_size};

use crate::{Failure, output};

/// The arguments of `clean`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// List the cache without removing anything.
    #[arg(long)]
    dry_run: bool,
}

/// Removes the entries, or lists them.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let root = cache::root();
    if options.dry_run {
        for entry in cache_size::entries(&root) {
            let days = SystemTime::now().duration_since(entry.built).unwrap_or_default().as_secs() / 86400;
            let path = entry.path.strip_prefix(&root).unwrap_or(&entry.path).display();
            output::line(format_args!("{:>10}  built {days} days ago  {path}", size(entry.bytes)))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = cache_size::clear(&root)?;
    output::line(format_args!("removed {} from {}; builds fill it again", size(bytes), root.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The size as text.
pub(crate) fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
