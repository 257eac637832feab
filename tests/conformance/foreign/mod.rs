//! Code that this program did not compile: loaded and launched (`loading`), linked and compiled at run time
//! (`compiling`), and handles exchanged with other libraries (`handles`). The other files are programs for these
//! cases. The CPU device supports none of it.

pub(crate) mod compiling;
pub(crate) mod handles;
pub(crate) mod loading;
