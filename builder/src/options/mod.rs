//! The options of a build, from Cargo.toml and from the build script; `None` where nothing is set.
//!
//! | file | holds |
//! |---|---|
//! | `settings.rs` | `[package.metadata.ferrogrid]` as a whole: its keys and architectures |
//! | `variables.rs` | the environment variables that Ferrogrid reads |
//! | `arch_choice.rs` | the architectures of a module |
//! | `arch.rs`, `math.rs`, `panic_strategy.rs` | the types of single options |

mod arch;
mod arch_choice;
mod math;
mod panic_strategy;
pub(crate) mod settings;
pub mod variables;

use std::collections::BTreeMap;

use ferrogrid_syntax::Arithmetic;
use serde_json::{Value, json};

use crate::error::Error;

pub use arch::Arch;
pub(crate) use arch_choice::{ArchChoice, Origin};
pub use math::Math;
pub use panic_strategy::PanicStrategy;

/// The options of Cargo.toml, of a build script, or of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) panic: Option<PanicStrategy>,
    pub(crate) overflow_checks: Option<bool>,
    pub(crate) line_info: Option<bool>,
    /// Variables and types for debuggers.
    pub(crate) debug_info: Option<bool>,
    pub(crate) arithmetic: Arithmetic,
    pub(crate) max_registers: Option<u32>,
    /// Machine code beside the PTX.
    pub(crate) cubin: Option<bool>,
    pub(crate) math: Option<Math>,
    /// `name` or `name="value"`.
    pub(crate) cfgs: Vec<String>,
    /// Whether `debug_assertions` holds; it must agree with the host half.
    pub(crate) debug_assertions: Option<bool>,
    /// Environment variables for `env!`.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Options {
    /// The keys that [`from_metadata`](Options::from_metadata) reads.
    pub(crate) const KEYS: [&str; 15] = [
        "panic",
        "overflow-checks",
        "line-info",
        "debug-info",
        "fast-math",
        "ftz",
        "approx-div",
        "approx-sqrt",
        "contract",
        "max-registers",
        "cubin",
        "math",
        "cfg",
        "debug-assertions",
        "env",
    ];

    /// Reads `package.metadata.ferrogrid`.
    pub(crate) fn from_metadata(table: &Value) -> Result<Self, Error> {
        let fast_math = flag(table, "fast-math")?.map_or(Arithmetic::default(), Arithmetic::fast_math);
        let named = Arithmetic {
            ftz: flag(table, "ftz")?,
            approx_div: flag(table, "approx-div")?,
            approx_sqrt: flag(table, "approx-sqrt")?,
            contract: flag(table, "contract")?,
        };
        let panic = &table["panic"];
        let math = &table["math"];
        let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(Options {
            panic: (!panic.is_null()).then(|| PanicStrategy::parse(&written(panic))).transpose()?,
            overflow_checks: flag(table, "overflow-checks")?,
            line_info: flag(table, "line-info")?,
            debug_info: flag(table, "debug-info")?,
            arithmetic: named.or(fast_math),
            max_registers: registers(&table["max-registers"])?,
            cubin: flag(table, "cubin")?,
            math: (!math.is_null()).then(|| Math::parse(&written(math))).transpose()?,
            cfgs: cfgs(&table["cfg"])?,
            debug_assertions: flag(table, "debug-assertions")?,
            variables: variables(&table["env"])?,
        })
    }

    /// The table that [`from_metadata`](Options::from_metadata) reads back.
    pub(crate) fn to_metadata(&self) -> Value {
        json!({
            "panic": self.panic.map(PanicStrategy::name),
            "overflow-checks": self.overflow_checks,
            "line-info": self.line_info,
            "debug-info": self.debug_info,
            "ftz": self.arithmetic.ftz,
            "approx-div": self.arithmetic.approx_div,
            "approx-sqrt": self.arithmetic.approx_sqrt,
            "contract": self.arithmetic.contract,
            "max-registers": self.max_registers,
            "cubin": self.cubin,
            "math": self.math.map(|math| math.to_string()),
            "cfg": self.cfgs,
            "debug-assertions": self.debug_assertions,
            "env": self.variables,
        })
    }

    /// These options, with those of `general` where one is not set; `cfg`s and variables add up.
    pub(crate) fn or(self, general: Options) -> Self {
        let mut cfgs = self.cfgs;
        cfgs.extend(general.cfgs.into_iter().filter(|cfg| !cfgs.contains(cfg)).collect::<Vec<_>>());
        let mut variables = general.variables;
        variables.extend(self.variables);
        Options {
            panic: self.panic.or(general.panic),
            overflow_checks: self.overflow_checks.or(general.overflow_checks),
            line_info: self.line_info.or(general.line_info),
            debug_info: self.debug_info.or(general.debug_info),
            arithmetic: self.arithmetic.or(general.arithmetic),
            max_registers: self.max_registers.or(general.max_registers),
            cubin: self.cubin.or(general.cubin),
            math: self.math.or(general.math),
            cfgs,
            debug_assertions: self.debug_assertions.or(general.debug_assertions),
            variables,
        }
    }

    /// Checks the ranges and forms of values.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(count) = self.max_registers
            && !(24..=255).contains(&count)
        {
            return Err(wrong("max-registers", &Value::from(count), REGISTERS));
        }
        for cfg in &self.cfgs {
            check_cfg(cfg)?;
        }
        for (name, value) in &self.variables {
            if name.is_empty() || name.contains(['=', '\n', '\0']) || value.contains(['\n', '\0']) {
                return Err(wrong("env", &Value::from(format!("{name}={value}")), VARIABLES));
            }
        }
        Ok(())
    }
}

