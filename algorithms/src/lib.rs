//! Device-wide algorithms as typed functions, with the kernels compiled into this crate.
//!
//! A function takes a stream and buffers or views of memory there, of `i8` to `i64`, `u8` to `u64`, `f32` or `f64`, and with the feature
//! `half` of `f16` or `bf16`. It works in stream order, on a GPU or the CPU device, and can be recorded in a graph if it returns no value to the host
//! (`sum_into`, not `sum`).
//!
//! | function | CUB | CuPy | CUDA's Thrust |
//! |---|---|---|---|
//! | [`sum`], [`sum_into`] | `DeviceReduce::Sum` | `x.sum()` | `reduce` |
//! | [`product`], [`product_into`] | `DeviceReduce::Reduce` | `x.prod()` | `reduce` with `multiplies` |
//! | [`dot`], [`dot_into`] | | `cupy.dot` | `inner_product` |
//! | [`min`], [`min_into`], [`max`], [`max_into`] | `DeviceReduce::Min`, `Max` | `cupy.nanmin`, `nanmax` | `min_element`, `max_element` |
//! | [`argmin`], [`argmin_into`], [`argmax`], [`argmax_into`] | `DeviceReduce::ArgMin`, `ArgMax` | `cupy.nanargmin`, `nanargmax` | `min_element`, `max_element` |
//! | [`sum_by_key`], [`min_by_key`], [`max_by_key`], [`sum_by_key_into`], .. | `DeviceReduce::ReduceByKey` | | `reduce_by_key` |
//! | [`segmented_sum`], [`segmented_min`], [`segmented_max`] | `DeviceSegmentedReduce::Sum`, `Min`, `Max` | `numpy.add.reduceat` | |
//! | [`row_sums`], [`row_means`], [`row_minima`], [`row_maxima`] | | `x.sum(axis=1)`, `mean`, `nanmin`, `nanmax` | |
//! | [`column_sums`], [`column_means`], [`column_minima`], [`column_maxima`] | | `x.sum(axis=0)`, `mean`, `nanmin`, `nanmax` | |
//! | [`count`], [`count_into`], [`count_nonzero`], [`count_nonzero_into`] | | `cupy.count_nonzero` | `count` |
//! | [`all`], [`all_into`], [`any`], [`any_into`] | | `x.all()`, `x.any()` | `all_of`, `any_of` |
//! | [`mean`], [`mean_into`], [`variance`], [`variance_into`], [`moments`], [`moments_into`] | | `x.mean()`, `x.var()` | |
//! | [`asum`], [`asum_into`], [`nrm2`], [`nrm2_into`], [`amax`], [`amax_into`] | (cuBLAS) | `cupy.linalg.norm` | |
//! | [`sequence`], [`reverse`], [`roll`] | | `cupy.arange`, `x[::-1]`, `cupy.roll` | `sequence`, `reverse_copy` |
//! | [`gather`], [`scatter`] | | `x.take(indices)`, `y[indices] = x` | `gather`, `scatter` |
//! | [`adjacent_difference`] | `DeviceAdjacentDifference::SubtractLeftCopy` | `cupy.diff` | `adjacent_difference` |
//! | [`transpose`], [`permute`] | (cuBLAS's `geam`) | `x.transpose(axes).copy()` | |
//! | [`lower_bound`], [`upper_bound`], [`merge`] | `DeviceMerge::MergeKeys` | `cupy.searchsorted` | `lower_bound`, `upper_bound`, `merge` |
//! | [`set_union`], [`set_intersection`], [`set_difference`], [`set_symmetric_difference`], [`set_union_into`], .. | | `numpy.union1d`, `intersect1d`, `setdiff1d`, `setxor1d` | `set_union` and so on |
//! | [`top_k`] | `DeviceTopK` | `cupy.argpartition` | |
//! | [`Philox`] | (cuRAND) | `cupy.random` | |
//! | [`softmax`], [`log_softmax`], [`layer_norm`], [`rms_norm`] | (cuDNN) | | |
//! | [`convolve`], [`correlate`], [`convolve_separable`] | (NPP) | `cupyx.scipy.ndimage.convolve`, `correlate`, `convolve1d` | |
//! | [`resize`], [`grayscale`] | (NPP) | | |
//! | [`fft`], [`inverse_fft`] | (cuFFT) | `cupy.fft.fft`, `ifft` | |
//! | [`matmul`], [`gemm`] with [`Gemm`] | (cuBLAS's `cublasGemmEx`, `cublasGemmStridedBatchedEx`) | `a @ b`, `cupy.matmul` | |
//! | `attention` with `Attention`, `attention_gradients` (feature `half`) | (cuDNN) | (PyTorch's `scaled_dot_product_attention`) | |
//! | [`spmv`] | (cuSPARSE) | `a @ x` | |
//! | [`inclusive_sum`] | `DeviceScan::InclusiveSum` | `x.cumsum()` | `inclusive_scan` |
//! | [`exclusive_sum`] | `DeviceScan::ExclusiveScan` with a first value | | `exclusive_scan` |
//! | [`inclusive_sum_by_key`], [`exclusive_sum_by_key`] | `DeviceScan::InclusiveSumByKey`, `ExclusiveSumByKey` | | `inclusive_scan_by_key`, `exclusive_scan_by_key` |
//! | [`inclusive_min`], [`inclusive_max`] | `DeviceScan::InclusiveScan` | `numpy.fmin.accumulate` | `inclusive_scan` with `minimum` |
//! | [`select`], [`select_into`] | `DeviceSelect::Flagged` | `x[flags]` | `copy_if` with a stencil |
//! | [`partition`], [`partition_into`] | `DevicePartition::Flagged`, but stable | | `stable_partition_copy` |
//! | [`unique`], [`unique_into`] | `DeviceSelect::Unique` | `cupy.unique` of sorted elements | `unique_copy` |
//! | [`run_length_encode`], [`run_length_encode_into`] | `DeviceRunLengthEncode::Encode` | | `reduce_by_key` of ones |
//! | [`run_length_decode`], [`run_length_decode_into`] | `BlockRunLengthDecode` | `x.repeat` | |
//! | [`histogram_even`], [`multi_histogram_even`] | `DeviceHistogram::HistogramEven`, `MultiHistogramEven` | `cupy.histogram` with a number of bins, `cupy.bincount` | |
//! | [`histogram_range`], [`multi_histogram_range`] | `DeviceHistogram::HistogramRange`, `MultiHistogramRange` | `cupy.histogram` with edges | |
//! | [`sort`], [`sort_descending`] | `DeviceRadixSort::SortKeys`, `SortKeysDescending` | `cupy.sort` | `stable_sort` |
//! | [`sort_pairs`], [`RadixSort`] | `DeviceRadixSort::SortPairs`, with a range of bits | | `stable_sort_by_key` |
//! | [`segmented_sort`], [`segmented_sort_pairs`], [`RadixSort::segmented_keys`], .. | `DeviceSegmentedSort::StableSortKeys`, `StableSortPairs` | | |
//! | [`argsort`] | | `cupy.argsort` | |
//!
//! # Floating-point results
//! Sums, products and dot products have the same bits in every run, on every GPU and on the CPU device: the order of the
//! operations depends on the length alone. The order is close to pairwise, so rounding errors grow slowly. Sums of segments depend
//! on the lengths alone, too. Those of `f16` and `bf16` are the sums of the elements as `f32`. Scans of floats, and sums by key of long runs, may differ in their last bits from run to run. NaN spreads through sums and is skipped by `min`, `max` and what is built on
//! them.

