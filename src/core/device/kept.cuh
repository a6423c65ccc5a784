/* Blocks of device memory and streams that a process keeps between calls. To take memory, to give it back and to make
 * streams takes longer than small calls' work. Blocks that nobody uses are counted by themselves (`device_kept` of the
 * account), and go back to the driver when memory is short, when the user has set a limit, and by
 * weft_free(). Any thread. */
#pragma once

#include <cuda_runtime.h>
#include "core/call/context.h"

/* At least `bytes` on the context's device, which is the thread's current one; *room: how many. The first function
 * only looks at what is kept, and gives NULL where nothing fits; the second asks the driver, once more without what is
 * kept where there is too little, and gives NULL where that fails. */
void *weft_kept_block(weft_ctx *ctx, size_t bytes, size_t *room);
void *weft_new_block(weft_ctx *ctx, size_t bytes, size_t *room);
/* Takes back a block that no work uses any more. `sound`: the device reports no error. */
void weft_keep_block(weft_ctx *ctx, void *data, size_t room, bool sound);

/* Whether blocks are kept at all: not on unknown devices, and not for compute-sanitizer (WEFT_DEVICE_KEEP=no). */
bool weft_keeps(const weft_ctx *ctx);

/* Bytes that are kept on the context's device. */
double weft_kept_bytes(const weft_ctx *ctx);
/* Gives the blocks of the context's device back to the driver, or those of all devices. */
void weft_kept_free(const weft_ctx *ctx);
void weft_kept_free_all(void);

/* A stream of the context's device, on which nothing is under way. */
cudaError_t weft_kept_stream(weft_ctx *ctx, cudaStream_t *out);
void weft_keep_stream(weft_ctx *ctx, cudaStream_t stream, bool sound);
