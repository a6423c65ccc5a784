/* Least squares of every gene on one design.
 *
 * With rows scaled by the roots of their weights, and 0 where a value is missing, the design becomes Q R with
 * orthonormal Q. The last columns of the design are the hypothesis H; for a gene with effects e = Q'y,
 *   sum of squares of H = |e_H|^2,   b_H = R_HH^-1 e_H,   var(c'b_H) = sigma^2 |R_HH^-T c|^2.
 * Genes without gaps and without precision weights share Q and R, made once; the others each have their own. Genes are
 * divided into blocks of a fixed size, so that sums over genes do not depend on the number of threads. */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/data/column_facts.h"
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "ranking/ranking.h"
#include "ranking/orthonormal_design.h"
#include "ranking/values.h"

enum { BLOCK = 64 };   /* genes */
#define ROUNDING 1e-15 /* of the greatest value: residuals this small are rounding errors, and count as 0 */

typedef struct basis {
  double *q, *r, *spare;
  size_t rank;
} basis; /* spare: 1 - leverage of each sample */

/* Work space of one thread for one gene. */
typedef struct workspace {
  basis own;
  double *y;    /* values, 0 where missing */
  double *root; /* roots of weights, 0 where missing */
  double *rest; /* weighted values, then weighted residuals */
  double *effects, *beta, *solved;
  weft_ranking_value *sorted, *other;
  double *residuals, *room; /* of one stratum after another */
  int32_t *table, *place, *ends;
} workspace;

static weft_status take_basis(weft_arena *mem, const weft_ranking_job *job, basis *out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(out->q, mem, job->n * job->k);
  WEFT_TAKE(out->r, mem, job->k * job->k);
  WEFT_TAKE(out->spare, mem, job->n);
done:
  return st;
}

/* A thread's memory, from `mem`: for one gene's n values, k coefficients, residuals and bins. */
static weft_status take_workspace(weft_arena *mem, const weft_ranking_job *job, workspace *w)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(take_basis(mem, job, &w->own));
  WEFT_TAKE(w->y, mem, job->n);
  WEFT_TAKE(w->root, mem, job->n);
  WEFT_TAKE(w->rest, mem, job->n);
  WEFT_TAKE(w->effects, mem, job->k);
  WEFT_TAKE(w->beta, mem, job->k);
  WEFT_TAKE(w->solved, mem, job->k);
  WEFT_TAKE(w->sorted, mem, job->n);
  WEFT_TAKE(w->other, mem, job->n);
  WEFT_TAKE(w->table, mem, WEFT_RANKING_BINS * (job->groups + 1));
  WEFT_TAKE(w->place, mem, job->strata + 1);
  WEFT_TAKE(w->residuals, mem, job->n);
  WEFT_TAKE(w->room, mem, job->n);
  WEFT_TAKE(w->ends, mem, job->n + 1);
done:
  return st;
}

/* The design with rows scaled by `root`. */
static void make_basis(const weft_ranking_job *job, const double *root, basis *out)
{
  const size_t n = job->n, k = job->k;
  for (size_t j = 0; j < k; j++)
    for (size_t i = 0; i < n; i++) out->q[i + j * n] = root[i] * job->design[i + j * n];
  out->rank = weft_ranking_orthonormal(out->q, n, k, out->r);
  for (size_t i = 0; i < n; i++) {
    double leverage = 0;
    for (size_t j = 0; j < k; j++) leverage += out->q[i + j * n] * out->q[i + j * n];
    out->spare[i] = leverage < 1 - 1e-10 ? 1 - leverage : 0;
  }
}

/* Effects, and residuals in w->rest. Returns the residual sum of squares. */
static double project(const weft_ranking_job *job, const basis *b, workspace *w)
{
  double greatest = 0;
  for (size_t i = 0; i < job->n; i++) {
    w->rest[i] = w->root[i] * w->y[i];
    if (fabs(w->rest[i]) > greatest) greatest = fabs(w->rest[i]);
  }
  for (size_t j = 0; j < job->k; j++) {
    w->effects[j] = weft_ranking_dot(b->q + j * job->n, w->rest, job->n);
    weft_add_scaled(job->n, w->rest, -w->effects[j], b->q + j * job->n);
  }
  const double squares = weft_ranking_dot(w->rest, w->rest, job->n), error = ROUNDING * greatest;
  if (squares > (double) job->n * error * error) return squares;
  memset(w->rest, 0, job->n * sizeof *w->rest);
  return 0;
}

