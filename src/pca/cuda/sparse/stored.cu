/* Sparse data, which come in blocks of rows, on a device: a store's, or a matrix in memory. Packed blocks are sent as
 * they are in the file, and unpacked there. Compressed columns stay there for as many blocks as have room beside what
 * the iteration takes; the others are fetched and sent again for each pass, while the device computes with those
 * before. A product meets dense pieces, all columns of some rows, into which a block is spread out: centred, scaled and
 * weighted on the way. A piece is written and read once at the speed of the device's memory, which for cells (a
 * twentieth of all values or more) is no longer than gathering them one by one would take; gathered.cu does that for
 * fewer values. Gram matrices are always made from pieces. A small matrix is spread out once. */
#include <cmath>
#include <cstring>
#include <new>
#include "pca/cuda/pca.cuh"
#include "pca/cuda/sparse/stored.cuh"

#define PIECE_COUNT ((size_t) 1 << 27) /* numbers of a piece, where there is room */
#define LITTLE_PIECE 4e6               /* of a matrix in memory, whose calls may take less time than taking so much, */
#define LITTLE_ROWS 4096               /* with at least this many rows, for products of them */
#define VECTORS 900                    /* that an iteration may take (engines/block.c), for which room is left */

/* ---- blocks on the device ---- */

static weft_status send_words(weft_device_arena *mem, int32_t *to, const int32_t *from, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = mem->ctx;
  WEFT_TRY(weft_device_upload(mem, to, count / 2, 8, weft_fill_doubles, from));
  if (count % 2) WEFT_CUDA(cudaMemcpyAsync(to + count - 1, from + count - 1, 4, cudaMemcpyHostToDevice, mem->stream));
done:
  return st;
}

/* One block: devices that reach each other take memory slowly. */
weft_status weft_pca_take_panel(weft_device_arena *mem, size_t p, size_t stored, weft_pca_stored *out)
{
  weft_status st = WEFT_OK;
  WEFT_DEVICE_TAKE(out->values, mem, stored + 1 + (stored + p + 3) / 2);
  out->rows = (int32_t *) (out->values + stored + 1);
  out->starts = out->rows + stored + 1;
  out->room = stored;
done:
  return st;
}

void weft_pca_drop_panel(weft_device_arena *mem, weft_pca_stored *panel)
{
  if (panel->values) weft_device_drop(mem, panel->values);
  memset(panel, 0, sizeof *panel);
}

weft_status weft_pca_read_panel(weft_ctx *ctx, const weft_pca_data *data, size_t index, weft_pca_read *out)
{
  weft_status st = WEFT_OK;
  memset(out, 0, sizeof *out);
  if (data->packed) {
    WEFT_TRY(data->packed(ctx, data->source, index, &out->packed));
    out->stored = out->packed->stored;
  } else {
    WEFT_TRY(data->fetch(ctx, data->source, index, &out->plain));
    out->stored = (size_t) out->plain.starts[data->p];
  }
done:
  return st;
}

static weft_status send_panel(weft_device_arena *mem, const weft_pca_panel *panel, size_t p, weft_pca_stored *to)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = mem->ctx;
  const size_t stored = (size_t) panel->starts[p];
  to->row = (int64_t) panel->row;
  to->n = (int64_t) panel->n;
  WEFT_CUDA(
      cudaMemcpyAsync(to->starts, panel->starts, (p + 1) * sizeof *to->starts, cudaMemcpyHostToDevice, mem->stream));
  WEFT_TRY(send_words(mem, to->rows, panel->rows, stored));
  WEFT_TRY(weft_device_upload(mem, to->values, stored, sizeof *to->values, weft_fill_doubles, panel->values));
done:
  return st;
}

/* Makes panel `index` compressed columns in `to`, unpacked on the device where it came packed. Where that finds damage,
 * the host reads the block again, which says what is wrong. */