#![deny(missing_docs)]

// What the macros generate names the facade, which depends on this crate: what it needs of that is here.
extern crate self as ferrogrid;

#[doc(hidden)]
pub use ferrogrid_device as device;
#[doc(hidden)]
pub use ferrogrid_host::__private;
pub(crate) use ferrogrid_host::{
    DeviceAtomicView, DeviceInput, DeviceOutput, DeviceView, DeviceViewMut, Error, Grid, Result, Stream,
    Temporary,
};
pub(crate) use ferrogrid_macros::module;

mod accumulate;
#[cfg(feature = "half")]
mod attention;
mod fft;
mod filter;
mod gemm;
mod histogram;
mod image;
mod keyed;
mod matrix;
mod movement;
mod native;
mod number;
mod order;
mod passes;
mod random;
mod reduce;
mod rows;
mod scan;
mod search;
mod segmented;
mod select;
mod sets;
mod sort;
mod sparse;
mod top_k;
#[doc(hidden)]
pub mod tuning;

#[cfg(feature = "half")]
pub use attention::{
    Attended, Attention, AttentionGradients, AttentionPass, attention, attention_gradients,
    attention_with_log_sums,
};
pub use fft::{Transformed, fft, inverse_fft};
pub use filter::{Border, Filtered, convolve, convolve_separable, correlate};
pub use gemm::{Factor, Gemm, Multiplied, gemm, matmul};
pub use histogram::{Count, histogram_even, histogram_range, multi_histogram_even, multi_histogram_range};
pub use image::{ColourPixel, ImagePixel, Interpolation, grayscale, resize};
pub use keyed::{
    exclusive_sum_by_key, inclusive_max, inclusive_min, inclusive_sum_by_key, max_by_key, max_by_key_into,
    min_by_key, min_by_key_into, sum_by_key, sum_by_key_into,
};
pub use matrix::{
    column_maxima, column_means, column_minima, column_sums, row_maxima, row_means, row_minima, row_sums,
};
pub use movement::{
    PlaceNumber, adjacent_difference, gather, permute, reverse, roll, scatter, sequence, transpose,
};
pub use random::{Drawn, Philox};
pub use reduce::{
    Indexed, Number, argmax, argmax_into, argmin, argmin_into, dot, dot_into, max, max_into, min, min_into,
    product, product_into, sum, sum_into,
};
pub use reduce::{
    Moments, Real, all, all_into, amax, amax_into, any, any_into, asum, asum_into, count, count_into,
    count_nonzero, count_nonzero_into, mean, mean_into, moments, moments_into, nrm2, nrm2_into, variance,
    variance_into,
};
pub use rows::{Affine, RowNumber, layer_norm, log_softmax, rms_norm, softmax};
pub use scan::{exclusive_sum, inclusive_sum};
pub use search::{lower_bound, merge, upper_bound};
pub use segmented::{Offset, segmented_max, segmented_min, segmented_sum};
pub use select::{
    partition, partition_into, run_length_decode, run_length_decode_into, run_length_encode,
    run_length_encode_into, select, select_into, unique, unique_into,
};
pub use sets::{
    set_difference, set_difference_into, set_intersection, set_intersection_into, set_symmetric_difference,
    set_symmetric_difference_into, set_union, set_union_into,
};
pub use sort::{RadixSort, argsort, segmented_sort, segmented_sort_pairs, sort, sort_descending, sort_pairs};
pub use sparse::{Csr, SparseNumber, spmv};
pub use top_k::top_k;