static double on_line(const weft_ranking_line *line, double x)
{
  size_t low = 0, high = line->count - 1;
  if (!(x > line->x[low])) return line->y[low];
  if (x >= line->x[high]) return line->y[high];
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (line->x[middle] <= x)
      low = middle;
    else
      high = middle;
  }
  return line->y[low] + (line->y[high] - line->y[low]) * ((x - line->x[low]) / (line->x[high] - line->x[low]));
}

/* A count's weight is the inverse of its variance, the fourth power of what the line has at its fitted log2 count. */
static void weigh_counts(const weft_ranking_job *job, workspace *w)
{
  for (size_t i = 0; i < job->n; i++) {
    if (w->root[i] == 0) continue;
    const double fitted = w->y[i] - w->rest[i] / w->root[i], level = on_line(&job->line, fitted + job->log_size[i]);
    w->root[i] = 1 / (level * level);
  }
}

/* Reads a gene. Returns how many of its values are there. */
static size_t read_gene(const weft_ranking_job *job, const double *values, workspace *w, double *mean)
{
  size_t there = 0;
  double sum = 0;
  for (size_t i = 0; i < job->n; i++) {
    const int missing = isnan(values[i]) != 0;
    w->y[i] = missing ? 0 : values[i];
    w->root[i] = missing ? 0 : job->weight ? sqrt(job->weight[i]) : 1;
    there += !missing;
    sum += w->y[i];
  }
  *mean = there ? sum / (double) there : NAN;
  return there;
}

/* Solves for the tested coefficients, and reports the contrast with the largest estimate relative to its standard
 * error, the first one among equals. */
static void contrast_gene(const weft_ranking_job *job, const basis *b, workspace *w, const weft_ranking_fits *out,
                          size_t j)
{
  const size_t k = job->k, t = job->tested, first = k - t;
  double clearest = -1;
  for (size_t i = t; i-- > 0;) {
    double value = w->effects[first + i];
    for (size_t l = i + 1; l < t; l++) value -= b->r[first + i + (first + l) * k] * w->beta[l];
    w->beta[i] = value / b->r[first + i + (first + i) * k];
  }
  for (size_t c = 0; c < job->shown; c++) {
    const double *contrast = job->contrasts + c * t;
    double estimate = 0, squares = 0;
    for (size_t i = 0; i < t; i++) {
      double value = contrast[i];
      for (size_t l = 0; l < i; l++) value -= b->r[first + l + (first + i) * k] * w->solved[l];
      w->solved[i] = value / b->r[first + i + (first + i) * k];
      squares += w->solved[i] * w->solved[i];
      estimate += contrast[i] * w->beta[i];
    }
    const double clear = fabs(estimate) / sqrt(squares);
    if (clear <= clearest) continue;
    clearest = clear;
    out->estimate[j] = estimate;
    out->unscaled[j] = sqrt(squares);
    out->contrast[j] = (int32_t) c;
  }
}

static void forget_gene(const weft_ranking_job *job, const weft_ranking_fits *out, size_t j)
{
  out->variance[j] = out->numerator[j] = out->estimate[j] = out->unscaled[j] = NAN;
  out->df[j] = 0;
  out->contrast[j] = 0;
  for (size_t g = 0; g < job->groups; g++) out->group_variance[g + j * job->groups] = NAN;
  if (job->described) {
    out->bits[j] = out->auc[j] = out->shape[j] = NAN;
    out->ties[j] = 0;
  }
}

/* Residual variances of the groups of a gene without gaps, and what its samples add to their noise and, after all of
 * that, to their shift. */
