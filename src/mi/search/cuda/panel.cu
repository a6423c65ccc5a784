/* Counting a panel: every pair of planes and every class is one product of bit matrices, by 1-bit tensor cores
 * (mma.sync on compute capability 8.0 and later, POPC before). */
#include <cstring>
#include "mi/search/cuda/panel.cuh"

#define COUNTS_WORDS ((size_t) 64 << 20) /* counts of a part: 256 MB */
#define MAX_SIDE 8192                    /* attributes of a part each way */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__device__ static inline void mma_16x8x256(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

/* Blocks of 64 × 64 counts, four warps of 32 × 32. Rows past the end read row 0 and are not written. */
__global__ static void __launch_bounds__(128)
    count_planes(const uint32_t *planes_a, const uint32_t *planes_b, uint32_t words, const product *products, size_t na,
                 size_t nb, size_t ld, uint32_t *out)
{
  const product p = products[blockIdx.z];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t i0 = (size_t) blockIdx.y * COUNT_TILE + warp / 2 * 32,
               j0 = (size_t) blockIdx.x * COUNT_TILE + warp % 2 * 32;
  if (i0 >= na || j0 >= nb) return;
  out += p.out;
#if __CUDA_ARCH__ >= 800
  int c[2][4][4] = {};
  const uint32_t *a[4], *b[4];
  for (int k = 0; k < 4; k++) {
    const size_t i = i0 + 8 * k + lane / 4, j = j0 + 8 * k + lane / 4;
    a[k] = planes_a + (p.row_a + (i < na ? i : 0)) * words + p.first_word + lane % 4;
    b[k] = planes_b + (p.row_b + (j < nb ? j : 0)) * words + p.first_word + lane % 4;
  }
  for (uint32_t s = 0; s < p.steps; s++) {
    uint32_t fa[2][4], fb[4][2];
    for (int m = 0; m < 2; m++)
      for (int k = 0; k < 4; k++) fa[m][k] = a[2 * m + k % 2][s * STEP_WORDS + k / 2 * 4];
    for (int n = 0; n < 4; n++)
      for (int k = 0; k < 2; k++) fb[n][k] = b[n][s * STEP_WORDS + k * 4];
    for (int m = 0; m < 2; m++)
      for (int n = 0; n < 4; n++) mma_16x8x256(c[m][n], fa[m], fb[n]);
  }
  for (int m = 0; m < 2; m++)
    for (int n = 0; n < 4; n++)
      for (int k = 0; k < 4; k++) {
        const size_t i = i0 + 16 * m + lane / 4 + k / 2 * 8, j = j0 + 8 * n + lane % 4 * 2 + k % 2;
        if (i < na && j < nb) out[i * ld + j] = (uint32_t) c[m][n][k];
      }
#else
  const size_t j = j0 + lane;
  if (j >= nb) return;
  const uint32_t *b = planes_b + (p.row_b + j) * words + p.first_word;
  for (size_t i = i0; i < i0 + 32 && i < na; i++) {
    const uint32_t *a = planes_a + (p.row_a + i) * words + p.first_word;
    uint32_t count = 0;
    for (uint32_t w = 0; w < p.steps * STEP_WORDS; w++) count += __popc(a[w] & b[w]);
    out[i * ld + j] = count;
  }
#endif
}

/* Cuts a panel into parts whose counts fit the buffer and that have at most `pairs` pairs, and takes that memory;
 * weft_mi_panel_drop() gives it back. */
weft_status weft_mi_panel_plan(weft_device_arena *mem, weft_arena *host, const weft_mi_pack *x,
                               const weft_mi_resident *rx, const weft_mi_pack *y, const weft_mi_resident *ry,
                               const weft_mi_panel *panel, size_t pairs, mi_panel *out)
{
  weft_status st = WEFT_OK;
  const size_t planes = (size_t) x->classes * panel->group_a->shape.planes * panel->group_b->shape.planes;
  size_t room = COUNTS_WORDS / (planes ? planes : 1);
  if (room > pairs) room = pairs;
  *out = { mi_sides_of(x, y, panel), rx, ry };
  out->columns = room / COUNT_TILE < panel->group_b->count ? room / COUNT_TILE : panel->group_b->count;
  if (!out->columns) out->columns = 1;
  if (out->columns > MAX_SIDE) out->columns = MAX_SIDE;
  out->rows = room / out->columns < panel->group_a->count ? room / out->columns : panel->group_a->count;
  if (!out->rows) out->rows = 1;
  if (out->rows > MAX_SIDE) out->rows = MAX_SIDE;
  out->across = (panel->group_b->count + out->columns - 1) / out->columns;
  out->parts = out->across * ((panel->group_a->count + out->rows - 1) / out->rows);
  WEFT_DEVICE_TAKE(out->counts, mem, planes * out->rows * out->columns);
  WEFT_DEVICE_TAKE(out->products, mem, planes);
  WEFT_TAKE(out->host_products, host, planes + 1);
done:
  return st;
}