#[cfg(test)]
mod tests {
    use crate::accumulate::accumulations::Least;
    use crate::fft::kernels::kernels as transforms;
    use crate::filter::kernels::kernels as filters;
    use crate::gemm::{
        kernels::kernels as products, pack::kernels as packing, singles::kernels as singles, tiles,
        warps::kernels as warps,
    };
    use crate::histogram::{bytes::kernels as bytes, samples::kernels as samples};
    use crate::image::kernels::kernels as images;
    use crate::keyed::{keys::kernels as keys, values::kernels as values};
    use crate::matrix::kernels::kernels as matrices;
    use crate::movement::axes::kernels as axes;
    use crate::reduce::{counts, extrema, moments, norms, totals};
    use crate::rows::kernels::kernels as rows;
    use crate::rows::operations::operations::Norm;
    use crate::scan::running::kernels as scans;
    use crate::segmented::segments::kernels as segments;
    use crate::select::{flagged, runs};
    use crate::sort::digits::kernels as digits;
    use crate::sort::few::kernels as few;
    use crate::sort::pass::kernels as passes;
    use crate::sort::segmented::kernels as segmented_sorts;
    use crate::sparse::rows::kernels as sparse;
    use crate::{sets, top_k};
    use ferrogrid_host::__private::Kernel;

    /// `sm_90` has dependent launches; the other kernels have the same instructions for `sm_75`.
    #[test]
    fn kernels_with_dependent_launches_have_code_for_sm_90() {
        let kernels =
            [totals::kernels::dot_of_tiles::kernel::<f64>(), counts::kernels::count_same::kernel::<u8>()];
        if std::env::var_os("FERROGRID_ARCH").is_none() {
            assert!(kernels.iter().all(|kernel| kernel.architectures() == ["sm_75", "sm_90"]));
            assert_eq!(passes::move_long_pairs::kernel::<u64, u64, 20>().architectures(), ["sm_75"]);
        }
    }

    #[cfg(not(feature = "half"))]
    fn of_halves() -> [&'static Kernel; 0] {
        []
    }

