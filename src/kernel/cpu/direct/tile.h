/* The body of a tile, included by each vector variant for double and for float after it has defined
 *   REAL VEC LANES NV REFS TILE ARGS TARGET_INLINE TRACK   types; vectors of queries and references at a time; TRACK:
 *                                                          the double version, with low parts and error accounting
 *   OP(op)                                                  add sub mul div fmadd fnmadd sqrt min max set1 loadu storeu
 *   KEEP_LT(a, b, v) KEEP_LE(a, b, v)                      v where a < b (a <= b), else 0
 *   MAGIC POW2(v)                                          the constant that rounds to integers; 2^n from n + MAGIC
 *   NAME(x)
 *
 * Queries lie in the lanes and references are broadcast: NV x REFS accumulators of distances, two instructions per
 * dimension each, with NV + REFS loads. exp is a Chebyshev interpolant of our own on ±ln2/2 (relative error 4e-18, in
 * float 3e-9; 0 where the result would be denormal). */

#define UNROLL _Pragma("GCC unroll 8")

/* exp(x) in each lane. x is split into n ln2 + r with |r| <= ln2/2; a polynomial gives exp(r), POW2 the factor 2^n.
 * Lanes below EXP_MIN give 0. */
TARGET_INLINE VEC NAME(exp)(VEC x)
{
  const VEC magic = OP(set1)((REAL) MAGIC);
  const VEC least = OP(set1)((REAL) EXP_MIN);
  const VEC asked = x;
  x = OP(max)(x, least);
  VEC shifted = OP(fmadd)(x, OP(set1)((REAL) 1.4426950408889634), magic);
  VEC n = OP(sub)(shifted, magic);
  VEC r = OP(fnmadd)(n, OP(set1)((REAL) LN2_HI), x);
  r = OP(fnmadd)(n, OP(set1)((REAL) LN2_LO), r);
#if TRACK
  static const REAL c[] = { 2.511004920481866e-8,
                            2.7632654722527792e-7,
                            2.7557240887229869e-6,
                            2.4801485441561313e-5,
                            0.00019841269890076403,
                            0.0013888888952352863,
                            0.0083333333333195896,
                            0.041666666666487953,
                            0.16666666666666681,
                            0.50000000000000184,
                            1.0,
                            1.0 };
#else
  static const REAL c[] = {
    0.0013941118895837001f, 0.0083751347746243252f, 0.041666352772f, 0.16666415414f, 0.50000000471f, 1.0f, 1.0f
  };
#endif
  VEC p = OP(set1)(c[0]);
  UNROLL for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = OP(fmadd)(p, r, OP(set1)(c[i]));
  return KEEP_LT(least, asked, OP(mul)(p, POW2(shifted)));
}

#define WEFT_KINDS_IN_VECTORS
#include "kernel/kinds.h"
#undef WEFT_KINDS_IN_VECTORS

/* clang-format off */
#define CASE_EXPONENTIAL(name) case WEFT_##name: return (NAME(value_##name))(s, shift);
#define CASE_ALGEBRAIC(name) case WEFT_##name: return (NAME(value_##name))(s);
#define CASE_COMPACT(name) case WEFT_##name: return (NAME(value_##name))(OP(max)(OP(sub)(one, s), zero), s);
#define CASE_STEP(name) case WEFT_##name: return KEEP_LE(s, one, one);
/* clang-format on */

/* k(s), where s is not negative; `kind` is a constant of each instance. */
TARGET_INLINE VEC NAME(value)(int kind, VEC s, VEC shift)
{
  const VEC one = OP(set1)((REAL) 1), zero = OP(set1)((REAL) 0);
  switch (kind) {
#define ROW(name, known_as, form, ...) CASE_##form(name)
    WEFT_KERNEL_ROWS(ROW)
#undef ROW
  }
  return OP(set1)((REAL) NAN);
}

/* Squared distances of NV vectors of queries from `refs` references. */
TARGET_INLINE void NAME(distances)(const ARGS *args, size_t from, size_t r, int refs, int pairs, VEC *s)
{
  UNROLL for (int i = 0; i < NV * refs; i++) s[i] = OP(set1)((REAL) 0);
  for (size_t j = 0; j < args->d; j++) {
    UNROLL for (int k = 0; k < refs; k++)
    {
      const VEC x = OP(set1)(args->x[(r + (size_t) k) * args->d + j]);
      UNROLL for (int v = 0; v < NV; v++)
      {
        VEC gap = OP(sub)(OP(loadu)(args->q + j * TILE + from + (size_t) v * LANES), x);
#if TRACK
        if (pairs)
          gap = OP(add)(gap, OP(sub)(OP(loadu)(args->q_lo + j * TILE + from + (size_t) v * LANES),
                                     OP(set1)(args->x_lo[(r + (size_t) k) * args->d + j])));
#endif
        s[k * NV + v] = OP(fmadd)(gap, gap, s[k * NV + v]);
      }
    }
  }
  (void) pairs;
}

