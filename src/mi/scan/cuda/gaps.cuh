/* The same for pairs with missing genotypes, whose model has the rows in which both genotypes are known.
 *
 * A missing genotype is 0 in products, so that sums with Z are right. Sums of X over these rows are those over all rows
 * less products with a plane of missing genotypes: exact counts, and sums of U's highest digits, as few rows are taken
 * off. U'U becomes I - A - B + C, A and B summed over each variant's missing rows beforehand, C over the rows where
 * both are missing. Only C's trace is counted, t: C is taken for t / 2 on the diagonal, and is wrong by at most that.
 *
 * With G the products of U and X, F what is known of them, G = F + D, and V = (-gamma, -beta, 1) what F makes of z:
 *   S = S^ + V'DV - (DV)' G^-1 (DV),   N = N^ + V'd - (DV)' G^-1 g,   d: the errors of g = (U, X)'e and Z'e.
 * tau bounds (DV)' G^-1 (DV), as G >= (1 - epsilon) F. */
#pragma once

#include "mi/limits.h"
#include "mi/scan/cuda/score.cuh"

#define WEFT_SCAN_SQUARE_DIGITS 2
#define MIN_LEFT 0.1 /* of the least eigenvalue of U'U */

template <int L> struct gap_state {
  static constexpr int X = 2 * L, T = pair_state<L>::T, K = WEFT_MI_SCAN_GAPS_COLUMNS;
  double root[K * (K + 1) / 2]; /* Cholesky's, of U'U */
  double with[K][T];            /* this, solved for U'X and U'Z */
  int lost[4], both;            /* people with one copy, with two of a and then of b, whose other genotype is missing */
  uint32_t rows;
  double lost_x[X]; /* sums of |x| over these */
  double trace;     /* t, at most */
  double least;     /* eigenvalue of U'U */
  /* bounds of errors */
  double epsilon, theta;
  double own[X];                       /* roots of the diagonal of M^-1 */
  double gamma[L * L], beyond[L * L];  /* its length; the same without its part along U'root */
  double tau[L * L], beta_lost[L * L]; /* |beta| times lost_x */
};

/* A sum of squares over the rows where both genotypes are missing. */
__device__ static inline double square_sum(const scan_tile &part, const int32_t *at, int slot, double step)
{
  return fmax(0.0, digit_sum(at + (size_t) slot * part.slot_size, part.slot_size, WEFT_SCAN_SQUARE_DIGITS, 1, part.base,
                             step));
}

/* Counts of the rows that a pair loses, by the genotype of the other variant, and the trace of U'U over rows where both
 * are missing. */
template <int L>
__device__ static inline void count_gaps(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b,
                                         gap_state<L> &gaps)
{
  int lost[5];
#pragma unroll
  for (int c = 0; c < 5; c++) lost[c] = at[(size_t) (part.count_slot + c) * part.slot_size];
#pragma unroll
  for (int c = 0; c < 4; c++) gaps.lost[c] = lost[c];
#pragma unroll
  for (int x = 0; x < gaps.X; x++) gaps.lost_x[x] = L == 1 ? lost[2 * x] + 2.0 * lost[2 * x + 1] : lost[x];
  gaps.both = lost[4];
  gaps.rows = part.n - part.absent[a] - part.absent[b] + (uint32_t) gaps.both;
  gaps.least = 1 - part.lost_length[a] - part.lost_length[b];
  gaps.trace = 0;
  if (gaps.both)
    gaps.trace = square_sum(part, at, part.leverage_slot, part.leverage_step) + part.leverage_step / 2 * gaps.both;
}

/* Sums of a column with X over the pair's rows. */
template <int L>
__device__ static inline void sums_with_x(const scan_tile &part, const int32_t *at, uint32_t l, uint32_t a, uint32_t b,
                                          const gap_state<L> &gaps, double *out)
{
  const scan_column &column = part.columns[l];
  own_sums<L>(part, l, a, b, out);
  const int apart = l > part.k ? gaps.X + 1 : gaps.X;
#pragma unroll
  for (int x = 0; x < gaps.X; x++)
    out[x] -= column.slot < 0 ? column.step * gaps.lost_x[x]
                              : digit_sum(at + (size_t) (column.lost_slot + x) * part.slot_size, part.slot_size,
                                          column.lost_digits, apart, part.base, column.lost_step);
}

