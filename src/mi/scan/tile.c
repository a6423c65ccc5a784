/* A score of the interaction of a pair of variants, given covariates and both variants' own effects.
 *
 * With rows scaled by the roots of their weights, the model of a pair has the columns U (an orthonormal basis of the
 * covariates), a, b (genotypes less their means) and z = a b, and the outcome e. After a Cholesky decomposition of
 * their sums of products over the rows in which both genotypes are known, the score is
 *   (z'e)^2 / (z'z variance)    of what U, a and b leave of z and of e.
 * All sums that have both a and b come from products of matrices, for a tile of pairs: a'b, (a^2)'b, a'(b^2),
 * (a^2)'(b^2), and a'(u b) and a'(e b) for every column u and e. A missing genotype is 0 in them, so that they are
 * right for its rows, too. Sums without a or without b are made once for each variant over all rows, and for each pair
 * the rows where the other genotype is missing are taken off.
 *
 * With job->genotypes, a and b have two columns each, whether the genotype is 1 and whether it is 2, and z their four
 * products. These are 0 or 1, so that all sums without U and e follow from those of the four products; the score adds
 * what each column of z says beyond those before it. */
#include <string.h>
#include "core/call/parallel.h"
#include "core/numbers/product.h"
#include "mi/scan/tile.h"

enum { ROWS = 2048, CODES = 4, COLUMNS = 2 }; /* rows expanded at once, codes with a value, most columns of a variant */
#define NEGLIGIBLE 1e-10                      /* of a column's squares: what is left of one that follows from others */

/* ---- memory ---- */

static weft_status take_block(const weft_scan *scan, weft_arena *mem, size_t side, size_t max_missing,
                              weft_scan_block *out)
{
  weft_status st = WEFT_OK;
  WEFT_TAKE(out->value, mem, side * CODES * scan->columns);
  WEFT_TAKE(out->start, mem, side + 1);
  WEFT_TAKE(out->absent, mem, max_missing + 1);
  WEFT_TAKE(out->own, mem, side * scan->width * scan->columns);
  WEFT_TAKE(out->lost, mem, side * scan->lost_width);
done:
  return st;
}

weft_status weft_scan_take_workspace(const weft_scan *scan, weft_arena *mem, weft_scan_workspace *out)
{
  weft_status st = WEFT_OK;
  const size_t size = scan->k + 2 * scan->columns + scan->columns * scan->columns;
  WEFT_TAKE(out->gram, mem, size * size);
  WEFT_TAKE(out->sums, mem, size * scan->outcomes);
  WEFT_TAKE(out->squares, mem, scan->outcomes);
  WEFT_TAKE(out->scale, mem, size);
  WEFT_TAKE(out->both, mem, scan->lost_width);
  WEFT_TAKE(out->score, mem, scan->outcomes);
done:
  return st;
}

/* The missing rows of the block that has most of them decide how many are kept. */
weft_status weft_scan_take_tile(weft_arena *mem, size_t side, weft_scan *scan)
{
  weft_status st = WEFT_OK;
  const size_t p = scan->job->variants.p;
  double most = 0;
  for (size_t first = 0; first < p; first += side) {
    double here = 0;
    for (size_t j = first; j < p && j < first + side; j++) here += weft_scan_missing(scan, j);
    if (here > most) most = here;
  }
  WEFT_TRY(take_block(scan, mem, side, (size_t) most, &scan->one));
  WEFT_TRY(take_block(scan, mem, side, (size_t) most, &scan->other));
  WEFT_TAKE(scan->left, mem, COLUMNS * side * ROWS);
  WEFT_TAKE(scan->right, mem, COLUMNS * side * ROWS);
  WEFT_TAKE(scan->plain, mem, scan->columns * side * ROWS);
  WEFT_TAKE(scan->four, mem, 4 * side * side);
  WEFT_TAKE(scan->others, mem, scan->columns * scan->columns * side * side * (scan->k + scan->outcomes));
done:
  return st;
}