/* Adds the kernel values of `refs` references, weighted, to the accumulators of every column. */
TARGET_INLINE void NAME(collect)(const ARGS *args, int kind, size_t from, size_t r, int refs, int single, VEC *s,
                                 VEC *sum, VEC *inside)
{
  const VEC scale = OP(set1)(args->inv_h2), one = OP(set1)((REAL) 1);
  UNROLL for (int i = 0; i < NV * refs; i++)
  {
    const int v = i % NV;
    const size_t row = r + (size_t) (i / NV), lane = from + (size_t) v * LANES;
    s[i] = OP(mul)(s[i], scale);
#if TRACK
    const VEC shift = weft_kernel_exponential(kind) ? OP(loadu)(args->shift + lane) : one;
#else
    const VEC shift = OP(set1)((REAL) 0);
#endif
    const VEC value = NAME(value)(kind, s[i], shift);
#if TRACK
    const VEC far = OP(sub)(one, s[i]);
    const VEC doubt = OP(max)(far, OP(sub)(s[i], one)), edge = OP(set1)(1 + args->near);
#endif
    for (size_t c = 0; c < (single ? 1 : args->m); c++) {
      const VEC w = OP(set1)(args->w[row * args->m + c]);
      if (single)
        sum[v] = OP(fmadd)(value, w, sum[v]);
      else
        OP(storeu)(args->sum + c * TILE + lane, OP(fmadd)(value, w, OP(loadu)(args->sum + c * TILE + lane)));
#if TRACK
      if (!weft_kernel_compact(kind)) continue;
      const VEC counted = weft_kernel_step(kind) ? KEEP_LE(doubt, OP(set1)(args->near), w) : KEEP_LT(s[i], edge, w);
      if (single)
        inside[v] = OP(add)(inside[v], counted);
      else
        OP(storeu)(args->inside + c * TILE + lane, OP(add)(OP(loadu)(args->inside + c * TILE + lane), counted));
#endif
    }
  }
  (void) one, (void) inside;
}

/* The sums of a tile of queries over all references of `args`, which are taken REFS at a time and the rest one by one.
 * Adds to args->sum and, for compact kernels in double precision, to args->inside. pairs: there are low parts; single:
 * one column, whose sums stay in registers; these and kind are constants where this is inlined. */
TARGET_INLINE void NAME(body)(const ARGS *args, int kind, int pairs, int single)
{
  for (size_t from = 0; from < TILE; from += NV * LANES) {
    VEC sum[NV], inside[NV], s[NV * REFS];
    UNROLL for (int v = 0; v < NV; v++) sum[v] = inside[v] = OP(set1)((REAL) 0);
    size_t r = 0;
    for (; r + REFS <= args->count; r += REFS) {
      NAME(distances)(args, from, r, REFS, pairs, s);
      NAME(collect)(args, kind, from, r, REFS, single, s, sum, inside);
    }
    for (; r < args->count; r++) {
      NAME(distances)(args, from, r, 1, pairs, s);
      NAME(collect)(args, kind, from, r, 1, single, s, sum, inside);
    }
    if (!single) continue;
    UNROLL for (int v = 0; v < NV; v++)
    {
      REAL *at = args->sum + from + (size_t) v * LANES;
      OP(storeu)(at, OP(add)(OP(loadu)(at), sum[v]));
#if TRACK
      REAL *in = args->inside + from + (size_t) v * LANES;
      if (weft_kernel_compact(kind)) OP(storeu)(in, OP(add)(OP(loadu)(in), inside[v]));
#endif
    }
  }
}

#if TRACK
/* Bounds of a node's sum for every query of a tile. With s̄ the weighted mean of s over the node (exact from its
 * moments), a convex k gives W k(s̄) <= Σ w k <= W (the chord of k over [s least, s greatest], at s̄). */
