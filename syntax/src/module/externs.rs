//! Functions of other device code that kernels call: `unsafe extern "C"` blocks in an annotated module.

use quote::ToTokens;
use syn::{
    Attribute, Error, Expr, ExprLit, ForeignItem, ForeignItemFn, ItemForeignMod, Lit, LitStr, Meta, Path,
    Result,
};

/// A block of such functions.
pub struct Externs {
    /// The files with their code that the block names, `#[link(file = "offset.ptx")]`: beside the source file.
    pub files: Vec<LitStr>,
    /// The functions.
    pub functions: Vec<ExternFunction>,
    /// The block without Ferrogrid's attributes.
    pub item: ItemForeignMod,
}

/// A function that is declared there.
pub struct ExternFunction {
    /// Its name in the code that is linked.
    pub symbol: String,
    /// The function that the CPU device calls instead, `#[native(path)]`.
    pub native: Option<Path>,
    /// As declared.
    pub item: ForeignItemFn,
}

impl Externs {
    /// Reads a block. `None` for a block of another ABI or of LLVM intrinsics, and for one with a `cfg` of `target_arch`,
    /// which is for one half alone.
    ///
    /// # Errors
    /// For items that are not functions, for variadic functions, and for malformed attributes.
    pub fn parse(block: &ItemForeignMod) -> Result<Option<Self>> {
        let is_c = block.abi.name.as_ref().is_none_or(|name| name.value() == "C");
        if !is_c || block.attrs.iter().any(is_for_one_half) {
            return Ok(None);
        }
        let mut item = block.clone();
        let mut functions = Vec::new();
        for declared in &mut item.items {
            let ForeignItem::Fn(function) = declared else {
                return Err(Error::new_spanned(
                    declared,
                    "device code shares functions only: pass what they need",
                ));
            };
            if let Some(variadic) = &function.sig.variadic {
                return Err(Error::new_spanned(variadic, "a device function cannot be variadic"));
            }
            let native =
                take(&mut function.attrs, "native")?.map(|it| it.parse_args::<Path>()).transpose()?;
            functions.push(ExternFunction { symbol: symbol(function)?, native, item: function.clone() });
        }
        if functions.iter().any(|function| function.symbol.starts_with("llvm.")) {
            return Ok(None);
        }
        let mut files = Vec::new();
        while let Some(attribute) = take(&mut item.attrs, "link")? {
            files.push(attribute.parse_args_with(file)?);
        }
        Ok(Some(Externs { files, functions, item }))
    }
}

fn is_for_one_half(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.meta.to_token_stream().to_string().contains("target_arch")
}

/// Removes the first attribute of that name.
fn take(attributes: &mut Vec<Attribute>, name: &str) -> Result<Option<Attribute>> {
    let Some(at) = attributes.iter().position(|attribute| attribute.path().is_ident(name)) else {
        return Ok(None);
    };
    match &attributes[at].meta {
        Meta::List(_) => Ok(Some(attributes.remove(at))),
        other => Err(Error::new_spanned(other, format!("`{name}` requires an argument in parentheses"))),
    }
}

/// `file = "offset.ptx"`
fn file(input: syn::parse::ParseStream<'_>) -> Result<LitStr> {
    const WANTED: &str = "device code is linked from a file: `#[link(file = \"offset.ptx\")]`";
    let meta: Meta = input.parse()?;
    match &meta {
        Meta::NameValue(pair) if pair.path.is_ident("file") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(file), .. }) => Ok(file.clone()),
            other => Err(Error::new_spanned(other, WANTED)),
        },
        other => Err(Error::new_spanned(other, WANTED)),
    }
}

/// The name in `#[link_name = "..."]`, else its own.
fn symbol(function: &ForeignItemFn) -> Result<String> {
    let own = || function.sig.ident.to_string().trim_start_matches("r#").to_owned();
    let named = function.attrs.iter().find(|attribute| attribute.path().is_ident("link_name"));
    match named.map(|attribute| &attribute.meta) {
        Some(Meta::NameValue(pair)) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Ok(name.value()),
            other => Err(Error::new_spanned(other, "expected a name in quotes")),
        },
        _ => Ok(own()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn functions_files_and_native_counterparts_are_read() {
        let block: ItemForeignMod = parse_quote! {
            #[cfg(fast)]
            #[link(file = "a.ptx")]
            #[link(file = "b.cubin")]
            unsafe extern "C" {
                /// Doc.
                #[native(crate::host::offset)]
                pub fn offset(index: u32) -> u32;
                #[link_name = "_Z5twicef"]
                safe fn twice(x: f32) -> f32;
            }
        };
        let externs = Externs::parse(&block).unwrap().unwrap();
        assert_eq!(externs.files.iter().map(LitStr::value).collect::<Vec<_>>(), ["a.ptx", "b.cubin"]);
        let [offset, twice] = externs.functions.as_slice() else { panic!() };
        assert_eq!((&*offset.symbol, &*twice.symbol), ("offset", "_Z5twicef"));
        assert!(offset.native.is_some() && twice.native.is_none());
        assert_eq!((externs.item.attrs.len(), offset.item.attrs.len()), (1, 1), "ours are gone");
    }

    #[test]
    fn foreign_blocks_are_ignored() {
        let intrinsic: ItemForeignMod = parse_quote!(
            unsafe extern "C" {
                #[link_name = "llvm.nvvm.x"]
                fn x();
            }
        );
        let other: ItemForeignMod = parse_quote!(
            unsafe extern "unadjusted" {
                static X: u32;
            }
        );
        let native: ItemForeignMod = parse_quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            unsafe extern "C" { fn getpid() -> i32; }
        };
        for block in [intrinsic, other, native] {
            assert!(Externs::parse(&block).unwrap().is_none());
        }
    }

    #[test]
    fn files_that_cannot_be_linked_are_refused() {
        let refused = |block: ItemForeignMod| Externs::parse(&block).err().unwrap().to_string();
        assert!(
            refused(parse_quote!(
                unsafe extern "C" {
                    static X: u32;
                }
            ))
            .contains("functions only")
        );
        assert!(
            refused(parse_quote!(
                unsafe extern "C" {
                    fn f(x: u32, ...);
                }
            ))
            .contains("cannot be variadic")
        );
        assert!(
            refused(parse_quote!(
                #[link(name = "m")]
                unsafe extern "C" {
                    fn f();
                }
            ))
            .contains("from a file")
        );
        assert!(
            refused(parse_quote!(
                #[link]
                unsafe extern "C" {
                    fn f();
                }
            ))
            .contains("in parentheses")
        );
    }
}