/* Row l of Cholesky's root of U'U. Returns false where it is not positive definite. */
template <int L>
__device__ static inline bool root_of_row(const scan_tile &part, uint32_t a, uint32_t b, uint32_t l, gap_state<L> &gaps)
{
  double *row = gaps.root + l * (l + 1) / 2;
  for (uint32_t m = 0; m <= l; m++) {
    const double *lost = part.lost + (size_t) (l * (l + 1) / 2 + m) * part.variants,
                 *other = gaps.root + m * (m + 1) / 2;
    double value = (l == m ? 1 + gaps.trace / 2 : 0) - lost[a] - lost[b];
    for (uint32_t r = 0; r < m; r++) value -= row[r] * other[r];
    if (l == m && !(value > 0)) return false;
    row[m] = l == m ? sqrt(value) : value / other[m];
  }
  return true;
}

/* Takes what U explains over the pair's rows off the products. */
template <int L>
__device__ static inline bool take_off_u(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b,
                                         pair_state<L> &state, gap_state<L> &gaps)
{
  constexpr int X = gap_state<L>::X, T = gap_state<L>::T;
  for (uint32_t l = 0; l < part.k; l++) {
    if (!root_of_row<L>(part, a, b, l, gaps)) return false;
    const double *row = gaps.root + l * (l + 1) / 2;
    double with[T];
    sums_with_x<L>(part, at, 1 + l, a, b, gaps, with);
    sums_with_z<L>(part, at, part.columns[1 + l], state, with + X);
    for (uint32_t r = 0; r < l; r++)
#pragma unroll
      for (int i = 0; i < T; i++) with[i] -= row[r] * gaps.with[r][i];
#pragma unroll
    for (int i = 0; i < T; i++) gaps.with[l][i] = with[i] /= row[l];
#pragma unroll
    for (int i = 0; i < T; i++)
#pragma unroll
      for (int j = 0; j < T; j++) state.g[i][j] -= with[i] * with[j];
  }
  return true;
}

/* The length of gamma for one column of Z, and of what is not along U'root. */
template <int L>
__device__ static inline void solve_gamma(const scan_tile &part, const pair_state<L> &state, gap_state<L> &gaps, int q)
{
  constexpr int X = gap_state<L>::X;
  double gamma[WEFT_MI_SCAN_GAPS_COLUMNS], squares = 0, along = 0;
  for (uint32_t l = 0; l < part.k; l++) {
    gamma[l] = gaps.with[l][X + q];
#pragma unroll
    for (int x = 0; x < X; x++) gamma[l] -= state.g[x][X + q] * gaps.with[l][x];
  }
  for (uint32_t l = part.k; l-- > 0;) {
    for (uint32_t m = l + 1; m < part.k; m++) gamma[l] -= gaps.root[m * (m + 1) / 2 + l] * gamma[m];
    gamma[l] /= gaps.root[l * (l + 1) / 2 + l];
    squares += gamma[l] * gamma[l];
    along += gamma[l] * part.constant[l];
  }
  gaps.gamma[q] = sqrt(squares);
  gaps.beyond[q] = sqrt(fmax(0.0, squares - along * along) + 1e-12 * squares);
}

/* The root of w'F^-1 w, at most: w has length `of_u` in U, and at most of_x[x] in X. */
template <int L>
__device__ static inline double length_by_f(const pair_state<L> &state, const gap_state<L> &gaps, double of_u,
                                            const double (&of_x)[2 * L])
{
  double sum = 0;
#pragma unroll
  for (int x = 0; x < 2 * L; x++) sum += gaps.own[x] * (of_x[x] + state.size[x] * of_u * rsqrt(gaps.least));
  return sqrt(of_u * of_u / gaps.least + sum * sum);
}

