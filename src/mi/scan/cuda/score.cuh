/* The screen's data about the pairs of a tile, and the interval in which a pair's score must lie.
 *
 * A genotype counts c = 0, 1 or 2 copies of the rarer allele. Sums over rows of products of two genotypes and a column
 * v (the weights, a column of U, an outcome) are sums of integers: v is rounded to a multiple of a step, the multiple
 * is written in digits that fit a byte beside a genotype, and cuBLAS multiplies bytes. So all that is not exact is
 * known: a sum over n rows is within step / 2 times the sum of |genotypes' products| of its value.
 *
 * With X the pair's own columns and Z those of the interaction, both less what U explains, the score is N' S^-1 N over
 * the variance, S = Z'Z - Z'X M^-1 X'Z, N = Z'e - Z'X M^-1 X'e, M = X'X. Errors of the sums move S by at most theta S
 * and N by at most eta in the norm of S^-1 (bound_errors()); the score lies between (sqrt(s) -+ eta)^2 / (1 +- theta).
 * Which columns follow from others is known exactly from the nine counts of the pair's genotypes, but for what
 * covariates explain: a pair in doubt is `unsure`, and the CPU scores it. Pairs with missing genotypes: gaps.cuh. */
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#define WEFT_SCAN_MASKS 512 /* which of the nine combinations of genotypes occur */

/* A column whose sums with the products of genotypes are counted in digits. */
struct scan_column {
  int slot;    /* of its first digit's first product; -1: a constant, `step` */
  int digits;  /* the highest last */
  double step; /* of the lowest digit */
  /* the same where a genotype is missing: only the highest digits (gaps.cuh) */
  int lost_slot, lost_digits;
  double lost_step;
  int square_slot; /* of its squares */
  double square_step;
};

struct scan_tile {
  const int32_t *sums; /* [slot][j][i]: products of bytes */
  size_t slot_size, ld;
  uint32_t first_a, first_b, count_a, count_b; /* variants; b's are the later ones */
  uint32_t variants;
  const uint32_t *place;       /* of a variant among all */
  const uint32_t *ones, *twos; /* people with one copy, with two */
  const double
      *own; /* [column][copies - 1][variant]: sums of weights, root U and root e over people with 1, 2 copies */
  const scan_column *columns; /* weights (where there are any), U, outcomes */
  const uint8_t *kept;        /* [mask]: a bit for each column of X, then of Z, that does not follow from others */
  uint32_t n, k, outcomes;
  double base;           /* of digits of U and e */
  double step_of_u;      /* half a step, over all columns of U: the root of the sum of squares */
  double step_of_w;      /* half a step of the weights */
  const double *squares; /* of each outcome */
  int weighted, estimated;
  /* missing genotypes (gaps.cuh) */
  const uint32_t *absent;    /* how many of each variant */
  const double *lost;        /* [entry][variant]: sums over its missing rows, as weft_scan_block's `lost` */
  const double *lost_length; /* of each variant: the root of the squares in its U'U */
  const double *constant;    /* U'root, of length 1 */
  double constant_length;
  double lost_step_of_u; /* as step_of_u, of the highest digits */
  int count_slot;        /* of products of single genotypes and missing ones */
  int leverage_slot;     /* of the squares of a row of U */
  double leverage_step;
  /* which pairs are searched */
  const uint8_t *side;
  const uint32_t *chromosome;
  const double *position;
  double distance;
  uint64_t all; /* variants of the scan: a pair is i * all + j */
  /* what passes */
  double threshold;          /* for the best pairs, by the first outcome */
  int any;                   /* whether best pairs are wanted at all */
  unsigned long long *least; /* [outcome]: bits of the greatest lower bound */
  struct scan_item *items;
  uint32_t capacity;
  uint32_t *count;
  unsigned long long *tested;
};

#define WEFT_SCAN_UNSURE UINT32_MAX
struct scan_item {
  unsigned long long index;
  double low, high;
  uint32_t outcome, pad;
};

#define NOTHING_LEFT 1e-11 /* of a column's squares: rounding */
#define SURELY_LEFT 1e-6
#define SURELY_LEFT_ROUNDED 1e-4 /* where sums of X are not exact */
#define MAX_THETA 0.2

