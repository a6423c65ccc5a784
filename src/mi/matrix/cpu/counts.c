/* Information between all pairs of categorical attributes, by I = H(X) + H(Y) - H(XY), over the rows where both are
 * known, with the entropies of estimate.h. A constant attribute gives exactly 0 with everything. */
/* Build: shared. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/matrix/both/estimate.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/search/cpu/coded.h"
#include "mi/matrix/both/counts.h"

/* Counts that occur, one after another. */
typedef struct {
  const uint32_t *counts;
  size_t cells;
  uint64_t n;
} histogram;

/* n times the plug-in entropy, in fixed point. */
static int64_t fixed_entropy(const weft_mi_log *f, const histogram *table)
{
  int64_t fixed = weft_mi_fixed(f, table->n);
  for (size_t k = 0; k < table->cells; k++) fixed -= weft_mi_fixed(f, table->counts[k]);
  return fixed;
}

/* Entropy in nats. */
static double entropy(const weft_mi_log *f, const histogram *table, int estimator)
{
  weft_mi_estimate estimate = { 0 };
  for (int turn = 0; turn < weft_mi_turns(estimator); turn++) {
    for (size_t k = 0; k < table->cells; k++) weft_mi_estimate_add(&estimate, f, estimator, turn, table->counts[k]);
    weft_mi_estimate_turn(&estimate, estimator, turn);
  }
  return weft_mi_estimate_nats(&estimate, f, estimator);
}

/* ---- one pair ---- */

typedef struct {
  uint32_t *both, *cells, *compact, *margin;
  uint16_t *codes;
  weft_mi_coder coder;
} workspace;

/* Information in bits from a table of la × lb cells. */
static double from_table(const weft_mi_log *f, const uint32_t *cells, uint32_t la, uint32_t lb, int estimator,
                         workspace *w)
{
  histogram a = { w->margin, 0, 0 }, b = { w->margin + la, 0, 0 }, ab = { w->compact, 0, 0 };
  memset(w->margin, 0, (la + lb) * sizeof *w->margin);
  for (uint32_t x = 0; x < la; x++)
    for (uint32_t y = 0; y < lb; y++) {
      const uint32_t k = cells[x * lb + y];
      if (!k) continue;
      w->margin[x] += k;
      w->margin[la + y] += k;
      w->compact[ab.cells++] = k;
      ab.n += k;
    }
  if (weft_mi_whole(estimator)) {
    int64_t fixed = weft_mi_fixed(f, ab.n);
    for (size_t k = 0; k < ab.cells; k++) fixed += weft_mi_fixed(f, w->compact[k]);
    for (uint32_t x = 0; x < la + lb; x++) fixed -= weft_mi_fixed(f, w->margin[x]);
    return fixed > 0 ? weft_mi_bits(fixed, f->unit, ab.n) : 0;
  }
  for (uint32_t x = 0; x < la; x++)
    if (w->margin[x]) w->margin[a.cells++] = w->margin[x];
  for (uint32_t y = 0; y < lb; y++)
    if (w->margin[la + y]) w->margin[la + b.cells++] = w->margin[la + y];
  a.n = b.n = ab.n;
  if (a.cells < 2 || b.cells < 2) return 0;
  return (entropy(f, &a, estimator) + entropy(f, &b, estimator) - entropy(f, &ab, estimator)) / WEFT_MI_LN2;
}

