/* See coded.cuh. Compiled without contraction: entropies have the same bits wherever their order is the same. */
/* Build: exact. */
#include <cstring>
#include "core/call/parallel.h"
#include "mi/pairs/cuda/coded.cuh"
#include "mi/matrix/both/estimate.h"

#define THREADS 256
#define CODES_BYTES ((size_t) 64 << 20) /* of a tile's side */
#define MAX_SIDE 512                    /* a tile's pairs are fewer than a search's buffer has room for */
#define STATIC_BYTES 4096               /* shared memory besides the table, rounded up */

struct codes_args {
  const uint16_t *a, *b, *row_class;
  const uint32_t *levels_a, *levels_b, *column;
  size_t n, place_a, place_b, nj, columns;
  uint32_t classes, per, words;
  int same;
  weft_mi_log f;
  codes_out out;
};

/* ---- sums over a block, in a fixed order ---- */

template <class T> __device__ static T total(T v, T *room)
{
  __syncthreads();
  room[threadIdx.x] = v;
  for (uint32_t half = THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
  }
  __syncthreads();
  return room[0];
}

/* Entropy in nats of the counts at `counts`. */
__device__ static double entropy(const weft_mi_log &f, const uint32_t *counts, uint32_t cells, int estimator,
                                 long long *whole, double *real, double *occupied)
{
  weft_mi_estimate estimate;
  memset(&estimate, 0, sizeof estimate);
  for (int turn = 0; turn < weft_mi_turns(estimator); turn++) {
    for (uint32_t k = threadIdx.x; k < cells; k += THREADS)
      weft_mi_estimate_add(&estimate, &f, estimator, turn, counts[k]);
    if (turn == 0) {
      estimate.n = (uint64_t) total((long long) estimate.n, whole);
      estimate.cells = total(estimate.cells, real);
      estimate.fixed = total((long long) estimate.fixed, whole);
    } else {
      estimate.squares = total(estimate.squares, real);
      estimate.away = total(estimate.away, real);
      estimate.sum = total(estimate.sum, real);
    }
    weft_mi_estimate_turn(&estimate, estimator, turn);
  }
  *occupied = estimate.cells;
  return weft_mi_estimate_nats(&estimate, &f, estimator);
}

/* Σ f over `items` items' counts by class, less Σ f over the items, or within strata over each item's strata. */
__device__ static long long by_level(const weft_mi_log &f, const uint32_t *counts, uint32_t items, uint32_t classes,
                                     uint32_t per, long long *room)
{
  long long sum = 0;
  for (uint32_t k = threadIdx.x; k < items; k += THREADS) {
    weft_mi_by_class item = weft_mi_by_class_of(&f, per);
    for (uint32_t c = 0; c < classes; c++) weft_mi_by_class_add(&item, counts[k * classes + c]);
    sum += item.sum;
  }
  return total(sum, room);
}

/* ---- the kernel ---- */

