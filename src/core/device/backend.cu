/* The table of the CUDA back end, which weft.so asks for when it has opened weft_cuda.so (backend.c). */
#include "core/call/backend.h"
#include "core/device/device.cuh"
#include "core/device/kept.cuh"
#include "core/device/libraries.cuh"
#include "core/numbers/draws_fill.h"
#include "core/device/rates.cuh"

static const weft_device_ops devices = { weft_device_count,    weft_device_describe, weft_matrix_upload,
                                         weft_matrix_download, weft_matrix_release,  weft_device_rates,
                                         weft_device_opened,   weft_device_open,     weft_libraries_beside,
                                         weft_kept_free_all };

extern "C" {
#define EXTERN_CUDA(room) extern const struct weft_##room##_ops weft_##room##_cuda;
WEFT_ROOMS(EXTERN_CUDA)

#define CUDA_FIELD(room) &weft_##room##_cuda,
static const weft_backend table = { WEFT_ABI, sizeof(weft_backend), "cuda",
                                    &devices, weft_draws_fill_cuda, WEFT_ROOMS(CUDA_FIELD) };

__attribute__((visibility("default"))) const weft_backend *weft_cuda_entry(void) { return &table; }
}
