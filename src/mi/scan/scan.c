/* A score of the interaction of every pair of variants, given covariates and both variants' own effects.
 *
 * With rows scaled by the roots of their weights, the model of a pair has the columns U (an orthonormal basis of the
 * covariates), a, b (genotypes less their means) and z = a b, and the outcome e. After a Cholesky decomposition of
 * their sums of products over the rows in which both genotypes are known, the score is
 *   (z'e)^2 / (z'z variance)    of what U, a and b leave of z and of e.
 * All sums that have both a and b come from products of matrices, for a tile of pairs: a'b, (a^2)'b, a'(b^2),
 * (a^2)'(b^2), and a'(u b) and a'(e b) for every column u and e. A missing genotype is 0 in them, so that they are
 * right for its rows, too. Sums without a or without b are made once for each variant over all rows, and for each pair
 * the rows where the other genotype is missing are taken off. */
#include <string.h>
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "mi/scan/scan.h"

enum { SIDE = 128, ROWS = 2048, CODES = 4 }; /* variants of a tile's side, rows expanded at once, codes with a value */
#define NEGLIGIBLE 1e-10                     /* of a column's squares: what is left of one that follows from others */

/* Some variants, and what does not depend on their partner. */
typedef struct block {
  size_t first, count;
  double *value;    /* CODES for each variant: less the mean, 0 where missing */
  size_t *start;    /* where its missing rows begin; count + 1 */
  uint32_t *absent; /* missing rows, ascending */
  double *own;      /* squares, sums with U, sums with e: 1 + k + outcomes for each */
  double *lost;     /* sums over its missing rows: U'U (lower triangle), U'e, squares of e */
} block;

/* Each thread has its own. */
typedef struct workspace {
  double *gram, *sums, *squares, *scale; /* of U, a, b, z; with e; of e; squares before anything is taken off */
  double *both;                          /* as block's `lost`, of the rows where both genotypes are missing */
  weft_topk best;
  double *greatest;
  double tested;
} workspace;

typedef struct scan {
  const weft_scan_job *job;
  size_t k, outcomes, width, lost_width; /* width of `by_row`: root, U, e */
  double *counts;                        /* of genotypes, WEFT_VARIANT_CODES for each variant */
  double *by_row;                        /* NULL where no genotype is missing */
  double *squares;                       /* of each outcome */
  double *left, *right, *plain;          /* rows of a tile: a and a^2; b and b^2; b without the root */
  double *four, *others;                 /* its sums: of a and a^2 with b and b^2; of a b with U and with e */
  block one, other;
  int team;
  workspace *spaces;
} scan;

/* ---- memory ---- */

static weft_status take_block(const scan *s, weft_arena *mem, size_t side, size_t max_missing, block *out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(out->value, mem, side * CODES);
  WEFT_TAKE(out->start, mem, side + 1);
  WEFT_TAKE(out->absent, mem, max_missing + 1);
  WEFT_TAKE(out->own, mem, side * s->width);
  WEFT_TAKE(out->lost, mem, side * s->lost_width);
done:
  return st;
}

/* A thread's memory: for the sums of one pair, and for what it keeps. */
static weft_status take_workspace(const scan *s, weft_arena *mem, workspace *out)
{
  weft_status st = WEFT_OK;
  const size_t size = s->k + 3;
  WEFT_TAKE(out->gram, mem, size * size);
  WEFT_TAKE(out->sums, mem, size * s->outcomes);
  WEFT_TAKE(out->squares, mem, s->outcomes);
  WEFT_TAKE(out->scale, mem, size);
  WEFT_TAKE(out->both, mem, s->lost_width);
  WEFT_TAKE(out->greatest, mem, s->outcomes);
  for (size_t e = 0; e < s->outcomes; e++) out->greatest[e] = -INFINITY;
  out->tested = 0;
  WEFT_TRY(weft_topk_init(&out->best, mem, s->job->top));
done:
  return st;
}

