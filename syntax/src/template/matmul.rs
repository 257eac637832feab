//! `#[matmul]`: kernels that multiply matrices, and store what the function makes of each sum.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Item, ItemFn, Result, Type, Visibility, parse_quote};

use super::options::Options;
use super::signature::{Argument, Role, Signature};
use crate::kernel::ParameterKind;

/// The names of what the launch takes beside the function's own parameters.
const TAKEN: [&str; 3] = ["a", "b", "out"];

/// A `#[matmul]` function, for the function that launches one of its kernels.
pub struct Matmul {
    /// Its documentation and `cfg`s.
    pub attributes: Vec<Attribute>,
    /// Its visibility.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// Its parameters after the sum.
    pub arguments: Vec<Argument>,
    /// The elements of both factors.
    pub factors: Type,
    /// What it returns.
    pub result: Type,
    /// Which factors are stored by their columns.
    pub are_transposed: [bool; 2],
    /// Which products it has.
    pub several: Several,
}

/// The products of one launch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Several {
    /// One.
    One,
    /// As many as the launch says, below each other.
    Batches,
    /// One for each group of rows.
    Groups,
}

/// A tile: its name, rows and columns, stages, and the threads of a block.
struct Tile {
    name: &'static str,
    size: [usize; 2],
    stages: usize,
    threads: usize,
    /// Whether a multiprocessor has one block, so that its threads have all registers, and memory to store results by rows.
    is_alone: bool,
}

/// Those of `ferrogrid_host::__private::ProductTile`. Three stages of the last one fit into the shared memory of every GPU.
const TILES: [Tile; 3] = [
    Tile { name: "large", size: [128, 256], stages: 4, threads: 384, is_alone: true },
    Tile { name: "small", size: [64, 128], stages: 4, threads: 256, is_alone: false },
    Tile { name: "narrow", size: [64, 64], stages: 3, threads: 256, is_alone: false },
];

impl Matmul {
    /// Whether parts of the depth may be multiplied apart, by kernels of their own.
    pub fn has_parts(&self) -> bool {
        self.several != Several::Groups
    }

    /// Its kernel of large, small or narrow tiles, or of parts.
    pub fn kernel(&self, tile: &str) -> Ident {
        let name = self.name.to_string();
        format_ident!("{}_{tile}", name.trim_start_matches("r#"), span = self.name.span())
    }

    /// The function, and its kernels.
    pub(super) fn parse(function: ItemFn, attribute: &Attribute) -> Result<(Vec<Item>, Self)> {
        let generics = &function.sig.generics;
        if !generics.params.is_empty() {
            return Err(Error::new(
                generics.span(),
                "a product is of one type of factors: write a function for each, and call a generic one in it",
            ));
        }
        let flags = ["transpose_a", "transpose_b", "batches", "groups"];
        let Options { own: [factors], flags: given, of_kernel } =
            Options::parse(attribute, ["factors"], &flags, generics)?;
        let Some(factors) = factors else {
            let message = "the elements of both factors are missing: `#[matmul(factors = bf16)]`";
            return Err(Error::new_spanned(attribute, message));
        };
        let [transpose_a, transpose_b, batches, groups] =
            flags.map(|flag| given.iter().find(|it| *it == flag));
        let several = match (batches, groups) {
            (Some(_), Some(groups)) => {
                return Err(Error::new(groups.span(), "a product has batches or groups, not both"));
            }
            (Some(_), None) => Several::Batches,
            (None, Some(_)) => Several::Groups,
            (None, None) => Several::One,
        };
        if let (Some(flag), Several::Groups) = (transpose_a, several) {
            let message = "groups are of rows of `a`, which must be stored by its rows: they begin anywhere";
            return Err(Error::new(flag.span(), message));
        }
        let mut signature = Signature::of_sums(function)?;
        let result = checked(&signature, several)?;
        let sum = signature.arguments.remove(0);
        let matmul = Matmul {
            attributes: signature.public_attributes().into_iter().cloned().collect(),
            visibility: signature.function.vis.clone(),
            name: signature.name().clone(),
            arguments: Vec::new(),
            factors: syn::parse2(factors.to_token_stream())?,
            result,
            are_transposed: [transpose_a, transpose_b].map(|flag| flag.is_some()),
            several,
        };
        let element = signature.part("element");
        let kernels = Kernels { matmul: &matmul, signature: &signature, sum: &sum, of_kernel: &of_kernel };
        let mut items = vec![Item::Fn(signature.element(&element)), kernels.width()];
        items.extend(kernels.function(&element));
        items.extend(TILES.iter().map(|tile| kernels.kernel(tile)));
        if matmul.has_parts() {
            items.extend(kernels.of_parts());
        }
        Ok((items, Matmul { arguments: signature.arguments, ..matmul }))
    }
}

