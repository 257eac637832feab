//! The options by which a verb that reads kernels names their cargo target and the package's features, and which
//! kernels are meant without them.

use std::collections::BTreeSet;

use ferrogrid_build::inspect::CompiledKernel;

use crate::Failure;
use crate::cargo::Package;
use crate::selection::Selection;

/// The cargo target whose kernels are read; all of the package if none is named.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct Target {
    /// Only the library's kernels.
    #[arg(long)]
    lib: bool,
    /// Only this program's kernels.
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// Only this example's kernels.
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// Only this test's kernels.
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// Only this bench's kernels.
    #[arg(long, value_name = "NAME")]
    bench: Option<String>,
}

impl Target {
    /// Its kind and name.
    pub(crate) fn named(&self, package: &Package) -> Option<(&'static str, String)> {
        let named =
            [("bin", &self.bin), ("example", &self.example), ("test", &self.test), ("bench", &self.bench)];
        let library = || package.library().filter(|_| self.lib).map(|name| ("lib", name));
        named.into_iter().find_map(|(kind, name)| Some((kind, name.clone()?))).or_else(library)
    }

    /// The selected package that has it; without a name, one with a build step.
    ///
    /// # Errors
    /// As for [`Selection::one`].
    pub(crate) fn package(&self, selection: &Selection) -> Result<Package, Failure> {
        let named = [("example", &self.example), ("test", &self.test), ("bench", &self.bench)];
        let named = named.into_iter().find_map(|(kind, name)| Some((kind, name.as_deref()?)));
        let has_build_step = |it: &Package| it.depends_on("ferrogrid-build", Some("build"));
        let what = named.map_or("kernels".to_owned(), |(kind, name)| format!("kernels of {kind} `{name}`"));
        selection.one(&what, |it| {
            let has = |(kind, name)| it.sources(kind).iter().any(|(target, _)| target == name);
            has_build_step(it) && named.is_none_or(has)
        })
    }
}

/// cargo's options for the package's features.
#[derive(clap::Args)]
pub(crate) struct Features {
    /// Features of the package to build with.
    #[arg(long, value_name = "FEATURES")]
    features: Vec<String>,
    /// Build with all features of the package.
    #[arg(long)]
    all_features: bool,
    /// Build without the package's default features.
    #[arg(long)]
    no_default_features: bool,
}

impl Features {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            self.features.iter().flat_map(|it| ["--features".to_owned(), it.clone()]).collect();
        arguments.extend(self.all_features.then(|| "--all-features".to_owned()));
        arguments.extend(self.no_default_features.then(|| "--no-default-features".to_owned()));
        arguments
    }
}

/// The library, or the only program among targets with kernels, since examples, tests and benches usually use these.
pub(crate) fn nearest_target<'t>(targets: &BTreeSet<&'t str>) -> Option<&'t str> {
    let of_kind = |kind: &str| targets.iter().copied().filter(|it| it.starts_with(kind)).collect::<Vec<_>>();
    let (libraries, programs) = (of_kind("lib "), of_kind("bin "));
    match (libraries.as_slice(), programs.as_slice()) {
        ([nearest], _) | ([], [nearest]) => Some(nearest),
        _ => None,
    }
}

/// Of kernels in several targets those of the library, or of the only program; a note names the other targets. All kernels,
/// if they are only in other targets.
pub(crate) fn of_nearest_target(kernels: Vec<&CompiledKernel>) -> Vec<&CompiledKernel> {
    let targets: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.target.as_str()).collect();
    let Some(nearest) = nearest_target(&targets) else { return kernels };
    let others = targets.iter().filter(|target| **target != nearest).map(|target| option(target));
    let others = others.collect::<Vec<_>>().join(", ");
    if !others.is_empty() {
        eprintln!("note: this is the kernel of {nearest}; other targets have kernels of that name: {others}");
    }
    kernels.into_iter().filter(|kernel| kernel.target == nearest).collect()
}

/// The option that names a kernel's target: `--example saxpy` for "example `saxpy`".
pub(crate) fn option(target: &str) -> String {
    match target.trim_end_matches('`').split_once(" `") {
        Some(("lib", _)) | None => "--lib".to_owned(),
        Some((kind, name)) => format!("--{kind} {name}"),
    }
}
