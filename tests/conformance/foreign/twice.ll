; NVVM IR, in the text that LLVM 7 has, for `nvvm_ir_compiles_and_runs`.
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"

define void @twice(float* %x) {
    %value = load float, float* %x
    %product = fmul float %value, 2.0
    store float %product, float* %x
    ret void
}

!nvvm.annotations = !{!0}
!0 = !{void (float*)* @twice, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0}
