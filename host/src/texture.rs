//! Texture arrays, and what launches take of them: textures to read, surfaces to write. It must not know how
//! a backend makes them.

mod argument;
mod array;
mod limits;
mod sampler;
mod view;

pub use argument::{ArrayInput, ArrayOutput};
pub use array::TextureArray;
pub use sampler::Sampler;
pub use view::{SurfaceViewMut, TextureView};
