//! NVIDIA's libdevice, the bitcode of mathematical functions that nvcc uses: its location on this machine,
//! and how it is linked into device code. Its licence forbids redistribution, so the installed file is used.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::options::{Math, variables};
use crate::toolchain::cuda_toolkit;

const FILE: &str = "libdevice.10.bc";

/// The first bytes of LLVM bitcode.
const MAGIC: [u8; 4] = [b'B', b'C', 0xC0, 0xDE];

/// The variable that names the file.
const NAMED: &str = "FERROGRID_LIBDEVICE";

/// The variables that determine its location; cargo reruns the build step when one changes.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    [NAMED].into_iter().chain(cuda_toolkit::VARIABLES)
}

/// libdevice on this machine: the file that `FERROGRID_LIBDEVICE` names, else that of the CUDA toolkit in
/// `CUDA_HOME`, `CUDA_PATH` or a usual folder, else that of the PyPI package `nvidia-nvvm` or of conda's
/// toolkit in the active environment. `None` if it is not installed.
///
/// # Errors
/// [`Error::BadLibdevice`] if the variable names something else than LLVM bitcode.
pub fn find() -> Result<Option<PathBuf>, Error> {
    if let Some(named) = variables::path(NAMED) {
        return checked(named).map(Some);
    }
    Ok(places(variables::value).into_iter().find(|place| is_bitcode(place)))
}

/// The file for a build whose choice is `math`; `None` means `libm`.
pub(crate) fn choose(math: Option<Math>, explicit: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    if math == Some(Math::Libm) {
        return Ok(None);
    }
    let found = match explicit {
        Some(named) => Some(checked(named.to_owned())?),
        None => find()?,
    };
    if found.is_none() && math == Some(Math::Libdevice) {
        return Err(Error::NoLibdevice { places: places(variables::value) });
    }
    Ok(found)
}

fn checked(file: PathBuf) -> Result<PathBuf, Error> {
    if is_bitcode(&file) { Ok(file) } else { Err(Error::BadLibdevice { file }) }
}

fn is_bitcode(file: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
}

/// The places where it may be, the preferred first.
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let roots = cuda_toolkit::roots(variable);
    let mut places: Vec<PathBuf> = roots.iter().map(|root| root.join("nvvm/libdevice").join(FILE)).collect();
    // Debian's and Ubuntu's package.
    places.push(Path::new("/usr/lib/nvidia-cuda-toolkit/libdevice").join(FILE));
    places
}

/// Adds the bitcode to an rlib as one more object of its crate, so that rustc's LTO sees it.
///
/// The name `.rcgu.o` makes it an object of the crate, and is short enough for the header. An archive is a
/// sequence of headers and contents, to which a member can be appended; crates that write archives would
/// write all of it anew.
pub(crate) fn add_to(rlib: &Path, libdevice: &Path) -> Result<(), Error> {
    let bitcode = fs::read(libdevice).map_err(Error::io("read", libdevice))?;
    let size = rlib.metadata().map_err(Error::io("read", rlib))?.len();
    let mut archive = fs::OpenOptions::new().append(true).open(rlib).map_err(Error::io("open", rlib))?;
    let mut member = vec![b'\n'; usize::from(size % 2 == 1)];
    let length = bitcode.len();
    // Name, time, owner, group, mode, size: fixed widths, 60 bytes.
    let header = format!("{:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n", "nvmath.rcgu.o/", 0, 0, 0, 644);
    member.extend(header.into_bytes());
    member.extend(&bitcode);
    member.extend(vec![b'\n'; usize::from(length % 2 == 1)]);
    archive.write_all(&member).map_err(Error::io("write", rlib))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitcode(folder: &Path, content: &[u8]) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(FILE), content).unwrap();
        folder.join(FILE)
    }

    #[test]
    fn toolkits_and_python_environments_are_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        let toolkit = bitcode(&dir.path().join("cuda/nvvm/libdevice"), b"BC\xC0\xDE");
        let site = "venv/lib/python3.11/site-packages/nvidia/cu13/nvvm/libdevice";
        let python = bitcode(&dir.path().join(site), b"BC\xC0\xDE");
        let places = places(|name| match name {
            "CUDA_PATH" => Some(dir.path().join("cuda").into()),
            "VIRTUAL_ENV" => Some(dir.path().join("venv").into()),
            _ => None,
        });
        assert_eq!(places[0], toolkit);
        assert!(places.contains(&python), "{places:?}");
        assert_eq!(places.into_iter().find(|place| is_bitcode(place)), Some(toolkit));
    }

    #[test]
    fn a_named_libdevice_must_be_bitcode() {
        let dir = tempfile::tempdir().unwrap();
        let text = bitcode(dir.path(), b"text");
        let error = choose(None, Some(&text)).unwrap_err().to_string();
        assert!(error.contains(FILE) && error.contains("FERROGRID_LIBDEVICE"), "{error}");
        assert_eq!(choose(Some(Math::Libm), Some(&text)).unwrap(), None, "libm needs none");
        let right = bitcode(&dir.path().join("right"), b"BC\xC0\xDE and more");
        assert_eq!(choose(None, Some(&right)).unwrap(), Some(right));
    }

    #[test]
    fn an_archive_gets_one_more_member() {
        let dir = tempfile::tempdir().unwrap();
        let bitcode = bitcode(dir.path(), b"BC\xC0\xDE!");
        let rlib = dir.path().join("x.rlib");
        // Seven bytes in the last member: it is padded.
        fs::write(&rlib, "!<arch>\nodd").unwrap();
        add_to(&rlib, &bitcode).unwrap();
        let made = fs::read(&rlib).unwrap();
        let header = "nvmath.rcgu.o/  0           0     0     644     5         `\n";
        assert_eq!(header.len(), 60);
        assert_eq!(made, [b"!<arch>\nodd\n", header.as_bytes(), b"BC\xC0\xDE!\n"].concat());
    }
}