/* Counts of the dense numbers in w->coder.ids, in order of number; returns how many occur. */
static histogram tally(workspace *w, const uint16_t *x, const uint16_t *y, uint32_t ly, uint32_t *out)
{
  histogram table = { out, 0, 0 };
  weft_mi_coder *c = &w->coder;
  memset(c->slots, 255, c->hash_size * sizeof *c->slots);
  for (size_t row = 0; row < c->n; row++) {
    if (x[row] == WEFT_MI_MISSING || y[row] == WEFT_MI_MISSING) continue;
    const uint64_t key = ly ? (uint64_t) x[row] * ly + y[row] : x[row];
    size_t at = (size_t) ((key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & (c->hash_size - 1);
    while (c->slots[at] != UINT32_MAX && c->keys[at] != key) at = (at + 1) & (c->hash_size - 1);
    if (c->slots[at] == UINT32_MAX) {
      c->keys[at] = key;
      c->slots[at] = (uint32_t) table.cells;
      out[table.cells++] = 0;
    }
    out[c->slots[at]]++;
    table.n++;
  }
  return table;
}

static double from_codes(const weft_mi_log *f, const uint16_t *x, const uint16_t *y, uint32_t ly, int estimator,
                         workspace *w)
{
  const histogram a = tally(w, x, y, 0, w->coder.ids), b = tally(w, y, x, 0, w->coder.rows);
  if (a.cells < 2 || b.cells < 2) return 0;
  const int exact = weft_mi_whole(estimator);
  int64_t fixed = exact ? fixed_entropy(f, &a) + fixed_entropy(f, &b) : 0;
  double nats = exact ? 0 : entropy(f, &a, estimator) + entropy(f, &b, estimator);
  const histogram ab = tally(w, x, y, ly, w->coder.ids); /* in place of a */
  if (!exact) return (nats - entropy(f, &ab, estimator)) / WEFT_MI_LN2;
  fixed -= fixed_entropy(f, &ab);
  return fixed > 0 ? weft_mi_bits(fixed, f->unit, ab.n) : 0;
}

/* Adds f over an attribute's levels from its margins; the last level, which has no plane, is what the others leave of
 * all rows. */
void weft_mi_sums_of_levels(const weft_mi_pack *pack, int64_t *out)
{
  for (size_t place = 0; place < pack->p; place++) {
    const weft_mi_group *group = &pack->groups[pack->group_of[place]];
    uint64_t left = pack->n;
    out[place] = 0;
    for (uint32_t q = 0; q < group->shape.planes; q++) {
      uint64_t level = 0;
      for (uint32_t c = 0; c < pack->classes; c++)
        level += pack->margins[c * pack->plane_rows + weft_mi_plane_row(group, place, q)];
      out[place] += weft_mi_fixed(&pack->f, level);
      left -= level;
    }
    out[place] += weft_mi_fixed(&pack->f, left);
  }
}

/* ---- tiles ---- */

static void put(double *out, size_t rows, size_t i, size_t j, int symmetric, double value)
{
  out[j * rows + i] = value;
  if (symmetric) out[i * rows + j] = value;
}

/* Scores one tile of pairs and puts the results into `out`, in bits. With words > 0, only the pairs with codes whose
 * tables have more entries than that, which a device leaves to the CPU. */
static void matrix_tile(const weft_mi_tiling *tiling, const int64_t *of_x, const int64_t *of_y, size_t index,
                        int estimator, int symmetric, uint64_t words, workspace *w, double *out)
{
  const weft_mi_pack *x = tiling->x, *y = tiling->y;
  weft_mi_tile tile;
  weft_mi_counts counts;
  if (!weft_mi_tile_at(tiling, index, &tile)) return;
  const weft_mi_panel *panel = tile.panel;
  if (words && !panel->coded) return;
  const size_t a0 = panel->group_a->first + tile.i0, b0 = panel->group_b->first + tile.j0;
  const int64_t whole = weft_mi_fixed(&x->f, x->n);
  uint16_t *codes_b = w->codes + tile.ni * x->n;
  if (panel->coded) {
    for (size_t i = 0; i < tile.ni; i++) weft_mi_pack_codes(x, a0 + i, w->codes + i * x->n);
    for (size_t j = 0; j < tile.nj; j++) weft_mi_pack_codes(y, b0 + j, codes_b + j * x->n);
  } else {
    weft_mi_tile_count(tiling, &tile, w->both, &counts);
  }
  for (size_t i = 0; i < tile.ni; i++)
    for (size_t j = 0; j < tile.nj; j++) {
      if (symmetric && panel->same && b0 + j <= a0 + i) continue; /* the diagonal: entropies, later */
      if (words && !weft_mi_large(x, a0 + i, y, b0 + j, 1, words)) continue;
      double value;
      if (panel->coded) {
        value = from_codes(&x->f, w->codes + i * x->n, codes_b + j * x->n, y->levels[b0 + j], estimator, w);
      } else {
        const size_t area = (size_t) counts.a.levels * counts.b.levels;
        weft_mi_cells(&counts, i, j, w->cells);
        for (size_t k = area; k < area * counts.parts; k++) w->cells[k % area] += w->cells[k];
        if (counts.vary || !weft_mi_whole(estimator)) {
          value = from_table(&x->f, w->cells, counts.a.levels, counts.b.levels, estimator, w);
        } else {
          int64_t fixed = whole - of_x[a0 + i] - of_y[b0 + j];
          for (size_t k = 0; k < area; k++) fixed += weft_mi_fixed(&x->f, w->cells[k]);
          value = fixed > 0 ? weft_mi_bits(fixed, x->f.unit, x->n) : 0;
        }
      }
      put(out, x->columns, x->column[a0 + i], y->column[b0 + j], symmetric, value);
    }
}

/* H of one attribute, in bits. */
static double own_entropy(const weft_mi_pack *x, size_t place, int estimator, workspace *w)
{
  weft_mi_pack_codes(x, place, w->codes);
  const histogram table = tally(w, w->codes, w->codes, 0, w->coder.ids);
  return entropy(&x->f, &table, estimator) / WEFT_MI_LN2;
}

/* words: 0, or only what weft_mi_large() says of them. */
static weft_status fill_matrix(weft_ctx *ctx, const weft_mi_pack *x, const weft_mi_pack *y, int estimator,
                               uint64_t words, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double pairs = (double) x->p * (double) (y ? y->p : x->p);
  const int threads = weft_threads_worth(ctx->threads, pairs * (30 + (double) x->n / 8));
  const size_t cells = (size_t) WEFT_MI_PLANAR_LEVELS * WEFT_MI_PLANAR_LEVELS;
  weft_mi_pace pace = { (size_t) threads, 0 };
  weft_mi_tiling tiling;
  workspace *work;
  int64_t *of_x, *of_y;
  WEFT_TRY(weft_mi_tiling_make(&mem, x, y, &tiling));
  WEFT_TAKE(of_x, &mem, x->p);
  weft_mi_sums_of_levels(x, of_x);
  of_y = of_x;
  if (y) {
    WEFT_TAKE(of_y, &mem, y->p);
    weft_mi_sums_of_levels(y, of_y);
  }
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].both, &mem, tiling.both);
    WEFT_TAKE(work[thread].cells, &mem, tiling.cells);
    WEFT_TAKE(work[thread].compact, &mem, cells);
    WEFT_TAKE(work[thread].margin, &mem, 2 * WEFT_MI_PLANAR_LEVELS);
    WEFT_TAKE(work[thread].codes, &mem, (tiling.codes + 1) * x->n);
    WEFT_TRY(weft_mi_coder_init(&work[thread].coder, &mem, x, 1));
  }
  for (size_t first = 0; first < tiling.tiles; first += pace.batch, weft_mi_pace_next(&pace)) {
    const int64_t count = (int64_t) (tiling.tiles - first < pace.batch ? tiling.tiles - first : pace.batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) tiling.tiles));
    weft_mi_pace_start(&pace);
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(dynamic)
      for (int64_t k = 0; k < count; k++)
        matrix_tile(&tiling, of_x, of_y, first + (size_t) k, estimator, !y, words, w, out);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Every attribute's entropy from its codes, threads sharing attributes. */
