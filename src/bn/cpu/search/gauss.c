/* Scores of a Gaussian node with one more parent, for many at once, and with one parent less, for each; see
 * gauss.h. A family is a list of rows of one matrix of covariances, its parents ascending and the child last. With
 * its Cholesky factor L, what a candidate adds to the parents is its row of L, and the logarithm of the determinant
 * grows by that of the candidate's residual variance. Sixteen candidates are lanes of two registers; each lane's
 * arithmetic is the same with any instruction set. For one parent less, the determinant without a member is that of all
 * times the member's diagonal entry of the inverse, L^-T L^-1. */
#include "core/numbers/loops.h"
#include "bn/both/joint.h"
#include "bn/cpu/search/gauss.h"

#define LANES WEFT_BN_GAUSS_LANES
#define MAX_MEMBERS (WEFT_BN_MAX_PARENTS + 2)

typedef double eight __attribute__((vector_size(64), aligned(8)));
typedef int64_t eight_whole __attribute__((vector_size(64), aligned(8)));

/* ln p of the data as a function of how many nodes there are and of the logarithm of the determinant, in units. */
typedef struct law {
  double constant, slope, unit;
} law;

typedef struct step {
  size_t m, count;
  const double *factor, *const *row, *left, *cross; /* of candidates: covariances with each parent, variances, with i */
  double log_parents, child_left;
  law parents, family; /* ln p of parents and candidate, and of these with the child */
  int64_t *out;
} step;

static law law_of(const weft_bn_ready *ready, size_t group, size_t m)
{
  return (law){ ready->gauss_constant[group * (ready->problem->p + 1) + m], weft_bn_gauss_coefficient(ready, group, m),
                ready->unit };
}

/* The nearest whole number of a value below 2^51 in magnitude: adding 1.5 · 2^52 leaves it in the last bits. */
INLINE int64_t whole(double x)
{
  const double shift = 6755399441055744.0;
  return (int64_t) (weft_bits_of(x + shift) - weft_bits_of(shift));
}

INLINE int64_t value_of(law l, double log_determinant)
{
  return whole((l.constant + l.slope * log_determinant) * l.unit);
}

/* ln x of a positive, finite and normal x: no special cases, so that it can be vectorised. */
INLINE double plain_log(double x)
{
  double f;
  const int k = weft_split_exponent(x, &f);
  return weft_log_parts(k, f, 0.0);
}

/* Scores of one child and its parents with each of step->count candidates, sixteen at a time: a forward substitution
 * per candidate gives its residual variance and covariance with the child, and these give both determinants. NEVER
 * where a variance is not positive. */
INLINE void extend(const step *job)
{
  double inverse[MAX_MEMBERS];
  for (size_t j = 0; j < job->m; j++) inverse[j] = 1 / job->factor[j * MAX_MEMBERS + j];
  const double *child = job->factor + job->m * MAX_MEMBERS;
  for (size_t from = 0; from < job->count; from += LANES) {
    eight half[MAX_MEMBERS][2], left[2], cross[2]; /* two registers: one is added to while the other is not ready yet */
    for (size_t r = 0; r < 2; r++) {
      left[r] = *(const eight *) (job->left + from + 8 * r);
      cross[r] = *(const eight *) (job->cross + from + 8 * r);
    }
    for (size_t j = 0; j < job->m; j++) {
      const double *factor = job->factor + j * MAX_MEMBERS;
      eight one = *(const eight *) (job->row[j] + from), two = *(const eight *) (job->row[j] + from + 8);
      for (size_t l = 0; l < j; l++) {
        one -= factor[l] * half[l][0];
        two -= factor[l] * half[l][1];
      }
      half[j][0] = one *= inverse[j];
      half[j][1] = two *= inverse[j];
      left[0] -= one * one;
      left[1] -= two * two;
      cross[0] -= one * child[j];
      cross[1] -= two * child[j];
    }
    double lefts[LANES], owns[LANES];
    int64_t out[LANES];
    eight_whole fine[2]; /* or the parents determine the candidate, or the child */
    for (size_t r = 0; r < 2; r++) {
      const eight own = job->child_left - cross[r] / left[r] * cross[r];
      fine[r] = (left[r] > 0) & (own > 0);
      *(eight *) (lefts + 8 * r) = left[r];
      *(eight *) (owns + 8 * r) = own;
    }
    WEFT_SIMD_PRAGMA(omp simd)
    for (size_t k = 0; k < LANES; k++) { /* 1 in place of a bad value, which no whole number could hold */
      const int some = lefts[k] > 0 && owns[k] > 0;
      const double with = job->log_parents + plain_log(some ? lefts[k] : 1);
      out[k] = value_of(job->family, with + plain_log(some ? owns[k] : 1)) - value_of(job->parents, with);
    }
    for (size_t k = 0; k < LANES && from + k < job->count; k++)
      job->out[from + k] = fine[k / 8][k % 8] ? out[k] : WEFT_BN_NEVER;
  }
}

#define EXTEND(name, target) \
  target static void extend_##name(const step *job) { extend(job); }
WEFT_VARIANTS(EXTEND)

/* The factor of the members, parents and then the child; *log_parents: of the parents' determinant. Returns the child's
 * residual variance. */
