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

size_t weft_series_terms(const weft_series *s) { return s->terms; }
size_t weft_series_scratch(const weft_series *s) { return 2 * s->terms + s->d * (MAX_ORDER + 2) + 4 * s->d; }

/* ---- terms ---- */

/* All exponents by degree, the last dimension's running fastest. */
static void list_terms(weft_series *s)
{
  const size_t d = s->d;
  size_t count = 0;
  for (size_t degree = 0; degree < s->order; degree++) {
    s->within[degree] = count;
    unsigned char at[MAX_DIMENSIONS] = { 0 };
    at[0] = (unsigned char) degree;
    for (;;) {
      memcpy(s->power + count++ * d, at, d);
      /* the next one of this degree: moves one from the last nonzero place before the end to its right */
      size_t j = d - 1;
      while (j > 0 && !at[j - 1]) j--;
      if (j == 0) break;
      const unsigned char rest = at[d - 1];
      at[d - 1] = 0, at[j - 1]--, at[j] = (unsigned char) (rest + 1);
    }
  }
  s->within[s->order] = count;
}

/* A term's exponents are the digits of its key, of base `order`: the key of a product of terms is the sum of theirs. */
static weft_status link_terms(weft_arena *mem, weft_series *s)
{
  weft_status st = WEFT_OK;
  const size_t d = s->d;
  size_t place[MAX_DIMENSIONS + 1] = { 1 }, *key;
  int32_t *term;
  for (size_t j = 0; j < d; j++) place[j + 1] = place[j] * s->order;
  WEFT_TAKE(key, mem, s->terms);
  WEFT_TAKE(term, mem, place[d]);
  for (size_t t = 0; t < s->terms; t++) {
    key[t] = 0;
    for (size_t j = 0; j < d; j++) key[t] += s->power[t * d + j] * place[j];
    term[key[t]] = (int32_t) t;
  }
  for (size_t t = 0; t < s->terms; t++) {
    const unsigned char *at = s->power + t * d;
    size_t degree = 0;
    s->factorial[t] = 1;
    s->parent[t] = s->axis[t] = 0;
    for (size_t j = 0; j < d; j++) {
      degree += at[j];
      for (int k = 2; k <= at[j]; k++) s->factorial[t] *= k;
      if (at[j]) s->axis[t] = (int32_t) j;
    }
    if (degree) s->parent[t] = term[key[t] - place[s->axis[t]]];
    for (size_t u = 0; u < s->within[s->order - degree]; u++) s->sum[t * s->terms + u] = term[key[t] + key[u]];
  }
done:
  return st;
}

/* Of `lanes` points side by side: v[axis * lanes + k], to[term * lanes + k]. */
static inline void fill_powers(const weft_series *s, size_t terms, size_t lanes, const double *v, double *to)
{
  for (size_t k = 0; k < lanes; k++) to[k] = 1;
  for (size_t t = 1; t < terms; t++) {
    const double *from = to + (size_t) s->parent[t] * lanes, *x = v + (size_t) s->axis[t] * lanes;
    for (size_t k = 0; k < lanes; k++) to[t * lanes + k] = from[k] * x[k];
  }
}

/* ---- moments ---- */

/* LANES points at once. powers: terms * LANES. */
static void moments_of_points(const weft_series *s, const weft_kernel_task *task, const weft_tree *r, size_t v,
                              double *powers)
{
  const size_t d = s->d, m = s->m, first = (size_t) r->first[v], last = first + (size_t) r->count[v];
  const size_t slot = (size_t) s->slot[v];
  const double *middle = s->middle + slot * (d + 1), scale = middle[d] > 0 ? 1 / middle[d] : 0;
  double *to = s->moments + slot * m * s->terms, at[MAX_DIMENSIONS][LANES];
  memset(to, 0, m * s->terms * sizeof *to);
  for (size_t i = first; i < last; i += LANES) {
    const size_t count = last - i < LANES ? last - i : LANES;
    memset(at, 0, sizeof at);
    for (size_t k = 0; k < count; k++)
      for (size_t j = 0; j < d; j++)
        at[j][k] =
            (r->points.x[(i + k) * d + j] - middle[j] + (r->points.lo ? r->points.lo[(i + k) * d + j] : 0)) * scale;
    fill_powers(s, s->terms, LANES, at[0], powers);
    for (size_t c = 0; c < m; c++) {
      double weight[LANES] = { 0 };
      for (size_t k = 0; k < count; k++) weight[k] = task->weights[(i + k) * m + c];
      for (size_t t = 0; t < s->terms; t++) {
        double sum = 0;
        for (size_t k = 0; k < LANES; k++) sum += weight[k] * powers[t * LANES + k];
        to[c * s->terms + t] += sum;
      }
    }
  }
  for (size_t c = 0; c < m; c++)
    for (size_t t = 0; t < s->terms; t++) to[c * s->terms + t] /= s->factorial[t];
}

