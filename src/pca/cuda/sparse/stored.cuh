/* Sparse data, blocks of rows: panels on a device, and X as pieces with all columns. */
#pragma once

#include "pca/cuda/pca.cuh"

/* A panel of data that are read in blocks, as it came: packed, or with `packed` NULL. */
struct weft_pca_read {
  const weft_packed_panel *packed;
  weft_pca_panel plain;
  size_t stored;
};
/* Reads a panel on the host: valid until the next one is read. */
weft_status weft_pca_read_panel(weft_ctx *ctx, const weft_pca_data *data, size_t index, weft_pca_read *out);
/* Device memory for a panel with at most `stored` values, and back. */
weft_status weft_pca_take_panel(weft_device_arena *mem, size_t p, size_t stored, weft_pca_stored *out);
void weft_pca_drop_panel(weft_device_arena *mem, weft_pca_stored *panel);
/* Puts a panel that was read into memory that has room for it. */
weft_status weft_pca_put_panel(weft_unpacking *unpacking, const weft_pca_data *data, size_t index,
                               const weft_pca_read *from, weft_pca_stored *to);

/* Makes a whole dense matrix of sparse data, which has room on the device. */
weft_status weft_pca_place_spread_out(weft_pca_space *space);
/* Keeps as many panels on the device as there is room for; then calls `work` for pieces of all of them, centred and
 * scaled, with all columns. */
weft_status weft_pca_place_stored(weft_pca_space *space);
weft_status weft_pca_each_stored(weft_pca_space *space, weft_pca_piece_work work, void *data);
