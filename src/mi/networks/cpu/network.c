/* From a matrix of mutual information to a network; see mi.h for the job.
 *
 * ARACNE (Margolin 2006): edge ij is removed when some k has w_ij < min(s, keep s) - eps with s = min(w_ik, w_jk): then
 * it is the weakest of triangle ijk and s the second weakest. Nearly always such a k is among the few that are most
 * informative about j or i; these are tried first, for all i of a column at once. The search over all k stops at the
 * first that does. CLR (Faith 2007): sqrt(z_i^2 + z_j^2), z_i = max(0, (w_ij - mean_i) / sd_i) over the off-diagonal
 * entries of row i. MRNET (Meyer 2007): for every target t, forward selection by w_it - mean of w_ij over the selected
 * j, while positive. MRNETB (Meyer 2010): for every target, from all others S, the score of i is w_it - (1/|S|) sum of
 * w_ij over j in S without i; the lowest is removed while it is negative; then the lowest is exchanged for the best one
 * outside as long as that one scores higher in its place. Both are made symmetric by the greater of the two
 * directions. */
/* Build: shared. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "mi/networks/network.h"
#include "core/numbers/loops.h"

#define STRIP 128 /* entries between two looks at the outcome */

/* ---- the inner loops, in variants ---- */

typedef struct {
  double value;
  size_t index;
} best;

/* Whether some k has edges of at least `threshold` with both i and j, whose rows are a and b. */
INLINE int both_reach(const double *restrict a, const double *restrict b, size_t p, double threshold)
{
  for (size_t first = 0; first < p; first += STRIP) {
    const size_t end = p - first < STRIP ? p : first + STRIP;
    int any = 0;
    WEFT_SIMD_REDUCE(| : any)
    for (size_t k = first; k < end; k++) any |= (a[k] >= threshold) & (b[k] >= threshold);
    if (any) return 1;
  }
  return 0;
}

/* most[i] is raised to the second weakest edge of triangle ijk, where j and k have an edge of weight w. */
INLINE void raise(const double *restrict with_k, double w, double *restrict largest, size_t count)
{
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t i = 0; i < count; i++) {
    const double weaker = with_k[i] < w ? with_k[i] : w;
    largest[i] = weaker > largest[i] ? weaker : largest[i];
  }
}

/* The first of the greatest scores sign × (size × relevance - sum), after adding row `add` to `sum`. */
INLINE best add_and_find(const double *restrict relevance, const double *restrict add, double *restrict sum, size_t p,
                         double size, double sign)
{
  best found = { -INFINITY, SIZE_MAX };
  size_t strip = 0;
  for (size_t first = 0; first < p; first += STRIP) {
    const size_t end = p - first < STRIP ? p : first + STRIP;
    double top = -INFINITY;
    WEFT_SIMD_GREATEST(top)
    for (size_t j = first; j < end; j++) {
      const double total = sum[j] + add[j], score = (relevance[j] * size - total) * sign;
      sum[j] = total;
      top = score > top ? score : top;
    }
    if (top > found.value) {
      found.value = top;
      strip = first;
    }
  }
  if (found.value > -INFINITY)
    for (found.index = strip; (relevance[found.index] * size - sum[found.index]) * sign != found.value;) found.index++;
  return found;
}

/* out[i]: squares of the deviations of m[i] from the means of column i and of one column, in standard deviations. Of
 * columns without spread, and below `rounding`, they are 0. */
INLINE void deviations(const double *restrict m, const double *restrict mean, const double *restrict spread,
                       size_t count, double own_mean, double own_spread, double rounding, double *restrict out)
{
  const double own = own_spread > 0 ? own_spread : INFINITY;
  WEFT_SIMD_PRAGMA(omp simd)
  for (size_t i = 0; i < count; i++) {
    const double above_i = m[i] - mean[i], above_j = m[i] - own_mean;
    const double a = (above_i > rounding ? above_i : 0) / (spread[i] > 0 ? spread[i] : INFINITY);
    const double b = (above_j > rounding ? above_j : 0) / own;
    out[i] = a * a + b * b;
  }
}