/// The type of the result of a function that such products can have.
fn checked(signature: &Signature, several: Several) -> Result<Type> {
    let span = signature.function.sig.paren_token.span.join();
    let Some(Argument { role: Role::Value, .. }) = signature.arguments.first() else {
        return Err(Error::new(span, "the first parameter of a product's function is the sum: `sum: f32`"));
    };
    for argument in &signature.arguments {
        let name = argument.name.to_string();
        let is_taken = match several {
            Several::One => false,
            Several::Batches => name == "batches",
            Several::Groups => name == "groups",
        };
        if is_taken || TAKEN.contains(&name.as_str()) {
            return Err(Error::new(
                argument.name.span(),
                format!("the launch takes `{name}` itself: give this parameter another name"),
            ));
        }
        let missing = match argument.role {
            Role::Output(_) => {
                return Err(Error::new(argument.ty.span(), "a product's function returns what is stored"));
            }
            Role::Batch if several != Several::Batches => "batches",
            Role::Group if several != Several::Groups => "groups",
            _ => continue,
        };
        return Err(Error::new(
            argument.name.span(),
            format!("the product has no {missing}: `#[matmul(.., {missing})]` has"),
        ));
    }
    signature.result.clone().ok_or_else(|| Error::new(span, "a product's function returns what is stored"))
}

