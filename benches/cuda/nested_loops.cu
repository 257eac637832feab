// Tests whether compute-sanitizer runs a loop within a loop of a graph (conditional nodes): 5 times 3 rounds, in plain CUDA C++.
// With CUDA 13.0 and driver 580.159 it passes alone, and fails in some runs under memcheck, with error 700 and no report of an
// access.
//   nvcc -O2 -arch=native -o nested_loops nested_loops.cu
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                     \
    do {                                                                \
        cudaError_t code = (call);                                      \
        if (code != cudaSuccess) {                                      \
            std::printf("%s: %s\n", #call, cudaGetErrorString(code));   \
            std::exit(2);                                               \
        }                                                               \
    } while (0)

__global__ void set_condition(cudaGraphConditionalHandle handle, const unsigned* left) { cudaGraphSetConditional(handle, *left != 0); }
__global__ void increment(unsigned* x) { ++*x; }
__global__ void decrement(unsigned* x) { --*x; }

// Adds a kernel of one thread, after `after` if that is not null.
template <class... Arguments>
cudaGraphNode_t add(cudaGraph_t graph, cudaGraphNode_t after, void* function, Arguments... arguments) {
    void* addresses[] = {&arguments...};
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = addresses;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, &after, after ? 1 : 0, &params));
    return node;
}

// Adds a loop, whose body comes back in `body`.
cudaGraphNode_t add_loop(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle, cudaGraph_t* body) {
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, graph, &after, nullptr, 1, &params));
    *body = params.conditional.phGraph_out[0];
    return node;
}

int main() {
    const unsigned initial[] = {5, 0, 3, 0};
    unsigned* numbers;
    CHECK(cudaMalloc(&numbers, sizeof initial));
    CHECK(cudaMemcpy(numbers, initial, sizeof initial, cudaMemcpyHostToDevice));
    unsigned *outer = numbers, *inner = numbers + 1, *three = numbers + 2, *total = numbers + 3;

    cudaGraph_t graph, rounds, inner_rounds;
    cudaGraphConditionalHandle of_outer, of_inner;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&of_outer, graph, 0, 0));
    cudaGraphNode_t last = add(graph, nullptr, (void*)set_condition, of_outer, outer);
    add_loop(graph, last, of_outer, &rounds);

    CHECK(cudaGraphAddMemcpyNode1D(&last, rounds, nullptr, 0, inner, three, sizeof *inner, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphConditionalHandleCreate(&of_inner, rounds, 0, 0));
    last = add(rounds, last, (void*)set_condition, of_inner, inner);
    last = add_loop(rounds, last, of_inner, &inner_rounds);
    last = add(rounds, last, (void*)decrement, outer);
    add(rounds, last, (void*)set_condition, of_outer, outer);

    last = add(inner_rounds, nullptr, (void*)increment, total);
    last = add(inner_rounds, last, (void*)decrement, inner);
    add(inner_rounds, last, (void*)set_condition, of_inner, inner);

    cudaGraphExec_t executable;
    cudaStream_t stream;
    unsigned found;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaMemcpyAsync(&found, total, sizeof found, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("%s: %u rounds of 15\n", found == 15 ? "passed" : "FAILED", found);
    return found != 15;
}