static void group_gene(const weft_ranking_job *job, const basis *b, const workspace *w, double variance,
                       double *group_variance, double *noise)
{
  for (size_t g = 0; g < job->groups; g++) {
    double squares = 0, freedom = 0;
    for (size_t i = 0; i < job->n; i++) {
      if ((size_t) job->group[i] != g) continue;
      squares += w->rest[i] * w->rest[i];
      freedom += b->spare[i];
    }
    group_variance[g] = freedom > 0.5 ? squares / freedom : NAN;
  }
  const double deviation = sqrt(variance);
  for (size_t i = 0; i < job->n && variance > 0; i++) {
    if (b->spare[i] > 0) noise[i] += w->rest[i] * w->rest[i] / (b->spare[i] * variance);
    noise[job->n + i] += w->rest[i] / deviation;
  }
}

/* Information and area of the values, with batches and covariates taken out. */
static void describe_values(const weft_ranking_job *job, const double *values, workspace *w,
                            const weft_ranking_fits *out, size_t j)
{
  const size_t first = job->k - job->tested;
  size_t there = 0;
  for (int adjust = 0; adjust <= (job->adjusted != 0); adjust++) {
    there = 0;
    for (size_t i = 0; i < job->n; i++) {
      if (isnan(values[i])) continue;
      double value = values[i];
      if (adjust) {
        value = w->root[i] > 0 ? w->rest[i] / w->root[i] : 0;
        for (size_t t = 0; t < job->tested; t++) value += job->design[i + (first + t) * job->n] * w->beta[t];
      }
      w->sorted[there++] = (weft_ranking_value){ value, job->group[i] };
    }
    weft_ranking_sort(w->sorted, w->other, w->ends, there);
    if (!adjust) out->ties[j] = weft_ranking_ties(w->sorted, there);
  }
  out->bits[j] = weft_ranking_bits_of(w->sorted, there, job->groups, w->table);
  out->auc[j] = job->groups == 2 ? weft_ranking_auc(w->sorted, there) : NAN;
}

/* Counts a stratum of `size` residuals by bin and group: bin of rank i is WEFT_RANKING_BINS i / size; equal values are
 * put into bins in their order. `room`: as many. */
static void count_bins(const double *residuals, const int32_t *groups, size_t size, double *room, int32_t *table)
{
  double cut[WEFT_RANKING_BINS - 1];
  size_t equal[WEFT_RANKING_BINS - 1]; /* how many of the values at a cut stay below it */
  memcpy(room, residuals, size * sizeof *room);
  for (size_t b = 0; b < WEFT_RANKING_BINS - 1; b++) {
    const size_t below = ((b + 1) * size + WEFT_RANKING_BINS - 1) / WEFT_RANKING_BINS;
    weft_select_place(room, size, below - 1);
    cut[b] = room[below - 1];
    equal[b] = 0;
    for (size_t i = 0; i < below; i++) equal[b] += room[i] == cut[b];
  }
  for (size_t i = 0; i < size; i++) {
    size_t bin = 0;
    for (size_t b = 0; b < WEFT_RANKING_BINS - 1; b++) {
      if (residuals[i] > cut[b] || (residuals[i] == cut[b] && !equal[b]))
        bin = b + 1;
      else if (residuals[i] == cut[b])
        equal[b]--;
    }
    table[bin + (size_t) groups[i] * WEFT_RANKING_BINS]++;
  }
}

/* What studentised residuals say about the groups: within each stratum they are put into bins of equal size by rank,
 * so that the margins are the same for every gene. */
static double shape_of(const weft_ranking_job *job, const basis *b, workspace *w)
{
  memset(w->place, 0, (job->strata + 1) * sizeof *w->place);
  for (size_t i = 0; i < job->n; i++) w->place[job->stratum[i] + 1]++;
  for (size_t s = 0; s < job->strata; s++) w->place[s + 1] += w->place[s];
  for (size_t i = 0; i < job->n; i++) {
    const size_t at = (size_t) w->place[job->stratum[i]]++;
    w->residuals[at] = b->spare[i] > 0 ? w->rest[i] / sqrt(b->spare[i]) : 0;
    w->ends[at] = job->group[i];
  }
  memset(w->table, 0, WEFT_RANKING_BINS * job->groups * sizeof *w->table);
  for (size_t s = 0, from = 0; s < job->strata; s++) {
    const size_t end = (size_t) w->place[s]; /* filled to where the next stratum begins */
    count_bins(w->residuals + from, w->ends + from, end - from, w->room, w->table);
    from = end;
  }
  return weft_ranking_bits(w->table, WEFT_RANKING_BINS, job->groups);
}