/* epsilon, theta and tau. */
template <int L>
__device__ static inline bool bound_gaps(const scan_tile &part, const pair_state<L> &state, const interaction<L> &f,
                                         gap_state<L> &gaps)
{
  constexpr int Q = L * L, X = 2 * L;
  const double weights = 16 * part.step_of_w * part.n, half = gaps.trace / 2;
  double spread = 0, lean = 0, all = 0, sum = 0, reach[Q], many[Q];
#pragma unroll
  for (int x = 0; x < X; x++) {
    gaps.own[x] = sqrt(fmax(0.0, -state.g[x][x]));
    spread += gaps.own[x] * state.size[x];
    lean += gaps.own[x] * gaps.lost_x[x];
    all += gaps.own[x];
  }
  spread = (1 + spread * spread) / gaps.least;
  gaps.epsilon = half * spread + 2 * sqrt(spread) * part.lost_step_of_u * lean + weights * all * all + 1e-9;
  if (!(gaps.epsilon < 0.5)) return false;
#pragma unroll
  for (int q = 0; q < Q; q++) {
    double of_x[X];
    solve_gamma<L>(part, state, gaps, q);
    gaps.beta_lost[q] = 0;
    many[q] = 1;
#pragma unroll
    for (int x = 0; x < X; x++) {
      const double beta = fabs(state.g[x][X + q]);
      gaps.beta_lost[q] += beta * gaps.lost_x[x];
      many[q] += beta;
    }
#pragma unroll
    for (int x = 0; x < X; x++) of_x[x] = part.lost_step_of_u * gaps.lost_x[x] * gaps.gamma[q] + weights * many[q];
    reach[q] = part.step_of_u * state.total[q] + part.lost_step_of_u * gaps.beta_lost[q];
    gaps.tau[q] = length_by_f<L>(state, gaps, half * gaps.gamma[q] + reach[q], of_x) * rsqrt(1 - gaps.epsilon);
  }
#pragma unroll
  for (int q = 0; q < Q; q++)
#pragma unroll
    for (int r = 0; r < Q; r++) {
      if (!(f.scale[q] > 0 && f.scale[r] > 0)) continue;
      double error = half * gaps.gamma[q] * gaps.gamma[r] + gaps.gamma[q] * reach[r] + gaps.gamma[r] * reach[q] +
                     weights * many[q] * many[r] + gaps.tau[q] * gaps.tau[r];
      error /= f.scale[q] * f.scale[r];
      sum += error * error;
    }
  gaps.theta = sqrt(sum) * f.trace + 1e-9;
  return gaps.theta < MAX_THETA && surely_left<L>(state, f);
}

/* As begin_pair(). */
template <int L>
__device__ static inline int begin_gaps(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b,
                                        pair_state<L> &state, interaction<L> &f, gap_state<L> &gaps, uint32_t *rank)
{
  int cell[4];
  double w[4], own[4] = { part.own[a], part.own[part.variants + a], part.own[b], part.own[part.variants + b] };
  count_gaps<L>(part, at, a, b, gaps);
  if (!(gaps.least > MIN_LEFT) || gaps.rows < part.k + WEFT_MI_SCAN_ROWS_BEYOND) return -1;
  state.kept = part.kept[count_pair(part, at, a, b, gaps.lost, gaps.rows, cell)];
  if (!(state.kept >> state.X)) return 0;
  weigh_cells(part, at, cell, w);
#pragma unroll
  for (int c = 0; c < 4; c++)
    own[c] -= part.weighted ? digit_sum(at + (size_t) (part.columns[0].lost_slot + c) * part.slot_size, part.slot_size,
                                        part.columns[0].lost_digits, 4, 255, part.columns[0].lost_step)
                            : (double) gaps.lost[c];
  fill_products<L>(own, cell, w, state);
  *rank = part.k;
  return take_off_u<L>(part, at, a, b, state, gaps) && solve_x<L>(state, false, SURELY_LEFT_ROUNDED, rank) &&
                 factor<L>(state, f) && bound_gaps<L>(part, state, f, gaps)
             ? 1
             : -1;
}

