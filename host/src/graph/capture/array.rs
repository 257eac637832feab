//! Texture arrays in recordings.

use derive_where::derive_where;
use ferrogrid_device::{ReadAs, Texel, TextureElement};

use super::Capture;
use crate::error::Result;
use crate::graph::slot::Slot;
use crate::order::Use;
use crate::texture::{ArrayInput, ArrayOutput, Sampler, SurfaceViewMut, TextureArray, TextureView};
use crate::view::argument::sealed::Sealed;

/// A texture array of a graph while it is recorded: see [`Capture::write_array`].
#[derive_where(Debug)]
pub struct GraphArray<'scope, T, const R: usize> {
    array: &'scope TextureArray<T, R>,
}

impl<T: TextureElement, const R: usize> GraphArray<'_, T, R> {
    /// The elements along each axis, x first.
    pub fn extent(&self) -> [usize; R] {
        self.array.extent()
    }

    /// The array as a kernel reads it; see [`TextureArray::texture`].
    ///
    /// # Errors
    /// As [`TextureArray::texture`].
    pub fn texture<V: Texel>(&self, sampler: &Sampler) -> Result<TextureView<'_, V, R>>
    where
        T: ReadAs<V>,
    {
        self.array.texture(sampler)
    }

    /// The array as a kernel writes it; see [`TextureArray::surface`].
    ///
    /// # Errors
    /// As [`TextureArray::surface`].
    pub fn surface(&mut self) -> Result<SurfaceViewMut<'_, T, R>> {
        self.array.surface_of_shared()
    }
}

impl<'scope, 'b> Capture<'scope, 'b> {
    /// Lends the graph a texture array to read. Others may read it, too, while the graph exists.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another device.
    pub fn read_array<T: TextureElement + Sync, const R: usize>(
        &'scope self,
        array: &'b TextureArray<T, R>,
    ) -> Result<&'b TextureArray<T, R>> {
        self.hold(Slot::borrowed(array.memory(), Use::Read))?;
        Ok(array)
    }

    /// Lends the graph a texture array that its kernels and copies read and write. Until the graph is dropped, nothing
    /// else can use it.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # #[ferrogrid::module(host_only)]
    /// # mod kernels {
    /// # use ferrogrid::device::prelude::*;
    /// /// The mean of each element and the next one.
    /// #[kernel]
    /// pub fn soften(t: Thread<1>, from: Texture<f32>, mut to: Surface<f32>) {
    ///     let i = t.index();
    ///     to.set(i, from.sample(i.get() as f32 + 1.0)); // halfway, filtered
    /// }
    /// # }
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::Sampler;
    ///
    /// let from = stream.upload_array(&[0.0, 8.0, 4.0, 4.0], [4])?;
    /// let (mut between, mut to) = (stream.zeros_array([4])?, stream.zeros_array([4])?);
    /// let linear = Sampler::new().linear();
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let from = capture.read_array(&from)?;
    ///     let mut between = capture.write_array(&mut between)?;
    ///     let mut to = capture.write_array(&mut to)?;
    ///     kernels::soften(capture, Grid::cover(4), from.texture(&linear)?, between.surface()?)?;
    ///     kernels::soften(capture, Grid::cover(4), between.texture(&linear)?, to.surface()?)
    /// })?;
    /// graph.instantiate()?.launch(&stream)?;
    /// assert_eq!(stream.download_array(&to)?, [5.0, 5.0, 4.0, 4.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) if it is of another device.
    pub fn write_array<T: TextureElement + Send, const R: usize>(
        &'scope self,
        array: &'b mut TextureArray<T, R>,
    ) -> Result<GraphArray<'scope, T, R>> {
        // Shared from here on: the views made of it stand for the exclusive borrow.
        let array: &'b TextureArray<T, R> = array;
        self.hold(Slot::borrowed(array.memory(), Use::Write))?;
        Ok(GraphArray { array })
    }
}

impl<T, const R: usize> Sealed for &GraphArray<'_, T, R> {}
impl<T, const R: usize> Sealed for &mut GraphArray<'_, T, R> {}

impl<'a, T, const R: usize> ArrayInput<'a, T, R> for &'a GraphArray<'_, T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self.array
    }
}

impl<'a, T, const R: usize> ArrayOutput<'a, T, R> for &'a mut GraphArray<'_, T, R> {
    fn into_array(self) -> &'a TextureArray<T, R> {
        self.array
    }
}
