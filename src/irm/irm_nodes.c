/* See irm_nodes.h. The body is written once in vectors of 16 floats, which the compiler makes of one AVX-512 register,
 * two of AVX2 or four of the baseline; each variant is that body with another target. */
#include <string.h>
#include "irm_nodes.h"
#include "../base/simd.h"

typedef float v16 __attribute__((vector_size(64), may_alias));
typedef int32_t i16 __attribute__((vector_size(64), may_alias));
typedef double v8 __attribute__((vector_size(64), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* ---- softmax and the draw ---- */

/* exp(x) for x <= 0, 0 below -87; relative error below 3e-7. */
INLINE void exp_lanes(v16 *x)
{
  const float shift = 12582912.0f; /* 1.5 * 2^23 */
  i16 above = *x > -87.0f;
  v16 y = (v16) (((i16) *x & above));
  v16 shifted = y * 1.44269504f + shift, k = shifted - shift;
  v16 r = (y - k * 0.693359375f) + k * 2.12194440e-4f;
  v16 p = ((((r * 1.9875691500e-4f + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r
           + 1.6666665459e-1f) * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  i16 exponent = ((i16) shifted - 0x4B400000) << 23; /* the bits of `shift` taken off leave k */
  *x = (v16) (((i16) p + exponent) & above);
}

INLINE float sum_lanes(const v16 *x)
{
  float a[8], lanes[16];
  memcpy(lanes, x, sizeof lanes);
  for (int i = 0; i < 8; i++) a[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; i++) a[i] += a[i + 4];
  return (a[0] + a[2]) + (a[1] + a[3]);
}

INLINE int32_t pick(float *scores, int64_t width, double u)
{
  v16 *s = (v16 *) scores, best = s[0];
  for (int64_t b = 1; b < width / IRM_LANES; b++) {
    i16 larger = s[b] > best;
    best = (v16) (((i16) s[b] & larger) | ((i16) best & ~larger));
  }
  float most = best[0];
  for (int i = 1; i < IRM_LANES; i++) if (best[i] > most) most = best[i];
  double total = 0;
  for (int64_t b = 0; b < width / IRM_LANES; b++) {
    v16 e = s[b] - most;
    exp_lanes(&e);
    s[b] = e;
    total += sum_lanes(&e);
  }
  double target = u * total, reached = 0;
  for (int64_t b = 0; b < width / IRM_LANES; b++) {
    double block = sum_lanes(&s[b]);
    if (target >= reached + block && b + 1 < width / IRM_LANES) {
      reached += block;
      continue;
    }
    int32_t last = -1;
    for (int i = 0; i < IRM_LANES; i++) {
      if (scores[b * IRM_LANES + i] <= 0) continue;
      last = (int32_t) (b * IRM_LANES + i);
      reached += scores[last];
      if (target < reached) return last;
    }
    if (last >= 0) return last;
  }
  for (int32_t l = (int32_t) width - 1; l > 0; l--) if (scores[l] > 0) return l; /* rounding left u beyond the sum */
  return 0;
}

/* ---- scores ---- */

/* The sum of `count` rows, `vectors` registers at a time. */
#define ADD_ROWS(vectors) do { \
    v16 sum[vectors]; \
    for (int v = 0; v < (vectors); v++) sum[v] = ((const v16 *) (s->scores + at))[v]; \
    if (weighted) \
      for (int64_t e = 0; e < count; e++) \
        for (int v = 0; v < (vectors); v++) sum[v] += s->weights[e] * ((const v16 *) (s->rows[e] + at))[v]; \
    else \
      for (int64_t e = 0; e < count; e++) \
        for (int v = 0; v < (vectors); v++) sum[v] += ((const v16 *) (s->rows[e] + at))[v]; \
    for (int v = 0; v < (vectors); v++) ((v16 *) (s->scores + at))[v] = sum[v]; \
    at += (vectors) * IRM_LANES; \
  } while (0)

INLINE void add_rows(irm_node_scratch *s, int64_t count, int64_t width, int weighted)
{
  int64_t at = 0;
  while (width - at >= 8 * IRM_LANES) ADD_ROWS(8);
  if (width - at >= 4 * IRM_LANES) ADD_ROWS(4);
  if (width - at >= 2 * IRM_LANES) ADD_ROWS(2);
  if (width - at >= IRM_LANES) ADD_ROWS(1);
}

INLINE void light_node(const irm_node_job *job, int64_t i, irm_node_scratch *s)
{
  const weft_irm_lists *a = job->links;
  int64_t count = 0;
  for (int64_t e = a->start[i]; e < a->start[i + 1]; e++, count++) {
    s->rows[count] = job->link_rows + job->other[a->to[e]] * job->width;
    if (a->weight) s->weights[count] = (float) a->weight[e];
  }
  if (a->weight) add_rows(s, count, job->width, 1);
  else add_rows(s, count, job->width, 0);
  if (!job->missing) return;
  count = 0;
  for (int64_t e = job->missing->start[i]; e < job->missing->start[i + 1]; e++, count++) {
    s->rows[count] = job->missing_rows + job->other[job->missing->to[e]] * job->width;
    s->weights[count] = -1;
  }
  if (count) add_rows(s, count, job->width, 1);
}

INLINE void add_counted(const weft_irm_lists *lists, int64_t i, const irm_node_job *job, const double *rows, int sign,
                        irm_node_scratch *s)
{
  memset(s->counts, 0, (size_t) job->k_other * sizeof *s->counts);
  for (int64_t e = lists->start[i]; e < lists->start[i + 1]; e++)
    s->counts[job->other[lists->to[e]]] += lists->weight ? lists->weight[e] : 1;
  for (int32_t m = 0; m < job->k_other; m++) {
    if (s->counts[m] == 0) continue;
    const double by = (double) (sign * s->counts[m]);
    const v8 *row = (const v8 *) (rows + m * job->width);
    v8 *sums = (v8 *) s->sums;
    for (int64_t b = 0; b < job->width / 8; b++) sums[b] += by * row[b];
  }
}

INLINE void heavy_node(const irm_node_job *job, int64_t i, irm_node_scratch *s)
{
  memcpy(s->sums, job->base, (size_t) job->width * sizeof *s->sums);
  add_counted(job->links, i, job, job->link_exact, 1, s);
  if (job->missing) add_counted(job->missing, i, job, job->missing_exact, -1, s);
  double most = s->sums[0];
  for (int64_t l = 1; l < job->k; l++) if (s->sums[l] > most) most = s->sums[l];
  for (int64_t l = 0; l < job->width; l++) s->scores[l] = (float) (s->sums[l] - most);
}

INLINE void nodes(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *s)
{
  double most = job->base[0];
  for (int64_t l = 1; l < job->k; l++) if (job->base[l] > most) most = job->base[l];
  for (int64_t l = 0; l < job->width; l++) s->sums[l] = job->base[l] - most;
  /* the second half of sums is the heavy nodes' own; see the allocation */
  double *base = s->sums;
  s->sums = base + job->width;
  for (int64_t i = first; i < last; i++) {
    const int64_t links = job->links->start[i + 1] - job->links->start[i];
    const int64_t missing = job->missing ? job->missing->start[i + 1] - job->missing->start[i] : 0;
    if (links <= IRM_LIGHT && missing <= IRM_LIGHT) {
      for (int64_t l = 0; l < job->width; l++) s->scores[l] = (float) base[l];
      light_node(job, i, s);
    } else {
      heavy_node(job, i, s);
    }
    job->labels[i] = pick(s->scores, job->width, weft_draw_uniform(job->rng, job->index + (uint64_t) i));
  }
  s->sums = base;
}

/* ---- variants ---- */

static void nodes_portable(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *s)
{
  nodes(job, first, last, s);
}

int32_t irm_pick(float *scores, int64_t width, double u) { return pick(scores, width, u); }

#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 static void nodes_avx2(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *s)
{
  nodes(job, first, last, s);
}

WEFT_TARGET_AVX512 static void nodes_avx512(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *s)
{
  nodes(job, first, last, s);
}
#endif

irm_nodes_function irm_nodes_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return nodes_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2) return nodes_avx2;
#endif
  return nodes_portable;
}
