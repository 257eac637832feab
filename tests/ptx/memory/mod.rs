//! Facts about memory: cache operators (`caches`), `constants`, atomics and wide elements (`sharing`), `textures`, and outputs
//! that belong to blocks or threads (`writes`).

mod caches;
mod constants;
mod sharing;
mod textures;
mod writes;
