//! Kernels that call functions of other device code: their native counterparts on the CPU device, and the
//! linked code itself on each GPU that is present. Linkers that need no GPU are tested where they are
//! installed.

use ferrogrid::prelude::*;
use ferrogrid::{CodeType, ForeignError, KernelError, LinkInput, NvJitLink};

/// The code of the functions, in PTX.
const OFFSET: &str = include_str!("offset.ptx");

#[ferrogrid::module]
mod named {
    use ferrogrid::device::prelude::*;

    #[link(file = "offset.ptx")]
    unsafe extern "C" {
        /// 100 times the index, and 1.
        #[native(native_offset)]
        safe fn offset(index: u32) -> u32;
        #[native(native_store)]
        fn store(x: *mut f32, value: f32);
    }

    fn native_offset(index: u32) -> u32 {
        100 * index + 1
    }

    unsafe fn native_store(x: *mut f32, value: f32) {
        // SAFETY: the caller's.
        unsafe { x.write(value) }
    }

    /// Through a helper function of the module.
    fn shifted(index: u32) -> u32 {
        offset(index) + 1
    }

    #[kernel]
    pub fn offsets(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = shifted(x[i.get()]);
        }
    }

    #[kernel]
    pub fn stores(t: Thread<1>, mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            // SAFETY: the element is this thread's alone.
            unsafe { store(y, i.get() as f32) };
        }
    }
}

/// In a separate image, so that other kernels load without it. The module names no file for its function.
#[ferrogrid::module]
mod given {
    use ferrogrid::device::prelude::*;

    unsafe extern "C" {
        #[link_name = "late_offset"]
        fn hundreds(index: u32) -> u32;
    }

    #[kernel]
    pub fn given_offsets(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            // SAFETY: it has no requirements.
            *y = unsafe { hundreds(i.get() as u32) };
        }
    }
}

#[ferrogrid::module]
mod others {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn ones(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = 1;
        }
    }
}

fn devices() -> Vec<Device> {
    let gpus = (0..Device::count()).map(|number| Device::cuda(number).unwrap());
    gpus.chain([Device::cpu()]).collect()
}

#[test]
fn functions_of_a_named_file_are_called() {
    for device in devices() {
        let stream = device.new_stream().unwrap();
        let x = stream.upload(&[7_u32, 0, 2]).unwrap();
        let (mut y, mut z) = (stream.zeros(3).unwrap(), stream.zeros(3).unwrap());
        named::offsets(&stream, Grid::cover(3), &x, &mut y).unwrap();
        named::stores(&stream, Grid::cover(3), &mut z).unwrap();
        assert_eq!(stream.download(&y).unwrap(), [702, 2, 202], "{device}");
        assert_eq!(stream.download(&z).unwrap(), [0.0, 1.0, 2.0], "{device}");
        // A panic is still reported for the kernel.
        let few = stream.zeros::<u32>(1).unwrap();
        named::offsets(&stream, Grid::cover(3), &few, &mut y).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(matches!(error, Error::KernelPanic { .. }), "{error}");
    }
}

#[test]
fn unnamed_functions_are_linked_at_run_time_or_an_error() {
    let mut is_given = false;
    for device in devices() {
        let stream = device.new_stream().unwrap();
        let mut y = stream.zeros(3).unwrap();
        let launched =
            given::given_offsets(&stream, Grid::cover(3), &mut y).and_then(|()| stream.download(&y));
        if !device.is_cuda() {
            let error = launched.unwrap_err();
            let Error::Kernel(KernelError::NoNativeFunction { kernel, function, .. }) = error else {
                panic!("{error}")
            };
            assert!(kernel.ends_with("given_offsets") && function == "late_offset", "{kernel} {function}");
            assert!(error.to_string().contains("externs/main.rs"), "{error}");
        } else if !is_given {
            let Err(Error::Foreign(ForeignError::UnresolvedFunctions { functions })) = launched else {
                panic!("{launched:?}")
            };
            assert_eq!(*functions, ["late_offset".into()]);
            let kernel = given::given_offsets::kernel();
            let code = OFFSET.replace("offset", "late_offset");
            kernel.link_with([LinkInput::from_bytes("late_offset.ptx", code.as_bytes()).unwrap()]).unwrap();
            given::given_offsets(&stream, Grid::cover(3), &mut y).unwrap();
            assert_eq!(stream.download(&y).unwrap(), [1, 101, 201]);
            let again = kernel.link_with([]).unwrap_err();
            assert!(matches!(again, Error::Foreign(ForeignError::AlreadyLinked { .. })), "{again}");
            is_given = true;
        } else {
            assert_eq!(launched.unwrap(), [1, 101, 201]);
        }
        others::ones(&stream, Grid::cover(3), &mut y).unwrap();
        assert_eq!(stream.download(&y).unwrap(), [1; 3]);
    }
}

#[test]
fn the_text_declares_the_functions_and_links_with_their_code() {
    let text = |kernel: &ferrogrid::Kernel| kernel.ptx().expect("device code");
    let named = text(named::offsets::kernel());
    assert!(
        named.contains(".extern .func") && named.contains("offset") && !named.contains("hundreds"),
        "{named}"
    );
    assert!(!text(others::ones::kernel()).contains("offset"), "others are in an image of their own");
    let given = text(given::given_offsets::kernel());
    assert!(given.contains("late_offset") && !given.contains("stores"), "each module has one: {given}");
    let link = |with_code: bool| -> ferrogrid::Result<Vec<u8>> {
        let mut link = NvJitLink::new(&["-arch=sm_90"])?;
        link.add(CodeType::Ptx, "kernels", named.as_bytes())?;
        if with_code {
            link.add(CodeType::Ptx, "offset.ptx", OFFSET.as_bytes())?;
        }
        Ok(link.complete()?.cubin)
    };
    match link(true) {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => eprintln!("nvJitLink is not installed"),
        cubin => {
            assert!(cubin.unwrap().starts_with(b"\x7fELF"));
            assert!(link(false).unwrap_err().to_string().contains("offset"));
        }
    }
}
