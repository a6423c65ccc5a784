/* Series for the Gaussian kernel in few dimensions: far-field moments of a node, translated into a Taylor series about
 * the middle of a group of queries, in which many nodes are added up; a query then costs one polynomial for all of
 * them.
 *
 * In units of √2 h, with a the vector between the middles, u a query's place from its middle and v a reference's from
 * its own,
 *
 *   exp(-|a + u - v|²) = Σ over α, β of  h_{α+β}(a)  v^α / α!  (-u)^β / β!
 *               h_k(a) = H_k(a) exp(-a²), products over dimensions
 *
 * which is cut off at total degree |α| + |β| < p. What is left out is the remainder of Taylor's series along the line
 * u - v. With Cramér's bound |H_k(z)| <= 1.0866 2^(k/2) √k! exp(z²/2), with ρ = (radius of the group + radius of the
 * node) / h, and r the least distance between their boxes, it is at most
 *
 *   1.0866 ρ^p / √p!  exp(-r² / 4h²)      for each unit of weight, in any dimension.
 *
 * A node joins with the least p that keeps this below its share of the group's tolerance, when the translation costs
 * less than evaluating the node for each 32 queries. Moments are kept in units of the node's own radius, so that they
 * serve every bandwidth; those of a node with children that have some are translated from these. (Greengard and Strain
 * 1991; graded order after Yang, Duraiswami, Gumerov and Davis 2003.) */
#include "core/call/parallel.h"
#include "kernel/cpu/tree/walk.h"
#include "kernel/cpu/tree/walk_nodes.h"
#include "kernel/cpu/tree/walk_series.h"
#include "kernel/cpu/tree/walk_state.h"

#define MAX_ORDER 24
#define MAX_DIMENSIONS 6
#define MIN_POINTS 64 /* of a node with moments */
#define LANES 8
#define SERIES_SHARE 0.3 /* of the tolerance, for all series of a group */
#define CRAMER 1.0866

struct weft_series {
  size_t d, m, order, terms;
  size_t within[MAX_ORDER + 1]; /* within[p]: terms of degree below p */
  unsigned char *power;         /* terms * d */
  int32_t *parent, *axis;       /* term = parent times coordinate `axis` */
  double *factorial;            /* α! */
  int32_t *sum;                 /* terms * terms: the term α + β, where its degree is below the order */
  int32_t *slot;                /* nodes: of moments, or -1 */
  double *middle;               /* slots * (d + 1): middle, radius */
  double *moments;              /* slots * m * terms: Σ w v^α / α!, v in units of the radius */
};

/* Greatest order by dimension: as great as translations of a few tens of thousands of products allow. */
static const size_t order_limit[MAX_DIMENSIONS + 1] = { 0, 24, 20, 15, 10, 7, 6 };

size_t weft_series_terms(const weft_series *series) { return series->terms; }
size_t weft_series_scratch(const weft_series *series)
{
  return 2 * series->terms + series->d * (MAX_ORDER + 2) + 4 * series->d;
}

/* ---- terms ---- */

/* All exponents by degree, the last dimension's running fastest. */
static void list_terms(weft_series *series)
{
  const size_t d = series->d;
  size_t count = 0;
  for (size_t degree = 0; degree < series->order; degree++) {
    series->within[degree] = count;
    unsigned char at[MAX_DIMENSIONS] = { 0 };
    at[0] = (unsigned char) degree;
    for (;;) {
      memcpy(series->power + count++ * d, at, d);
      /* the next one of this degree: moves one from the last nonzero place before the end to its right */
      size_t j = d - 1;
      while (j > 0 && !at[j - 1]) j--;
      if (j == 0) break;
      const unsigned char rest = at[d - 1];
      at[d - 1] = 0, at[j - 1]--, at[j] = (unsigned char) (rest + 1);
    }
  }
  series->within[series->order] = count;
}