/* As score_outcome(). */
template <int L>
__device__ static inline int score_gaps(const scan_tile &part, const int32_t *at, uint32_t a, uint32_t b, uint32_t e,
                                        const pair_state<L> &state, const interaction<L> &f, const gap_state<L> &gaps,
                                        uint32_t rank, double *low, double *high)
{
  constexpr int Q = L * L, X = 2 * L;
  const scan_column &column = part.columns[1 + part.k + e];
  const uint32_t triangle = part.k * (part.k + 1) / 2;
  const double *squares_lost = part.lost + (size_t) (triangle + part.k * part.outcomes + e) * part.variants;
  double with_x[X], rest[Q], of_u[WEFT_MI_SCAN_GAPS_COLUMNS], explained = 0, error[Q], of_x[X];
  const double both = digit_sum(at + (size_t) (column.lost_slot + X) * part.slot_size, part.slot_size,
                                column.lost_digits, X + 1, part.base, column.lost_step);
  const double squares_slack = column.square_step / 2 * gaps.both;
  const double squares = gaps.both ? square_sum(part, at, column.square_slot, column.square_step) : 0;
  sums_with_x<L>(part, at, 1 + part.k + e, a, b, gaps, with_x);
  sums_with_z<L>(part, at, column, state, rest);
  for (uint32_t l = 0; l < part.k; l++) {
    const double *lost = part.lost + (size_t) (triangle + l * part.outcomes + e) * part.variants,
                 *row = gaps.root + l * (l + 1) / 2;
    double value = part.constant[l] * both / part.constant_length - lost[a] - lost[b];
    for (uint32_t r = 0; r < l; r++) value -= row[r] * of_u[r];
    of_u[l] = value /= row[l];
    explained += value * value;
#pragma unroll
    for (int x = 0; x < X; x++) with_x[x] -= gaps.with[l][x] * value;
#pragma unroll
    for (int q = 0; q < Q; q++) rest[q] -= gaps.with[l][X + q] * value;
  }
#pragma unroll
  for (int x = 0; x < X; x++) {
    double beta = 0;
#pragma unroll
    for (int y = 0; y < X; y++) beta -= state.g[x][y] * with_x[y];
    explained += beta * with_x[x];
    of_x[x] = column.lost_step / 2 * gaps.lost_x[x];
#pragma unroll
    for (int q = 0; q < Q; q++) rest[q] -= state.g[x][X + q] * with_x[x];
  }
  /* U'e is wrong by `slack` along U'root, and by `apart` across it */
  const double slack = column.lost_step / 2 * gaps.both / part.constant_length,
               apart = sqrt(gaps.trace * (squares + squares_slack));
  const double length = sqrt(fmax(0.0, explained)), wrong = length_by_f<L>(state, gaps, slack + apart, of_x);
  double most = 1, least = 1;
  if (part.estimated) {
    const double left = part.squares[e] - squares_lost[a] - squares_lost[b] + squares - explained;
    const double up = (length + wrong) * (length + wrong) / (1 - gaps.epsilon) - explained,
                 down = fmax(0.0, length - wrong);
    most = (left + squares_slack + explained - down * down / (1 + gaps.epsilon)) / (double) (gaps.rows - rank);
    least = left - squares_slack - up;
    if (!(least > 1e-8 * part.squares[e])) return -1;
    least /= (double) (gaps.rows - rank);
  }
#pragma unroll
  for (int q = 0; q < Q; q++)
    error[q] = gaps.beyond[q] * apart + gaps.gamma[q] * slack + column.lost_step / 2 * gaps.beta_lost[q] +
               column.step / 2 * state.total[q] + gaps.tau[q] * (length + wrong) * rsqrt(1 - gaps.epsilon);
  bound_score<L>(f, rest, error, gaps.theta, low, high);
  *low /= most;
  *high /= least;
  return 1;
}
