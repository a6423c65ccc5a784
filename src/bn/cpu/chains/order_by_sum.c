/* Chains over orders where an order is worth the sum over its graphs (Friedman and Koller 2003): a node's score is
 * ln Σ exp(score of the sets that fit). Sets are sorted and lie in chunks of 64. A node's chunks are examined in turn;
 * from the first one in which a set fits, sets that are at most DEEP_NATS worse are added. Set k of a chunk goes to
 * partial sum k % 32, and the partial sums are added in a halving tree: the lanes of a warp on a device, four vectors
 * or an array here. */
/* Build: shared. */
#include <math.h>
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/chains/draws.h"
#include "bn/cpu/chains/order_by_sum.h"

#define CHUNK WEFT_BN_CHUNK
/* A weight is exp(score - reference); where that would leave the range of a double a zone of chunks with a reference of
 * its own begins. */
#define ZONE_NATS 600.0
/* exp(-28) is 7e-13 of the first term. */
#define DEEP_NATS 28.0

typedef weft_bn_chunk chunk;

static void fill_chunk(const weft_bn_lists *lists, weft_bn_weights *weights, size_t at, int64_t from, int64_t to,
                       int64_t reference)
{
  const weft_bn_table *table = lists->table;
  for (int64_t k = from; k < to; k++) {
    const size_t place = at * CHUNK + (size_t) (k - from);
    memcpy(weights->mask + place * lists->words, table->mask + (size_t) k * lists->words,
           lists->words * sizeof *weights->mask);
    weights->weight[place] = weft_exp((double) (table->score[k] - reference) / lists->unit);
  }
}

/* Chunks of sets from .. to - 1; returns the next chunk's number. */
static size_t add_chunks(const weft_bn_lists *lists, weft_bn_weights *weights, size_t node, size_t at, int64_t from,
                         int64_t to, int64_t reference, int copies)
{
  for (; from < to; from += CHUNK, at++) {
    const int64_t end = to - from < CHUNK ? to : from + CHUNK;
    if (!weights->chunk) continue;
    weights->chunk[at] = (chunk){ reference, 0, copies, (int32_t) (from - lists->table->start[node]) };
    fill_chunk(lists, weights, at, from, end, reference);
  }
  return at;
}

/* Lays out the sets of `node` from chunk `at` on, or counts its chunks when there is no room yet: zone after zone, and
 * after each copies of the sets that its last ones still need. */
static size_t add_node(const weft_bn_lists *lists, weft_bn_weights *weights, size_t node, size_t at)
{
  const weft_bn_table *table = lists->table;
  const int64_t zone = (int64_t) (ZONE_NATS * lists->unit), deep = (int64_t) (DEEP_NATS * lists->unit),
                last = table->start[node + 1];
  for (int64_t k = table->start[node]; k < last;) {
    const int64_t first = k, reference = table->score[k];
    const size_t begin = at;
    while (k < last && reference - table->score[k] <= zone) k++;
    int64_t needed = k;
    while (needed < last && table->score[k - 1] - table->score[needed] <= deep) needed++;
    at = add_chunks(lists, weights, node, at, first, k, reference, 0);
    at = add_chunks(lists, weights, node, at, k, needed, reference, 1);
    if (!weights->chunk) continue;
    for (size_t c = begin, stop = begin; c < at; c++) { /* the set that fits may be the chunk's last */
      const int64_t end = table->start[node] + weights->chunk[c].pick + CHUNK,
                    limit = weights->chunk[c].copies ? needed : k;
      const int64_t least = table->score[(end < limit ? end : limit) - 1];
      while (stop < at && least - table->score[table->start[node] + weights->chunk[stop].pick] <= deep) stop++;
      weights->chunk[c].stop = (uint32_t) stop;
    }
  }
  return at;
}

