//! One parameter of a kernel: its kind, read from its type as written, and how many parameters the compiled
//! entry point has for it.

use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprLit, FnArg, GenericArgument, Ident, Lit, Pat, PathArguments, PathSegment,
    PointerMutability, Result, Type,
};

use super::members::Members;

/// A parameter as written in the kernel's signature.
pub struct Parameter {
    /// Its name; a pattern that is not a plain name is an error.
    pub name: Ident,
    /// Its type as written.
    pub ty: Type,
    /// Whether it is declared `mut`.
    pub mutable: bool,
    /// Its kind, which decides how it is passed.
    pub kind: ParameterKind,
}

/// How the elements of an output belong to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// `DisjointSlice<T, R>`: one to each thread.
    Elements,
    /// `DisjointTiles<T, W, H>`: a tile to each block.
    Tiles,
    /// `DisjointRows<T>`: a row to each block.
    Rows,
    /// `DisjointChunks<T, N>`: a chunk to each block.
    Chunks,
    /// `DisjointWarps<T, RUN, N>`: a run to each warp or tile of threads.
    Warps,
    /// `ScatterSlice<T>`: one to the thread that claims it.
    Claimed,
    /// `TensorMapMut<T, W, H>`, in ranks but 2 `BoxMapMut<[[[T; W]; H]; D]>`: to no thread; blocks store tiles.
    Mapped,
}

impl Division {
    /// The name of the type of an output of that rank.
    pub fn type_name(self, rank: usize) -> &'static str {
        match self {
            Division::Elements => "DisjointSlice",
            Division::Tiles => "DisjointTiles",
            Division::Rows => "DisjointRows",
            Division::Chunks => "DisjointChunks",
            Division::Warps => "DisjointWarps",
            Division::Claimed => "ScatterSlice",
            Division::Mapped if rank == 2 => "TensorMapMut",
            Division::Mapped => "BoxMapMut",
        }
    }
}

/// The kind of a parameter: how it is passed to the device.
pub enum ParameterKind {
    /// `Thread<R>`: not passed; the thread's own place in a grid of `rank`.
    Thread {
        /// 1, 2 or 3.
        rank: usize,
    },
    /// A value that is not a tuple.
    Scalar,
    /// `(A, B)`: by value, each member separately, since the layout of tuples is not defined.
    Tuple {
        /// Its members.
        members: Members,
    },
    /// `&[T]`, in rank 2 `Plane<T>` or `TensorMap<T, W, H>`, in rank 3 `Volume<T>`, in ranks but 2 `BoxMap<[[[T; W]; H]; D]>`:
    /// read-only elements.
    Input {
        /// The element type `T`.
        element: Type,
        /// 1 to 3; of a `BoxMap` 1 to 5.
        rank: usize,
        /// Whether it is a `TensorMap` or a `BoxMap`.
        is_mapped: bool,
    },
    /// `DisjointSlice<T, R>`: elements that each belong to one thread.
    Output {
        /// The element type `T`.
        element: Type,
        /// 1, 2 or 3; of a `BoxMapMut` 1 to 5.
        rank: usize,
        /// How the elements belong to threads: the type of the parameter.
        division: Division,
    },
    /// `Texture<V, R>`: an array read through the hardware for textures.
    Texture {
        /// What is read, `V`.
        value: Type,
        /// 1, 2 or 3.
        rank: usize,
    },
    /// `Surface<T, R>`: such an array whose elements each belong to one thread.
    Surface {
        /// The element type `T`.
        element: Type,
        /// 1, 2 or 3.
        rank: usize,
    },
    /// `BlockOrder<T>`: not an argument; memory of the launch through which blocks wait for earlier ones.
    Order {
        /// The type `T` of the values that blocks publish.
        element: Type,
    },
    /// `Shared<[T; N]>`: an array in the shared memory of each block.
    Shared {
        /// The array type, `[T; N]` or the like.
        array: Type,
    },
    /// `SharedSlice<T>`: the same with a length that the launch chooses.
    SharedSlice {
        /// The element type `T`.
        element: Type,
    },
    /// `*const T` or `*mut T`, in `unsafe` kernels.
    Pointer {
        /// The pointee type `T`.
        element: Type,
        /// Whether it is `*mut T`.
        mutable: bool,
    },
}

