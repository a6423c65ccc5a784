/* A table of the parent sets that a search for the best graph needs, where all sets would be too many: see search.h.
 * candidates.c finds the candidates. All pairs of a node's candidates are scored, all triples unless they are
 * many, and larger sets by adding a candidate to a set that is better than all its subsets: so a node may have as many
 * parents as its data support. Then orders settle (best_places.c); nodes that would raise a score at which the orders
 * settled become candidates, the lists of the nodes concerned are made anew, and the orders settle again, until there
 * are no such nodes. */
#include <math.h>
#include <string.h>
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/search/candidates.h"
#include "bn/cpu/search/near_table.h"
#include "bn/cpu/search/best_places.h"
#include "bn/cpu/table/set_terms.h"

#define MAX_TRIPLES 700 /* of a node */
#define MAX_BASES 30    /* of a node and a size, unless they are all sets of that size */
#define STARTS WEFT_BN_NEAR_STARTS
#define KICKS 10 /* of a start, before a table is widened */
#define MAX_ROUNDS 30

/* Some sets of a node; `best`: the highest score among a set and its subsets. */
typedef struct some_sets {
  size_t count, room;
  int64_t *best;
  uint64_t *mask;
} some_sets;

/* What may be added to a base: of bases that are all sets of their size, what comes after its members; of others, what
 * gives no set that an earlier base gives; anything, a candidate or not. */
enum { AFTER, UNMET, ANYTHING };

typedef struct node_sets {
  size_t required, candidates; /* how many; required parents are in all sets, and do not count as candidates */
  some_sets kept;              /* better than their subsets */
  some_sets bases, next;       /* to which a parent is added now, and then */
  some_sets asked;             /* bases to which anything has been added */
  int rule;
} node_sets;

/* A set to which each of `more` is added. */
typedef struct extension {
  size_t node, base, at;
} extension;

typedef struct table_job {
  const weft_bn_search *search;
  weft_bn_ready *ready;
  weft_bn_scorer *scorers;
  const weft_bn_near *near;
  size_t words;
  node_sets *nodes;
  size_t *named; /* a thread: p */
  /* of one size */
  extension *extensions;
  uint64_t *more; /* words per extension */
  int64_t *value; /* of each set, extension by extension */
} table_job;

static size_t members_of(const uint64_t *mask, size_t words, size_t *out)
{
  size_t m = 0;
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = mask[w]; word; word &= word - 1) out[m++] = 64 * w + (size_t) __builtin_ctzll(word);
  return m;
}

static size_t size_of(const uint64_t *mask, size_t words)
{
  size_t m = 0;
  for (size_t w = 0; w < words; w++) m += (size_t) __builtin_popcountll(mask[w]);
  return m;
}

/* Room for `more` sets, which may move the others. */
static weft_status make_room(weft_arena *mem, size_t more, size_t words, some_sets *sets)
{
  weft_status st = WEFT_OK;
  some_sets wider = { .count = sets->count, .room = 2 * (sets->count + more) };
  if (sets->count + more <= sets->room) goto done;
  WEFT_TAKE(wider.best, mem, wider.room);
  WEFT_TAKE(wider.mask, mem, wider.room * words);
  if (sets->count) {
    memcpy(wider.best, sets->best, sets->count * sizeof *sets->best);
    memcpy(wider.mask, sets->mask, sets->count * words * sizeof *sets->mask);
  }
  weft_arena_drop(mem, sets->best);
  weft_arena_drop(mem, sets->mask);
  *sets = wider;
done:
  return st;
}

static void put_set(some_sets *sets, size_t words, const uint64_t *mask, int64_t best)
{
  memcpy(sets->mask + sets->count * words, mask, words * sizeof *mask);
  sets->best[sets->count++] = best;
}

/* ---- sets of one more parent ---- */

