//! From the PTX that rustc writes to the PTX that is embedded: passes, proofs, checks.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use ferrogrid_ptx::uniformity::Program;
use ferrogrid_ptx::{Edits, Module, ParseError};
use ferrogrid_syntax::LaunchBounds;
use ferrogrid_syntax::compiled::Diagnostic;

use super::Compiler;
use super::hints::hint;
use crate::cache;
use crate::error::Error;
use crate::passes::{self, Wanted};
use crate::proof::{self, Refusal};
use crate::ptx::Ptx;
use crate::source::device_crate::DeviceCrate;
use crate::source::module_tree::FoundKernel;

impl Compiler<'_> {
    /// rustc's PTX after all passes and proofs, and its declarations. Warp operations that are not proven get
    /// checks, for which the passes run a second time.
    pub(super) fn finished(
        &self,
        assembly: &Path,
        device_crate: &DeviceCrate,
    ) -> Result<(String, Ptx), Error> {
        let mut wanted = Wanted {
            bounds: device_crate.kernels().map(|it| (it.entry.as_str(), self.bounds(it))).collect(),
            unproven: BTreeMap::new(),
            own_files: self.own_files(device_crate),
            arithmetic: self.options.arithmetic,
            arithmetic_of_kernels: device_crate
                .kernels()
                .map(|it| (it.entry.as_str(), it.arithmetic))
                .collect(),
            lines: self.options.line_info != Some(false) || self.options.debug_info == Some(true),
            has_pairs: self.arch.number() >= 80,
            folders: self.folders,
        };
        let wrong = |error: ParseError| self.bad_ptx(assembly, error, device_crate);
        let compiled = cache::read(assembly)?;
        let text = passes::run(&compiled, &wanted).map_err(wrong)?;
        // The proof covers the code that runs, so it needs the result of the passes.
        let ranks = device_crate.kernels().map(|kernel| (kernel.entry.as_str(), kernel.rank)).collect();
        let module = Module::parse(&text).map_err(wrong)?;
        let program = Program::of(&module);
        wanted.unproven = passes::lanes::unproven(&program, &ranks);
        if wanted.unproven.is_empty() {
            return self.proven(assembly, &program, device_crate);
        }
        let text = passes::run(&compiled, &wanted).map_err(wrong)?;
        self.proven(assembly, &Program::of(&Module::parse(&text).map_err(wrong)?), device_crate)
    }

    /// The text of a program after the proofs, without the marks of what was to be proven, and its declarations.
    fn proven(
        &self,
        file: &Path,
        program: &Program<'_, '_>,
        device_crate: &DeviceCrate,
    ) -> Result<(String, Ptx), Error> {
        let module = program.module();
        let cooperative = device_crate.kernels().filter(|kernel| kernel.bounds.cooperative);
        let cooperative = cooperative.map(|kernel| kernel.entry.as_str()).collect();
        let refusals = proof::check(program, &cooperative, &self.own_files(device_crate), self.folders);
        if !refusals.is_empty() {
            return Err(self.refused(refusals, device_crate));
        }
        // Marks declare nothing.
        let ptx = self.declarations(file, module, device_crate)?;
        let mut edits = Edits::new(module.text);
        proof::marks::take(program, &mut edits);
        Ok((format!("// Mathematics: {}\n{}", self.math, edits.apply()), ptx))
    }

    /// The launch bounds of `kernel` on this architecture. The build's `max_registers` is for kernels that do
    /// not bound their registers themselves. Clusters and dependent launches came with the same architecture:
    /// older ones have no directive for them, and launches with them fail there.
    fn bounds(&self, kernel: &FoundKernel) -> LaunchBounds {
        let mut bounds = kernel.bounds;
        bounds.cluster = bounds.cluster.filter(|_| self.arch.has_clusters());
        bounds.dependent_launch &= self.arch.has_clusters();
        if bounds.min_blocks.is_none() {
            bounds.max_registers = bounds.max_registers.or(self.options.max_registers);
        }
        bounds
    }

    /// The declarations of the PTX, checked against the modules of `device_crate`.
    pub(super) fn check(&self, file: &Path, text: &str, device_crate: &DeviceCrate) -> Result<Ptx, Error> {
        let module = Module::parse(text).map_err(|error| self.bad_ptx(file, error, device_crate))?;
        self.declarations(file, &module, device_crate)
    }

    fn declarations(
        &self,
        file: &Path,
        module: &Module<'_>,
        device_crate: &DeviceCrate,
    ) -> Result<Ptx, Error> {
        let wrong = |problem: String| self.bad_ptx(file, problem, device_crate);
        let mut ptx = Ptx::of(module).map_err(wrong)?;
        if ptx.target != self.arch.as_str() {
            return Err(wrong(format!("its .target is {}", ptx.target)));
        }
        // Functions that the modules declare are linked when the code is loaded.
        let (linked, missing) =
            ptx.unresolved.drain(..).partition(|name| device_crate.externs.contains_key(name));
        ptx.unresolved = missing;
        ptx.verify(device_crate.kernels().map(|it| (it.entry.as_str(), it.parameters))).map_err(wrong)?;
        passes::constants::check(module).map_err(wrong)?;
        ptx.unresolved = linked;
        Ok(ptx)
    }

    /// The user's files, as the line table names them.
    fn own_files(&self, device_crate: &DeviceCrate) -> HashSet<String> {
        let files = device_crate.modules.iter().map(|module| module.file.to_string_lossy());
        files.map(|file| passes::lines::remapped(&file, self.folders)).collect()
    }

    /// The error for a program that compiles but fails a proof.
    fn refused(&self, refusals: Vec<Refusal>, device_crate: &DeviceCrate) -> Error {
        let rendered = refusals.iter().map(|Refusal { file, place: (line, column), message }| {
            let place =
                if file.is_empty() { String::new() } else { format!("\n  --> {file}:{line}:{column}") };
            format!("error: {}{place}", message.replace("\n  ", "\n  = "))
        });
        let diagnostics = rendered.collect::<Vec<_>>().join("\n\n");
        let places = refusals.into_iter().filter(|refusal| !refusal.file.is_empty()).map(|refusal| {
            let file = passes::lines::source_file(&refusal.file, self.folders);
            let (start, end) = span(&file, refusal.place);
            (file, Diagnostic { start, end, message: refusal.message })
        });
        Error::Device {
            target: device_crate.target.clone(),
            arch: self.arch.to_string(),
            hint: hint(&diagnostics),
            places: places.collect(),
            diagnostics,
        }
    }

    fn bad_ptx(&self, file: &Path, problem: impl ToString, device_crate: &DeviceCrate) -> Error {
        Error::ptx(&device_crate.target, self.arch, file, problem)
    }
}

/// The characters of a place in a file, from the first to behind the last. A column of 0 stands for the
/// whole line, without the spaces around it.
fn span(file: &Path, (line, column): (usize, usize)) -> ((usize, usize), (usize, usize)) {
    if column > 0 {
        return ((line, column), (line, column + 1));
    }
    let text = cache::read(file).unwrap_or_default();
    let text = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let indent = text.chars().take_while(|it| it.is_whitespace()).count();
    ((line, indent + 1), (line, text.trim_end().chars().count() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_its_character_or_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.rs");
        std::fs::write(&file, "fn f() {\n    g(); \n}\n").unwrap();
        assert_eq!(span(&file, (2, 5)), ((2, 5), (2, 6)));
        assert_eq!(span(&file, (1, 1)), ((1, 1), (1, 2)));
        assert_eq!(span(&file, (2, 0)), ((2, 5), (2, 9)));
        // A line that no longer exists.
        assert_eq!(span(&file, (9, 0)), ((9, 1), (9, 1)));
    }
}
