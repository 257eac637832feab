//! The options of `#[kernel(...)]`: what a kernel promises of its launches, so that the compiler can
//! give each thread the registers that fit. It must not know how the promise is written in PTX or
//! checked at a launch.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprArray, ExprLit, Lit, Meta, MetaNameValue, Result, Token};

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
}

impl LaunchBounds {
    /// Reads the options of a kernel of rank `rank` from its attribute.
    ///
    /// # Errors
    /// For options that do not exist, appear twice, contradict each other or have impossible values,
    /// with the span of the part at fault.
    pub fn parse(attribute: &Attribute, rank: usize) -> Result<Self> {
        let list = match &attribute.meta {
            Meta::Path(_) => return Ok(LaunchBounds::default()),
            Meta::List(list) => list,
            Meta::NameValue(pair) => return Err(unknown(&pair.path)),
        };
        let options = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
        let mut bounds = LaunchBounds::default();
        for option in &options {
            let Meta::NameValue(pair) = option else { return Err(unknown(option)) };
            bounds.take(pair, rank)?;
        }
        if bounds.block.is_some() && bounds.max_threads.is_some() {
            return Err(Error::new(
                list.span(),
                "`block` says the number of threads exactly: leave out `max_threads`",
            ));
        }
        if bounds.min_blocks.is_some() && bounds.block.is_none() && bounds.max_threads.is_none() {
            return Err(Error::new(
                list.span(),
                "`min_blocks` needs the size of a block: add `max_threads = n` or `block = [...]`",
            ));
        }
        Ok(bounds)
    }

    fn take(&mut self, pair: &MetaNameValue, rank: usize) -> Result<()> {
        let name = pair.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let again = match name.as_str() {
            "block" => self.block.replace(block(&pair.value, rank)?).is_some(),
            "max_threads" => self.max_threads.replace(number(&pair.value, MAX_THREADS)?).is_some(),
            "min_blocks" => self.min_blocks.replace(number(&pair.value, 64)?).is_some(),
            _ => return Err(unknown(&pair.path)),
        };
        if again { Err(Error::new(pair.span(), format!("`{name}` is said twice"))) } else { Ok(()) }
    }
}

fn unknown(what: &impl Spanned) -> Error {
    Error::new(
        what.span(),
        "unknown option; `#[kernel]` knows `block = [x, ...]`, `max_threads = n` and `min_blocks = n`",
    )
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
        block[axis] = number(size, limit)?;
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

/// A literal from 1 to `limit`.
fn number(value: &Expr, limit: u32) -> Result<u32> {
    let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = value else {
        return Err(Error::new(value.span(), "write a number: it is needed before constants are evaluated"));
    };
    match literal.base10_parse()? {
        number if (1..=limit).contains(&number) => Ok(number),
        other => Err(Error::new(literal.span(), format!("{other} is not between 1 and {limit}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn a_block_is_padded_to_three_dimensions() {
        let bounds =
            LaunchBounds::parse(&parse_quote!(#[kernel(block = [16, 8], min_blocks = 2)]), 2).unwrap();
        let expected = LaunchBounds { block: Some([16, 8, 1]), max_threads: None, min_blocks: Some(2) };
        assert_eq!(bounds, expected);
        let line = LaunchBounds::parse(&parse_quote!(#[kernel(block = 128)]), 1).unwrap();
        assert_eq!(line.block, Some([128, 1, 1]));
    }

    #[test]
    fn impossible_bounds_are_refused() {
        let refused: [(Attribute, &str); 8] = [
            (parse_quote!(#[kernel(fast)]), "unknown option"),
            (parse_quote!(#[kernel(block = [16])]), "rank 2"),
            (parse_quote!(#[kernel(block = [64, 32])]), "2048 threads"),
            (parse_quote!(#[kernel(block = [0, 1])]), "0 is not between"),
            (parse_quote!(#[kernel(max_threads = 1025)]), "1025 is not between"),
            (parse_quote!(#[kernel(max_threads = N)]), "write a number"),
            (parse_quote!(#[kernel(min_blocks = 2)]), "needs the size of a block"),
            (parse_quote!(#[kernel(max_threads = 64, max_threads = 64)]), "said twice"),
        ];
        for (attribute, reason) in refused {
            let error = LaunchBounds::parse(&attribute, 2).unwrap_err().to_string();
            assert!(error.contains(reason), "{error} / {reason}");
        }
    }
}