#define LOOPS(name, target) \
  target static void deviations_##name(const double *m, const double *mean, const double *spread, size_t count, \
                                       double own_mean, double own_spread, double rounding, double *out) \
  { \
    deviations(m, mean, spread, count, own_mean, own_spread, rounding, out); \
  } \
  target static int both_reach_##name(const double *a, const double *b, size_t p, double threshold) \
  { \
    return both_reach(a, b, p, threshold); \
  } \
  target static best find_##name(const double *r, const double *add, double *sum, size_t p, double size, double sign) \
  { \
    return add_and_find(r, add, sum, p, size, sign); \
  } \
  target static void raise_##name(const double *with_k, double w, double *largest, size_t count) \
  { \
    raise(with_k, w, largest, count); \
  }
WEFT_VARIANTS(LOOPS)

/* ---- checks ---- */

#define BLOCK 64 /* columns and rows of a tile, so that an entry and its mirror image are both in cache */

/* Looks at the entries above the diagonal in a block of columns. *greatest: the greatest absolute value, infinite when
 * an entry or its mirror image is not finite; *asymmetry: the greatest difference of the two. */
static void look_at_block(const weft_network_job *job, size_t block, double *greatest, double *asymmetry)
{
  const size_t p = job->p, first = block * BLOCK, last = p - first < BLOCK ? p : first + BLOCK;
  double largest = 0, apart = 0;
  int finite = 1;
  for (size_t row = 0; row < last; row += BLOCK)
    for (size_t j = first; j < last; j++)
      for (size_t i = row; i < j && i < row + BLOCK; i++) {
        const double a = job->m[i + j * p], b = job->m[j + i * p];
        finite &= fabs(a) <= DBL_MAX && fabs(b) <= DBL_MAX;
        largest = fabs(a) > largest ? fabs(a) : largest;
        apart = fabs(a - b) > apart ? fabs(a - b) : apart;
      }
  *greatest = finite ? largest : INFINITY;
  *asymmetry = apart;
}

/* Says which entry it is. */
static weft_status fail_entry(weft_ctx *ctx, const weft_network_job *job, size_t j, double slack)
{
  const size_t p = job->p;
  for (size_t i = 0; i < j; i++) {
    const double a = job->m[i + j * p], b = job->m[j + i * p];
    if (!(fabs(a) <= DBL_MAX && fabs(b) <= DBL_MAX))
      return weft_fail(ctx, WEFT_ERR_INPUT, "`x` must be finite off its diagonal: entry [%zu, %zu] is %g.", i + 1,
                       j + 1, a);
    if (slack >= 0 && fabs(a - b) > slack)
      return weft_fail(ctx, WEFT_ERR_INPUT, "`x` must be symmetric: [%zu, %zu] is %g, [%zu, %zu] is %g.", i + 1, j + 1,
                       a, j + 1, i + 1, b);
  }
  return WEFT_OK;
}

static weft_status fail_block(weft_ctx *ctx, const weft_network_job *job, size_t block, double slack)
{
  weft_status st = WEFT_OK;
  for (size_t j = block * BLOCK; st == WEFT_OK && j < job->p && j < (block + 1) * BLOCK; j++)
    st = fail_entry(ctx, job, j, slack);
  return st;
}

/* Looks at all blocks on all threads. The first bad block is then searched again for the entry that the message names,
 * so that it does not depend on threads. */
weft_status weft_network_check(weft_ctx *ctx, const weft_network_job *job, double *greatest)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t p = (int64_t) job->p, blocks = (p + BLOCK - 1) / BLOCK;
  const int64_t batch = 1 + ctx->threads * (int64_t) (5e5 / ((double) p + 1));
  double *largest, *apart;
  WEFT_TAKE(largest, &mem, (size_t) blocks);
  WEFT_TAKE(apart, &mem, (size_t) blocks);
  for (int64_t first = 0; first < blocks; first += batch) {
    const int64_t end = blocks - first < batch ? blocks : first + batch;
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * BLOCK * (double) p), dynamic)
    for (int64_t k = first; k < end; k++) look_at_block(job, (size_t) k, &largest[k], &apart[k]);
  }
  for (int64_t k = 0; k < blocks; k++) {
    if (largest[k] > *greatest) *greatest = largest[k];
    if (largest[k] > DBL_MAX) WEFT_TRY(fail_block(ctx, job, (size_t) k, -1));
  }
  for (int64_t k = 0; k < blocks; k++)
    if (apart[k] > 1e-8 * *greatest) WEFT_TRY(fail_block(ctx, job, (size_t) k, 1e-8 * *greatest));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- the methods: each fills one column of `out`, of entries above the diagonal at least ---- */

