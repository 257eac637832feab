//! Runs ptxas on PTX, and parses the resources of kernels from its output. Results are cached.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache;
use crate::error::Error;
use crate::options::Arch;
use crate::toolchain::process;

/// The resources of an entry point, as ptxas reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resources {
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Bytes of each thread's stack, including the functions that it calls.
    pub stack: u32,
    /// Bytes that each thread stores because registers do not suffice.
    pub spill_stores: u32,
    /// Bytes that it loads again.
    pub spill_loads: u32,
    /// Bytes of shared memory whose size the PTX fixes, without those of `Shared` parameters, which the
    /// launch provides.
    pub static_shared: u32,
    /// Barriers of a block.
    pub barriers: u32,
}

/// Machine code, and the resources of its entry points.
#[derive(Debug)]
pub struct Assembled {
    /// The machine code.
    pub cubin: PathBuf,
    /// By entry point.
    pub resources: BTreeMap<String, Resources>,
}

/// ptxas, and a folder for its results.
#[derive(Debug)]
pub struct Assembler {
    program: PathBuf,
    folder: PathBuf,
}

impl Assembler {
    /// The ptxas at `program`, whose results are kept in `folder`.
    pub fn new(program: PathBuf, folder: PathBuf) -> Self {
        Assembler { program, folder }
    }

    /// Assembles the PTX in `file` for `arch`, all of it or one entry point, with line tables.
    ///
    /// # Errors
    /// [`Error::Program`] with the output of ptxas, for instance if it does not support the architecture.
    pub fn assemble(&self, file: &Path, arch: &Arch, entry: Option<&str>) -> Result<Assembled, Error> {
        let text = cache::read(file)?;
        let identity = process::identity(&self.program);
        let key = cache::key(format!("{identity}\n{arch}\n{entry:?}\n{text}").as_bytes());
        let (cubin, said) =
            (self.folder.join(format!("{key}.cubin")), self.folder.join(format!("{key}.txt")));
        if let Ok(said) = fs::read_to_string(&said)
            && cubin.is_file()
        {
            return Ok(Assembled { cubin, resources: resources(&said) });
        }
        cache::create_dir(&self.folder)?;
        // A unique name: another process or thread may be assembling the same.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let partial = self.folder.join(format!("{key}.partial-{}-{number}", std::process::id()));
        let mut command = Command::new(&self.program);
        command.args(["-v", "-lineinfo", &format!("-arch={arch}")]);
        command.args(entry.iter().flat_map(|entry| ["-e", entry])).arg(file).arg("-o").arg(&partial);
        let output = process::run(&mut command)?;
        let text = [output.stdout.as_slice(), &output.stderr].map(String::from_utf8_lossy).concat();
        if !output.status.success() {
            return Err(Error::Program {
                what: format!("ptxas for {arch}"),
                command: process::command_line(&command),
                output: text.trim_end().to_owned(),
            });
        }
        fs::rename(&partial, &cubin).map_err(Error::io("write", &cubin))?;
        cache::write(&said, &text)?;
        Ok(Assembled { cubin, resources: resources(&text) })
    }
}

/// Reads what `ptxas -v` prints.
fn resources(said: &str) -> BTreeMap<String, Resources> {
    let mut all = BTreeMap::new();
    let mut entry = None;
    let mut function = None;
    for line in said.lines() {
        if let Some(rest) = line.split_once("Compiling entry function '").map(|(_, rest)| rest) {
            entry = rest.split('\'').next().map(str::to_owned);
            continue;
        }
        if let Some((_, name)) = line.split_once("Function properties for ") {
            function = Some(name.trim().to_owned());
            continue;
        }
        let Some(name) = &entry else { continue };
        let of_entry: &mut Resources = all.entry(name.clone()).or_default();
        if line.contains("bytes stack frame") && function.as_deref() == Some(name.as_str()) {
            of_entry.stack = before(line, "bytes stack frame");
            of_entry.spill_stores = before(line, "bytes spill stores");
            of_entry.spill_loads = before(line, "bytes spill loads");
        } else if line.contains("Used ") && line.contains(" registers") {
            of_entry.registers = before(line, "registers");
            of_entry.barriers = before(line, "barriers");
            of_entry.static_shared = before(line, "bytes smem");
            of_entry.stack = of_entry.stack.max(before(line, "bytes cumulative stack size"));
        }
    }
    all
}

/// The number before `what` in a line; 0 if it is not there.
fn before(line: &str, what: &str) -> u32 {
    let Some((text, _)) = line.split_once(&format!(" {what}")) else { return 0 };
    text.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas info    : 123 bytes gmem
ptxas info    : Compiling entry function 'sums_0123' for 'sm_90'
ptxas info    : Function properties for sums_0123
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 64 registers, used 2 barriers, 80 bytes cumulative stack size, 1024 bytes smem, 560 bytes cmem[0]
ptxas info    : Compile time = 38.101 ms
ptxas info    : Function properties for __ferrogrid_panic_bounds_check
    96 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'plain_0123' for 'sm_90'
ptxas info    : Function properties for plain_0123
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
";

    #[test]
    fn resources_are_read_for_entry_points_and_not_for_functions() {
        let all = resources(SAID);
        let sums = Resources {
            registers: 64,
            stack: 80,
            spill_stores: 8,
            spill_loads: 12,
            static_shared: 1024,
            barriers: 2,
        };
        assert_eq!(all["sums_0123"], sums);
        assert_eq!(all["plain_0123"], Resources { registers: 10, ..Resources::default() });
        assert_eq!(all.len(), 2);
    }
}
