/* Chains over orders where an order is worth the sum over its graphs (Friedman and Koller 2003): a node's score is
 * ln Σ exp(score of the sets that fit). Sets are sorted, so they fall into blocks that span at most a few nats; within a
 * block weights are whole numbers, whose sum does not depend on its order and is taken eight sets at a time. */
#include <math.h>
#include "../base/simd.h"
#include "bn_chain.h"
#if WEFT_SIMD_X86
# include <immintrin.h>
#endif

#define BLOCK_NATS 6.0
#define BLOCK_SETS 65536
#define WEIGHT_BITS WEFT_BN_WEIGHT_BITS
/* What lies further below the first block with a set that fits is not added: exp(-40) is less than its rounding. */
#define DEEP_NATS WEFT_BN_DEEP_NATS

typedef weft_bn_block block;

/* How many blocks the sets of a node make; fills them when `out` is not NULL. */
static size_t cut_blocks(const weft_bn_lists *lists, size_t z, size_t *padded, block *out)
{
  const weft_bn_table *t = lists->table;
  const int64_t width = (int64_t) (BLOCK_NATS * lists->unit);
  size_t blocks = 0;
  for (int64_t k = t->start[z]; k < t->start[z + 1]; blocks++) {
    const int64_t first = k, reference = t->score[k];
    while (k < t->start[z + 1] && reference - t->score[k] <= width && k - first < BLOCK_SETS) k++;
    const size_t count = ((size_t) (k - first) + 7) / 8 * 8;
    if (out) out[blocks] = (block) { reference, *padded, count, (size_t) (first - t->start[z]) };
    *padded += count;
  }
  return blocks;
}

weft_status weft_bn_blocks_make(weft_arena *mem, weft_bn_lists *lists)
{
  weft_status st = WEFT_OK;
  const weft_bn_table *t = lists->table;
  size_t blocks = 0, padded = 0;
  weft_bn_blocks *b;
  WEFT_TAKE(b, mem, 1);
  WEFT_TAKE(b->begin, mem, lists->p + 1);
  for (size_t z = 0; z < lists->p; z++) {
    b->begin[z] = blocks;
    blocks += cut_blocks(lists, z, &padded, NULL);
  }
  b->begin[lists->p] = blocks;
  b->count = blocks;
  b->padded = padded;
  WEFT_TAKE(b->block, mem, blocks);
  WEFT_TAKE(b->mask, mem, padded * lists->words);
  WEFT_TAKE0(b->weight, mem, padded);
  memset(b->mask, 0xff, padded * lists->words * sizeof *b->mask);
  padded = 0;
  for (size_t z = 0; z < lists->p; z++) {
    cut_blocks(lists, z, &padded, b->block + b->begin[z]);
    for (size_t k = b->begin[z]; k < b->begin[z + 1]; k++) {
      const block *one = &b->block[k];
      const size_t end = k + 1 < b->begin[z + 1] ? b->block[k + 1].pick : (size_t) (t->start[z + 1] - t->start[z]);
      for (size_t j = one->pick; j < end; j++) {
        const size_t from = (size_t) t->start[z] + j, to = one->first + j - one->pick;
        memcpy(b->mask + to * lists->words, t->mask + from * lists->words, lists->words * sizeof *b->mask);
        b->weight[to] = (uint64_t) rint(ldexp(weft_exp((double) (t->score[from] - one->reference) / lists->unit),
                                              WEIGHT_BITS));
      }
    }
  }
  lists->blocks = b;
done:
  return st;
}

/* ---- the sum over a block ---- */

static uint64_t block_sum_any(const weft_bn_blocks *b, const block *one, const uint64_t *before, size_t words)
{
  uint64_t sum = 0;
  for (size_t k = one->first; k < one->first + one->count; k++)
    if (fits(b->mask + k * words, before, words)) sum += b->weight[k];
  return sum;
}

static uint64_t block_sum_1(const weft_bn_blocks *b, const block *one, const uint64_t *before)
{
  uint64_t sum = 0;
  for (size_t k = one->first; k < one->first + one->count; k++) sum += b->mask[k] & ~*before ? 0 : b->weight[k];
  return sum;
}

#if WEFT_SIMD_X86
WEFT_TARGET_AVX512
static uint64_t block_sum_1_avx512(const weft_bn_blocks *b, const block *one, const uint64_t *before)
{
  const __m512i missing = _mm512_set1_epi64((long long) ~*before);
  __m512i even = _mm512_setzero_si512(), odd = even;
  size_t k = one->first;
  for (; k + 8 < one->first + one->count; k += 16) {
    __mmask8 a = _mm512_testn_epi64_mask(_mm512_loadu_si512(b->mask + k), missing);
    __mmask8 c = _mm512_testn_epi64_mask(_mm512_loadu_si512(b->mask + k + 8), missing);
    even = _mm512_mask_add_epi64(even, a, even, _mm512_loadu_si512(b->weight + k));
    odd = _mm512_mask_add_epi64(odd, c, odd, _mm512_loadu_si512(b->weight + k + 8));
  }
  if (k < one->first + one->count) {
    __mmask8 a = _mm512_testn_epi64_mask(_mm512_loadu_si512(b->mask + k), missing);
    even = _mm512_mask_add_epi64(even, a, even, _mm512_loadu_si512(b->weight + k));
  }
  return (uint64_t) _mm512_reduce_add_epi64(_mm512_add_epi64(even, odd));
}
#endif

static uint64_t block_sum(const weft_bn_lists *lists, const block *one, const uint64_t *before)
{
  const weft_bn_blocks *b = lists->blocks;
#if WEFT_SIMD_X86
  if (lists->words == 1 && weft_simd_level() == WEFT_SIMD_AVX512) return block_sum_1_avx512(b, one, before);
#endif
  return lists->words == 1 ? block_sum_1(b, one, before) : block_sum_any(b, one, before, lists->words);
}

