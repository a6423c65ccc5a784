/* Scans all pairs of variants. A screen scores them: tiles of the CPU by products of matrices (tile.c), or a device
 * (cuda/screen.cu) those of variants that do not miss many genotypes. What may be among the best is then scored pair by
 * pair on the CPU, so that what is kept, its scores and ties do not depend on the screen. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/scan/tile.h"

enum { SIDE = WEFT_SCAN_SIDE, BEYOND = 64 }; /* pairs that tiles keep beyond those asked for */
#define ROUNDING 1e-9                        /* relative; more than the scores of a tile and of a pair differ by */

/* The best pairs that one thread has found. */
typedef struct thread_found {
  weft_scan_workspace w;
  weft_topk best;
  double *greatest; /* of each outcome */
  double tested;
} thread_found;

static weft_status take_threads(const weft_scan *scan, weft_arena *mem, int team, size_t top, thread_found **out)
{
  weft_status st = WEFT_OK;
  thread_found *threads;
  WEFT_TAKE0(threads, mem, (size_t) team);
  *out = threads;
  for (int t = 0; t < team; t++) {
    WEFT_TRY(weft_scan_take_workspace(scan, mem, &threads[t].w));
    WEFT_TAKE(threads[t].greatest, mem, scan->outcomes);
    for (size_t e = 0; e < scan->outcomes; e++) threads[t].greatest[e] = -INFINITY;
    WEFT_TRY(weft_topk_init(&threads[t].best, mem, top));
  }
done:
  return st;
}

static void note_scores(const weft_scan *scan, thread_found *thread, uint64_t index, double min_score)
{
  const double *score = thread->w.score;
  for (size_t e = 0; e < scan->outcomes; e++)
    if (score[e] > thread->greatest[e]) thread->greatest[e] = score[e];
  if (score[0] >= min_score) weft_topk_push(&thread->best, score[0], index);
}

/* Joins what the threads have found in the first of them. */
static void join_threads(const weft_scan *scan, thread_found *threads, int team)
{
  for (int t = 1; t < team; t++) {
    threads[0].tested += threads[t].tested;
    for (size_t e = 0; e < scan->outcomes; e++)
      if (threads[t].greatest[e] > threads[0].greatest[e]) threads[0].greatest[e] = threads[t].greatest[e];
    weft_topk_merge(&threads[0].best, &threads[t].best);
  }
  weft_topk_sort(&threads[0].best);
}

/* ---- tiles ---- */

/* Whether the pair of variants i < j is for the tiles. screened: the most missing genotypes of variants whose pairs a
 * device has scored; -1: it has scored none. */
static int is_searched(const weft_scan *scan, size_t i, size_t j, double screened)
{
  if (weft_scan_missing(scan, i) <= screened && weft_scan_missing(scan, j) <= screened) return 0;
  return i < j && weft_scan_searches(scan->job, i, j);
}

static int has_pairs(const weft_scan *scan, double screened)
{
  const weft_scan_block *one = &scan->one, *other = &scan->other;
  for (size_t i = one->first; i < one->first + one->count; i++)
    for (size_t j = other->first; j < other->first + other->count; j++)
      if (is_searched(scan, i, j, screened)) return 1;
  return 0;
}

/* Scores the pairs of a tile that are searched. */
static void score_tile(const weft_scan *scan, double screened, thread_found *threads)
{
  const weft_scan_block *one = &scan->one, *other = &scan->other;
  const double missing = (double) (one->start[one->count] + other->start[other->count]) / (double) one->count;
  const double cost = (double) (one->count * other->count) * (double) (scan->k + scan->outcomes) * (20 + missing);
  WEFT_PARALLEL_FOR(weft_threads_worth(scan->team, cost), static)
  for (int64_t at = 0; at < (int64_t) one->count; at++)
    for (size_t j = 0; j < other->count; j++) {
      const size_t i = (size_t) at;
      thread_found *thread = &threads[WEFT_THREAD()];
      if (!is_searched(scan, one->first + i, other->first + j, screened)) continue;
      thread->tested += weft_scan_score(scan, &thread->w, i, j);
      note_scores(scan, thread, (one->first + i) * scan->job->variants.p + other->first + j,
                  scan->job->min_score * (1 - ROUNDING));
    }
}

