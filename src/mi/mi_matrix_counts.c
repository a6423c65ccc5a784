/* Information between all pairs of categorical attributes, by I = H(X) + H(Y) - H(XY), over the rows where both are known.
 *
 *   empirical               plug-in frequencies; in fixed point (mi_table.h)
 *   Miller-Madow            plug-in + (occupied cells - 1) / 2n nats
 *   shrink                  plug-in of λ/m + (1 - λ) n_k/n over the m occupied cells,
 *                           λ = (1 - Σ (n_k/n)²) / ((n - 1) Σ (1/m - n_k/n)²), at most 1 (Hausser and Strimmer 2009)
 *   Schürmann-Grassberger   Dirichlet posterior mean with β = 1/m a cell: Σ q_k (ψ(N + 1) - ψ(N q_k + 1)),
 *                           N = n + mβ = n + 1, q_k = (n_k + β)/N (Schürmann and Grassberger 1996)
 *
 * A constant attribute gives exactly 0 with everything. */
#include <math.h>
#include <string.h>
#include "../base/parallel.h"
#include "mi_tile.h"

#define LN2 0.69314718055994530942

/* Counts that occur, one after another. */
typedef struct { const uint32_t *counts; size_t cells; uint64_t n; } histogram;

/* ψ(x) for x >= 1: upward recurrence to 10, then the asymptotic series. */
static double digamma_of(double x)
{
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  const double y = 1 / (x * x);
  return log(x) - 0.5 / x - below
         - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
}

static double xlogx(double p) { return p > 0 ? p * log(p) : 0; }

/* n times the plug-in entropy, in fixed point. */
static int64_t fixed_entropy(const weft_mi_log *f, const histogram *h)
{
  int64_t fixed = weft_mi_fixed(f, h->n);
  for (size_t k = 0; k < h->cells; k++) fixed -= weft_mi_fixed(f, h->counts[k]);
  return fixed;
}

/* Entropy in nats. */
static double entropy(const weft_mi_log *f, const histogram *h, int estimator)
{
  const double n = (double) h->n, m = (double) h->cells;
  double sum = 0, squares = 0, away = 0;
  if (h->cells < 2) return 0;
  switch (estimator) {
  case WEFT_MI_EMPIRICAL: return weft_mi_bits(fixed_entropy(f, h), f->unit, h->n) * LN2;
  case WEFT_MI_MILLER_MADOW: return weft_mi_bits(fixed_entropy(f, h), f->unit, h->n) * LN2 + (m - 1) / (2 * n);
  case WEFT_MI_SHRINK:
    for (size_t k = 0; k < h->cells; k++) {
      const double p = h->counts[k] / n;
      squares += p * p;
      away += (1 / m - p) * (1 / m - p);
    }
    double lambda = away > 0 && n > 1 ? (1 - squares) / ((n - 1) * away) : 1;
    if (lambda > 1) lambda = 1;
    for (size_t k = 0; k < h->cells; k++) sum -= xlogx(lambda / m + (1 - lambda) * h->counts[k] / n);
    return sum;
  default: {
    const double top = digamma_of(n + 2);
    for (size_t k = 0; k < h->cells; k++) {
      const double mass = h->counts[k] + 1 / m;
      sum += mass * (top - digamma_of(mass + 1));
    }
    return sum / (n + 1);
  }
  }
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
  if (estimator == WEFT_MI_EMPIRICAL) {
    int64_t fixed = weft_mi_fixed(f, ab.n);
    for (size_t k = 0; k < ab.cells; k++) fixed += weft_mi_fixed(f, w->compact[k]);
    for (uint32_t x = 0; x < la + lb; x++) fixed -= weft_mi_fixed(f, w->margin[x]);
    return fixed > 0 ? weft_mi_bits(fixed, f->unit, ab.n) : 0;
  }
  for (uint32_t x = 0; x < la; x++) if (w->margin[x]) w->margin[a.cells++] = w->margin[x];
  for (uint32_t y = 0; y < lb; y++) if (w->margin[la + y]) w->margin[la + b.cells++] = w->margin[la + y];
  a.n = b.n = ab.n;
  if (a.cells < 2 || b.cells < 2) return 0;
  return (entropy(f, &a, estimator) + entropy(f, &b, estimator) - entropy(f, &ab, estimator)) / LN2;
}

