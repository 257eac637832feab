// The host runtime's operations in CUDA C++: the baseline for benches/runtime, in the same process, context and streams,
// on the same memory. Build: nvcc -O3 -arch=native -shared -Xcompiler -fPIC runtime.cu -o libruntime.so -ldl
//
// Functions that measure return seconds, or the negated error code of a call that failed. Driver functions are called at
// the addresses that dlsym returns, as in programs that link libcuda.
#include <chrono>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define TRY(call)                                            \
    do {                                                     \
        int code = static_cast<int>(call);                   \
        if (code != 0) return -static_cast<double>(code);    \
    } while (0)

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename F> F driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<F>(dlsym(library, name));
}

__global__ void empty() {}

}  // namespace

// The function of that name in the PTX; null if it does not load.
EXPORT void* load_function(const char* ptx, const char* name) {
    static auto load = driver<decltype(&cuModuleLoadData)>("cuModuleLoadData");
    static auto get = driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
    CUmodule module;
    CUfunction function;
    if (load(&module, ptx) != CUDA_SUCCESS) return nullptr;
    return get(&function, module, name) == CUDA_SUCCESS ? function : nullptr;
}

// Launches of one block of 256 threads each, round-robin over the streams, with parameters; without the synchronisation.
EXPORT double launches(void* function, CUstream* streams, void*** params, unsigned lanes, unsigned count) {
    static auto launch = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
    auto start = Clock::now();
    for (unsigned i = 0, lane = 0; i < count; ++i, lane = lane + 1 == lanes ? 0 : lane + 1)
        TRY(launch(static_cast<CUfunction>(function), 1, 1, 1, 256, 1, 1, 0, streams[lane], params[lane], nullptr));
    return seconds_since(start);
}

struct Slice {
    const float* start;
    size_t length;
};

// A launch as programs make it, whose arguments differ from call to call: their addresses are collected at each.
__attribute__((noinline)) static CUresult launch_sixteen(
    CUfunction function, CUstream stream, float a, float b, float c, float d, unsigned e, unsigned f, size_t g, size_t h,
    Slice x0, Slice x1, Slice x2, Slice x3, Slice y0, Slice y1, Slice y2, Slice y3
) {
    static auto launch = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
    size_t record = 0;
    void* params[] = {
        &a, &b, &c, &d, &e, &f, &g, &h,
        &x0.start, &x0.length, &x1.start, &x1.length, &x2.start, &x2.length, &x3.start, &x3.length,
        &y0.start, &y0.length, &y1.start, &y1.length, &y2.start, &y2.length, &y3.start, &y3.length, &record,
    };
    return launch(function, 1, 1, 1, 256, 1, 1, 0, stream, params, nullptr);
}

// Launches of `sixteen` in benches/runtime/kernels.rs, with values: `scalars` are its first four, `slices` its last eight.
EXPORT double launches_of_sixteen(
    void* function, CUstream stream, const float* scalars, const Slice* slices, unsigned count
) {
    auto start = Clock::now();
    for (unsigned i = 0; i < count; ++i)
        TRY(launch_sixteen(
            static_cast<CUfunction>(function), stream, scalars[0], scalars[1], scalars[2], scalars[3], 1, 1, 1, 1, slices[0],
            slices[1], slices[2], slices[3], slices[4], slices[5], slices[6], slices[7]
        ));
    return seconds_since(start);
}

EXPORT double records(CUevent event, CUstream stream, unsigned count) {
    static auto record = driver<decltype(&cuEventRecord)>("cuEventRecord");
    auto start = Clock::now();
    for (unsigned i = 0; i < count; ++i) TRY(record(event, stream));
    return seconds_since(start);
}

EXPORT double queries(CUevent event, unsigned count) {
    static auto query = driver<decltype(&cuEventQuery)>("cuEventQuery");
    auto start = Clock::now();
    for (unsigned i = 0; i < count; ++i) TRY(query(event));
    return seconds_since(start);
}

// An instantiated graph of empty kernels in sequence; null on failure.
EXPORT void* new_graph(unsigned nodes) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return nullptr;
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return nullptr;
    for (unsigned i = 0; i < nodes; ++i) empty<<<1, 1, 0, stream>>>();
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return nullptr;
    if (cudaGraphInstantiateWithFlags(&instance, graph, 0) != cudaSuccess) return nullptr;
    return instance;
}

// All replays and the synchronisation.
EXPORT double replays(void* graph, cudaStream_t stream, unsigned count) {
    auto start = Clock::now();
    for (unsigned i = 0; i < count; ++i) TRY(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream));
    TRY(cudaStreamSynchronize(stream));
    return seconds_since(start);
}

// All copies, each followed by a synchronisation.
EXPORT double copies(void* to, const void* from, size_t bytes, cudaStream_t stream, unsigned count) {
    auto start = Clock::now();
    for (unsigned i = 0; i < count; ++i) {
        TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
        TRY(cudaStreamSynchronize(stream));
    }
    return seconds_since(start);
}

// For each chunk, round-robin over the streams: upload, kernel, download; then synchronisation of all. The kernel is
// Ferrogrid's, so that only the host code differs: its parameters are rounds, a, b, and a slice.
EXPORT double pipeline(void* function, const float* input, float* output, float* const* buffers, unsigned chunks,
                       size_t length, unsigned rounds, cudaStream_t* streams, unsigned lanes) {
    static auto launch = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
    unsigned blocks = static_cast<unsigned>((length + 255) / 256);
    float a = 0.999f, b = 0.001f;
    auto start = Clock::now();
    for (unsigned i = 0; i < chunks; ++i) {
        cudaStream_t stream = streams[i % lanes];
        const float* from = input + i * length;
        TRY(cudaMemcpyAsync(buffers[i], from, length * sizeof(float), cudaMemcpyHostToDevice, stream));
        float* buffer = buffers[i];
        void* params[] = {&rounds, &a, &b, &buffer, &length};
        TRY(launch(static_cast<CUfunction>(function), blocks, 1, 1, 256, 1, 1, 0, stream, params, nullptr));
        TRY(cudaMemcpyAsync(output + i * length, buffers[i], length * sizeof(float), cudaMemcpyDeviceToHost, stream));
    }
    for (unsigned lane = 0; lane < lanes; ++lane) TRY(cudaStreamSynchronize(streams[lane]));
    return seconds_since(start);
}
