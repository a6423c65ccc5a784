/* The exact score of one pair per thread, from a part's counts. */
#pragma once

#include "mi/search/cuda/panel.cuh"
#include "mi/search/cuda/exact_score.cuh"

#define SCORE_THREADS 128

__device__ static pair_score score_pair(const part &p, size_t i, size_t j)
{
  const weft_mi_counts &counts = p.counts;
  const auto cell = [&](uint32_t c, uint32_t x, uint32_t y) { return weft_mi_cell(&counts, c, i, j, x, y); };
  if (counts.vary) return score_varying(p.f, p.classes, p.per, counts.a.levels, counts.b.levels, cell);
  return score_complete(p.f, p.classes, p.per, counts.a.levels, counts.b.levels, cell, p.class_fixed,
                        p.alone[p.place_a + i], p.alone[p.place_b + j]);
}

/* One thread per pair. With `mi`, all scores are written there and to `interaction`: pair (i, j) at i * nb + j. */
__global__ static void __launch_bounds__(SCORE_THREADS)
    score_part(part p, mi_threshold threshold, mi_hits hits, double *mi, double *interaction)
{
  const size_t j = (size_t) blockIdx.x * SCORE_THREADS + threadIdx.x, i = blockIdx.y;
  if (j >= p.nb || (p.same && p.place_b + j <= p.place_a + i)) return;
  const pair_score score = score_pair(p, i, j);
  const double joint = weft_mi_bits(score.joint, p.f.unit, score.n), gain = weft_mi_bits(score.gain, p.f.unit, score.n);
  if (mi) {
    mi[i * p.nb + j] = joint;
    interaction[i * p.nb + j] = gain;
    return;
  }
  const uint64_t x = p.column[p.place_a + i], y = p.column[p.place_b + j];
  mi_offer(threshold, hits, joint, gain, (x < y ? x : y) * p.columns + (x < y ? y : x));
}