/* Root, U and e of each row next to each other. */
static void turn_rows(const scan *s)
{
  const weft_scan_job *job = s->job;
  const size_t n = job->variants.n;
  for (size_t i = 0; i < n; i++) {
    double *row = s->by_row + i * s->width;
    row[0] = job->root[i];
    for (size_t j = 0; j < s->k; j++) row[1 + j] = job->basis[i + j * n];
    for (size_t e = 0; e < s->outcomes; e++) row[1 + s->k + e] = job->outcome[i + e * n];
  }
}

static double missing_of(const scan *s, size_t j) { return s->counts[j * WEFT_VARIANT_CODES + WEFT_GENOTYPE_MISSING]; }

/* Counts genotypes, and takes all memory that the scan needs. */
static weft_status prepare(weft_ctx *ctx, weft_arena *mem, scan *s)
{
  weft_status st = WEFT_OK;
  const weft_variants *variants = &s->job->variants;
  const size_t p = variants->p, side = p < SIDE ? p : SIDE;
  double missing = 0, most = 0;
  WEFT_TAKE(s->counts, mem, p * WEFT_VARIANT_CODES);
  WEFT_TRY(weft_variant_counts(ctx, variants, s->counts));
  for (size_t first = 0; first < p; first += SIDE) {
    double here = 0;
    for (size_t j = first; j < p && j < first + SIDE; j++) here += missing_of(s, j);
    missing += here;
    if (here > most) most = here;
  }
  WEFT_TRY(take_block(s, mem, side, (size_t) most, &s->one));
  WEFT_TRY(take_block(s, mem, side, (size_t) most, &s->other));
  if (missing > 0) {
    WEFT_TAKE(s->by_row, mem, variants->n * s->width);
    turn_rows(s);
  }
  WEFT_TAKE(s->left, mem, 2 * side * ROWS);
  WEFT_TAKE(s->right, mem, 2 * side * ROWS);
  WEFT_TAKE(s->plain, mem, side * ROWS);
  WEFT_TAKE(s->four, mem, 4 * side * side);
  WEFT_TAKE(s->others, mem, side * side * (s->k + s->outcomes));
  WEFT_TAKE0(s->squares, mem, s->outcomes);
  for (size_t e = 0; e < s->outcomes; e++)
    for (size_t i = 0; i < variants->n; i++) {
      const double residual = s->job->outcome[i + e * variants->n];
      s->squares[e] += residual * residual;
    }
  WEFT_TAKE0(s->spaces, mem, (size_t) s->team);
  for (int t = 0; t < s->team; t++) WEFT_TRY(take_workspace(s, mem, &s->spaces[t]));
done:
  return st;
}

/* ---- blocks ---- */

/* Sums that a missing row adds: of U with U and e, and of squares of e. Signs differ by what they are for. */
static void add_row(const scan *s, size_t row, double *lost)
{
  const double *u = s->by_row + row * s->width + 1, *e = u + s->k;
  for (size_t i = 0; i < s->k; i++)
    for (size_t j = 0; j <= i; j++) *lost++ += u[i] * u[j];
  for (size_t j = 0; j < s->k; j++)
    for (size_t l = 0; l < s->outcomes; l++) *lost++ += u[j] * e[l];
  for (size_t l = 0; l < s->outcomes; l++) *lost++ += e[l] * e[l];
}