/* Counts of the dense numbers in w->coder.ids, in order of number; returns how many occur. */
static histogram tally(workspace *w, const uint16_t *x, const uint16_t *y, uint32_t ly, uint32_t *out)
{
  histogram h = { out, 0, 0 };
  weft_mi_coder *c = &w->coder;
  memset(c->slots, 255, c->hash_size * sizeof *c->slots);
  for (size_t r = 0; r < c->n; r++) {
    if (x[r] == WEFT_MI_MISSING || y[r] == WEFT_MI_MISSING) continue;
    const uint64_t key = ly ? (uint64_t) x[r] * ly + y[r] : x[r];
    size_t at = (size_t) ((key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & (c->hash_size - 1);
    while (c->slots[at] != UINT32_MAX && c->keys[at] != key) at = (at + 1) & (c->hash_size - 1);
    if (c->slots[at] == UINT32_MAX) {
      c->keys[at] = key;
      c->slots[at] = (uint32_t) h.cells;
      out[h.cells++] = 0;
    }
    out[c->slots[at]]++;
    h.n++;
  }
  return h;
}

static double from_codes(const weft_mi_log *f, const uint16_t *x, const uint16_t *y, uint32_t ly, int estimator,
                         workspace *w)
{
  const histogram a = tally(w, x, y, 0, w->coder.ids), b = tally(w, y, x, 0, w->coder.rows);
  if (a.cells < 2 || b.cells < 2) return 0;
  const int exact = estimator == WEFT_MI_EMPIRICAL;
  int64_t fixed = exact ? fixed_entropy(f, &a) + fixed_entropy(f, &b) : 0;
  double nats = exact ? 0 : entropy(f, &a, estimator) + entropy(f, &b, estimator);
  const histogram ab = tally(w, x, y, ly, w->coder.ids); /* in place of a */
  if (!exact) return (nats - entropy(f, &ab, estimator)) / LN2;
  fixed -= fixed_entropy(f, &ab);
  return fixed > 0 ? weft_mi_bits(fixed, f->unit, ab.n) : 0;
}

/* ---- tiles ---- */

static void put(double *out, size_t rows, size_t i, size_t j, int symmetric, double value)
{
  out[j * rows + i] = value;
  if (symmetric) out[i * rows + j] = value;
}

static void matrix_tile(const weft_mi_tiling *tiling, size_t index, int estimator, int symmetric, workspace *w,
                        double *out)
{
  const weft_mi_pack *x = tiling->x, *y = tiling->y;
  weft_mi_tile tile;
  weft_mi_counts t;
  if (!weft_mi_tile_at(tiling, index, &tile)) return;
  const weft_mi_panel *panel = tile.panel;
  const size_t a0 = panel->g->first + tile.i0, b0 = panel->h->first + tile.j0;
  uint16_t *codes_b = w->codes + tile.ni * x->n;
  if (panel->coded) {
    for (size_t i = 0; i < tile.ni; i++) weft_mi_pack_codes(x, a0 + i, w->codes + i * x->n);
    for (size_t j = 0; j < tile.nj; j++) weft_mi_pack_codes(y, b0 + j, codes_b + j * x->n);
  } else {
    weft_mi_tile_count(tiling, &tile, w->both, &t);
  }
  for (size_t i = 0; i < tile.ni; i++)
    for (size_t j = 0; j < tile.nj; j++) {
      if (symmetric && panel->same && b0 + j <= a0 + i) continue; /* the diagonal: entropies, later */
      double value;
      if (panel->coded) {
        value = from_codes(&x->f, w->codes + i * x->n, codes_b + j * x->n, y->levels[b0 + j], estimator, w);
      } else {
        const size_t area = (size_t) t.a.levels * t.b.levels;
        weft_mi_cells(&t, i, j, w->cells);
        for (size_t k = area; k < area * t.parts; k++) w->cells[k % area] += w->cells[k];
        value = from_table(&x->f, w->cells, t.a.levels, t.b.levels, estimator, w);
      }
      put(out, x->columns, x->column[a0 + i], y->column[b0 + j], symmetric, value);
    }
}

/* H of one attribute, in bits. */
static double own_entropy(const weft_mi_pack *x, size_t place, int estimator, workspace *w)
{
  weft_mi_pack_codes(x, place, w->codes);
  const histogram h = tally(w, w->codes, w->codes, 0, w->coder.ids);
  return entropy(&x->f, &h, estimator) / LN2;
}

weft_status weft_mi_matrix_cpu(weft_ctx *ctx, const weft_mi_pack *x, const weft_mi_pack *y, int estimator, double *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = ctx->threads;
  const size_t cells = (size_t) WEFT_MI_PLANAR_LEVELS * WEFT_MI_PLANAR_LEVELS;
  weft_mi_pace pace = { (size_t) threads, 0 };
  weft_mi_tiling tiling;
  workspace *work;
  WEFT_TRY(weft_mi_tiling_make(&mem, x, y, &tiling));
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int t = 0; t < threads; t++) {
    WEFT_TAKE(work[t].both, &mem, tiling.both);
    WEFT_TAKE(work[t].cells, &mem, tiling.cells);
    WEFT_TAKE(work[t].compact, &mem, cells);
    WEFT_TAKE(work[t].margin, &mem, 2 * WEFT_MI_PLANAR_LEVELS);
    WEFT_TAKE(work[t].codes, &mem, (tiling.codes + 1) * x->n);
    WEFT_TRY(weft_mi_coder_init(&work[t].coder, &mem, x));
  }
  for (size_t first = 0; first < tiling.tiles; first += pace.batch, weft_mi_pace_next(&pace)) {
    const int64_t count = (int64_t) (tiling.tiles - first < pace.batch ? tiling.tiles - first : pace.batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) tiling.tiles));
    weft_mi_pace_start(&pace);
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(dynamic)
      for (int64_t k = 0; k < count; k++) matrix_tile(&tiling, first + (size_t) k, estimator, !y, w, out);
    }
  }
  if (!y) {
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(dynamic)
      for (int64_t place = 0; place < (int64_t) x->p; place++)
        out[x->column[place] * (x->columns + 1)] = own_entropy(x, (size_t) place, estimator, w);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