typedef struct {
  const weft_network_job *job;
  int (*both_reach)(const double *, const double *, size_t, double);
  best (*find)(const double *, const double *, double *, size_t, double, double);
  void (*raise)(const double *, double, double *, size_t);
  void (*deviations)(const double *, const double *, const double *, size_t, double, double, double, double *);
  const double *zeros;
  double *out;
  uint64_t *gone;         /* ARACNE in place: a bit of each entry, column by column */
  size_t words;           /* of a column's bits */
  int32_t *partner;       /* PARTNERS of each column: those of the greatest entries */
  double *first, *second; /* of columns: means and standard deviations, or sums */
  double rounding;
} network;

/* One thread's: p numbers each. */
typedef struct {
  double *relevance, *sum;
  uint8_t *inside;
} workspace;

#define PARTNERS 8

/* The columns that are most informative about column j; j itself where there are too few. */
static void column_partners(const network *w, size_t j)
{
  const size_t p = w->job->p;
  const double *column = w->job->m + j * p;
  int32_t *partner = w->partner + j * PARTNERS;
  double least = -INFINITY;
  for (size_t k = 0; k < PARTNERS; k++) partner[k] = (int32_t) j;
  for (size_t i = 0; i < p; i++) {
    size_t at = PARTNERS - 1;
    if (!(column[i] > least) || i == j) continue;
    for (; at > 0 && (partner[at - 1] == (int32_t) j || column[partner[at - 1]] < column[i]); at--)
      partner[at] = partner[at - 1];
    partner[at] = (int32_t) i;
    if (partner[PARTNERS - 1] != (int32_t) j) least = column[partner[PARTNERS - 1]];
  }
}

/* Whether an edge of weight w is removed when s is the second weakest of a triangle. */
static int outdone(const weft_network_job *job, double second, double w)
{
  const double kept = second * job->keep, threshold = kept < second ? kept : second;
  return threshold - job->eps > w;
}

/* The least s for which an edge of weight w > 0 is removed: outdone() is monotone in s, also as rounded. Infinite if
 * there is none. */
static double min_beyond(const weft_network_job *job, double w)
{
  double second = (w + job->eps) / (job->keep < 1 ? job->keep : 1);
  if (job->eps == 0 && job->keep >= 1) return nextafter(w, INFINITY);
  if (!(second <= DBL_MAX)) return INFINITY;
  while (second <= DBL_MAX && !outdone(job, second, w)) second = nextafter(second, INFINITY);
  while (second <= DBL_MAX && outdone(job, nextafter(second, 0), w)) second = nextafter(second, 0);
  return second;
}

/* Whether some k makes the edge of rows a and b the weakest by enough. k = i or j never does: s <= weight then. */
static int goes(const network *w, const double *a, const double *b, double weight)
{
  const weft_network_job *job = w->job;
  if (weight > 0) return w->both_reach(a, b, job->p, min_beyond(job, weight));
  for (size_t k = 0; k < job->p; k++)
    if (outdone(job, a[k] < b[k] ? a[k] : b[k], weight)) return 1;
  return 0;
}

static int outdone_by(const network *w, const int32_t *partner, const double *a, const double *b, double weight)
{
  for (size_t k = 0; k < PARTNERS; k++)
    if (outdone(w->job, a[partner[k]] < b[partner[k]] ? a[partner[k]] : b[partner[k]], weight)) return 1;
  return 0;
}

/* Decides the edges of column j with the columns before it: first by the partners of j and of i, and only then by a
 * search over all k. Puts weights into `out`, or marks what goes when working in place. */
static void aracne_column(const network *w, size_t j, workspace *work)
{
  const weft_network_job *job = w->job;
  const size_t p = job->p;
  const double *b = job->m + j * p;
  double *largest = work->sum;
  for (size_t i = 0; i < j; i++) largest[i] = -INFINITY;
  for (size_t k = 0; k < PARTNERS; k++) {
    const size_t partner = (size_t) w->partner[j * PARTNERS + k];
    if (partner != j) w->raise(job->m + partner * p, b[partner], largest, j);
  }
  for (size_t i = 0; i < j; i++) {
    const double *a = job->m + i * p, weight = b[i];
    const int gone = fabs(weight) <= w->rounding || outdone(job, largest[i], weight) ||
                     outdone_by(w, w->partner + i * PARTNERS, a, b, weight) || goes(w, a, b, weight);
    if (!w->gone)
      w->out[i + j * p] = gone ? 0 : weight;
    else if (gone)
      w->gone[j * w->words + i / 64] |= UINT64_C(1) << i % 64;
  }
}

