/* Tests of single attributes that hold for few rows: exact ones, as the file is named, where tables are few. This file
 * counts the tables and chooses how each is tested.
 *
 * When class and attribute are independent, every assignment of the labels to the rows is equally likely. The margins
 * n_a of the attribute and n_c of the class stay as they are, and a table has probability Π n_a! Π n_c! / (n! Π n_ac!).
 * The score is Σ f(n_ac), which grows with the information; p is the probability of the observed score or more.
 * Attributes with the same margins share one law, and with bins of equal frequency all of them do. With E = min n_a min
 * n_c / n, the least count that is expected in a cell, the first of these that applies (needs_law(), find_law()):
 *
 *   more than some 2^20 rows, or    chi-squared with Williams' correction, whose p-value R makes (R/mi-null.R; it asks
 *   2^10 levels or classes          for no law where chi-squared sees nothing and cells expect 5 rows)
 *   E >= 100 (2 x 2, with scores    the same, which is right within some percent there and down to p = 10^-20; beyond,
 *   far apart: 1000)                one of those below
 *   few tables (walk.c)             exact: all are visited
 *   E < 5, and random tables are    a smooth law, with p-values below some .2 from random tables in its place
 *   cheap (sample.c)
 *   else (smooth.c)                 a smooth law alone; margins of too many kinds for it: chi-squared again
 *
 * No p-value of a law is less than the probability of the table itself and of those that differ only in the order of
 * levels with the same margin, which is nearly all of it where no table scores more. */
#include <stdlib.h>
#include <string.h>
#include "core/call/parallel.h"
#include "mi/null/exact_test.h"
#include "mi/null/law.h"
#include "mi/null/walk.h"
#include "mi/null/smooth.h"
#include "mi/null/sample.h"

#define MAX_SIDE 1024u /* levels or classes of a table that is looked at */
#define ATTRIBUTES_AT_ONCE 4096
#define MAX_ROWS ((size_t) 1 << 20) /* more: chi-squared */
#define FAR 9.26                    /* standard deviations: p = 10^-20 */
#define LAW_WORK 2e5                /* operations of a law, roughly */

/* An attribute, and what it shares with others. Margins are sorted, the greatest last. */
typedef struct {
  uint64_t hash;
  int64_t score;
  double log_free;    /* log of the tables that differ in the order of equal levels, each 1 / Π n_ac! */
  size_t at, margins; /* place among the attributes asked for; where its levels' and then the classes' margins begin */
  uint32_t levels, classes;
  uint64_t n;
} item;

/* Attributes first .. last-1 of the sorted items: equal margins, scores from high to low. */
typedef struct {
  size_t first, last;
} law;

/* A level's margin, and its counts in all classes as a hash. */
typedef struct {
  uint32_t margin;
  uint64_t counts;
} level_counts;

typedef struct {
  uint16_t *codes;
  uint32_t *level, *cell;
  uint64_t *counts;
  level_counts *levels;
} workspace;

static int by_number(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return (x > y) - (x < y);
}