/* Lays out the weights of all sets of `lists` in `mem`: once to count chunks, once to fill them. */
weft_status weft_bn_weights_make(weft_arena *mem, weft_bn_lists *lists)
{
  weft_status st = WEFT_OK;
  weft_bn_weights *weights;
  WEFT_TAKE0(weights, mem, 1);
  WEFT_TAKE(weights->begin, mem, lists->p + 1);
  weights->begin[0] = 0;
  for (size_t node = 0; node < lists->p; node++)
    weights->begin[node + 1] = (uint32_t) add_node(lists, weights, node, weights->begin[node]);
  weights->count = weights->begin[lists->p];
  WEFT_TAKE(weights->chunk, mem, weights->count);
  WEFT_TAKE(weights->mask, mem, weights->count * CHUNK * lists->words);
  WEFT_TAKE0(weights->weight, mem, weights->count * CHUNK);
  memset(weights->mask, 0xff,
         weights->count * CHUNK * lists->words * sizeof *weights->mask); /* what is left at a chunk's end never fits */
  for (size_t node = 0; node < lists->p; node++) add_node(lists, weights, node, weights->begin[node]);
  lists->weights = weights;
done:
  return st;
}

/* ---- a node's value ---- */

/* Σ of the weights that count for `node`, or 0 when no set fits; *reference gets what they are relative to. `last`: a
 * set must have a member of it; NULL: it need not. */
WIDE double node_sum(const weft_bn_weights *weights, size_t node, const uint64_t *before, const uint64_t *last,
                     int64_t *reference, size_t words)
{
  double part[32] = { 0 };
  int found = 0;
  for (size_t c = weights->begin[node], stop = weights->begin[node + 1]; c < stop; c++) {
    if (!found && weights->chunk[c].copies) continue;
    const uint64_t *mask = weights->mask + c * CHUNK * words;
    const double *weight = weights->weight + c * CHUNK;
    int any = 0;
    for (size_t k = 0; k < CHUNK; k++) {
      const int fit = fits(mask + k * words, before, words) && (!last || meets(mask + k * words, last, words));
      part[k % 32] += fit ? weight[k] : 0;
      any |= fit;
    }
    if (any && !found) {
      found = 1;
      stop = weights->chunk[c].stop;
      *reference = weights->chunk[c].reference;
    }
  }
  for (size_t d = 16; d; d /= 2)
    for (size_t k = 0; k < d; k++) part[k] += part[k + d];
  return part[0];
}

static double node_sum_1(const weft_bn_weights *weights, size_t node, const uint64_t *before, const uint64_t *last,
                         int64_t *reference)
{
  return last ? node_sum(weights, node, before, last, reference, 1)
              : node_sum(weights, node, before, NULL, reference, 1);
}

static double node_sum_any(const weft_bn_weights *weights, size_t node, const uint64_t *before, const uint64_t *last,
                           int64_t *reference, size_t words)
{
  return node_sum(weights, node, before, last, reference, words);
}

#if WEFT_SIMD_X86
/* Which of eight sets from `mask` on, of one word or two, fit and meet `last`, if there is one. `missing`, `wanted`:
 * each word in all lanes. */
WEFT_TARGET_AVX512 WIDE __mmask8 fit_eight(const uint64_t *mask, const __m512i *missing, const __m512i *wanted,
                                           int some, size_t words)
{
  const __m512i one = _mm512_loadu_si512(mask);
  if (words == 1) {
    const __mmask8 fit = _mm512_testn_epi64_mask(one, *missing);
    return some ? _mm512_mask_test_epi64_mask(fit, one, *wanted) : fit;
  }
  const __m512i two = _mm512_loadu_si512(mask + 8);
  const __m512i low = _mm512_permutex2var_epi64(one, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), two);
  const __m512i high = _mm512_permutex2var_epi64(one, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1), two);
  const __mmask8 fit = _mm512_mask_testn_epi64_mask(_mm512_testn_epi64_mask(low, missing[0]), high, missing[1]);
  if (!some) return fit;
  return fit & (_mm512_test_epi64_mask(low, wanted[0]) | _mm512_test_epi64_mask(high, wanted[1]));
}

/* node_sum() with AVX-512 for masks of one word or two; its four vectors are the 32 partial sums, added in the same
 * tree. */