weft_status weft_pca_put_panel(weft_unpacking *unpacking, const weft_pca_data *data, size_t index,
                               const weft_pca_read *from, weft_pca_stored *to)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = unpacking->mem->ctx;
  weft_pca_panel plain;
  int sound;
  to->stored = from->stored;
  if (!from->packed) return send_panel(unpacking->mem, &from->plain, data->p, to);
  to->row = (int64_t) from->packed->row;
  to->n = (int64_t) from->packed->n;
  WEFT_TRY(weft_unpack(unpacking, from->packed, to->starts, to->rows, to->values, &sound));
  if (sound) return st;
  WEFT_TRY(data->fetch(ctx, data->source, index, &plain)); /* which says where the damage is */
  st = weft_fail(ctx, WEFT_ERR_INTERNAL, "Block %.0f was not unpacked as it was packed.", (double) index + 1);
done:
  return st;
}

/* A block that does not stay takes the place of the one before. */
static weft_status pass_block(weft_pca_space *space, size_t index, const weft_pca_read *from)
{
  weft_status st = WEFT_OK;
  weft_pca_stored *to = &space->passing;
  if (!to->starts || from->stored > to->room) {
    cudaStreamSynchronize(space->mem.stream);
    weft_pca_drop_panel(&space->mem, to);
    WEFT_TRY(weft_pca_take_panel(&space->mem, space->data->p, from->stored + from->stored / 4, to));
  }
  st = weft_pca_put_panel(&space->unpacking, space->data, index, from, to);
done:
  return st;
}

/* Reads the panels and keeps as many on the device as leave room for vectors and Gram matrices; the others are read
 * again in each pass. Fails where not even sixteen rows fit. */
weft_status weft_pca_place_stored(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const weft_pca_data *data = space->data;
  const double have = weft_device_available(ctx), p = (double) data->p, least = 16 * p;
  const double reserve = fmin(0.5 * have, 8 * (VECTORS * ((double) data->n + p) + 3 * p * p));
  weft_pca_read panel;
  space->unpacking.mem = &space->mem;
  space->held = new (std::nothrow) std::vector<weft_pca_stored>();
  if (!space->held) return weft_fail_memory(ctx, "host", sizeof *space->held, -1, "");
  if (8 * least > 0.5 * have) return weft_fail_memory(ctx, "device", 8 * least, have, "sixteen rows");
  const double most = data->stays ? fmax(LITTLE_PIECE, LITTLE_ROWS * p) : (double) PIECE_COUNT;
  space->piece_count =
      (size_t) fmax(least, fmin(fmin(fmin(most, (double) PIECE_COUNT), 0.1 * have / 8), p * (double) (data->n + 15)));
  WEFT_DEVICE_TAKE(space->piece, &space->mem, space->piece_count);
  for (size_t t = 0; t < data->panels; t++) {
    weft_pca_stored block = { 0 };
    WEFT_TRY(weft_pca_read_panel(ctx, data, t, &panel));
    if (weft_device_available(ctx) - 12.0 * (double) panel.stored - 4 * p < reserve) break;
    WEFT_TRY(weft_pca_take_panel(&space->mem, data->p, panel.stored, &block));
    WEFT_TRY(weft_pca_put_panel(&space->unpacking, data, t, &panel, &block));
    space->held->push_back(block);
  }
done:
  return st;
}

/* ---- dense pieces of them ---- */

/* The first place of from .. to - 1 whose row is not before `row`. */
__device__ static int32_t not_before(const int32_t *rows, int32_t from, int32_t to, int64_t row)
{
  while (from < to) {
    const int32_t mid = from + (to - from) / 2;
    if (rows[mid] < row)
      from = mid + 1;
    else
      to = mid;
  }
  return from;
}

/* to[i + j ld] = (x[first + i, j] - center[j]) factor[j] weight[i] for `count` rows of a block; a thread block per
 * column. Those that follow, up to `padded`, are zeros. */
