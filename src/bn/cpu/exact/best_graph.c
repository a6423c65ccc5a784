/* The proven optimum by dynamic programming over subsets (Silander and Myllymaki 2006):
 *   best(W) = max over the last node s of W of best(W - s) + g_s(W - s),   g_s(C) = best score of s with parents in C.
 *
 * After pruning, g_s(C) depends on C through the few nodes U that occur in any set of s, so it is a table over subsets
 * of U. Subsets W are taken in blocks of 256, W = (high, low): the index of W's part in U is a sum of one number for
 * the high bits, the same for a whole block, and one looked up by the low byte. Blocks of equally many high bits do not
 * depend on each other. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "bn/cpu/chains/chain.h"
#include "bn/limits.h"
#include "bn/both/joint.h"

#define MAX_NODES WEFT_BN_SUBSET_NODES
#define LOW_BITS 8
#define BLOCK 256
/* Nodes with more possible parents than this find g_s by going through their sets. */
#define DENSE_PARENTS 20

typedef struct sink {
  size_t parents;
  uint64_t used;  /* U */
  int64_t *table; /* 2^parents, or NULL */
  uint32_t low[BLOCK];
} sink;

typedef struct optimum_job {
  const weft_bn_table *t;
  sink *sinks;
  int64_t *best; /* 2^p */
  size_t low_bits;
  const uint32_t *high; /* blocks of this level */
} optimum_job;

static uint32_t index_of(uint64_t set, uint64_t used)
{
  uint32_t index = 0, bit = 1;
  for (; used; used &= used - 1, bit <<= 1)
    if (set & used & -used) index |= bit;
  return index;
}

/* Tabulates g_s over the subsets of the nodes that any set of s uses, in `mem`; no table where these are more than
 * DENSE_PARENTS. */
static weft_status make_sink(weft_arena *mem, const weft_bn_table *table, size_t s, sink *out)
{
  weft_status st = WEFT_OK;
  memset(out, 0, sizeof *out);
  for (int64_t k = table->start[s]; k < table->start[s + 1]; k++) out->used |= table->mask[k];
  out->parents = (size_t) __builtin_popcountll(out->used);
  if (out->parents > DENSE_PARENTS) goto done;
  const size_t size = (size_t) 1 << out->parents;
  WEFT_TAKE(out->table, mem, size);
  for (size_t k = 0; k < size; k++) out->table[k] = WEFT_BN_NEVER;
  /* of a set that comes twice the first, best one stays */
  for (int64_t k = table->start[s + 1]; k-- > table->start[s];)
    out->table[index_of(table->mask[k], out->used)] = table->score[k];
  for (size_t bit = 1; bit < size; bit <<= 1)
    for (size_t k = 0; k < size; k++)
      if ((k & bit) && out->table[k ^ bit] > out->table[k]) out->table[k] = out->table[k ^ bit];
  for (uint32_t low = 0; low < BLOCK; low++) out->low[low] = index_of(low, out->used);
done:
  return st;
}

static int64_t scan_sets(const weft_bn_table *table, size_t s, uint64_t before)
{
  for (int64_t k = table->start[s]; k < table->start[s + 1]; k++)
    if (!(table->mask[k] & ~before)) return table->score[k];
  return WEFT_BN_NEVER;
}

/* g_s for all low parts of a block of predecessors. */
static void block_scores(const optimum_job *job, size_t s, uint64_t high, size_t count, int64_t *out)
{
  const sink *k = &job->sinks[s];
  if (!k->table) {
    for (size_t low = 0; low < count; low++) out[low] = scan_sets(job->t, s, high | low);
    return;
  }
  const int64_t *table = k->table + index_of(high, k->used);
  for (size_t low = 0; low < count; low++) out[low] = table[k->low[low]];
}

/* best(W) for the 256 subsets W with one high part: first the last nodes among the high ones, then those among the
 * low. */
static void optimum_task(void *data, size_t t, int thread)
{
  optimum_job *job = data;
  const size_t count = (size_t) 1 << job->low_bits;
  const uint64_t high = (uint64_t) job->high[t] << job->low_bits;
  int64_t scores[LOW_BITS][BLOCK], above[BLOCK], *mine = job->best + high;
  (void) thread;
  for (size_t low = 0; low < count; low++) mine[low] = high | low ? INT64_MIN / 2 : 0;
  for (uint64_t left = high; left; left &= left - 1) { /* the last node is among the high ones */
    const uint64_t rest = high & ~(left & -left);
    const int64_t *before = job->best + rest;
    block_scores(job, (size_t) __builtin_ctzll(left), rest, count, above);
    for (size_t low = 0; low < count; low++) {
      const int64_t value = before[low] + above[low];
      mine[low] = value > mine[low] ? value : mine[low];
    }
  }
  for (size_t s = 0; s < job->low_bits; s++) block_scores(job, s, high, count, scores[s]);
  for (size_t low = 1; low < count; low++) {
    int64_t most = mine[low];
    for (size_t left = low; left; left &= left - 1) {
      const size_t s = (size_t) __builtin_ctzll(left), rest = low ^ ((size_t) 1 << s);
      const int64_t value = mine[rest] + scores[s][rest];
      most = value > most ? value : most;
    }
    mine[low] = most;
  }
}

