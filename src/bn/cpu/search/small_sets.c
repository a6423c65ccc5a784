/* Small sets of parents in full, for a search of many nodes; see search.h. The table of scores makes them
 * (table.c); each is scored anew in the units of the search. */
#include <string.h>
#include "bn/both/set_terms.h"
#include "bn/cpu/search/small_sets.h"

typedef struct fill_job {
  const weft_bn_table *table;
  weft_bn_scorer *scorers;
  weft_bn_listed *out;
} fill_job;

/* Scores the sets of one node, members in ascending order, each by the thread's own scorer. */
static void fill_task(void *data, size_t i, int thread)
{
  fill_job *job = data;
  const weft_bn_table *table = job->table;
  weft_bn_listed *out = job->out;
  size_t to = out->start[i];
  for (size_t k = out->start[i]; k < out->start[i + 1]; k++) {
    int32_t *member = out->member + to * out->width;
    size_t set[WEFT_BN_MAX_PARENTS + 1], m = 0;
    for (size_t w = 0; w < table->words; w++)
      for (uint64_t word = table->mask[k * table->words + w]; word; word &= word - 1)
        set[m++] = 64 * w + (size_t) __builtin_ctzll(word);
    out->bits[to] = 0;
    for (size_t j = 0; j < out->width; j++) member[j] = j < m ? (int32_t) set[j] : -1;
    for (size_t j = 0; j < m; j++) out->bits[to] |= weft_bn_bit(member[j]);
    out->score[to] = weft_bn_scorer_value(&job->scorers[thread], i, set, m);
    to += out->score[to] > WEFT_BN_NEVER; /* best first: sets that the search leaves out make room */
  }
  for (; to < out->start[i + 1]; to++) out->score[to] = WEFT_BN_NEVER;
}

#define MAX_LISTED 4

/* The largest size whose sets are no more than asked for; sets of two are tried however many they are. */
static size_t listed_size(const weft_bn_search *search, const weft_bn_near *near)
{
  for (size_t size = MAX_LISTED; size > 2; size--) {
    double sets = 0;
    for (size_t i = 0; i < search->problem->p; i++) {
      double each = 1;
      for (size_t k = 0; k < size; k++)
        sets += each *= ((double) (near->start[i + 1] - near->start[i]) - (double) k) / (double) (k + 1);
    }
    if (sets <= search->listed) return size;
  }
  return 2;
}

/* Scores all sets of two to MAX_LISTED candidates, as many sizes as search->listed allows, and keeps those that are
 * better than their subsets, in `mem`. Width 0 when none are asked for. */
weft_status weft_bn_listed_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                weft_bn_scorer *scorers, weft_bn_listed *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t p = search->problem->p;
  weft_bn_problem small = *search->problem;
  weft_bn_table table;
  int32_t *allowed, *most;
  size_t total;
  *out = (weft_bn_listed){ 0 };
  if (!(search->listed > 0)) goto done;
  const size_t size = listed_size(search, near);
  WEFT_TAKE(allowed, &own, p * p);
  WEFT_TAKE(most, &own, p);
  for (size_t k = 0; k < p * p; k++) allowed[k] = near->is[k];
  for (size_t i = 0; i < p; i++) {
    const size_t needed = weft_bn_required(search->problem, i), limit = (size_t) search->problem->max_parents[i];
    most[i] = (int32_t) (limit < size + needed ? limit : size + needed);
    if ((size_t) most[i] > out->width) out->width = (size_t) most[i];
  }
  if (!out->width) goto done;
  small.allowed = allowed;
  small.max_parents = most;
  small.outside = NULL;
  small.slack = 0;
  WEFT_TRY(weft_bn_table_make(ctx, &small, weft_bn_prune_cpu, &own, &table));
  total = (size_t) table.start[p];
  WEFT_TAKE(out->start, mem, p + 1);
  WEFT_TAKE(out->score, mem, total);
  WEFT_TAKE(out->bits, mem, total);
  WEFT_TAKE(out->member, mem, total * out->width);
  for (size_t i = 0; i <= p; i++) out->start[i] = (size_t) table.start[i];
  fill_job job = { &table, scorers, out };
  WEFT_TRY(weft_bn_run_tasks(ctx, search->problem->threads, p, fill_task, &job, 0.3, 0.3));
done:
  weft_arena_end(&own);
  return st;
}
