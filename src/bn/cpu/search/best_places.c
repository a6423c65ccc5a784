/* Orders that settle: each node in turn goes to the place where the best graph of the order scores highest, until no
 * node has a better place. Then a node and some of its parents and children go to random places, and the order settles
 * again; this is a kick. A worse result is discarded; an equal one is kept, since many orders have the same best graph.
 *
 *   .. y x ..   x moves on to the left: y gains x, which its better sets may need; x loses y
 *   .. x y ..   to the right: y loses x, which its set may need; x gains y
 *
 * So all places of a node are tried one after the other, and hardly any of these steps needs another set. Starts are
 * independent of each other: each depends on the key, its number and the table alone. */
#include <math.h>
#include "core/call/parallel.h"
#include "bn/cpu/chains/chain.h"
#include "bn/both/joint.h"
#include "bn/cpu/search/best_places.h"
#include "bn/cpu/search/queue.h"

#define MAX_KICKED 5              /* nodes of a kick */
#define PORTION 100000            /* places tried between two polls, at first */
#define OF_A_PAIR 100             /* operations of settling once, for each pair of nodes */
#define DRAWS (UINT32_C(5) << 28) /* stream: the others are in both/moves.h */

typedef struct settler {
  int32_t *order, *place, *pick; /* pick: index of the best set within the node's sets */
  uint64_t *before, *chosen;     /* p × words: predecessors; the best set */
  int64_t score;
  /* what it was before the kick */
  int32_t *old_order, *old_pick;
  uint64_t *old_before, *old_chosen;
  int64_t old_score;
  weft_bn_queue queue;
  /* changes of other nodes' sets while a node moves: which, to what */
  int32_t *changed, *changed_pick, *picks;
  size_t kicks_left;
  int recording, done;
  uint64_t drawn;
  weft_rng rng;
  weft_bn_best best;
} settler;

typedef struct settle_run {
  const weft_bn_lists *lists;
  const weft_bn_settle *job;
  settler *settlers;
  settler **open; /* those that are not done */
  void (*advance)(const weft_bn_lists *lists, settler *start, double places);
  double portion;
} settle_run;

static size_t draw_below(settler *start, size_t n) { return (size_t) weft_draw_below(start->rng, start->drawn++, n); }

/* ---- one node's places ---- */

/* `change`: of the score, at the best place; from `low` to `high` all places are possible, and all are looked at if
 * `whole`. */
typedef struct places {
  int64_t change;
  int32_t best, low, high;
  int whole;
} places;

static void record(const weft_bn_lists *lists, settler *start, int32_t x, int32_t pick, size_t changes, int64_t change)
{
  const size_t p = lists->p;
  const int64_t score = start->score + change;
  uint64_t hash = 0;
  if (start->best.found == start->best.most && score < start->best.score[start->best.most - 1]) return;
  memcpy(start->picks, start->pick, p * sizeof *start->picks);
  for (size_t k = 0; k < changes; k++) start->picks[start->changed[k]] = start->changed_pick[k];
  start->picks[x] = pick;
  for (size_t node = 0; node < p; node++) hash += weft_bn_pick_hash(node, start->picks[node]);
  weft_bn_best_add(&start->best, p, score, hash, start->drawn++, start->picks);
}