impl ParameterKind {
    /// Whether it is a region of shared memory.
    pub fn is_shared(&self) -> bool {
        matches!(self, ParameterKind::Shared { .. } | ParameterKind::SharedSlice { .. })
    }

    /// Whether the launch makes a tensor map for it.
    pub fn is_mapped(&self) -> bool {
        matches!(
            self,
            ParameterKind::Input { is_mapped: true, .. }
                | ParameterKind::Output { division: Division::Mapped, .. }
        )
    }

    /// Whether the rows of its elements may be apart: those of a `TensorMap` or a `TensorMapMut`.
    pub fn has_pitch(&self) -> bool {
        self.is_mapped()
            && matches!(self, ParameterKind::Input { rank: 2, .. } | ParameterKind::Output { rank: 2, .. })
    }

    /// The parameters of the entry point for this one, if values have bytes.
    pub fn flattened(&self) -> usize {
        match self {
            ParameterKind::Thread { .. } | ParameterKind::Shared { .. } => 0,
            ParameterKind::Scalar | ParameterKind::Pointer { .. } | ParameterKind::Order { .. } => 1,
            ParameterKind::Tuple { members } => members.values().len(),
            ParameterKind::SharedSlice { .. } => 2,
            // One more for the claims.
            ParameterKind::Output { rank, division: Division::Claimed, .. } => 2 + rank,
            // One more for the tensor map, and one for a pitch.
            ParameterKind::Input { rank, .. } | ParameterKind::Output { rank, .. } if self.is_mapped() => {
                2 + rank + usize::from(self.has_pitch())
            }
            // One more for how the CPU device reads it.
            ParameterKind::Texture { rank, .. } => 2 + rank,
            ParameterKind::Input { rank, .. }
            | ParameterKind::Output { rank, .. }
            | ParameterKind::Surface { rank, .. } => 1 + rank,
        }
    }
}

impl Parameter {
    /// The types that it passes by value.
    pub fn values(&self) -> Vec<&Type> {
        match &self.kind {
            ParameterKind::Scalar => vec![&self.ty],
            ParameterKind::Tuple { members } => members.values(),
            _ => Vec::new(),
        }
    }

    /// Reads one argument of a kernel; `unsafe_kernel` says whether raw pointers are allowed.
    ///
    /// # Errors
    /// With the span of the part at fault: `self`, patterns, references that are not `&[T]`, raw
    /// pointers in a safe kernel, and ranks that do not exist.
    pub fn parse(argument: &FnArg, unsafe_kernel: bool) -> Result<Self> {
        let FnArg::Typed(typed) = argument else {
            return Err(Error::new(argument.span(), "a kernel is a free function: it cannot take `self`"));
        };
        let Pat::Ident(pattern) = &*typed.pat else {
            return Err(Error::new(
                typed.pat.span(),
                "a kernel parameter needs a plain name; destructure it in the body",
            ));
        };
        if let Some((_, sub)) = &pattern.subpat {
            return Err(Error::new(
                sub.span(),
                "a kernel parameter needs a plain name; destructure it in the body",
            ));
        }
        if let Some(by_ref) = &pattern.by_ref {
            return Err(Error::new(by_ref.span(), "a kernel parameter needs a plain name, without `ref`"));
        }
        Ok(Parameter {
            name: pattern.ident.clone(),
            ty: (*typed.ty).clone(),
            mutable: pattern.mutability.is_some(),
            kind: kind_of(&typed.ty, unsafe_kernel)?,
        })
    }
}