/* Everything about one gene. noise: sums over the genes of the block, of n samples' noise and of their shifts. */
static void fit_gene(const weft_ranking_job *job, const basis *common, workspace *w, const weft_ranking_fits *out,
                     size_t j, double *noise)
{
  const double *values = job->values + j * job->n;
  const size_t there = read_gene(job, values, w, &out->mean[j]);
  const int whole = there == job->n;
  const basis *b = common;
  forget_gene(job, out, j);
  if (!whole) {
    make_basis(job, w->root, &w->own);
    b = &w->own;
  }
  double squares = project(job, b, w);
  if (job->line.count) {
    weigh_counts(job, w);
    make_basis(job, w->root, &w->own);
    b = &w->own;
    squares = project(job, b, w);
  }
  for (size_t t = job->k - job->tested; t < job->k; t++)
    if (b->r[t + t * job->k] == 0) return;
  out->df[j] = (double) there - (double) b->rank;
  out->variance[j] = out->df[j] > 0 ? squares / out->df[j] : NAN;
  const double *tested = w->effects + job->k - job->tested;
  out->numerator[j] = weft_ranking_dot(tested, tested, job->tested) / (double) job->tested;
  contrast_gene(job, b, w, out, j);
  if (!job->groups) return;
  if (whole) group_gene(job, b, w, out->variance[j], out->group_variance + j * job->groups, noise);
  if (!job->described) return;
  describe_values(job, values, w, out, j);
  if (whole) out->shape[j] = shape_of(job, b, w);
}

/* About how many nanoseconds a gene takes. */
static double cost_of(const weft_ranking_job *job)
{
  const double n = (double) job->n, k = (double) job->k;
  return n * (10 + 2 * k + (job->line.count ? 30 + 2 * k * k : 0) + (job->described ? 100 : 0));
}

/* Genes go in blocks of BLOCK to the threads, between polls; without gaps and gene-wise weights they share one
 * orthonormal design. Sums over genes are kept per block and added in order, so that threads change nothing. */
weft_status weft_ranking_fit(weft_ctx *ctx, const weft_ranking_job *job, const weft_ranking_fits *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t blocks = ((int64_t) job->p + BLOCK - 1) / BLOCK;
  const int64_t at_once = 1 + (int64_t) (ctx->threads * 2e7 / (BLOCK * cost_of(job)));
  const int team = blocks < ctx->threads ? (int) blocks : ctx->threads;
  basis common;
  workspace *spaces;
  double *noise;
  WEFT_TRY(take_basis(&mem, job, &common));
  WEFT_TAKE0(spaces, &mem, (size_t) team);
  for (int t = 0; t < team; t++) WEFT_TRY(take_workspace(&mem, job, &spaces[t]));
  WEFT_TAKE(noise, &mem, (size_t) at_once * 2 * job->n);
  for (size_t i = 0; i < job->n; i++) spaces[0].root[i] = job->weight ? sqrt(job->weight[i]) : 1;
  make_basis(job, spaces[0].root, &common);
  memset(out->sample_noise, 0, job->n * sizeof *out->sample_noise);
  memset(out->sample_shift, 0, job->n * sizeof *out->sample_shift);
  for (int64_t first = 0; first < blocks; first += at_once) {
    const int64_t end = first + at_once < blocks ? first + at_once : blocks;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) blocks));
    memset(noise, 0, (size_t) at_once * 2 * job->n * sizeof *noise);
    WEFT_PARALLEL_FOR(weft_threads_worth(team, (double) (end - first) * BLOCK * cost_of(job)), static)
    for (int64_t block = first; block < end; block++) {
      const size_t from = (size_t) block * BLOCK, to = from + BLOCK < job->p ? from + BLOCK : job->p;
      for (size_t j = from; j < to; j++)
        fit_gene(job, &common, &spaces[WEFT_THREAD()], out, j, noise + (size_t) (block - first) * 2 * job->n);
    }
    for (int64_t block = 0; block < end - first; block++) {
      const double *sums = noise + (size_t) block * 2 * job->n;
      for (size_t i = 0; i < job->n; i++) {
        out->sample_noise[i] += sums[i];
        out->sample_shift[i] += sums[job->n + i];
      }
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
