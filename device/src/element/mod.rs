//! Types that the host and a device exchange, and how they prove to have the same layout on both sides.
//!
//! `device_copy` has the trait [`DeviceCopy`], `layout` the hash by which the build compares the two
//! compilations, `option` the layout of `Option`, and `aligned` elements of 16 bytes ([`Aligned16`]). `group` has
//! neighbours that one thread moves together.

pub(crate) mod aligned;
pub(crate) mod device_copy;
pub mod group;
pub(crate) mod layout;
mod option;
