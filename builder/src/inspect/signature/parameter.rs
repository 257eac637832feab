//! How each parameter of a kernel is passed, with the sizes that its entry point must have for that.

use ferrogrid_syntax::{Argument as Generic, Division, Instance, Module, Parameter, ParameterKind};
use quote::ToTokens;
use syn::{Expr, ExprLit, GenericArgument, Item, Lit, PathArguments, Type};

use super::element::{self, Element, Number};
use super::source::Found;

/// An argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// How it is passed.
    pub passing: Passing,
}

/// How an argument is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passing {
    /// A number by value.
    Value(Number),
    /// The address of elements that are read, or changed by atomic operations, and their extents, x first.
    Input {
        /// The element.
        element: Element,
        /// 1 to 3.
        rank: usize,
    },
    /// The same for elements that are written.
    Output {
        /// The element.
        element: Element,
        /// 1 to 3.
        rank: usize,
        /// What belongs to each block, if anything does.
        of_block: Option<BlockOutput>,
    },
    /// The offset and the length of a slice in shared memory, whose length the caller chooses.
    SharedSlice {
        /// The size of an element in bytes.
        size: u64,
    },
}

/// The part of an output that belongs to each block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockOutput {
    /// A row.
    Row,
    /// A tile or chunk with these extents, x first.
    Tile(Vec<u64>),
}

/// The arguments of a kernel, from the numbers that its PTX states, and the sizes of its compiled parameters.
///
/// # Errors
/// Says which parameter a caller outside Rust cannot provide, and why.
pub(super) fn arguments(
    found: &Found,
    numbers: &[u64],
    sizes: &[u64],
    has_block: bool,
) -> Result<Vec<Argument>, String> {
    let of_constants = found.kernel.bounds.block_of_constants && has_block;
    let mut numbers = numbers.iter().copied().skip(if of_constants { 4 } else { 1 });
    let mut arguments = Vec::new();
    for parameter in &found.kernel.parameters {
        let stated: Vec<u64> = numbers.by_ref().take(stated(&parameter.kind)).collect();
        if let Some(passing) = passing(found, parameter, &stated)? {
            arguments.push(Argument { name: parameter.name.to_string(), passing });
        }
    }
    let expected: Vec<u64> =
        arguments.iter().flat_map(|it| it.passing.sizes(found.kernel.bounds.wide)).collect();
    if expected == sizes {
        return Ok(arguments);
    }
    Err(format!("its compiled parameters have {sizes:?} bytes, but its signature has {expected:?}"))
}

/// How many numbers the PTX states for a parameter.
pub(crate) fn stated(kind: &ParameterKind) -> usize {
    match kind {
        ParameterKind::Thread { .. } => 0,
        ParameterKind::Scalar | ParameterKind::Order { .. } => 1,
        ParameterKind::Tuple { members } => members.values().len(),
        ParameterKind::Texture { .. }
        | ParameterKind::Surface { .. }
        | ParameterKind::Shared { .. }
        | ParameterKind::SharedSlice { .. } => 2,
        ParameterKind::Input { .. } | ParameterKind::Output { .. } | ParameterKind::Pointer { .. } => 3,
    }
}

/// How a parameter is passed; `None` for one that is not an argument.
fn passing(found: &Found, parameter: &Parameter, stated: &[u64]) -> Result<Option<Passing>, String> {
    let refused = |why: &str| Err(format!("`{}: {}` {why}", parameter.name, text(&parameter.ty)));
    let element = || match stated {
        [size, align, layout] => element::element(*size, *align, *layout),
        _ => None,
    };
    const ELEMENTS: &str = "has elements that are not numbers or arrays of numbers";
    Ok(Some(match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } => return Ok(None),
        ParameterKind::SharedSlice { .. } => match stated {
            [size, _] => Passing::SharedSlice { size: *size },
            _ => return refused("has no layout in the PTX"),
        },
        ParameterKind::Scalar => match stated.first().and_then(|layout| element::number(*layout)) {
            Some(number) => Passing::Value(number),
            None => return refused("is not a number"),
        },
        kind if kind.is_mapped() => {
            return refused("needs a tensor map, which a Rust host makes");
        }
        ParameterKind::Output { division: Division::Claimed, .. } => {
            return refused("needs memory for its claims, which a Rust host provides");
        }
        ParameterKind::Input { rank, .. } => match element() {
            Some(element) => Passing::Input { element, rank: *rank },
            None => return refused(ELEMENTS),
        },
        ParameterKind::Output { rank, division, .. } => {
            match (element(), of_block(found, parameter, *division)) {
                (None, _) => return refused(ELEMENTS),
                (_, Err(())) => return refused("has a tile whose size is not a number in the module"),
                (Some(element), Ok(of_block)) => Passing::Output { element, rank: *rank, of_block },
            }
        }
        ParameterKind::Tuple { .. } => return refused("is a tuple"),
        ParameterKind::Texture { .. } | ParameterKind::Surface { .. } => {
            return refused("needs an array for textures, which a Rust host makes");
        }
        ParameterKind::Order { .. } => return refused("needs memory that the launch provides"),
        ParameterKind::Pointer { .. } => return refused("is a raw pointer"),
    }))
}