/// The type of memory that every sum may read, with its lifetime.
fn of_whole(kind: &ParameterKind) -> TokenStream {
    match kind {
        ParameterKind::Texture { value, rank } => quote!(::ferrogrid::device::Texture<'_, #value, #rank>),
        ParameterKind::Input { element, rank: 2, .. } => quote!(::ferrogrid::device::Plane<'_, #element>),
        ParameterKind::Input { element, rank: 3, .. } => quote!(::ferrogrid::device::Volume<'_, #element>),
        ParameterKind::Input { element, .. } => quote!(&[#element]),
        _ => TokenStream::new(),
    }
}

struct Kernels<'m> {
    matmul: &'m Matmul,
    signature: &'m Signature,
    sum: &'m Argument,
    of_kernel: &'m TokenStream,
}

impl Kernels<'_> {
    /// The name of the number of elements in 128 bytes.
    fn width_name(&self) -> Ident {
        let name = self.matmul.kernel("width").to_string().to_uppercase();
        format_ident!("__FERROGRID_{name}")
    }

    fn width(&self) -> Item {
        let (name, factors, cfgs) = (self.width_name(), &self.matmul.factors, self.signature.cfgs());
        parse_quote!(#(#cfgs)* const #name: usize = 128 / ::core::mem::size_of::<#factors>();)
    }

    /// The parameters of the kernels that the function reads: names and types.
    fn parameters(&self) -> (Vec<&Ident>, Vec<TokenStream>) {
        let parameters = self.signature.arguments.iter().filter_map(|argument| {
            let ty = match &argument.role {
                Role::Value => argument.ty.to_token_stream(),
                Role::Input(element) => quote!(::ferrogrid::device::Plane<'_, #element>),
                Role::OfRow(element) | Role::OfColumn(element) => quote!(&[#element]),
                Role::Whole(kind) => of_whole(kind),
                _ => return None,
            };
            Some((&argument.name, ty))
        });
        parameters.unzip()
    }

    /// The name of the type that is the function with these parameters.
    fn function_name(&self) -> Ident {
        let name = self.matmul.name.to_string();
        format_ident!("__FerrogridSums_{}", name.trim_start_matches("r#"))
    }

    /// The type that is the function with the parameters of a kernel; and a constant that is an error at the type of the sum, if that is
    /// another one than the factors'.
    fn function(&self, element: &Ident) -> [Item; 3] {
        let (name, cfgs, result) = (self.function_name(), self.signature.cfgs(), &self.matmul.result);
        let (names, types) = self.parameters();
        let fields: Vec<Ident> = (0..names.len()).map(|number| format_ident!("P{number}")).collect();
        let filled = self.signature.arguments.iter().filter_map(|argument| {
            let name = &argument.name;
            match &argument.role {
                Role::Input(_) => Some(quote!(#name.width() != 0 && #name.height() != 0)),
                Role::OfRow(_) | Role::OfColumn(_) => Some(quote!(!#name.is_empty())),
                _ => None,
            }
        });
        let sum_type = &self.sum.ty;
        let sum = Ident::new("__sum", sum_type.span().resolved_at(Span::call_site()));
        let passed = self.signature.passed(
            |name| quote!(::ferrogrid::device::matrix::nearest_of_plane(#name, __row, __column)?),
            |_| TokenStream::new(),
            &TokenStream::new(),
        );
        let factors = &self.matmul.factors;
        let asserted = quote_spanned! {sum_type.span()=>
            const _: fn(<#factors as ::ferrogrid::device::matrix::MatrixElement>::Sum) -> #sum_type = |sum| sum;
        };
        [
            parse_quote!(#(#cfgs)* #asserted),
            parse_quote! {
                #(#cfgs)*
                #[allow(non_camel_case_types)]
                #[derive(Clone, Copy)]
                struct #name<#(#fields),*>(#(#fields),*);
            },
            parse_quote! {
                #(#cfgs)*
                impl ::ferrogrid::device::matrix::SumFunction<#sum_type, #result> for #name<#(#types),*> {
                    #[inline(always)]
                    #[allow(unused_variables)]
                    fn has_inputs(self) -> bool {
                        let #name(#(#names),*) = self;
                        true #(&& #filled)*
                    }

                    #[inline(always)]
                    fn of(
                        self,
                        __matrix: usize,
                        __row: usize,
                        __column: usize,
                        #sum: #sum_type,
                    ) -> ::core::option::Option<#result> {
                        let #name(#(#names),*) = self;
                        ::core::option::Option::Some(#element(#sum, #passed))
                    }
                }
            },
        ]
    }

    /// What a kernel of these tiles multiplies.
    fn operands(&self, tile: &Tile) -> Operands {
        let Matmul { factors, are_transposed, several, .. } = self.matmul;
        let width = self.width_name();
        // The right factor is stored by its columns if it is the transpose that is given.
        let by_columns = [are_transposed[0], !are_transposed[1]];
        let maps = [0, 1].map(|which| {
            let rows = if by_columns[which] { quote!(#width) } else { tile.size[which].to_token_stream() };
            quote_spanned!(factors.span()=> ::ferrogrid::device::TensorMap<#factors, #width, #rows>)
        });
        // With the span of the elements, of which not all are read by columns.
        let factor = |name: &str, is_by_columns: bool| {
            let name = Ident::new(name, factors.span().resolved_at(Span::call_site()));
            let turned = is_by_columns.then(|| match several {
                Several::One => quote_spanned!(factors.span()=> .transposed()),
                _ => quote_spanned!(factors.span()=> .transposed_each(__depth)),
            });
            quote_spanned!(factors.span()=> #name #turned)
        };
        let (parameter, value) = match several {
            Several::One => (TokenStream::new(), quote!(One)),
            Several::Batches => (quote!(__batches: u64,), quote!(Batches(__batches as usize))),
            Several::Groups => (quote!(__groups: &[u32],), quote!(Groups(__groups))),
        };
        let depth = match by_columns {
            [false, _] => quote!(a.width()),
            [_, false] => quote!(b.width()),
            _ => quote!(a.height() / (__batches as usize).max(1)),
        };
        let has_depth = *several != Several::One && by_columns != [false; 2];
        Operands {
            maps,
            factors: [factor("a", by_columns[0]), factor("b", by_columns[1])],
            parameter,
            several: quote!(::ferrogrid::device::matrix::Several::#value),
            depth: has_depth.then(|| quote!(let __depth = #depth;)),
        }
    }

    /// What kernels store results in.
    fn group(&self) -> TokenStream {
        let result = &self.matmul.result;
        quote_spanned! {result.span()=>
            ::ferrogrid::device::DeviceAtomic<<#result as ::ferrogrid::device::matrix::ProductResult>::Group>
        }
    }

    /// The kernel, with its place in the source.
    fn placed(&self, mut kernel: ItemFn) -> Item {
        kernel.block.brace_token = self.signature.function.block.brace_token;
        Item::Fn(kernel)
    }

    /// The function's place, which panics and errors name.
    fn span(&self) -> Span {
        self.matmul.name.span().resolved_at(Span::call_site())
    }

    /// The value of the type that is the function.
    fn function_value(&self) -> TokenStream {
        let (names, _) = self.parameters();
        let function = Ident::new(&self.function_name().to_string(), self.span());
        quote_spanned!(self.span()=> #function(#(#names),*))
    }

    fn kernel(&self, tile: &Tile) -> Item {
        let Matmul { factors, result, .. } = self.matmul;
        let Tile { size: [m, n], stages, threads, .. } = tile;
        let (name, cfgs, of_kernel) = (self.matmul.kernel(tile.name), self.signature.cfgs(), self.of_kernel);
        let min_blocks = tile.is_alone.then(|| quote!(min_blocks = 1,));
        let rows_memory = tile.is_alone.then(
            || quote!(__rows: ::ferrogrid::device::Shared<::ferrogrid::device::matrix::ResultRows<#m>>),
        );
        let rows = match tile.is_alone {
            true => quote!(::core::option::Option::Some(__rows.into_rows())),
            false => quote!(::core::option::Option::None),
        };
        let Operands { maps: [map_a, map_b], factors: [a, b], parameter, several, depth } =
            self.operands(tile);
        let ((names, types), function, group) = (self.parameters(), self.function_value(), self.group());
        let multiply = quote_spanned! {self.span()=>
            ::ferrogrid::device::matrix::multiply_and_store::<#factors, #result, #m, #n, #stages, _>(
                &__t,
                __memory,
                #a,
                #b,
                #several,
                #rows,
                out,
                #function,
            );
        };
        self.placed(parse_quote! {
            #(#cfgs)*
            #[inline(always)]
            #[kernel(block = #threads, #min_blocks #of_kernel)]
            fn #name(
                __t: ::ferrogrid::device::Thread<1>,
                a: #map_a,
                b: #map_b,
                #parameter
                #(#names: #types,)*
                out: &[#group],
                __memory: ::ferrogrid::device::Shared<
                    ::ferrogrid::device::matrix::Products<#factors, #m, #n, #stages>
                >,
                #rows_memory
            ) {
                #depth
                #multiply
            }
        })
    }

    /// The kernel that multiplies parts of the depth apart, in small tiles, and the one that makes results of their sums.
    fn of_parts(&self) -> [Item; 2] {
        let [_, tile @ Tile { size: [m, n], stages, threads, .. }, _] = &TILES;
        let (cfgs, of_kernel) = (self.signature.cfgs(), self.of_kernel);
        let [multiply, store] = ["of_parts", "store_parts"].map(|kernel| self.matmul.kernel(kernel));
        let Operands { maps: [map_a, map_b], factors: [a, b], parameter, several, depth } =
            self.operands(tile);
        let ((names, types), function, group) = (self.parameters(), self.function_value(), self.group());
        let (factors, sum) = (&self.matmul.factors, &self.sum.ty);
        let call = quote_spanned! {self.span()=>
            ::ferrogrid::device::matrix::multiply_parts::<#factors, #m, #n, #stages, _>(
                &__t, __memory, #a, #b, #several, __parts, __sums,
            );
        };
        let multiply = self.placed(parse_quote! {
            #(#cfgs)*
            #[inline(always)]
            #[kernel(block = #threads)]
            fn #multiply(
                __t: ::ferrogrid::device::Thread<1>,
                a: #map_a,
                b: #map_b,
                #parameter
                __parts: [u64; 2],
                __sums: &[::ferrogrid::device::DeviceAtomic<u64>],
                __memory: ::ferrogrid::device::Shared<
                    ::ferrogrid::device::matrix::Products<#factors, #m, #n, #stages>
                >,
            ) {
                #depth
                #call
            }
        });
        let call = quote_spanned! {self.span()=>
            ::ferrogrid::device::matrix::store_parts(&__t, __sums, __extents, out, #function);
        };
        let store = self.placed(parse_quote! {
            #(#cfgs)*
            #[inline(always)]
            #[kernel(block = 256, #of_kernel)]
            fn #store(
                __t: ::ferrogrid::device::Thread<1>,
                __extents: [u64; 4],
                __sums: &[#sum],
                #(#names: #types,)*
                out: &[#group],
            ) {
                #call
            }
        });
        [multiply, store]
    }
}

/// What a kernel multiplies.
struct Operands {
    /// The types of both factors.
    maps: [TokenStream; 2],
    /// Both factors, transposed where they are stored by columns.
    factors: [TokenStream; 2],
    /// The parameter that says which products there are.
    parameter: TokenStream,
    several: TokenStream,
    /// A variable for the depth, where factors need it.
    depth: Option<TokenStream>,
}
