//! The unit tests of `ferrogrid-macros`, from its sources. In that package cargo would build all of `ferrogrid` first, which the
//! examples of its documentation need.

// What only the macros themselves call.
#![allow(dead_code, unused_imports)]

#[path = "../../macros/src"]
mod macros {
    pub(crate) mod crate_path;
    pub(crate) mod derive;
    pub(crate) mod expand;
}

use macros::{crate_path, expand};