/// ptxas raises smaller numbers and ignores larger ones.
const REGISTERS: &str = "a number from 24 to 255";

fn wrong(key: &'static str, value: &Value, expected: &'static str) -> Error {
    Error::Setting { key, value: value.to_string(), expected }
}

fn flag(table: &Value, key: &'static str) -> Result<Option<bool>, Error> {
    match &table[key] {
        Value::Null => Ok(None),
        Value::Bool(on) => Ok(Some(*on)),
        other => Err(wrong(key, other, "true or false")),
    }
}

fn registers(value: &Value) -> Result<Option<u32>, Error> {
    if value.is_null() {
        return Ok(None);
    }
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
    count.map(Some).ok_or_else(|| wrong("max-registers", value, REGISTERS))
}

fn cfgs(value: &Value) -> Result<Vec<String>, Error> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    list.iter().map(|it| it.as_str().map(str::to_owned).ok_or_else(|| wrong("cfg", it, CFG))).collect()
}

fn variables(value: &Value) -> Result<BTreeMap<String, String>, Error> {
    let table = match value {
        Value::Null => return Ok(BTreeMap::new()),
        Value::Object(table) => table,
        other => return Err(wrong("env", other, VARIABLES)),
    };
    let text = |it: &Value| it.as_str().map(str::to_owned).ok_or_else(|| wrong("env", it, VARIABLES));
    table.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
}

const VARIABLES: &str = "a table of names and texts of one line, such as { NAME = \"value\" }";

const CFG: &str = "a name or `name=\"value\"`, as after rustc's `--cfg`";

/// Checks that cargo accepts a `cfg` and that `#[cfg(...)]` can ask for it.
fn check_cfg(cfg: &str) -> Result<(), Error> {
    let is_name = |name: &str| syn::parse_str::<syn::Ident>(name).is_ok();
    let is_right = match cfg.split_once('=') {
        None => is_name(cfg),
        Some((name, value)) => is_name(name) && syn::parse_str::<syn::LitStr>(value).is_ok(),
    };
    if is_right && !cfg.contains('\n') { Ok(()) } else { Err(wrong("cfg", &Value::from(cfg), CFG)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_option_wins_over_fast_math_and_the_build_script_over_cargo_toml() {
        let cargo = Options::from_metadata(&json!({ "fast-math": true, "ftz": false, "cfg": "a" })).unwrap();
        assert_eq!(cargo.arithmetic, Arithmetic { ftz: Some(false), ..Arithmetic::fast_math(true) });
        let script = Options {
            arithmetic: Arithmetic { contract: Some(false), ..Arithmetic::default() },
            cfgs: vec!["b".to_owned(), "a".to_owned()],
            ..Options::default()
        };
        let both = script.or(cargo);
        assert_eq!((both.arithmetic.contract, both.arithmetic.approx_sqrt), (Some(false), Some(true)));
        assert_eq!(both.cfgs, ["b", "a"]);
    }

    #[test]
    fn written_text_is_read_back() {
        let options = Options {
            panic: Some(PanicStrategy::Trap),
            overflow_checks: Some(true),
            line_info: Some(false),
            debug_info: Some(true),
            arithmetic: Arithmetic { ftz: Some(false), ..Arithmetic::fast_math(true) },
            max_registers: Some(40),
            cubin: Some(true),
            math: Some(Math::Libdevice),
            debug_assertions: Some(true),
            cfgs: vec!["a".to_owned(), "b=\"c\"".to_owned()],
            variables: BTreeMap::from([("N".to_owned(), "1".to_owned())]),
        };
        for options in [options, Options::default()] {
            assert_eq!(Options::from_metadata(&options.to_metadata()).unwrap(), options);
        }
    }

    #[test]
    fn values_that_mean_nothing_are_refused_by_name() {
        for (table, text) in [
            (json!({ "ftz": 1 }), "ferrogrid.ftz` in Cargo.toml is 1; expected true or false"),
            (json!({ "max-registers": "many" }), "max-registers` in Cargo.toml is \"many\""),
            (json!({ "max-registers": 12 }), "is 12; expected a number from 24 to 255"),
            (json!({ "cfg": ["ok", "not ok"] }), "ferrogrid.cfg` in Cargo.toml is \"not ok\""),
            (json!({ "cfg": ["mode=fast"] }), "ferrogrid.cfg` in Cargo.toml is \"mode=fast\""),
            (json!({ "cfg": [7] }), "ferrogrid.cfg` in Cargo.toml is 7"),
            (json!({ "env": ["N"] }), "ferrogrid.env` in Cargo.toml is [\"N\"]"),
            (json!({ "env": { "N": "a\nb" } }), "one line"),
            (json!({ "math": "cuda" }), "ferrogrid.math` in Cargo.toml is \"cuda\""),
        ] {
            let options =
                Options::from_metadata(&table).and_then(|options| options.check().map(|()| options));
            let error = options.unwrap_err().to_string();
            assert!(error.contains(text), "{error} / {text}");
        }
        Options::from_metadata(&json!({ "cfg": ["mode=\"fast\"", "plain"] })).unwrap().check().unwrap();
    }
}
