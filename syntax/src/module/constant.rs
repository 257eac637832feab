//! One `#[constant]` or `#[device]` static of a module: its declaration, checked as far as its text allows,
//! and which functions may read it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Error, Expr, GenericArgument, Item, ItemFn, ItemImpl, ItemStatic, PathArguments, Result,
    StaticMutability, Type, Visibility,
};

use super::fingerprint::Fingerprint;
use crate::kernel::is_kernel_attribute;

/// A value in the constant memory of devices, or a variable in their global memory.
pub struct Constant {
    /// Whether kernels change it: a `#[device]` static.
    pub is_variable: bool,
    /// Its name.
    pub name: Ident,
    /// Its visibility.
    pub visibility: Visibility,
    /// All attributes but `#[constant]` and `#[device]`.
    pub attributes: Vec<Attribute>,
    /// Its declared type, `Constant<T>`; that of a variable.
    pub ty: Type,
    /// The type `T` of its value; for a variable the declared type.
    pub value: Type,
    /// Its initial value, of the declared type.
    pub initial: Expr,
}

impl Constant {
    /// Reads `item` if it has the attribute `#[constant]` or `#[device]`.
    ///
    /// # Errors
    /// For every declaration that cannot be a constant, with the span of the part at fault.
    pub fn parse(item: &Item) -> Result<Option<Self>> {
        if let Item::Const(item) = item
            && item.attrs.iter().any(is_placed_attribute)
        {
            let message = "a `const` has no place in memory that the host could set: write `static`";
            return Err(Error::new(item.const_token.span, message));
        }
        let Item::Static(item) = item else { return Ok(None) };
        if item.attrs.iter().any(is_device_attribute) {
            return Self::variable(item).map(Some);
        }
        let value = value_type(&item.ty);
        if !item.attrs.iter().any(is_constant_attribute) {
            let forgotten = "a `Constant` in a module of kernels needs `#[constant]` before it";
            return if value.is_some() { Err(Error::new(item.ty.span(), forgotten)) } else { Ok(None) };
        }
        if let StaticMutability::Mut(token) = &item.mutability {
            let message = "kernels only read constant memory: leave out `mut`, and set it from the host, `NAME.set(&stream, &value)`";
            return Err(Error::new(token.span(), message));
        }
        let value = value.ok_or_else(|| {
            Error::new(item.ty.span(), "a constant is declared as `Constant<T>`, with `Constant::new(value)`")
        })?;
        Ok(Some(Constant::new(item, value)))
    }

    fn variable(item: &ItemStatic) -> Result<Self> {
        if let Some(other) = item.attrs.iter().find(|it| is_constant_attribute(it)) {
            return Err(Error::new(
                other.span(),
                "kernels change a `#[device]` static: leave `#[constant]` out",
            ));
        }
        if let StaticMutability::Mut(token) = &item.mutability {
            let message =
                "all threads share a `#[device]` static: leave out `mut`, and make it of `DeviceAtomic`s";
            return Err(Error::new(token.span(), message));
        }
        let constant = Constant::new(item, (*item.ty).clone());
        Ok(Constant { is_variable: true, ..constant })
    }

    fn new(item: &ItemStatic, value: Type) -> Self {
        Constant {
            is_variable: false,
            name: item.ident.clone(),
            visibility: item.vis.clone(),
            attributes: item.attrs.iter().filter(|it| !is_placed_attribute(it)).cloned().collect(),
            ty: (*item.ty).clone(),
            value,
            initial: (*item.expr).clone(),
        }
    }

    /// Its name without `r#`.
    pub fn bare_name(&self) -> String {
        self.name.to_string().trim_start_matches("r#").to_owned()
    }

    /// Its name in the PTX.
    pub fn symbol(&self, module: Fingerprint) -> String {
        let prefix = if self.is_variable { VARIABLE_PREFIX } else { SYMBOL_PREFIX };
        format!("{prefix}{}_{}", self.bare_name(), module.short())
    }

    /// The `cfg` attributes on it, which apply to its whole expansion.
    pub fn cfgs(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }
}

/// The prefix of constants in PTX.
pub const SYMBOL_PREFIX: &str = "__ferrogrid_constant_";

/// The prefix of variables in PTX.
const VARIABLE_PREFIX: &str = "__ferrogrid_static_";

/// Whether `attribute` makes a static accessible to the host: `#[constant]`, `#[device]`, or a path that ends in one of them.
pub fn is_placed_attribute(attribute: &Attribute) -> bool {
    is_constant_attribute(attribute) || is_device_attribute(attribute)
}

fn is_device_attribute(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "device")
}