/* Root, U and e of each row next to each other. */
static void turn_rows(const weft_scan *scan)
{
  const weft_scan_job *job = scan->job;
  const size_t n = job->variants.n;
  for (size_t i = 0; i < n; i++) {
    double *row = scan->by_row + i * scan->width;
    row[0] = job->root[i];
    for (size_t j = 0; j < scan->k; j++) row[1 + j] = job->basis[i + j * n];
    for (size_t e = 0; e < scan->outcomes; e++) row[1 + scan->k + e] = job->outcome[i + e * n];
  }
}

/* Rows are turned only where genotypes are missing; then single rows are taken off. */
weft_status weft_scan_prepare(weft_ctx *ctx, weft_arena *mem, weft_scan *scan)
{
  weft_status st = WEFT_OK;
  const weft_variants *variants = &scan->job->variants;
  double missing = 0;
  WEFT_TAKE(scan->counts, mem, variants->p * WEFT_VARIANT_CODES);
  WEFT_TRY(weft_variant_counts(ctx, variants, scan->counts));
  for (size_t j = 0; j < variants->p; j++) missing += weft_scan_missing(scan, j);
  if (missing > 0) {
    WEFT_TAKE(scan->by_row, mem, variants->n * scan->width);
    turn_rows(scan);
  }
  WEFT_TAKE0(scan->squares, mem, scan->outcomes);
  for (size_t e = 0; e < scan->outcomes; e++)
    for (size_t i = 0; i < variants->n; i++) {
      const double residual = scan->job->outcome[i + e * variants->n];
      scan->squares[e] += residual * residual;
    }
done:
  return st;
}

/* ---- blocks ---- */

