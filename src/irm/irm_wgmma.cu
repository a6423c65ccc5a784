#include "irm_cuda.cuh"
int irm_wgmma_built(void) { return 0; }
int irm_wgmma_fits(int32_t) { return 0; }
size_t irm_wgmma_bytes(int32_t, int32_t) { return 0; }
weft_status irm_wgmma_arrange(weft_ctx *, const irm_device_tables &, cudaStream_t) { return WEFT_OK; }
weft_status irm_wgmma_draw(weft_ctx *, const irm_light_job &, cudaStream_t) { return WEFT_OK; }
