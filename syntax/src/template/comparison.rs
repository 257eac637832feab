//! `#[comparison]`: the kernels of sorts, merges, searches and sets in an order of the user's.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Item, ItemFn, Result, Type, Visibility, parse_quote};

use super::THREADS;
use super::options::Options;
use super::signature::{Role, Signature};

/// The functions of a comparison, which its attribute may choose from.
const FUNCTIONS: [&str; 8] = [
    "merge_sort",
    "merge",
    "lower_bound",
    "upper_bound",
    "set_union",
    "set_intersection",
    "set_difference",
    "set_symmetric_difference",
];

/// A `#[comparison]` function, for the functions that launch its kernels.
pub struct Comparison {
    /// Its `cfg`s.
    pub cfgs: Vec<Attribute>,
    /// Its visibility.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// The type that it compares.
    pub element: Type,
    functions: Vec<&'static str>,
}

impl Comparison {
    /// Whether it has a function of this name.
    pub fn has(&self, function: &str) -> bool {
        self.functions.contains(&function)
    }

    /// Its functions of sets.
    pub fn sets(&self) -> impl Iterator<Item = &'static str> {
        self.functions.iter().copied().filter(|name| name.starts_with("set_"))
    }

    /// Whether it searches.
    pub fn searches(&self) -> bool {
        self.has("lower_bound") || self.has("upper_bound")
    }

    /// Whether it merges.
    pub fn merges(&self) -> bool {
        self.has("merge_sort") || self.has("merge")
    }

    /// One of its kernels, by what that does.
    pub fn kernel(&self, part: &str) -> Ident {
        let name = self.name.to_string();
        format_ident!("{}_{part}", name.trim_start_matches("r#"), span = self.name.span())
    }

    /// The function, and its kernels.
    pub(super) fn parse(function: ItemFn, attribute: &Attribute) -> Result<(Vec<Item>, Self)> {
        let generics = &function.sig.generics;
        if !generics.params.is_empty() {
            return Err(Error::new(
                generics.span(),
                "a comparison is for one type: write one for each, and call a generic function in it",
            ));
        }
        let Options { flags, of_kernel, .. } = Options::parse(attribute, [], &FUNCTIONS, generics)?;
        let functions =
            FUNCTIONS.into_iter().filter(|it| flags.is_empty() || flags.iter().any(|flag| flag == it));
        let functions = functions.collect();
        let signature = Signature::parse(function)?;
        let comparison = Comparison {
            cfgs: signature.cfgs().into_iter().cloned().collect(),
            visibility: signature.function.vis.clone(),
            name: signature.name().clone(),
            element: element(&signature)?,
            functions,
        };
        let mut items = vec![Item::Fn(signature.function)];
        items.extend(Kernels { comparison: &comparison, of_kernel: &of_kernel }.items());
        Ok((items, comparison))
    }
}

/// The type of both parameters.
fn element(signature: &Signature) -> Result<Type> {
    let returns_bool = matches!(&signature.result, Some(Type::Path(path)) if path.path.is_ident("bool"));
    match &signature.arguments[..] {
        [a, b] if returns_bool => match (&a.role, &b.role) {
            (Role::Input(a), Role::Input(b)) if same(a, b) => return Ok(a.clone()),
            _ => {}
        },
        _ => {}
    }
    Err(Error::new(
        signature.function.sig.paren_token.span.join(),
        "a comparison says whether one element is before another one: `fn name(a: &T, b: &T) -> bool`",
    ))
}

fn same(a: &Type, b: &Type) -> bool {
    a.to_token_stream().to_string() == b.to_token_stream().to_string()
}

struct Kernels<'c> {
    comparison: &'c Comparison,
    of_kernel: &'c TokenStream,
}

