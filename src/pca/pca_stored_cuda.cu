/* Sparse data that are read in blocks (a store's), on a device. Compressed columns stay there for as many blocks as
 * have room beside what the iteration takes; the others are fetched and sent again for each pass, while the device
 * computes with those before. A product meets dense pieces, all columns of some rows, into which a block is spread out:
 * centred, scaled and weighted on the way. A piece is written and read once at the speed of the device's memory, which
 * for cells (a twentieth of all values or more) is no longer than gathering them one by one would take. */
#include <cmath>
#include <cstring>
#include <new>
#include "pca_cuda.cuh"

#define PIECE_COUNT ((size_t) 1 << 27) /* numbers of a piece, where there is room */
#define VECTORS 900                    /* that an iteration may take (pca_block.c), for which room is left */

/* ---- blocks on the device ---- */

static weft_status send_words(weft_pca_space *s, int32_t *to, const int32_t *from, size_t count)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  WEFT_TRY(weft_device_upload(&s->mem, to, count / 2, 8, weft_fill_doubles, from));
  if (count % 2)
    WEFT_CUDA(cudaMemcpyAsync(to + count - 1, from + count - 1, 4, cudaMemcpyHostToDevice, s->mem.stream));
done:
  return st;
}

/* Room for the columns of a panel. */
static weft_status take_block(weft_pca_space *s, size_t stored, weft_pca_stored *out)
{
  weft_status st = WEFT_OK;
  WEFT_DEVICE_TAKE(out->starts, &s->mem, s->data->p + 1);
  WEFT_DEVICE_TAKE(out->rows, &s->mem, stored + 1);
  WEFT_DEVICE_TAKE(out->values, &s->mem, stored + 1);
  out->room = stored;
done:
  return st;
}

static weft_status send_block(weft_pca_space *s, const weft_pca_panel *panel, weft_pca_stored *to)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const size_t p = s->data->p, stored = (size_t) panel->starts[p];
  to->row = (int64_t) panel->row;
  to->n = (int64_t) panel->n;
  WEFT_CUDA(cudaMemcpyAsync(to->starts, panel->starts, (p + 1) * sizeof *to->starts, cudaMemcpyHostToDevice,
                            s->mem.stream));
  WEFT_TRY(send_words(s, to->rows, panel->rows, stored));
  WEFT_TRY(weft_device_upload(&s->mem, to->values, stored, sizeof *to->values, weft_fill_doubles, panel->values));
done:
  return st;
}

/* A block that does not stay takes the place of the one before. */
static weft_status pass_block(weft_pca_space *s, const weft_pca_panel *panel)
{
  weft_status st = WEFT_OK;
  weft_pca_stored *to = &s->passing;
  const size_t stored = (size_t) panel->starts[s->data->p];
  if (!to->starts || stored > to->room) {
    cudaStreamSynchronize(s->mem.stream);
    if (to->starts) weft_device_drop(&s->mem, to->starts);
    if (to->rows) weft_device_drop(&s->mem, to->rows);
    if (to->values) weft_device_drop(&s->mem, to->values);
    memset(to, 0, sizeof *to);
    WEFT_TRY(take_block(s, stored + stored / 4, to));
  }
  st = send_block(s, panel, to);
done:
  return st;
}

weft_status weft_pca_place_stored(weft_pca_space *s)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const weft_pca_data *d = s->data;
  const double have = weft_device_available(ctx), p = (double) d->p, least = 16 * p;
  const double reserve = fmin(0.5 * have, 8 * (VECTORS * ((double) d->n + p) + 3 * p * p));
  weft_pca_panel panel;
  s->held = new (std::nothrow) std::vector<weft_pca_stored>();
  if (!s->held) return weft_fail_memory(ctx, "host", sizeof *s->held, -1, "");
  if (8 * least > 0.5 * have) return weft_fail_memory(ctx, "device", 8 * least, have, "sixteen rows");
  s->piece_count = (size_t) fmax(least, fmin((double) PIECE_COUNT, 0.1 * have / 8));
  WEFT_DEVICE_TAKE(s->piece, &s->mem, s->piece_count);
  for (size_t t = 0; t < d->panels; t++) {
    weft_pca_stored block = { 0 };
    WEFT_TRY(d->fetch(ctx, d->source, t, &panel));
    if (weft_device_available(ctx) - 12.0 * panel.starts[d->p] - 4 * p < reserve) break;
    WEFT_TRY(take_block(s, (size_t) panel.starts[d->p], &block));
    WEFT_TRY(send_block(s, &panel, &block));
    s->held->push_back(block);
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
    if (rows[mid] < row) from = mid + 1; else to = mid;
  }
  return from;
}

/* to[i + j ld] = (x[first + i, j] - center[j]) factor[j] weight[i] for `count` rows of a block; a thread block per
 * column. Rows up to ld are zeros. */
__global__ void spread_out(const int32_t *starts, const int32_t *rows, const double *values, int64_t first,
                           int64_t count, int64_t ld, const double *center, const double *factor, const double *weight,
                           double *to)
{
  __shared__ int32_t range[2];
  const int64_t j = blockIdx.x;
  const double c = center[j], f = factor[j];
  double *column = to + j * ld;
  if (threadIdx.x < 2)
    range[threadIdx.x] = not_before(rows, starts[j], starts[j + 1], first + (threadIdx.x ? count : 0));
  for (int64_t i = threadIdx.x; i < ld; i += blockDim.x)
    column[i] = i < count ? (0 - c) * f * (weight ? weight[i] : 1) : 0;
  __syncthreads();
  for (int32_t at = range[0] + (int32_t) threadIdx.x; at < range[1]; at += blockDim.x) {
    const int64_t i = rows[at] - first;
    column[i] = (values[at] - c) * f * (weight ? weight[i] : 1);
  }
}

static weft_status pieces_of_block(weft_pca_space *s, const weft_pca_stored *x, weft_pca_piece_work work, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const int64_t p = (int64_t) s->data->p, at_once = (int64_t) (s->piece_count / (size_t) p) / 16 * 16;
  for (int64_t first = 0; first < x->n; first += at_once) {
    const int64_t rows = x->n - first < at_once ? x->n - first : at_once, ld = (rows + 15) / 16 * 16;
    const weft_pca_piece piece = { s->piece, x->row + first, 0, rows, p, ld };
    WEFT_TRY(weft_poll(ctx, 0, 0));
    spread_out<<<(unsigned) p, 256, 0, s->mem.stream>>>(x->starts, x->rows, x->values, first, rows, ld, s->center,
                                                        s->factor, s->row ? s->row + piece.row : NULL, s->piece);
    WEFT_CUDA(cudaGetLastError());
    WEFT_TRY(work(s, &piece, data));
  }
done:
  return st;
}

weft_status weft_pca_each_stored(weft_pca_space *s, weft_pca_piece_work work, void *data)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = s->ctx;
  const weft_pca_data *d = s->data;
  weft_pca_panel panel;
  for (size_t t = 0; t < d->panels; t++) {
    const int stays = t < s->held->size();
    if (!stays) {
      WEFT_TRY(d->fetch(ctx, d->source, t, &panel));
      WEFT_TRY(pass_block(s, &panel));
    }
    WEFT_TRY(pieces_of_block(s, stays ? &(*s->held)[t] : &s->passing, work, data));
  }
done:
  return st;
}
