//! Where the code of a loaded program or library lies in memory.

/// The code of one program or library; not known for all.
#[derive(Clone, Copy)]
pub(super) struct Code {
    start: usize,
    end: usize,
}

impl Code {
    /// No code at all.
    pub(super) const NONE: Code = Code { start: 0, end: 0 };

    #[inline]
    pub(super) fn contains(self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// That of the program or library that `address` belongs to. Where libc is part of it, so is the
    /// allocator, and the two cannot be distinguished: then it counts as unknown.
    #[cfg(all(target_os = "linux", not(target_feature = "crt-static")))]
    pub(super) fn around(address: usize) -> Code {
        let mut search = Search { address, found: Code::NONE };
        // SAFETY: `visit` has the form that is asked for, and what it gets as its data is `search`.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.found
    }

    #[cfg(not(all(target_os = "linux", not(target_feature = "crt-static"))))]
    pub(super) fn around(_: usize) -> Code {
        Code::NONE
    }
}

#[cfg(all(target_os = "linux", not(target_feature = "crt-static")))]
struct Search {
    address: usize,
    found: Code,
}

/// Looks through the segments of one program or library; 1 ends the search.
///
/// # Safety
/// `info` is the loader's, and `search` points to a [`Search`] that nothing else uses meanwhile.
#[cfg(all(target_os = "linux", not(target_feature = "crt-static")))]
unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    search: *mut std::ffi::c_void,
) -> libc::c_int {
    // SAFETY: the loader passes valid information, and the data that it was given.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: these are the program headers, so many of them.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let executable = |flags: u32| flags & libc::PF_X != 0;
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && executable(header.p_flags))
    {
        let start = info.dlpi_addr as usize + header.p_vaddr as usize;
        let code = Code { start, end: start + header.p_memsz as usize };
        if code.contains(search.address) {
            search.found = code;
            return 1;
        }
    }
    0
}

#[cfg(all(test, target_os = "linux", not(target_feature = "crt-static")))]
mod tests {
    use super::*;

    #[test]
    fn own_code_is_distinguished_from_that_of_libc() {
        let own = Code::around(own_code_is_distinguished_from_that_of_libc as fn() as usize);
        assert!(own.contains(Code::contains as fn(Code, usize) -> bool as usize));
        let allocator = libc::malloc as unsafe extern "C" fn(usize) -> *mut std::ffi::c_void as usize;
        assert!(Code::around(allocator).contains(allocator) && !own.contains(allocator));
    }

    #[test]
    fn addresses_outside_code_are_in_no_segment() {
        let data = 0_u32;
        assert!(!Code::around(&raw const data as usize).contains(&raw const data as usize));
    }
}