/* A term's exponents are the digits of its key, of base `order`: the key of a product of terms is the sum of theirs. */
static weft_status link_terms(weft_arena *mem, weft_series *series)
{
  weft_status st = WEFT_OK;
  const size_t d = series->d;
  size_t place[MAX_DIMENSIONS + 1] = { 1 }, *key;
  int32_t *of_key;
  for (size_t j = 0; j < d; j++) place[j + 1] = place[j] * series->order;
  WEFT_TAKE(key, mem, series->terms);
  WEFT_TAKE(of_key, mem, place[d]);
  for (size_t term = 0; term < series->terms; term++) {
    key[term] = 0;
    for (size_t j = 0; j < d; j++) key[term] += series->power[term * d + j] * place[j];
    of_key[key[term]] = (int32_t) term;
  }
  for (size_t term = 0; term < series->terms; term++) {
    const unsigned char *at = series->power + term * d;
    size_t degree = 0;
    series->factorial[term] = 1;
    series->parent[term] = series->axis[term] = 0;
    for (size_t j = 0; j < d; j++) {
      degree += at[j];
      for (int k = 2; k <= at[j]; k++) series->factorial[term] *= k;
      if (at[j]) series->axis[term] = (int32_t) j;
    }
    if (degree) series->parent[term] = of_key[key[term] - place[series->axis[term]]];
    for (size_t other = 0; other < series->within[series->order - degree]; other++)
      series->sum[term * series->terms + other] = of_key[key[term] + key[other]];
  }
done:
  return st;
}

/* Powers v^α of `lanes` points side by side: coordinates v[axis * lanes + k] to powers to[term * lanes + k]. */
static inline void fill_powers(const weft_series *series, size_t terms, size_t lanes, const double *v, double *to)
{
  for (size_t k = 0; k < lanes; k++) to[k] = 1;
  for (size_t term = 1; term < terms; term++) {
    const double *from = to + (size_t) series->parent[term] * lanes, *x = v + (size_t) series->axis[term] * lanes;
    for (size_t k = 0; k < lanes; k++) to[term * lanes + k] = from[k] * x[k];
  }
}

/* ---- moments ---- */

/* LANES points at once. powers: terms * LANES. */
static void moments_of_points(const weft_series *series, const weft_kernel_task *task, const weft_tree *reference,
                              size_t node, double *powers)
{
  const size_t d = series->d, m = series->m, first = (size_t) reference->first[node],
               last = first + (size_t) reference->count[node];
  const size_t slot = (size_t) series->slot[node];
  const double *middle = series->middle + slot * (d + 1), scale = middle[d] > 0 ? 1 / middle[d] : 0;
  double *to = series->moments + slot * m * series->terms, at[MAX_DIMENSIONS][LANES];
  memset(to, 0, m * series->terms * sizeof *to);
  for (size_t i = first; i < last; i += LANES) {
    const size_t count = last - i < LANES ? last - i : LANES;
    memset(at, 0, sizeof at);
    for (size_t k = 0; k < count; k++)
      for (size_t j = 0; j < d; j++)
        at[j][k] = (reference->points.x[(i + k) * d + j] - middle[j] +
                    (reference->points.lo ? reference->points.lo[(i + k) * d + j] : 0)) *
                   scale;
    fill_powers(series, series->terms, LANES, at[0], powers);
    for (size_t c = 0; c < m; c++) {
      double weight[LANES] = { 0 };
      for (size_t k = 0; k < count; k++) weight[k] = task->weights[(i + k) * m + c];
      for (size_t term = 0; term < series->terms; term++) {
        double sum = 0;
        for (size_t k = 0; k < LANES; k++) sum += weight[k] * powers[term * LANES + k];
        to[c * series->terms + term] += sum;
      }
    }
  }
  for (size_t c = 0; c < m; c++)
    for (size_t term = 0; term < series->terms; term++) to[c * series->terms + term] /= series->factorial[term];
}

/* Adds the moments of a child: (v_child R_child + shift) / R. M_γ += Σ over α + β = γ of M_α (R_child / R)^|α|
 * shift^β / β!. */
