//! Launches and streams with attributes, and attributes of graphs' nodes.

use std::ffi::c_uint;
use std::ptr::{from_ref, null_mut};

use cudarc::driver::sys::{CUlaunchAttribute, CUlaunchAttributeValue, CUlimit};

use super::CudaStream;
use super::event::CudaEvent;
use crate::backend::cuda::device::CudaDevice;
use crate::backend::cuda::module::function;
use crate::backend::{
    AccessPolicyWindow, AccessProperty, DeviceBackend, EventBackend, Launch, LaunchConfig, MemorySyncDomain,
};
use crate::error::Result;
use crate::kernel::Kernel;

/// The most attributes that a launch of this crate has.
const MOST: usize = 7;

/// `CUlaunchAttributeID`; cudarc's enumeration is that of one version of CUDA.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Id {
    Ignore = 0,
    AccessPolicyWindow = 1,
    Cooperative = 2,
    ClusterDimension = 4,
    ProgrammaticStreamSerialization = 6,
    Priority = 8,
    MemorySyncDomain = 10,
    LaunchCompletionEvent = 12,
}

/// `CUlaunchAttribute`, and `CUstreamAttrID` with its value, which are the same.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Attribute {
    id: Id,
    pad: u32,
    value: [u64; 8],
}

const _: () = assert!(size_of::<Attribute>() == size_of::<CUlaunchAttribute>());
const _: () = assert!(align_of::<Attribute>() == align_of::<CUlaunchAttribute>());

impl Attribute {
    /// With `value`, four bytes each.
    fn new<const N: usize>(id: Id, value: [u32; N]) -> Self {
        const { assert!(N <= 8) };
        let mut words = [0; 8];
        for (index, part) in value.into_iter().enumerate() {
            words[index / 2] |= u64::from(part) << (32 * (index % 2));
        }
        Attribute { id, pad: 0, value: words }
    }

    pub(crate) fn cluster(cluster: [u32; 3]) -> Self {
        Attribute::new(Id::ClusterDimension, cluster)
    }

    /// With no flags: to be recorded as `cuEventRecord` does.
    fn completion_event(event: &CudaEvent) -> Self {
        let [low, high] = words(event.as_raw().addr());
        Attribute::new(Id::LaunchCompletionEvent, [low, high, 0])
    }

    pub(super) fn memory_sync_domain(domain: MemorySyncDomain) -> Self {
        let number = match domain {
            MemorySyncDomain::Default => 0,
            MemorySyncDomain::Remote => 1,
        };
        Attribute::new(Id::MemorySyncDomain, [number])
    }

    /// One of no bytes is none.
    pub(super) fn access_policy_window(window: Option<AccessPolicyWindow>) -> Self {
        let Some(window) = window else { return Attribute::new(Id::AccessPolicyWindow, [0; 8]) };
        let ([start, start_high], [bytes, bytes_high]) = (words(window.start), words(window.bytes));
        let hit = match window.hit {
            AccessProperty::Normal => 0,
            AccessProperty::Streaming => 1,
            AccessProperty::Persisting => 2,
        };
        let (ratio, miss) = (window.hit_ratio.to_bits(), u32::from(window.streaming_misses));
        Attribute::new(Id::AccessPolicyWindow, [start, start_high, bytes, bytes_high, ratio, hit, miss, 0])
    }

    pub(crate) fn id(&self) -> c_uint {
        self.id as c_uint
    }

    pub(crate) fn value(&self) -> *const CUlaunchAttributeValue {
        from_ref(&self.value).cast()
    }
}

/// The two halves of an address or a size.
fn words(number: usize) -> [u32; 2] {
    [number as u64 as u32, (number as u64 >> 32) as u32]
}

/// The attributes of a launch as the driver takes them, on the stack: launches allocate nothing.
pub(crate) struct AttributeList {
    list: [Attribute; MOST],
    len: usize,
}

