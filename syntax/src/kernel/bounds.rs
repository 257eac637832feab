//! The launch bounds of a kernel (`block`, `max_threads`, `min_blocks`, `max_registers`, `cluster`,
//! `cooperative`, `wide`), which guide the compiler's register allocation.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprArray, ExprLit, Ident, Lit, Result, Token, parse_quote};

/// The range of `.maxnreg`: ptxas raises smaller numbers and ignores larger ones.
const REGISTERS: (u32, u32) = (24, 255);

/// The maximum number of threads of a block on any device.
const MAX_THREADS: u32 = 1024;

/// The maximum number of blocks of a cluster on any device; all devices with clusters support 8.
const MAX_CLUSTER: u32 = 16;

/// The launch bounds of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// `block = [x, y]`: the exact shape of a block, x first, 1 in dimensions above the rank.
    pub block: Option<[u32; 3]>,
    /// `block = TILE`: the shape is made of constants, [`Kernel::block`](crate::Kernel::block), which only the compiler
    /// evaluates; `block` is `None` then.
    pub block_of_constants: bool,
    /// `max_threads = n`: no block has more threads.
    pub max_threads: Option<u32>,
    /// `min_blocks = n`: at least `n` blocks fit on a multiprocessor at once.
    pub min_blocks: Option<u32>,
    /// `max_registers = n`: no thread has more registers.
    pub max_registers: Option<u32>,
    /// `cluster = [x, y]`: the blocks of a cluster along each axis, x first, 1 above the rank.
    pub cluster: Option<[u32; 3]>,
    /// `cluster`, without a shape: each launch chooses it.
    pub cluster_at_launch: bool,
    /// `cooperative`: all blocks are resident at the same time, so that they can wait for each other.
    pub cooperative: bool,
    /// `dependent_launch`: launches may begin before previous work has ended; they first wait for that end.
    pub dependent_launch: bool,
    /// Whether it has a `BlockOrder`: its blocks are numbered in the order in which they start.
    pub in_order: bool,
    /// `wide`: slices may have 2^32 elements or more.
    pub wide: bool,
}

impl LaunchBounds {
    /// Whether blocks may form clusters.
    pub fn has_clusters(&self) -> bool {
        self.cluster.is_some() || self.cluster_at_launch
    }

    /// Whether it fixes the shape of a block.
    pub fn has_block(&self) -> bool {
        self.block.is_some() || self.block_of_constants
    }

    /// Reads the option `name`, up to the comma, if it is one of these. `constants` gets the shape of a block that is made
    /// of constants.
    pub(crate) fn take(
        &mut self,
        name: &Ident,
        rank: usize,
        input: ParseStream<'_>,
        constants: &mut Option<[Expr; 3]>,
    ) -> Result<bool> {
        let option = name.to_string();
        let flag = match option.as_str() {
            "cooperative" => Some(&mut self.cooperative),
            "dependent_launch" => Some(&mut self.dependent_launch),
            "wide" => Some(&mut self.wide),
            "cluster" if !input.peek(Token![=]) => Some(&mut self.cluster_at_launch),
            _ => None,
        };
        if let Some(flag) = flag {
            if std::mem::replace(flag, true) {
                return Err(Error::new(name.span(), format!("`{option}` is given twice")));
            }
            return Ok(true);
        }
        if !["block", "max_threads", "min_blocks", "max_registers", "cluster"].contains(&option.as_str()) {
            return Ok(false);
        }
        input.parse::<Token![=]>()?;
        let value: Expr = input.parse()?;
        let again = match option.as_str() {
            "block" => {
                let again = self.has_block();
                if sizes(&value).into_iter().all(is_literal) {
                    self.block = Some(block(&value, rank)?);
                } else {
                    self.block_of_constants = true;
                    *constants = Some(of_rank(&value, rank, "block")?);
                }
                again
            }
            "max_threads" => self.max_threads.replace(number(&value, (1, MAX_THREADS))?).is_some(),
            "cluster" => self.cluster.replace(cluster(&value, rank)?).is_some(),
            "max_registers" => self.max_registers.replace(number(&value, REGISTERS)?).is_some(),
            _ => self.min_blocks.replace(number(&value, (1, 64))?).is_some(),
        };
        if again {
            return Err(Error::new(name.span(), format!("`{option}` is given twice")));
        }
        Ok(true)
    }