static void moments_of_child(const weft_series *series, size_t child, size_t parent, double *powers)
{
  const size_t d = series->d;
  const double *a = series->middle + child * (d + 1), *b = series->middle + parent * (d + 1),
               scale = b[d] > 0 ? 1 / b[d] : 0;
  double shift[MAX_DIMENSIONS], ratio = 1;
  for (size_t j = 0; j < d; j++) shift[j] = (a[j] - b[j]) * scale;
  fill_powers(series, series->terms, 1, shift, powers);
  for (size_t term = 0; term < series->terms; term++) powers[term] /= series->factorial[term];
  for (size_t c = 0; c < series->m; c++) {
    const double *from = series->moments + (child * series->m + c) * series->terms;
    double *to = series->moments + (parent * series->m + c) * series->terms;
    ratio = 1;
    for (size_t degree = 0; degree < series->order; degree++, ratio *= a[d] * scale)
      for (size_t term = series->within[degree]; term < series->within[degree + 1]; term++) {
        const double value = from[term] * ratio;
        const int32_t *sum = series->sum + term * series->terms;
        for (size_t u = 0; u < series->within[series->order - degree]; u++) to[sum[u]] += value * powers[u];
      }
  }
}

/* Middle of a box and the greatest distance from it, rounded up. */
static void box_middle(const double *box, size_t d, double slack, double *middle)
{
  double square = 0;
  for (size_t j = 0; j < d; j++) {
    middle[j] = box[j] + 0.5 * (box[d + j] - box[j]);
    const double reach = fmax(box[d + j] - middle[j], middle[j] - box[j]) + slack;
    square += reach * reach;
  }
  middle[d] = sqrt(square) * (1 + 1e-12);
}

/* Then a node's are made from theirs, in less time than from its points. */
static int children_have_moments(const weft_series *series, const weft_tree *reference, size_t node)
{
  const int32_t k = reference->child[node];
  return k >= 0 && series->slot[k] >= 0 && series->slot[k + 1] >= 0;
}

/* Moments of all nodes that have a slot, from the leaves up: from the children's where both have them, otherwise from
 * the node's points. */
static weft_status fill_moments(weft_ctx *ctx, weft_arena *mem, weft_series *series, const weft_kernel_task *task,
                                const weft_tree *reference)
{
  weft_status st = WEFT_OK;
  double *powers;
  WEFT_TAKE(powers, mem, series->terms * LANES * (size_t) ctx->threads);
  for (size_t end = reference->nodes, start; end > 0;
       end = start) { /* from the leaves up: children come after their parents */
    const size_t batch = 4096 / series->terms * 64 + 64;
    start = end > batch ? end - batch : 0;
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) task->reference.n * (double) series->terms), dynamic)
    for (size_t node = start; node < end; node++)
      if (series->slot[node] >= 0 && !children_have_moments(series, reference, node))
        moments_of_points(series, task, reference, node, powers + (size_t) WEFT_THREAD() * series->terms * LANES);
    for (size_t node = end; node-- > start;) {
      const int32_t k = reference->child[node];
      if (series->slot[node] < 0 || !children_have_moments(series, reference, node)) continue;
      memset(series->moments + (size_t) series->slot[node] * series->m * series->terms, 0,
             series->m * series->terms * sizeof(double));
      moments_of_child(series, (size_t) series->slot[k], (size_t) series->slot[node], powers);
      moments_of_child(series, (size_t) series->slot[k + 1], (size_t) series->slot[node], powers);
    }
  }
done:
  return st;
}

/* The order at which a node as wide as the widest bandwidth has a tenth of the tolerance. */
static size_t choose_order(size_t d, double rel)
{
  double error = CRAMER;
  size_t p = 1;
  for (; p < order_limit[d] && error > 0.03 * rel; p++) error *= 1 / sqrt((double) p + 1);
  p += 2;
  return p < 4 ? 4 : p > order_limit[d] ? order_limit[d] : p;
}

/* Whether the products that moments take, each about as long as a pair, are few beside all pairs. */
static int worth_moments(const weft_series *series, size_t slots, size_t queries, size_t references)
{
  double translation = 1; /* C(order - 1 + 2 d, 2 d) */
  for (size_t k = 1; k <= 2 * series->d; k++) translation *= (double) (series->order - 1 + k) / (double) k;
  return 8 * ((double) slots * translation + (double) references * (double) series->terms) <
         (double) queries * (double) references;
}

/* *series = NULL where none would serve: other kernels than the Gaussian, many dimensions, many digits, few queries, no
 * node that is large and narrow enough, or, if asked, moments that cost more than they save. Otherwise it belongs to
 * mem. */
