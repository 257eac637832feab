//! CUDA arrays, and their texture and surface objects.

use std::ffi::c_uint;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{
    CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_READ_AS_INTEGER, CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_ARRAY3D_SURFACE_LDST, CUDA_MEMCPY3D, CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC, CUaddress_mode, CUarray,
    CUarray_format, CUcontext, CUfilter_mode, CUmemorytype, CUresourcetype, CUsurfObject, CUtexObject,
};
use ferrogrid_device::{AddressMode, FilterMode, Format};

use crate::backend::cuda::device::{CudaDevice, Handle, address, bind};
use crate::backend::cuda::stream::CudaStream;
use crate::backend::memory::array::{ArrayShape, TextureObject};
use crate::backend::operation::{MemoryCopy, Place, Side};
use crate::error::Result;
use crate::sync::lock;

/// A CUDA array. Its last owner is dropped when no work uses it any more.
pub(crate) struct CudaArray {
    device: &'static CudaDevice,
    context: Handle<CUcontext>,
    raw: Handle<CUarray>,
    objects: Mutex<Objects>,
}

/// What has been made of an array; each lives as long as it does.
#[derive(Default)]
struct Objects {
    textures: Vec<(TextureObject, CUtexObject)>,
    surface: Option<CUsurfObject>,
}

impl CudaArray {
    /// An array, whose elements are not initialised.
    pub(crate) fn new(device: &'static CudaDevice, shape: &ArrayShape) -> Result<Self> {
        device.bind()?;
        let context = Handle(device.context()?);
        // A height or depth of 0 means that there is no such axis.
        let along = |axis: usize| if axis < shape.rank { shape.extent[axis] } else { 0 };
        let description = CUDA_ARRAY3D_DESCRIPTOR {
            Width: along(0),
            Height: along(1),
            Depth: along(2),
            Format: format(shape.format),
            NumChannels: shape.channels as c_uint,
            Flags: if shape.has_surface { CUDA_ARRAY3D_SURFACE_LDST } else { 0 },
        };
        let bytes = shape.bytes();
        // SAFETY: both are valid for the call, and the context is bound.
        let raw = device.get_memory(bytes, |driver, to| unsafe { driver.array_create(to, &description) })?;
        Ok(CudaArray { device, context, raw: Handle(raw), objects: Mutex::default() })
    }

    pub(crate) fn as_raw(&self) -> CUarray {
        self.raw.0
    }

    /// The texture object for such reads, created at the first call.
    pub(crate) fn texture(&self, object: TextureObject) -> Result<*const ()> {
        let mut objects = lock(&self.objects);
        if let Some((_, raw)) = objects.textures.iter().find(|(known, _)| *known == object) {
            return Ok(as_parameter(*raw));
        }
        self.device.bind()?;
        let integers = if object.gives_integers { CU_TRSF_READ_AS_INTEGER } else { 0 };
        let coordinates = if object.has_normalized_coordinates { CU_TRSF_NORMALIZED_COORDINATES } else { 0 };
        let description = CUDA_TEXTURE_DESC {
            addressMode: object.addresses.map(address_mode),
            filterMode: filter_mode(object.filter),
            flags: integers | coordinates,
            maxAnisotropy: 0,
            mipmapFilterMode: CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            mipmapLevelBias: 0.0,
            minMipmapLevelClamp: 0.0,
            maxMipmapLevelClamp: 0.0,
            borderColor: [0.0; 4],
            reserved: [0; 12],
        };
        let (mut raw, resource) = (0, self.resource());
        // SAFETY: all are valid for the call, and the array is live.
        let code = unsafe { self.device.driver().texture_create(&mut raw, &resource, &description, null()) };
        self.device.check(code, &format_args!("{object:?}"))?;
        objects.textures.push((object, raw));
        Ok(as_parameter(raw))
    }

    /// The surface object for writes, created at the first call.
    pub(crate) fn surface(&self) -> Result<*const ()> {
        let mut objects = lock(&self.objects);
        if let Some(raw) = objects.surface {
            return Ok(as_parameter(raw));
        }
        self.device.bind()?;
        let (mut raw, resource) = (0, self.resource());
        // SAFETY: both are valid for the call, and the array is live.
        let code = unsafe { self.device.driver().surface_create(&mut raw, &resource) };
        self.device.check(code, "")?;
        objects.surface = Some(raw);
        Ok(as_parameter(raw))
    }