/* Sums that a missing row adds: of U with U and e, and of squares of e. Signs differ by what they are for. */
static void add_row(const weft_scan *scan, size_t row, double *lost)
{
  const double *u = scan->by_row + row * scan->width + 1, *e = u + scan->k;
  for (size_t i = 0; i < scan->k; i++)
    for (size_t j = 0; j <= i; j++) *lost++ += u[i] * u[j];
  for (size_t j = 0; j < scan->k; j++)
    for (size_t l = 0; l < scan->outcomes; l++) *lost++ += u[j] * e[l];
  for (size_t l = 0; l < scan->outcomes; l++) *lost++ += e[l] * e[l];
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

/* The value of each code in each column of a variant: copies less their mean, or whether there are 1, and 2. */
static void set_values(const weft_scan *scan, size_t j, double *value)
{
  const double *count = scan->counts + j * WEFT_VARIANT_CODES;
  const double known = count[0] + count[1] + count[2], mean = known > 0 ? (count[1] + 2 * count[2]) / known : 0;
  for (int code = 0; code < CODES; code++) {
    if (scan->columns == 1)
      value[code] = code == WEFT_GENOTYPE_MISSING ? 0 : code - mean;
    else
      for (int column = 0; column < COLUMNS; column++) value[column * CODES + code] = code == column + 1;
  }
}

/* The values, the missing rows and the sums of one variant of a block. */
static void load_variant(const weft_scan *scan, weft_scan_block *part, size_t at)
{
  const weft_variants *variants = &scan->job->variants;
  const size_t n = variants->n, j = part->first + at;
  double *value = part->value + at * CODES * scan->columns, *own = part->own + at * scan->width * scan->columns,
         *lost = part->lost + at * scan->lost_width;
  uint32_t *absent = part->absent + part->start[at];
  double x[ROWS];
  uint8_t codes[ROWS];
  set_values(scan, j, value);
  memset(own, 0, scan->width * scan->columns * sizeof *own);
  memset(lost, 0, scan->lost_width * sizeof *lost);
  for (size_t first = 0; first < n; first += ROWS) {
    const size_t rows = n - first < ROWS ? n - first : ROWS;
    weft_variant_read(variants, j, first, rows, codes);
    for (size_t i = 0; i < rows; i++)
      if (codes[i] == WEFT_GENOTYPE_MISSING) {
        *absent++ = (uint32_t) (first + i);
        add_row(scan, first + i, lost);
      }
    for (size_t column = 0; column < scan->columns; column++) {
      double *of = own + column * scan->width;
      for (size_t i = 0; i < rows; i++) x[i] = scan->job->root[first + i] * value[column * CODES + codes[i]];
      of[0] += dot(x, x, rows);
      for (size_t l = 0; l < scan->k; l++) of[1 + l] += dot(x, scan->job->basis + first + l * n, rows);
      for (size_t l = 0; l < scan->outcomes; l++)
        of[1 + scan->k + l] += dot(x, scan->job->outcome + first + l * n, rows);
    }
  }
}

void weft_scan_load(const weft_scan *scan, size_t first, size_t count, weft_scan_block *part)
{
  part->first = first;
  part->count = count;
  part->start[0] = 0;
  for (size_t i = 0; i < count; i++) part->start[i + 1] = part->start[i] + (size_t) weft_scan_missing(scan, first + i);
  const double cost = (double) count * (double) scan->job->variants.n * (double) (2 + scan->width * scan->columns);
  WEFT_PARALLEL_FOR(weft_threads_worth(scan->team, cost), static)
  for (int64_t i = 0; i < (int64_t) count; i++) load_variant(scan, part, (size_t) i);
}

/* ---- sums of a tile ---- */

/* Some rows of a block: two columns for each variant, times their roots, all first ones before all second ones (with
 * one column, the second is what the first and the value make); `plain`, unless NULL: the columns without roots. */
static void expand(const weft_scan *scan, const weft_scan_block *part, size_t first, size_t rows, double *out,
                   double *plain)
{
  const weft_variants *variants = &scan->job->variants;
  const size_t second = part->count * ROWS;
  WEFT_PARALLEL_FOR(weft_threads_worth(scan->team, 4.0 * (double) (part->count * rows)), static)
  for (int64_t at = 0; at < (int64_t) part->count; at++) {
    uint8_t codes[ROWS];
    double *one = out + (size_t) at * ROWS, *two = one + second, *bare = plain ? plain + (size_t) at * ROWS : NULL;
    const double *value = part->value + (size_t) at * CODES * scan->columns;
    weft_variant_read(variants, part->first + (size_t) at, first, rows, codes);
    for (size_t i = 0; i < rows; i++) {
      const double root = scan->job->root[first + i], x = value[codes[i]];
      one[i] = root * x;
      if (bare) bare[i] = x;
      if (scan->columns == 1) {
        two[i] = one[i] * x;
        continue;
      }
      const double y = value[CODES + codes[i]];
      two[i] = root * y;
      if (bare) bare[second + i] = y;
    }
  }
}

/* Column l of U and e, from a row on. */
static const double *weighted_column(const weft_scan *scan, size_t l, size_t first)
{
  const size_t n = scan->job->variants.n;
  return (l < scan->k ? scan->job->basis + l * n : scan->job->outcome + (l - scan->k) * n) + first;
}

/* All sums over rows that have both variants of a pair, for the pairs of two blocks. */
weft_status weft_scan_sum_tile(weft_ctx *ctx, const weft_scan *scan, double done, double total)
{
  weft_status st = WEFT_OK;
  const size_t n = scan->job->variants.n, rows_of = scan->one.count, columns_of = scan->other.count;
  const size_t high = scan->columns * rows_of, wide = scan->columns * columns_of;
  memset(scan->four, 0, 4 * rows_of * columns_of * sizeof *scan->four);
  memset(scan->others, 0, high * wide * (scan->k + scan->outcomes) * sizeof *scan->others);
  for (size_t first = 0; first < n; first += ROWS) {
    const size_t rows = n - first < ROWS ? n - first : ROWS;
    WEFT_TRY(weft_poll(ctx, done, total));
    expand(scan, &scan->one, first, rows, scan->left, NULL);
    expand(scan, &scan->other, first, rows, scan->right, scan->plain);
    const weft_view left = weft_view_plain(scan->left, ROWS, 1), right = weft_view_plain(scan->right, ROWS, 0);
    WEFT_TRY(weft_product(ctx, 2 * rows_of, 2 * columns_of, rows, 1, &left, &right, 1, scan->four, 2 * rows_of, 0));
    for (size_t l = 0; l < scan->k + scan->outcomes; l++) {
      weft_view scaled = weft_view_plain(scan->plain, ROWS, 0);
      scaled.row = weighted_column(scan, l, first);
      WEFT_TRY(weft_product(ctx, high, wide, rows, 1, &left, &scaled, 1, scan->others + l * high * wide, high, 0));
    }
  }
done:
  return st;
}

/* The sums of a tile of one pair, each by four running sums over its rows. */
void weft_scan_sum_pair(const weft_scan *scan)
{
  const size_t n = scan->job->variants.n, columns = scan->columns, terms = columns * columns;
  double product[ROWS];
  memset(scan->four, 0, 4 * sizeof *scan->four);
  memset(scan->others, 0, terms * (scan->k + scan->outcomes) * sizeof *scan->others);
  for (size_t first = 0; first < n; first += ROWS) {
    const size_t rows = n - first < ROWS ? n - first : ROWS;
    expand(scan, &scan->one, first, rows, scan->left, NULL);
    expand(scan, &scan->other, first, rows, scan->right, scan->plain);
    for (size_t at = 0; at < 4; at++)
      scan->four[at] += dot(scan->left + at % 2 * ROWS, scan->right + at / 2 * ROWS, rows);
    for (size_t at = 0; at < terms; at++) {
      const double *a = scan->left + at % columns * ROWS, *b = scan->plain + at / columns * ROWS;
      for (size_t i = 0; i < rows; i++) product[i] = a[i] * b[i];
      for (size_t l = 0; l < scan->k + scan->outcomes; l++)
        scan->others[l * terms + at] += dot(product, weighted_column(scan, l, first), rows);
    }
  }
}

/* ---- scores ---- */

/* Cholesky decomposition of `size` sums of products in place (lower triangle), the sums with e divided by it; columns
 * that follow from those before them become 0. Returns how many are left of the first `main`, and in *freedom of the
 * others. */
static size_t decompose(weft_scan_workspace *w, size_t size, size_t main, size_t outcomes, size_t *freedom)
{
  size_t rank = 0;
  double *gram = w->gram;
  *freedom = 0;
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
    *(j < main ? &rank : freedom) += (size_t) there;
  }
  return rank;
}

