// Calls what another file has; with `helper.cu` for `files_of_nvcc_load_directly`.
extern __device__ unsigned helper(unsigned x);

extern "C" __global__ void apply(unsigned* x, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] = helper(x[i]);
}