/// Whether `attribute` is `#[constant]` or a path that ends in it.
fn is_constant_attribute(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "constant")
}

/// The `T` of `Constant<T>`.
fn value_type(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Constant")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match (arguments.args.len(), arguments.args.first()) {
        (1, Some(GenericArgument::Type(value))) => Some(value.clone()),
        _ => None,
    }
}

/// The functions of a module that read constants, by the names that their texts mention. A launch orders the
/// constants that its kernel may read, so no function that outside code can call may read one.
pub(crate) struct Readers {
    /// Names of the functions that read constants, kernels among them, and for each which constants.
    readers: Vec<(String, Vec<usize>)>,
    constants: Vec<String>,
}

impl Readers {
    /// Finds them among `items`.
    pub(crate) fn find(items: &[Item], constants: &[Constant]) -> Self {
        let constants: Vec<String> = constants.iter().map(|constant| constant.name.to_string()).collect();
        let mut found = Readers { readers: Vec::new(), constants };
        if found.constants.is_empty() {
            return found;
        }
        let functions: Vec<(String, TokenStream)> = items.iter().filter_map(reading_function).collect();
        found.readers = functions.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
        loop {
            let next: Vec<_> =
                functions.iter().map(|(name, text)| (name.clone(), found.read_by(text))).collect();
            if next == found.readers {
                break;
            }
            found.readers = next;
        }
        found.readers.retain(|(_, constants)| !constants.is_empty());
        found
    }

