//! Texture arrays as arguments of copies: allocated ones, and those of a recording.

use super::array::TextureArray;
use crate::graph::GraphArray;

/// A texture array to copy from: `&TextureArray<T, R>`, or in a recording `&GraphArray<T, R>`.
pub trait ArrayInput<'a, T, const R: usize>: sealed::Sealed {
    #[doc(hidden)]
    fn into_array(self) -> &'a TextureArray<T, R>;
}

/// A texture array to copy to: `&mut TextureArray<T, R>`, or in a recording `&mut GraphArray<T, R>`.
pub trait ArrayOutput<'a, T, const R: usize>: sealed::Sealed {
    #[doc(hidden)]
    fn into_array(self) -> &'a TextureArray<T, R>;
}

mod sealed {
    pub trait Sealed {}
}

impl<T, const R: usize> sealed::Sealed for &TextureArray<T, R> {}
impl<T, const R: usize> sealed::Sealed for &mut TextureArray<T, R> {}
impl<T, const R: usize> sealed::Sealed for &GraphArray<'_, T, R> {}
impl<T, const R: usize> sealed::Sealed for &mut GraphArray<'_, T, R> {}

impl<'a, T, const R: usize> ArrayInput<'a, T, R> for &'a TextureArray<T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self
    }
}

impl<'a, T, const R: usize> ArrayInput<'a, T, R> for &'a GraphArray<'_, T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self.array()
    }
}

impl<'a, T, const R: usize> ArrayOutput<'a, T, R> for &'a mut TextureArray<T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self
    }
}

impl<'a, T, const R: usize> ArrayOutput<'a, T, R> for &'a mut GraphArray<'_, T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self.array()
    }
}