__global__ void spread_out(const int32_t *starts, const int32_t *rows, const double *values, int64_t first,
                           int64_t count, int64_t padded, int64_t ld, const double *center, const double *factor,
                           const double *weight, double *to)
{
  __shared__ int32_t range[2];
  const int64_t j = blockIdx.x;
  const double c = center[j], f = factor[j];
  double *column = to + j * ld;
  if (threadIdx.x < 2)
    range[threadIdx.x] = not_before(rows, starts[j], starts[j + 1], first + (threadIdx.x ? count : 0));
  for (int64_t i = threadIdx.x; i < padded; i += blockDim.x)
    column[i] = i < count ? (0 - c) * f * (weight ? weight[i] : 1) : 0;
  __syncthreads();
  for (int32_t at = range[0] + (int32_t) threadIdx.x; at < range[1]; at += blockDim.x) {
    const int64_t i = rows[at] - first;
    column[i] = (values[at] - c) * f * (weight ? weight[i] : 1);
  }
}

/* Some rows of a block, centred and scaled. */
static weft_status spread_rows(weft_pca_space *space, const weft_pca_stored *x, int64_t first, int64_t rows,
                               int64_t padded, int64_t ld, double *to)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  spread_out<<<(unsigned) space->data->p, 256, 0, space->mem.stream>>>(x->starts, x->rows, x->values, first, rows,
                                                                       padded, ld, space->center, space->factor,
                                                                       space->row ? space->row + x->row + first : NULL,
                                                                       to);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Each panel is sent to one block on the device, which the next one overwrites, and spread out into space->x: centred,
 * scaled and weighted. Zeros fill the columns up to a multiple of 16 rows. */
weft_status weft_pca_place_spread_out(weft_pca_space *space)
{
  weft_status st = WEFT_OK;
  const weft_pca_data *data = space->data;
  double *x = NULL;
  weft_pca_read panel;
  WEFT_DEVICE_TAKE(x, &space->mem, (size_t) space->ld * data->p);
  space->unpacking.mem = &space->mem;
  for (size_t t = 0; t < data->panels; t++) {
    weft_pca_stored *block = &space->passing;
    WEFT_TRY(weft_pca_read_panel(space->ctx, data, t, &panel));
    WEFT_TRY(pass_block(space, t, &panel));
    const int64_t end = block->row + block->n;
    const int64_t padded = (end == (int64_t) data->n ? space->ld : end) - block->row;
    WEFT_TRY(spread_rows(space, block, 0, block->n, padded, space->ld, x + block->row));
  }
  space->x = x;
done:
  return st;
}

/* Spreads a block out, as many rows at a time as s->piece holds (a multiple of 16), centred and scaled, and calls
 * `work` for each piece. */
static weft_status pieces_of_block(weft_pca_space *space, const weft_pca_stored *x, weft_pca_piece_work work,
                                   void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const int64_t p = (int64_t) space->data->p, at_once = (int64_t) (space->piece_count / (size_t) p) / 16 * 16;
  for (int64_t first = 0; first < x->n; first += at_once) {
    const int64_t rows = x->n - first < at_once ? x->n - first : at_once, ld = (rows + 15) / 16 * 16;
    const weft_pca_piece piece = { space->piece, x->row + first, 0, rows, p, ld };
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_TRY(spread_rows(space, x, first, rows, ld, ld, space->piece));
    WEFT_TRY(work(space, &piece, data));
  }
done:
  return st;
}

/* One pass over all panels: those that stay are where they are, the others are read and sent. */
weft_status weft_pca_each_stored(weft_pca_space *space, weft_pca_piece_work work, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = space->ctx;
  const weft_pca_data *d = space->data;
  weft_pca_read panel;
  for (size_t t = 0; t < d->panels; t++) {
    const int stays = t < space->held->size();
    if (!stays) {
      WEFT_TRY(weft_pca_read_panel(ctx, d, t, &panel));
      WEFT_TRY(pass_block(space, t, &panel));
    }
    WEFT_TRY(pieces_of_block(space, stays ? &(*space->held)[t] : &space->passing, work, data));
  }
done:
  return st;
}