/* Where the sums of one pair stand. */
typedef struct pair_sums {
  size_t k, size;        /* columns of U in the decomposition, all columns */
  size_t columns, terms; /* of a variant, of the interaction */
  const double *own[2];  /* of both variants */
  const double *shared;  /* others, of the first term and column of U */
  size_t rows_apart, columns_apart, area;
  const double *four;
  size_t four_rows, four_columns; /* how far apart the sums of `four` are */
} pair_sums;

/* k: columns of U in the decomposition, 0 where they have been taken off. */
static pair_sums find_sums(const weft_scan *scan, size_t i, size_t j, size_t k)
{
  const size_t columns = scan->columns, rows_of = scan->one.count, columns_of = scan->other.count;
  const pair_sums at = { .k = k,
                         .size = k + 2 * columns + columns * columns,
                         .columns = columns,
                         .terms = columns * columns,
                         .own = { scan->one.own + i * scan->width * columns,
                                  scan->other.own + j * scan->width * columns },
                         .shared = scan->others + i + j * columns * rows_of,
                         .rows_apart = rows_of,
                         .columns_apart = columns_of * columns * rows_of,
                         .area = columns * columns * rows_of * columns_of,
                         .four = scan->four + i + j * 2 * rows_of,
                         .four_rows = rows_of,
                         .four_columns = columns_of * 2 * rows_of };
  return at;
}

/* The sum of a b with column l of U and e. term: a's column + columns × b's. */
static double shared_sum(const pair_sums *at, size_t term, size_t l)
{
  return at->shared[l * at->area + term % at->columns * at->rows_apart + term / at->columns * at->columns_apart];
}