static void clr_column(const network *w, size_t j, workspace *work)
{
  (void) work;
  const size_t p = w->job->p;
  double *out = w->out + j * p;
  w->deviations(w->job->m + j * p, w->first, w->second, j, w->first[j], w->second[j], w->rounding, out);
  for (size_t i = 0; i < j; i++) out[i] = sqrt(out[i]);
}

static void relnet_column(const network *w, size_t j, workspace *work)
{
  (void) work;
  const size_t p = w->job->p;
  const double *column = w->job->m + j * p;
  for (size_t i = 0; i < j; i++) w->out[i + j * p] = column[i] > w->job->eps ? column[i] : 0;
}

/* Mean and standard deviation of column j without its diagonal entry; the deviation is 0 where all entries are equal
 * but for rounding. */
static void column_moments(const network *w, size_t j)
{
  const size_t p = w->job->p;
  const double *column = w->job->m + j * p;
  double sum = 0, squares = 0, least = INFINITY, largest = -INFINITY;
  for (size_t i = 0; i < p; i++) {
    if (i == j) continue;
    sum += column[i];
    if (column[i] < least) least = column[i];
    if (column[i] > largest) largest = column[i];
  }
  const double mean = sum / ((double) p - 1);
  for (size_t i = 0; i < p; i++)
    if (i != j) squares += (column[i] - mean) * (column[i] - mean);
  w->first[j] = mean;
  w->second[j] = p > 2 && largest - least > w->rounding ? sqrt(squares / ((double) p - 2)) : 0;
}

/* Scores of target t's selected go to column t of out. Relevance of what is selected, and of the target, is -Inf. */
static void mrnet_column(const network *w, size_t target, workspace *work)
{
  const size_t p = w->job->p;
  const double *column = w->job->m;
  double *to = w->out + target * p;
  memcpy(work->relevance, column + target * p, p * sizeof *work->relevance);
  memset(work->sum, 0, p * sizeof *work->sum);
  memset(to, 0, p * sizeof *to);
  work->relevance[target] = -INFINITY;
  const double *last = w->zeros;
  for (size_t turn = 0; turn + 1 < p; turn++) {
    const double size = turn ? (double) turn : 1;
    const best b = w->find(work->relevance, last, work->sum, p, size, 1);
    if (!(b.value > w->rounding * size)) break;
    to[b.index] = b.value / size;
    work->relevance[b.index] = -INFINITY;
    last = column + b.index * p;
  }
}

static void add_row(double *sum, const double *row, size_t p, double sign)
{
  for (size_t i = 0; i < p; i++) sum[i] += sign * row[i];
}

/* The best feature outside when `worst` is removed: the greatest size × relevance - (sum - w_worst). */
static best best_outside(const network *w, size_t target, size_t worst, const workspace *work, double size)
{
  const size_t p = w->job->p;
  const double *column = w->job->m + target * p, *leaving = w->job->m + worst * p;
  best b = { -INFINITY, SIZE_MAX };
  for (size_t i = 0; i < p; i++) {
    if (work->inside[i] || i == target) continue;
    const double score = size * column[i] - (work->sum[i] - leaving[i]);
    if (score > b.value) b = (best){ score, i };
  }
  return b;
}