pub(crate) fn kind_of(ty: &Type, unsafe_kernel: bool) -> Result<ParameterKind> {
    match ty {
        Type::Reference(reference) => reference_kind(reference),
        Type::Ptr(pointer) if unsafe_kernel => Ok(ParameterKind::Pointer {
            element: (*pointer.elem).clone(),
            mutable: matches!(pointer.mutability, PointerMutability::Mut(_)),
        }),
        Type::Ptr(pointer) => Err(Error::new(
            pointer.span(),
            "a safe kernel cannot take a raw pointer: use `&[T]` to read and `DisjointSlice<T>` to write, or declare the kernel `unsafe fn`",
        )),
        Type::Slice(slice) => Err(Error::new(
            slice.span(),
            "a slice is passed by reference: write `&[T]` to read or `DisjointSlice<T>` to write",
        )),
        Type::ImplTrait(it) => Err(Error::new(
            it.span(),
            "a kernel parameter needs a concrete type: the entry point is compiled once, at build time",
        )),
        Type::Path(path) => path_kind(path),
        Type::Tuple(tuple) if !tuple.elems.is_empty() => {
            Ok(ParameterKind::Tuple { members: Members::of(tuple, unsafe_kernel)? })
        }
        Type::Paren(inner) => kind_of(&inner.elem, unsafe_kernel),
        Type::Group(inner) => kind_of(&inner.elem, unsafe_kernel),
        _ => Ok(ParameterKind::Scalar),
    }
}

fn reference_kind(reference: &syn::TypeReference) -> Result<ParameterKind> {
    if let Type::Slice(slice) = &*reference.elem {
        if reference.mutability.is_some() {
            return Err(Error::new(
                reference.span(),
                "`&mut [T]` would alias: every thread of the grid would hold it at once; write `DisjointSlice<T>`, which gives each thread its own elements",
            ));
        }
        return Ok(ParameterKind::Input { element: (*slice.elem).clone(), rank: 1, is_mapped: false });
    }
    if matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str")) {
        return Err(Error::new(reference.span(), "a kernel cannot take `&str`: pass its bytes as `&[u8]`"));
    }
    Err(Error::new(
        reference.span(),
        "a reference to host memory means nothing on a device: pass a value that is `DeviceCopy`, or a slice `&[T]` of a device buffer",
    ))
}

fn path_kind(path: &syn::TypePath) -> Result<ParameterKind> {
    let Some(last) = path.path.segments.last() else {
        return Ok(ParameterKind::Scalar);
    };
    if last.ident == "Thread" {
        let rank = rank_argument(&last.arguments, 0)?.ok_or_else(|| {
            Error::new(last.span(), "`Thread` needs its rank: `Thread<1>`, `Thread<2>` or `Thread<3>`")
        })?;
        return match rank.value {
            1..=3 => Ok(ParameterKind::Thread { rank: rank.value }),
            other => Err(Error::new(rank.span, format!("a grid has rank 1, 2 or 3, not {other}"))),
        };
    }
    if last.ident == "Shared" {
        let array = only_argument(last, "its array type: `Shared<[f32; 256]>` or `Shared<[[f32; 16]; 16]>`")?;
        return Ok(ParameterKind::Shared { array });
    }
    if last.ident == "SharedSlice" {
        let element = only_argument(last, "its element type: `SharedSlice<f32>`")?;
        return Ok(ParameterKind::SharedSlice { element });
    }
    if last.ident == "BlockOrder" {
        let element = only_argument(last, "the type of the values that blocks publish: `BlockOrder<u32>`")?;
        return Ok(ParameterKind::Order { element });
    }
    // A type of the user with that name has no element type.
    for (name, rank, is_mapped) in [("Plane", 2, false), ("TensorMap", 2, true), ("Volume", 3, false)] {
        if last.ident == name
            && let Some(element) = element_argument(&last.arguments)
        {
            return Ok(ParameterKind::Input { element, rank, is_mapped });
        }
    }
    if let Some(kind) = boxes(last)? {
        return Ok(kind);
    }
    if last.ident == "DisjointSlice" {
        let element = element_argument(&last.arguments).ok_or_else(|| {
            Error::new(
                last.span(),
                "`DisjointSlice` needs its element type: `DisjointSlice<f32>` or `DisjointSlice<f32, 2>`",
            )
        })?;
        let rank = rank_of(last)?;
        return Ok(ParameterKind::Output { element, rank, division: Division::Elements });
    }
    if (last.ident == "Texture" || last.ident == "Surface")
        && let Some(element) = element_argument(&last.arguments)
    {
        let rank = rank_of(last)?;
        return Ok(match last.ident == "Texture" {
            true => ParameterKind::Texture { value: element, rank },
            false => ParameterKind::Surface { element, rank },
        });
    }
    for (division, rank, example) in [
        (Division::Tiles, 2, "`DisjointTiles<f32, 32, 32>`"),
        (Division::Rows, 2, "`DisjointRows<f32>`"),
        (Division::Chunks, 1, "`DisjointChunks<f32, 256>`"),
        (Division::Warps, 1, "`DisjointWarps<f32>`"),
        (Division::Claimed, 1, "`ScatterSlice<f32>`"),
        (Division::Mapped, 2, "`TensorMapMut<f32, 32, 32>`"),
    ] {
        if last.ident == division.type_name(rank) {
            let missing = || Error::new(last.span(), format!("its element type is missing: {example}"));
            let element = element_argument(&last.arguments).ok_or_else(missing)?;
            return Ok(ParameterKind::Output { element, rank, division });
        }
    }
    Ok(ParameterKind::Scalar)
}

