/* NVIDIA's libraries, opened by the first call that needs them: weft's CUDA object is complete without them, and a
 * session that does not use them does not wait for them. A function of a library is called through the table below,
 * under its own name without the library's: weft_blas.dgemm(...). */
#pragma once

#include <cublas_v2.h>
#include <cusolverDn.h>
#include "core/device/device.cuh"

/* clang-format off */
#define WEFT_BLAS_FUNCTIONS(X) \
  X(create, cublasCreate_v2) X(destroy, cublasDestroy_v2) X(set_stream, cublasSetStream_v2) \
  X(dgemm, cublasDgemm_v2) X(dgemv, cublasDgemv_v2) X(dsyrk, cublasDsyrk_v2) X(dsyr2k, cublasDsyr2k_v2)
#define WEFT_SOLVER_FUNCTIONS(X) \
  X(create, cusolverDnCreate) X(destroy, cusolverDnDestroy) X(set_stream, cusolverDnSetStream) \
  X(dsyevdx_size, cusolverDnDsyevdx_bufferSize) X(dsyevdx, cusolverDnDsyevdx)
/* clang-format on */

#define WEFT_LIBRARY_FIELD(name, symbol) decltype(&symbol) name;
extern struct weft_blas_table {
  WEFT_BLAS_FUNCTIONS(WEFT_LIBRARY_FIELD)
  /* cublasGemmEx, which C++ overloads */
  cublasStatus_t (*gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                            const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *,
                            cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
} weft_blas;
extern struct weft_solver_table {
  WEFT_SOLVER_FUNCTIONS(WEFT_LIBRARY_FIELD)
} weft_solver;

/* Fill the tables; WEFT_ERR_DEVICE, with where the library was looked for, when it cannot be opened. Any thread. */
weft_status weft_open_blas(weft_ctx *ctx);
weft_status weft_open_solver(weft_ctx *ctx);

/* Opens cuBLAS, the device and the handle of a call's own thread, then cuSOLVER where `which` (backend.h) has it, on a
 * thread of beside.c, while the call opens the device and sends data. The call tries again if this fails, and reports
 * it. */
void weft_libraries_beside(int device, int which);
/* The handle of this host thread of a call, made once per process and device, on this stream. It is never destroyed by
 * its user. */
weft_status weft_blas_handle(weft_ctx *ctx, cudaStream_t stream, cublasHandle_t *out);
weft_status weft_solver_handle(weft_ctx *ctx, cudaStream_t stream, cusolverDnHandle_t *out);