/* Relevance is +Inf for what is outside, so that it is never the lowest. */
static void mrnetb_column(const network *w, size_t target, workspace *work)
{
  const size_t p = w->job->p;
  const double *column = w->job->m;
  double *to = w->out + target * p, size = (double) p - 1;
  memset(to, 0, p * sizeof *to);
  if (p < 2) return;
  memcpy(work->relevance, column + target * p, p * sizeof *work->relevance);
  memset(work->inside, 1, p);
  for (size_t i = 0; i < p; i++) work->sum[i] = w->first[i] - column[i + target * p];
  work->relevance[target] = INFINITY;
  work->inside[target] = 0;
  best low = w->find(work->relevance, w->zeros, work->sum, p, size, -1);
  while (size > 1 && low.value > w->rounding * size) {
    const size_t out = low.index;
    const double own = work->sum[out]; /* its own entry on the diagonal is in no sum */
    work->inside[out] = 0;
    work->relevance[out] = INFINITY;
    size--;
    add_row(work->sum, column + out * p, p, -1);
    work->sum[out] = own;
    low = w->find(work->relevance, w->zeros, work->sum, p, size, -1);
  }
  for (size_t swaps = 0; swaps < p; swaps++) { /* every exchange raises the objective; the bound is for rounding */
    const best in = best_outside(w, target, low.index, work, size);
    const size_t out = low.index;
    if (in.index == SIZE_MAX || !(in.value > -low.value + 1e-12 * fabs(low.value))) break;
    const double own_out = work->sum[out], own_in = work->sum[in.index] - column[in.index + out * p];
    for (size_t i = 0; i < p; i++) work->sum[i] += column[i + in.index * p] - column[i + out * p];
    work->sum[out] = own_out + column[out + in.index * p];
    work->sum[in.index] = own_in;
    work->inside[out] = 0;
    work->inside[in.index] = 1;
    work->relevance[out] = INFINITY;
    work->relevance[in.index] = column[in.index + target * p];
    low = w->find(work->relevance, w->zeros, work->sum, p, size, -1);
  }
  for (size_t i = 0; i < p; i++) {
    const double score = work->inside[i] ? column[i + target * p] - work->sum[i] / size : 0;
    to[i] = score > 0 ? score : 0;
  }
}

static void column_sum(const network *w, size_t j)
{
  const size_t p = w->job->p;
  double sum = 0;
  for (size_t i = 0; i < p; i++)
    if (i != j) sum += w->job->m[i + j * p];
  w->first[j] = sum;
}

/* ---- all columns ---- */

weft_status weft_network_mirror(weft_ctx *ctx, const weft_network_job *job, double rounding, double *out)
{
  weft_status st = WEFT_OK;
  const weft_network_kind *kind = weft_network_kind_of(job->method);
  const size_t p = job->p;
  const int greater = kind->greedy;
  const double least = kind->in_bits ? rounding : 0;
  const int64_t block = BLOCK, blocks = ((int64_t) p + block - 1) / block;
  const int64_t batch = 1 + ctx->threads * (int64_t) (2e5 / ((double) p + 1));
  for (int64_t from = 0; from < blocks; from += batch) {
    const int64_t end = blocks - from < batch ? blocks : from + batch;
    WEFT_TRY(weft_poll(ctx, 1, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - from) * BLOCK * (double) p), dynamic)
    for (int64_t jb = from; jb < end; jb++)
      for (size_t ib = 0; ib <= (size_t) jb; ib++)
        for (size_t j = (size_t) (jb * block); j < p && j < (size_t) ((jb + 1) * block); j++)
          for (size_t i = ib * (size_t) block; i < j && i < (ib + 1) * (size_t) block; i++) {
            double *upper = &out[i + j * p], *lower = &out[j + i * p];
            if (greater && *lower > *upper) *upper = *lower;
            if (fabs(*upper) <= least) *upper = 0;
            *lower = *upper;
          }
  }
  for (size_t j = 0; j < p; j++) out[j + j * p] = 0;
done:
  return st;
}

/* Applies ARACNE's decisions to `out`, which is the matrix itself. */
static weft_status keep_edges(weft_ctx *ctx, const network *w)
{
  weft_status st = WEFT_OK;
  const size_t p = w->job->p, batch = BLOCK * (size_t) (1 + ctx->threads * (2e5 / ((double) p + 1)));
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, 1, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - (int64_t) first) * (double) p), dynamic)
    for (int64_t column = (int64_t) first; column < end; column += BLOCK)
      for (size_t row = 0; row <= (size_t) column; row += BLOCK)
        for (size_t j = (size_t) column; j < (size_t) end && j < (size_t) column + BLOCK; j++)
          for (size_t i = row; i < j && i < row + BLOCK; i++) {
            const int gone = w->gone[j * w->words + i / 64] >> i % 64 & 1;
            w->out[j + i * p] = w->out[i + j * p] = gone ? 0 : w->out[i + j * p];
          }
  }
  for (size_t j = 0; j < p; j++) w->out[j + j * p] = 0;
