//! The command line of rustc for a device crate, and the key that changes with it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use super::{Compiler, Linked};
use crate::cache;
use crate::options::Options;
use crate::source::device_crate::DeviceCrate;
use crate::toolchain::{DEVICE_TARGET, process};

impl Compiler<'_> {
    /// rustc for `device_crate` of the package `id`; `expand` is the half that the macros expand to.
    pub(super) fn rustc(
        &self,
        device_crate: &DeviceCrate,
        id: &str,
        linked: &Linked<'_>,
        expand: &str,
    ) -> Command {
        let mut command = process::command(&self.toolchain.rustc);
        command.env("RUSTC_BOOTSTRAP", "1").env("FERROGRID_EXPAND", expand);
        command.envs(device_crate.options.variables.iter().cloned());
        command.env("CARGO_CRATE_NAME", &device_crate.crate_name);
        command.current_dir(self.workspace_root);
        command.arg(&device_crate.root).args(["--crate-name", &device_crate.crate_name]);
        command.args(["--edition", &device_crate.edition, "--target", DEVICE_TARGET]);
        command.arg("--sysroot").arg(&self.core.sysroot);
        command.arg(format!("-Ctarget-cpu={}", self.arch));
        command.args(["-Copt-level=3", "-Ccodegen-units=1", "-Cpanic=abort"]);
        command.args(debug_info(self.options.debug_info == Some(true)));
        command.arg("-Zmir-enable-passes=-JumpThreading");
        if self.options.debug_info == Some(true) && self.arch.number() < 80 {
            // Debug information has labels in sections, which PTX 7.0 introduced; `sm_80` implies that
            // version.
            command.arg("-Ctarget-feature=+ptx70");
        }
        // LLVM unrolls a loop only if counting its iterations beforehand is cheap: four operations by
        // default, too few for a loop that starts at a thread's index. The result must also be small: 75
        // instructions by default, too few for an exponential.
        command.arg("-Cllvm-args=-scev-cheap-expansion-budget=16");
        command.arg("-Cllvm-args=-unroll-partial-threshold=200");
        let switch = |on| if on { "on" } else { "off" };
        command.arg(format!("-Coverflow-checks={}", switch(device_crate.options.overflow_checks)));
        command.arg(format!("-Cdebug-assertions={}", switch(device_crate.options.debug_assertions)));
        // The standard library's own checks would cost more than on the host.
        command.arg("-Zub-checks=no");
        command.args(["--cap-lints=allow", "--error-format=json", "-Zcrate-attr=no_std"]);
        command.arg(format!("-Cmetadata={}-{expand}", device_crate.slug));
        command.arg(format!("-Zcrate-attr=feature({})", features(device_crate)));
        for cfg in &device_crate.options.cfgs {
            command.args(["--cfg", cfg]);
        }
        for remap in &device_crate.remaps {
            command.args(["--remap-path-prefix", remap]);
        }
        let externs =
            self.externs.crates.get(id).into_iter().flatten().map(|(name, file)| (name.as_str(), file));
        for (name, file) in externs.chain(linked.iter().map(|(name, rlib)| (*name, &rlib.file))) {
            command.arg("--extern").arg(format!("{name}={}", file.display()));
        }
        let folders: BTreeSet<&PathBuf> = linked.values().flat_map(|rlib| &rlib.folders).collect();
        for folder in folders {
            command.arg(format!("-Ldependency={}", folder.display()));
        }
        command.arg(format!("-Ldependency={}", self.externs.folder.display()));
        command
    }

    /// A hash of all inputs of the command, except files that the code includes.
    pub(super) fn key(&self, command: &Command, device_crate: &DeviceCrate, linked: &Linked<'_>) -> String {
        let line = process::command_line(command);
        let keys = [cache::program_key(), &self.toolchain.key, &device_crate.text_key, &self.externs.key];
        let linked: Vec<&str> = linked.values().map(|rlib| rlib.key.as_str()).collect();
        let expected: Vec<_> = device_crate.kernels().map(|it| (&it.entry, it.parameters)).collect();
        // The PTX does not depend on whether machine code is generated.
        let options = Options { cubin: None, ..self.options.clone() };
        cache::key(
            format!("{line}\n{keys:?}\n{linked:?}\n{expected:?}\n{options:?}\n{:?}", device_crate.options)
                .as_bytes(),
        )
    }

    /// The values of libdevice's queries of its compiler (`__nvvm_reflect`); LLVM answers the rest itself, or
    /// with 0.
    pub(super) fn reflection(&self) -> [String; 2] {
        let arithmetic = self.options.arithmetic;
        let flag = |name, value: bool| format!("-Cllvm-args=-nvvm-reflect-add={name}={}", u8::from(value));
        [
            flag("__CUDA_FTZ", arithmetic.ftz == Some(true)),
            flag("__CUDA_PREC_SQRT", arithmetic.approx_sqrt != Some(true)),
        ]
    }
}

/// rustc's options for debug information: lines alone, or also variables and types. LLVM's tables of address
/// ranges are left out: ptxas does not accept their form (a label behind its section, `.b84,255`), and
/// debuggers do without them.
fn debug_info(on: bool) -> &'static [&'static str] {
    match on {
        true => &["-Cdebuginfo=2", "-Cllvm-args=-generate-arange-section=false"],
        false => &["-Cdebuginfo=line-directives-only"],
    }
}

/// The nightly features of a device crate: those that kernels need, and the crate's own.
fn features(device_crate: &DeviceCrate) -> String {
    let needed = ["abi_ptx", "stdarch_nvptx", "link_llvm_intrinsics", "asm_experimental_arch"];
    let own = device_crate.features.iter().map(String::as_str).filter(|name| !needed.contains(name));
    needed.into_iter().chain(own).collect::<Vec<_>>().join(",")
}