static double four_sum(const pair_sums *at, size_t a, size_t b)
{
  return at->four[a * at->four_rows + b * at->four_columns];
}

/* Sums of products of a, b and z, in the lower triangle from row and column k on. */
static void fill_gram(const weft_scan *scan, const pair_sums *at, double *gram)
{
  const size_t size = at->size, columns = at->columns, k = at->k, z = k + 2 * columns;
  double *corner = gram + k + k * size;
  if (columns == 1) {
    corner[0] = at->own[0][0];
    corner[1] = four_sum(at, 0, 0);
    corner[2] = four_sum(at, 1, 0);
    corner[1 + size] = at->own[1][0];
    corner[2 + size] = four_sum(at, 0, 1);
    corner[2 + 2 * size] = four_sum(at, 1, 1);
    return;
  }
  for (size_t j = k; j < size; j++) memset(gram + j + j * size, 0, (size - j) * sizeof *gram);
  for (size_t a = 0; a < columns; a++)
    for (size_t variant = 0; variant < 2; variant++)
      corner[(variant * columns + a) * (size + 1)] = at->own[variant][a * scan->width];
  for (size_t term = 0; term < at->terms; term++) {
    const size_t a = term % columns, b = term / columns;
    const double sum = four_sum(at, a, b);
    gram[k + columns + b + (k + a) * size] = sum;
    gram[z + term + (k + a) * size] = sum;
    gram[z + term + (k + columns + b) * size] = sum;
    gram[(z + term) * (size + 1)] = sum;
  }
}

/* Sums of a, b and z with column l of U and e. */
static void sums_with(const weft_scan *scan, const pair_sums *at, size_t l, double *out)
{
  for (size_t variant = 0; variant < 2; variant++)
    for (size_t a = 0; a < at->columns; a++) *out++ = at->own[variant][a * scan->width + 1 + l];
  for (size_t term = 0; term < at->terms; term++) *out++ = shared_sum(at, term, l);
}

/* The sums of a pair without missing genotypes: U is orthonormal, so that what it explains is taken off at once. */
static void whole_pair(const weft_scan *scan, weft_scan_workspace *w, const pair_sums *at)
{
  double with[2 * COLUMNS + COLUMNS * COLUMNS];
  for (size_t l = 0; l < scan->k; l++) {
    sums_with(scan, at, l, with);
    for (size_t j = 0; j < at->size; j++)
      for (size_t i = j; i < at->size; i++) w->gram[i + j * at->size] -= with[i] * with[j];
  }
  for (size_t e = 0; e < scan->outcomes; e++) {
    sums_with(scan, at, scan->k + e, w->sums + e * at->size);
    w->squares[e] = scan->squares[e];
  }
}

/* Takes off what rows in which the other genotype is missing have in the sums of one (its columns begin at `place`),
 * and puts back in U'U and the like the rows where both are missing, which were taken off twice. Returns how many these
 * are. */
static size_t without_rows(const weft_scan *scan, weft_scan_workspace *w, const weft_scan_block *one, size_t i,
                           const weft_scan_block *other, size_t j, size_t place, double *both)
{
  const weft_variants *variants = &scan->job->variants;
  const size_t size = scan->k + 2 * scan->columns + scan->columns * scan->columns;
  const double *value = one->value + i * CODES * scan->columns;
  size_t shared = 0;
  for (size_t l = other->start[j]; l < other->start[j + 1]; l++) {
    const size_t row = other->absent[l];
    const int code = weft_variant_at(variants->columns + one->first + i, variants->rows[row]);
    if (code == WEFT_GENOTYPE_MISSING) {
      if (both) add_row(scan, row, both);
      shared++;
      continue;
    }
    const double *root = scan->by_row + row * scan->width, *u = root + 1, *e = u + scan->k;
    for (size_t c = 0; c < scan->columns; c++) {
      const double x = *root * value[c * CODES + (size_t) code];
      const size_t column = place + c;
      if (x == 0) continue;
      w->gram[column + column * size] -= x * x;
      for (size_t m = 0; m < scan->k; m++) w->gram[column + m * size] -= x * u[m];
      for (size_t m = 0; m < scan->outcomes; m++) w->sums[column + m * size] -= x * e[m];
    }
  }
  return shared;
}

