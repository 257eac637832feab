// Products of matrices by cuBLAS behind C functions, for benches/products: c <- a b, of row-major matrices.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <vector>

template <typename T>
static int product(const void* a, const void* b, void* c, int m, int n, int k, bool turned_a, bool turned_b, cudaStream_t stream,
                   cudaDataType type, cudaDataType result, cublasComputeType_t compute) {
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
                        turned_b ? k : n, a, type, turned_a ? m : k, &zero, c, result, n, compute, CUBLAS_GEMM_DEFAULT);
}

#define PRODUCT(name, T, type, result, compute)                                                                               \
    extern "C" int product_##name(const void* a, const void* b, void* c, int m, int n, int k, int turned_a, int turned_b,     \
                                  cudaStream_t stream) {                                                                      \
        return product<T>(a, b, c, m, n, k, turned_a, turned_b, stream, type, result, compute);                               \
    }

PRODUCT(bf16, float, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F)
PRODUCT(f16, float, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F)
PRODUCT(f32, float, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F)
PRODUCT(tf32, float, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32)
PRODUCT(f64, double, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F)
PRODUCT(i8, int, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I)

#define CHECK(call)                                         \
    do {                                                    \
        cublasStatus_t status = call;                       \
        if (status != CUBLAS_STATUS_SUCCESS) return status; \
    } while (0)

// A product of 8-bit floats as bf16, which cuBLASLt has alone: planned once for each size.
struct Plan {
    int sizes[3];
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t chosen;
};

static const size_t WORKSPACE = 32 << 20;

static int plan(cublasLtHandle_t handle, Plan& plan, int m, int n, int k) {
    const cublasOperation_t transposed = CUBLAS_OP_T, straight = CUBLAS_OP_N;
    // Sums as tensor cores make them, with as few bits.
    const int8_t fast = 1;
    CHECK(cublasLtMatmulDescCreate(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    CHECK(cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, &straight, sizeof straight));
    CHECK(cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
    CHECK(cublasLtMatrixLayoutCreate(&plan.b, CUDA_R_8F_E4M3, k, n, k));
    CHECK(cublasLtMatrixLayoutCreate(&plan.a, CUDA_R_8F_E4M3, k, m, k));
    CHECK(cublasLtMatrixLayoutCreate(&plan.c, CUDA_R_16BF, n, m, n));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE, sizeof WORKSPACE));
    int found = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, plan.operation, plan.b, plan.a, plan.c, plan.c, preference, 1, &plan.chosen, &found));
    plan.sizes[0] = m, plan.sizes[1] = n, plan.sizes[2] = k;
    return found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

// Of factors whose rows are along `k`.
extern "C" int product_f8e4m3(const void* a, const void* b, void* c, int m, int n, int k, int turned_a, int turned_b,
                              cudaStream_t stream) {
    static cublasLtHandle_t handle = nullptr;
    static void* workspace = nullptr;
    static Plan current = {};
    if (turned_a || !turned_b) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (handle == nullptr) {
        CHECK(cublasLtCreate(&handle));
        if (cudaMalloc(&workspace, WORKSPACE) != cudaSuccess) return CUBLAS_STATUS_ALLOC_FAILED;
    }
    if (current.sizes[0] != m || current.sizes[1] != n || current.sizes[2] != k) {
        CHECK(static_cast<cublasStatus_t>(plan(handle, current, m, n, k)));
    }
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle, current.operation, &one, b, current.b, a, current.a, &zero, c, current.c, c, current.c,
                          &current.chosen.algo, workspace, WORKSPACE, stream);
}

// Rows `offsets[g]` to `offsets[g + 1]` of `a` by the transpose of matrix `g` of `b`, none empty: by one call, whose plan is made once, or by
// one for each group.
extern "C" int grouped_bf16(const void* a, const void* b, void* c, const int* offsets, int groups, int n, int k, int is_one_call,
                            cudaStream_t stream) {
    static cublasHandle_t handle = nullptr;
    static std::vector<int> planned;
    static const void** pointers = nullptr;
    if (handle == nullptr) CHECK(cublasCreate(&handle));
    CHECK(cublasSetStream(handle, stream));
    const auto of_a = [&](int g) { return static_cast<const __nv_bfloat16*>(a) + static_cast<size_t>(offsets[g]) * k; };
    const auto of_b = [&](int g) { return static_cast<const __nv_bfloat16*>(b) + static_cast<size_t>(g) * n * k; };
    const auto of_c = [&](int g) { return static_cast<__nv_bfloat16*>(c) + static_cast<size_t>(offsets[g]) * n; };
    const std::vector<float> ones(groups, 1), zeros(groups, 0);
    if (!is_one_call) {
        for (int g = 0; g < groups; ++g) {
            CHECK(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, offsets[g + 1] - offsets[g], k, &ones[g], of_b(g), CUDA_R_16BF, k,
                               of_a(g), CUDA_R_16BF, k, &zeros[g], of_c(g), CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        }
        return CUBLAS_STATUS_SUCCESS;
    }
    const std::vector<int> plan(offsets, offsets + groups + 1);
    if (plan != planned) {
        planned = plan;
        std::vector<const void*> all;
        for (int g = 0; g < groups; ++g) all.push_back(of_b(g));
        for (int g = 0; g < groups; ++g) all.push_back(of_a(g));
        for (int g = 0; g < groups; ++g) all.push_back(of_c(g));
        cudaFree(pointers);
        if (cudaMalloc(&pointers, all.size() * sizeof(void*)) != cudaSuccess) return CUBLAS_STATUS_ALLOC_FAILED;
        cudaMemcpy(pointers, all.data(), all.size() * sizeof(void*), cudaMemcpyHostToDevice);
    }
    const std::vector<cublasOperation_t> transposed(groups, CUBLAS_OP_T), straight(groups, CUBLAS_OP_N);
    const std::vector<int> columns(groups, n), depths(groups, k), sizes(groups, 1);
    std::vector<int> rows;
    for (int g = 0; g < groups; ++g) rows.push_back(offsets[g + 1] - offsets[g]);
    return cublasGemmGroupedBatchedEx(handle, transposed.data(), straight.data(), columns.data(), rows.data(), depths.data(), ones.data(),
                                      pointers, CUDA_R_16BF, depths.data(), pointers + groups, CUDA_R_16BF, depths.data(), zeros.data(),
                                      const_cast<void**>(pointers + 2 * groups), CUDA_R_16BF, columns.data(), groups, sizes.data(),
                                      CUBLAS_COMPUTE_32F);
}
