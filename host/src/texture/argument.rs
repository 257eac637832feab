//! Texture arrays as arguments: of copies, and their textures and surfaces of foreign launches.

use ferrogrid_device::{Texel, TextureElement};

use super::array::TextureArray;
use super::view::{SurfaceViewMut, TextureView};
use crate::error::Result;
use crate::foreign::LaunchArgument;
use crate::launch::parameter::list::{Held, ParameterList};
use crate::stream::Stream;
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

macro_rules! argument_of_foreign_kernels {
    ($View:ident, $Element:path) => {
        impl<T, const R: usize> Held for $View<'_, T, R> {
            fn list<'a>(&'a self, list: &mut ParameterList<'a>) {
                list.push_pointer(self.params()[0], self.access());
            }
        }

        impl<T: $Element, const R: usize> LaunchArgument for $View<'_, T, R> {
            type Held = Self;
            fn hold(self, stream: &Stream) -> Result<Self> {
                self.on(stream)
            }
        }
    };
}

argument_of_foreign_kernels!(TextureView, Texel);
argument_of_foreign_kernels!(SurfaceViewMut, TextureElement);