    /// Checks that the options agree; `span` is their place.
    pub(crate) fn check(&self, span: Span) -> Result<()> {
        if self.has_block() && self.max_threads.is_some() {
            return Err(Error::new(span, "`block` fixes the number of threads: leave out `max_threads`"));
        }
        if self.cluster_at_launch && self.cluster.is_some() {
            return Err(Error::new(span, "`cluster` is given twice"));
        }
        if self.cooperative && self.has_clusters() {
            let message = "a kernel waits for its cluster or for the whole grid, not for both: leave out `cluster` or `cooperative`";
            return Err(Error::new(span, message));
        }
        if self.cooperative && self.dependent_launch {
            let message = "the blocks of a cooperative launch start together: leave out `dependent_launch` or `cooperative`";
            return Err(Error::new(span, message));
        }
        if self.min_blocks.is_some() && self.max_registers.is_some() {
            let message = "`min_blocks` and `max_registers` both bound the registers: leave one out";
            return Err(Error::new(span, message));
        }
        if self.min_blocks.is_some() && !self.has_block() && self.max_threads.is_none() {
            let message =
                "`min_blocks` requires the size of a block: add `max_threads = n` or `block = [...]`";
            return Err(Error::new(span, message));
        }
        Ok(())
    }
}

fn block(value: &Expr, rank: usize) -> Result<[u32; 3]> {
    let block = shape(value, rank, "block", [MAX_THREADS, MAX_THREADS, 64])?;
    let threads = block.iter().product::<u32>();
    if threads > MAX_THREADS {
        return Err(Error::new(
            value.span(),
            format!("a block of {threads} threads; the limit is {MAX_THREADS}"),
        ));
    }
    Ok(block)
}

fn cluster(value: &Expr, rank: usize) -> Result<[u32; 3]> {
    let cluster = shape(value, rank, "cluster", [MAX_CLUSTER; 3])?;
    let blocks = cluster.iter().product::<u32>();
    if blocks > MAX_CLUSTER {
        return Err(Error::new(
            value.span(),
            format!("a cluster of {blocks} blocks; the limit is {MAX_CLUSTER}"),
        ));
    }
    Ok(cluster)
}

/// A number for each dimension of the grid, none above its limit; 1 in those above the rank.
fn shape(value: &Expr, rank: usize, what: &str, limits: [u32; 3]) -> Result<[u32; 3]> {
    let sizes = of_rank(value, rank, what)?;
    let mut shape = [1; 3];
    for axis in 0..rank {
        shape[axis] = number(&sizes[axis], (1, limits[axis]))?;
    }
    Ok(shape)
}

/// An expression for each dimension of the grid; 1 in those above the rank.
fn of_rank(value: &Expr, rank: usize, what: &str) -> Result<[Expr; 3]> {
    let sizes = sizes(value);
    if sizes.len() != rank {
        let message =
            format!("the kernel's grid has rank {rank}, but the {what} has {} dimensions", sizes.len());
        return Err(Error::new(value.span(), message));
    }
    Ok(std::array::from_fn(|axis| sizes.get(axis).map_or_else(|| parse_quote!(1), |&size| size.clone())))
}

fn sizes(value: &Expr) -> Vec<&Expr> {
    match value {
        Expr::Array(ExprArray { elems, .. }) => elems.iter().collect(),
        single => vec![single],
    }
}

fn is_literal(size: &Expr) -> bool {
    matches!(size, Expr::Lit(_))
}

/// A literal from `least` to `most`.
fn number(value: &Expr, (least, most): (u32, u32)) -> Result<u32> {
    let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = value else {
        return Err(Error::new(value.span(), "expected a number: it is used before constants are evaluated"));
    };
    match literal.base10_parse()? {
        number if (least..=most).contains(&number) => Ok(number),
        other => Err(Error::new(literal.span(), format!("{other} is not between {least} and {most}"))),
    }
}