done:
  return st;
}

/* Nanoseconds that a column takes. */
static double column_cost(const weft_network_job *job)
{
  const double p = (double) job->p;
#define COST(kind, name, before, greedy, in_bits, nanoseconds, device) nanoseconds,
  const double costs[] = { WEFT_NETWORK_KINDS(COST) };
#undef COST
  return costs[job->method];
}

/* A row without its function does not compile. */
#define THERE(kind, name, ...) +sizeof &name##_column
enum { COLUMNS_THERE = 0 WEFT_NETWORK_KINDS(THERE) };
#undef THERE

static void one_column(const network *w, size_t j, workspace *work)
{
/* clang-format off */
#define COLUMN(kind, name, ...) case WEFT_NETWORK_##kind: name##_column(w, j, work); break;
  /* clang-format on */
  switch (w->job->method) {
    WEFT_NETWORK_KINDS(COLUMN)
  }
#undef COLUMN
}

/* What a method needs to know of all columns first. */
static weft_status look_before(weft_ctx *ctx, const network *w)
{
  weft_status st = WEFT_OK;
  const weft_network_before before = weft_network_kind_of(w->job->method)->before;
  const size_t p = w->job->p, batch = (size_t) (1 + ctx->threads * 2e7 / ((double) p + 1));
  if (before == WEFT_NETWORK_NOTHING) return WEFT_OK;
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, ((double) end - (double) first) * (double) p), static)
    for (int64_t j = (int64_t) first; j < end; j++) {
      if (before == WEFT_NETWORK_MOMENTS)
        column_moments(w, (size_t) j);
      else if (before == WEFT_NETWORK_PARTNERS)
        column_partners(w, (size_t) j);
      else
        column_sum(w, (size_t) j);
    }
  }
done:
  return st;
}

/* weft_mi_ops.network on the CPU: threads share columns. Where `out` is the input itself (ARACNE only), edges that go
 * are marked in bits and removed at the end. */
weft_status weft_network_cpu(weft_ctx *ctx, const weft_network_job *job, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = job->p, batch = (size_t) (1 + ctx->threads * 2e7 / (column_cost(job) + 1));
  network w = { .job = job,
                .both_reach = WEFT_VARIANT_HERE(both_reach),
                .find = WEFT_VARIANT_HERE(find),
                .raise = WEFT_VARIANT_HERE(raise),
                .deviations = WEFT_VARIANT_HERE(deviations),
                .out = out };
  double *zeros, greatest = 0;
  workspace *work;
  WEFT_TRY(weft_network_check(ctx, job, &greatest));
  w.rounding = weft_network_rounding(job, greatest);
  WEFT_TAKE0(zeros, &mem, p);
  w.zeros = zeros;
  WEFT_TAKE(w.partner, &mem, job->method == WEFT_NETWORK_ARACNE ? PARTNERS * p : 1);
  WEFT_TAKE(w.first, &mem, p);
  WEFT_TAKE(w.second, &mem, p);
  WEFT_TAKE(work, &mem, (size_t) ctx->threads);
  for (int thread = 0; thread < ctx->threads; thread++) {
    WEFT_TAKE(work[thread].relevance, &mem, p);
    WEFT_TAKE(work[thread].sum, &mem, p);
    WEFT_TAKE(work[thread].inside, &mem, p);
  }
  if (out == job->m) { /* nothing may change while rows are read */
    if (job->method != WEFT_NETWORK_ARACNE) {
      st = weft_fail(ctx, WEFT_ERR_INTERNAL, "Only ARACNE can work in place.");
      goto done;
    }
    w.words = (p + 63) / 64;
    WEFT_TAKE0(w.gone, &mem, p * w.words);
  }
  WEFT_TRY(look_before(ctx, &w));
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, ((double) end - (double) first) * column_cost(job)))
    {
      workspace *own = &work[WEFT_THREAD()];
      WEFT_FOR(dynamic)
      for (int64_t j = (int64_t) first; j < end; j++) one_column(&w, (size_t) j, own);
    }
  }
  WEFT_TRY(w.gone ? keep_edges(ctx, &w) : weft_network_mirror(ctx, job, w.rounding, out));
done:
  weft_arena_end(&mem);
  return st;
}
