/* The entry point through which R's tests repeat on the host what counted_hopper.cu does with the counts of a pair,
 * in builds with WEFT_TESTS=yes: tables from products of planes and margins, and the screen, by the functions that the
 * kernel calls. */
#include <math.h>
#include <string.h>
#include "mi/r/pack.h"
#include "mi/pairs/both/counted.h"
#include "mi/search/both/pair_tiles.h"

SEXP C_weft_mi_products_test(SEXP pack, SEXP mi, SEXP interaction);

#define CELLS (WEFT_PRODUCTS_LEVELS * WEFT_PRODUCTS_LEVELS)

typedef struct {
  const weft_mi_pack *pack;
  const int64_t *alone;
  uint16_t *codes[2];
  const double *bar_mi, *bar_gain;
  double *wrong, *mi, *gain, *slack, *kept, *spared;
} search;

/* Common bits of two rows of planes in a class. */
static uint32_t product(const weft_mi_pack *p, size_t row_a, size_t row_b, uint32_t c)
{
  uint32_t sum = 0;
  for (size_t w = p->class_word[c]; w < p->class_word[c + 1]; w++)
    sum += (uint32_t) __builtin_popcountll(p->bits[row_a * p->words + w] & p->bits[row_b * p->words + w]);
  return sum;
}

static size_t plane_of(const weft_mi_pack *p, size_t place, uint32_t plane)
{
  return weft_mi_plane_row(&p->groups[p->group_of[place]], place, plane);
}

/* A class's cells as the kernel makes them. */
static void cells_of(const weft_mi_pack *p, const weft_products_shape shape, size_t a, size_t b, uint32_t c,
                     uint32_t *cell)
{
  const uint32_t pa = shape.la - !shape.missing_a, pb = shape.lb - !shape.missing_b;
  uint32_t of_a[WEFT_PRODUCTS_LEVELS] = { 0 }, of_b[WEFT_PRODUCTS_LEVELS] = { 0 };
  memset(cell, 0, CELLS * sizeof *cell);
  for (uint32_t x = 0; x < pa; x++)
    for (uint32_t y = 0; y < pb; y++) cell[x * shape.lb + y] = product(p, plane_of(p, a, x), plane_of(p, b, y), c);
  for (uint32_t x = 0; x < pa; x++) of_a[x] = p->margins[c * p->plane_rows + plane_of(p, a, x)];
  for (uint32_t y = 0; y < pb; y++) of_b[y] = p->margins[c * p->plane_rows + plane_of(p, b, y)];
  weft_products_cells(shape, of_a, of_b, p->class_rows[c], cell);
}

/* Cells of a class that are not what the codes say. */
static uint32_t wrong_cells(const search *job, uint32_t lb, uint32_t c, size_t first, const uint32_t *cell)
{
  uint32_t count[CELLS] = { 0 }, wrong = 0;
  for (size_t r = first; r < first + job->pack->class_rows[c]; r++)
    if (job->codes[0][r] != WEFT_MI_MISSING && job->codes[1][r] != WEFT_MI_MISSING)
      count[job->codes[0][r] * lb + job->codes[1][r]]++;
  for (uint32_t k = 0; k < CELLS; k++) wrong += count[k] != cell[k];
  return wrong;
}

/* Screens one pair as the device does, with its class counts checked against codes, and notes whether the screen keeps
 * it, and whether it would drop it behind a bar that is higher by its stated error. */
