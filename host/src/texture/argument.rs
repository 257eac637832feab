//! Texture arrays as arguments of copies.

use super::array::TextureArray;
use crate::view::argument::sealed::Sealed;

/// A texture array to copy from: `&TextureArray<T, R>`, or in a recording `&GraphArray<T, R>`.
pub trait ArrayInput<'a, T, const R: usize>: Sealed {
    #[doc(hidden)]
    fn into_array(self) -> &'a TextureArray<T, R>;
}

/// A texture array to copy to: `&mut TextureArray<T, R>`, or in a recording `&mut GraphArray<T, R>`.
pub trait ArrayOutput<'a, T, const R: usize>: Sealed {
    #[doc(hidden)]
    fn into_array(self) -> &'a TextureArray<T, R>;
}

impl<T, const R: usize> Sealed for &TextureArray<T, R> {}
impl<T, const R: usize> Sealed for &mut TextureArray<T, R> {}

impl<'a, T, const R: usize> ArrayInput<'a, T, R> for &'a TextureArray<T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self
    }
}

impl<'a, T, const R: usize> ArrayOutput<'a, T, R> for &'a mut TextureArray<T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self
    }
}