static int by_law_and_score(const void *a, const void *b)
{
  const item *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

static int by_margin_and_counts(const void *a, const void *b)
{
  const level_counts *x = a, *y = b;
  if (x->margin != y->margin) return x->margin < y->margin ? -1 : 1;
  return (x->counts > y->counts) - (x->counts < y->counts);
}

static uint64_t hash_of(const uint32_t *x, size_t count, uint64_t hash)
{
  for (size_t i = 0; i < count; i++) hash = (hash ^ x[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 29;
  return hash;
}

/* Log of the number of tables that differ from this one in the order of levels with the same margin. */
static double log_orders(level_counts *levels, uint32_t count, const double *factorial)
{
  double sum = 0;
  uint32_t margin = 0, same = 0; /* where the present margin and the present counts begin */
  qsort(levels, count, sizeof *levels, by_margin_and_counts);
  for (uint32_t i = 1; i <= count; i++) {
    const int end = i == count || levels[i].margin != levels[margin].margin;
    if (end || levels[i].counts != levels[same].counts) {
      sum -= factorial[i - same];
      same = i;
    }
    if (end) {
      sum += factorial[i - margin];
      margin = i;
    }
  }
  return sum;
}

/* The margins of one attribute and its score. */
static void tabulate(const weft_mi_pack *pack, size_t column, const weft_mi_logs *logs, workspace *w, uint32_t *margins,
                     item *out)
{
  const size_t place = pack->place[column];
  size_t row = 0;
  weft_mi_pack_codes(pack, place, w->codes);
  out->levels = out->classes = 0;
  out->n = 0;
  out->score = 0;
  out->log_free = 0;
  for (uint32_t c = 0; c < pack->classes; c++) {
    const size_t first = row, end = row + pack->class_rows[c];
    uint32_t kept = 0;
    for (; row < end; row++) {
      if (w->codes[row] == WEFT_MI_MISSING) continue;
      w->cell[w->codes[row]]++;
      kept++;
    }
    for (row = first; row < end; row++) {
      const uint16_t code = w->codes[row];
      if (code == WEFT_MI_MISSING || !w->cell[code]) continue;
      out->score += weft_mi_fixed(&pack->f, w->cell[code]);
      if (w->cell[code] < logs->known) out->log_free -= logs->factorial[w->cell[code]];
      w->level[code] += w->cell[code];
      w->counts[code] = hash_of((const uint32_t[]){ c, w->cell[code] }, 2, w->counts[code]);
      w->cell[code] = 0;
    }
    if (kept && out->classes < MAX_SIDE) margins[MAX_SIDE + out->classes] = kept;
    out->classes += kept > 0;
    out->n += kept;
  }
  for (row = 0; row < pack->n; row++) {
    const uint16_t code = w->codes[row];
    if (code == WEFT_MI_MISSING || !w->level[code]) continue;
    if (out->levels < MAX_SIDE) {
      margins[out->levels] = w->level[code];
      w->levels[out->levels] = (level_counts){ w->level[code], w->counts[code] };
    }
    out->levels++;
    w->level[code] = 0;
    w->counts[code] = 0;
  }
  if (out->levels <= MAX_SIDE) out->log_free += log_orders(w->levels, out->levels, logs->factorial);
}

static double williams(const uint32_t *margins, uint32_t count, double n)
{
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += n / margins[i];
  return sum - 1;
}

/* ---- all attributes ---- */

/* log x! and x log x of 0 .. known - 1; the former by a compensated sum. */
static void fill_logs(weft_mi_logs *logs)
{
  double sum = 0, low = 0;
  for (size_t x = 0; x < logs->known; x++) {
    const double log_x = x ? weft_log((double) x) : 0, term = weft_sub(log_x, low), next = weft_add(sum, term);
    low = weft_sub(weft_sub(next, sum), term);
    logs->factorial[x] = sum = next;
    logs->entropy[x] = (double) x * log_x;
  }
}

/* The standard normal deviate with nearly the tail of G by chi-squared (Wilson and Hilferty 1931). */
static double deviate_of(const item *x, const uint32_t *margins, const weft_mi_logs *logs, double nat)
{
  const double df = (x->levels - 1.0) * (x->classes - 1.0);
  double half = (double) x->score * nat + logs->entropy[x->n];
  for (uint32_t i = 0; i < x->levels + x->classes; i++) half -= logs->entropy[margins[i]];
  return half > 0 ? (weft_exp(weft_log(2 * half / df) / 3) - 1 + 2 / (9 * df)) * weft_sqrt(4.5 * df) : 0;
}

/* Whether chi-squared is not accurate enough: cells expect few rows, or the tail is far. */
static int needs_law(const item *x, const uint32_t *margins, const weft_mi_logs *logs, double nat)
{
  const double expected = (double) margins[0] * margins[x->levels] / (double) x->n;
  if (x->n + MAX_SIDE > logs->known) return 0;
  return expected < (x->levels == 2 && x->classes == 2 ? 1000 : 100) || deviate_of(x, margins, logs, nat) > FAR;
}

/* Puts the margins of `x` in order behind those of `used` numbers; NaN is left in `p` when its law is needed. */
static int keep_margins(item *x, uint32_t *rows, uint32_t *classes, uint32_t *margins, size_t *used, double *p,
                        double *correction)
{
  *p = WEFT_NAN;
  *correction = 0;
  if (x->levels < 2 || x->classes < 2) *p = 1;
  if (x->levels < 2 || x->classes < 2 || x->levels > MAX_SIDE || x->classes > MAX_SIDE) return 0;
  *correction =
      williams(rows, x->levels, (double) x->n) * williams(classes, x->classes, (double) x->n) / (6.0 * (double) x->n);
  if (x->levels == x->n || x->classes == x->n) { /* all tables have the same score */
    *p = 1;
    return 0;
  }
  qsort(rows, x->levels, sizeof *rows, by_number);
  qsort(classes, x->classes, sizeof *classes, by_number);
  x->margins = *used;
  memcpy(margins + *used, rows, x->levels * sizeof *rows);
  memcpy(margins + *used + x->levels, classes, x->classes * sizeof *classes);
  *used += x->levels + x->classes;
  x->hash = hash_of(margins + x->margins, x->levels + x->classes, x->levels);
  return 1;
}

static int same_law(const item *a, const item *b, const uint32_t *margins)
{
  return a->hash == b->hash && a->levels == b->levels && a->classes == b->classes &&
         !memcmp(margins + a->margins, margins + b->margins, (a->levels + a->classes) * sizeof *margins);
}

/* The inputs and results of finding the laws. */
typedef struct {
  const weft_mi_logs *logs;
  const item *items;
  const law *laws;
  const uint32_t *margins;
  const int64_t *f;
  int64_t *scores; /* of the sorted items */
  double *nats, *tail, *statistic, *error;
  double nat; /* a unit of the scores */
} search;

/* p-values of one law, or what has the chi-squared distribution; NaN is what is left out. */
static void find_law(const search *job, size_t group, weft_mi_walk *walk, weft_mi_smooth *smooth,
                     weft_mi_sampler *sampler)
{
  const law *at = &job->laws[group];
  const item *x = &job->items[at->first];
  const size_t count = at->last - at->first;
  const uint32_t *levels = job->margins + x->margins;
  const weft_mi_margins margins = { levels, levels + x->levels, x->levels, x->classes, x->n };
  double *tail = job->tail + at->first, *statistic = job->statistic + at->first;
  for (size_t i = 0; i < count; i++) statistic[i] = job->error[at->first + i] = WEFT_NAN;
  if (weft_mi_walk_short(&margins, job->logs) &&
      weft_mi_walk_run(walk, &margins, job->logs, job->f, job->scores + at->first, count, tail))
    return;
  for (size_t i = 0; i < count; i++) tail[i] = WEFT_NAN;
  const int sampled = weft_mi_sampler_tables(&margins) > 0;
  if (!weft_mi_smooth_run(smooth, &margins, job->logs, job->nats + at->first, count, sampled, statistic))
    for (size_t i = 0; i < count; i++) statistic[i] = WEFT_NAN;
  else if (sampled)
    weft_mi_sampler_run(sampler, &margins, job->logs, job->f, job->nat, smooth, job->scores + at->first, count,
                        statistic, job->error + at->first);
}

/* All laws; each is found by one thread, so that it is the same for any number of them. */
static weft_status find_laws(weft_ctx *ctx, search *job, size_t groups, size_t kept)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) groups * LAW_WORK);
  const size_t at_once = 64 * (size_t) threads;
  weft_mi_walk **walks;
  weft_mi_smooth **smooth;
  weft_mi_sampler **samplers;
  WEFT_TAKE(job->scores, &mem, kept);
  WEFT_TAKE(job->nats, &mem, kept);
  WEFT_TAKE(walks, &mem, (size_t) threads);
  WEFT_TAKE(smooth, &mem, (size_t) threads);
  WEFT_TAKE(samplers, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    walks[thread] = weft_mi_walk_make(&mem);
    smooth[thread] = walks[thread] ? weft_mi_smooth_make(&mem, job->logs->known) : NULL;
    samplers[thread] = smooth[thread] ? weft_mi_sampler_make(&mem) : NULL;
    if (!samplers[thread]) st = WEFT_ERR_MEMORY;
    if (!samplers[thread]) goto done;
  }
  for (size_t i = 0; i < kept; i++) {
    job->scores[i] = job->items[i].score;
    job->nats[i] = (double) job->items[i].score * job->nat;
  }
  for (size_t first = 0; first < groups; first += at_once) {
    const int64_t end = (int64_t) (first + at_once < groups ? first + at_once : groups);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) groups));
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t group = (int64_t) first; group < end; group++)
      find_law(job, (size_t) group, walks[WEFT_THREAD()], smooth[WEFT_THREAD()], samplers[WEFT_THREAD()]);
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Log of the probability of an attribute's own table and of those like it. */
static double log_table(const item *x, const uint32_t *margins, const double *factorial)
{
  double sum = x->log_free - factorial[x->n];
  for (uint32_t i = 0; i < x->levels + x->classes; i++) sum += factorial[margins[x->margins + i]];
  return sum;
}

