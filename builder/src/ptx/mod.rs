//! The declarations of a PTX text that the build checks: version, target, entry points with the size and
//! alignment of each parameter, and functions that are declared but not defined. `ptx/layout.rs` reads the
//! layouts.
//!
//! ```
//! let text = ".version 6.3\n.target sm_75\n.visible .entry k(\n\t.param .f32 k_param_0\n)\n{\n\tret;\n}\n";
//! let ptx = ferrogrid_build::ptx::Ptx::parse(text)?;
//! assert_eq!((ptx.version, ptx.target.as_str()), ((6, 3), "sm_75"));
//! assert_eq!(ptx.entries[0].params[0].size, 4);
//! # Ok::<(), String>(())
//! ```

pub(crate) mod layout;

use ferrogrid_abi::failure::RECORD_PARAMETER;
use ferrogrid_ptx::{Declaration, Function, Linkage, Module};

/// What a PTX text declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    /// The PTX ISA version, from `.version`.
    pub version: (u32, u32),
    /// The architecture, from `.target`.
    pub target: String,
    /// The entry points, in order.
    pub entries: Vec<Entry>,
    /// External functions that the text calls, except those of the device's run time.
    pub unresolved: Vec<String>,
}

/// An entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters, in order, without that of the failure record.
    pub params: Vec<Param>,
}

/// Size and alignment of a parameter, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes, as rustc chose it: a pass may align a parameter more.
    pub align: usize,
}

/// The greatest alignment of a parameter that rustc passes.
const MOST_ALIGNED: usize = 16;

/// The functions that the driver provides to every program.
const RUN_TIME: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

impl Ptx {
    /// Reads the declarations of `text`.
    ///
    /// # Errors
    /// Says which directive is missing or malformed.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::of(&Module::parse(text).map_err(|error| error.to_string())?)
    }

    /// The declarations of a module.
    pub(crate) fn of(module: &Module<'_>) -> Result<Self, String> {
        let version = module.version().ok_or("it has no .version")?;
        let target = module.target().ok_or("it has no .target")?.to_owned();
        let entries = module.entries().map(Entry::of).collect::<Result<_, _>>()?;
        Ok(Ptx { version, target, entries, unresolved: unresolved(module) })
    }

    /// The entry point called `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Checks that each expected entry point exists with a number of parameters in the range, and that every
    /// function that is called exists.
    ///
    /// # Errors
    /// Says what is missing or different.
    pub fn verify<'a>(
        &self,
        expected: impl IntoIterator<Item = (&'a str, (usize, usize))>,
    ) -> Result<(), String> {
        for (name, (least, most)) in expected {
            let entry = self.entry(name).ok_or_else(|| {
                let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
                format!("it has no entry point `{name}` (it has: {})", names.join(", "))
            })?;
            let found = entry.params.len();
            if !(least..=most).contains(&found) {
                let expected = if least == most { most.to_string() } else { format!("{least} to {most}") };
                return Err(format!("entry point `{name}` has {found} parameters, expected {expected}"));
            }
        }
        if self.unresolved.is_empty() {
            return Ok(());
        }
        Err(format!("it calls functions that do not exist on the device: {}", self.unresolved.join(", ")))
    }

    /// Checks that entry points of the same name have the same parameters in `other`.
    ///
    /// # Errors
    /// Names the first entry point that differs.
    pub fn agrees_with(&self, other: &Ptx) -> Result<(), String> {
        for entry in &self.entries {
            if other.entry(&entry.name).is_some_and(|it| it.params != entry.params) {
                return Err(format!(
                    "entry point `{}` has other parameters for {} than for {}",
                    entry.name, self.target, other.target
                ));
            }
        }
        Ok(())
    }
}

impl Entry {
    fn of(function: &Function<'_>) -> Result<Self, String> {
        let own = function.parameters().iter().filter(|parameter| parameter.name() != RECORD_PARAMETER);
        let params = own.map(|parameter| {
            let param = Param::of(parameter);
            param.ok_or_else(|| format!("malformed parameter `{}` of `{}`", parameter.text, function.name))
        });
        Ok(Entry { name: function.name.to_owned(), params: params.collect::<Result<_, _>>()? })
    }
}

impl Param {
    fn of(parameter: &Declaration<'_>) -> Option<Self> {
        Some(Param { size: parameter.size()?, align: parameter.alignment()?.min(MOST_ALIGNED) })
    }
}