    /// The constants that code with this text may read.
    fn read_by(&self, text: &TokenStream) -> Vec<usize> {
        let called = self.readers.iter().filter(|(name, _)| mention(text, name).is_some());
        let named = (0..self.constants.len()).filter(|it| mention(text, &self.constants[*it]).is_some());
        let mut all: Vec<usize> = called.flat_map(|(_, constants)| constants.clone()).chain(named).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The constants that the function `name` may read, by number.
    pub(crate) fn of(&self, name: &Ident) -> &[usize] {
        let name = name.to_string();
        self.readers.iter().find(|(reader, _)| *reader == name).map_or(&[], |(_, constants)| constants)
    }

    /// Checks that no other item reads constants.
    ///
    /// # Errors
    /// For an item that code outside of the module can reach, and that reads a constant, at its mention.
    pub(crate) fn check(&self, items: &[Item]) -> Result<()> {
        for item in items {
            let (text, is_code) = match item {
                Item::Fn(function) if !is_public_code(item) => {
                    let constness = function.sig.constness.as_ref();
                    let reads = !self.of(&function.sig.ident).is_empty();
                    if let Some(token) = constness.filter(|_| reads) {
                        return Err(Error::new(token.span(), "a `const fn` cannot read memory of devices"));
                    }
                    if let Some(span) = implementation(function).filter(|_| reads) {
                        return Err(Error::new(
                            span,
                            "code outside of the module can call this `impl`: move it out of the function, which reads memory of devices",
                        ));
                    }
                    continue;
                }
                Item::Fn(_) | Item::Impl(_) | Item::Trait(_) => (item.to_token_stream(), true),
                Item::Static(item) if item.attrs.iter().any(is_placed_attribute) => {
                    (item.expr.to_token_stream(), true)
                }
                _ => (item.to_token_stream(), false),
            };
            // Outside function bodies the names of constants and kernels refer to the host items.
            let kernels = kernel_names(items);
            let called =
                self.readers.iter().map(|(name, _)| name).filter(|it| is_code || !kernels.contains(it));
            let named = self.constants.iter().filter(|_| is_code);
            if let Some(span) = called.chain(named).find_map(|name| mention(&text, name)) {
                return Err(Error::new(
                    span,
                    "constants and `#[device]` statics are for kernels of their module and for private functions of it: a launch cannot order constants that outside code reads. Make the function private, or pass the value",
                ));
            }
        }
        Ok(())
    }
}

fn kernel_names(items: &[Item]) -> Vec<String> {
    let kernels = items.iter().filter_map(|item| match item {
        Item::Fn(function) if function.attrs.iter().any(is_kernel_attribute) => Some(function),
        _ => None,
    });
    kernels.map(|function| function.sig.ident.to_string()).collect()
}

/// A kernel or a private function: its name and its text.
fn reading_function(item: &Item) -> Option<(String, TokenStream)> {
    let Item::Fn(function) = item else { return None };
    let text = function.block.to_token_stream();
    (!is_public_code(item)).then(|| (function.sig.ident.to_string(), text))
}

/// Whether it is a function, no kernel, that code outside of the module can call.
fn is_public_code(item: &Item) -> bool {
    let Item::Fn(function) = item else { return false };
    let is_private = matches!(function.vis, Visibility::Inherited);
    !is_private && !function.attrs.iter().any(is_kernel_attribute)
}

/// Where an `impl` stands inside of `function`.
fn implementation(function: &ItemFn) -> Option<Span> {
    struct Search(Option<Span>);
    impl VisitMut for Search {
        fn visit_item_impl_mut(&mut self, item: &mut ItemImpl) {
            self.0 = Some(item.impl_token.span);
        }
    }
    let mut search = Search(None);
    search.visit_block_mut(&mut function.block.clone());
    search.0
}

/// Where `tokens` first mention `name`.
pub fn mention(tokens: &TokenStream, name: &str) -> Option<Span> {
    tokens.clone().into_iter().find_map(|tree| match tree {
        TokenTree::Ident(ident) => (ident == name).then(|| ident.span()),
        TokenTree::Group(group) => mention(&group.stream(), name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::Module;
    use syn::parse_quote;

    fn read(item: syn::ItemMod) -> std::result::Result<Vec<Vec<String>>, String> {
        let module = Module::parse(item).map_err(|error| error.to_string())?;
        let names = |kernel| module.constants_of(kernel).map(Constant::bare_name).collect();
        Ok(module.kernels.iter().map(names).collect())
    }

    #[test]
    fn a_kernel_reads_constants_that_it_and_its_functions_mention() {
        let module = parse_quote! { mod m {
            #[constant] pub static A: Constant<f32> = Constant::new(1.0);
            #[constant] static B: Constant<[u32; 4]> = Constant::new([0; 4]);
            fn far() -> u32 { B[1] }
            fn near() -> u32 { loop { far(); near(); } }
            #[kernel] pub fn none(t: Thread<1>) {}
            #[kernel] pub fn one(t: Thread<1>) { *A; }
            #[kernel] pub fn other(t: Thread<1>) { (0..4).map(|_| near()); }
            #[kernel] pub fn both(t: Thread<1>) { one(t); far(); }
            mod tests { fn host() { super::A.set(); super::one(); } }
        } };
        let expected: [&[&str]; 4] = [&[], &["A"], &["B"], &["A", "B"]];
        assert_eq!(read(module).unwrap(), expected);
    }

    #[test]
    fn readers_that_others_can_call_are_refused() {
        let refused: [Item; 6] = [
            parse_quote!(
                pub fn f() -> f32 {
                    *A
                }
            ),
            parse_quote!(
                pub(super) fn f() -> f32 {
                    hidden()
                }
            ),
            parse_quote!(impl S { fn f() -> f32 { hidden() } }),
            parse_quote!(
                const F: fn() -> f32 = hidden;
            ),
            parse_quote!(
                mod inner {
                    pub fn f() -> f32 {
                        super::hidden()
                    }
                }
            ),
            parse_quote!(
                pub fn f(t: Thread<1>) {
                    one(t)
                }
            ),
        ];
        for item in refused {
            let error = read(parse_quote! { mod m {
                #[constant] static A: Constant<f32> = Constant::new(1.0);
                fn hidden() -> f32 { *A }
                #[kernel] pub fn one(t: Thread<1>) { hidden(); }
                #item
            } });
            assert!(error.unwrap_err().contains("private functions"), "{}", item.to_token_stream());
        }
    }

    #[test]
    fn impossible_declarations_are_refused() {
        let refused: [(Item, &str); 6] = [
            (
                parse_quote!(
                    #[constant]
                    static mut A: Constant<f32> = Constant::new(1.0);
                ),
                "leave out `mut`",
            ),
            (
                parse_quote!(
                    #[constant]
                    static A: f32 = 1.0;
                ),
                "declared as `Constant<T>`",
            ),
            (
                parse_quote!(
                    #[constant]
                    static A: Constant = Constant::new(1.0);
                ),
                "declared as `Constant<T>`",
            ),
            (
                parse_quote!(
                    #[constant]
                    const A: Constant<f32> = Constant::new(1.0);
                ),
                "write `static`",
            ),
            (
                parse_quote!(
                    static A: Constant<f32> = Constant::new(1.0);
                ),
                "needs `#[constant]`",
            ),
            (
                parse_quote!(
                    const fn f() -> f32 {
                        *B
                    }
                ),
                "`const fn`",
            ),
        ];
        for (item, reason) in refused {
            let error = read(parse_quote! { mod m {
                #[constant] static B: Constant<f32> = Constant::new(1.0);
                #item
            } });
            let error = error.unwrap_err();
            assert!(error.contains(reason), "{error} / {reason}");
        }
    }
}