TARGET_INLINE void NAME(bounds)(const weft_node_tile *tile, int kind)
{
  const VEC zero = OP(set1)(0), one = OP(set1)(1), scale = OP(set1)(tile->inv_h2), slack = OP(set1)(tile->slack);
  for (size_t from = 0; from < TILE; from += LANES) {
    VEC least = zero, greatest = zero, middle = zero;
    for (size_t j = 0; j < tile->d; j++) {
      const VEC q = OP(loadu)(tile->q + j * TILE + from);
      const VEC above = OP(sub)(q, OP(set1)(tile->box[j])), below = OP(sub)(OP(set1)(tile->box[tile->d + j]), q);
      const VEC away = OP(sub)(OP(max)(OP(max)(OP(sub)(zero, above), OP(sub)(zero, below)), slack), slack);
      const VEC reach = OP(add)(OP(max)(above, below), slack);
      least = OP(fmadd)(away, away, least);
      greatest = OP(fmadd)(reach, reach, greatest);
      if (tile->centre) {
        const VEC gap = OP(sub)(OP(sub)(q, OP(set1)(tile->x[j])), OP(set1)(tile->centre[j]));
        middle = OP(fmadd)(gap, gap, middle);
      }
    }
    if (tile->centre) {
      const VEC distance = OP(sqrt)(middle), radius = OP(set1)(tile->centre[tile->d] + tile->slack);
      const VEC inner = OP(max)(OP(sub)(distance, radius), zero), outer = OP(add)(distance, radius);
      least = OP(max)(least, OP(mul)(inner, inner));
      greatest = OP(min)(greatest, OP(mul)(outer, outer));
    }
    least = OP(mul)(least, OP(set1)(tile->inv_h2 * (1 - tile->near)));
    greatest = OP(max)(OP(mul)(greatest, scale), least);
    VEC most, fewest;
    if (weft_kernel_step(kind)) {
      most = KEEP_LE(least, OP(set1)(1 + tile->near), one);
      fewest = KEEP_LE(greatest, OP(set1)(1 - tile->near), one);
    } else {
      most = NAME(value)(kind, least, zero);
      fewest = NAME(value)(kind, greatest, zero);
    }
    const VEC width = OP(max)(OP(sub)(greatest, least), OP(set1)(1e-300));
    const VEC slope = OP(div)(OP(sub)(most, fewest), width);
    for (size_t c = 0; c < tile->m; c++) {
      const double *moments = tile->moments + c * (tile->d + 2);
      const VEC weight = OP(set1)(moments[0]);
      VEC low = fewest, high = most;
      if (!weft_kernel_step(kind)) {
        VEC mean = zero;
        for (size_t j = 0; j < tile->d; j++) {
          VEC gap = OP(sub)(OP(loadu)(tile->q + j * TILE + from), OP(set1)(tile->x[j]));
          if (tile->q_lo) gap = OP(add)(gap, OP(sub)(OP(loadu)(tile->q_lo + j * TILE + from), OP(set1)(tile->x_lo[j])));
          gap = OP(sub)(gap, OP(set1)(moments[2 + j]));
          mean = OP(fmadd)(gap, gap, mean);
        }
        mean = OP(mul)(OP(add)(mean, OP(set1)(moments[1])), scale);
        mean = OP(min)(OP(max)(mean, least), greatest);
        low = NAME(value)(kind, mean, zero);
        high = OP(max)(OP(sub)(most, OP(mul)(OP(sub)(mean, least), slope)), low);
      }
      const int fades = weft_kernel_compact(kind) && !weft_kernel_step(kind);
      const VEC rounding = fades ? KEEP_LT(least, one, OP(set1)(tile->near)) : OP(mul)(most, OP(set1)(4e-16));
      const VEC half = OP(mul)(weight, OP(set1)(0.5)), at_c = OP(mul)(OP(sub)(high, low), half);
      OP(storeu)(tile->estimate + c * TILE + from, OP(mul)(OP(add)(high, low), half));
      OP(storeu)(tile->error + c * TILE + from, OP(fmadd)(rounding, weight, at_c));
      OP(storeu)(tile->low + c * TILE + from, OP(mul)(low, weight));
    }
  }
}
#endif

