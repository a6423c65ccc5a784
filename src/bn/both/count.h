/* Counting the cells of sets of nodes by refinement.
 *
 * `weft_bn_cells` holds the cells of a set P: only those with two rows or more, since a cell of one row stays one cell
 * whatever is added. They are bit planes, eight cells side by side so that one 512-bit word holds a 64-row word of
 * each,
 *
 *     plane[(block * words + word) * 8 + lane]       cell = 8 * block + lane
 *
 * or, where planes would take more time or memory (many rows, many levels), lists of rows, cell after cell.
 * weft_bn_refine() makes the cells of P + v; weft_bn_leaf() sums f(count) over the cells of P + v without making them.
 * f is a table by count in fixed point (weft_bn_ftable), f(0) = 0. */
#pragma once

#include "core/numbers/math.h"
#include "bn/bn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of f are summed with this many bits more than scores are kept with. */
#define WEFT_BN_GUARD_BITS 8
static WEFT_HD inline int64_t weft_bn_rounded(int64_t value)
{
  return (value + (1 << (WEFT_BN_GUARD_BITS - 1))) >> WEFT_BN_GUARD_BITS;
}

/* The columns of a problem, coded. Nodes with more than WEFT_BN_PLANE_LEVELS levels have no planes. */
#define WEFT_BN_PLANE_LEVELS 16
typedef struct weft_bn_columns {
  size_t n, p, words;
  uint16_t *codes;    /* n × p */
  uint32_t *levels;   /* p */
  uint64_t **planes;  /* p: levels × words, or NULL */
  size_t plane_cells; /* most cells held as planes */
  double completions; /* s. weft_bn_problem */
} weft_bn_columns;

typedef struct weft_bn_cells {
  double q;             /* possible cells */
  uint32_t cells, ones; /* cells of two rows or more, of one row */
  uint32_t rows, most;  /* rows in the former; the largest count, at least 1 */
  int has_planes, has_rows;
  uint64_t *plane;
  uint32_t *count;       /* cells + up to 7 zeros */
  uint32_t *row, *begin; /* rows by cell, cells + 1 starts */
} weft_bn_cells;

/* A function of counts: Σ_{t < N} ln(a + t) = lnΓ(a + N) - lnΓ(a), or N ln N when a is negative. Of rows that are
 * completions, a count N stands for N / completions rows. */
typedef struct weft_bn_ftable {
  double a;
  uint32_t filled;  /* values known: 0 .. filled */
  double sum, lost; /* at `filled`: compensated */
  int64_t *value;   /* n + 1 */
} weft_bn_ftable;

/* One thread's work space. */
typedef struct weft_bn_counter {
  const weft_bn_columns *columns;
  double unit;        /* 2^bits */
  double completions; /* 0 and 1: none */
  weft_bn_ftable *tables;
  size_t slots;
  uint32_t *seen; /* most levels, zero between calls */
} weft_bn_counter;

weft_status weft_bn_columns_make(weft_arena *mem, const weft_bn_problem *problem, weft_bn_columns *out);
weft_status weft_bn_counter_make(weft_arena *mem, const weft_bn_columns *columns, int bits, weft_bn_counter *out);
weft_status weft_bn_cells_make(weft_arena *mem, const weft_bn_columns *columns, weft_bn_cells *out);

/* The cells of the empty set: the rows whose entry of `set` (n, may be NULL) is zero. */
void weft_bn_root(const weft_bn_columns *columns, const int32_t *set, weft_bn_cells *out);
/* The cells of the set and one more node v; `from` may get lists of rows. */
void weft_bn_refine(weft_bn_counter *counter, weft_bn_cells *from, size_t v, weft_bn_cells *out);

/* The table of f for `a` up to `most`; valid until the next call. */
const int64_t *weft_bn_function(weft_bn_counter *counter, double a, uint32_t most);
/* Σ f over the cells, in units of 2^-bits. */
int64_t weft_bn_value(weft_bn_counter *counter, const weft_bn_cells *cells, double a);
/* Σ f over the cells of the set and v, which are not made. *occupied: how many of them hold a row. */
int64_t weft_bn_leaf(weft_bn_counter *counter, weft_bn_cells *from, size_t v, double a, uint32_t *occupied);

#ifdef __cplusplus
}
#endif
