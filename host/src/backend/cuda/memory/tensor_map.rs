//! The driver's tensor maps (`CUtensorMap`).

use std::ffi::c_uint;

use cudarc::driver::sys::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};
use ferrogrid_device::AXES;

use crate::backend::cuda::device::CudaDevice;
use crate::backend::memory::tensor_map::{Encoded, Tiled};
use crate::error::Result;

impl CudaDevice {
    /// The tensor map of a tensor; one that is not used if nothing could read it.
    pub(crate) fn encode(&self, tiled: &Tiled) -> Result<Encoded> {
        let mut encoded = Encoded::UNUSED;
        let Tiled { start, element, rank, extent, pitch, form } = *tiled;
        if self.capability() < (9, 0) || extent.contains(&0) {
            return Ok(encoded);
        }
        self.bind()?;
        // The hardware copies bits, and fills with zeros beyond the edges; it adds numbers.
        let kind = match element {
            4 if form.is_float => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            8 if form.is_float => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            1 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            2 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            4 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            _ => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        };
        // What reads a tile knows its layout by the same rule.
        let swizzle = if form.lengths[0] as usize * element == 128 {
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B
        } else {
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE
        };
        let lengths = extent.map(|axis| axis as u64);
        // The bytes from one row to the next, from one layer to the next, and so on.
        let mut strides = [(pitch * element) as u64; AXES - 1];
        for axis in 1..AXES - 1 {
            strides[axis] = strides[axis - 1] * lengths[axis];
        }
        // SAFETY: all are valid for the call, with lengths of at least that rank.
        let code = unsafe {
            self.driver().tensor_map_encode(
                (&raw mut encoded).cast(),
                kind as c_uint,
                rank as c_uint,
                start.cast_mut().cast(),
                lengths.as_ptr(),
                strides.as_ptr(),
                form.lengths.as_ptr(),
                [1; AXES].as_ptr(),
                CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE as c_uint,
                swizzle as c_uint,
                CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B as c_uint,
                CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE as c_uint,
            )?
        };
        self.check(code, &format_args!("{:?} elements of {element} bytes", &extent[..rank]))?;
        Ok(encoded)
    }
}
