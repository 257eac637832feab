//! The members of a tuple that a kernel takes by value; tuples in it are taken apart, too.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, Result, Type, TypeTuple};

use super::parameter::{ParameterKind, kind_of};

/// The members of a tuple, in order.
pub struct Members {
    members: Vec<Member>,
}

enum Member {
    Value(Box<Type>),
    Tuple(Members),
}

impl Members {
    /// Reads `tuple`.
    ///
    /// # Errors
    /// For a member that is not passed by value, with its span.
    pub(crate) fn of(tuple: &TypeTuple, unsafe_kernel: bool) -> Result<Self> {
        let member = |ty: &Type| match kind_of(ty, unsafe_kernel)? {
            ParameterKind::Scalar => Ok(Member::Value(ty.clone().into())),
            ParameterKind::Tuple { members } => Ok(Member::Tuple(members)),
            _ => Err(Error::new(
                ty.span(),
                "a tuple is passed by value, and so are its members: make this a separate parameter",
            )),
        };
        Ok(Members { members: tuple.elems.iter().map(member).collect::<Result<_>>()? })
    }

    /// The types that are not tuples, from left to right.
    pub fn values(&self) -> Vec<&Type> {
        let values = self.members.iter().flat_map(|member| match member {
            Member::Value(ty) => vec![&**ty],
            Member::Tuple(inner) => inner.values(),
        });
        values.collect()
    }

    /// The tuple with `place(number, type)` for each of [`Members::values`]: an expression or a pattern.
    pub fn tuple(&self, mut place: impl FnMut(usize, &Type) -> TokenStream) -> TokenStream {
        let mut number = 0;
        self.nested(&mut |ty| {
            number += 1;
            place(number - 1, ty)
        })
    }

    fn nested(&self, place: &mut dyn FnMut(&Type) -> TokenStream) -> TokenStream {
        let members = self.members.iter().map(|member| match member {
            Member::Value(ty) => place(ty),
            Member::Tuple(inner) => inner.nested(place),
        });
        let members: Vec<_> = members.collect();
        quote!((#(#members,)*))
    }
}
