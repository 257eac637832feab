//! What a launch lends to its kernel: memory that the body may use while its block runs, and no longer.

use crate::memory::box_map::{BoxMap, BoxMapMut};
use crate::memory::disjoint::{
    DisjointChunks, DisjointRows, DisjointSlice, DisjointTiles, DisjointWarps, ScatterSlice,
};
use crate::memory::plane::Plane;
use crate::memory::tensor_map::TensorMap;
use crate::memory::tensor_map_mut::TensorMapMut;
use crate::memory::volume::Volume;
use crate::order::{BlockOrder, OrderValue};
use crate::shared::{BoxArray, Shared, SharedSlice};
use crate::surface::Surface;
use crate::texture::Texture;

/// Borrowed by the parameters of a block's threads. It lives while the block runs.
#[derive(Debug)]
pub struct Loan(());

impl Loan {
    /// The loan of a block that is about to run. Not `const`: the compiler would promote a constant to
    /// `'static`.
    #[inline(always)]
    pub fn begin() -> Self {
        Loan(())
    }

    /// `parameter`, for as long as `self` is borrowed: a body that requires `&'static [T]` does not compile.
    #[inline(always)]
    pub fn lend<'l, P: Lent<'l>>(&'l self, parameter: P) -> P {
        parameter
    }
}

/// A parameter that is lent for exactly `'l`.
pub trait Lent<'l> {}

impl<'l, T> Lent<'l> for &'l [T] {}
impl<'l, T> Lent<'l> for &'l mut [T] {}
impl<'l, T> Lent<'l> for Plane<'l, T> {}
impl<'l, T, const W: usize, const H: usize> Lent<'l> for TensorMap<'l, T, W, H> {}
impl<'l, T, const W: usize, const H: usize> Lent<'l> for TensorMapMut<'l, T, W, H> {}
impl<'l, T> Lent<'l> for Volume<'l, T> {}
impl<'l, A: BoxArray> Lent<'l> for BoxMap<'l, A> {}
impl<'l, A: BoxArray> Lent<'l> for BoxMapMut<'l, A> {}
impl<'l, T, const R: usize> Lent<'l> for DisjointSlice<'l, T, R> {}
impl<'l, T> Lent<'l> for DisjointRows<'l, T> {}
impl<'l, T> Lent<'l> for ScatterSlice<'l, T> {}
impl<'l, T, const N: usize> Lent<'l> for DisjointChunks<'l, T, N> {}
impl<'l, T, const RUN: usize, const N: usize, const GROUP: usize> Lent<'l>
    for DisjointWarps<'l, T, RUN, N, GROUP>
{
}
impl<'l, T, const W: usize, const H: usize, const MW: usize, const MH: usize> Lent<'l>
    for DisjointTiles<'l, T, W, H, MW, MH>
{
}
impl<'l, V, const R: usize> Lent<'l> for Texture<'l, V, R> {}
impl<'l, T, const R: usize> Lent<'l> for Surface<'l, T, R> {}
impl<'l, T: OrderValue> Lent<'l> for BlockOrder<'l, T> {}
impl<'l, A, const ID: usize> Lent<'l> for Shared<'l, A, ID> {}
impl<'l, T: 'static, const ID: usize> Lent<'l> for SharedSlice<'l, T, ID> {}