    #[cfg(feature = "half")]
    fn of_halves() -> [&'static Kernel; 19] {
        use ferrogrid_device::half::{bf16, f16};
        use ferrogrid_device::narrow::{f8e4m3, f8e5m2};

        use crate::accumulate::accumulations::SumFloats;
        use crate::attention::gradients::kernels::kernels as gradients;
        use crate::attention::kernels::kernels as attention;
        use crate::gemm::tiles::{halves, narrow_floats};
        [
            totals::kernels::dot_of_tiles::kernel::<bf16>(),
            extrema::kernels::extremum_position::kernel::<bf16>(),
            moments::kernels::moments_of_tiles::kernel::<bf16>(),
            runs::kernels::encode::kernel::<bf16>(),
            samples::count_samples::kernel::<crate::histogram::bins::bins::EvenHalves>(),
            values::combine_runs::kernel::<SumFloats<bf16>>(),
            segments::segments_of_blocks::kernel::<SumFloats<bf16>>(),
            matrices::combine_columns::kernel::<SumFloats<bf16>>(),
            products::multiply_halves::kernel::<f16>(),
            halves::multiply_large::kernel::<bf16, false, true, false>(),
            halves::multiply_large::kernel::<f16, true, false, true>(),
            halves::multiply_small::kernel::<f16, true, false>(),
            narrow_floats::multiply_large::kernel::<f8e4m3, bf16, true>(),
            narrow_floats::multiply_large::kernel::<f8e5m2, f32, false>(),
            attention::attend_128::kernel::<f16>(),
            gradients::of_keys_128::kernel::<bf16>(),
            attention::attend_256::kernel::<f16>(),
            gradients::of_keys_256::kernel::<bf16, 1>(),
            gradients::of_queries_256::kernel::<f16>(),
        ]
    }

    /// Items that a loop indexes stay in registers only if LLVM unrolls the loop, which it does not if the loop is long.
    #[test]
    fn no_kernel_needs_a_stack() {
        let kernels = [
            totals::kernels::dot_of_tiles::kernel::<f64>(),
            extrema::kernels::extremum_position::kernel::<f64>(),
            scans::inclusive_sums_wide::kernel::<f64>(),
            counts::kernels::count_same::kernel::<f64>(),
            moments::kernels::moments_of_tiles::kernel::<f64>(),
            norms::kernels::norm_of_tiles::kernel::<f64>(),
            rows::rows_in_registers::kernel::<f32, Norm<true>>(),
            axes::gather_axes::kernel::<u128>(),
            flagged::kernels::partition_wide::kernel::<u64>(),
            transforms::fft_pass::kernel::<f64>(),
            flagged::kernels::select::kernel::<u32>(),
            runs::kernels::encode_wide::kernel::<f64>(),
            runs::kernels::unique::kernel::<f32>(),
            bytes::count_bytes::kernel(),
            samples::count_samples::kernel::<crate::histogram::bins::bins::Ranges<u64>>(),
            keys::mark_runs::kernel::<u64>(),
            values::combine_runs::kernel::<Least<u64>>(),
            segments::segments_of_warps::kernel::<Least<u64>>(),
            segments::segments_of_blocks::kernel::<Least<u64>>(),
            matrices::combine_rows::kernel::<Least<u64>>(),
            matrices::combine_columns::kernel::<Least<u64>>(),
            filters::filter_tiles::kernel::<f64>(),
            images::resize_pixels::kernel::<[f32; 4]>(),
            images::gray_pixels::kernel::<[f32; 4]>(),
            sparse::multiply_sparse::kernel::<f64>(),
            singles::multiply_singles::kernel(),
            singles::multiply_few_singles::kernel(),
            products::multiply_doubles::kernel(),
            warps::multiply_doubles::kernel::<true, false>(),
            warps::multiply_few_doubles::kernel::<false, true>(),
            warps::multiply_tf32::kernel::<true, true>(),
            warps::multiply_few_tf32::kernel::<false, false>(),
            packing::pack::kernel::<u16>(),
            tiles::integers::multiply_large::kernel::<true>(),
            tiles::rounded::multiply_large::kernel::<false>(),
            digits::count_digits::kernel::<u64>(),
            passes::move_keys::kernel::<u32, 32>(),
            passes::move_long_keys::kernel::<u64, 20>(),
            passes::move_long_pairs::kernel::<u64, u64, 20>(),
            few::sort_few::kernel::<u64>(),
            sets::kernels::members_of_set::kernel::<u64>(),
            top_k::kernels::collect_greatest::kernel::<u64>(),
            segmented_sorts::take_in_segments::kernel::<u64>(),
        ];
        for kernel in kernels.into_iter().chain(of_halves()) {
            let architectures = kernel.architectures();
            assert!(!architectures.is_empty(), "{}", kernel.name());
            let path = kernel.name().split("::<").next().unwrap_or_default();
            let entry = format!("{}_", path.rsplit("::").next().unwrap_or_default());
            for architecture in architectures {
                // That of all kernels in the part; sines need a stack, so others may.
                let ptx = kernel.ptx_for(architecture).expect("code for that architecture");
                let mut own = ptx.split(".entry ").filter(|text| text.starts_with(&entry)).peekable();
                assert!(own.peek().is_some(), "{architecture}: no entry {entry}");
                assert!(own.all(|text| !text.contains(".local")), "{architecture}: {}", kernel.name());
            }
        }
    }
}
