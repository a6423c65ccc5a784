/* The sets that a node of a layer is offered: their sum and draws of one (order_by_sum.c), by a warp with a lane per
 * set. */
#pragma once

#include "bn/cuda/chains/steps.cuh"

#define AT_ONCE 4 /* chunks of sets in which the first that is offered is looked for */

/* What a node is offered: the sets within `before` that meet `last`, unless that is empty. */
template <int WORDS> struct offer {
  uint64_t before[WORDS ? WORDS : 1], last[WORDS ? WORDS : 1];
  const uint64_t *before_at, *last_at; /* where WORDS is 0 */
  uint32_t words;
  bool must_meet;
};

template <int WORDS>
/* `last` may be NULL. */
__device__ static offer<WORDS> make_offer(const chain_job &job, const uint64_t *before, const uint64_t *last)
{
  offer<WORDS> wanted;
  uint64_t any = 0;
  wanted.words = words_of<WORDS>(job);
  wanted.before_at = before;
  wanted.last_at = last;
#pragma unroll
  for (int w = 0; w < (WORDS ? WORDS : 1); w++) {
    wanted.before[w] = WORDS ? before[w] : 0;
    wanted.last[w] = WORDS && last ? last[w] : 0;
  }
  for (uint32_t w = 0; w < wanted.words && last; w++) any |= WORDS ? wanted.last[w] : last[w];
  wanted.must_meet = any != 0;
  return wanted;
}

template <int WORDS>
/* Whether the set in place `at` is offered. */
__device__ __forceinline__ bool offered(const chain_job &job, const offer<WORDS> &wanted, uint64_t at)
{
  uint64_t missing = 0, met = 0;
  if constexpr (WORDS > 0) {
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const uint64_t set = job.chunk_mask[at * WORDS + w];
      missing |= set & ~wanted.before[w];
      met |= set & wanted.last[w];
    }
  } else {
    for (uint32_t w = 0; w < wanted.words; w++) {
      const uint64_t set = job.chunk_mask[at * wanted.words + w];
      missing |= set & ~wanted.before_at[w];
      if (wanted.must_meet) met |= set & wanted.last_at[w];
    }
  }
  return !missing && (met || !wanted.must_meet);
}

/* A chunk of a node's sets, and which sets of its two halves are offered, a bit each. */
struct offered_sets {
  uint32_t chunk, half[2];
};

template <int WORDS>
/* The first chunk of `node`, but for copies, that has sets which are offered; the node's end when there is none. */
__device__ __noinline__ static offered_sets first_offered(const chain_job &job, uint32_t node,
                                                          const offer<WORDS> &wanted, uint32_t lane)
{
  const uint32_t end = job.begin[node + 1];
  offered_sets out = { end, { 0, 0 } };
  for (uint32_t c = job.begin[node]; c < end; c += AT_ONCE) {
    bool there[AT_ONCE][2];
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) { /* beyond the end: the last chunk once more */
      const uint64_t at = (uint64_t) (c + k < end ? c + k : end - 1) * WEFT_BN_CHUNK + lane;
      there[k][0] = offered<WORDS>(job, wanted, at);
      there[k][1] = offered<WORDS>(job, wanted, at + 32);
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
      if (!__any_sync(FULL, there[k][0] || there[k][1]) || c + k >= end || job.chunk[c + k].copies) continue;
      out.chunk = c + k;
      out.half[0] = __ballot_sync(FULL, there[k][0]);
      out.half[1] = __ballot_sync(FULL, there[k][1]);
      return out;
    }
  }
  return out;
}

template <int WORDS>
/* ln Σ over the sets that `node` is offered. */
__device__ __noinline__ static int64_t layer_value(const chain_job &job, uint32_t node, const uint64_t *before,
                                                   const uint64_t *last, uint32_t lane)
{
  const offer<WORDS> wanted = make_offer<WORDS>(job, before, last);
  const uint32_t first = first_offered<WORDS>(job, node, wanted, lane).chunk;
  if (first == job.begin[node + 1]) return WEFT_BN_NEVER;
  const weft_bn_chunk here = job.chunk[first];
  double part = 0;
#pragma unroll 2
  for (uint32_t c = first; c < here.stop; c++) {
    const uint64_t at = (uint64_t) c * WEFT_BN_CHUNK + lane;
    const double one = job.weight[at], two = job.weight[at + 32];
    part = weft_add(part, offered<WORDS>(job, wanted, at) ? one : 0);
    part = weft_add(part, offered<WORDS>(job, wanted, at + 32) ? two : 0);
  }
  for (int d = 16; d; d /= 2) part = weft_add(part, __shfl_xor_sync(FULL, part, d));
  if (!(part > 0)) return WEFT_BN_NEVER;
  return here.reference + (int64_t) rint(weft_mul(weft_log(part), job.unit));
}

/* A draw of one of these sets: what remains of a uniform number after the weights of those up to `pick`. */
struct drawn_set {
  double left;
  int32_t pick;
};

/* In a chunk, whose sets `half` are offered; one lane by itself. */
__device__ static drawn_set draw_within(const chain_job &job, drawn_set drawn, const offered_sets &sets, int64_t value)
{
  const weft_bn_chunk one = job.chunk[sets.chunk];
  const double scale = weft_exp(weft_div((double) (one.reference - value), job.unit));
  for (uint32_t half = 0; half < 2; half++)
    for (uint32_t some = sets.half[half]; some && drawn.left >= 0; some &= some - 1) {
      const uint32_t k = 32 * half + (uint32_t) __ffs((int) some) - 1;
      drawn.left = weft_sub(drawn.left, weft_mul(job.weight[(uint64_t) sets.chunk * WEFT_BN_CHUNK + k], scale));
      drawn.pick = one.pick + (int32_t) k;
    }
  return drawn;
}

template <int WORDS>
/* In all chunks from `c` on; the warp together. */
__device__ __noinline__ static drawn_set draw_from(const chain_job &job, uint32_t node, const offer<WORDS> &wanted,
                                                   uint32_t c, drawn_set drawn, int64_t value, uint32_t lane)
{
  for (const uint32_t end = job.begin[node + 1]; c < end && drawn.left >= 0; c++) {
    const uint64_t at = (uint64_t) c * WEFT_BN_CHUNK + lane;
    if (job.chunk[c].copies) continue;
    offered_sets sets;
    sets.chunk = c;
    sets.half[0] = __ballot_sync(FULL, offered<WORDS>(job, wanted, at));
    sets.half[1] = __ballot_sync(FULL, offered<WORDS>(job, wanted, at + 32));
    if (sets.half[0] | sets.half[1]) drawn = draw_within(job, drawn, sets, value);
  }
  return drawn;
}