/* Goes through the places of x to one side of its own, from `from` on by `step`, to `end` at most. */
WIDE void try_side(const weft_bn_lists *lists, settler *start, int32_t x, int step, int32_t end, places *found,
                   size_t words, int fast)
{
  const weft_bn_table *table = lists->table;
  const size_t own = (size_t) x * words;
  const uint64_t *sets = table->mask + (size_t) table->start[x] * words, *users = lists->users;
  const int64_t *score = table->score + table->start[x];
  const int32_t count = (int32_t) (table->start[x + 1] - table->start[x]), now = start->pick[x];
  const int64_t most = score[0] - score[now];
  uint64_t mine[words ? words : 1], other[words ? words : 1];
  int32_t pick = now;
  int64_t others = 0;
  size_t changes = 0;
  for (size_t w = 0; w < words; w++) mine[w] = start->before[own + w];
  for (int32_t at = start->place[x]; at != end;) {
    const int32_t y = start->order[at + step], old = start->pick[y];
    const uint64_t *theirs = table->mask + (size_t) table->start[y] * words;
    const int64_t *their_score = table->score + table->start[y];
    int32_t next = old;
    at += step;
    for (size_t w = 0; w < words; w++) other[w] = start->before[(size_t) y * words + w];
    if (step < 0) {
      if (old && has_bit(users + own, y)) {
        set_bit(other, x);
        next = weft_bn_find_fit(theirs, 0, old, other, words, fast);
      }
      clear_bit(mine, y);
      if (has_bit(sets + (size_t) pick * words, y)) {
        pick = weft_bn_find_fit(sets, pick + 1, count, mine, words, fast);
        if (pick == count) return;
      }
      found->low = at;
    } else {
      if (has_bit(start->chosen + (size_t) y * words, x)) {
        const int32_t all = (int32_t) (table->start[y + 1] - table->start[y]);
        clear_bit(other, x);
        next = weft_bn_find_fit(theirs, old + 1, all, other, words, fast);
        if (next == all) return;
      }
      set_bit(mine, y);
      if (pick && has_bit(users + (size_t) y * words, x)) pick = weft_bn_find_fit(sets, 0, pick, mine, words, fast);
      found->high = at;
    }
    if (next != old) {
      others += their_score[next] - their_score[old];
      start->changed[changes] = y;
      start->changed_pick[changes++] = next;
    }
    const int64_t change = others + score[pick] - score[now];
    if (change > found->change) {
      found->change = change;
      found->best = at;
    }
    if (start->recording)
      record(lists, start, x, pick, changes, change);
    else if (step > 0 && others + most <= found->change && !found->whole)
      return;
  }
}

/* Puts a set of y in place of its present one. */
WIDE void take_set(const weft_bn_lists *lists, settler *start, int32_t y, int32_t pick, size_t words)
{
  const weft_bn_table *table = lists->table;
  const int64_t *score = table->score + table->start[y];
  const uint64_t *set = table->mask + (size_t) (table->start[y] + pick) * words;
  start->score += score[pick] - score[start->pick[y]];
  start->pick[y] = pick;
  for (size_t w = 0; w < words; w++) start->chosen[(size_t) y * words + w] = set[w];
  weft_bn_queue_add(&start->queue, (size_t) y);
}

/* x goes to a place that is possible. */
WIDE void move_to(const weft_bn_lists *lists, settler *start, int32_t x, int32_t to, size_t words, int fast)
{
  const weft_bn_table *table = lists->table;
  const int step = to < start->place[x] ? -1 : 1;
  uint64_t *mine = start->before + (size_t) x * words;
  int32_t at = start->place[x];
  for (; at != to; at += step) {
    const int32_t y = start->order[at + step], old = start->pick[y],
                  all = (int32_t) (table->start[y + 1] - table->start[y]);
    const uint64_t *theirs = table->mask + (size_t) table->start[y] * words;
    uint64_t *other = start->before + (size_t) y * words;
    int32_t next = old;
    start->order[at] = y;
    start->place[y] = at;
    if (step < 0) {
      set_bit(other, x);
      clear_bit(mine, y);
      next = weft_bn_find_fit(theirs, 0, old, other, words, fast);
    } else {
      clear_bit(other, x);
      set_bit(mine, y);
      if (has_bit(start->chosen + (size_t) y * words, x))
        next = weft_bn_find_fit(theirs, old + 1, all, other, words, fast);
    }
    if (next != old) take_set(lists, start, y, next, words);
  }
  start->order[to] = x;
  start->place[x] = to;
  const uint64_t *sets = table->mask + (size_t) table->start[x] * words;
  take_set(lists, start, x,
           weft_bn_find_fit(sets, 0, (int32_t) (table->start[x + 1] - table->start[x]), mine, words, fast), words);
}

WIDE places places_of(const weft_bn_lists *lists, settler *start, int32_t x, int whole, size_t words, int fast)
{
  const int32_t at = start->place[x];
  places found = { 0, at, at, at, whole };
  try_side(lists, start, x, -1, 0, &found, words, fast);
  try_side(lists, start, x, 1, (int32_t) lists->p - 1, &found, words, fast);
  return found;
}

/* ---- kicks ---- */

static void keep(const weft_bn_lists *lists, settler *start, int back)
{
  const size_t p = lists->p, masks = p * lists->words * sizeof *start->before;
#define COPY(now, old, bytes) memcpy(back ? now : old, back ? old : now, bytes)
  COPY(start->order, start->old_order, p * sizeof *start->order);
  COPY(start->pick, start->old_pick, p * sizeof *start->pick);
  COPY(start->before, start->old_before, masks);
  COPY(start->chosen, start->old_chosen, masks);
#undef COPY
  if (!back) {
    start->old_score = start->score;
    return;
  }
  start->score = start->old_score;
  for (size_t k = 0; k < p; k++) start->place[start->order[k]] = (int32_t) k;
}