/* Goes through all tiles; the first of `threads` has what they say. */
static weft_status scan_tiles(weft_ctx *ctx, weft_scan *scan, double screened, thread_found *threads)
{
  weft_status st = WEFT_OK;
  const size_t p = scan->job->variants.p, blocks = (p + SIDE - 1) / SIDE;
  const double total = (double) blocks * (double) (blocks + 1) / 2;
  double done = 0;
  for (size_t i = 0; i < blocks; i++) {
    int loaded = 0;
    scan->one.first = i * SIDE;
    scan->one.count = p - i * SIDE < SIDE ? p - i * SIDE : SIDE;
    for (size_t j = i; j < blocks; j++, done++) {
      scan->other.first = j * SIDE;
      scan->other.count = p - j * SIDE < SIDE ? p - j * SIDE : SIDE;
      WEFT_TRY(weft_poll(ctx, done, total));
      if (!has_pairs(scan, screened)) continue;
      if (!loaded++) weft_scan_load(scan, scan->one.first, scan->one.count, &scan->one);
      weft_scan_load(scan, scan->other.first, scan->other.count, &scan->other);
      WEFT_TRY(weft_scan_sum_tile(ctx, scan, done, total));
      score_tile(scan, screened, threads);
    }
  }
  join_threads(scan, threads, scan->team);
done:
  return st;
}

/* The tiles' best pairs into `into`, with all that may be as good as the last one asked for: where more pairs than that
 * have almost the same score, it begins again and keeps more of them. */
static weft_status best_of_tiles(weft_ctx *ctx, weft_scan *scan, double screened, weft_arena *mem, weft_scan_found *out,
                                 uint64_t **index, size_t *count)
{
  weft_status st = WEFT_OK;
  const double p = (double) scan->job->variants.p, pairs = p * (p - 1) / 2;
  const size_t top = scan->job->top;
  weft_arena own = weft_arena_begin(ctx);
  for (double beyond = BEYOND;; beyond *= 16) {
    const double keep = top ? fmin((double) top + beyond, pairs) : 0;
    thread_found *threads;
    weft_arena_end(&own);
    own = weft_arena_begin(ctx);
    WEFT_TRY(take_threads(scan, &own, scan->team, (size_t) keep, &threads));
    WEFT_TRY(scan_tiles(ctx, scan, screened, threads));
    const weft_topk *best = &threads[0].best;
    size_t kept = best->count;
    const double enough = kept > top && top ? best->items[top - 1].score * (1 - ROUNDING) : -INFINITY;
    if (keep < pairs && kept == (size_t) keep && kept && best->items[kept - 1].score >= enough) continue;
    while (kept && best->items[kept - 1].score < enough) kept--;
    WEFT_TAKE(*index, mem, kept + 1);
    for (size_t at = 0; at < kept; at++) (*index)[at] = best->items[at].index;
    *count = kept;
    out->tested += threads[0].tested;
    memcpy(out->greatest, threads[0].greatest, scan->outcomes * sizeof *out->greatest);
    break;
  }
done:
  weft_arena_end(&own);
  return st;
}

/* ---- pair by pair ---- */