/* L: columns of a variant. */
template <int L> struct pair_state {
  static constexpr int X = 2 * L, Q = L * L, T = X + Q;
  double g[T][T];  /* after sweep(): -M^-1 and M^-1 X'Z */
  double size[X];  /* roots of the squares of X before anything was taken off */
  double total[Q]; /* sums of |z| */
  double zz[Q];
  uint32_t kept;
};

__device__ static inline double digit_sum(const int32_t *sums, size_t slot_size, int digits, int apart, double base,
                                          double step)
{
  double value = 0;
  for (int d = digits - 1; d >= 0; d--) value = value * base + (double) sums[(size_t) d * apart * slot_size];
  return value * step;
}

/* Counts of the pair's genotypes, [a's copies - 1 + 2 (b's copies - 1)], and which combinations occur, among `rows`
 * people. lost: how many with one copy and with two of a, and then of b, are not among them. */
__device__ static inline uint32_t count_pair(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b,
                                             const int (&lost)[4], uint32_t rows, int (&cell)[4])
{
  int of_a[2] = { (int) part.ones[a] - lost[0], (int) part.twos[a] - lost[1] },
      of_b[2] = { (int) part.ones[b] - lost[2], (int) part.twos[b] - lost[3] };
  int rest = (int) rows;
  uint32_t mask = 0;
#pragma unroll
  for (int c = 0; c < 4; c++) {
    cell[c] = at[c * part.slot_size];
    of_a[c % 2] -= cell[c];
    of_b[c / 2] -= cell[c];
    rest -= cell[c];
    mask |= (uint32_t) (cell[c] > 0) << (1 + c % 2 + 3 * (1 + c / 2));
  }
#pragma unroll
  for (int c = 0; c < 2; c++) {
    mask |= (uint32_t) (of_a[c] > 0) << (1 + c) | (uint32_t) (of_b[c] > 0) << (3 * (1 + c));
    rest -= of_a[c] + of_b[c];
  }
  return mask | (uint32_t) (rest > 0);
}

/* Sums of a column with X: with copies, or with each number of copies. */
template <int L>
__device__ static inline void own_sums(const scan_tile &part, uint32_t column, uint32_t a, uint32_t b, double *out)
{
  const double *of = part.own + (size_t) column * 2 * part.variants;
  const double a1 = of[a], a2 = of[part.variants + a], b1 = of[b], b2 = of[part.variants + b];
  if (L == 1) {
    out[0] = a1 + 2 * a2;
    out[1] = b1 + 2 * b2;
  } else {
    out[0] = a1;
    out[1] = a2;
    out[L] = b1;
    out[L + 1] = b2;
  }
}

/* The four sums of weights over combinations of genotypes. */
__device__ static inline void weigh_cells(const scan_tile &part, const int32_t *at, const int (&cell)[4],
                                          double (&w)[4])
{
#pragma unroll
  for (int c = 0; c < 4; c++)
    w[c] = part.weighted ? digit_sum(at + (size_t) (part.columns[0].slot + c) * part.slot_size, part.slot_size,
                                     part.columns[0].digits, 4, 255, part.columns[0].step)
                         : (double) cell[c];
}