/* A node and some of its parents and children, to random places. */
WIDE void kick(const weft_bn_lists *lists, settler *start, size_t words, int fast)
{
  const size_t p = lists->p, most = 1 + draw_below(start, MAX_KICKED);
  const int32_t x = (int32_t) draw_below(start, p);
  int32_t near[MAX_KICKED] = { x };
  size_t count = 1, met = 0;
  for (int32_t node = 0; node < (int32_t) p && most > 1; node++) { /* each of them is as likely to be kept */
    if (!has_bit(start->chosen + (size_t) x * words, node) && !has_bit(start->chosen + (size_t) node * words, x))
      continue;
    met++;
    if (count < most)
      near[count++] = node;
    else {
      const size_t at = draw_below(start, met);
      if (at + 1 < most) near[at + 1] = node;
    }
  }
  for (size_t k = 0; k < count; k++) {
    const places found = places_of(lists, start, near[k], 1, words, fast);
    const int32_t to = found.low + (int32_t) draw_below(start, (size_t) (found.high - found.low) + 1);
    if (to != start->place[near[k]]) move_to(lists, start, near[k], to, words, fast);
    weft_bn_queue_add(&start->queue, (size_t) near[k]);
  }
}

/* Works on one start until some `places_left` places have been tried or it is done. A start moves waiting nodes;
 * when none waits it keeps or undoes the last kick and kicks again; after the last kick it goes through all nodes
 * once more and records the best graphs. */
WIDE void advance(const weft_bn_lists *lists, settler *start, double places_left, size_t words, int fast)
{
  const size_t p = lists->p;
  for (; !start->done && places_left > 0; places_left -= (double) p) {
    if (start->queue.waiting) {
      const int32_t x = (int32_t) weft_bn_queue_next(&start->queue);
      const places found = places_of(lists, start, x, 0, words, fast);
      if (found.change > 0) move_to(lists, start, x, found.best, words, fast);
      continue;
    }
    if (start->recording) {
      start->done = 1;
      continue;
    }
    keep(lists, start, start->score < start->old_score);
    if (start->kicks_left) {
      start->kicks_left--;
      kick(lists, start, words, fast);
      places_left -= MAX_KICKED * (double) p;
    } else {
      start->recording = 1;
      record(lists, start, start->order[0], start->pick[start->order[0]], 0, 0);
      weft_bn_queue_all(&start->queue, start->rng, &start->drawn);
    }
  }
}

#define KERNEL(name, words, fast) \
  static void name(const weft_bn_lists *lists, settler *start, double places) \
  { \
    advance(lists, start, places, words, fast); \
  }
KERNEL(advance_1, 1, 0)
KERNEL(advance_2, 2, 0)
KERNEL(advance_any, lists->words, 0)
#if WEFT_SIMD_X86
WEFT_TARGET_AVX512 KERNEL(advance_1_avx512, 1, 1)
WEFT_TARGET_AVX512 KERNEL(advance_2_avx512, 2, 1)
#endif

/* ---- the whole ---- */