#if TRACK
#  define PAIRED(a) ((a)->q_lo != NULL)
#else
#  define PAIRED(a) 0
#endif
/* An instance for each kernel. */
#define ROW(name, ...) \
  TARGET static void NAME(sum_##name)(const ARGS *a) \
  { \
    if (a->m == 1 && !PAIRED(a)) \
      NAME(body)(a, WEFT_##name, 0, 1); \
    else if (!PAIRED(a)) \
      NAME(body)(a, WEFT_##name, 0, 0); \
    else \
      NAME(body)(a, WEFT_##name, 1, 0); \
  }
WEFT_KERNEL_ROWS(ROW)
#undef ROW

static void NAME(tile)(const ARGS *t, int kind)
{
#define ROW(name, ...) NAME(sum_##name),
  static void (*const by_kind[WEFT_KERNELS])(const ARGS *) = { WEFT_KERNEL_ROWS(ROW) };
#undef ROW
  by_kind[kind](t);
}

#if TRACK
#  define ROW(name, ...) \
    TARGET static void NAME(bounds_##name)(const weft_node_tile *a) { NAME(bounds)(a, WEFT_##name); }
WEFT_KERNEL_ROWS(ROW)
#  undef ROW

static void NAME(node)(const weft_node_tile *tile, int kind)
{
#  define ROW(name, ...) NAME(bounds_##name),
  static void (*const by_kind[WEFT_KERNELS])(const weft_node_tile *) = { WEFT_KERNEL_ROWS(ROW) };
#  undef ROW
  by_kind[kind](tile);
}
#endif

#if !TRACK
/* Sums of a run for each bandwidth, of two columns of weights. Distances are read again for each bandwidth, and its
 * sums stay in registers. */
TARGET_INLINE void NAME(wide_body)(const weft_tile_wide *args, int kind)
{
  for (size_t b = 0; b < args->bandwidths; b++) {
    const VEC scale = OP(set1)(args->inv_h2[b]);
    for (size_t from = 0; from < TILE; from += NV * LANES) {
      VEC sum[2 * NV], shift[NV];
      UNROLL for (int v = 0; v < NV; v++)
      {
        sum[2 * v] = sum[2 * v + 1] = OP(set1)((REAL) 0);
        shift[v] = OP(loadu)(args->shift + b * TILE + from + (size_t) v * LANES);
      }
      for (size_t r = 0; r < args->count; r++) {
        const VEC first = OP(set1)(args->w[2 * r]), second = OP(set1)(args->w[2 * r + 1]);
        UNROLL for (int v = 0; v < NV; v++)
        {
          const VEC square = OP(loadu)(args->square + r * TILE + from + (size_t) v * LANES);
          const VEC value = NAME(value)(kind, OP(mul)(square, scale), shift[v]);
          sum[2 * v] = OP(fmadd)(value, first, sum[2 * v]);
          sum[2 * v + 1] = OP(fmadd)(value, second, sum[2 * v + 1]);
        }
      }
      UNROLL for (int v = 0; v < NV; v++)
      {
        OP(storeu)(args->sum + 2 * b * TILE + from + (size_t) v * LANES, sum[2 * v]);
        OP(storeu)(args->sum + (2 * b + 1) * TILE + from + (size_t) v * LANES, sum[2 * v + 1]);
      }
    }
  }
}

#  define ROW(name, ...) \
    TARGET static void NAME(wide_##name)(const weft_tile_wide *a) { NAME(wide_body)(a, WEFT_##name); }
WEFT_KERNEL_ROWS(ROW)
#  undef ROW

static void NAME(wide)(const weft_tile_wide *tile, int kind)
{
#  define ROW(name, ...) NAME(wide_##name),
  static void (*const by_kind[WEFT_KERNELS])(const weft_tile_wide *) = { WEFT_KERNEL_ROWS(ROW) };
#  undef ROW
  by_kind[kind](tile);
}

/* Squared distances in double, rounded once; then what queries leave out, and the least of each. */
TARGET VECTORIZE static void NAME(squares)(const weft_tile_squares *tile)
{
  const size_t d = tile->d, count = tile->count;
  float *restrict square = tile->square, *restrict least = tile->least;
  for (size_t r = 0; r < count; r++) {
    double s[TILE];
    for (size_t lane = 0; lane < TILE; lane++) s[lane] = 0;
    for (size_t j = 0; j < d; j++) {
      const double x = tile->x[r * d + j];
      const double *restrict q = tile->q + j * TILE;
      for (size_t lane = 0; lane < TILE; lane++) s[lane] += (q[lane] - x) * (q[lane] - x);
    }
    for (size_t lane = 0; lane < TILE; lane++) square[r * TILE + lane] = (float) s[lane];
  }
  for (size_t lane = 0; lane < TILE; lane++)
    if (tile->own[lane] >= tile->first && tile->own[lane] < tile->first + (int64_t) count)
      square[(size_t) (tile->own[lane] - tile->first) * TILE + lane] = tile->far;
  for (size_t lane = 0; lane < TILE; lane++) least[lane] = square[lane];
  for (size_t r = 1; r < count; r++)
    for (size_t lane = 0; lane < TILE; lane++)
      least[lane] = square[r * TILE + lane] < least[lane] ? square[r * TILE + lane] : least[lane];
}

/* out = (float) ((x - middle) * scale), element by element: what brings a run of references into a block's
 * coordinates. */
TARGET VECTORIZE static void NAME(shift)(const double *restrict x, const double *restrict middle, double scale,
                                         size_t count, float *restrict out)
{
  for (size_t i = 0; i < count; i++) out[i] = (float) ((x[i] - middle[i]) * scale);
}
#endif

#undef UNROLL
#undef PAIRED
#undef CASE_EXPONENTIAL
#undef CASE_ALGEBRAIC
#undef CASE_COMPACT
#undef CASE_STEP
#undef REAL
#undef VEC
#undef LANES
#undef NV
#undef REFS
#undef TILE
#undef ARGS
#undef TRACK
#undef OP
#undef KEEP_LT
#undef KEEP_LE
#undef MAGIC
#undef POW2
#undef NAME
#undef EXP_MIN
#undef LN2_HI
#undef LN2_LO