/* From the whole set downwards: the lowest node that can stand last, with its first set that fits. */
static void trace_back(const optimum_job *job, int32_t *best_sets)
{
  const weft_bn_table *table = job->t;
  uint64_t left = (UINT64_C(1) << table->p) - 1;
  while (left) {
    for (size_t s = 0; s < table->p; s++) {
      const uint64_t rest = left & ~(UINT64_C(1) << s);
      if (rest == left || job->best[rest] + scan_sets(table, s, rest) != job->best[left]) continue;
      int32_t k = 0;
      while (table->mask[table->start[s] + k] & ~rest) k++;
      best_sets[s] = k;
      left = rest;
      break;
    }
  }
}

/* Keeps, of each node, the sets none of whose subsets stands before them in the list. Polls every 4,096 sets. */
weft_status weft_bn_undominated(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, weft_bn_table *out,
                                int32_t **number)
{
  weft_status st = WEFT_OK;
  const size_t total = (size_t) table->start[table->p], words = table->words;
  int64_t kept = 0;
  *out = (weft_bn_table){ .p = table->p, .words = words, .bits = table->bits };
  WEFT_TAKE(out->start, mem, table->p + 1);
  WEFT_TAKE(out->score, mem, total);
  WEFT_TAKE(out->mask, mem, total * words);
  WEFT_TAKE(*number, mem, total);
  for (size_t i = 0; i < table->p; i++) {
    const int64_t first = out->start[i] = kept;
    for (int64_t k = table->start[i]; k < table->start[i + 1]; k++) {
      const uint64_t *mask = table->mask + (size_t) k * words;
      int64_t better = first;
      if (!(k & 0xfff)) WEFT_TRY(weft_poll(ctx, 0, 1));
      while (better < kept && !fits(out->mask + (size_t) better * words, mask, words)) better++;
      if (better < kept) continue;
      memcpy(out->mask + (size_t) kept * words, mask, words * sizeof *mask);
      out->score[kept] = table->score[k];
      (*number)[kept++] = (int32_t) (k - table->start[i]);
    }
  }
  out->start[table->p] = kept;
done:
  return st;
}

/* Takes 8 * 2^p bytes for best(W). High parts go by their size, since each needs those with one bit less. */
weft_status weft_bn_optimum_cpu(weft_ctx *ctx, const weft_bn_table *table, int32_t *best_sets, int64_t *score)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = table->p;
  if (p > MAX_NODES)
    return weft_fail(ctx, WEFT_ERR_INPUT, "The proven optimum can be found for at most %d nodes.", MAX_NODES);
  optimum_job job = { table, NULL, NULL, p < LOW_BITS ? p : LOW_BITS, NULL };
  const size_t high_bits = p - job.low_bits, blocks = (size_t) 1 << high_bits;
  uint32_t *high, *at;
  size_t begin[MAX_NODES + 2] = { 0 };
  WEFT_TAKE(job.best, &mem, (size_t) 1 << p);
  WEFT_TAKE(job.sinks, &mem, p);
  WEFT_TAKE(high, &mem, blocks);
  for (size_t s = 0; s < p; s++) WEFT_TRY(make_sink(&mem, table, s, &job.sinks[s]));
  for (size_t h = 0; h < blocks; h++) begin[__builtin_popcountll(h) + 1]++;
  for (size_t k = 0; k <= high_bits; k++) begin[k + 1] += begin[k];
  WEFT_TAKE(at, &mem, high_bits + 1);
  for (size_t k = 0; k <= high_bits; k++) at[k] = (uint32_t) begin[k];
  for (size_t h = 0; h < blocks; h++) high[at[__builtin_popcountll(h)]++] = (uint32_t) h;
  for (size_t k = 0; k <= high_bits; k++) {
    job.high = high + begin[k];
    WEFT_TRY(weft_bn_run_tasks(ctx, (size_t) ctx->threads, begin[k + 1] - begin[k], optimum_task, &job,
                               (double) begin[k] / (double) blocks, (double) begin[k + 1] / (double) blocks));
  }
  *score = job.best[((size_t) 1 << p) - 1];
  if (*score < WEFT_BN_NEVER / 2)
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "No graph has all required parents within the limits."));
  trace_back(&job, best_sets);
done:
  weft_arena_end(&mem);
  return st;
}