__global__ static void __launch_bounds__(THREADS) count_codes(codes_args args)
{
  extern __shared__ uint32_t table[];
  __shared__ long long whole[THREADS];
  double *const real = (double *) whole;
  const size_t i = blockIdx.y, j = blockIdx.x;
  const uint32_t la = args.levels_a[i], lb = args.levels_b[j], classes = args.classes, cells = la * lb * classes;
  if (args.same && args.place_b + j <= args.place_a + i) return;
  if ((uint64_t) la * lb + la + lb > args.words / classes) return;
  uint32_t *const of_a = table + cells, *const of_b = of_a + la * classes;
  for (uint32_t k = threadIdx.x; k < cells; k += THREADS) table[k] = 0;
  __syncthreads();
  const uint16_t *a = args.a + i * args.n, *b = args.b + j * args.n;
  for (size_t r = threadIdx.x; r < args.n; r += THREADS) {
    const uint32_t x = a[r], y = b[r];
    if (x == WEFT_MI_MISSING || y == WEFT_MI_MISSING) continue;
    atomicAdd(&table[(x * lb + y) * classes + (classes > 1 ? args.row_class[r] : 0)], 1u);
  }
  __syncthreads();
  for (uint32_t k = threadIdx.x; k < la * classes; k += THREADS) {
    const uint32_t *from = table + k / classes * lb * classes + k % classes;
    uint32_t sum = 0;
    for (uint32_t y = 0; y < lb; y++) sum += from[y * classes];
    of_a[k] = sum;
  }
  for (uint32_t k = threadIdx.x; k < lb * classes; k += THREADS) {
    uint32_t sum = 0;
    for (uint32_t x = 0; x < la; x++) sum += table[x * lb * classes + k];
    of_b[k] = sum;
  }
  __syncthreads();
  if (!args.out.hits.items && !args.out.interaction) {
    const int estimator = args.out.estimator;
    double ma, mb, mab;
    const double ha = entropy(args.f, of_a, la, estimator, whole, real, &ma),
                 hb = entropy(args.f, of_b, lb, estimator, whole, real, &mb);
    double value;
    if (weft_mi_whole(estimator)) { /* whole numbers to the end, as on the CPU */
      long long sum = 0, n = 0;
      for (uint32_t k = threadIdx.x; k < cells; k += THREADS) {
        sum += weft_mi_fixed(&args.f, table[k]);
        n += table[k];
      }
      for (uint32_t k = threadIdx.x; k < la + lb; k += THREADS) sum -= weft_mi_fixed(&args.f, of_a[k]);
      sum = total(sum, whole);
      n = total(n, whole);
      sum += weft_mi_fixed(&args.f, (uint64_t) n);
      value = sum > 0 ? weft_mi_bits(sum, args.f.unit, (uint64_t) n) : 0;
    } else {
      value = (ha + hb - entropy(args.f, table, cells, estimator, whole, real, &mab)) / WEFT_MI_LN2;
    }
    if (threadIdx.x == 0) args.out.mi[i * args.nj + j] = ma < 2 || mb < 2 ? 0 : value;
    return;
  }
  long long n = 0, of_classes = 0;
  for (uint32_t first = threadIdx.x * args.per; first < classes; first += THREADS * args.per) { /* a stratum */
    weft_mi_by_class all = weft_mi_by_class_of(&args.f, args.per);
    for (uint32_t c = first; c < first + args.per; c++) {
      uint64_t rows = 0;
      for (uint32_t x = 0; x < la; x++) rows += of_a[x * classes + c];
      weft_mi_by_class_add(&all, rows);
    }
    of_classes += all.sum;
    n += (long long) all.n;
  }
  n = total(n, whole);
  of_classes = total(of_classes, whole);
  long long joint = by_level(args.f, table, la * lb, classes, args.per, whole) - of_classes,
            one = by_level(args.f, of_a, la, classes, args.per, whole) - of_classes,
            other = by_level(args.f, of_b, lb, classes, args.per, whole) - of_classes;
  if (threadIdx.x) return;
  joint = joint > 0 ? joint : 0;
  const long long gain = joint - (one > 0 ? one : 0) - (other > 0 ? other : 0);
  const double mi = weft_mi_bits(joint, args.f.unit, (uint64_t) n),
               interaction = weft_mi_bits(gain, args.f.unit, (uint64_t) n);
  if (args.out.interaction) {
    args.out.mi[i * args.nj + j] = mi;
    args.out.interaction[i * args.nj + j] = interaction;
    return;
  }
  const uint64_t x = args.column[args.place_a + i], y = args.column[args.place_b + j];
  mi_offer(args.out.threshold, args.out.hits, mi, interaction, (x < y ? x : y) * args.columns + (x < y ? y : x));
}

/* ---- host ---- */

uint32_t weft_mi_codes_limit(weft_ctx *ctx)
{
  int bytes = 0;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ctx->device) != cudaSuccess)
    bytes = 48 << 10;
  return (uint32_t) (bytes - STATIC_BYTES) / 4;
}

/* Cuts a panel into tiles whose codes fit their buffers, and takes the memory for one tile. weft_mi_codes_drop() gives
 * it back. */
weft_status weft_mi_codes_plan(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *x,
                               const weft_mi_resident *resident, const weft_mi_pack *y, const weft_mi_panel *panel,
                               int by_class, mi_codes *out)
{
  weft_status st = WEFT_OK;
  size_t limit = panel->group_a->count > panel->group_b->count ? panel->group_a->count : panel->group_b->count;
  *out = { mi_sides_of(x, y, panel), resident };
  out->classes = by_class && x->classes > 1;
  out->words = weft_mi_codes_limit(ctx);
  out->side = CODES_BYTES / (2 * (x->n + 1));
  if (out->side > MAX_SIDE) out->side = MAX_SIDE;
  if (out->side > limit) out->side = limit;
  if (!out->side) out->side = 1;
  out->across = (panel->group_b->count + out->side - 1) / out->side;
  out->tiles = out->across * ((panel->group_a->count + out->side - 1) / out->side);
  WEFT_DEVICE_TAKE(out->a, mem, out->side * x->n);
  WEFT_DEVICE_TAKE(out->b, mem, out->side * x->n);
  WEFT_DEVICE_TAKE(out->levels, mem, 2 * out->side);
  WEFT_DEVICE_TAKE(out->row_class, mem, x->n);
  WEFT_TAKE(out->host_codes, host, (out->side + 1) * x->n);
  WEFT_TAKE(out->host_levels, host, 2 * out->side);
  for (size_t c = 0, row = 0; c < x->classes; c++)
    for (uint32_t k = 0; k < x->class_rows[c]; k++) out->host_codes[row++] = (uint16_t) c;
  WEFT_TRY(weft_device_upload(mem, out->row_class, x->n * sizeof *out->row_class, 1, weft_fill_bytes, out->host_codes));
done:
  return st;
}