static void find_more(const table_job *job, size_t i, size_t k, uint64_t *more)
{
  const node_sets *node = &job->nodes[i];
  const weft_bn_near *near = job->near;
  const weft_bn_problem *problem = job->search->problem;
  const size_t words = job->words, p = problem->p;
  const uint64_t *base = node->bases.mask + k * words;
  int32_t last = -1;
  memset(more, 0, words * sizeof *more);
  for (size_t parent = 0; parent < p && node->rule == ANYTHING; parent++)
    if (parent != i && problem->allowed[i + p * parent] && !has_bit(base, (int32_t) parent))
      set_bit(more, (int32_t) parent);
  if (node->rule == ANYTHING) return;
  for (size_t c = near->start[i]; c < near->start[i + 1]; c++) {
    const int32_t parent = near->node[c];
    const int needed = problem->required && problem->required[i + p * (size_t) parent];
    if (!has_bit(base, parent))
      set_bit(more, parent);
    else if (!needed)
      last = parent;
  }
  if (node->rule == AFTER) {
    for (int32_t parent = 0; parent <= last; parent++) clear_bit(more, parent);
    return;
  }
  for (size_t e = 0; e < k; e++) {
    const uint64_t *earlier = node->bases.mask + e * words;
    int32_t only = -1;
    size_t beyond = 0;
    for (size_t w = 0; w < words && beyond < 2; w++) {
      const uint64_t word = earlier[w] & ~base[w];
      beyond += (size_t) __builtin_popcountll(word);
      if (word) only = (int32_t) (64 * w) + __builtin_ctzll(word);
    }
    if (beyond == 1) clear_bit(more, only);
  }
}

/* No set is worth more than its share, as probabilities of data are at most 1: those whose share alone is not better
 * than a subset are not counted. Densities are not bounded. */
static void extend_task(void *data, size_t t, int thread)
{
  const table_job *job = data;
  const weft_bn_problem *problem = job->search->problem;
  const extension *x = &job->extensions[t];
  const size_t words = job->words, i = x->node;
  const some_sets *bases = &job->nodes[i].bases;
  weft_bn_scorer *scorer = &job->scorers[thread];
  size_t set[WEFT_BN_MAX_PARENTS + 1], *more = job->named + (size_t) thread * problem->p;
  const size_t m = members_of(bases->mask + x->base * words, words, set);
  const size_t count = members_of(job->more + t * words, words, more);
  int64_t *out = job->value + x->at, *value = scorer->value;
  size_t hopeful = 0;
  weft_bn_share base = weft_bn_share_begin(scorer->required_count[i]);
  for (size_t j = 0; j < m; j++) weft_bn_share_add(job->ready, i, set[j], scorer->penalty[i], &base);
  for (size_t k = 0; k < count; k++) {
    weft_bn_share with = base;
    weft_bn_share_add(job->ready, i, more[k], scorer->penalty[i], &with);
    out[k] = weft_bn_share_of(with, scorer->penalty[i]);
    if (!weft_bn_gauss(problem) && out[k] <= bases->best[x->base])
      out[k] = WEFT_BN_NEVER;
    else
      more[hopeful++] = more[k];
  }
  if (!hopeful) return;
  weft_bn_scorer_extend(scorer, i, set, m, more, hopeful, value);
  for (size_t k = 0, next = 0; k < count; k++)
    if (out[k] != WEFT_BN_NEVER) out[k] = value[next++];
}

/* The highest score of the kept sets within this one. */
static int64_t best_within(const some_sets *kept, const uint64_t *set, size_t words)
{
  int64_t best = WEFT_BN_NEVER;
  for (size_t k = 0; k < kept->count; k++)
    if (kept->best[k] > best && fits(kept->mask + k * words, set, words)) best = kept->best[k];
  return best;
}

/* Leaves the best sets, in their order. */
static weft_status leave_best(weft_arena *mem, size_t most, size_t words, some_sets *sets)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(mem->ctx);
  weft_scored *list;
  uint8_t *stays;
  size_t count = 0;
  if (sets->count <= most) goto done;
  WEFT_TAKE(list, &own, sets->count);
  WEFT_TAKE0(stays, &own, sets->count);
  for (size_t k = 0; k < sets->count; k++) list[k] = (weft_scored){ (double) sets->best[k], k };
  weft_scored_sort(list, sets->count);
  for (size_t k = 0; k < most; k++) stays[list[k].index] = 1;
  for (size_t k = 0; k < sets->count; k++) {
    if (!stays[k]) continue;
    memmove(sets->mask + count * words, sets->mask + k * words, words * sizeof *sets->mask);
    sets->best[count++] = sets->best[k];
  }
  sets->count = count;
done:
  weft_arena_end(&own);
  return st;
}

