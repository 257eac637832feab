//! The instances of a generic kernel: the types and constants that `#[kernel(T = [...], N = [...])]` lists
//! for its parameters, in every combination.

use quote::ToTokens;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, GenericParam, Generics, Ident, Result, Token, Type, bracketed};

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
    lists: Vec<Vec<Argument>>,
}

impl Lists {
    /// Reads `= [...]` after the name of a generic parameter, if `name` is one.
    pub(crate) fn take(&mut self, name: &Ident, generics: &Generics, input: ParseStream<'_>) -> Result<bool> {
        let Some(parameter) = generics.params.iter().find(|parameter| ident(parameter) == Some(name)) else {
            return Ok(false);
        };
        if self.lists.iter().any(|list| list[0].parameter() == name) {
            return Err(Error::new(name.span(), format!("`{name}` is listed twice")));
        }
        input.parse::<Token![=]>()?;
        let content;
        let bracket = bracketed!(content in input);
        let list: Vec<Argument> = match parameter {
            GenericParam::Const(parameter) => Punctuated::<Expr, Token![,]>::parse_terminated(&content)?
                .into_iter()
                .map(|value| Argument::Const {
                    parameter: name.clone(),
                    ty: parameter.ty.clone(),
                    value: value.into(),
                })
                .collect(),
            _ => Punctuated::<Type, Token![,]>::parse_terminated(&content)?
                .into_iter()
                .map(|ty| Argument::Type { parameter: name.clone(), ty })
                .collect(),
        };
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
            let list = self.lists.iter().find(|list| list[0].parameter() == name).ok_or_else(|| {
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

fn with(instance: &Instance, argument: &Argument) -> Instance {
    let mut arguments = instance.arguments.clone();
    arguments.push(argument.clone());
    Instance { arguments }
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
