//! A compiled kernel: its place in the source, and the files with its code.

use std::path::PathBuf;

use serde_json::Value;

use super::{Listing, Sources};
use crate::cache;
use crate::cargo::metadata::{list, strings};
use crate::error::Error;
use crate::options::Arch;
use crate::ptx::layout;

/// An entry point of the program: a kernel, or an instance of a generic one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledKernel {
    /// Its name in the source.
    pub name: String,
    /// The arguments that it was compiled for, if it is generic, as `#[kernel]` lists them.
    pub arguments: Vec<String>,
    /// The annotated module that it is in.
    pub module: String,
    /// The name of its entry point in the PTX.
    pub entry: String,
    /// The cargo target that it belongs to, such as "example `saxpy`".
    pub target: String,
    /// The file that contains it.
    pub file: PathBuf,
    /// The line of its name and its last line, counted from 1.
    pub lines: (u32, u32),
    /// The only shape of a block that it can be launched with, x first.
    pub block: Option<[u32; 3]>,
    /// The most threads in a block that it can be launched with.
    pub max_threads: Option<u32>,
    /// Its code, by architecture.
    pub images: Vec<ImageFile>,
    /// The slug of its device crate.
    pub(crate) slug: String,
}

/// The PTX of a program for an architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// The architecture.
    pub arch: Arch,
    /// The text.
    pub file: PathBuf,
}

impl CompiledKernel {
    /// Reads a kernel in `unit` from a record.
    pub(super) fn read(kernel: &Value, unit: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let number = |value: &Value| value.as_u64().and_then(|it| u32::try_from(it).ok());
        let block: Vec<u32> = list(kernel, "block").iter().filter_map(number).collect();
        Some(CompiledKernel {
            name: text(&kernel["name"])?,
            arguments: strings(&kernel["arguments"]),
            module: text(&kernel["module"])?,
            entry: text(&kernel["entry"])?,
            target: text(&unit["target"])?,
            file: text(&kernel["file"])?.into(),
            lines: (number(&kernel["first_line"])?, number(&kernel["last_line"])?),
            block: block.try_into().ok(),
            max_threads: number(&kernel["max_threads"]),
            images: list(unit, "images").iter().filter_map(ImageFile::read).collect(),
            slug: text(&unit["slug"])?,
        })
    }

    /// Its name as at a launch: `saxpy`, `fill::<f32, 8>`.
    pub fn path(&self) -> String {
        if self.arguments.is_empty() {
            return self.name.clone();
        }
        format!("{}::<{}>", self.name, self.arguments.join(", "))
    }

    /// Whether `name` refers to it: its name, with or without arguments and module, or its entry point.
    pub fn is_called(&self, name: &str) -> bool {
        let bare = |text: &str| text.replace(char::is_whitespace, "").replace("::<", "<");
        let name = bare(name);
        let path = bare(&self.path());
        let names = [self.name.as_str(), &path];
        let in_module = |it: &&str| name == format!("{}::{it}", self.module);
        name == self.entry || names.contains(&name.as_str()) || names.iter().any(in_module)
    }

    /// The code that a device of this compute capability (major, minor) would load: that of the newest
    /// architecture which runs there.
    pub fn image_for(&self, capability: (u32, u32)) -> Option<&ImageFile> {
        let runs = self.images.iter().filter(|image| image.arch.runs_on(capability));
        runs.max_by_key(|image| image.arch.order())
    }

    /// Bytes of shared memory for its `Shared` parameters; a launch adds what its `SharedSlice` parameters
    /// need.
    ///
    /// # Errors
    /// If the PTX cannot be read.
    pub fn shared_bytes(&self, image: &ImageFile) -> Result<u64, Error> {
        Ok(layout::shared_bytes(&cache::read(&image.file)?, &self.entry))
    }

    /// Its PTX beside the source.
    ///
    /// # Errors
    /// If the PTX cannot be read, or has no such entry point.
    pub fn ptx_listing(&self, image: &ImageFile, sources: &Sources) -> Result<Listing, Error> {
        Listing::of_ptx(&cache::read(&image.file)?, self, sources).ok_or_else(|| {
            let problem = format!("it has no entry point `{}`", self.entry);
            Error::ptx(&self.target, &image.arch, &image.file, problem)
        })
    }
}

impl ImageFile {
    fn read(image: &Value) -> Option<Self> {
        Some(ImageFile { arch: image["arch"].as_str()?.parse().ok()?, file: image["file"].as_str()?.into() })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `fill::<f32, 8>` of module `kernels`, on lines 3 to 9 of a file.
    pub(crate) fn fill(file: PathBuf) -> CompiledKernel {
        CompiledKernel {
            name: "fill".to_owned(),
            arguments: vec!["f32".to_owned(), "8".to_owned()],
            module: "kernels".to_owned(),
            entry: "fill_f32_8_0123456789abcdef".to_owned(),
            target: "bin `app`".to_owned(),
            file,
            lines: (3, 9),
            block: None,
            max_threads: None,
            images: Vec::new(),
            slug: "bin-app".to_owned(),
        }
    }

    #[test]
    fn a_kernel_is_found_by_several_names() {
        let kernel = fill("a.rs".into());
        for name in [
            "fill",
            "kernels::fill",
            "fill::<f32, 8>",
            "fill<f32,8>",
            "kernels::fill::<f32,8>",
            "fill_f32_8_0123456789abcdef",
        ] {
            assert!(kernel.is_called(name), "{name}");
        }
        for name in ["fil", "fill::<f64, 8>", "other::fill", "fill_f32_8"] {
            assert!(!kernel.is_called(name), "{name}");
        }
    }

    #[test]
    fn a_device_loads_the_newest_code_that_it_runs() {
        let mut kernel = fill("a.rs".into());
        kernel.images = ["sm_75", "sm_90a", "sm_80"]
            .map(|arch| ImageFile { arch: arch.parse().unwrap(), file: arch.into() })
            .to_vec();
        let chosen = |capability| kernel.image_for(capability).map(|image| image.arch.as_str());
        assert_eq!(chosen((9, 0)), Some("sm_90a"));
        assert_eq!(chosen((10, 0)), Some("sm_80"));
        assert_eq!(chosen((7, 5)), Some("sm_75"));
        assert_eq!(chosen((7, 0)), None);
    }
}