/* Takes over what extensions first .. last - 1, those of node i, have scored, and finds the next bases. */
static weft_status take_over(weft_arena *mem, const table_job *job, size_t i, size_t first, size_t last, size_t size)
{
  weft_status st = WEFT_OK;
  node_sets *node = &job->nodes[i];
  const size_t words = job->words, limit = (size_t) job->search->problem->max_parents[i];
  const int64_t slack = weft_bn_slack(job->ready);
  const double c = (double) node->candidates;
  const int all = node->rule == AFTER && (size == 1 || (size == 2 && c * (c - 1) * (c - 2) / 6 <= MAX_TRIPLES));
  size_t count = 0;
  for (size_t t = first; t < last; t++) count += size_of(job->more + t * words, words);
  WEFT_TRY(make_room(mem, count, words, &node->kept));
  WEFT_TRY(make_room(mem, count, words, &node->next));
  node->next.count = 0;
  for (size_t t = first; t < last; t++) {
    const int64_t *value = job->value + job->extensions[t].at;
    const uint64_t *base = node->bases.mask + job->extensions[t].base * words, *more = job->more + t * words;
    uint64_t set[64];
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = more[w]; word; word &= word - 1, value++) {
        if (*value == WEFT_BN_NEVER && !all) continue;
        memcpy(set, base, words * sizeof *set);
        set[w] |= word & -word;
        const int64_t below = best_within(&node->kept, set, words);
        const int better = *value > WEFT_BN_NEVER && *value > below - slack;
        if (better) put_set(&node->kept, words, set, *value);
        if (better || all) put_set(&node->next, words, set, *value > below ? *value : below);
      }
  }
  if (!all) WEFT_TRY(leave_best(mem, MAX_BASES, words, &node->next));
  if (node->rule == ANYTHING || node->required + size >= limit) node->next.count = 0;
  const some_sets now = node->bases;
  node->bases = node->next;
  node->next = now;
  if (node->rule == AFTER && !all) node->rule = UNMET;
done:
  return st;
}

/* All nodes' sets with one more parent than their bases; `size`: of these, besides required ones. *any: whether there
 * are some. */
static weft_status add_size(weft_ctx *ctx, weft_arena *mem, table_job *job, size_t size, int *any)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t p = job->search->problem->p, words = job->words;
  size_t count = 0, sets = 0;
  for (size_t i = 0; i < p; i++) count += job->nodes[i].bases.count;
  *any = count > 0;
  if (!count) goto done;
  WEFT_TAKE(job->extensions, &own, count);
  WEFT_TAKE(job->more, &own, count * words);
  count = 0;
  for (size_t i = 0; i < p; i++) {
    WEFT_TRY(weft_poll(ctx, 0.3, 1));
    for (size_t k = 0; k < job->nodes[i].bases.count; k++) {
      find_more(job, i, k, job->more + count * words);
      const size_t more = size_of(job->more + count * words, words);
      if (!more) continue;
      job->extensions[count++] = (extension){ i, k, sets };
      sets += more;
    }
  }
  WEFT_TAKE(job->value, &own, sets + 1);
  WEFT_TRY(weft_bn_run_tasks(ctx, job->search->problem->threads, count, extend_task, job, 0.3, 0.3));
  for (size_t i = 0, first = 0, last = 0; i < p; i++, first = last) {
    WEFT_TRY(weft_poll(ctx, 0.3, 1));
    while (last < count && job->extensions[last].node == i) last++;
    if (job->nodes[i].bases.count) WEFT_TRY(take_over(mem, job, i, first, last, size));
  }
done:
  weft_arena_end(&own);
  return st;
}