static void search_pair(search *job, size_t a, size_t b)
{
  const weft_mi_pack *p = job->pack;
  const weft_mi_shape of_a = p->groups[p->group_of[a]].shape, of_b = p->groups[p->group_of[b]].shape;
  const weft_products_shape shape = { of_a.levels, of_b.levels, of_a.missing, of_b.missing };
  const int each = of_a.missing || of_b.missing;
  const size_t x = p->column[a], y = p->column[b], at = x < y ? x * p->columns + y : y * p->columns + x;
  uint32_t level[CELLS] = { 0 }, cell[CELLS];
  weft_products_sums sums = { 0, 0, 0, 0 };
  size_t first = 0;
  weft_mi_pack_codes(p, a, job->codes[0]);
  weft_mi_pack_codes(p, b, job->codes[1]);
  for (uint32_t c = 0; c < p->classes; first += p->class_rows[c++]) {
    cells_of(p, shape, a, b, c, cell);
    job->wrong[at] += wrong_cells(job, shape.lb, c, first, cell);
    weft_products_class(shape, cell, each, level, &sums);
    if ((c + 1) % p->per == 0) weft_products_stratum(shape, each, level, &sums);
  }
  const float own = each ? 0 : (float) ((double) (job->alone[a] + job->alone[b]) * p->f.unit);
  const float error = (float) weft_products_error(shape.la * shape.lb, p->classes);
  const double n = sums.n, slack = n > 0 ? (double) error + (double) WEFT_PRODUCTS_LITTLE / n : 0;
  const double gone = each ? fmax(sums.one, 0) + fmax(sums.other, 0) : own;
  job->mi[at] = n > 0 ? fmax(sums.joint, 0) / n : 0;
  job->gain[at] = n > 0 ? (fmax(sums.joint, 0) - gone) / n : 0;
  job->slack[at] = slack;
  job->kept[at] = weft_products_passes(&sums, each, own, (float) job->bar_mi[at], (float) job->bar_gain[at], error);
  const float more_mi = (float) (job->bar_mi[at] + 2.1 * slack + 1e-6),
              more_gain = (float) (job->bar_gain[at] + 6.1 * slack + 1e-6);
  job->spared[at] = !weft_products_passes(&sums, each, own, more_mi, -INFINITY, error) &&
                    !weft_products_passes(&sums, each, own, 0, more_gain, error);
}

static double *zeros(SEXP list, const char *name, size_t columns)
{
  double *out = REAL(weft_result_put(list, name, Rf_allocMatrix(REALSXP, (int) columns, (int) columns)));
  memset(out, 0, columns * columns * sizeof *out);
  return out;
}

/* All pairs of attributes of two to five levels, in lower triangles (row: the later column): cells that are wrong, the
 * screen's information and interaction in bits, how far these may be off, whether a pair is kept when the bars `mi` and
 * `interaction` are its exact scores, and whether it is rejected with either a little higher. */
SEXP C_weft_mi_products_test(SEXP pointer, SEXP mi, SEXP interaction)
{
  const weft_mi_pack *p = &weft_mi_handle_of(pointer)->pack;
  int64_t *alone = (int64_t *) R_alloc(p->p + 1, sizeof *alone);
  SEXP out = PROTECT(WEFT_NAMED_LIST("wrong", "mi", "gain", "slack", "kept", "spared"));
  search job = { .pack = p, .alone = alone, .bar_mi = REAL(mi), .bar_gain = REAL(interaction) };
  job.wrong = zeros(out, "wrong", p->columns);
  job.mi = zeros(out, "mi", p->columns);
  job.gain = zeros(out, "gain", p->columns);
  job.slack = zeros(out, "slack", p->columns);
  job.kept = zeros(out, "kept", p->columns);
  job.spared = zeros(out, "spared", p->columns);
  for (int k = 0; k < 2; k++) job.codes[k] = (uint16_t *) R_alloc(p->n + 1, sizeof *job.codes[k]);
  weft_mi_marginals(p, alone);
  for (size_t a = 0; a < p->p; a++)
    for (size_t b = a + 1; b < p->p; b++) {
      const weft_mi_group *group_a = &p->groups[p->group_of[a]], *group_b = &p->groups[p->group_of[b]];
      if (group_a->coded || group_b->coded || group_a->shape.levels < 2 || group_b->shape.levels < 2) continue;
      if (group_a->shape.levels > WEFT_PRODUCTS_LEVELS || group_b->shape.levels > WEFT_PRODUCTS_LEVELS) continue;
      search_pair(&job, a, b);
    }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