/// The external functions, except those of the device's run time.
fn unresolved(module: &Module<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for function in module.functions().filter(|it| it.linkage == Linkage::Extern && it.body.is_none()) {
        let is_known = RUN_TIME.contains(&function.name) || names.iter().any(|known| known == function.name);
        if !is_known {
            names.push(function.name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//
// Generated by LLVM NVPTX Back-End
//

.version 6.3
.target sm_75, debug
.address_size 64

	// .globl	saxpy_0123456789abcdef
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.visible .entry saxpy_0123456789abcdef(
	.param .f32 saxpy_0123456789abcdef_param_0,
	.param .u64 .ptr .align 4 saxpy_0123456789abcdef_param_1, // x
	.param .u64 saxpy_0123456789abcdef_param_2,
	.param .u64 .ptr .global .align 1 saxpy_0123456789abcdef_param_3,
	.param .align 16 .b8 saxpy_0123456789abcdef_param_4[48],
	.param .u8 saxpy_0123456789abcdef_param_5,
	.param .u64 __ferrogrid_record
)
.reqntid 256, 1, 1
{
	.reg .pred 	%p<2>;
	ret;
}
.visible .entry nothing()
{
	ret;
}
	.file	1 \"/w/out/source/src/main.rs\"
	.file	2 \"/rustc/abc/library/core/src/num.rs\"
";

    fn param(size: usize, align: usize) -> Param {
        Param { size, align }
    }

    #[test]
    fn declarations_are_read() {
        let ptx = Ptx::parse(TEXT).unwrap();
        assert_eq!(ptx.version, (6, 3));
        assert_eq!(ptx.target, "sm_75");
        assert_eq!(ptx.unresolved, Vec::<String>::new());
        let saxpy = ptx.entry("saxpy_0123456789abcdef").unwrap();
        let expected = [param(4, 4), param(8, 8), param(8, 8), param(8, 8), param(48, 16), param(1, 1)];
        assert_eq!(saxpy.params, expected);
        assert!(ptx.entry("nothing").unwrap().params.is_empty());
    }

    #[test]
    fn expected_entry_points_must_exist() {
        let ptx = Ptx::parse(TEXT).unwrap();
        ptx.verify([("nothing", (0, 1)), ("saxpy_0123456789abcdef", (6, 6))]).unwrap();
        let missing = ptx.verify([("gemm", (3, 3))]).unwrap_err();
        assert!(missing.contains("`gemm`") && missing.contains("nothing"), "{missing}");
        let count = ptx.verify([("nothing", (2, 2))]).unwrap_err();
        assert!(count.contains("`nothing` has 0 parameters, expected 2"), "{count}");
        let count = ptx.verify([("saxpy_0123456789abcdef", (3, 5))]).unwrap_err();
        assert!(count.contains("has 6 parameters, expected 3 to 5"), "{count}");
    }

    #[test]
    fn calls_of_undefined_functions_are_found() {
        let text = format!("{TEXT}.extern .func sin\n(\n);\n.extern .func  (.param .b32 r) cosf\n(\n)\n;\n");
        let ptx = Ptx::parse(&text).unwrap();
        assert_eq!(ptx.unresolved, ["sin", "cosf"]);
        assert!(ptx.verify([]).unwrap_err().contains("sin, cosf"));
    }

    #[test]
    fn two_architectures_must_agree() {
        let one = Ptx::parse(TEXT).unwrap();
        one.agrees_with(&one).unwrap();
        let other =
            Ptx::parse(&TEXT.replace("_param_4[48]", "_param_4[64]").replace("sm_75", "sm_90")).unwrap();
        let error = one.agrees_with(&other).unwrap_err();
        assert!(error.contains("saxpy") && error.contains("sm_75") && error.contains("sm_90"), "{error}");
    }

    #[test]
    fn malformed_text_is_refused() {
        assert!(Ptx::parse("").unwrap_err().contains(".version"));
        assert!(Ptx::parse(".version x\n.target sm_75").unwrap_err().contains("malformed .version x"));
        assert!(Ptx::parse(".version 6.3").unwrap_err().contains(".target"));
        let bad = Ptx::parse(".version 6.3\n.target sm_75\n.entry k(.param .f32x y)\n{}");
        assert!(bad.unwrap_err().contains("malformed parameter"));
    }
}