WEFT_TARGET_AVX512 WIDE double node_sum_512(const weft_bn_weights *weights, size_t node, const uint64_t *before,
                                            const uint64_t *last, int64_t *reference, size_t words)
{
  __m512i missing[2], wanted[2];
  for (size_t w = 0; w < words; w++) {
    missing[w] = _mm512_set1_epi64((long long) ~before[w]);
    wanted[w] = last ? _mm512_set1_epi64((long long) last[w]) : missing[w];
  }
  __m512d part[4] = { _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd() };
  int found = 0;
  for (size_t c = weights->begin[node], stop = weights->begin[node + 1]; c < stop; c++) {
    if (!found && weights->chunk[c].copies) continue;
    const uint64_t *mask = weights->mask + c * CHUNK * words;
    const double *weight = weights->weight + c * CHUNK;
    __mmask8 fit[8];
    unsigned any = 0;
    for (size_t k = 0; k < 8; k++) {
      fit[k] = fit_eight(mask + 8 * k * words, missing, wanted, last != NULL, words);
      any |= fit[k];
    }
    if (!any) continue;
    for (int k = 0; k < 8; k++)
      part[k % 4] = _mm512_mask_add_pd(part[k % 4], fit[k], part[k % 4], _mm512_loadu_pd(weight + 8 * k));
    if (!found) {
      found = 1;
      stop = weights->chunk[c].stop;
      *reference = weights->chunk[c].reference;
    }
  }
  const __m512d eight = _mm512_add_pd(_mm512_add_pd(part[0], part[2]), _mm512_add_pd(part[1], part[3]));
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

WEFT_TARGET_AVX512
static double node_sum_1_avx512(const weft_bn_weights *weights, size_t node, const uint64_t *before,
                                const uint64_t *last, int64_t *reference)
{
  return last ? node_sum_512(weights, node, before, last, reference, 1)
              : node_sum_512(weights, node, before, NULL, reference, 1);
}

WEFT_TARGET_AVX512
static double node_sum_2_avx512(const weft_bn_weights *weights, size_t node, const uint64_t *before,
                                const uint64_t *last, int64_t *reference)
{
  return last ? node_sum_512(weights, node, before, last, reference, 2)
              : node_sum_512(weights, node, before, NULL, reference, 2);
}
#endif

/* Asks the variant that fits the words and this machine; all give the same bits. */
int64_t weft_bn_node_value(const weft_bn_lists *lists, size_t node, const uint64_t *before, const uint64_t *last)
{
  const weft_bn_weights *weights = lists->weights;
  int64_t reference = 0;
  double sum;
  if (last && !any_bit(last, lists->words)) last = NULL;
#if WEFT_SIMD_X86
  if (lists->words <= 2 && weft_simd_level() == WEFT_SIMD_AVX512)
    sum = (lists->words == 1 ? node_sum_1_avx512 : node_sum_2_avx512)(weights, node, before, last, &reference);
  else
#endif
    sum = lists->words == 1 ? node_sum_1(weights, node, before, last, &reference)
                            : node_sum_any(weights, node, before, last, &reference, lists->words);
  if (!(sum > 0)) return WEFT_BN_NEVER;
  return reference + (int64_t) rint(weft_log(sum) * lists->unit);
}

/* ---- steps ---- */

typedef struct change {
  int32_t node;
  int64_t value;
} change;

WIDE int propose(const weft_bn_lists *lists, const weft_bn_replica *replica, int32_t node, const uint64_t *before,
                 int64_t *score, change *changes, size_t *count)
{
  const int64_t value = weft_bn_node_value(lists, (size_t) node, before, NULL);
  if (value == WEFT_BN_NEVER) return 0;
  *score += value - replica->value[node];
  changes[(*count)++] = (change){ node, value };
  return 1;
}

/* One Metropolis step: a move, new values for the nodes that can use what they lose or gain, acceptance. */
WIDE void step(const weft_bn_lists *lists, weft_bn_replica *replica, weft_u32x4 draw, double scale, change *changes,
               size_t words)
{
  uint64_t mid[words ? words : 1], fresh[words ? words : 1];
  const weft_bn_move move = weft_bn_choose_move(replica->order, lists->p, draw);
  const uint64_t *by_lost = lists->users + (size_t) (move.lost < 0 ? move.x : move.lost) * words;
  const uint64_t *by_gained = lists->users + (size_t) (move.gained < 0 ? move.x : move.gained) * words;
  int64_t score = replica->score;
  size_t count = 0;
  replica->accepted[WEFT_BN_MAX_MOVES]++;
  between(replica, &move, mid, words);
  after_x(replica, &move, mid, fresh, words);
  if (!propose(lists, replica, move.x, fresh, &score, changes, &count)) return;
  if (move.kind != WEFT_BN_SHIFT) {
    after_y(replica, &move, mid, fresh, words);
    if (!propose(lists, replica, move.y, fresh, &score, changes, &count)) return;
  }
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = mid[w] & (by_lost[w] | by_gained[w]); word; word &= word - 1) {
      const int32_t node = (int32_t) (64 * w) + __builtin_ctzll(word);
      after_between(replica, &move, node, fresh, words);
      if (!propose(lists, replica, node, fresh, &score, changes, &count)) return;
    }
  if (!weft_bn_accept(scale, (double) (score - replica->score), draw)) return;
  replica->accepted[move.kind]++;
  replica->score = score;
  for (size_t k = 0; k < count; k++) replica->value[changes[k].node] = changes[k].value;
  make_move(replica, &move, mid, words, 0);
}

