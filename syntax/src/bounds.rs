//! What a kernel promises of its launches (`block`, `max_threads`, `min_blocks`, `max_registers`, `cooperative`, `wide`), so that the compiler
//! can give each thread the registers that fit. It must not know how the promise is written in PTX or
//! checked at a launch.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprArray, ExprLit, Ident, Lit, Result, Token};

/// What ptxas takes for `.maxnreg`; it raises anything less and ignores anything more.
const REGISTERS: (u32, u32) = (24, 255);

/// The most threads that a block can have on any device.
const MAX_THREADS: u32 = 1024;

/// What a kernel promises of its launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// `block = [x, y]`: the exact shape of a block, x first, 1 in dimensions above the rank.
    pub block: Option<[u32; 3]>,
    /// `max_threads = n`: no block has more threads.
    pub max_threads: Option<u32>,
    /// `min_blocks = n`: so many blocks shall fit on a multiprocessor at once.
    pub min_blocks: Option<u32>,
    /// `max_registers = n`: no thread has more registers.
    pub max_registers: Option<u32>,
    /// `cooperative`: all blocks are resident at the same time, so that they can wait for each other.
    pub cooperative: bool,
    /// `wide`: slices may have 2^32 elements or more, which no others have.
    pub wide: bool,
}

impl LaunchBounds {
    /// Reads the option `name`, up to the comma, if it is one of these.
    pub(crate) fn take(&mut self, name: &Ident, rank: usize, input: ParseStream<'_>) -> Result<bool> {
        let option = name.to_string();
        let flag = match option.as_str() {
            "cooperative" => Some(&mut self.cooperative),
            "wide" => Some(&mut self.wide),
            _ => None,
        };
        if let Some(flag) = flag {
            if std::mem::replace(flag, true) {
                return Err(Error::new(name.span(), format!("`{option}` is said twice")));
            }
            return Ok(true);
        }
        if !["block", "max_threads", "min_blocks", "max_registers"].contains(&option.as_str()) {
            return Ok(false);
        }
        input.parse::<Token![=]>()?;
        let value: Expr = input.parse()?;
        let again = match option.as_str() {
            "block" => self.block.replace(block(&value, rank)?).is_some(),
            "max_threads" => self.max_threads.replace(number(&value, (1, MAX_THREADS))?).is_some(),
            "max_registers" => self.max_registers.replace(number(&value, REGISTERS)?).is_some(),
            _ => self.min_blocks.replace(number(&value, (1, 64))?).is_some(),
        };
        if again {
            return Err(Error::new(name.span(), format!("`{option}` is said twice")));
        }
        Ok(true)
    }

    /// Checks that the options agree; `span` is where they stand.
    pub(crate) fn check(&self, span: Span) -> Result<()> {
        if self.block.is_some() && self.max_threads.is_some() {
            return Err(Error::new(
                span,
                "`block` says the number of threads exactly: leave out `max_threads`",
            ));
        }
        if self.min_blocks.is_some() && self.max_registers.is_some() {
            let message = "`min_blocks` and `max_registers` both bound the registers: leave one out";
            return Err(Error::new(span, message));
        }
        if self.min_blocks.is_some() && self.block.is_none() && self.max_threads.is_none() {
            let message = "`min_blocks` needs the size of a block: add `max_threads = n` or `block = [...]`";
            return Err(Error::new(span, message));
        }
        Ok(())
    }
}

fn block(value: &Expr, rank: usize) -> Result<[u32; 3]> {
    let sizes: Vec<&Expr> = match value {
        Expr::Array(ExprArray { elems, .. }) => elems.iter().collect(),
        single => vec![single],
    };
    if sizes.len() != rank {
        let message =
            format!("the kernel's grid has rank {rank}, but the block has {} dimensions", sizes.len());
        return Err(Error::new(value.span(), message));
    }
    let mut block = [1; 3];
    for (axis, size) in sizes.into_iter().enumerate() {
        let limit = if axis == 2 { 64 } else { MAX_THREADS };
        block[axis] = number(size, (1, limit))?;
    }
    let threads = block.iter().product::<u32>();
    if threads > MAX_THREADS {
        return Err(Error::new(
            value.span(),
            format!("a block of {threads} threads; the limit is {MAX_THREADS}"),
        ));
    }
    Ok(block)
}

/// A literal from `least` to `most`.
fn number(value: &Expr, (least, most): (u32, u32)) -> Result<u32> {
    let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = value else {
        return Err(Error::new(value.span(), "write a number: it is needed before constants are evaluated"));
    };
    match literal.base10_parse()? {
        number if (least..=most).contains(&number) => Ok(number),
        other => Err(Error::new(literal.span(), format!("{other} is not between {least} and {most}"))),
    }
}