    fn resource(&self) -> CUDA_RESOURCE_DESC {
        // SAFETY: numbers, pointers and enums that have a 0; the driver wants 0 in what is not used.
        let mut resource = unsafe { MaybeUninit::<CUDA_RESOURCE_DESC>::zeroed().assume_init() };
        resource.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
        resource.res.array.hArray = self.raw.0;
        resource
    }
}

impl Drop for CudaArray {
    fn drop(&mut self) {
        let driver = self.device.driver();
        // A reset has taken the array and its objects with it.
        if self.device.check_not_reset().and_then(|()| bind(driver, self.context.0)).is_err() {
            return;
        }
        let objects = self.objects.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: all are live, created by this array, and no longer in use. A failure means that the
        // context is gone, and they with it.
        unsafe {
            for (_, texture) in &objects.textures {
                let _ = driver.texture_destroy(*texture);
            }
            if let Some(surface) = objects.surface {
                let _ = driver.surface_destroy(surface);
            }
            let _ = driver.array_destroy(self.raw.0);
        }
    }
}

impl CudaStream {
    /// # Safety
    /// As for `StreamMemory::copy`.
    pub(super) unsafe fn copy_array(&self, copy: &MemoryCopy) -> Result<()> {
        let params = copy_params(copy);
        self.enqueue(format_args!("{} bytes", copy.bytes()), |stream| {
            // SAFETY: `params` is valid for the call; the caller vouches for what it leads to.
            unsafe { self.driver().copy_3d(&params, stream) }
        })
    }
}

/// A copy as the driver wants it.
pub(crate) fn copy_params(copy: &MemoryCopy) -> CUDA_MEMCPY3D {
    let (rows, from, to) = (copy.rows, DriverSide::of(copy.source), DriverSide::of(copy.target));
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: from.host.cast(),
        srcDevice: from.device,
        srcArray: from.array,
        reserved0: null_mut(),
        srcPitch: rows.source_pitch,
        srcHeight: rows.height,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: to.host.cast(),
        dstDevice: to.device,
        dstArray: to.array,
        reserved1: null_mut(),
        dstPitch: rows.target_pitch,
        dstHeight: rows.height,
        WidthInBytes: rows.width,
        Height: rows.height,
        Depth: copy.layers,
    }
}

/// A side of a copy as the driver wants it.
pub(super) struct DriverSide {
    pub(super) kind: CUmemorytype,
    pub(super) host: *mut u8,
    pub(super) device: u64,
    pub(super) array: CUarray,
}

impl DriverSide {
    pub(super) fn of(side: Side) -> Self {
        let (host, array) = (null_mut(), null_mut());
        match side {
            Side::Memory(Place::Host, start) => {
                DriverSide { kind: CUmemorytype::CU_MEMORYTYPE_HOST, host: start.0, device: 0, array }
            }
            // This crate counts memory of a pool on the host as the device's. For the driver it is not, so the type is `UNIFIED`, with
            // which the driver finds out.
            Side::Memory(Place::Device, start) => {
                let device = address(start.0);
                DriverSide { kind: CUmemorytype::CU_MEMORYTYPE_UNIFIED, host, device, array }
            }
            Side::Array(handle) => {
                let array = handle.0.cast();
                DriverSide { kind: CUmemorytype::CU_MEMORYTYPE_ARRAY, host, device: 0, array }
            }
        }
    }
}

/// An object as the kernel's parameter, which is as wide as a pointer.
fn as_parameter(object: u64) -> *const () {
    std::ptr::without_provenance(object as usize)
}

fn format(format: Format) -> CUarray_format {
    match format {
        Format::U8 => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        Format::I8 => CUarray_format::CU_AD_FORMAT_SIGNED_INT8,
        Format::U16 => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16,
        Format::I16 => CUarray_format::CU_AD_FORMAT_SIGNED_INT16,
        Format::U32 => CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32,
        Format::I32 => CUarray_format::CU_AD_FORMAT_SIGNED_INT32,
        Format::F16 => CUarray_format::CU_AD_FORMAT_HALF,
        Format::F32 => CUarray_format::CU_AD_FORMAT_FLOAT,
    }
}

fn address_mode(mode: AddressMode) -> CUaddress_mode {
    match mode {
        AddressMode::Clamp => CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
        AddressMode::Wrap => CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
        AddressMode::Mirror => CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
        AddressMode::Border => CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
    }
}

fn filter_mode(mode: FilterMode) -> CUfilter_mode {
    match mode {
        FilterMode::Point => CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        FilterMode::Linear => CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
    }
}