/* Scores single pairs. unsure: it is not known whether they have scores. */
static weft_status score_pairs(weft_ctx *ctx, const weft_scan *all, const uint64_t *index, size_t count, int unsure,
                               weft_arena *mem, thread_found *threads)
{
  weft_status st = WEFT_OK;
  const size_t p = all->job->variants.p;
  const double sums = (double) (3 * all->width) * (double) (all->columns * all->columns);
  const double cost = 2 * (double) (all->job->variants.n + 1) * sums;
  const size_t at_once = 1 + (size_t) (all->team * 3e7 / cost);
  weft_scan *own;
  WEFT_TAKE(own, mem, (size_t) all->team);
  for (int t = 0; t < all->team; t++) {
    own[t] = *all;
    own[t].team = 1;
    WEFT_TRY(weft_scan_take_tile(mem, 1, &own[t]));
    own[t].one.count = 0;
  }
  for (size_t first = 0; first < count; first += at_once) {
    const int64_t end = (int64_t) (count - first < at_once ? count : first + at_once);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_PARALLEL_FOR(weft_threads_worth(all->team, (double) (end - (int64_t) first) * cost), dynamic)
    for (int64_t at = (int64_t) first; at < end; at++) {
      weft_scan *scan = &own[WEFT_THREAD()];
      thread_found *thread = &threads[WEFT_THREAD()];
      const size_t i = (size_t) (index[at] / p), j = (size_t) (index[at] % p);
      if (scan->one.count == 0 || scan->one.first != i) weft_scan_load(scan, i, 1, &scan->one);
      weft_scan_load(scan, j, 1, &scan->other);
      weft_scan_sum_pair(scan);
      const int tested = weft_scan_score(scan, &thread->w, 0, 0);
      if (unsure) thread->tested += tested;
      note_scores(scan, thread, index[at], scan->job->min_score);
    }
  }
done:
  return st;
}

/* Screens, scores what passes, and keeps the best. */
weft_status weft_mi_scan(weft_ctx *ctx, const weft_mi_ops *ops, const weft_scan_job *job, weft_arena *mem,
                         weft_scan_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  weft_scan scan = { .job = job, .k = job->k, .outcomes = job->outcomes, .columns = job->genotypes ? 2 : 1 };
  const size_t p = job->variants.p;
  weft_scan_screened screened = { 0 };
  int left = 0;
  uint64_t *index = NULL;
  size_t count = 0;
  thread_found *threads;
  scan.team = ctx->threads;
  scan.width = 1 + scan.k + scan.outcomes;
  scan.lost_width = scan.k * (scan.k + 1) / 2 + scan.k * scan.outcomes + scan.outcomes;
  out->tested = 0;
  for (size_t e = 0; e < scan.outcomes; e++) out->greatest[e] = -INFINITY;
  WEFT_TRY(weft_scan_prepare(ctx, &own, &scan));
  if (ops->scan) WEFT_TRY(ops->scan(ctx, job, scan.counts, &own, &screened));
  if (!screened.done) screened.max_missing = -1;
  for (size_t j = 0; j < p; j++) left |= weft_scan_missing(&scan, j) > screened.max_missing;
  if (left) {
    WEFT_TRY(weft_scan_take_tile(&own, p < SIDE ? p : SIDE, &scan));
    WEFT_TRY(best_of_tiles(ctx, &scan, screened.max_missing, &own, out, &index, &count));
  }
  WEFT_TRY(take_threads(&scan, &own, scan.team, job->top, &threads));
  WEFT_TRY(score_pairs(ctx, &scan, index, count, 0, &own, threads));
  WEFT_TRY(score_pairs(ctx, &scan, screened.index, screened.count, 0, &own, threads));
  WEFT_TRY(score_pairs(ctx, &scan, screened.unsure, screened.unsure_count, 1, &own, threads));
  join_threads(&scan, threads, scan.team);
  out->tested += screened.tested + threads[0].tested;
  for (size_t e = 0; screened.done && e < scan.outcomes; e++)
    if (threads[0].greatest[e] > out->greatest[e]) out->greatest[e] = threads[0].greatest[e];
  out->found.count = threads[0].best.count;
  WEFT_TAKE(out->found.items, mem, out->found.count + 1);
  if (out->found.count) memcpy(out->found.items, threads[0].best.items, out->found.count * sizeof *out->found.items);
done:
  weft_arena_end(&own);
  return st;
}