impl Passing {
    /// The sizes of the compiled parameters.
    fn sizes(&self, is_wide: bool) -> Vec<u64> {
        match self {
            Passing::Value(number) => vec![number.size],
            Passing::SharedSlice { .. } => vec![8, 8],
            Passing::Input { rank, .. } | Passing::Output { rank, .. } => {
                let extent = if is_wide { 8 } else { 4 };
                std::iter::once(8).chain((0..*rank).map(|_| extent)).collect()
            }
        }
    }
}

/// What belongs to each block.
fn of_block(found: &Found, parameter: &Parameter, division: Division) -> Result<Option<BlockOutput>, ()> {
    let axes = match division {
        Division::Elements | Division::Warps | Division::Claimed | Division::Mapped => return Ok(None),
        Division::Rows => return Ok(Some(BlockOutput::Row)),
        Division::Tiles => 2,
        Division::Chunks => 1,
    };
    let sizes = const_arguments(&parameter.ty).into_iter().take(axes);
    let sizes: Vec<u64> =
        sizes.map(|it| value(&found.module, &found.instance, &it).ok_or(())).collect::<Result<_, _>>()?;
    if sizes.len() == axes && sizes.iter().all(|size| *size > 0) {
        Ok(Some(BlockOutput::Tile(sizes)))
    } else {
        Err(())
    }
}

/// The generic arguments after the element type.
fn const_arguments(ty: &Type) -> Vec<Expr> {
    let Type::Path(path) = ty else { return Vec::new() };
    let arguments = path.path.segments.last().map(|it| &it.arguments);
    let Some(PathArguments::AngleBracketed(arguments)) = arguments else { return Vec::new() };
    let constant = |argument: &GenericArgument| match argument {
        GenericArgument::Const(value) => Some(value.clone()),
        // A name alone looks like a type.
        GenericArgument::Type(ty) => syn::parse2(ty.to_token_stream()).ok(),
        _ => None,
    };
    arguments
        .args
        .iter()
        .filter(|it| !matches!(it, GenericArgument::Lifetime(_)))
        .skip(1)
        .filter_map(constant)
        .collect()
}

/// The value of a literal, of a generic parameter, or of a constant of the module that is a literal.
fn value(module: &Module, instance: &Instance, expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => literal.base10_parse().ok(),
        Expr::Path(path) => {
            let name = path.path.get_ident()?;
            let generic = instance.arguments.iter().find_map(|argument| match argument {
                Generic::Const { parameter, value, .. } if parameter == name => Some(&**value),
                _ => None,
            });
            let items = module.item.content.as_ref().map_or(&[][..], |(_, items)| items);
            let constant = || {
                items.iter().find_map(|item| match item {
                    Item::Const(it) if it.ident == *name => Some(&*it.expr),
                    _ => None,
                })
            };
            value(module, instance, generic.or_else(constant)?)
        }
        Expr::Paren(inner) => value(module, instance, &inner.expr),
        Expr::Group(inner) => value(module, instance, &inner.expr),
        _ => None,
    }
}

/// A type as a reader writes it: tokens have spaces between them.
fn text(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    let spaced = [(" < ", "<"), (" >", ">"), (" ,", ","), ("& ", "&"), (" ;", ";"), (" :: ", "::")];
    spaced
        .into_iter()
        .fold(text.trim_start_matches(":: ").to_owned(), |text, (from, to)| text.replace(from, to))
}
