//! The unit tests of `ferrogrid-macros`, from its sources. In that package itself cargo would first build all
//! of `ferrogrid`, which the documentation's examples need.

// Items that only the macros themselves call.
#![allow(dead_code, unused_imports)]

#[path = "../../macros/src"]
mod macros {
    pub(crate) mod crate_path;
    pub(crate) mod derive;
    pub(crate) mod expand;
}

use macros::{crate_path, expand};
