//! `same_shape(x, y)`: slices that have the same number of elements along each axis at every launch.

use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Result, Token, parenthesized};

use super::parameter::{Parameter, ParameterKind};

/// The groups as written.
#[derive(Default)]
pub(crate) struct SameShape {
    groups: Vec<(Ident, Vec<Ident>)>,
}

/// The groups of parameters with the same shape.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    /// The first of each group, and the others.
    pub groups: Vec<(usize, Vec<usize>)>,
}

impl Shapes {
    /// The first parameter of the group of parameter `position`; itself if it is in no group.
    pub fn leader(&self, position: usize) -> usize {
        let group = self.groups.iter().find(|(_, others)| others.contains(&position));
        group.map_or(position, |(first, _)| *first)
    }
}

impl SameShape {
    /// Reads the option `name`, up to the comma, if it is this one.
    pub(crate) fn take(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<bool> {
        if name != "same_shape" {
            return Ok(false);
        }
        let list;
        parenthesized!(list in input);
        let names = Punctuated::<Ident, Token![,]>::parse_terminated(&list)?;
        self.groups.push((name.clone(), names.into_iter().collect()));
        Ok(true)
    }

    /// Finds the parameters.
    ///
    /// # Errors
    /// For a name that is no slice parameter, is there twice, or has another rank than the first of its group, and for
    /// a group of one.
    pub(crate) fn resolve(&self, parameters: &[Parameter]) -> Result<Shapes> {
        let mut shapes = Shapes::default();
        let mut seen: Vec<&Ident> = Vec::new();
        for (option, names) in &self.groups {
            let mut found = Vec::new();
            for name in names {
                if seen.contains(&name) {
                    return Err(Error::new(
                        name.span(),
                        format!(
                            "`{name}` is named twice: put all slices of its shape into one `same_shape(...)`"
                        ),
                    ));
                }
                seen.push(name);
                found.push((name, slice(name, parameters)?));
            }
            let [(first, (leader, rank)), others @ ..] = found.as_slice() else {
                return Err(too_few(option));
            };
            if others.is_empty() {
                return Err(too_few(option));
            }
            if let Some((name, (_, other))) = others.iter().find(|(_, (_, other))| other != rank) {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "`{name}` has rank {other} and `{first}` rank {rank}: they cannot have the same shape"
                    ),
                ));
            }
            shapes.groups.push((*leader, others.iter().map(|(_, (position, _))| *position).collect()));
        }
        Ok(shapes)
    }
}

fn too_few(option: &Ident) -> Error {
    Error::new(option.span(), "`same_shape` needs two parameters or more: `same_shape(x, y)`")
}

/// Position and rank of the slice parameter called `name`.
fn slice(name: &Ident, parameters: &[Parameter]) -> Result<(usize, usize)> {
    let position = parameters.iter().position(|parameter| parameter.name == *name);
    match position.map(|position| (position, &parameters[position].kind)) {
        Some((position, ParameterKind::Input { rank, .. } | ParameterKind::Output { rank, .. })) => {
            Ok((position, *rank))
        }
        Some(_) => Err(Error::new(
            name.span(),
            format!(
                "`{name}` has no shape: it is not a slice of device memory (`&[T]`, `Plane<T>`, `DisjointSlice<T>` and the like)"
            ),
        )),
        None => Err(Error::new(name.span(), format!("the kernel has no parameter `{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::Kernel;

    use syn::{ItemFn, parse_quote};

    fn shapes(function: &ItemFn) -> Result<Vec<(usize, Vec<usize>)>, String> {
        let kernel = Kernel::parse(function).map_err(|error| error.to_string())?;
        Ok(kernel.expect("a kernel").shapes.groups)
    }

    #[test]
    fn the_others_of_a_group_refer_to_its_first() {
        let function = parse_quote! {
            #[kernel(same_shape(y, x), block = [8, 8], same_shape(p, q,))]
            fn k(t: Thread<2>, x: &[f32], p: Plane<f32>, a: f32, y: DisjointSlice<u8>, q: DisjointSlice<f32, 2>) {}
        };
        assert_eq!(shapes(&function).unwrap(), [(4, vec![1]), (2, vec![5])]);
        let kernel = Kernel::parse(&function).unwrap().unwrap();
        let leaders: Vec<usize> = (0..6).map(|position| kernel.shapes.leader(position)).collect();
        assert_eq!(leaders, [0, 4, 2, 3, 4, 2]);
    }

    #[test]
    fn parameters_without_a_common_shape_are_refused() {
        let refused: [(ItemFn, &str); 6] = [
            (
                parse_quote!(
                    #[kernel(same_shape(x))]
                    fn k(t: Thread<1>, x: &[f32]) {}
                ),
                "two parameters or more",
            ),
            (
                parse_quote!(
                    #[kernel(same_shape())]
                    fn k(t: Thread<1>, x: &[f32]) {}
                ),
                "two parameters or more",
            ),
            (
                parse_quote!(
                    #[kernel(same_shape(x, z))]
                    fn k(t: Thread<1>, x: &[f32]) {}
                ),
                "no parameter `z`",
            ),
            (
                parse_quote!(
                    #[kernel(same_shape(x, a))]
                    fn k(t: Thread<1>, x: &[f32], a: f32) {}
                ),
                "`a` has no shape",
            ),
            (
                parse_quote!(
                    #[kernel(same_shape(x, y))]
                    fn k(t: Thread<1>, x: &[f32], y: Plane<f32>) {}
                ),
                "`y` has rank 2 and `x` rank 1",
            ),
            (
                parse_quote!(
                    #[kernel(same_shape(x, y), same_shape(y, x))]
                    fn k(t: Thread<1>, x: &[f32], y: &[f32]) {}
                ),
                "`y` is named twice",
            ),
        ];
        for (function, reason) in refused {
            let error = shapes(&function).unwrap_err();
            assert!(error.contains(reason), "{error} / {reason}");
        }
    }
}