weft_status weft_mi_own_entropies(weft_ctx *ctx, const weft_mi_pack *x, int estimator, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) x->p * 2 * (double) x->n);
  const int64_t batch = 1 + (int64_t) (1e7 / ((double) x->n + 100)) * threads;
  workspace *work;
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].codes, &mem, x->n);
    WEFT_TRY(weft_mi_coder_init(&work[thread].coder, &mem, x, 1));
  }
  for (int64_t first = 0; first < (int64_t) x->p; first += batch) {
    const int64_t end = (int64_t) x->p - first < batch ? (int64_t) x->p : first + batch;
    WEFT_TRY(weft_poll(ctx, 1, 1));
    WEFT_PARALLEL_FOR(threads, guided)
    for (int64_t place = first; place < end; place++)
      out[x->column[place] * (x->columns + 1)] = own_entropy(x, (size_t) place, estimator, &work[WEFT_THREAD()]);
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_mi_matrix_cpu(weft_ctx *ctx, const weft_mi_pack *x, weft_mi_resident **device, const weft_mi_pack *y,
                               int estimator, double *out)
{
  weft_status st = WEFT_OK;
  (void) device;
  WEFT_TRY(fill_matrix(ctx, x, y, estimator, 0, out));
  if (!y) WEFT_TRY(weft_mi_own_entropies(ctx, x, estimator, out));
done:
  return st;
}

weft_status weft_mi_matrix_large(weft_ctx *ctx, const weft_mi_pack *x, const weft_mi_pack *y, int estimator,
                                 uint64_t words, double *out)
{
  return fill_matrix(ctx, x, y, estimator, words, out);
}