/* Margins and scores of all attributes; those that need a law become `kept` items. */
typedef struct {
  item *items;
  uint32_t *margins;
  size_t used, kept;
} collection;

/* Counts every attribute, in batches on all threads. Those that chi-squared serves have their p-value in `out`
 * afterwards; the others are kept in `into`, with their margins, for their laws. */
static weft_status collect(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count,
                           const weft_mi_logs *logs, double nat, const weft_mi_tests *out, collection *into)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) count * 4 * (double) pack->n);
  const double fit = 1 + 1e7 / ((double) pack->n + 100) * threads;
  const size_t at_once = fit < ATTRIBUTES_AT_ONCE ? (size_t) fit : ATTRIBUTES_AT_ONCE;
  workspace *work;
  uint32_t *fresh;
  item *found;
  WEFT_TAKE(fresh, &mem, at_once * 2 * MAX_SIDE);
  WEFT_TAKE(found, &mem, at_once);
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].codes, &mem, pack->n);
    WEFT_TAKE0(work[thread].level, &mem, 65536);
    WEFT_TAKE0(work[thread].cell, &mem, 65536);
    WEFT_TAKE0(work[thread].counts, &mem, 65536);
    WEFT_TAKE(work[thread].levels, &mem, MAX_SIDE);
  }
  for (size_t first = 0; first < count; first += at_once) {
    const int64_t now = (int64_t) (count - first < at_once ? count - first : at_once);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(guided)
      for (int64_t i = 0; i < now; i++)
        tabulate(pack, columns[first + (size_t) i], logs, w, fresh + 2 * MAX_SIDE * (size_t) i, &found[i]);
    }
    for (int64_t i = 0; i < now; i++) {
      uint32_t *rows = fresh + 2 * MAX_SIDE * (size_t) i;
      const size_t at = first + (size_t) i;
      item *x = &found[i];
      x->at = at;
      if (!keep_margins(x, rows, rows + MAX_SIDE, into->margins, &into->used, &out->p[at], &out->correction[at]))
        continue;
      if (needs_law(x, into->margins + x->margins, logs, nat))
        into->items[into->kept++] = *x;
      else
        into->used = x->margins;
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Counts all attributes, sorts those that need a law by margins and score, finds each law once for all attributes that
 * share it, and puts the results where the attributes were asked for. */
weft_status weft_mi_null(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count,
                         const weft_mi_tests *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mi_logs logs = { NULL, NULL, (pack->n < MAX_ROWS ? pack->n : MAX_ROWS) + MAX_SIDE };
  collection all = { NULL, NULL, 0, 0 };
  search job = { .logs = &logs, .nat = pack->f.unit * 0.69314718055994530942 };
  size_t room = 0, groups = 0;
  law *laws;
  int64_t *f;
  if (!count) goto done;
  logs.known += 64 + 16 * (size_t) weft_sqrt((double) logs.known); /* cells of a smooth law go beyond their bounds */
  for (size_t i = 0; i < count; i++) {
    const size_t levels = pack->levels[pack->place[columns[i]]];
    room += (levels < MAX_SIDE ? levels : MAX_SIDE) + (pack->classes < MAX_SIDE ? pack->classes : MAX_SIDE);
    out->statistic[i] = out->log_table[i] = out->error[i] = WEFT_NAN;
  }
  WEFT_TAKE(all.margins, &mem, room);
  WEFT_TAKE(all.items, &mem, count);
  WEFT_TAKE(laws, &mem, count);
  WEFT_TAKE(job.tail, &mem, count);
  WEFT_TAKE(job.statistic, &mem, count);
  WEFT_TAKE(job.error, &mem, count);
  WEFT_TAKE(logs.factorial, &mem, logs.known);
  WEFT_TAKE(logs.entropy, &mem, logs.known);
  WEFT_TAKE(f, &mem, logs.known);
  fill_logs(&logs);
  for (size_t k = 0; k < logs.known; k++) f[k] = k <= pack->n ? weft_mi_fixed(&pack->f, k) : 0;
  WEFT_TRY(collect(ctx, pack, columns, count, &logs, job.nat, out, &all));
  qsort(all.items, all.kept, sizeof *all.items, by_law_and_score);
  for (size_t i = 0; i < all.kept; i++) {
    if (!i || !same_law(&all.items[i], &all.items[i - 1], all.margins)) laws[groups++] = (law){ i, i + 1 };
    laws[groups - 1].last = i + 1;
  }
  job.items = all.items;
  job.laws = laws;
  job.margins = all.margins;
  job.f = f;
  WEFT_TRY(find_laws(ctx, &job, groups, all.kept));
  for (size_t i = 0; i < all.kept; i++) {
    const size_t at = all.items[i].at;
    out->p[at] = job.tail[i];
    out->statistic[at] = job.statistic[i];
    out->error[at] = job.error[i];
    out->log_table[at] = log_table(&all.items[i], all.margins, logs.factorial);
  }
done:
  weft_arena_end(&mem);
  return st;
}