void weft_mi_panel_drop(weft_device_arena *mem, weft_arena *host, mi_panel *panel)
{
  weft_device_drop(mem, panel->counts);
  weft_device_drop(mem, panel->products);
  weft_arena_drop(host, panel->host_products);
}

/* Describes a part, lists its products of planes (class by class), and launches them. */
weft_status weft_mi_panel_count(weft_ctx *ctx, mi_panel *panel, uint64_t index, cudaStream_t stream, part *out)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *x = panel->x, *y = panel->y;
  const weft_mi_group *group_a = panel->group_a, *group_b = panel->group_b;
  const size_t i0 = (size_t) (index / panel->across) * panel->rows,
               j0 = (size_t) (index % panel->across) * panel->columns;
  const uint32_t pa = group_a->shape.planes, pb = group_b->shape.planes;
  size_t products = 0;
  memset(out, 0, sizeof *out);
  out->nb = group_b->count - j0 < panel->columns ? group_b->count - j0 : panel->columns;
  if (panel->same && j0 + out->nb <= i0 + 1) goto done;
  out->na = group_a->count - i0 < panel->rows ? group_a->count - i0 : panel->rows;
  out->counts.a = group_a->shape;
  out->counts.b = group_b->shape;
  out->counts.vary = group_a->shape.missing || group_b->shape.missing;
  out->counts.parts = x->classes;
  out->counts.both = panel->counts;
  out->counts.ld = out->nb;
  out->counts.stride = out->na * out->nb;
  out->counts.margin_a = panel->rx->margins + group_a->plane0 + i0;
  out->counts.margin_b = panel->ry->margins + group_b->plane0 + j0;
  out->counts.part_a = x->plane_rows;
  out->counts.part_b = y->plane_rows;
  out->counts.plane_a = group_a->count;
  out->counts.plane_b = group_b->count;
  out->counts.totals = panel->rx->class_rows;
  out->f = panel->rx->f;
  out->place_a = group_a->first + i0;
  out->place_b = group_b->first + j0;
  out->columns = x->columns;
  out->classes = x->classes;
  out->per = x->per;
  out->n = x->n;
  out->class_fixed = x->class_fixed;
  out->same = panel->same;
  out->column = panel->rx->column;
  out->alone = panel->rx->alone;
  for (uint32_t cl = 0, word = 0; cl < x->classes; cl++) {
    const uint32_t steps = (x->class_rows[cl] + STEP_BITS - 1) / STEP_BITS;
    for (uint32_t qa = 0; qa < pa; qa++)
      for (uint32_t qb = 0; qb < pb; qb++) {
        product *q = &panel->host_products[products];
        q->row_a = group_a->plane0 + qa * group_a->count + i0;
        q->row_b = group_b->plane0 + qb * group_b->count + j0;
        q->first_word = word;
        q->steps = steps;
        q->out = products++ * out->counts.stride;
      }
    word += steps * STEP_WORDS;
  }
  if (!products) goto done;
  WEFT_CUDA(cudaMemcpyAsync(panel->products, panel->host_products, products * sizeof *panel->products,
                            cudaMemcpyHostToDevice, stream));
  for (size_t first = 0; first < products; first += 32768) {
    const size_t now = products - first < 32768 ? products - first : 32768;
    const dim3 blocks((unsigned) ((out->nb + COUNT_TILE - 1) / COUNT_TILE),
                      (unsigned) ((out->na + COUNT_TILE - 1) / COUNT_TILE), (unsigned) now);
    count_planes<<<blocks, 128, 0, stream>>>(panel->rx->planes, panel->ry->planes, panel->rx->words,
                                             panel->products + first, out->na, out->nb, out->counts.ld, panel->counts);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}
