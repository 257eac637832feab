//! The exactness of floating-point code, chosen by a kernel or a build.

use syn::parse::ParseStream;
use syn::{Error, Ident, LitBool, Result, Token};

/// The exactness of floating-point code. `None` means not chosen: exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Subnormal `f32`s count as zero, as operands and as results (nvcc's `-ftz=true`).
    pub ftz: Option<bool>,
    /// Division of `f32` is approximate (nvcc's `-prec-div=false`).
    pub approx_div: Option<bool>,
    /// The square root of `f32` is approximate (nvcc's `-prec-sqrt=false`).
    pub approx_sqrt: Option<bool>,
    /// A multiplication and an addition may become one fused operation (nvcc's `-fmad=true`).
    pub contract: Option<bool>,
}

impl Arithmetic {
    /// All of it on or off (nvcc's `-use_fast_math`, without its replacement of functions).
    pub fn fast_math(on: bool) -> Self {
        Arithmetic { ftz: Some(on), approx_div: Some(on), approx_sqrt: Some(on), contract: Some(on) }
    }

    /// These options, with those of `general` where one is not set.
    pub fn or(self, general: Arithmetic) -> Self {
        Arithmetic {
            ftz: self.ftz.or(general.ftz),
            approx_div: self.approx_div.or(general.approx_div),
            approx_sqrt: self.approx_sqrt.or(general.approx_sqrt),
            contract: self.contract.or(general.contract),
        }
    }

    /// The field with this name.
    fn field(&mut self, name: &str) -> Option<&mut Option<bool>> {
        match name {
            "ftz" => Some(&mut self.ftz),
            "approx_div" => Some(&mut self.approx_div),
            "approx_sqrt" => Some(&mut self.approx_sqrt),
            "contract" => Some(&mut self.contract),
            _ => None,
        }
    }
}

/// The options of a kernel while they are read. Options by name override `fast_math`.
#[derive(Default)]
pub(crate) struct ArithmeticOptions {
    named: Arithmetic,
    fast_math: Option<bool>,
}

impl ArithmeticOptions {
    /// Reads the option `name`, up to the comma, if it is one of these: `ftz`, `ftz = false`.
    pub(crate) fn take(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<bool> {
        let option = name.to_string();
        let field = if option == "fast_math" { Some(&mut self.fast_math) } else { self.named.field(&option) };
        let Some(field) = field else { return Ok(false) };
        let mut on = true;
        if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            on = input.parse::<LitBool>()?.value;
        }
        if field.replace(on).is_some() {
            return Err(Error::new(name.span(), format!("`{option}` is given twice")));
        }
        Ok(true)
    }

    pub(crate) fn finish(self) -> Arithmetic {
        self.named.or(self.fast_math.map_or(Arithmetic::default(), Arithmetic::fast_math))
    }
}