/* Each node's first list, from its required parents on. */
static weft_status make_lists(weft_ctx *ctx, weft_arena *mem, table_job *job)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = job->search->problem;
  int any = 1;
  for (size_t i = 0; i < problem->p; i++) {
    node_sets *node = &job->nodes[i];
    size_t set[WEFT_BN_MAX_PARENTS + 1];
    uint64_t mask[64] = { 0 };
    node->required = weft_bn_required_of(problem, i, set);
    node->candidates = job->near->start[i + 1] - job->near->start[i] - node->required;
    WEFT_TRY(make_room(mem, 1, job->words, &node->kept));
    WEFT_TRY(make_room(mem, 1, job->words, &node->bases));
    const int64_t score = weft_bn_scorer_value(&job->scorers[0], i, set, node->required);
    for (size_t k = 0; k < node->required; k++) set_bit(mask, (int32_t) set[k]);
    put_set(&node->kept, job->words, mask, score);
    if (node->required < (size_t) problem->max_parents[i]) put_set(&node->bases, job->words, mask, score);
    if (score == WEFT_BN_NEVER)
      WEFT_TRY(weft_fail_column(ctx, i,
                                "has no parent set that can be scored: its levels or those of required parents are too "
                                "many for the penalty of this score, or it is numeric and constant or has too few "
                                "rows."));
  }
  for (size_t size = 1; any; size++) WEFT_TRY(add_size(ctx, mem, job, size, &any));
done:
  return st;
}

/* ---- the table ---- */

static weft_status collect(weft_arena *mem, const table_job *job, weft_bn_table *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(mem->ctx);
  const size_t p = job->search->problem->p, words = job->words;
  weft_scored *list;
  size_t total = 0, most = 0;
  *out = (weft_bn_table){ .p = p, .words = words, .bits = job->ready->bits };
  for (size_t i = 0; i < p; i++) {
    total += job->nodes[i].kept.count;
    if (job->nodes[i].kept.count > most) most = job->nodes[i].kept.count;
  }
  WEFT_TAKE(out->start, mem, p + 1);
  WEFT_TAKE(out->score, mem, total);
  WEFT_TAKE(out->mask, mem, total * words);
  WEFT_TAKE(list, &own, most);
  total = 0;
  for (size_t i = 0; i < p; i++) {
    const some_sets *kept = &job->nodes[i].kept;
    out->start[i] = (int64_t) total;
    for (size_t k = 0; k < kept->count; k++) list[k] = (weft_scored){ (double) kept->best[k], k };
    weft_scored_sort(list, kept->count);
    for (size_t k = 0; k < kept->count; k++, total++) {
      out->score[total] = kept->best[list[k].index];
      memcpy(out->mask + total * words, kept->mask + list[k].index * words, words * sizeof *out->mask);
    }
  }
  out->start[p] = (int64_t) total;
done:
  weft_arena_end(&own);
  return st;
}

static void drop_table(weft_arena *mem, weft_bn_table *table)
{
  weft_arena_drop(mem, table->start);
  weft_arena_drop(mem, table->score);
  weft_arena_drop(mem, table->mask);
  *table = (weft_bn_table){ 0 };
}

/* ---- the whole ---- */

typedef struct near_search {
  int32_t *order, *picks, *best_sets;
  uint64_t *before;
  double end[STARTS], best_score[1];
} near_search;

/* A base, unless anything has been added to it before. */
static weft_status ask(weft_arena *mem, const table_job *job, size_t i, const uint64_t *set)
{
  weft_status st = WEFT_OK;
  node_sets *node = &job->nodes[i];
  const size_t words = job->words;
  if (size_of(set, words) >= (size_t) job->search->problem->max_parents[i]) goto done;
  for (size_t k = 0; k < node->asked.count; k++)
    if (!memcmp(node->asked.mask + k * words, set, words * sizeof *set)) goto done;
  const int64_t best = best_within(&node->kept, set, words);
  WEFT_TRY(make_room(mem, 1, words, &node->asked));
  WEFT_TRY(make_room(mem, 1, words, &node->bases));
  put_set(&node->asked, words, set, best);
  put_set(&node->bases, words, set, best);
done:
  return st;
}

/* Adds anything to the parents of each node in the graphs that the starts came to, and to these less one of them.
 * *added: how many sets are new. */