impl AttributeList {
    /// Those in which a launch of `kernel` differs from all that have none.
    pub(crate) fn new(kernel: &Kernel, config: &LaunchConfig) -> Self {
        let (attributes, window) = (config.attributes(), config.attributes().access_policy_window);
        let mut all = AttributeList { list: [Attribute::new(Id::Ignore, [0]); MOST], len: 0 };
        let flag = |id, on: bool| on.then(|| Attribute::new(id, [1]));
        let priority = |priority: i32| Attribute::new(Id::Priority, [priority.cast_unsigned()]);
        let asked = [
            flag(Id::Cooperative, attributes.cooperative),
            config.stated_cluster(kernel).map(Attribute::cluster),
            flag(Id::ProgrammaticStreamSerialization, attributes.dependent_launch),
            attributes.priority.map(priority),
            attributes.memory_sync_domain.map(Attribute::memory_sync_domain),
            window.map(|window| Attribute::access_policy_window(Some(window))),
        ];
        asked.into_iter().flatten().for_each(|attribute| all.push(attribute));
        all
    }

    fn push(&mut self, attribute: Attribute) {
        self.list[self.len] = attribute;
        self.len += 1;
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [Attribute] {
        &mut self.list[..self.len]
    }
}

impl CudaStream {
    /// Enqueues a function with attributes (`cuLaunchKernelEx`).
    ///
    /// # Safety
    /// As for `launch`.
    #[cold]
    pub(super) unsafe fn launch_with_attributes(&self, launch: Launch<'_>) -> Result<()> {
        self.bind()?;
        let (kernel, function) = (launch.kernel, launch.prepared.function.cast());
        let mut config = *launch.config;
        if let Some(attributes) = config.attributes.as_mut().filter(|it| it.dependent_launch) {
            attributes.dependent_launch = self.device().can_wait_for_launches(function)?;
        }
        let mut list = AttributeList::new(kernel, &config);
        // Held until the launch is enqueued.
        let event = config.attributes().completion_event;
        let event = event
            .map(|event| event.checked(kernel.name(), DeviceBackend::Cuda(self.device())))
            .transpose()?;
        if let Some(EventBackend::Cuda(event)) = event.as_deref() {
            self.driver().require("CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT", (12, 3))?;
            list.push(Attribute::completion_event(event));
        }
        // Within the device's limit.
        let shared = config.shared_bytes as c_uint;
        let mut raw = function::config(config.grid, config.block, shared, list.as_mut_slice());
        let stream = self.enter()?;
        raw.hStream = stream.raw;
        let params = launch.params.as_ptr().cast_mut().cast();
        // SAFETY: the context of function and stream is bound; the attributes are valid for the call; the
        // caller vouches for the parameters, which the driver copies (it does not write through them).
        let code = unsafe { self.driver().launch_with_attributes(&raw, function, params, null_mut())? };
        self.finish_launch(code.code, launch)?;
        if let Some(EventBackend::Cuda(event)) = event.as_deref() {
            event.note_recorded();
        }
        Ok(())
    }

    /// Sets an attribute for later launches.
    pub(super) fn set_attribute(&self, attribute: Attribute, object: &str) -> Result<()> {
        // SAFETY: the stream is live, and the value is that of this attribute; streams and launches number them alike.
        self.enqueue(object, |stream| unsafe {
            self.driver().stream_set_attribute(stream, attribute.id(), attribute.value())
        })
    }
}

const PERSISTING_L2_CACHE_SIZE: c_uint = CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE as c_uint;

impl CudaDevice {
    pub(crate) fn set_persisting_l2_cache_size(&self, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: a context is bound.
        let code = unsafe { self.driver().set_limit(PERSISTING_L2_CACHE_SIZE, bytes)? };
        self.check(code, &format!("{bytes} bytes of second-level cache that persist"))
    }

    pub(crate) fn reset_persisting_l2_cache(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: a context is bound.
        let code = unsafe { self.driver().reset_persisting()? };
        self.check(code, "")
    }
}
