// The kernels of benches/gpu in CUDA C++, with the same algorithms and block sizes: the baseline for
// Ferrogrid. Build: nvcc -O3 -arch=native -cubin kernels.cu -o kernels.cubin
#include <math_constants.h>

#define KERNEL extern "C" __global__ void

KERNEL saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

KERNEL copy(int groups, const float4* __restrict__ x, float4* __restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < groups) y[i] = x[i];
}

KERNEL __launch_bounds__(256) stencil(int width, int height, const float* __restrict__ in, float* __restrict__ out) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    if (x > 0 && y > 0 && x + 1 < width && y + 1 < height) {
        float sum = in[i - width] + in[i - 1] + in[i + 1] + in[i + width];
        out[i] = 0.125f * sum + 0.5f * in[i];
    } else {
        out[i] = in[i];
    }
}

KERNEL __launch_bounds__(256) transpose(int width, int height, const float* __restrict__ in, float* __restrict__ out) {
    __shared__ float tile[32][33];
    int x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

KERNEL __launch_bounds__(256) matmul_naive(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (column >= n || row >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

template <int N>
static __device__ __forceinline__ void tiled(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    __shared__ float tile_a[N][N], tile_b[N][N];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * N + x, row = blockIdx.y * N + y;
    float sum = 0;
    for (int step = 0; step < n / N; ++step) {
        tile_a[y][x] = a[row * n + step * N + x];
        tile_b[y][x] = b[(step * N + y) * n + column];
        __syncthreads();
        for (int k = 0; k < N; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

KERNEL __launch_bounds__(256) matmul_tiled_16(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    tiled<16>(n, a, b, c);
}

KERNEL __launch_bounds__(1024) matmul_tiled_32(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
    tiled<32>(n, a, b, c);
}

struct Add {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class Operation>
static __device__ __forceinline__ float warp_reduce(float value, Operation operation) {
    for (int bits = 16; bits > 0; bits /= 2) value = operation(value, __shfl_xor_sync(0xffffffff, value, bits));
    return value;
}

// All threads get the result; blocks have 256 threads.
template <class Operation>
static __device__ __forceinline__ float block_reduce(float* places, float value, Operation operation) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_reduce(value, operation);
    if (lane == 0) places[warp] = value;
    __syncthreads();
    float total = places[0];
    for (int i = 1; i < 8; ++i) total = operation(total, places[i]);
    __syncthreads();
    return total;
}

KERNEL __launch_bounds__(256) block_sum(int n, const float* __restrict__ x, float* sum) {
    __shared__ float places[32];
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
    float total = block_reduce(places, own, Add());
    if (threadIdx.x == 0) atomicAdd(sum, total);
}

KERNEL __launch_bounds__(256) warp_sums(int n, const float* __restrict__ x, float* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = warp_reduce(i < n ? x[i] : 0, Add());
    if (threadIdx.x % 32 == 0 && i < n) sums[i / 32] = total;
}

KERNEL __launch_bounds__(256) histogram(int n, const unsigned char* __restrict__ data, unsigned* counts) {
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[data[i]], 1u);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}

struct Precise {
    static __device__ float exp(float x) { return expf(x); }
};
struct Fast {
    static __device__ float exp(float x) { return __expf(x); }
};

template <class Math>
static __device__ __forceinline__ void softmax_row(int width, const float* __restrict__ x, float* __restrict__ y) {
    __shared__ float places[32];
    x += size_t(blockIdx.x) * width;
    y += size_t(blockIdx.x) * width;
    float greatest = -CUDART_INF_F;
    for (int i = threadIdx.x; i < width; i += 256) greatest = fmaxf(greatest, x[i]);
    greatest = block_reduce(places, greatest, Max());
    float sum = 0;
    for (int i = threadIdx.x; i < width; i += 256) sum += Math::exp(x[i] - greatest);
    float factor = 1 / block_reduce(places, sum, Add());
    for (int i = threadIdx.x; i < width; i += 256) y[i] = Math::exp(x[i] - greatest) * factor;
}

KERNEL __launch_bounds__(256) softmax(int width, const float* __restrict__ x, float* __restrict__ y) {
    softmax_row<Precise>(width, x, y);
}

KERNEL __launch_bounds__(256) softmax_fast(int width, const float* __restrict__ x, float* __restrict__ y) {
    softmax_row<Fast>(width, x, y);
}

// At least one resident block per multiprocessor, so that ptxas may use many registers per thread.
KERNEL __launch_bounds__(256, 1) pull(int n, const float4* __restrict__ bodies, float4* __restrict__ pulls) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 own = bodies[i];
    float px = 0, py = 0, pz = 0;
    for (int step = 0; step < n / 256; ++step) {
        tile[threadIdx.x] = bodies[step * 256 + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 256; ++k) {
            float4 other = tile[k];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float inverse = rsqrtf(dx * dx + 1e-3f + dy * dy + dz * dz);
            float strength = other.w * inverse * inverse * inverse;
            px += dx * strength;
            py += dy * strength;
            pz += dz * strength;
        }
        __syncthreads();
    }
    pulls[i] = make_float4(px, py, pz, 0);
}

KERNEL black_scholes(int n, float rate, float volatility, const float* __restrict__ prices, const float* __restrict__ strikes,
                     const float* __restrict__ terms, float* __restrict__ call) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float price = prices[i], strike = strikes[i], years = terms[i];
    float spread = volatility * sqrtf(years);
    float d1 = (logf(price / strike) + (rate + 0.5f * volatility * volatility) * years) / spread;
    float d2 = d1 - spread;
    float below1 = 0.5f + 0.5f * erff(d1 * 0.707106781f), below2 = 0.5f + 0.5f * erff(d2 * 0.707106781f);
    call[i] = price * below1 - strike * expf(-rate * years) * below2;
}

static __device__ __forceinline__ float divide(float x, float y) {
    float result;
    asm("div.approx.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
    return result;
}

static __device__ __forceinline__ float root(float x) {
    float result;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

static __device__ __forceinline__ float reciprocal(float x) {
    float result;
    asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

static __device__ __forceinline__ float below(float d) {
    float k = reciprocal(1.0f + 0.2316419f * fabsf(d));
    float tail = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    tail = 0.39894228f * __expf(-0.5f * d * d) * tail;
    return d > 0 ? 1.0f - tail : tail;
}

KERNEL black_scholes_fast(int n, float rate, float volatility, const float* __restrict__ prices, const float* __restrict__ strikes,
                          const float* __restrict__ terms, float* __restrict__ call) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float price = prices[i], strike = strikes[i], years = terms[i];
    float spread = volatility * root(years);
    float d1 = divide(__logf(divide(price, strike)) + (rate + 0.5f * volatility * volatility) * years, spread);
    float d2 = d1 - spread;
    call[i] = price * below(d1) - strike * __expf(-rate * years) * below(d2);
}

KERNEL __launch_bounds__(256) mandelbrot(int width, int height, unsigned most, float left, float top, float step, unsigned* steps) {
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
    if (i >= width || j >= height) return;
    float cx = left + step * i, cy = top + step * j, x = 0, y = 0;
    unsigned count = 0;
    while (count < most && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        ++count;
    }
    steps[j * width + i] = count;
}

// Philox 4x32-10 as in cuRAND (curand_philox4x32_x.h), by __umulhi and the low product.
KERNEL philox(int groups, unsigned long long seed, float4* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    unsigned key0 = unsigned(seed), key1 = unsigned(seed >> 32);
    unsigned c0 = 0, c1 = 0, c2 = i, c3 = 0;
    for (int round = 0; round < 10; ++round) {
        unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ key0;
        c1 = low1;
        c2 = high0 ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    const float interval = 2.3283064e-10f;
    out[i] = make_float4(c0 * interval + interval / 2, c1 * interval + interval / 2, c2 * interval + interval / 2,
                         c3 * interval + interval / 2);
}

// Not every nvcc comes with CUB; then the bench says that the kernel is missing.
#if __has_include(<cub/block/block_radix_sort.cuh>)
#include <cub/block/block_radix_sort.cuh>

// Sorts the keys of each block.
KERNEL __launch_bounds__(256) block_sort(int n, const unsigned* __restrict__ x, unsigned* __restrict__ y) {
    using Sort = cub::BlockRadixSort<unsigned, 256, 8>;
    __shared__ typename Sort::TempStorage scratch;
    int first = blockIdx.x * 2048 + threadIdx.x;
    unsigned keys[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) keys[k] = first + 256 * k < n ? x[first + 256 * k] : 0xffffffffu;
    Sort(scratch).SortBlockedToStriped(keys);
#pragma unroll
    for (int k = 0; k < 8; ++k)
        if (first + 256 * k < n) y[first + 256 * k] = keys[k];
}
#endif