weft_status weft_series_prepare(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, const weft_tree *query,
                                const weft_tree *reference, double rel, double slack, double widest,
                                const weft_series **series)
{
  weft_status st = WEFT_OK;
  const size_t d = task->reference.d, nodes = reference->nodes;
  weft_series *made;
  *series = NULL;
  if (task->kind != WEFT_GAUSSIAN || d > MAX_DIMENSIONS || rel < 1e-10 || !nodes || query->points.n < 256)
    return WEFT_OK;
  WEFT_TAKE0(made, mem, 1);
  made->d = d, made->m = task->m, made->order = choose_order(d, rel);
  made->terms = 1;
  for (size_t k = 1; k <= d; k++) made->terms = made->terms * (made->order - 1 + k) / k;
  WEFT_TAKE(made->slot, mem, nodes);
  size_t slots = 0;
  for (size_t node = 0; node < nodes; node++) {
    double middle[MAX_DIMENSIONS + 1];
    box_middle(reference->box + node * 2 * d, d, slack, middle);
    made->slot[node] = reference->count[node] >= MIN_POINTS && middle[d] <= 3 * widest ? (int32_t) slots++ : -1;
  }
  if (!slots ||
      (task->series == WEFT_SERIES_IF_WORTH && !worth_moments(made, slots, query->points.n, reference->points.n)))
    goto done;
  WEFT_TAKE(made->power, mem, made->terms * d);
  WEFT_TAKE(made->parent, mem, made->terms);
  WEFT_TAKE(made->axis, mem, made->terms);
  WEFT_TAKE(made->factorial, mem, made->terms);
  WEFT_TAKE(made->sum, mem, made->terms * made->terms);
  WEFT_TAKE(made->middle, mem, slots * (d + 1));
  WEFT_TAKE(made->moments, mem, slots * made->m * made->terms);
  list_terms(made);
  WEFT_TRY(link_terms(mem, made));
  for (size_t node = 0; node < nodes; node++)
    if (made->slot[node] >= 0)
      box_middle(reference->box + node * 2 * d, d, slack, made->middle + (size_t) made->slot[node] * (d + 1));
  WEFT_TRY(fill_moments(ctx, mem, made, task, reference));
  *series = made;
done:
  return st;
}

/* ---- a group's series ---- */

/* In hands->powers: terms, terms, then d tables of h_k, then the group's middle and radius. */
static double *group_middle(const weft_series *series, weft_hands *hands)
{
  return hands->powers + 2 * series->terms + series->d * (MAX_ORDER + 2);
}

void weft_series_begin(const weft_walk *w, weft_hands *hands)
{
  const weft_series *series = w->series;
  memset(hands->local, 0, series->m * series->terms * sizeof *hands->local);
  memset(hands->local_error, 0, series->m * sizeof *hands->local_error);
  box_middle(w->query->box + hands->group * 2 * series->d, series->d, w->slack, group_middle(series, hands));
}

/* h_k(a) of each dimension, then of every term. */
static void fill_hermite(const weft_series *series, weft_hands *hands, size_t order, const double *a, double *to)
{
  double *table = hands->powers + 2 * series->terms;
  for (size_t j = 0; j < series->d; j++) {
    double *h = table + j * (MAX_ORDER + 2);
    h[0] = exp(-a[j] * a[j]), h[1] = 2 * a[j] * h[0];
    for (size_t k = 1; k + 1 < order; k++) h[k + 1] = 2 * a[j] * h[k] - 2 * (double) k * h[k - 1];
  }
  for (size_t i = 0; i < series->within[order]; i++) {
    to[i] = 1;
    for (size_t j = 0; j < series->d; j++) to[i] *= table[j * (MAX_ORDER + 2) + series->power[i * series->d + j]];
  }
}

/* Chooses the order p at which the error of the node's series is within the group's tolerance, gives up where its
 * products would cost more than the pairs, and otherwise adds it to hands->local and its error to hands->local_error.
 */