/* Fills products of X and Z from these, and from the sums over people with one copy and two of a, and of b. */
template <int L>
__device__ static inline void fill_products(const double (&own)[4], const int (&cell)[4], const double (&w)[4],
                                            pair_state<L> &state)
{
#pragma unroll
  for (int i = 0; i < state.T; i++)
#pragma unroll
    for (int j = 0; j < state.T; j++) state.g[i][j] = 0;
  if (L == 1) {
    state.g[0][0] = own[0] + 4 * own[1];
    state.g[1][1] = own[2] + 4 * own[3];
    state.g[0][1] = state.g[1][0] = w[0] + 2 * w[1] + 2 * w[2] + 4 * w[3];
    state.g[0][2] = state.g[2][0] = w[0] + 4 * w[1] + 2 * w[2] + 8 * w[3];
    state.g[1][2] = state.g[2][1] = w[0] + 2 * w[1] + 4 * w[2] + 8 * w[3];
    state.g[2][2] = w[0] + 4 * w[1] + 4 * w[2] + 16 * w[3];
    state.total[0] = cell[0] + 2.0 * cell[1] + 2.0 * cell[2] + 4.0 * cell[3];
  } else {
#pragma unroll
    for (int i = 0; i < state.X; i++) state.g[i][i] = own[i];
#pragma unroll
    for (int c = 0; c < state.Q; c++) {
      const int i = c % L, j = L + c / L, z = state.X + c;
      state.g[i][j] = state.g[j][i] = state.g[i][z] = state.g[z][i] = state.g[j][z] = state.g[z][j] = state.g[z][z] =
          w[c];
      state.total[c] = cell[c];
    }
  }
#pragma unroll
  for (int i = 0; i < state.X; i++) state.size[i] = sqrt(state.g[i][i]);
#pragma unroll
  for (int q = 0; q < state.Q; q++) state.zz[q] = state.g[state.X + q][state.X + q];
}

/* Sums of a column of U or of an outcome with Z. */
template <int L>
__device__ static inline void sums_with_z(const scan_tile &part, const int32_t *at, const scan_column &column,
                                          const pair_state<L> &state, double *out)
{
#pragma unroll
  for (int q = 0; q < state.Q; q++)
    out[q] = column.slot < 0 ? column.step * state.total[q]
                             : digit_sum(at + (size_t) (column.slot + q) * part.slot_size, part.slot_size,
                                         column.digits, state.Q, part.base, column.step);
}

/* Solves for one column of X: M^-1 grows by it. */
template <int L> __device__ static inline void sweep(pair_state<L> &state, int p)
{
  const double inverse = 1 / state.g[p][p];
  double row[pair_state<L>::T];
#pragma unroll
  for (int j = 0; j < state.T; j++) row[j] = state.g[p][j];
#pragma unroll
  for (int i = 0; i < state.T; i++) {
    if (i == p) continue;
    const double factor = row[i] * inverse;
#pragma unroll
    for (int j = 0; j < state.T; j++)
      if (j != p) state.g[i][j] -= factor * row[j];
    state.g[i][p] = state.g[p][i] = factor;
  }
  state.g[p][p] = -inverse;
}

/* Takes what U explains off the products. */
template <int L>
__device__ static inline void take_off_u(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b,
                                         pair_state<L> &state)
{
  double with[pair_state<L>::T];
  for (uint32_t l = 0; l < part.k; l++) {
    own_sums<L>(part, 1 + l, a, b, with);
    sums_with_z<L>(part, at, part.columns[1 + l], state, with + state.X);
#pragma unroll
    for (int i = 0; i < state.T; i++)
#pragma unroll
      for (int j = 0; j < state.T; j++) state.g[i][j] -= with[i] * with[j];
  }
}

/* Solves for X. Returns false where a column may or may not follow from others; exact: one of which nothing is left
 * follows from the covariates, and else `surely` of its squares is. rank: grows by the columns of X that are left. */
template <int L> __device__ static inline bool solve_x(pair_state<L> &state, bool exact, double surely, uint32_t *rank)
{
#pragma unroll
  for (int p = 0; p < state.T; p++) {
    bool there = state.kept >> p & 1;
    if (p < state.X) {
      const double left = state.g[p][p], whole = state.size[p] * state.size[p];
      if (there && exact && left <= NOTHING_LEFT * whole)
        there = false;
      else if (there && !(left > surely * whole))
        return false;
    }
    if (!there) {
#pragma unroll
      for (int i = 0; i < state.T; i++) state.g[i][p] = state.g[p][i] = 0;
    } else if (p < state.X) {
      sweep<L>(state, p);
      ++*rank;
    }
  }
  return true;
}

/* S^-1 by Cholesky's decomposition of S scaled to a diagonal of 1; columns that are not kept are left out. */
template <int L> struct interaction {
  static constexpr int Q = L * L;
  double root[Q][Q]; /* lower triangle: the inverse of S = (D R)(D R)' is applied by solving */
  double scale[Q];   /* of the diagonal; 0: left out */
  double trace;      /* of the inverse of the scaled S, at least 1 / its least eigenvalue */
};

