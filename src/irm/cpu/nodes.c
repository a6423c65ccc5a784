/* See nodes.h. The body is written once in vectors of 16 lanes, which the compiler makes of one AVX-512 register,
 * two of AVX2 or four of the baseline; each variant is that body with another target. */
#include <string.h>
#include "irm/cpu/nodes.h"
#include "core/call/simd.h"

typedef float v16 __attribute__((vector_size(64), may_alias));
typedef int32_t i16 __attribute__((vector_size(64), may_alias));
typedef uint32_t u16 __attribute__((vector_size(64), may_alias));
typedef double v8 __attribute__((vector_size(64), may_alias));

#define INLINE static inline __attribute__((always_inline))
enum { CHUNKS = 65536 / IRM_CHUNK };

/* ---- the draw ---- */

/* irm_weight() of 16 lanes, from distances to weights. */
INLINE void weight_lanes(u16 *x)
{
  u16 halvings = *x >> 15, fraction = (*x & 32767) << 8 | IRM_WEIGHT_ONE;
  v16 y = (v16) fraction, p = IRM_WEIGHT_POLYNOMIAL(y);
  u16 far = (u16) (halvings > 31);
  halvings = (halvings & ~far) | (far & 31);
  *x = ((u16) p - IRM_WEIGHT_THREE) << 6 >> halvings;
}

INLINE int32_t greatest(const i16 *s, int64_t blocks)
{
  i16 best = s[0];
  for (int64_t b = 1; b < blocks; b++) {
    i16 larger = s[b] > best;
    best = (s[b] & larger) | (best & ~larger);
  }
  int32_t most = best[0];
  for (int i = 1; i < IRM_LANES; i++)
    if (best[i] > most) most = best[i];
  return most;
}

/* The label that `words` pick from `scores`, which become weights. */
INLINE int32_t pick(int32_t *scores, int64_t width, weft_u32x4 words)
{
  enum { LANE_BLOCKS = IRM_CHUNK / IRM_LANES };
  i16 *s = (i16 *) scores;
  const int64_t blocks = width / IRM_LANES, chunks = (blocks + LANE_BLOCKS - 1) / LANE_BLOCKS;
  uint64_t total[CHUNKS];
  int32_t most[CHUNKS], chosen = 0;
  for (int64_t c = 0; c < chunks; c++) {
    const int64_t first = c * LANE_BLOCKS, last = first + LANE_BLOCKS < blocks ? first + LANE_BLOCKS : blocks;
    u16 sum = { 0 };
    most[c] = greatest(s + first, last - first);
    for (int64_t b = first; b < last; b++) {
      u16 w = (uint32_t) most[c] - (u16) s[b];
      weight_lanes(&w);
      s[b] = (i16) w;
      sum += w;
    }
    total[c] = 0;
    for (int i = 0; i < IRM_LANES; i++) total[c] += sum[i];
  }
  if (chunks > 1) {
    double share[CHUNKS], all = 0, reached = 0;
    int32_t top = most[0];
    for (int64_t c = 1; c < chunks; c++)
      if (most[c] > top) top = most[c];
    for (int64_t c = 0; c < chunks; c++)
      all += share[c] = (double) total[c] * irm_weight((uint32_t) top - (uint32_t) most[c]);
    const double target = weft_u01(words.v[0], words.v[1]) * all;
    for (int64_t c = 0; c < chunks && target >= reached; c++) {
      reached += share[c];
      if (share[c] > 0) chosen = (int32_t) c;
    }
  }
  uint64_t target = (uint64_t) (weft_u01(words.v[2], words.v[3]) * (double) total[chosen]);
  const int64_t first = (int64_t) chosen * IRM_CHUNK, last = first + IRM_CHUNK < width ? first + IRM_CHUNK : width;
  const uint32_t *weights = (const uint32_t *) scores;
  for (int64_t column = first; column < first + 8; column++) {
    uint64_t sum = 0;
    for (int64_t l = column; l < last; l += 8) sum += weights[l];
    if (target >= sum) {
      target -= sum;
      continue;
    }
    for (int64_t l = column;; l += 8) {
      if (target < weights[l]) return (int32_t) l;
      target -= weights[l];
    }
  }
  return (int32_t) first; /* not reached: target < total */
}

/* ---- scores ---- */

/* Adds the rows that scratch->rows points to. Blocks of up to 128 clusters stay in registers over all rows. */
#define ADD_ROWS(vectors) \
  do { \
    i16 sum[vectors]; \
    for (int v = 0; v < (vectors); v++) sum[v] = ((const i16 *) (scratch->scores + at))[v]; \
    if (weighted) \
      for (int64_t e = 0; e < count; e++) \
        for (int v = 0; v < (vectors); v++) \
          sum[v] += scratch->weights[e] * ((const i16 *) (scratch->rows[e] + at))[v]; \
    else \
      for (int64_t e = 0; e < count; e++) \
        for (int v = 0; v < (vectors); v++) sum[v] += ((const i16 *) (scratch->rows[e] + at))[v]; \
    for (int v = 0; v < (vectors); v++) ((i16 *) (scratch->scores + at))[v] = sum[v]; \
    at += (vectors) *IRM_LANES; \
  } while (0)