static weft_status widen(weft_ctx *ctx, weft_arena *mem, table_job *job, const weft_bn_table *table, near_search *found,
                         size_t *added)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = job->search->problem;
  const size_t p = table->p, words = table->words;
  const weft_bn_lists lists = { .table = table, .p = p, .words = words };
  int any;
  *added = 0;
  for (size_t i = 0; i < p; i++) {
    job->nodes[i].rule = ANYTHING;
    job->nodes[i].bases.count = 0;
  }
  for (size_t c = 0; c < STARTS; c++) {
    const int32_t *order = found->order + c * p;
    size_t earlier = 0;
    while (earlier < c && found->end[earlier] != found->end[c]) earlier++;
    if (earlier < c) continue;
    memset(found->before, 0, p * words * sizeof *found->before);
    for (size_t k = 1; k < p; k++) {
      uint64_t *own = found->before + (size_t) order[k] * words;
      memcpy(own, found->before + (size_t) order[k - 1] * words, words * sizeof *own);
      set_bit(own, order[k - 1]);
    }
    weft_bn_best_graph(&lists, found->before, found->picks);
    for (size_t i = 0; i < p; i++) {
      uint64_t set[64];
      size_t member[WEFT_BN_MAX_PARENTS + 1];
      memcpy(set, table->mask + (size_t) (table->start[i] + found->picks[i]) * words, words * sizeof *set);
      const size_t m = members_of(set, words, member);
      WEFT_TRY(ask(mem, job, i, set));
      for (size_t k = 0; k < m; k++) {
        if (problem->required && problem->required[i + p * member[k]]) continue;
        clear_bit(set, (int32_t) member[k]);
        WEFT_TRY(ask(mem, job, i, set));
        set_bit(set, (int32_t) member[k]);
      }
    }
  }
  for (size_t i = 0; i < p; i++) *added -= job->nodes[i].kept.count;
  WEFT_TRY(add_size(ctx, mem, job, 0, &any));
  for (size_t i = 0; i < p; i++) *added += job->nodes[i].kept.count;
done:
  return st;
}

/* Alternates between settling WEFT_BN_NEAR_STARTS orders on the table so far and adding the sets that these orders
 * ask for, until no set is new or MAX_ROUNDS are over. The table lives in `keep`, best sets first. */
weft_status weft_bn_near_table(weft_ctx *ctx, const weft_bn_search *search, weft_arena *keep, weft_bn_table *out,
                               int32_t *order, double *scored)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_bn_problem *problem = search->problem;
  const size_t p = problem->p, words = (p + 63) / 64;
  weft_bn_ready ready;
  weft_bn_near near;
  near_search found = { .order = order };
  table_job job = { .search = search, .ready = &ready, .near = &near, .words = words };
  weft_bn_run run = { .ladders = STARTS, .temperatures = 1, .key = search->key };
  *out = (weft_bn_table){ 0 };
  WEFT_TRY(weft_bn_ready_make(ctx, &mem, problem, &ready));
  WEFT_TAKE(job.scorers, &mem, problem->threads);
  WEFT_TRY(weft_bn_scorers_make(&mem, &ready, job.scorers));
  WEFT_TAKE(job.named, &mem, problem->threads * p);
  WEFT_TAKE0(job.nodes, &mem, p);
  WEFT_TAKE(found.picks, &mem, p);
  WEFT_TAKE(found.best_sets, &mem, p);
  WEFT_TAKE(found.before, &mem, p * words);
  WEFT_TRY(weft_bn_near_find(ctx, &mem, search, job.scorers, &near));
  for (size_t k = 0; k < STARTS; k++) order[k * p] = -1;
  for (size_t round = 0, added = 1; added && round < MAX_ROUNDS; round++) {
    weft_bn_settle settle = { .starts = STARTS,
                              .kicks = KICKS,
                              .best = 1,
                              .key = search->key,
                              .first = round,
                              .order = order,
                              .end = found.end,
                              .best_sets = found.best_sets,
                              .best_score = found.best_score };
    if (!round) WEFT_TRY(make_lists(ctx, &mem, &job));
    drop_table(keep, out);
    WEFT_TRY(collect(keep, &job, out));
    if (!round) {
      weft_bn_lists lists;
      WEFT_TRY(weft_bn_lists_make(&mem, out, 0, &lists));
      WEFT_TRY(weft_bn_start_orders(ctx, &lists, &run, order));
    }
    WEFT_TRY(weft_bn_settle_run(ctx, out, &settle));
    WEFT_TRY(widen(ctx, &mem, &job, out, &found, &added));
  }
  drop_table(keep, out);
  WEFT_TRY(collect(keep, &job, out));
  *scored = 0;
  for (size_t t = 0; t < problem->threads; t++) *scored += job.scorers[t].scored;
done:
  weft_arena_end(&mem);
  return st;
}