void weft_mi_codes_drop(weft_device_arena *mem, weft_arena *host, mi_codes *job)
{
  weft_device_drop(mem, job->a);
  weft_device_drop(mem, job->b);
  weft_device_drop(mem, job->levels);
  weft_device_drop(mem, job->row_class);
  weft_arena_drop(host, job->host_codes);
  weft_arena_drop(host, job->host_levels);
}

static weft_status load_side(weft_ctx *ctx, weft_device_arena *mem, mi_codes *job, const weft_mi_pack *pack,
                             size_t place, size_t count, uint16_t *to, uint32_t *levels)
{
  weft_status st = WEFT_OK;
  WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) count * (double) pack->n))
  WEFT_FOR(dynamic)
  for (int64_t k = 0; k < (int64_t) count; k++) {
    weft_mi_pack_codes(pack, place + (size_t) k, job->host_codes + (size_t) k * pack->n);
    levels[k] = pack->levels[place + (size_t) k];
  }
  WEFT_TRY(weft_device_upload(mem, to, count * pack->n * sizeof *to, 1, weft_fill_bytes, job->host_codes));
done:
  return st;
}

/* Loads the codes of both sides of a tile (side a stays while the tiles of its row are done) and launches a block for
 * each pair. Pairs whose tables do not fit in shared memory are left to the CPU. */
weft_status weft_mi_codes_tile(weft_ctx *ctx, weft_device_arena *mem, mi_codes *job, uint64_t index,
                               const codes_out *out)
{
  weft_status st = WEFT_OK;
  const uint64_t down = index / job->across;
  uint64_t words = 0;
  uint32_t max_a = 0, max_b = 0;
  codes_args args;
  job->i0 = (size_t) down * job->side;
  job->j0 = (size_t) (index % job->across) * job->side;
  job->nj = job->group_b->count - job->j0 < job->side ? job->group_b->count - job->j0 : job->side;
  job->ni = 0;
  if (job->same && job->j0 + job->nj <= job->i0 + 1) goto done;
  job->ni = job->group_a->count - job->i0 < job->side ? job->group_a->count - job->i0 : job->side;
  if (job->loaded != down + 1)
    WEFT_TRY(load_side(ctx, mem, job, job->x, job->group_a->first + job->i0, job->ni, job->a, job->host_levels));
  job->loaded = down + 1;
  WEFT_TRY(
      load_side(ctx, mem, job, job->y, job->group_b->first + job->j0, job->nj, job->b, job->host_levels + job->side));
  WEFT_TRY(
      weft_device_upload(mem, job->levels, 2 * job->side * sizeof *job->levels, 1, weft_fill_bytes, job->host_levels));
  memset(&args, 0, sizeof args);
  args.a = job->a;
  args.b = job->b;
  args.row_class = job->row_class;
  args.levels_a = job->levels;
  args.levels_b = job->levels + job->side;
  args.column = job->resident->column;
  args.n = job->x->n;
  args.place_a = job->group_a->first + job->i0;
  args.place_b = job->group_b->first + job->j0;
  args.nj = job->nj;
  args.columns = job->x->columns;
  args.classes = job->classes ? job->x->classes : 1;
  args.per = job->classes ? job->x->per : 1;
  args.same = job->same;
  args.f = job->resident->f;
  args.out = *out;
  for (size_t k = 0; k < job->ni; k++)
    if (job->host_levels[k] > max_a) max_a = job->host_levels[k];
  for (size_t k = 0; k < job->nj; k++)
    if (job->host_levels[job->side + k] > max_b) max_b = job->host_levels[job->side + k];
  words = mi_codes_words(max_a, max_b, args.classes);
  args.words = words < job->words ? (uint32_t) words : job->words;
  WEFT_CUDA(weft_device_allow_shared((const void *) count_codes, 4 * (size_t) args.words));
  count_codes<<<dim3((unsigned) job->nj, (unsigned) job->ni), THREADS, 4 * args.words, mem->stream>>>(args);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}
