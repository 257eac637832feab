//! The function of a template as written: what each of its parameters stands for.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericParam, Ident, ItemFn, Pat, Result, ReturnType, Safety, Type, parse_quote,
};

use crate::kernel::{ParameterKind, kind_of};

/// What a parameter of a template stands for.
pub enum Role {
    /// A value, the same for all elements.
    Value,
    /// `&[T]`, `Plane<T>` and the like: memory that every element may read.
    Whole(ParameterKind),
    /// `&T`: one element of an input.
    Input(Type),
    /// `&mut T`: one element of an output.
    Output(Type),
    /// `#[index] i: usize`: the number of the element.
    Index,
    /// `#[row] i: usize`: the row of a product's sum.
    Row,
    /// `#[column] j: usize`: its column.
    Column,
    /// `#[batch] i: usize`: the batch of a product's sum.
    Batch,
    /// `#[group] i: usize`: the group of its row.
    Group,
    /// `#[row] x: &T`: the element of a vector for the row of a product's sum.
    OfRow(Type),
    /// `#[column] x: &T`: that for its column.
    OfColumn(Type),
}

impl Role {
    /// Whether only the sums of a product have it.
    fn is_of_sums(&self) -> bool {
        matches!(
            self,
            Role::Row | Role::Column | Role::Batch | Role::Group | Role::OfRow(_) | Role::OfColumn(_)
        )
    }
}

/// A parameter of a template.
pub struct Argument {
    /// Its name.
    pub name: Ident,
    /// Its type as written.
    pub ty: Type,
    /// What it stands for.
    pub role: Role,
}

/// A function that computes one element.
pub(super) struct Signature {
    /// Without the attributes of parameters, such as `#[index]`.
    pub(super) function: ItemFn,
    pub(super) arguments: Vec<Argument>,
    /// The type that it returns, if any.
    pub(super) result: Option<Type>,
}

impl Signature {
    /// Reads the function.
    ///
    /// # Errors
    /// For what no element can be computed from, with the span of the part at fault.
    pub(super) fn parse(function: ItemFn) -> Result<Self> {
        let signature = Self::read(function)?;
        if let Some(place) = signature.arguments.iter().find(|it| it.role.is_of_sums()) {
            return Err(Error::new(
                place.name.span(),
                "only the sums of `#[matmul]` have rows and columns: `#[index] i: usize` is the number of an element",
            ));
        }
        if !signature.arguments.iter().any(|it| matches!(it.role, Role::Input(_) | Role::Output(_)))
            && signature.result.is_none()
        {
            return Err(Error::new(
                signature.function.sig.paren_token.span.join(),
                "no parameter is an element: `x: &f32` is one of an input, `y: &mut f32` one of an output",
            ));
        }
        Ok(signature)
    }

