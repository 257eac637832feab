// Is called by another file, and has a kernel that nothing refers to.
__device__ unsigned helper(unsigned x) { return 3 * x + 1; }

extern "C" __global__ void alone(unsigned* x, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] = helper(x[i]);
}
