//! Launches with attributes, in streams and as nodes of graphs. It must not know who asks for them.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUfunction, CUlaunchAttribute, CUlaunchAttributeID as Id, CUlaunchAttributeValue};

use super::driver::Code;
use super::foreign::LoadedFunction;
use super::function;
use super::stream::CudaStream;
use crate::error::Result;
use crate::grid::LaunchShape;
use crate::kernel::Kernel;
use crate::launch_attributes::LaunchAttributes;

/// As many as a launch of ours can have.
const MOST: usize = 3;

/// The attributes of a launch as the driver takes them, on the stack: launches allocate nothing.
pub(super) struct AttributeList {
    list: [CUlaunchAttribute; MOST],
    len: usize,
}

impl AttributeList {
    /// Those in which `attributes` differ from those of every launch.
    pub(super) fn new(attributes: LaunchAttributes) -> Self {
        let mut all =
            AttributeList { list: [attribute(Id::CU_LAUNCH_ATTRIBUTE_IGNORE, |_| ()); MOST], len: 0 };
        if attributes.cooperative {
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, |value| value.cooperative = 1));
        }
        if attributes.cluster != [1; 3] {
            all.push(function::cluster_attribute(attributes.cluster));
        }
        if let Some(priority) = attributes.priority {
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, |value| value.priority = priority));
        }
        all
    }

    fn push(&mut self, attribute: CUlaunchAttribute) {
        self.list[self.len] = attribute;
        self.len += 1;
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [CUlaunchAttribute] {
        &mut self.list[..self.len]
    }
}

fn attribute(id: Id, set: impl FnOnce(&mut CUlaunchAttributeValue)) -> CUlaunchAttribute {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    set(&mut value);
    CUlaunchAttribute { id, pad: [0; 4], value }
}

impl CudaStream {
    /// Enqueues a foreign function; `kernel` is its name for errors.
    ///
    /// # Safety
    /// `function` is of this stream's device; `params` has the address of a value for each of its
    /// parameters, of its size; the memory that they lead to is ordered here for what the function does.
    pub(crate) unsafe fn launch_function(
        &self,
        function: LoadedFunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        attributes: LaunchAttributes,
        params: &[*const c_void],
    ) -> Result<()> {
        if attributes == LaunchAttributes::NONE {
            // SAFETY: passed on.
            return unsafe { self.launch(function.as_raw(), kernel, shape, params) };
        }
        // SAFETY: passed on.
        unsafe { self.launch_with_attributes(function.as_raw().cast(), kernel, shape, attributes, params) }
    }

    /// Enqueues a function with attributes (`cuLaunchKernelEx`).
    ///
    /// # Safety
    /// As for `launch`.
    #[cold]
    pub(super) unsafe fn launch_with_attributes(
        &self,
        function: CUfunction,
        kernel: &'static Kernel,
        shape: &LaunchShape,
        attributes: LaunchAttributes,
        params: &[*const c_void],
    ) -> Result<()> {
        self.bind()?;
        let params = params.as_ptr().cast_mut().cast();
        let mut list = AttributeList::new(attributes);
        // Within the device's limit.
        let shared = shape.shared_bytes as c_uint;
        let mut config = function::config(shape.grid, shape.block, shared, list.as_mut_slice());
        let stream = self.enter()?;
        config.hStream = stream.raw;
        // SAFETY: the context of function and stream is bound; the attributes are valid for the call; the
        // caller vouches for the parameters, which the driver copies (it does not write through them).
        let code = unsafe { self.driver().launch_with_attributes(&config, function, params, null_mut())? };
        match code {
            Code::SUCCESS => self.watch().recent().note(kernel, shape.site),
            Code::COOPERATIVE_LAUNCH_TOO_LARGE => return Err(self.too_many_blocks(function, kernel, shape)),
            Code::INVALID_CLUSTER_SIZE => return Err(self.cluster_too_large(function, kernel, shape)),
            code => return Err(self.launch_error(code, function, kernel, shape.block)),
        }
        Ok(())
    }
}