/* Decomposes S. Returns false where it is not known to be positive definite. */
template <int L> __device__ static inline bool factor(const pair_state<L> &state, interaction<L> &out)
{
  constexpr int Q = L * L, X = 2 * L;
#pragma unroll
  for (int q = 0; q < Q; q++) {
    const double whole = state.g[X + q][X + q];
    const bool there = state.kept >> (X + q) & 1;
    if (there && !(whole > 0)) return false;
    out.scale[q] = there ? sqrt(whole) : 0;
  }
#pragma unroll
  for (int j = 0; j < Q; j++) {
#pragma unroll
    for (int i = j; i < Q; i++) {
      const bool there = out.scale[i] > 0 && out.scale[j] > 0;
      double value = there ? state.g[X + i][X + j] / (out.scale[i] * out.scale[j]) : i == j ? 1.0 : 0.0;
#pragma unroll
      for (int l = 0; l < j; l++) value -= out.root[i][l] * out.root[j][l];
      if (i == j) {
        if (!(value > 1e-9)) return false;
        out.root[j][j] = sqrt(value);
      } else
        out.root[i][j] = value / out.root[j][j];
    }
  }
  out.trace = 0;
#pragma unroll
  for (int c = 0; c < Q; c++) { /* squares of the inverse of the root */
    double column[Q];
#pragma unroll
    for (int i = 0; i < Q; i++) {
      double value = i == c;
#pragma unroll
      for (int l = 0; l < i; l++) value -= out.root[i][l] * column[l];
      column[i] = value / out.root[i][i];
      if (out.scale[c] > 0) out.trace += column[i] * column[i];
    }
  }
  return true;
}

/* Whether the CPU, too, finds something left of every column of Z. */
template <int L> __device__ static inline bool surely_left(const pair_state<L> &state, const interaction<L> &f)
{
#pragma unroll
  for (int q = 0; q < L * L; q++) {
    const double left = f.scale[q] * f.scale[q] / f.trace;
    const double whole = L == 1 ? 4 * fmin(state.size[0] * state.size[0], state.size[1] * state.size[1]) : state.zz[q];
    if (f.scale[q] > 0 && !(left > 1e-8 * whole)) return false;
  }
  return true;
}

/* Bounds how far errors of sums can move a pair's score; errors of an outcome are separate. */
template <int L> struct pair_errors {
  double reach[L * L]; /* at least the length of z less what X explains */
  double many[L * L];  /* 1 + |coefficients of X in z| */
  double theta;
};

/* S is quadratic in the sums P = Z'U: with d the error of P, it moves by R d' + d R' + d (I + U'X M^-1 X'U) d', R being
 * what X leaves of P. Errors of the weights are those of a sum over n rows of at most 16 times a step. */
template <int L>
__device__ static inline bool bound_errors(const scan_tile &part, const pair_state<L> &state, const interaction<L> &f,
                                           pair_errors<L> &out)
{
  constexpr int Q = L * L, X = 2 * L;
  double spread = 0, sum = 0;
#pragma unroll
  for (int x = 0; x < X; x++) spread += sqrt(fmax(0.0, -state.g[x][x])) * state.size[x];
  spread = 1 + spread * spread;
#pragma unroll
  for (int q = 0; q < Q; q++) {
    out.reach[q] = sqrt(state.zz[q]);
    out.many[q] = 1;
#pragma unroll
    for (int x = 0; x < X; x++) {
      const double coefficient = fabs(state.g[x][X + q]);
      out.reach[q] += coefficient * state.size[x];
      out.many[q] += coefficient;
    }
  }
  const double h = part.step_of_u;
#pragma unroll
  for (int q = 0; q < Q; q++)
#pragma unroll
    for (int r = 0; r < Q; r++) {
      if (!(f.scale[q] > 0 && f.scale[r] > 0)) continue;
      double error = h * (out.reach[q] * state.total[r] + out.reach[r] * state.total[q]) +
                     h * h * state.total[q] * state.total[r] * spread +
                     16 * part.step_of_w * part.n * out.many[q] * out.many[r];
      error /= f.scale[q] * f.scale[r];
      sum += error * error;
    }
  out.theta = sqrt(sum) * f.trace + 1e-9;
  return out.theta < MAX_THETA && surely_left<L>(state, f);
}