/* ln Σ over the sets that fit, WEFT_BN_NEVER when none does. */
static int64_t node_value(const weft_bn_lists *lists, size_t z, const uint64_t *before)
{
  const weft_bn_blocks *b = lists->blocks;
  int64_t reference = 0;
  double total = 0;
  for (size_t k = b->begin[z]; k < b->begin[z + 1]; k++) {
    const block *one = &b->block[k];
    if (total > 0 && (double) (one->reference - reference) < -DEEP_NATS * lists->unit) break;
    const uint64_t sum = block_sum(lists, one, before);
    if (!sum) continue;
    if (!(total > 0)) reference = one->reference;
    total += (double) sum * weft_exp((double) (one->reference - reference) / lists->unit);
  }
  if (!(total > 0)) return WEFT_BN_NEVER;
  return reference + (int64_t) rint(weft_log(ldexp(total, -WEIGHT_BITS)) * lists->unit);
}

/* ---- steps ---- */

typedef struct change { int32_t node; int64_t value; } change;

WIDE int propose(const weft_bn_lists *lists, const weft_bn_replica *r, int32_t z, const uint64_t *before, int64_t *score,
                 change *changes, size_t *count)
{
  const int64_t value = node_value(lists, (size_t) z, before);
  if (value == WEFT_BN_NEVER) return 0;
  *score += value - r->value[z];
  changes[(*count)++] = (change) { z, value };
  return 1;
}

WIDE void step(const weft_bn_lists *lists, weft_bn_replica *r, weft_u32x4 draw, double scale, change *changes,
               size_t words)
{
  uint64_t mid[words ? words : 1], fresh[words ? words : 1];
  const weft_bn_move m = weft_bn_choose_move(r->order, lists->p, draw);
  const uint64_t *by_lost = lists->users + (size_t) (m.lost < 0 ? m.x : m.lost) * words;
  const uint64_t *by_gained = lists->users + (size_t) (m.gained < 0 ? m.x : m.gained) * words;
  int64_t score = r->score;
  size_t count = 0;
  r->accepted[3]++;
  between(r, &m, mid, words);
  after_x(r, &m, mid, fresh, words);
  if (!propose(lists, r, m.x, fresh, &score, changes, &count)) return;
  if (m.kind != WEFT_BN_SHIFT) {
    after_y(r, &m, mid, fresh, words);
    if (!propose(lists, r, m.y, fresh, &score, changes, &count)) return;
  }
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = mid[w] & (by_lost[w] | by_gained[w]); word; word &= word - 1) {
      const int32_t z = (int32_t) (64 * w) + __builtin_ctzll(word);
      after_between(r, &m, z, fresh, words);
      if (!propose(lists, r, z, fresh, &score, changes, &count)) return;
    }
  if (!weft_bn_accept(scale, (double) (score - r->score), draw)) return;
  r->accepted[m.kind]++;
  r->score = score;
  for (size_t k = 0; k < count; k++) r->value[changes[k].node] = changes[k].value;
  make_move(r, &m, mid, words);
}

WIDE void steps(const weft_bn_lists *lists, weft_bn_replica *r, weft_rng rng, double beta, uint64_t first, size_t count,
                size_t words)
{
  change changes[4096];
  const double scale = beta / lists->unit;
  for (size_t k = 0; k < count; k++) step(lists, r, weft_draw_words(rng, first + k, 0), scale, changes, words);
}

static void start(const weft_bn_lists *lists, weft_bn_replica *r)
{
  r->score = 0;
  for (size_t z = 0; z < lists->p; z++) {
    r->value[z] = node_value(lists, z, r->before + z * lists->words);
    r->score += r->value[z];
  }
}

#define KERNEL(name, words) \
  static void name(const weft_bn_lists *lists, weft_bn_replica *r, weft_rng rng, double beta, uint64_t first, \
                   size_t count, weft_bn_best *best, uint64_t stamp) \
  { (void) best; (void) stamp; steps(lists, r, rng, beta, first, count, words); }
KERNEL(steps_1, 1)
KERNEL(steps_2, 2)
KERNEL(steps_any, lists->words)

weft_bn_kernel weft_bn_sum_kernel(size_t words)
{
  return (weft_bn_kernel) { start, words == 1 ? steps_1 : words == 2 ? steps_2 : steps_any };
}

/* ---- a graph given the order ---- */

int64_t weft_bn_draw_graph(const weft_bn_lists *lists, const weft_bn_replica *r, weft_rng rng, uint64_t first,
                           int32_t *picks)
{
  const weft_bn_blocks *b = lists->blocks;
  const weft_bn_table *t = lists->table;
  int64_t score = 0;
  for (size_t z = 0; z < lists->p; z++) {
    const uint64_t *before = r->before + z * lists->words;
    double left = weft_draw_uniform(rng, first + z);
    picks[z] = -1;
    /* the node's value was rounded: when u is not reached the last set that fits stands */
    for (size_t k = b->begin[z]; k < b->begin[z + 1] && left >= 0; k++) {
      const block *one = &b->block[k];
      const double scale = ldexp(weft_exp((double) (one->reference - r->value[z]) / lists->unit), -WEIGHT_BITS);
      for (size_t j = 0; j < one->count && left >= 0; j++) {
        const size_t at = one->first + j;
        if (!fits(b->mask + at * lists->words, before, lists->words)) continue;
        picks[z] = (int32_t) (one->pick + j);
        left -= (double) b->weight[at] * scale;
      }
    }
    score += t->score[t->start[z] + picks[z]];
  }
  return score;
}
