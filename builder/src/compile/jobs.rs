//! Compiles all device crates of a build, as many at once as there are processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::compile::cubin::Cubins;
use crate::compile::{Compiler, Image, Linked, Rlib};
use crate::error::Error;
use crate::output::manifest::Outcomes;
use crate::source::scan::{Scan, Unit};

/// The rlibs of the libraries for one architecture, by number.
type Rlibs = Vec<OnceLock<Result<Rlib, Error>>>;

/// The numbers of a unit, of a part of it, and of an architecture of that part.
type Job = (usize, usize, usize);

/// Compiles every part of every unit for each of its architectures, as many at once as there are processors.
pub(crate) fn compile_all(scan: &Scan, compilers: &[Compiler<'_>], cubins: &Cubins) -> Vec<Outcomes> {
    let rlibs = || scan.libraries.iter().map(|_| OnceLock::new()).collect();
    let rlibs: Vec<Rlibs> = compilers.iter().map(|_| rlibs()).collect();
    let mut jobs: Vec<Job> = Vec::new();
    for (number, unit) in scan.units.iter().enumerate() {
        for (part, device_crate) in unit.device_crates.iter().enumerate() {
            jobs.extend((0..device_crate.archs.len()).map(|arch| (number, part, arch)));
        }
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<Job, Result<Image, Error>>> = Mutex::default();
    let work = || {
        while let Some(&(number, part, arch)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let unit = &scan.units[number];
            let named = &unit.device_crates[part].archs[arch];
            let at = compilers.iter().position(|it| it.arch == named).expect("each has a compiler");
            let image = compile_one(scan, unit, part, &compilers[at], &rlibs[at], cubins);
            done.lock().unwrap_or_else(|it| it.into_inner()).insert((number, part, arch), image);
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..processors.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut outcomes: Vec<Outcomes> =
        scan.units.iter().map(|unit| unit.device_crates.iter().map(|_| Ok(Vec::new())).collect()).collect();
    for ((unit, part, _), image) in done.into_inner().unwrap_or_else(|it| it.into_inner()) {
        let outcome = &mut outcomes[unit][part];
        match (outcome.as_mut(), image) {
            (Ok(images), Ok(image)) => images.push(image),
            (Ok(_), Err(error)) => *outcome = Err(error),
            (Err(_), _) => {}
        }
    }
    outcomes
}

fn compile_one(
    scan: &Scan,
    unit: &Unit,
    part: usize,
    compiler: &Compiler<'_>,
    rlibs: &Rlibs,
    cubins: &Cubins,
) -> Result<Image, Error> {
    let linked = linked(scan, &unit.uses, compiler, rlibs)?;
    let mut image = compiler.image(&unit.device_crates[part], &linked)?;
    // The driver assembles what it links with other code.
    if image.ptx.unresolved.is_empty() {
        cubins.add_to(&mut image, compiler.arch);
    }
    Ok(image)
}

/// The libraries that a device crate `uses`; the first user compiles them.
fn linked<'a>(
    scan: &'a Scan,
    uses: &'a BTreeMap<String, usize>,
    compiler: &Compiler<'_>,
    rlibs: &'a Rlibs,
) -> Result<Linked<'a>, Error> {
    let rlib = |(name, &number): (&'a String, &usize)| {
        let library = &scan.libraries[number];
        let rlib = rlibs[number].get_or_init(|| {
            let linked = linked(scan, &library.uses, compiler, rlibs)?;
            compiler.library(&library.device_crate, &library.package, &linked)
        });
        rlib.as_ref().map(|rlib| (name.as_str(), rlib)).map_err(Error::for_others)
    };
    uses.iter().map(rlib).collect()
}