int weft_series_absorb(const weft_walk *w, weft_hands *hands, size_t node, double nearest)
{
  const weft_series *series = w->series;
  const size_t d = series->d, m = series->m;
  if (series->slot[node] < 0 || weft_walk_holds_nearest(w, hands, node)) return 0;
  const double h = w->task->h, *b = group_middle(series, hands),
               *a = series->middle + (size_t) series->slot[node] * (d + 1);
  const double far = exp(-nearest / 4), rho = (a[d] + b[d]) / h;
  double allowed = INFINITY; /* for each unit of weight */
  if (rho > 4) return 0;
  for (size_t c = 0; c < m; c++)
    if (w->column[c] > 0) allowed = fmin(allowed, SERIES_SHARE * hands->min_tolerance[c] / w->column[c]);
  double error = CRAMER * far, scale = error; /* scale: Σ of the bounds of what is added up, for its rounding */
  size_t p = 0;
  while (p < series->order && error > allowed) {
    p++;
    error *= rho / sqrt((double) p);
    scale += error;
  }
  error += 1e-15 * (double) (2 * p + 8) * scale;
  if (!p) p = 1;
  const size_t looks = ((size_t) w->query->count[hands->group] + WEFT_TILE - 1) / WEFT_TILE;
  const double products = (double) (series->within[p] * (series->within[p] + 1)) / 2 + 8.0 * (double) series->within[p];
  if (!(error <= allowed) ||
      products > 1500 * (double) looks + 32 * fmin(w->reference->count[node], 512) * (double) looks)
    return 0;
  double between[MAX_DIMENSIONS], *hermite = hands->powers, *far_field = hands->powers + series->terms;
  for (size_t j = 0; j < d; j++) between[j] = (b[j] - a[j]) / h * 0.70710678118654752;
  fill_hermite(series, hands, p, between, hermite);
  for (size_t c = 0; c < m; c++) {
    const double *moments = series->moments + ((size_t) series->slot[node] * m + c) * series->terms;
    double unit = 1, *local = hands->local + c * series->terms;
    for (size_t degree = 0; degree < p; degree++, unit *= a[d] / h * 0.70710678118654752)
      for (size_t i = series->within[degree]; i < series->within[degree + 1]; i++) far_field[i] = moments[i] * unit;
    for (size_t degree = 0; degree < p; degree++)
      for (size_t i = series->within[degree]; i < series->within[degree + 1]; i++) {
        const int32_t *sum = series->sum + i * series->terms;
        double total = 0;
        for (size_t k = 0; k < series->within[p - degree]; k++) total += hermite[sum[k]] * far_field[k];
        local[i] += degree % 2 ? -total : total;
      }
    const double weight = w->moments[(node * m + c) * (d + 2)];
    hands->local_error[c] += weight * error;
    hands->dropped[c] += weight * error;
  }
  hands->absorbed = 1;
  hands->effort.series += 1;
  hands->effort.products += products * (double) m;
  return 1;
}

/* The group's series at the tile's 32 queries: added to hands->settled as estimates and, less their errors, as lower
 * bounds. */
void weft_series_evaluate(const weft_walk *w, weft_hands *hands, const weft_block_query *block)
{
  const weft_series *series = w->series;
  const size_t d = series->d, m = series->m, size = m * WEFT_TILE;
  const double *middle = group_middle(series, hands), unit = 0.70710678118654752 / w->task->h;
  double at[MAX_DIMENSIONS];
  hands->effort.products += (double) (WEFT_TILE * (m + 2) * series->terms);
  for (size_t lane = 0; lane < WEFT_TILE; lane++) {
    for (size_t j = 0; j < d; j++)
      at[j] =
          (block->q[j * WEFT_TILE + lane] - middle[j] + (block->q_lo ? block->q_lo[j * WEFT_TILE + lane] : 0)) * unit;
    fill_powers(series, series->terms, 1, at, hands->powers);
    for (size_t i = 0; i < series->terms; i++) hands->powers[i] /= series->factorial[i];
    for (size_t c = 0; c < m; c++) {
      double sum = 0;
      for (size_t i = 0; i < series->terms; i++) sum += hands->local[c * series->terms + i] * hands->powers[i];
      sum = fmax(sum, 0);
      hands->settled[c * WEFT_TILE + lane] += sum;
      hands->settled[2 * size + c * WEFT_TILE + lane] += fmax(sum - hands->local_error[c], 0);
    }
  }
}
