// Products of matrices by cuBLAS behind C functions, for benches/products: c <- a b^T, of row-major matrices.
#include <cublas_v2.h>

static int product(const void* a, const void* b, void* c, int m, int n, int k, cudaStream_t stream, cudaDataType type) {
    static cublasHandle_t handle = nullptr;
    if (handle == nullptr) {
        cublasStatus_t status = cublasCreate(&handle);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    cublasStatus_t status = cublasSetStream(handle, stream);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const float one = 1, zero = 0;
    // By columns it is the transpose: b a^T.
    return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, b, type, k, a, type, k, &zero, c, type, n,
                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

extern "C" int product_bf16(const void* a, const void* b, void* c, int m, int n, int k, cudaStream_t stream) {
    return product(a, b, c, m, n, k, stream, CUDA_R_16BF);
}

extern "C" int product_f16(const void* a, const void* b, void* c, int m, int n, int k, cudaStream_t stream) {
    return product(a, b, c, m, n, k, stream, CUDA_R_16F);
}