/// A `BoxMap` or a `BoxMapMut`, whose argument is an array of one axis, or of three to five.
fn boxes(segment: &PathSegment) -> Result<Option<ParameterKind>> {
    let is_input = segment.ident == "BoxMap";
    if !is_input && segment.ident != "BoxMapMut" {
        return Ok(None);
    }
    let Some(array) = element_argument(&segment.arguments) else {
        // A type of the user with that name.
        return Ok(None);
    };
    let (mut element, mut rank) = (&array, 0);
    loop {
        (element, rank) = match element {
            Type::Array(of) => (&of.elem, rank + 1),
            Type::Paren(inner) => (&inner.elem, rank),
            Type::Group(inner) => (&inner.elem, rank),
            _ => break,
        };
    }
    let element = element.clone();
    match rank {
        0 => Err(Error::new(
            array.span(),
            format!(
                "the boxes of a `{0}` are arrays, written out: `{0}<[[[f32; 32]; 8]; 4]>`",
                segment.ident
            ),
        )),
        2 => Err(Error::new(
            array.span(),
            if is_input {
                "boxes of two axes are the tiles of a `TensorMap<f32, 32, 8>`"
            } else {
                "boxes of two axes are the tiles of a `TensorMapMut<f32, 32, 8>`"
            },
        )),
        1..=5 if is_input => Ok(Some(ParameterKind::Input { element, rank, is_mapped: true })),
        1..=5 => Ok(Some(ParameterKind::Output { element, rank, division: Division::Mapped })),
        _ => Err(Error::new(array.span(), format!("a box has at most 5 axes, and this one {rank}"))),
    }
}

/// The rank behind the element type; 1 if there is none.
fn rank_of(segment: &PathSegment) -> Result<usize> {
    match rank_argument(&segment.arguments, 1)? {
        None => Ok(1),
        Some(rank) if (1..=3).contains(&rank.value) => Ok(rank.value),
        Some(rank) => {
            Err(Error::new(rank.span, format!("`{}` has rank 1, 2 or 3, not {}", segment.ident, rank.value)))
        }
    }
}

struct Rank {
    value: usize,
    span: proc_macro2::Span,
}

fn rank_argument(arguments: &PathArguments, position: usize) -> Result<Option<Rank>> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return Ok(None);
    };
    let mut positional =
        arguments.args.iter().filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)));
    let Some(argument) = positional.nth(position) else {
        return Ok(None);
    };
    if let GenericArgument::Const(Expr::Lit(ExprLit { lit: Lit::Int(literal), .. })) = argument {
        return Ok(Some(Rank { value: literal.base10_parse()?, span: literal.span() }));
    }
    Err(Error::new(argument.span(), "the rank must be written as a literal: 1, 2 or 3"))
}

/// The only type argument of a parameter; the macro adds the number of a region of shared memory.
fn only_argument(segment: &PathSegment, needs: &str) -> Result<Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return Err(Error::new(segment.span(), format!("`{}` needs {needs}", segment.ident)));
    };
    match (arguments.args.len(), arguments.args.first()) {
        (1, Some(GenericArgument::Type(ty))) => Ok(ty.clone()),
        _ => Err(Error::new(arguments.span(), format!("`{}` needs only {needs}", segment.ident))),
    }
}

fn element_argument(arguments: &PathArguments) -> Option<Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}
