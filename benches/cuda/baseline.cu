// The same work as benches/gpu.rs, in CUDA C++: what Ferrogrid is measured against. One JSON line
// per figure. Build: nvcc -O3 -arch=native baseline.cu -o baseline -lcuda
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        auto code = (call);                                                      \
        if (int(code) != 0) {                                                    \
            std::fprintf(stderr, "%s: error %d (line %d)\n", #call, int(code), __LINE__); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

extern "C" __global__ void saxpy(float a, const float* __restrict__ x, size_t xn, float* __restrict__ y, size_t n) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void saxpy_v4(float a, const float4* __restrict__ x, size_t xn, float4* __restrict__ y, size_t n) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 u = x[i], v = y[i];
        v.x += a * u.x;
        v.y += a * u.y;
        v.z += a * u.z;
        v.w += a * u.w;
        y[i] = v;
    }
}

extern "C" __global__ void histogram(const unsigned char* __restrict__ bytes, size_t n, unsigned* counts) {
    size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&counts[bytes[i]], 1u);
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

template <class Launch>
static double per_launch(int rounds, int launches, Launch launch) {
    launch();
    CHECK(cudaDeviceSynchronize());
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) {
        double start = now();
        for (int i = 0; i < launches; ++i) launch();
        CHECK(cudaDeviceSynchronize());
        seconds.push_back((now() - start) / launches);
    }
    return median(seconds);
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int log = 20; log <= 28; log += 4) {
        size_t n = size_t(1) << log;
        std::vector<float> host(n);
        for (auto& value : host) value = float(std::rand()) / RAND_MAX - 0.5f;
        float *x, *y;
        CHECK(cudaMalloc(&x, 4 * n));
        CHECK(cudaMalloc(&y, 4 * n));
        CHECK(cudaMemcpy(x, host.data(), 4 * n, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(y, host.data(), 4 * n, cudaMemcpyHostToDevice));
        unsigned blocks = unsigned((n + 255) / 256);
        double seconds = per_launch(15, 20, [&] { saxpy<<<blocks, 256, 0, stream>>>(1e-6f, x, n, y, n); });
        CHECK(cudaGetLastError());
        std::printf("{\"name\": \"saxpy_2^%d\", \"seconds\": %.9e}\n", log, seconds);
        CHECK(cudaFree(x));
        CHECK(cudaFree(y));
    }

    {
        size_t n = size_t(1) << 28;
        std::vector<float> host(n);
        for (auto& value : host) value = float(std::rand()) / RAND_MAX - 0.5f;
        float4 *x, *y;
        CHECK(cudaMalloc(&x, 4 * n));
        CHECK(cudaMalloc(&y, 4 * n));
        CHECK(cudaMemcpy(x, host.data(), 4 * n, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(y, host.data(), 4 * n, cudaMemcpyHostToDevice));
        size_t groups = n / 4;
        double seconds = per_launch(15, 20, [&] {
            saxpy_v4<<<unsigned((groups + 255) / 256), 256, 0, stream>>>(1e-6f, x, groups, y, groups);
        });
        CHECK(cudaGetLastError());
        std::printf("{\"name\": \"saxpy_v4_2^28\", \"seconds\": %.9e}\n", seconds);
        CHECK(cudaFree(x));
        CHECK(cudaFree(y));
    }
    {
        size_t n = size_t(1) << 26;
        std::vector<unsigned char> host(n);
        for (auto& value : host) value = (unsigned char)(std::rand() >> 7);
        unsigned char* bytes;
        unsigned* counts;
        CHECK(cudaMalloc(&bytes, n));
        CHECK(cudaMalloc(&counts, 1024));
        CHECK(cudaMemcpy(bytes, host.data(), n, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(counts, 0, 1024));
        double seconds = per_launch(15, 5, [&] { histogram<<<1056, 256, 0, stream>>>(bytes, n, counts); });
        CHECK(cudaGetLastError());
        std::printf("{\"name\": \"histogram_2^26\", \"seconds\": %.9e}\n", seconds);
        CHECK(cudaFree(bytes));
        CHECK(cudaFree(counts));
    }

    float* small;
    CHECK(cudaMalloc(&small, 2048));
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (const void*)saxpy));
    float a = 1.0f;
    size_t n = 256;
    float* second = small + 256;
    void* params[] = {&a, &small, &n, &second, &n};
    double seconds = per_launch(5, 20000, [&] {
        CHECK(cuLaunchKernel((CUfunction)function, 1, 1, 1, 256, 1, 1, 0, (CUstream)stream, params, nullptr));
    });
    std::printf("{\"name\": \"launch_raw_c++\", \"seconds\": %.9e}\n", seconds);
    return 0;
}
