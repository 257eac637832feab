// CUB's device-wide algorithms behind C functions, for benches/algorithms.rs: with `temp` null they write the number of bytes they need.
#include <cub/cub.cuh>
#include <cstdint>

#define ALGORITHM(NAME, IN, OUT, CALL)                                                                                   \
    extern "C" int NAME(void* temp, size_t* bytes, const IN* in, OUT* out, size_t n, cudaStream_t stream) {              \
        return cub::CALL;                                                                                                \
    }
#define SUM(NAME, T) ALGORITHM(sum_##NAME, T, T, DeviceReduce::Sum(temp, *bytes, in, out, (int64_t)n, stream))
#define SCANS(NAME, T)                                                                                                   \
    ALGORITHM(inclusive_sum_##NAME, T, T, DeviceScan::InclusiveSum(temp, *bytes, in, out, (int64_t)n, stream))           \
    ALGORITHM(exclusive_sum_##NAME, T, T, DeviceScan::ExclusiveSum(temp, *bytes, in, out, (int64_t)n, stream))

struct Indexed {
    int64_t index;
    float value;
};

#define SORT(NAME, T) ALGORITHM(sort_##NAME, T, T, DeviceRadixSort::SortKeys(temp, *bytes, in, out, (int64_t)n, 0, sizeof(T) * 8, stream))

SUM(f32, float)
SUM(f64, double)
SUM(i32, int32_t)
ALGORITHM(min_f32, float, float, DeviceReduce::Min(temp, *bytes, in, out, (int64_t)n, stream))
ALGORITHM(argmax_f32, float, Indexed,
          DeviceReduce::ArgMax(temp, *bytes, in, &out->value, &out->index, (int64_t)n, stream))
SCANS(f32, float)
SCANS(i32, int32_t)
SCANS(u64, uint64_t)
SORT(u32, uint32_t)
SORT(u64, uint64_t)
SORT(f32, float)
// Keys, then values, in both.
ALGORITHM(sort_pairs_u32, uint32_t, uint32_t,
          DeviceRadixSort::SortPairs(temp, *bytes, in, out, in + n / 2, out + n / 2, (int64_t)(n / 2), 0, 32, stream))

// Results of unknown length: their number follows the elements of `out`, and the lengths of runs follow that.
ALGORITHM(select_i32, int32_t, int32_t,
          DeviceSelect::Flagged(temp, *bytes, in, (const uint8_t*)(in + n), out, (int64_t*)(out + n), (int64_t)n, stream))
ALGORITHM(unique_i32, int32_t, int32_t,
          DeviceSelect::Unique(temp, *bytes, in, out, (int64_t*)(out + n), (int64_t)n, stream))
ALGORITHM(run_length_i32, int32_t, int32_t,
          DeviceRunLengthEncode::Encode(temp, *bytes, in, out, out + n + 2, (int64_t*)(out + n), (int64_t)n, stream))

// `n` values follow `n` keys, and aggregates follow the number of runs.
ALGORITHM(sum_by_key_i32, int32_t, int32_t,
          DeviceReduce::ReduceByKey(temp, *bytes, in, out, in + n, (int64_t*)(out + n + 2), (int64_t*)(out + n), cuda::std::plus<>{},
                                    (int64_t)n, stream))

ALGORITHM(histogram_u8, uint8_t, int32_t, DeviceHistogram::HistogramEven(temp, *bytes, in, out, 257, 0, 256, (int64_t)n, stream))
ALGORITHM(histogram_equal_u8, uint8_t, int32_t,
          DeviceHistogram::HistogramEven(temp, *bytes, in, out, 257, 0, 256, (int64_t)n, stream))

// The offsets of segments of about LENGTH elements follow `n` elements: n / LENGTH + 1 of them.
#define SEGMENTED_SUM(LENGTH)                                                                                            \
    ALGORITHM(segmented_sum_##LENGTH##_f32, float, float,                                                                \
              DeviceSegmentedReduce::Sum(temp, *bytes, in, out, (int64_t)(n / LENGTH), (const uint32_t*)(in + n),        \
                                         (const uint32_t*)(in + n) + 1, stream))
SEGMENTED_SUM(100)
SEGMENTED_SUM(10000)
