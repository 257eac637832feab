//! The instances of a generic kernel: the types and constants that `#[kernel(T = [...], N = [...])]` lists
//! for its parameters, in every combination. An argument after `#[cfg(...)]` is listed where that holds.

use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, GenericParam, Generics, Ident, Result, Token, Type, bracketed};

/// The argument for a generic parameter.
#[derive(Clone)]
pub enum Argument {
    /// For a type parameter.
    Type {
        /// The parameter.
        parameter: Ident,
        /// The type given for it.
        ty: Type,
    },
    /// For a const parameter.
    Const {
        /// The parameter.
        parameter: Ident,
        /// The type of the parameter.
        ty: Type,
        /// The value given for it.
        value: Box<Expr>,
    },
}

impl Argument {
    /// Its parameter.
    pub fn parameter(&self) -> &Ident {
        match self {
            Argument::Type { parameter, .. } | Argument::Const { parameter, .. } => parameter,
        }
    }

    /// The type or value, as written.
    pub fn value(&self) -> String {
        let tokens = match self {
            Argument::Type { ty, .. } => ty.to_token_stream(),
            Argument::Const { value, .. } => value.to_token_stream(),
        };
        tokens.to_string()
    }
}

/// One combination of arguments; a kernel without generic parameters has a single, empty one.
#[derive(Clone, Default)]
pub struct Instance {
    /// In the order of the generic parameters.
    pub arguments: Vec<Argument>,
    /// The `cfg` attributes of the arguments: the instance exists where all hold.
    pub cfgs: Vec<Attribute>,
}

impl Instance {
    /// Its suffix in names: `_f32_8`; empty without arguments.
    pub fn suffix(&self) -> String {
        let mut suffix = String::new();
        for argument in &self.arguments {
            suffix.push('_');
            let value = argument.value();
            suffix.extend(
                value
                    .chars()
                    .filter(|c| !c.is_whitespace())
                    .map(|c| if c.is_alphanumeric() { c } else { '_' }),
            );
        }
        suffix
    }
}

/// The lists that an attribute gives, one for each generic parameter.
#[derive(Default)]
pub(crate) struct Lists {
    lists: Vec<Vec<Listed<Argument>>>,
}

/// An argument in a list, or what it is made of, with its `cfg` attributes.
struct Listed<V>(Vec<Attribute>, V);

impl<V: Parse> Parse for Listed<V> {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let cfgs = input.call(Attribute::parse_outer)?;
        if let Some(other) = cfgs.iter().find(|it| !it.path().is_ident("cfg")) {
            return Err(Error::new_spanned(other, "only `#[cfg(...)]` can stand before a listed instance"));
        }
        Ok(Listed(cfgs, input.parse()?))
    }
}

/// Reads arguments between commas, which `of` makes of types or values.
fn list<V: Parse>(input: ParseStream<'_>, of: impl Fn(V) -> Argument) -> Result<Vec<Listed<Argument>>> {
    let list = Punctuated::<Listed<V>, Token![,]>::parse_terminated(input)?;
    Ok(list.into_iter().map(|Listed(cfgs, value)| Listed(cfgs, of(value))).collect())
}

impl Lists {
    /// Reads `= [...]` after the name of a generic parameter, if `name` is one.
    pub(crate) fn take(&mut self, name: &Ident, generics: &Generics, input: ParseStream<'_>) -> Result<bool> {
        let Some(parameter) = generics.params.iter().find(|parameter| ident(parameter) == Some(name)) else {
            return Ok(false);
        };
        if self.lists.iter().any(|list| list[0].1.parameter() == name) {
            return Err(Error::new(name.span(), format!("`{name}` is listed twice")));
        }
        input.parse::<Token![=]>()?;
        let content;
        let bracket = bracketed!(content in input);
        let list = match parameter {
            GenericParam::Const(parameter) => list(&content, |value: Expr| Argument::Const {
                parameter: name.clone(),
                ty: parameter.ty.clone(),
                value: value.into(),
            }),
            _ => list(&content, |ty: Type| Argument::Type { parameter: name.clone(), ty }),
        }?;
        if list.is_empty() {
            return Err(Error::new(bracket.span.join(), format!("list at least one instance for `{name}`")));
        }
        self.lists.push(list);
        Ok(true)
    }

    /// Every combination, the last parameter varying fastest.
    pub(crate) fn combine(self, generics: &Generics) -> Result<Vec<Instance>> {
        let mut instances = vec![Instance::default()];
        for parameter in &generics.params {
            let Some(name) = ident(parameter) else { continue };
            let list = self.lists.iter().find(|list| list[0].1.parameter() == name).ok_or_else(|| {
                Error::new(
                    name.span(),
                    format!(
                        "a generic kernel is compiled once for each listed instance: list them, `#[kernel({name} = [...])]`"
                    ),
                )
            })?;
            instances =
                instances.iter().flat_map(|instance| list.iter().map(|it| with(instance, it))).collect();
        }
        no_repetition(&instances, generics)?;
        Ok(instances)
    }
}

fn with(instance: &Instance, Listed(cfgs, argument): &Listed<Argument>) -> Instance {
    let mut instance = instance.clone();
    instance.arguments.push(argument.clone());
    instance.cfgs.extend(cfgs.iter().cloned());
    instance
}

fn no_repetition(instances: &[Instance], generics: &Generics) -> Result<()> {
    let mut suffixes: Vec<String> = instances.iter().map(Instance::suffix).collect();
    suffixes.sort();
    match suffixes.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let message =
                format!("two listed instances have the same name: `{}`", pair[0].trim_start_matches('_'));
            Err(Error::new_spanned(generics, message))
        }
    }
}

/// The name of a type or const parameter.
fn ident(parameter: &GenericParam) -> Option<&Ident> {
    match parameter {
        GenericParam::Type(parameter) => Some(&parameter.ident),
        GenericParam::Const(parameter) => Some(&parameter.ident),
        GenericParam::Lifetime(_) => None,
    }
}
