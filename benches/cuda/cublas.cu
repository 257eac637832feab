// Products of matrices by cuBLAS behind C functions, for benches/products: c <- a b, of row-major matrices.
#include <cublas_v2.h>

template <typename T>
static int product(const void* a, const void* b, void* c, int m, int n, int k, bool turned_a, bool turned_b, cudaStream_t stream,
                   cudaDataType type, cublasComputeType_t compute) {
    static cublasHandle_t handle = nullptr;
    if (handle == nullptr) {
        cublasStatus_t status = cublasCreate(&handle);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    cublasStatus_t status = cublasSetStream(handle, stream);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const T one = 1, zero = 0;
    // By columns it is the transpose: b^T a^T.
    return cublasGemmEx(handle, turned_b ? CUBLAS_OP_T : CUBLAS_OP_N, turned_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, b, type,
                        turned_b ? k : n, a, type, turned_a ? m : k, &zero, c, type, n, compute, CUBLAS_GEMM_DEFAULT);
}

#define PRODUCT(name, T, type, compute)                                                                                       \
    extern "C" int product_##name(const void* a, const void* b, void* c, int m, int n, int k, int turned_a, int turned_b,     \
                                  cudaStream_t stream) {                                                                      \
        return product<T>(a, b, c, m, n, k, turned_a, turned_b, stream, type, compute);                                       \
    }

PRODUCT(bf16, float, CUDA_R_16BF, CUBLAS_COMPUTE_32F)
PRODUCT(f16, float, CUDA_R_16F, CUBLAS_COMPUTE_32F)
PRODUCT(f32, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
PRODUCT(tf32, float, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32)
PRODUCT(f64, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