WIDE void steps(const weft_bn_lists *lists, weft_bn_replica *replica, weft_rng rng, double beta, uint64_t first,
                size_t count, size_t words)
{
  change changes[4096];
  weft_u32x4 draws[8];
  const double scale = beta / lists->unit;
  for (size_t k = 0; k < count; k++) {
    if (k % 8 == 0) weft_bn_draw_eight(rng, first + k, draws);
    step(lists, replica, draws[k % 8], scale, changes, words);
  }
}

static void start(const weft_bn_lists *lists, weft_bn_replica *replica)
{
  replica->score = 0;
  for (size_t node = 0; node < lists->p; node++) {
    replica->value[node] = weft_bn_node_value(lists, node, replica->before + node * lists->words, NULL);
    replica->score += replica->value[node];
  }
}

WEFT_BN_STEPS(steps_1, 1)
WEFT_BN_STEPS(steps_2, 2)
WEFT_BN_STEPS(steps_any, lists->words)

weft_bn_kernel weft_bn_sum_kernel(size_t words)
{
  return (weft_bn_kernel){ start, words == 1 ? steps_1 : words == 2 ? steps_2 : steps_any };
}

/* ---- a graph given the order or the layers ---- */

/* Goes through the sets in their order and takes weights off `uniform` until it is below 0. Copies are passed over,
 * since each set must count once. */
int32_t weft_bn_draw_set(const weft_bn_lists *lists, size_t node, const uint64_t *before, const uint64_t *last,
                         int64_t value, double uniform)
{
  const weft_bn_weights *weights = lists->weights;
  const size_t words = lists->words;
  int32_t pick = -1;
  double left = uniform;
  if (last && !any_bit(last, words)) last = NULL;
  /* the node's value was rounded: when u is not reached, the last set that fits is taken */
  for (size_t c = weights->begin[node]; c < weights->begin[node + 1] && left >= 0; c++) {
    const chunk *one = &weights->chunk[c];
    if (one->copies) continue;
    const double scale = weft_exp((double) (one->reference - value) / lists->unit);
    for (size_t j = 0; j < CHUNK && left >= 0; j++) {
      const size_t at = c * CHUNK + j;
      const uint64_t *set = weights->mask + at * words;
      if (!fits(set, before, words) || (last && !meets(set, last, words))) continue;
      pick = one->pick + (int32_t) j;
      left -= weights->weight[at] * scale;
    }
  }
  return pick;
}
