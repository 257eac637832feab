// Tests whether cuStreamWaitEvent takes effect when another thread launches a graph on the same stream at the same time. It
// uses the driver API alone; with driver 580.159 it shows why host/src/backend/cuda/stream/mod.rs serialises waits and graph
// launches on each stream.
//   nvcc -O2 -std=c++17 -o lost_waits lost_waits.cu -lcuda
//   ./lost_waits free     some runs fail, more often while other processes use the GPU
//   ./lost_waits apart    serialises waits and launches on each stream: passes
#include <cuda.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

#define CHECK(call)                                           \
    do {                                                      \
        CUresult code = (call);                               \
        if (code != CUDA_SUCCESS) {                           \
            std::printf("%s: error %d\n", #call, (int)code); \
            std::exit(2);                                     \
        }                                                     \
    } while (0)

constexpr int THREADS = 8, STREAMS = 4, BUFFERS = 4, LENGTH = 257, STEPS = 30000;

struct Stream {
    CUstream raw;
    std::shared_mutex waits;
};

/// Each is used by one thread only, on one stream after another.
struct Buffer {
    CUdeviceptr memory;
    int last;
    unsigned value;
};

CUcontext context;
Stream streams[STREAMS];
bool apart;
std::atomic<bool> failed{false};
std::mutex spare_mutex;
std::vector<CUevent> spare;

CUevent take_event() {
    std::lock_guard<std::mutex> lock(spare_mutex);
    CUevent event;
    if (spare.empty()) {
        CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        return event;
    }
    event = spare.back();
    spare.pop_back();
    return event;
}

/// Work enqueued on `later` from now on runs after all work that is already on `earlier`.
void wait_for(int later, int earlier) {
    if (later == earlier) return;
    CUevent event = take_event();
    CHECK(cuEventRecord(event, streams[earlier].raw));
    std::shared_lock<std::shared_mutex> lock(streams[later].waits, std::defer_lock);
    if (apart) lock.lock();
    CHECK(cuStreamWaitEvent(streams[later].raw, event, 0));
    std::lock_guard<std::mutex> spare_lock(spare_mutex);
    spare.push_back(event);
}

void fill(Buffer &buffer, int stream, unsigned value) {
    wait_for(stream, buffer.last);
    CHECK(cuMemsetD32Async(buffer.memory, value, LENGTH, streams[stream].raw));
    buffer.last = stream;
    buffer.value = value;
}

void fill_by_graph(Buffer &buffer, int stream, unsigned value) {
    CUDA_MEMSET_NODE_PARAMS params{};
    params.dst = buffer.memory;
    params.value = value;
    params.elementSize = sizeof value;
    params.width = LENGTH;
    params.height = 1;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec instance;
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context));
    CHECK(cuGraphInstantiate(&instance, graph, 0));
    wait_for(stream, buffer.last);
    {
        std::unique_lock<std::shared_mutex> lock(streams[stream].waits, std::defer_lock);
        if (apart) lock.lock();
        CHECK(cuGraphLaunch(instance, streams[stream].raw));
    }
    buffer.last = stream;
    buffer.value = value;
    CHECK(cuGraphExecDestroy(instance));
    CHECK(cuGraphDestroy(graph));
}

bool check(Buffer &buffer, int stream, unsigned *host) {
    wait_for(stream, buffer.last);
    CHECK(cuMemcpyDtoHAsync(host, buffer.memory, LENGTH * sizeof *host, streams[stream].raw));
    CHECK(cuStreamSynchronize(streams[stream].raw));
    buffer.last = stream;
    for (int i = 0; i < LENGTH; i++) {
        if (host[i] == buffer.value) continue;
        std::printf("element %d is %u, not %u\n", i, host[i], buffer.value);
        return false;
    }
    return true;
}

void work(unsigned seed) {
    CHECK(cuCtxSetCurrent(context));
    std::mt19937 random(seed);
    unsigned *host;
    CHECK(cuMemHostAlloc((void **)&host, LENGTH * sizeof *host, 0));
    Buffer buffers[BUFFERS];
    for (Buffer &buffer : buffers) {
        CHECK(cuMemAlloc(&buffer.memory, LENGTH * sizeof(unsigned)));
        buffer.last = 0;
        fill(buffer, 0, 0);
    }
    for (int step = 0; step < STEPS && !failed; step++) {
        Buffer &buffer = buffers[random() % BUFFERS];
        int stream = random() % STREAMS, what = random() % 20;
        if (what < 2) {
            fill_by_graph(buffer, stream, random());
        } else if (what < 4) {
            if (!check(buffer, stream, host)) failed = true;
        } else {
            fill(buffer, stream, random());
        }
    }
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    apart = !std::strcmp(arguments[1], "apart");
    CUdevice device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    for (Stream &stream : streams) CHECK(cuStreamCreate(&stream.raw, CU_STREAM_NON_BLOCKING));
    unsigned seed = std::random_device{}();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; thread++) threads.emplace_back(work, seed + thread);
    for (std::thread &thread : threads) thread.join();
    CHECK(cuCtxSynchronize());
    std::printf("%s: %s\n", arguments[1], failed ? "FAILED" : "passed");
    return failed;
}