/* Adds the moments of a child: (v_child R_child + shift) / R. M_γ += Σ over α + β = γ of M_α (R_child / R)^|α|
 * shift^β / β!. */
static void moments_of_child(const weft_series *s, size_t child, size_t parent, double *powers)
{
  const size_t d = s->d;
  const double *a = s->middle + child * (d + 1), *b = s->middle + parent * (d + 1), scale = b[d] > 0 ? 1 / b[d] : 0;
  double shift[MAX_DIMENSIONS], ratio = 1;
  for (size_t j = 0; j < d; j++) shift[j] = (a[j] - b[j]) * scale;
  fill_powers(s, s->terms, 1, shift, powers);
  for (size_t t = 0; t < s->terms; t++) powers[t] /= s->factorial[t];
  for (size_t c = 0; c < s->m; c++) {
    const double *from = s->moments + (child * s->m + c) * s->terms;
    double *to = s->moments + (parent * s->m + c) * s->terms;
    ratio = 1;
    for (size_t degree = 0; degree < s->order; degree++, ratio *= a[d] * scale)
      for (size_t t = s->within[degree]; t < s->within[degree + 1]; t++) {
        const double value = from[t] * ratio;
        const int32_t *sum = s->sum + t * s->terms;
        for (size_t u = 0; u < s->within[s->order - degree]; u++) to[sum[u]] += value * powers[u];
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
static int children_have_moments(const weft_series *s, const weft_tree *r, size_t v)
{
  const int32_t k = r->child[v];
  return k >= 0 && s->slot[k] >= 0 && s->slot[k + 1] >= 0;
}

/* Moments of all nodes that have a slot, from the leaves up: from the children's where both have them, otherwise from
 * the node's points. */
static weft_status fill_moments(weft_ctx *ctx, weft_arena *mem, weft_series *s, const weft_kernel_task *task,
                                const weft_tree *r)
{
  weft_status st = WEFT_OK;
  double *powers;
  WEFT_TAKE(powers, mem, s->terms * LANES * (size_t) ctx->threads);
  for (size_t end = r->nodes, start; end > 0; end = start) { /* from the leaves up: children come after their parents */
    const size_t batch = 4096 / s->terms * 64 + 64;
    start = end > batch ? end - batch : 0;
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) task->reference.n * (double) s->terms), dynamic)
    for (size_t v = start; v < end; v++)
      if (s->slot[v] >= 0 && !children_have_moments(s, r, v))
        moments_of_points(s, task, r, v, powers + (size_t) WEFT_THREAD() * s->terms * LANES);
    for (size_t v = end; v-- > start;) {
      const int32_t k = r->child[v];
      if (s->slot[v] < 0 || !children_have_moments(s, r, v)) continue;
      memset(s->moments + (size_t) s->slot[v] * s->m * s->terms, 0, s->m * s->terms * sizeof(double));
      moments_of_child(s, (size_t) s->slot[k], (size_t) s->slot[v], powers);
      moments_of_child(s, (size_t) s->slot[k + 1], (size_t) s->slot[v], powers);
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
static int worth_moments(const weft_series *s, size_t slots, size_t queries, size_t references)
{
  double translation = 1; /* C(order - 1 + 2 d, 2 d) */
  for (size_t k = 1; k <= 2 * s->d; k++) translation *= (double) (s->order - 1 + k) / (double) k;
  return 8 * ((double) slots * translation + (double) references * (double) s->terms) <
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
  weft_series *s;
  *series = NULL;
  if (task->kind != WEFT_GAUSSIAN || d > MAX_DIMENSIONS || rel < 1e-10 || !nodes || query->points.n < 256)
    return WEFT_OK;
  WEFT_TAKE0(s, mem, 1);
  s->d = d, s->m = task->m, s->order = choose_order(d, rel);
  s->terms = 1;
  for (size_t k = 1; k <= d; k++) s->terms = s->terms * (s->order - 1 + k) / k;
  WEFT_TAKE(s->slot, mem, nodes);
  size_t slots = 0;
  for (size_t v = 0; v < nodes; v++) {
    double middle[MAX_DIMENSIONS + 1];
    box_middle(reference->box + v * 2 * d, d, slack, middle);
    s->slot[v] = reference->count[v] >= MIN_POINTS && middle[d] <= 3 * widest ? (int32_t) slots++ : -1;
  }
  if (!slots ||
      (task->series == WEFT_SERIES_IF_WORTH && !worth_moments(s, slots, query->points.n, reference->points.n)))
    goto done;
  WEFT_TAKE(s->power, mem, s->terms * d);
  WEFT_TAKE(s->parent, mem, s->terms);
  WEFT_TAKE(s->axis, mem, s->terms);
  WEFT_TAKE(s->factorial, mem, s->terms);
  WEFT_TAKE(s->sum, mem, s->terms * s->terms);
  WEFT_TAKE(s->middle, mem, slots * (d + 1));
  WEFT_TAKE(s->moments, mem, slots * s->m * s->terms);
  list_terms(s);
  WEFT_TRY(link_terms(mem, s));
  for (size_t v = 0; v < nodes; v++)
    if (s->slot[v] >= 0) box_middle(reference->box + v * 2 * d, d, slack, s->middle + (size_t) s->slot[v] * (d + 1));
  WEFT_TRY(fill_moments(ctx, mem, s, task, reference));
  *series = s;
done:
  return st;
}

/* ---- a group's series ---- */

/* In t->powers: terms, terms, then d tables of h_k, then the group's middle and radius. */
static double *group_middle(const weft_series *s, weft_hands *t)
{
  return t->powers + 2 * s->terms + s->d * (MAX_ORDER + 2);
}

void weft_series_begin(const weft_walk *w, weft_hands *t)
{
  const weft_series *s = w->series;
  memset(t->local, 0, s->m * s->terms * sizeof *t->local);
  memset(t->local_error, 0, s->m * sizeof *t->local_error);
  box_middle(w->query->box + t->group * 2 * s->d, s->d, w->slack, group_middle(s, t));
}

/* h_k(a) of each dimension, then of every term. */
static void fill_hermite(const weft_series *s, weft_hands *t, size_t order, const double *a, double *to)
{
  double *table = t->powers + 2 * s->terms;
  for (size_t j = 0; j < s->d; j++) {
    double *h = table + j * (MAX_ORDER + 2);
    h[0] = exp(-a[j] * a[j]), h[1] = 2 * a[j] * h[0];
    for (size_t k = 1; k + 1 < order; k++) h[k + 1] = 2 * a[j] * h[k] - 2 * (double) k * h[k - 1];
  }
  for (size_t i = 0; i < s->within[order]; i++) {
    to[i] = 1;
    for (size_t j = 0; j < s->d; j++) to[i] *= table[j * (MAX_ORDER + 2) + s->power[i * s->d + j]];
  }
}

/* Chooses the order p at which the error of node v's series is within the group's tolerance, gives up where its
 * products would cost more than the pairs, and otherwise adds it to t->local and its error to t->local_error. */
int weft_series_absorb(const weft_walk *w, weft_hands *t, size_t v, double nearest)
{
  const weft_series *s = w->series;
  const size_t d = s->d, m = s->m;
  if (s->slot[v] < 0 || weft_walk_holds_nearest(w, t, v)) return 0;
  const double h = w->task->h, *b = group_middle(s, t), *a = s->middle + (size_t) s->slot[v] * (d + 1);
  const double far = exp(-nearest / 4), rho = (a[d] + b[d]) / h;
  double allowed = INFINITY; /* for each unit of weight */
  if (rho > 4) return 0;
  for (size_t c = 0; c < m; c++)
    if (w->column[c] > 0) allowed = fmin(allowed, SERIES_SHARE * t->min_tolerance[c] / w->column[c]);
  double error = CRAMER * far, scale = error; /* scale: Σ of the bounds of what is added up, for its rounding */
  size_t p = 0;
  while (p < s->order && error > allowed) {
    p++;
    error *= rho / sqrt((double) p);
    scale += error;
  }
  error += 1e-15 * (double) (2 * p + 8) * scale;
  if (!p) p = 1;
  const size_t looks = ((size_t) w->query->count[t->group] + WEFT_TILE - 1) / WEFT_TILE;
  const double products = (double) (s->within[p] * (s->within[p] + 1)) / 2 + 8.0 * (double) s->within[p];
  if (!(error <= allowed) || products > 1500 * (double) looks + 32 * fmin(w->reference->count[v], 512) * (double) looks)
    return 0;
  double between[MAX_DIMENSIONS], *hermite = t->powers, *far_field = t->powers + s->terms;
  for (size_t j = 0; j < d; j++) between[j] = (b[j] - a[j]) / h * 0.70710678118654752;
  fill_hermite(s, t, p, between, hermite);
  for (size_t c = 0; c < m; c++) {
    const double *moments = s->moments + ((size_t) s->slot[v] * m + c) * s->terms;
    double unit = 1, *local = t->local + c * s->terms;
    for (size_t degree = 0; degree < p; degree++, unit *= a[d] / h * 0.70710678118654752)
      for (size_t i = s->within[degree]; i < s->within[degree + 1]; i++) far_field[i] = moments[i] * unit;
    for (size_t degree = 0; degree < p; degree++)
      for (size_t i = s->within[degree]; i < s->within[degree + 1]; i++) {
        const int32_t *sum = s->sum + i * s->terms;
        double total = 0;
        for (size_t k = 0; k < s->within[p - degree]; k++) total += hermite[sum[k]] * far_field[k];
        local[i] += degree % 2 ? -total : total;
      }
    const double weight = w->moments[(v * m + c) * (d + 2)];
    t->local_error[c] += weight * error;
    t->dropped[c] += weight * error;
  }
  t->absorbed = 1;
  t->effort.series += 1;
  return 1;
}

/* The group's series at the tile's 32 queries: added to t->settled as estimates and, less their errors, as lower
 * bounds. */
void weft_series_evaluate(const weft_walk *w, weft_hands *t, const weft_block_query *b)
{
  const weft_series *s = w->series;
  const size_t d = s->d, m = s->m, size = m * WEFT_TILE;
  const double *middle = group_middle(s, t), unit = 0.70710678118654752 / w->task->h;
  double at[MAX_DIMENSIONS];
  for (size_t l = 0; l < WEFT_TILE; l++) {
    for (size_t j = 0; j < d; j++)
      at[j] = (b->q[j * WEFT_TILE + l] - middle[j] + (b->q_lo ? b->q_lo[j * WEFT_TILE + l] : 0)) * unit;
    fill_powers(s, s->terms, 1, at, t->powers);
    for (size_t i = 0; i < s->terms; i++) t->powers[i] /= s->factorial[i];
    for (size_t c = 0; c < m; c++) {
      double sum = 0;
      for (size_t i = 0; i < s->terms; i++) sum += t->local[c * s->terms + i] * t->powers[i];
      sum = fmax(sum, 0);
      t->settled[c * WEFT_TILE + l] += sum;
      t->settled[2 * size + c * WEFT_TILE + l] += fmax(sum - t->local_error[c], 0);
    }
  }
}