    /// Reads the function of a product.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub(super) fn of_sums(function: ItemFn) -> Result<Self> {
        let signature = Self::read(function)?;
        match signature.arguments.iter().find(|it| matches!(it.role, Role::Index)) {
            Some(index) => Err(Error::new(
                index.name.span(),
                "the sums of `#[matmul]` have rows and columns: `#[row] i: usize`, `#[column] j: usize`",
            )),
            None => Ok(signature),
        }
    }

    fn read(mut function: ItemFn) -> Result<Self> {
        check(&function)?;
        let mut arguments = Vec::new();
        for input in &mut function.sig.inputs {
            arguments.push(argument(input)?);
        }
        let result = match &function.sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        Ok(Signature { function, arguments, result })
    }

    pub(super) fn name(&self) -> &Ident {
        &self.function.sig.ident
    }

    /// The name of one of its functions.
    pub(super) fn part(&self, part: &str) -> Ident {
        let name = self.name().to_string();
        format_ident!("__ferrogrid_{part}_{}", name.trim_start_matches("r#"), span = self.name().span())
    }

    /// The `cfg`s, which apply to all that it becomes.
    pub(super) fn cfgs(&self) -> Vec<&Attribute> {
        self.function.attrs.iter().filter(|it| it.path().is_ident("cfg")).collect()
    }

    /// Its documentation and `cfg`s.
    pub(super) fn public_attributes(&self) -> Vec<&Attribute> {
        let is_public = |it: &&Attribute| it.path().is_ident("cfg") || it.path().is_ident("doc");
        self.function.attrs.iter().filter(is_public).collect()
    }

    /// The function itself under the name `name`, private.
    pub(super) fn element(&self, name: &Ident) -> ItemFn {
        let mut function = self.function.clone();
        function.sig.ident = name.clone();
        function.vis = syn::Visibility::Inherited;
        function.attrs.retain(|it| !it.path().is_ident("doc"));
        function.attrs.push(parse_quote!(#[inline(always)]));
        // A template's parameters are those of its launch.
        function.attrs.push(parse_quote!(
            #[allow(
                clippy::too_many_arguments,
                clippy::needless_pass_by_value,
                clippy::trivially_copy_pass_by_ref
            )]
        ));
        function
    }

    /// `::<T, N>`, or nothing.
    pub(super) fn turbofish(&self) -> TokenStream {
        let names: Vec<&Ident> = self
            .function
            .sig
            .generics
            .params
            .iter()
            .filter_map(|it| match it {
                GenericParam::Type(it) => Some(&it.ident),
                GenericParam::Const(it) => Some(&it.ident),
                GenericParam::Lifetime(_) => None,
            })
            .collect();
        if names.is_empty() { TokenStream::new() } else { quote!(::<#(#names),*>) }
    }

    /// The arguments of the element's function, in order, where `input`, `output` and `index` say what stands for those.
    pub(super) fn passed(
        &self,
        input: impl Fn(&Ident) -> TokenStream,
        output: impl Fn(&Ident) -> TokenStream,
        index: &TokenStream,
    ) -> TokenStream {
        let arguments = self.arguments.iter().map(|argument| {
            let name = &argument.name;
            match &argument.role {
                Role::Value | Role::Whole(_) => quote!(#name),
                Role::Input(_) => input(name),
                Role::Output(_) => output(name),
                Role::Index => index.clone(),
                Role::Row => quote!(__row),
                Role::Column => quote!(__column),
                Role::Batch | Role::Group => quote!(__matrix),
                Role::OfRow(_) => quote!(::ferrogrid::device::matrix::nearest(#name, __row)?),
                Role::OfColumn(_) => quote!(::ferrogrid::device::matrix::nearest(#name, __column)?),
            }
        });
        quote!(#(#arguments),*)
    }

    /// `same_shape(x, y),` for these parameters, if they are several.
    pub(super) fn same_shape(names: &[&Ident]) -> TokenStream {
        if names.len() < 2 { TokenStream::new() } else { quote!(same_shape(#(#names),*),) }
    }

    /// `dependent_launch,` unless a texture forbids it.
    pub(super) fn dependent_launch(&self) -> (TokenStream, TokenStream) {
        let reads_texture =
            self.arguments.iter().any(|it| matches!(it.role, Role::Whole(ParameterKind::Texture { .. })));
        if reads_texture {
            (TokenStream::new(), TokenStream::new())
        } else {
            (quote!(dependent_launch,), quote!(__t.launch_dependents();))
        }
    }
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if let Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new(
            token.span(),
            "a template's function is safe: write an `unsafe` block in it, or a `#[kernel]`",
        ));
    }
    if let Some(token) = &signature.asyncness {
        return Err(Error::new(token.span(), "a template's function cannot be `async`: it runs on a device"));
    }
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        return Err(Error::new(lifetime.span(), "a template needs no lifetimes: leave them out"));
    }
    Ok(())
}

fn argument(input: &mut FnArg) -> Result<Argument> {
    let FnArg::Typed(typed) = input else {
        return Err(Error::new(input.span(), "a template is a free function: it cannot take `self`"));
    };
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(Error::new(
            typed.pat.span(),
            "a template's parameter needs a plain name; destructure it in the body",
        ));
    };
    let (name, ty) = (pattern.ident.clone(), (*typed.ty).clone());
    let place = ["index", "row", "column", "batch", "group"]
        .into_iter()
        .find(|place| typed.attrs.iter().any(|attribute| attribute.path().is_ident(place)));
    let role = match place {
        Some(place) => {
            typed.attrs.retain(|it| !it.path().is_ident(place));
            role_of_place(place, &ty)?
        }
        None => role(&ty)?,
    };
    Ok(Argument { name, ty, role })
}

/// What a parameter with the attribute `place` stands for.
fn role_of_place(place: &str, ty: &Type) -> Result<Role> {
    let is_number = matches!(ty, Type::Path(path) if path.path.is_ident("usize"));
    match place {
        "index" if is_number => Ok(Role::Index),
        "row" if is_number => Ok(Role::Row),
        "column" if is_number => Ok(Role::Column),
        "batch" if is_number => Ok(Role::Batch),
        "group" if is_number => Ok(Role::Group),
        "batch" | "group" => Err(Error::new(ty.span(), format!("the {place} of a sum is a `usize`"))),
        "index" => Err(Error::new(ty.span(), "the index of an element is a `usize`")),
        _ => match role(ty)? {
            Role::Input(element) if place == "row" => Ok(Role::OfRow(element)),
            Role::Input(element) => Ok(Role::OfColumn(element)),
            _ => Err(Error::new(
                ty.span(),
                format!("the {place} of a sum is a `usize`, and what a vector has for it a `&T`"),
            )),
        },
    }
}

fn role(ty: &Type) -> Result<Role> {
    if let Type::Reference(reference) = ty
        && !matches!(&*reference.elem, Type::Slice(_))
        && !matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str"))
    {
        if let Some(lifetime) = &reference.lifetime {
            return Err(Error::new(
                lifetime.span(),
                "an element is lent for one call: leave the lifetime out",
            ));
        }
        let element = (*reference.elem).clone();
        return Ok(if reference.mutability.is_some() { Role::Output(element) } else { Role::Input(element) });
    }
    if let Type::Reference(reference) = ty
        && reference.mutability.is_some()
    {
        return Err(Error::new(
            ty.span(),
            "`&mut [T]` would alias: every element would hold the whole slice at once; write `&mut T`, the element of an output",
        ));
    }
    match kind_of(ty, false)? {
        ParameterKind::Scalar | ParameterKind::Tuple { .. } => Ok(Role::Value),
        kind @ (ParameterKind::Input { is_mapped: false, .. } | ParameterKind::Texture { .. }) => {
            Ok(Role::Whole(kind))
        }
        _ => Err(Error::new(
            ty.span(),
            "a template computes one element, without other threads: it takes values, elements (`&T`, `&mut T`) and memory to read (`&[T]`, `Plane<T>`, `Volume<T>`, `Texture<V, R>`); for anything else write a `#[kernel]`",
        )),
    }
}