impl Kernels<'_> {
    fn items(&self) -> Vec<Item> {
        let Comparison { element, name, .. } = self.comparison;
        let mut items = Vec::new();
        if self.comparison.merges() {
            items.extend(self.lengths());
        }
        let (items_of, run) = (self.length("ITEMS"), self.length("RUN"));
        let scratch = quote_spanned! {element.span()=>
            ::ferrogrid::device::Shared<::ferrogrid::device::MergeSortScratch<#element, #THREADS, #items_of>>
        };
        if self.comparison.has("merge_sort") {
            items.push(self.kernel(
                "sort_tiles",
                &quote!(same_shape(x, y),),
                &quote! {
                    x: &[#element],
                    mut y: ::ferrogrid::device::DisjointWarps<#element, #run, 32>,
                    mut scratch: #scratch,
                },
                &quote! {
                    let items = ::ferrogrid::device::ordered::sort_tile(&t, &mut scratch, x, #name);
                    y.fill_striped(&t, items);
                },
            ));
        }
        if self.comparison.merges() {
            items.push(self.kernel(
                "splits",
                &quote!(),
                &quote! {
                    a: &[#element],
                    b: &[#element],
                    run: u64,
                    mut splits: ::ferrogrid::device::DisjointWarps<u64, 32>,
                },
                &quote! {
                    splits.fill_with(&t, |k| ::ferrogrid::device::ordered::split_of_tile((a, b), run, k, #name));
                },
            ));
            items.push(self.kernel(
                "merge_tiles",
                &quote!(),
                &quote! {
                    a: &[#element],
                    b: &[#element],
                    run: u64,
                    splits: &[u64],
                    mut y: ::ferrogrid::device::DisjointWarps<#element, #run, 32>,
                    mut scratch: #scratch,
                },
                &quote! {
                    let items = ::ferrogrid::device::ordered::merge_tile(
                        &t, &mut scratch, (a, b), run, splits, #name,
                    );
                    y.fill_striped(&t, items);
                },
            ));
        }
        if self.comparison.searches() {
            items.push(self.bounds());
        }
        if self.comparison.sets().next().is_some() {
            items.extend(self.sets());
        }
        items
    }

    fn bounds(&self) -> Item {
        let Comparison { element, name, .. } = self.comparison;
        self.kernel(
            "bounds",
            &quote!(same_shape(values, found),),
            &quote! {
                is_upper: u32,
                sorted: &[#element],
                values: &[#element],
                mut found: ::ferrogrid::device::DisjointWarps<u64, 32>,
            },
            &quote! {
                for (k, found) in found.iter_mut(&t) {
                    if let ::core::option::Option::Some(value) = values.get(k) {
                        let is_before =
                            |x: &#element| if is_upper != 0 { !#name(value, x) } else { #name(x, value) };
                        *found = ::ferrogrid::device::ordered::bound(sorted, is_before) as u64;
                    }
                }
            },
        )
    }

    fn sets(&self) -> [Item; 2] {
        let Comparison { element, name, .. } = self.comparison;
        let ends = self.kernel(
            "set_ends",
            &quote!(),
            &quote! {
                kept: u32,
                a: &[#element],
                b: &[#element],
                mut ends: ::ferrogrid::device::DisjointWarps<u64, 256, 32>,
                order: ::ferrogrid::device::BlockOrder<u64>,
                scratch: ::ferrogrid::device::Shared<::ferrogrid::device::Scratch<u64>>,
            },
            &quote! {
                let rows = ::ferrogrid::device::ordered::members(&t, (a, b), kept, ends.first(&t), #name);
                let sums = ::ferrogrid::device::scan::scan_rows(&t.warp(), rows, 0, |a, b| a + b);
                let start = order.exclusive_of_warps(&t, scratch, sums.total, |a, b| a + b).unwrap_or(0);
                ends.fill_grouped(&t, sums.inclusive(start, |a, b| a + b));
            },
        );
        let take = self.kernel(
            "set_take",
            &quote!(),
            &quote! {
                a: &[#element],
                b: &[#element],
                ends: &[u64],
                mut y: ::ferrogrid::device::DisjointWarps<#element, 32>,
                count: &[::ferrogrid::device::DeviceAtomic<u64>],
            },
            &quote! {
                for (k, y) in y.iter_mut(&t) {
                    if let ::core::option::Option::Some(item) =
                        ::ferrogrid::device::ordered::taken((a, b), ends, k, #name)
                    {
                        *y = *item;
                    }
                }
                if t.block_idx()[0] == 0 && t.thread_rank() == 0 {
                    let all = ends.last().copied().unwrap_or(0);
                    if let ::core::option::Option::Some(count) = count.first() {
                        count.store(all, ::ferrogrid::device::atomic::Ordering::Relaxed);
                    }
                }
            },
        );
        [ends, take]
    }

    /// The name of a length.
    fn length(&self, of: &str) -> Ident {
        let name = self.comparison.kernel("").to_string().to_uppercase();
        format_ident!("__FERROGRID_{of}_{}", name.trim_end_matches('_'))
    }

    /// The items of a thread, and those of a warp.
    fn lengths(&self) -> [Item; 2] {
        let Comparison { element, cfgs, .. } = self.comparison;
        let (items, run) = (self.length("ITEMS"), self.length("RUN"));
        [
            parse_quote!(#(#cfgs)* const #items: usize = ::ferrogrid::device::ordered::items::<#element>();),
            parse_quote!(#(#cfgs)* const #run: usize = 32 * #items;),
        ]
    }

    fn kernel(
        &self,
        part: &str,
        options: &TokenStream,
        parameters: &TokenStream,
        body: &TokenStream,
    ) -> Item {
        let (name, of_kernel, cfgs) = (self.comparison.kernel(part), self.of_kernel, &self.comparison.cfgs);
        parse_quote! {
            #(#cfgs)*
            #[kernel(block = #THREADS, wide, #options #of_kernel)]
            fn #name(t: ::ferrogrid::device::Thread<1>, #parameters) { #body }
        }
    }
}