/* The interval of N' S^-1 N, N being known up to `error`. */
template <int L>
__device__ static inline void bound_score(const interaction<L> &f, const double (&rest)[L * L],
                                          const double (&error)[L * L], double theta, double *low, double *high)
{
  double score = 0, eta = 0, solved[L * L];
#pragma unroll
  for (int q = 0; q < L * L; q++) {
    const bool there = f.scale[q] > 0;
    double value = there ? rest[q] / f.scale[q] : 0;
#pragma unroll
    for (int l = 0; l < q; l++) value -= f.root[q][l] * solved[l];
    solved[q] = value / f.root[q][q];
    score += solved[q] * solved[q];
    if (there) eta += error[q] * error[q] / (f.scale[q] * f.scale[q]);
  }
  const double root = sqrt(score), slack = sqrt(eta * f.trace) + 1e-9 * root;
  const double down = fmax(0.0, root - slack);
  *low = down * down / (1 + theta);
  *high = (root + slack) * (root + slack) / (1 - theta);
}

/* The interval of an outcome's score: 1; no score: 0; unsure: -1. rank: of U and X. */
template <int L>
__device__ static inline int score_outcome(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b, uint32_t e,
                                           const pair_state<L> &state, const interaction<L> &f,
                                           const pair_errors<L> &errors, uint32_t rank, double *low, double *high)
{
  constexpr int Q = L * L, X = 2 * L;
  const scan_column column = part.columns[1 + part.k + e];
  double with_x[X], rest[Q], beta[X], variance = 1, length = 0, all = 0;
  own_sums<L>(part, 1 + part.k + e, a, b, with_x);
  sums_with_z<L>(part, at, column, state, rest);
#pragma unroll
  for (int x = 0; x < X; x++) {
    beta[x] = 0;
#pragma unroll
    for (int y = 0; y < X; y++) beta[x] -= state.g[x][y] * with_x[y];
    length += fabs(beta[x]) * state.size[x];
    all += fabs(beta[x]);
#pragma unroll
    for (int q = 0; q < Q; q++) rest[q] -= state.g[x][X + q] * with_x[x];
  }
  if (part.estimated) {
    variance = part.squares[e];
#pragma unroll
    for (int x = 0; x < X; x++) variance -= beta[x] * with_x[x];
    if (!(variance > 1e-8 * part.squares[e])) return -1;
    variance /= (double) (part.n - rank);
  }
  double error[Q];
#pragma unroll
  for (int q = 0; q < Q; q++)
    error[q] = column.step / 2 * state.total[q] + part.step_of_u * length * state.total[q] +
               16 * part.step_of_w * part.n * errors.many[q] * all;
  bound_score<L>(f, rest, error, errors.theta, low, high);
  *low /= variance;
  *high /= variance;
  return 1;
}

/* Everything about a pair but its outcomes: 1 to go on, 0 no score, -1 unsure. */
template <int L>
__device__ static inline int begin_pair(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b,
                                        pair_state<L> &state, interaction<L> &f, pair_errors<L> &errors, uint32_t *rank)
{
  const int none[4] = { 0, 0, 0, 0 };
  const double own[4] = { part.own[a], part.own[part.variants + a], part.own[b], part.own[part.variants + b] };
  int cell[4];
  double w[4];
  state.kept = part.kept[count_pair(part, at, a, b, none, part.n, cell)];
  if (!(state.kept >> state.X)) return 0;
  weigh_cells(part, at, cell, w);
  fill_products<L>(own, cell, w, state);
  take_off_u<L>(part, at, a, b, state);
  *rank = part.k;
  return solve_x<L>(state, !part.weighted, part.weighted ? SURELY_LEFT_ROUNDED : SURELY_LEFT, rank) &&
                 factor<L>(state, f) && bound_errors<L>(part, state, f, errors)
             ? 1
             : -1;
}
