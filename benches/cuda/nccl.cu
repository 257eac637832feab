// NCCL's collectives called from C++: the baseline for benches/nccl, in the same process, by the same library, on the same streams and
// memory. Build: nvcc -O3 -shared -Xcompiler -fPIC nccl.cu -o libnccl_bench.so -ldl
//
// NCCL is the one that the process has opened. The types and signatures are those of nccl.h, which need not be installed. Functions return
// seconds, or the negated code of a call that failed: of NCCL; of CUDA beyond 1000.
#include <chrono>
#include <cuda_runtime.h>
#include <dlfcn.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define TRY(call, first)                                             \
    do {                                                             \
        int code = static_cast<int>(call);                           \
        if (code != 0) return -static_cast<double>(code + (first));  \
    } while (0)
#define TRY_NCCL(call) TRY(call, 0)
#define TRY_CUDA(call) TRY(call, 1000)

namespace {

using Clock = std::chrono::steady_clock;

// ncclComm_t, ncclUniqueId, and the numbers of ncclFloat32 and ncclSum.
using Comm = void*;
struct Id {
    char bytes[128];
};
constexpr int FLOAT32 = 7, SUM = 0;

template <typename... Arguments> struct Function {
    int (*call)(Arguments...);

    explicit Function(const char* name) {
        static void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
        call = library ? reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name)) : nullptr;
    }
};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// A function that NCCL lacks, or NCCL itself is not there.
constexpr double MISSING = -9999;

}  // namespace

EXPORT double new_id(Id* id) {
    static Function<Id*> get("ncclGetUniqueId");
    if (!get.call) return MISSING;
    TRY_NCCL(get.call(id));
    return 0;
}

// A communicator that blocks, as nccl-tests makes it. Each rank calls this on a thread of its own.
EXPORT double new_comm(Comm* comm, const Id* id, int rank, int size, int device) {
    static Function<Comm*, int, Id, int> init("ncclCommInitRank");
    if (!init.call) return MISSING;
    TRY_CUDA(cudaSetDevice(device));
    TRY_NCCL(init.call(comm, size, *id, rank));
    return 0;
}

EXPORT double destroy_comm(Comm comm) {
    static Function<Comm> destroy("ncclCommDestroy");
    if (!destroy.call) return MISSING;
    TRY_NCCL(destroy.call(comm));
    return 0;
}

// Operations of one kind in a row: all-reduces (0), all-gathers (1), or reduce-scatters (2). The count is that of NCCL's functions. With
// `wait` the time of all, else that of enqueueing them.
EXPORT double collectives(int kind, const float* source, float* target, size_t count, Comm comm, cudaStream_t stream, unsigned repeats,
                          int wait) {
    static Function<const void*, void*, size_t, int, int, Comm, cudaStream_t> all_reduce("ncclAllReduce");
    static Function<const void*, void*, size_t, int, Comm, cudaStream_t> all_gather("ncclAllGather");
    static Function<const void*, void*, size_t, int, int, Comm, cudaStream_t> reduce_scatter("ncclReduceScatter");
    if (!all_reduce.call || !all_gather.call || !reduce_scatter.call) return MISSING;
    auto start = Clock::now();
    for (unsigned i = 0; i < repeats; ++i) {
        switch (kind) {
        case 0: TRY_NCCL(all_reduce.call(source, target, count, FLOAT32, SUM, comm, stream)); break;
        case 1: TRY_NCCL(all_gather.call(source, target, count, FLOAT32, comm, stream)); break;
        default: TRY_NCCL(reduce_scatter.call(source, target, count, FLOAT32, SUM, comm, stream)); break;
        }
    }
    double enqueued = seconds_since(start);
    TRY_CUDA(cudaStreamSynchronize(stream));
    return wait ? seconds_since(start) : enqueued;
}