INLINE void add_rows(irm_node_scratch *scratch, int64_t count, int64_t width, int weighted)
{
  int64_t at = 0;
  while (width - at >= 8 * IRM_LANES) ADD_ROWS(8);
  if (width - at >= 4 * IRM_LANES) ADD_ROWS(4);
  if (width - at >= 2 * IRM_LANES) ADD_ROWS(2);
  if (width - at >= IRM_LANES) ADD_ROWS(1);
}

/* Scores of a node with few links, in 32 bits: the base and a row of the narrow tables for each link and missing
 * pair. */
INLINE void light_node(const irm_node_job *job, int64_t i, irm_node_scratch *scratch)
{
  const weft_irm_lists *lists = job->links;
  int64_t count = 0;
  memcpy(scratch->scores, job->base_narrow, (size_t) job->width * sizeof *scratch->scores);
  for (int64_t entry = lists->start[i]; entry < lists->start[i + 1]; entry++, count++) {
    scratch->rows[count] = job->link_narrow + job->other[lists->to[entry]] * job->width;
    if (lists->weight) scratch->weights[count] = lists->weight[entry];
  }
  if (lists->weight)
    add_rows(scratch, count, job->width, 1);
  else
    add_rows(scratch, count, job->width, 0);
  if (!job->missing) return;
  count = 0;
  for (int64_t entry = job->missing->start[i]; entry < job->missing->start[i + 1]; entry++, count++) {
    scratch->rows[count] = job->missing_narrow + job->other[job->missing->to[entry]] * job->width;
    scratch->weights[count] = -1;
  }
  if (count) add_rows(scratch, count, job->width, 1);
}

INLINE void add_counted(const weft_irm_lists *lists, int64_t i, const irm_node_job *job, const double *rows, int sign,
                        irm_node_scratch *scratch)
{
  memset(scratch->counts, 0, (size_t) job->k_other * sizeof *scratch->counts);
  for (int64_t entry = lists->start[i]; entry < lists->start[i + 1]; entry++)
    scratch->counts[job->other[lists->to[entry]]] += lists->weight ? lists->weight[entry] : 1;
  for (int32_t m = 0; m < job->k_other; m++) {
    if (scratch->counts[m] == 0) continue;
    const double by = (double) (sign * scratch->counts[m]);
    const v8 *row = (const v8 *) (rows + m * job->width);
    v8 *sums = (v8 *) scratch->sums;
    for (int64_t b = 0; b < job->width / 8; b++) sums[b] += by * row[b];
  }
}

/* Scores as distances from the greatest sum, from 0 down. */
INLINE void distances(const double *sums, int32_t *scores, int64_t width)
{
  double most = sums[0];
  for (int64_t l = 1; l < width; l++)
    if (sums[l] > most) most = sums[l];
  for (int64_t l = 0; l < width; l++) {
    const double d = most - sums[l];
    scores[l] = -(int32_t) (d < IRM_FARTHEST ? d : IRM_FARTHEST);
  }
}

INLINE void heavy_node(const irm_node_job *job, int64_t i, irm_node_scratch *scratch)
{
  memcpy(scratch->sums, job->base, (size_t) job->width * sizeof *scratch->sums);
  add_counted(job->links, i, job, job->link_rows, 1, scratch);
  if (job->missing) add_counted(job->missing, i, job, job->missing_rows, -1, scratch);
  distances(scratch->sums, scratch->scores, job->width);
}

INLINE int is_light(const irm_node_job *job, int64_t i)
{
  const weft_irm_lists *lists = job->links;
  int64_t total = lists->start[i + 1] - lists->start[i];
  if (!job->narrow || total > IRM_LIGHT) return 0;
  if (job->missing) total += job->missing->start[i + 1] - job->missing->start[i];
  for (int64_t entry = lists->start[i]; lists->weight && entry < lists->start[i + 1]; entry++)
    total += lists->weight[entry] - 1;
  return total <= IRM_LIGHT;
}

INLINE void nodes(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *scratch)
{
  for (int64_t i = first; i < last; i++) {
    if (is_light(job, i))
      light_node(job, i, scratch);
    else
      heavy_node(job, i, scratch);
    job->labels[i] = pick(scratch->scores, job->width, weft_draw_words(job->rng, job->index + (uint64_t) i, 0));
  }
}

/* ---- variants ---- */

static void nodes_portable(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *scratch)
{
  nodes(job, first, last, scratch);
}

int32_t irm_pick(const double *sums, int32_t *scores, int64_t width, weft_u32x4 words)
{
  distances(sums, scores, width);
  return pick(scores, width, words);
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX2 static void nodes_avx2(const irm_node_job *job, int64_t first, int64_t last, irm_node_scratch *scratch)
{
  nodes(job, first, last, scratch);
}

WEFT_TARGET_AVX512 static void nodes_avx512(const irm_node_job *job, int64_t first, int64_t last,
                                            irm_node_scratch *scratch)
{
  nodes(job, first, last, scratch);
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