static weft_status make_settler(weft_arena *mem, settle_run *run, size_t number, settler *start)
{
  weft_status st = WEFT_OK;
  const weft_bn_lists *lists = run->lists;
  const weft_bn_table *table = lists->table;
  const size_t p = lists->p, words = lists->words;
  *start = (settler){ .order = run->job->order + number * p,
                      .kicks_left = run->job->kicks,
                      .drawn = run->job->first << 32,
                      .queue = { .p = p },
                      .rng = { run->job->key, DRAWS + (uint32_t) number } };
  WEFT_TAKE(start->place, mem, p);
  WEFT_TAKE(start->pick, mem, p);
  WEFT_TAKE0(start->before, mem, p * words);
  WEFT_TAKE(start->chosen, mem, p * words);
  WEFT_TAKE(start->old_order, mem, p);
  WEFT_TAKE(start->old_pick, mem, p);
  WEFT_TAKE(start->old_before, mem, p * words);
  WEFT_TAKE(start->old_chosen, mem, p * words);
  WEFT_TAKE(start->queue.node, mem, p);
  WEFT_TAKE(start->queue.waits, mem, p);
  WEFT_TAKE(start->changed, mem, p);
  WEFT_TAKE(start->changed_pick, mem, p);
  WEFT_TAKE(start->picks, mem, p);
  WEFT_TRY(weft_bn_best_make(mem, p, run->job->best, &start->best));
  for (size_t k = 0; k < p; k++) start->place[start->order[k]] = (int32_t) k;
  for (size_t k = 1; k < p; k++) {
    const size_t from = (size_t) start->order[k - 1] * words, to = (size_t) start->order[k] * words;
    memcpy(start->before + to, start->before + from, words * sizeof *start->before);
    set_bit(start->before + to, start->order[k - 1]);
  }
  start->score = weft_bn_best_graph(lists, start->before, start->pick);
  for (size_t node = 0; node < p; node++)
    memcpy(start->chosen + node * words, table->mask + (size_t) (table->start[node] + start->pick[node]) * words,
           words * sizeof *start->chosen);
  keep(lists, start, 0);
  weft_bn_queue_all(&start->queue, start->rng, &start->drawn);
done:
  return st;
}

static void advance_task(void *data, size_t t, int thread)
{
  settle_run *run = data;
  (void) thread;
  run->advance(run->lists, run->open[t], run->portion);
}

/* Advances all starts in portions, in parallel, with a poll after each portion, until every start is done. */
static weft_status settle_all(weft_ctx *ctx, settle_run *run)
{
  weft_status st = WEFT_OK;
  const size_t starts = run->job->starts, p = run->lists->p;
  const double work = (double) (starts * p * p) * OF_A_PAIR * (double) (1 + run->job->kicks);
  const size_t threads = (size_t) weft_threads_worth(ctx->threads, work);
  for (size_t c = 0; c < starts; c++) run->open[c] = &run->settlers[c];
  for (size_t left = starts; left;) {
    double took;
    WEFT_TRY(weft_bn_run_timed(ctx, threads, left, advance_task, run, 1 - (double) left / (double) starts, &took));
    run->portion *= took < 0.01 ? 2 : took > 0.05 ? 0.5 : 1;
    size_t still = 0;
    for (size_t t = 0; t < left; t++)
      if (!run->open[t]->done) run->open[still++] = run->open[t];
    left = still;
  }
done:
  return st;
}

/* Settles job->starts orders on a table: fills job's orders, end scores and best graphs, and `found`. Results are
 * the same with any number of threads; on an error status they are not to be used. */
weft_status weft_bn_settle_run(weft_ctx *ctx, const weft_bn_table *table, weft_bn_settle *job)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = table->p;
  weft_bn_lists lists;
  weft_bn_best all = { .most = job->best, .sets = job->best_sets };
  settle_run run = { .lists = &lists, .job = job, .portion = PORTION };
  WEFT_TRY(weft_bn_lists_make(&mem, table, 0, &lists));
  run.advance = lists.words == 1 ? advance_1 : lists.words == 2 ? advance_2 : advance_any;
#if WEFT_SIMD_X86
  if (lists.words <= 2 && weft_simd_level() == WEFT_SIMD_AVX512)
    run.advance = lists.words == 1 ? advance_1_avx512 : advance_2_avx512;
#endif
  WEFT_TAKE(all.score, &mem, job->best);
  WEFT_TAKE(all.hash, &mem, job->best);
  WEFT_TAKE(all.stamp, &mem, job->best);
  WEFT_TAKE(run.settlers, &mem, job->starts);
  WEFT_TAKE(run.open, &mem, job->starts);
  for (size_t c = 0; c < job->starts; c++) {
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_TRY(make_settler(&mem, &run, c, &run.settlers[c]));
  }
  WEFT_TRY(settle_all(ctx, &run));
  for (size_t c = 0; c < job->starts; c++) {
    const weft_bn_best *best = &run.settlers[c].best;
    job->end[c] = (double) run.settlers[c].score / lists.unit;
    for (size_t k = 0; k < best->found; k++)
      weft_bn_best_add(&all, p, best->score[k], best->hash[k], (uint64_t) c << 32 | k, best->sets + k * p);
  }
  for (size_t k = 0; k < all.found; k++) job->best_score[k] = (double) all.score[k] / lists.unit;
  job->found = all.found;
done:
  weft_arena_end(&mem);
  return st;
}