static double factor_family(const double *matrix, size_t stride, const size_t *parents, size_t m, size_t child,
                            double *factor, double *log_parents)
{
  size_t member[MAX_MEMBERS];
  *log_parents = 0;
  for (size_t k = 0; k < m; k++) {
    member[k] = parents[k];
    *log_parents += weft_bn_gauss_row(matrix, stride, member, k, factor);
  }
  member[m] = child;
  weft_bn_gauss_row(matrix, stride, member, m, factor);
  return factor[m * MAX_MEMBERS + m] * factor[m * MAX_MEMBERS + m];
}

/* `row`, `left` and `cross` are read up to the next multiple of LANES. Takes no memory and cannot fail. */
void weft_bn_gauss_extend(const weft_bn_ready *ready, weft_bn_covariances covariances, const size_t *parents, size_t m,
                          const double *const *row, const double *left, const double *cross, size_t count, int64_t *out)
{
  double factor[MAX_MEMBERS * MAX_MEMBERS];
  step job = { .m = m,
               .count = count,
               .factor = factor,
               .row = row,
               .left = left,
               .cross = cross,
               .out = out,
               .parents = law_of(ready, covariances.group, m + 1),
               .family = law_of(ready, covariances.group, m + 2) };
  job.child_left =
      factor_family(covariances.matrix, covariances.stride, parents, m, covariances.child, factor, &job.log_parents);
  WEFT_VARIANT_HERE(extend)(&job);
}

/* out[k]: raw score of the child without parent k, m of them; m must be at least 1. NEVER where the determinant is
 * no number. */
void weft_bn_gauss_without(const weft_bn_ready *ready, weft_bn_covariances covariances, const size_t *parents, size_t m,
                           int64_t *out)
{
  double factor[MAX_MEMBERS * MAX_MEMBERS], inverse[MAX_MEMBERS * MAX_MEMBERS], log_parents;
  const law fewer = law_of(ready, covariances.group, m - 1), family = law_of(ready, covariances.group, m);
  const double log_all =
      log(factor_family(covariances.matrix, covariances.stride, parents, m, covariances.child, factor, &log_parents));
  for (size_t k = 0; k < m; k++) {
    double *column = inverse + k * MAX_MEMBERS, square = 0; /* column k of L^-1 */
    column[k] = 1 / factor[k * MAX_MEMBERS + k];
    for (size_t j = k + 1; j <= m; j++) {
      double dot = 0;
      for (size_t l = k; l < j; l++) dot -= factor[j * MAX_MEMBERS + l] * column[l];
      column[j] = dot / factor[j * MAX_MEMBERS + j];
    }
    for (size_t j = k; j < m; j++) square += column[j] * column[j];
    const double rest = log_parents + log(square), all = log_parents + log_all + log(square + column[m] * column[m]);
    out[k] = isfinite(rest + all) ? value_of(family, all) - value_of(fewer, rest) : WEFT_BN_NEVER;
  }
}

/* The inverse of the family's matrix by sweeps of its rows; the child is the last one. Its residual variance is 1 over
 * its diagonal entry, and leaving out a parent takes a rank of one from the inverse of the others. */
size_t weft_bn_gauss_thin(weft_bn_covariances covariances, size_t *parents, size_t m, size_t most, double factor,
                          double *work)
{
  const size_t size = m + 1;
  size_t left = m, at = 0;
  for (size_t j = 0; j < size; j++) {
    const double *from = covariances.matrix + (j < m ? parents[j] : covariances.child) * covariances.stride;
    for (size_t k = 0; k < size; k++) work[j * size + k] = from[k < m ? parents[k] : covariances.child];
  }
  for (size_t s = 0; s < size; s++) {
    double *pivot = work + s * size;
    const double inverse = 1 / pivot[s];
    if (!(pivot[s] > 0) || !isfinite(inverse)) return 0;
    for (size_t j = 0; j < size; j++) {
      double *row = work + j * size;
      const double times = row[s] * inverse;
      if (j == s) continue;
      row[s] = 0;
      for (size_t k = 0; k < size; k++) row[k] -= k == s ? times : times * pivot[k];
    }
    pivot[s] = 1;
    for (size_t k = 0; k < size; k++) pivot[k] *= inverse;
  }
  while (left > 0) { /* a parent that is out has a zero in the diagonal */
    const double *child = work + m * size;
    size_t out = m;
    double least = INFINITY;
    for (size_t k = 0; k < m; k++) {
      const double own = work[k * size + k], less = child[k] * child[k] / own;
      if (own > 0 && less < least) {
        least = less;
        out = k;
      }
    }
    if (out == m || (left <= most && child[m] > factor * (child[m] - least))) break;
    double *gone = work + out * size;
    for (size_t j = 0; j < size; j++) {
      double *row = work + j * size;
      const double times = row[out] / gone[out];
      if (j == out) continue;
      for (size_t k = 0; k < size; k++) row[k] -= times * gone[k];
    }
    gone[out] = 0;
    left--;
  }
  for (size_t k = 0; k < m; k++)
    if (work[k * size + k] > 0) parents[at++] = parents[k];
  return at <= most ? at : 0;
}