static double dot(const double *x, const double *y, size_t count)
{
  double sum[4] = { 0 };
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t l = 0; l < 4; l++) sum[l] += x[i + l] * y[i + l];
  for (; i < count; i++) sum[0] += x[i] * y[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The mean, the missing rows and the sums of one variant of a block. */
static void load_variant(const scan *s, block *part, size_t at)
{
  const weft_variants *variants = &s->job->variants;
  const size_t n = variants->n, j = part->first + at;
  const double *count = s->counts + j * WEFT_VARIANT_CODES;
  const double known = count[0] + count[1] + count[2], mean = known > 0 ? (count[1] + 2 * count[2]) / known : 0;
  double *value = part->value + at * CODES, *own = part->own + at * s->width, *lost = part->lost + at * s->lost_width;
  uint32_t *absent = part->absent + part->start[at];
  double x[ROWS];
  uint8_t codes[ROWS];
  for (int code = 0; code < CODES; code++) value[code] = code == WEFT_GENOTYPE_MISSING ? 0 : code - mean;
  memset(own, 0, s->width * sizeof *own);
  memset(lost, 0, s->lost_width * sizeof *lost);
  for (size_t first = 0; first < n; first += ROWS) {
    const size_t rows = n - first < ROWS ? n - first : ROWS;
    weft_variant_read(variants, j, first, rows, codes);
    for (size_t i = 0; i < rows; i++) {
      x[i] = s->job->root[first + i] * value[codes[i]];
      if (codes[i] != WEFT_GENOTYPE_MISSING) continue;
      *absent++ = (uint32_t) (first + i);
      add_row(s, first + i, lost);
    }
    own[0] += dot(x, x, rows);
    for (size_t l = 0; l < s->k; l++) own[1 + l] += dot(x, s->job->basis + first + l * n, rows);
    for (size_t l = 0; l < s->outcomes; l++) own[1 + s->k + l] += dot(x, s->job->outcome + first + l * n, rows);
  }
}

static weft_status load_block(weft_ctx *ctx, const scan *s, size_t first, block *part)
{
  const weft_variants *variants = &s->job->variants;
  const weft_status st = weft_poll(ctx, 0, 0);
  part->first = first;
  part->count = variants->p - first < SIDE ? variants->p - first : SIDE;
  part->start[0] = 0;
  for (size_t i = 0; i < part->count; i++) part->start[i + 1] = part->start[i] + (size_t) missing_of(s, first + i);
  const double cost = (double) part->count * (double) variants->n * (double) (2 + s->width);
  WEFT_PARALLEL_FOR(weft_threads_worth(s->team, cost), static)
  for (int64_t i = 0; i < (int64_t) part->count; i++) load_variant(s, part, (size_t) i);
  return st;
}

/* ---- sums of a tile ---- */

/* Values of some rows of a block, times their roots, and these times the values; `plain`, unless NULL: values alone. */
static void expand(const scan *s, const block *part, size_t first, size_t rows, double *out, double *plain)
{
  const weft_variants *variants = &s->job->variants;
  WEFT_PARALLEL_FOR(weft_threads_worth(s->team, 4.0 * (double) (part->count * rows)), static)
  for (int64_t at = 0; at < (int64_t) part->count; at++) {
    uint8_t codes[ROWS];
    double *one = out + (size_t) at * ROWS, *two = one + part->count * ROWS;
    const double *value = part->value + at * CODES;
    weft_variant_read(variants, part->first + (size_t) at, first, rows, codes);
    for (size_t i = 0; i < rows; i++) {
      const double x = value[codes[i]];
      one[i] = s->job->root[first + i] * x;
      two[i] = one[i] * x;
      if (plain) plain[(size_t) at * ROWS + i] = x;
    }
  }
}

/* All sums over rows that have both variants of a pair, for the pairs of two blocks. */
static weft_status sum_tile(weft_ctx *ctx, const scan *s, double done, double total)
{
  weft_status st = WEFT_OK;
  const size_t n = s->job->variants.n, rows_of = s->one.count, columns_of = s->other.count, area = rows_of * columns_of;
  memset(s->four, 0, 4 * area * sizeof *s->four);
  memset(s->others, 0, area * (s->k + s->outcomes) * sizeof *s->others);
  for (size_t first = 0; first < n; first += ROWS) {
    const size_t rows = n - first < ROWS ? n - first : ROWS;
    WEFT_TRY(weft_poll(ctx, done, total));
    expand(s, &s->one, first, rows, s->left, NULL);
    expand(s, &s->other, first, rows, s->right, s->plain);
    const weft_view left = weft_view_plain(s->left, ROWS, 1), right = weft_view_plain(s->right, ROWS, 0);
    WEFT_TRY(weft_product(ctx, 2 * rows_of, 2 * columns_of, rows, 1, &left, &right, 1, s->four, 2 * rows_of, 0));
    for (size_t l = 0; l < s->k + s->outcomes; l++) {
      weft_view scaled = weft_view_plain(s->plain, ROWS, 0);
      scaled.row = (l < s->k ? s->job->basis + l * n : s->job->outcome + (l - s->k) * n) + first;
      WEFT_TRY(weft_product(ctx, rows_of, columns_of, rows, 1, &left, &scaled, 1, s->others + l * area, rows_of, 0));
    }
  }
done:
  return st;
}

/* ---- scores ---- */

/* Cholesky decomposition of `size` sums of products in place (lower triangle), the sums with e divided by it; columns
 * that follow from those before them become 0. Returns how many are left before the last one. */
static size_t decompose(workspace *w, size_t size, size_t outcomes)
{
  size_t rank = 0;
  double *gram = w->gram;
  for (size_t j = 0; j < size; j++) {
    double left = gram[j + j * size];
    for (size_t l = 0; l < j; l++) left -= gram[j + l * size] * gram[j + l * size];
    const int there = left > NEGLIGIBLE * w->scale[j];
    const double factor = there ? 1 / sqrt(left) : 0;
    gram[j + j * size] = there ? sqrt(left) : 0;
    for (size_t i = j + 1; i < size; i++) {
      double value = gram[i + j * size];
      for (size_t l = 0; l < j; l++) value -= gram[i + l * size] * gram[j + l * size];
      gram[i + j * size] = value * factor;
    }
    for (size_t e = 0; e < outcomes; e++) {
      double value = w->sums[j + e * size];
      for (size_t l = 0; l < j; l++) value -= gram[j + l * size] * w->sums[l + e * size];
      w->sums[j + e * size] = value * factor;
    }
    if (j + 1 < size) rank += (size_t) there;
  }
  return rank;
}

/* The sums of a pair without missing genotypes: U is orthonormal, so that what it explains is taken off at once. */
static void whole_pair(const scan *s, workspace *w, size_t i, size_t j)
{
  const double *one = s->one.own + i * s->width, *other = s->other.own + j * s->width;
  const size_t area = s->one.count * s->other.count, at = i + j * s->one.count;
  const double *shared = s->others + at;
  double *gram = w->gram;
  for (size_t l = 0; l < s->k; l++) {
    const double a = one[1 + l], b = other[1 + l], product = shared[l * area];
    gram[0] -= a * a;
    gram[1] -= a * b;
    gram[2] -= a * product;
    gram[4] -= b * b;
    gram[5] -= b * product;
    gram[8] -= product * product;
  }
  for (size_t e = 0; e < s->outcomes; e++) {
    w->sums[3 * e] = one[1 + s->k + e];
    w->sums[1 + 3 * e] = other[1 + s->k + e];
    w->sums[2 + 3 * e] = shared[(s->k + e) * area];
    w->squares[e] = s->squares[e];
  }
}

/* Takes off what rows in which the other genotype is missing have in the sums of one (column `k + place`), and puts
 * back in U'U and the like the rows where both are missing, which were taken off twice. Returns how many these are. */
static size_t without_rows(const scan *s, workspace *w, const block *one, size_t i, const block *other, size_t j,
                           size_t place, double *both)
{
  const weft_variants *variants = &s->job->variants;
  const size_t size = s->k + 3, column = s->k + place;
  const double *value = one->value + i * CODES;
  size_t shared = 0;
  for (size_t l = other->start[j]; l < other->start[j + 1]; l++) {
    const size_t row = other->absent[l];
    const int code = weft_variant_at(variants->columns + one->first + i, variants->rows[row]);
    if (code == WEFT_GENOTYPE_MISSING) {
      if (both) add_row(s, row, both);
      shared++;
      continue;
    }
    const double *root = s->by_row + row * s->width, *u = root + 1, *e = u + s->k, x = *root * value[code];
    w->gram[column + column * size] -= x * x;
    for (size_t m = 0; m < s->k; m++) w->gram[column + m * size] -= x * u[m];
    for (size_t m = 0; m < s->outcomes; m++) w->sums[column + m * size] -= x * e[m];
  }
  return shared;
}

/* The sums of a pair over the rows where both genotypes are known. Returns how many these are. */
static size_t incomplete_pair(const scan *s, workspace *w, size_t i, size_t j)
{
  const block *one = &s->one, *other = &s->other;
  const size_t k = s->k, size = k + 3, area = one->count * other->count;
  const double *own[2] = { one->own + i * s->width, other->own + j * s->width };
  const double *lost[2] = { one->lost + i * s->lost_width, other->lost + j * s->lost_width };
  const double *shared = s->others + i + j * one->count;
  double *both = w->both;
  memset(both, 0, s->lost_width * sizeof *both);
  for (size_t l = 0; l < k; l++) {
    w->gram[k + l * size] = own[0][1 + l];
    w->gram[k + 1 + l * size] = own[1][1 + l];
    w->gram[k + 2 + l * size] = shared[l * area];
  }
  for (size_t e = 0; e < s->outcomes; e++) {
    w->sums[k + e * size] = own[0][1 + k + e];
    w->sums[k + 1 + e * size] = own[1][1 + k + e];
    w->sums[k + 2 + e * size] = shared[(k + e) * area];
  }
  const size_t twice = without_rows(s, w, one, i, other, j, 0, both);
  without_rows(s, w, other, j, one, i, 1, NULL);
  for (size_t l = 0, at = 0; l < k; l++)
    for (size_t m = 0; m <= l; m++, at++)
      w->gram[l + m * size] = (double) (l == m) - lost[0][at] - lost[1][at] + both[at];
  const size_t triangle = k * (k + 1) / 2;
  for (size_t e = 0; e < s->outcomes; e++) {
    for (size_t l = 0; l < k; l++) {
      const size_t at = triangle + l * s->outcomes + e;
      w->sums[l + e * size] = both[at] - lost[0][at] - lost[1][at];
    }
    const size_t at = triangle + k * s->outcomes + e;
    w->squares[e] = s->squares[e] - lost[0][at] - lost[1][at] + both[at];
  }
  return s->job->variants.n + twice - (one->start[i + 1] - one->start[i]) - (other->start[j + 1] - other->start[j]);
}

/* Scores one pair for every outcome. i, j: places in the two blocks. */
static void score_pair(const scan *s, workspace *w, size_t i, size_t j)
{
  const block *one = &s->one, *other = &s->other;
  const int whole = one->start[i] == one->start[i + 1] && other->start[j] == other->start[j + 1];
  const size_t k = whole ? 0 : s->k, size = k + 3, high = 2 * one->count;
  const double *four = s->four;
  const double ab = four[i + j * high], aab = four[one->count + i + j * high],
               abb = four[i + (other->count + j) * high], aabb = four[one->count + i + (other->count + j) * high];
  size_t rows = s->job->variants.n;
  double *a = w->gram + k + k * size, *b = a + size, *product = b + size; /* from the row of a on */
  a[0] = one->own[i * s->width];
  a[1] = ab;
  a[2] = aab;
  b[1] = other->own[j * s->width];
  b[2] = abb;
  product[2] = aabb;
  if (!whole) rows = incomplete_pair(s, w, i, j);
  for (size_t l = 0; l < size; l++) w->scale[l] = w->gram[l + l * size];
  if (whole) whole_pair(s, w, i, j);
  for (size_t l = 0; l < k; l++) w->scale[l] = 1;
  const size_t rank = decompose(w, size, s->outcomes) + (whole ? s->k : 0);
  if (w->gram[size * size - 1] == 0 || rows < rank + 2) return;
  for (size_t e = 0; e < s->outcomes; e++) {
    const double *sums = w->sums + e * size, effect = sums[size - 1];
    double variance = 1;
    if (s->job->estimated) {
      variance = w->squares[e];
      for (size_t l = 0; l + 1 < size; l++) variance -= sums[l] * sums[l];
      if (!(variance > NEGLIGIBLE * s->squares[e])) continue;
      variance /= (double) (rows - rank);
    }
    const double score = effect * effect / variance;
    if (score > w->greatest[e]) w->greatest[e] = score;
    if (e) continue;
    w->tested++;
    if (score >= s->job->min_score)
      weft_topk_push(&w->best, score, (uint64_t) (one->first + i) * s->job->variants.p + other->first + j);
  }
}

static int is_searched(const weft_scan_job *job, size_t i, size_t j)
{
  if (job->side && !((job->side[i] & 1 && job->side[j] & 2) || (job->side[i] & 2 && job->side[j] & 1))) return 0;
  return !weft_mi_is_near(&job->near, i, j);
}

/* Whether a tile has a pair that is searched. */
static int has_pairs(const scan *s)
{
  const block *one = &s->one, *other = &s->other;
  for (size_t i = one->first; i < one->first + one->count; i++)
    for (size_t j = other->first; j < other->first + other->count; j++)
      if (i < j && is_searched(s->job, i, j)) return 1;
  return 0;
}

static void score_tile(const scan *s)
{
  const block *one = &s->one, *other = &s->other;
  const double missing = (double) (one->start[one->count] + other->start[other->count]) / (double) one->count;
  const double cost = (double) (one->count * other->count) * (double) (s->k + s->outcomes) * (20 + missing);
  WEFT_PARALLEL_FOR(weft_threads_worth(s->team, cost), static)
  for (int64_t i = 0; i < (int64_t) one->count; i++)
    for (size_t j = 0; j < other->count; j++)
      if (one->first + (size_t) i < other->first + j && is_searched(s->job, one->first + (size_t) i, other->first + j))
        score_pair(s, &s->spaces[WEFT_THREAD()], (size_t) i, j);
}

/* Goes through the tiles of pairs, and joins what the threads have found. */
weft_status weft_mi_scan(weft_ctx *ctx, const weft_scan_job *job, weft_arena *mem, weft_scan_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  scan s = { .job = job, .k = job->k, .outcomes = job->outcomes, .team = ctx->threads };
  const size_t p = job->variants.p, blocks = (p + SIDE - 1) / SIDE;
  const double total = (double) blocks * (double) (blocks + 1) / 2;
  double done = 0;
  s.width = 1 + s.k + s.outcomes;
  s.lost_width = s.k * (s.k + 1) / 2 + s.k * s.outcomes + s.outcomes;
  WEFT_TRY(prepare(ctx, &own, &s));
  for (size_t i = 0; i < blocks; i++) {
    WEFT_TRY(load_block(ctx, &s, i * SIDE, &s.one));
    for (size_t j = i; j < blocks; j++, done++) {
      s.other.first = j * SIDE;
      s.other.count = p - j * SIDE < SIDE ? p - j * SIDE : SIDE;
      if (!has_pairs(&s)) continue;
      WEFT_TRY(load_block(ctx, &s, j * SIDE, &s.other));
      WEFT_TRY(sum_tile(ctx, &s, done, total));
      score_tile(&s);
    }
  }
  out->tested = 0;
  for (size_t e = 0; e < s.outcomes; e++) out->greatest[e] = -INFINITY;
  for (int t = 0; t < s.team; t++) {
    workspace *w = &s.spaces[t];
    out->tested += w->tested;
    for (size_t e = 0; e < s.outcomes; e++)
      if (w->greatest[e] > out->greatest[e]) out->greatest[e] = w->greatest[e];
    if (t) weft_topk_merge(&s.spaces[0].best, &w->best);
  }
  out->found.count = weft_topk_sort(&s.spaces[0].best);
  WEFT_TAKE(out->found.items, mem, out->found.count + 1);
  if (out->found.count) memcpy(out->found.items, s.spaces[0].best.items, out->found.count * sizeof *out->found.items);
done:
  weft_arena_end(&own);
  return st;
}
