/* Passes over large symmetric matrices; see edges.h. Each reads memory once, column after column, on all threads.
 *
 * The k-th greatest weight is found from the bits: positive doubles have the same order as their bits read as whole
 * numbers. Four passes of 16 bits each count the edges that share the bits found so far, from the highest on. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/networks/cpu/edges.h"

#define AT_ONCE 3e7 /* entries that a thread reads between two polls: some 30 ms */
#define DIGITS 65536

static size_t columns_at_once(const weft_ctx *ctx, size_t p)
{
  return (size_t) (1 + ctx->threads * AT_ONCE / ((double) p + 1));
}

typedef struct {
  const weft_edges *edges;
  double threshold;
  int whole;
  double *counts;
} reaching_job;
typedef struct {
  const weft_edges *edges;
  const double *m;
  double cut;
  uint64_t known, mask;
  int shift;
  double *counts;
} digit_job;
typedef struct {
  size_t p;
  double *w;
  const double *m;
  double cut, threshold;
} cut_job;
typedef struct {
  const weft_edges *edges;
  const weft_edge_thresholds *thresholds;
  double *counts;
} reaching_thresholds_job;
typedef struct {
  size_t p;
  double *w;
  const double *m;
  const weft_edge_thresholds *thresholds;
} cut_thresholds_job;
typedef struct {
  const weft_edges *edges;
  const double *starts;
  int *from, *to;
} list_job;

typedef void column_work(const void *job, size_t j, int thread);

static weft_status all_columns(weft_ctx *ctx, size_t p, column_work *work, const void *job)
{
  weft_status st = WEFT_OK;
  const size_t batch = columns_at_once(ctx, p);
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, ((double) end - (double) first) * (double) p), dynamic)
    for (int64_t j = (int64_t) first; j < end; j++) work(job, (size_t) j, WEFT_THREAD());
  }
done:
  return st;
}

static void count_reaching(const void *data, size_t j, int thread)
{
  const reaching_job *job = data;
  const size_t p = job->edges->p, end = job->whole ? p : j;
  const double *w = job->edges->w + j * p, threshold = job->threshold;
  size_t found = 0;
  (void) thread;
  for (size_t i = 0; i < end; i++) found += w[i] >= threshold;
  if (job->whole) found -= w[j] >= threshold;
  job->counts[j] = (double) found;
}

weft_status weft_edges_reaching(weft_ctx *ctx, const weft_edges *edges, double threshold, int whole, double *counts)
{
  const reaching_job job = { edges, threshold, whole, counts };
  return all_columns(ctx, edges->p, count_reaching, &job);
}

static void count_reaching_thresholds(const void *data, size_t j, int thread)
{
  const reaching_thresholds_job *job = data;
  const weft_edge_thresholds *thresholds = job->thresholds;
  const double *w = job->edges->w + j * job->edges->p,
               *threshold = thresholds->threshold + (size_t) thresholds->of[j] * thresholds->kinds;
  size_t found = 0;
  (void) thread;
  for (size_t i = 0; i < j; i++) found += w[i] >= threshold[thresholds->of[i]];
  job->counts[j] = (double) found;
}

weft_status weft_edges_reaching_thresholds(weft_ctx *ctx, const weft_edges *edges,
                                           const weft_edge_thresholds *thresholds, double *counts)
{
  const reaching_thresholds_job job = { edges, thresholds, counts };
  return all_columns(ctx, edges->p, count_reaching_thresholds, &job);
}

static void count_digits(const void *data, size_t j, int thread)
{
  const digit_job *job = data;
  const double *w = job->edges->w + j * job->edges->p, *m = job->m + j * job->edges->p;
  double *counts = job->counts + (size_t) thread * DIGITS;
  for (size_t i = 0; i < j; i++) {
    uint64_t bits;
    if (!(w[i] > 0 && m[i] > job->cut)) continue;
    memcpy(&bits, &w[i], sizeof bits);
    if ((bits & job->mask) == job->known) counts[bits >> job->shift & (DIGITS - 1)]++;
  }
}

/* Finds the k-th greatest weight of the edges whose entry of m is above `cut`, in four passes, each for 16 bits of the
 * answer; *value stays 0 where there are fewer than k. */
weft_status weft_edges_greatest(weft_ctx *ctx, const weft_edges *edges, const double *m, double cut, double k,
                                double *value)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  digit_job job = { edges, m, cut, 0, 0, 48, NULL };
  *value = 0;
  WEFT_TAKE(job.counts, &mem, (size_t) ctx->threads * DIGITS);
  for (; job.shift >= 0; job.shift -= 16) {
    size_t digit = DIGITS;
    double above = 0, here = 0;
    memset(job.counts, 0, (size_t) ctx->threads * DIGITS * sizeof *job.counts);
    WEFT_TRY(all_columns(ctx, edges->p, count_digits, &job));
    while (above + here < k && digit-- > 0) {
      above += here;
      here = 0;
      for (int thread = 0; thread < ctx->threads; thread++) here += job.counts[(size_t) thread * DIGITS + digit];
    }
    if (above + here < k) goto done; /* fewer than k: only the first pass can find that */
    k -= above;
    job.known |= (uint64_t) digit << job.shift;
    job.mask |= (uint64_t) (DIGITS - 1) << job.shift;
  }
  memcpy(value, &job.known, sizeof *value);
done:
  weft_arena_end(&mem);
  return st;
}

static void cut_column(const void *data, size_t j, int thread)
{
  const cut_job *job = data;
  double *w = job->w + j * job->p;
  const double *m = job->m + j * job->p;
  (void) thread;
  for (size_t i = 0; i < job->p; i++)
    if (w[i] < job->threshold || !(m[i] > job->cut)) w[i] = 0;
}

weft_status weft_edges_cut(weft_ctx *ctx, size_t p, double *w, const double *m, double cut, double threshold)
{
  const cut_job job = { p, w, m, cut, threshold };
  return all_columns(ctx, p, cut_column, &job);
}

static void cut_column_thresholds(const void *data, size_t j, int thread)
{
  const cut_thresholds_job *job = data;
  const weft_edge_thresholds *thresholds = job->thresholds;
  double *w = job->w + j * job->p;
  const double *m = job->m + j * job->p,
               *threshold = thresholds->threshold + (size_t) thresholds->of[j] * thresholds->kinds;
  (void) thread;
  for (size_t i = 0; i < job->p; i++)
    if (!(m[i] >= threshold[thresholds->of[i]])) w[i] = 0;
}

weft_status weft_edges_cut_thresholds(weft_ctx *ctx, size_t p, double *w, const double *m,
                                      const weft_edge_thresholds *thresholds)
{
  const cut_thresholds_job job = { p, w, m, thresholds };
  return all_columns(ctx, p, cut_column_thresholds, &job);
}

static void list_column(const void *data, size_t j, int thread)
{
  const list_job *job = data;
  const double *w = job->edges->w + j * job->edges->p;
  size_t at = (size_t) job->starts[j], end = (size_t) job->starts[j + 1];
  (void) thread;
  for (size_t i = 0; i < j && at < end; i++)
    if (w[i] > 0) {
      job->from[at] = (int) i + 1;
      job->to[at++] = (int) j + 1;
    }
}

weft_status weft_edges_list(weft_ctx *ctx, const weft_edges *edges, const double *starts, int *from, int *to)
{
  const list_job job = { edges, starts, from, to };
  return all_columns(ctx, edges->p, list_column, &job);
}