/* The sums of a pair over the rows where both genotypes are known. Returns how many these are. */
static size_t incomplete_pair(const weft_scan *scan, weft_scan_workspace *w, const pair_sums *at, size_t i, size_t j)
{
  const weft_scan_block *one = &scan->one, *other = &scan->other;
  const size_t k = scan->k, size = at->size;
  const double *lost[2] = { one->lost + i * scan->lost_width, other->lost + j * scan->lost_width };
  double *both = w->both, with[2 * COLUMNS + COLUMNS * COLUMNS];
  memset(both, 0, scan->lost_width * sizeof *both);
  for (size_t l = 0; l < k; l++) {
    sums_with(scan, at, l, with);
    memcpy(w->gram + k + l * size, with, (size - k) * sizeof *with);
  }
  for (size_t e = 0; e < scan->outcomes; e++) sums_with(scan, at, k + e, w->sums + k + e * size);
  const size_t twice = without_rows(scan, w, one, i, other, j, k, both);
  without_rows(scan, w, other, j, one, i, k + scan->columns, NULL);
  for (size_t l = 0, place = 0; l < k; l++)
    for (size_t m = 0; m <= l; m++, place++)
      w->gram[l + m * size] = (double) (l == m) - lost[0][place] - lost[1][place] + both[place];
  const size_t triangle = k * (k + 1) / 2;
  for (size_t e = 0; e < scan->outcomes; e++) {
    for (size_t l = 0; l < k; l++) {
      const size_t place = triangle + l * scan->outcomes + e;
      w->sums[l + e * size] = both[place] - lost[0][place] - lost[1][place];
    }
    const size_t place = triangle + k * scan->outcomes + e;
    w->squares[e] = scan->squares[e] - lost[0][place] - lost[1][place] + both[place];
  }
  return scan->job->variants.n + twice - (one->start[i + 1] - one->start[i]) - (other->start[j + 1] - other->start[j]);
}

/* Fills in the sums of the pair, decomposes them, and adds up what each column of z says. */
int weft_scan_score(const weft_scan *scan, weft_scan_workspace *w, size_t i, size_t j)
{
  const int whole = scan->one.start[i] == scan->one.start[i + 1] && scan->other.start[j] == scan->other.start[j + 1];
  const size_t k = whole ? 0 : scan->k;
  const pair_sums at = find_sums(scan, i, j, k);
  const size_t size = at.size, main = size - at.terms;
  size_t rows = scan->job->variants.n, freedom;
  for (size_t e = 0; e < scan->outcomes; e++) w->score[e] = NAN;
  fill_gram(scan, &at, w->gram);
  if (!whole) rows = incomplete_pair(scan, w, &at, i, j);
  for (size_t l = 0; l < size; l++) w->scale[l] = w->gram[l + l * size];
  if (whole) whole_pair(scan, w, &at);
  for (size_t l = 0; l < k; l++) w->scale[l] = 1;
  const size_t rank = decompose(w, size, main, scan->outcomes, &freedom) + (whole ? scan->k : 0);
  if (freedom == 0 || rows < rank + freedom + 1) return 0;
  for (size_t e = 0; e < scan->outcomes; e++) {
    const double *sums = w->sums + e * size;
    double variance = 1;
    if (scan->job->estimated) {
      variance = w->squares[e];
      for (size_t l = 0; l < main; l++) variance -= sums[l] * sums[l];
      if (!(variance > NEGLIGIBLE * scan->squares[e])) continue;
      variance /= (double) (rows - rank);
    }
    w->score[e] = dot(sums + main, sums + main, at.terms) / variance;
  }
  return !isnan(w->score[0]);
}
