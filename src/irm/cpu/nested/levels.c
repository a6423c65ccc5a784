/* The state of nested groups; see levels.h. */
#include <math.h>
#include <string.h>
#include "irm/both/score.h"
#include "irm/cpu/nested/levels.h"

#define LOG_2 0.69314718055994531
#define PI 3.14159265358979324
/* log x! and partitions are tabled below these. */
enum { MAX_FACTORIALS = 1 << 20, MAX_PARTS = 600 };
/* Grid of the law of partitions, in log u: LAW_STEP from LAW_FIRST on. */
enum { LAW_POINTS = 3300 };
#define LAW_FIRST (-6.6)
#define LAW_STEP (1.0 / 256)

/* ---- functions of counts ---- */

static double log_factorial(const irm_nested *t, int64_t x)
{
  return x < t->table ? t->log_factorial[x] : irm_log_gamma((double) x + 1);
}

static double log_choose(const irm_nested *t, int64_t n, int64_t x)
{
  return log_factorial(t, n) - log_factorial(t, x) - log_factorial(t, n - x);
}

static double log_multisets(const irm_nested *t, int64_t n, int64_t x)
{
  return x ? log_factorial(t, n + x - 1) - log_factorial(t, n - 1) - log_factorial(t, x) : 0;
}

static double dilogarithm(double x)
{
  double power = x, sum = 0;
  if (x > 0.5) return PI * PI / 6 - (x < 1 ? weft_log(x) * weft_log(1 - x) : 0) - dilogarithm(1 - x);
  for (int k = 1; k < 60; k++, power *= x) sum += power / ((double) k * k);
  return sum;
}

/* log q(e, n) for n <= e: exact for small e; else Szekeres' law log q = f(u) - log e + √e g(u), u = n / √e, from a
 * grid by cubic interpolation; for few parts C(e - 1, n - 1) / n!. */
static double log_partitions(const irm_nested *t, int64_t e, int64_t n)
{
  double u, at, x, sum = 0, root = sqrt((double) e);
  if (n > e) n = e;
  if (e == 0 || n <= 1) return 0;
  if (e < t->exact) return t->parts[e * t->exact + n];
  if ((double) n < sqrt(root)) return log_choose(t, e - 1, n - 1) - log_factorial(t, n);
  u = weft_log((double) n / root);
  at = (u - LAW_FIRST) / LAW_STEP;
  if (at < 1) at = 1;
  if (at > LAW_POINTS - 3) at = LAW_POINTS - 3;
  const int64_t j = (int64_t) at;
  x = at - (double) j;
  const double c[4] = { -x * (x - 1) * (x - 2) / 6, (x + 1) * (x - 1) * (x - 2) / 2, -(x + 1) * x * (x - 2) / 2,
                        (x + 1) * x * (x - 1) / 6 };
  for (int m = 0; m < 4; m++) sum += c[m] * (t->law[0][j - 1 + m] + root * t->law[1][j - 1 + m]);
  return sum - weft_log((double) e);
}

/* f and g of the law on its grid, with v = u √Li₂(1 - exp(-v)). */
static void make_law(irm_nested *t)
{
  for (int j = 0; j < LAW_POINTS; j++) {
    const double u = weft_exp(LAW_FIRST + LAW_STEP * j);
    double v = u, last;
    do {
      last = v;
      v = u * sqrt(dilogarithm(1 - weft_exp(-v)));
    } while (fabs(v - last) > 1e-12 * v && v > 1e-12);
    const double none = weft_log1p(-weft_exp(-v));
    t->law[0][j] =
        weft_log(v) - 0.5 * weft_log1p(-weft_exp(-v) * (1 + 0.5 * u * u)) - 1.5 * LOG_2 - weft_log(u) - weft_log(PI);
    t->law[1][j] = 2 * v / u - u * none;
  }
}

/* q(e, n) = q(e, n - 1) + q(e - n, n), as logarithms. */
static void make_parts(irm_nested *t)
{
  const int64_t m = t->exact;
  for (int64_t e = 0; e < m; e++) {
    t->parts[e * m] = e ? -INFINITY : 0;
    for (int64_t n = 1; n < m; n++) {
      const double fewer = t->parts[e * m + n - 1], more = n <= e ? t->parts[(e - n) * m + n] : -INFINITY;
      const double high = fewer > more ? fewer : more, low = fewer > more ? more : fewer;
      t->parts[e * m + n] = low == -INFINITY ? high : high + weft_log1p(weft_exp(low - high));
    }
  }
}

/* ---- terms of the description length ---- */

static double link_term(const irm_nested *t, int l, int same, int64_t x, int64_t a, int64_t b)
{
  if (!x) return 0;
  if (same && !t->directed) {
    const int64_t half = x / 2;
    return l ? log_multisets(t, a * (a + 1) / 2, half) : -log_factorial(t, half) - (double) half * LOG_2;
  }
  return l ? log_multisets(t, a * b, x) : -log_factorial(t, x);
}

static double partition_term(const irm_nested *t, int64_t n, int64_t groups)
{
  return n ? log_choose(t, n - 1, groups - 1) + log_factorial(t, n) + weft_log((double) n) : 0;
}

/* The terms that a group of level 0 with these ends and nodes adds, without the counts of its degrees. */
static double group_term(const irm_nested *t, int64_t out, int64_t in, int64_t n)
{
  double sum;
  if (!n) return 0;
  if (!t->degrees) return (double) (t->directed ? out + in : out) * weft_log((double) n);
  sum = log_factorial(t, out) + log_partitions(t, out, n) + log_factorial(t, n);
  if (t->directed) sum += log_factorial(t, in) + log_partitions(t, in, n) + log_factorial(t, n);
  return sum;
}

/* ---- counts of degrees ---- */

static size_t count_slot(const irm_degree_counts *counts, uint64_t key)
{
  size_t at = (size_t) ((key * 0x9e3779b97f4a7c15u) >> 20) & (counts->size - 1);
  while (counts->key[at] != key && counts->key[at] != UINT64_MAX) at = (at + 1) & (counts->size - 1);
  return at;
}

static int32_t degree_count(const irm_nested *t, int32_t r, int32_t c)
{
  const uint64_t key = (uint64_t) r * (uint64_t) t->classes + (uint64_t) c;
  const size_t at = count_slot(&t->counts, key);
  return t->counts.key[at] == key ? t->counts.count[at] : 0;
}

static void add_degree(irm_nested *t, int32_t r, int32_t c, int32_t by)
{
  const uint64_t key = (uint64_t) r * (uint64_t) t->classes + (uint64_t) c;
  const size_t at = count_slot(&t->counts, key);
  if (t->counts.key[at] != key) {
    t->counts.key[at] = key;
    t->counts.count[at] = 0;
    t->counts.used++;
  }
  t->counts.count[at] += by;
}

static void count_degrees(irm_nested *t)
{
  const int32_t *b = t->level[0].b;
  if (!t->degrees) return;
  memset(t->counts.key, 0xff, t->counts.size * sizeof *t->counts.key);
  t->counts.used = 0;
  for (int d = 0; d <= t->directed; d++)
    for (int64_t i = 0; i < t->n; i++) add_degree(t, b[i], t->class_of[d][i], 1);
}

static void move_degree(irm_nested *t, int32_t i, int32_t r, int32_t s)
{
  if (!t->degrees) return;
  for (int d = 0; d <= t->directed; d++) {
    add_degree(t, r, t->class_of[d][i], -1);
    add_degree(t, s, t->class_of[d][i], 1);
  }
  if (2 * t->counts.used > t->counts.size) count_degrees(t); /* the label is s's by now */
}

/* Change of -Σ log n_rk! when group r joins s. */
static double merged_degrees(irm_nested *t, int32_t r, int32_t s)
{
  const irm_level *level = &t->level[0];
  double sum = 0;
  int64_t touched = 0;
  if (!t->degrees) return 0;
  for (int32_t i = level->first[r]; i >= 0; i = level->next[i])
    for (int d = 0; d <= t->directed; d++) {
      const int32_t c = t->class_of[d][i];
      if (!t->class_count[c]++) t->class_touched[touched++] = c;
    }
  for (int64_t m = 0; m < touched; m++) {
    const int32_t c = t->class_touched[m];
    const int64_t a = t->class_count[c], b = degree_count(t, s, c);
    if (b) sum += log_factorial(t, a) + log_factorial(t, b) - log_factorial(t, a + b);
    t->class_count[c] = 0;
  }
  return sum;
}

/* ---- making ---- */

int64_t weft_irm_nested_words(const int32_t k[2])
{
  int64_t words = 0;
  int32_t nodes = k[0] + k[1], first = k[0], second = k[1];
  for (int l = 1; l < IRM_LEVELS; l++) {
    words += nodes;
    if (l > 1) first = (first + 1) / 2;
    if (l > 1) second = (second + 1) / 2;
    nodes = first + second;
  }
  return words;
}

/* Room for a level of `nodes` nodes with first + second groups. */
static weft_status make_level(weft_arena *arena, irm_level *level, int64_t nodes, int32_t first, int32_t second,
                              int directed)
{
  weft_status st = WEFT_OK;
  const size_t k = (size_t) first + (size_t) second;
  level->nodes = (int32_t) nodes;
  level->k = (int32_t) k;
  level->split = first;
  WEFT_TAKE(level->b, arena, (size_t) nodes);
  WEFT_TAKE(level->next, arena, (size_t) nodes);
  WEFT_TAKE(level->before, arena, (size_t) nodes);
  WEFT_TAKE(level->first, arena, k);
  WEFT_TAKE(level->size, arena, k);
  WEFT_TAKE(level->active, arena, k);
  WEFT_TAKE(level->place, arena, k);
  WEFT_TAKE(level->spare, arena, k);
  WEFT_TAKE(level->touched, arena, k);
  for (int d = 0; d < 2; d++) {
    WEFT_TAKE0(level->w[d], arena, k);
    if (d && !directed) {
      level->e[1] = level->e[0];
      level->sum[1] = level->sum[0];
      continue;
    }
    WEFT_TAKE(level->e[d], arena, k * k);
    WEFT_TAKE(level->sum[d], arena, k);
  }
done:
  return st;
}

/* Degrees, their classes, and what the description length has of them alone. */
static weft_status make_degrees(weft_arena *arena, irm_nested *t)
{
  weft_status st = WEFT_OK;
  const weft_irm_graph *graph = t->graph;
  size_t slots = 64;
  WEFT_TAKE0(t->degree[0], arena, (size_t) t->n);
  t->degree[1] = t->degree[0];
  if (t->directed) WEFT_TAKE0(t->degree[1], arena, (size_t) t->n);
  for (int d = 0; d < 2; d++) {
    if (d && graph->type == WEFT_IRM_UNDIRECTED) break;
    const weft_irm_lists *lists = &graph->links[d];
    const int64_t n = graph->n[t->bipartite ? d : 0];
    int64_t *degree = t->degree[d] + (t->bipartite && d ? graph->n[0] : 0);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = lists->start[i]; j < lists->start[i + 1]; j++) degree[i] += lists->weight ? lists->weight[j] : 1;
  }
  t->constant = graph->log_factorials;
  for (int64_t i = 0; i < t->n && graph->self_weight; i++) {
    t->degree[0][i] += (t->directed ? 1 : 2) * graph->self_weight[i];
    if (t->directed) t->degree[1][i] += graph->self_weight[i];
    if (!t->directed) t->constant += graph->self_weight[i] * LOG_2;
  }
  while (slots < 4 * (size_t) t->n * (size_t) (1 + t->directed)) slots *= 2;
  WEFT_TAKE(t->counts.key, arena, slots);
  WEFT_TAKE(t->counts.count, arena, slots);
  t->counts.size = slots;
  /* numbers of the different degrees, by the table of counts while it has no other use */
  memset(t->counts.key, 0xff, slots * sizeof *t->counts.key);
  for (int d = 0; d <= t->directed; d++) {
    WEFT_TAKE(t->class_of[d], arena, (size_t) t->n);
    for (int64_t i = 0; i < t->n; i++) {
      const uint64_t key = 2 * (uint64_t) t->degree[d][i] + (uint64_t) d;
      const size_t at = count_slot(&t->counts, key);
      if (t->counts.key[at] == UINT64_MAX) {
        t->counts.key[at] = key;
        t->counts.count[at] = (int32_t) t->classes++;
      }
      t->class_of[d][i] = t->counts.count[at];
      if (!d) t->ends += t->degree[0][i];
    }
  }
  WEFT_TAKE0(t->class_count, arena, (size_t) t->classes);
  WEFT_TAKE(t->class_touched, arena, (size_t) t->classes);
done:
  return st;
}

/* Each level from the second on has room for half as many groups as the one below. */
weft_status irm_nested_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_graph *graph, int degrees,
                            const int32_t k[2], uint64_t key, uint32_t chain, irm_nested *out)
{
  weft_status st = WEFT_OK;
  irm_nested *t = out;
  int32_t first = k[0], second = k[1];
  (void) ctx;
  memset(t, 0, sizeof *t);
  t->graph = graph;
  t->directed = graph->type == WEFT_IRM_DIRECTED;
  t->bipartite = graph->type == WEFT_IRM_BIPARTITE;
  t->degrees = degrees;
  t->top = IRM_LEVELS - 1;
  t->n = graph->n[0] + (t->bipartite ? graph->n[1] : 0);
  t->rng = (weft_rng){ key, chain };
  for (int l = 0; l < IRM_LEVELS; l++) {
    const int64_t nodes = l ? t->level[l - 1].k : t->n;
    if (l > 1) first = (first + 1) / 2;
    if (l > 1) second = (second + 1) / 2;
    if (l == t->top)
      WEFT_TRY(make_level(arena, &t->level[l], nodes, 1, t->bipartite, t->directed));
    else
      WEFT_TRY(make_level(arena, &t->level[l], nodes, first, second, t->directed));
  }
  WEFT_TRY(make_degrees(arena, t));
  WEFT_TAKE(t->order, arena, (size_t) t->n + (size_t) t->level[0].k);
  WEFT_TAKE(t->side, arena, (size_t) t->n + (size_t) t->level[0].k);
  t->table = t->ends + t->n + (int64_t) t->level[0].k * t->level[0].k + 2;
  if (t->table > MAX_FACTORIALS) t->table = MAX_FACTORIALS;
  WEFT_TAKE(t->log_factorial, arena, (size_t) t->table);
  for (int64_t x = 0; x < t->table; x++) t->log_factorial[x] = irm_log_gamma((double) x + 1);
  if (degrees) {
    t->exact = t->ends + 1 < MAX_PARTS ? t->ends + 1 : MAX_PARTS;
    WEFT_TAKE(t->parts, arena, (size_t) (t->exact * t->exact));
    for (int d = 0; d < 2; d++) WEFT_TAKE(t->law[d], arena, LAW_POINTS);
    make_parts(t);
    if (t->ends >= t->exact) make_law(t);
    for (int64_t i = 0; i < t->n; i++)
      for (int d = 0; d <= t->directed; d++) t->constant -= log_factorial(t, t->degree[d][i]);
  }
done:
  return st;
}

/* Scratch memory of the threads that propose moves of a slice of nodes side by side; small graphs need none. */
weft_status irm_nested_share(weft_arena *arena, irm_nested *t, int threads)
{
  weft_status st = WEFT_OK;
  if (t->n < 16 * IRM_SLICE) return st;
  t->threads = threads;
  WEFT_TAKE(t->wanted, arena, IRM_SLICE);
  WEFT_TAKE0(t->views, arena, (size_t) threads);
  for (int v = 0; v < threads; v++)
    for (int l = 0; l < IRM_LEVELS; l++) {
      const size_t k = (size_t) t->level[l].k;
      WEFT_TAKE(t->views[v].level[l].touched, arena, k);
      for (int d = 0; d < 2; d++) WEFT_TAKE0(t->views[v].level[l].w[d], arena, k);
    }
done:
  return st;
}

void irm_nested_look(irm_nested *t, int v)
{
  irm_nested *view = &t->views[v];
  irm_level own[IRM_LEVELS];
  memcpy(own, view->level, sizeof own);
  *view = *t;
  for (int l = 0; l < IRM_LEVELS; l++) {
    irm_level *level = &view->level[l];
    level->touched = own[l].touched;
    level->touches = own[l].touches > 0 && own[l].nodes ? own[l].touches : 0;
    for (int d = 0; d < 2; d++) level->w[d] = own[l].w[d];
  }
}

/* ---- lists ---- */

static void enlist(irm_level *level, int32_t r)
{
  const int type = irm_type_of(level, r);
  level->place[r] = level->count[type];
  level->active[(type ? level->split : 0) + level->count[type]++] = r;
}

static void delist(irm_level *level, int32_t r)
{
  const int type = irm_type_of(level, r);
  int32_t *active = level->active + (type ? level->split : 0);
  const int32_t last = active[--level->count[type]];
  active[level->place[r]] = last;
  level->place[last] = level->place[r];
  level->place[r] = -1;
  level->spare[(type ? level->split : 0) + level->spares[type]++] = r;
}

/* A spare label that is used now. */
static void unspare(irm_level *level, int32_t r)
{
  const int type = irm_type_of(level, r);
  int32_t *spare = level->spare + (type ? level->split : 0);
  int32_t at = level->spares[type] - 1;
  while (spare[at] != r) at--;
  spare[at] = spare[--level->spares[type]];
}

static void link_member(irm_level *level, int32_t i, int32_t r)
{
  level->b[i] = r;
  level->before[i] = -1;
  level->next[i] = level->first[r];
  if (level->first[r] >= 0) level->before[level->first[r]] = i;
  level->first[r] = i;
}

static void unlink_member(irm_level *level, int32_t i)
{
  const int32_t r = level->b[i];
  if (level->before[i] >= 0)
    level->next[level->before[i]] = level->next[i];
  else
    level->first[r] = level->next[i];
  if (level->next[i] >= 0) level->before[level->next[i]] = level->before[i];
}

/* Sizes and lists of a level from its labels. */
static void list_level(irm_nested *t, int l)
{
  irm_level *level = &t->level[l];
  memset(level->size, 0, (size_t) level->k * sizeof *level->size);
  level->present[0] = level->present[1] = level->count[0] = level->count[1] = 0;
  level->spares[0] = level->spares[1] = 0;
  for (int32_t r = 0; r < level->k; r++) level->first[r] = -1;
  for (int32_t i = level->nodes - 1; i >= 0; i--) {
    if (level->b[i] < 0) continue;
    link_member(level, i, level->b[i]);
    level->size[level->b[i]]++;
    level->present[irm_node_type(t, l, i)]++;
  }
  for (int32_t r = 0; r < level->k; r++) {
    level->place[r] = -1;
    if (level->size[r]) enlist(level, r);
  }
  for (int32_t r = level->k - 1; r >= 0; r--)
    if (!level->size[r])
      level->spare[(irm_type_of(level, r) ? level->split : 0) + level->spares[irm_type_of(level, r)]++] = r;
}

static void add_links(irm_nested *t, irm_level *level, int32_t r, int32_t s, int64_t x)
{
  level->e[0][(int64_t) r * level->k + s] += x;
  if (t->directed) level->e[1][(int64_t) s * level->k + r] += x;
}

static void clear_links(irm_nested *t, irm_level *level)
{
  for (int d = 0; d <= t->directed; d++)
    memset(level->e[d], 0, (size_t) level->k * (size_t) level->k * sizeof(int64_t));
}

/* Links between the groups of level 0. */
static void count_links(irm_nested *t)
{
  const weft_irm_graph *graph = t->graph;
  irm_level *level = &t->level[0];
  const weft_irm_lists *lists = &graph->links[0];
  clear_links(t, level);
  for (int64_t i = 0; i < graph->n[0]; i++) {
    const int32_t r = level->b[i], *to = level->b + (t->bipartite ? graph->n[0] : 0);
    for (int64_t j = lists->start[i]; j < lists->start[i + 1]; j++) {
      const int64_t x = lists->weight ? lists->weight[j] : 1;
      const int32_t s = to[lists->to[j]];
      add_links(t, level, r, s, x);
      if (t->bipartite) add_links(t, level, s, r, x);
    }
    if (graph->self_weight && graph->self_weight[i])
      add_links(t, level, r, r, (t->directed ? 1 : 2) * (int64_t) graph->self_weight[i]);
  }
}

static void sum_links(irm_nested *t, irm_level *level)
{
  for (int d = 0; d <= t->directed; d++)
    for (int32_t r = 0; r < level->k; r++) {
      int64_t sum = 0;
      for (int32_t s = 0; s < level->k; s++) sum += level->e[d][(int64_t) r * level->k + s];
      level->sum[d][r] = sum;
    }
}

void irm_nested_set(irm_nested *t, int32_t *const z[2], const int32_t *upper)
{
  irm_level *level = t->level;
  for (int64_t i = 0; i < t->graph->n[0]; i++) level->b[i] = z[0][i];
  for (int64_t j = 0; t->bipartite && j < t->graph->n[1]; j++) level->b[t->graph->n[0] + j] = level->split + z[1][j];
  list_level(t, 0);
  count_links(t);
  sum_links(t, level);
  count_degrees(t);
  irm_nested_set_upper(t, upper);
}

/* A label that does not fit becomes the first of its type. */
void irm_nested_set_upper(irm_nested *t, const int32_t *upper)
{
  for (int l = 1; l <= t->top; l++) {
    irm_level *above = &t->level[l];
    const irm_level *below = above - 1;
    for (int32_t i = 0; i < above->nodes; i++) {
      const int type = irm_type_of(below, i);
      const int fits =
          upper && l < t->top && upper[i] >= 0 && upper[i] < above->k && irm_type_of(above, upper[i]) == type;
      above->b[i] = !below->size[i] ? -1 : fits ? upper[i] : type ? above->split : 0;
    }
    if (upper) upper += above->nodes;
    list_level(t, l);
    clear_links(t, above);
    for (int32_t r = 0; r < below->k; r++)
      for (int32_t s = 0; s < below->k && below->size[r]; s++) {
        const int64_t x = below->e[0][(int64_t) r * below->k + s];
        if (x) add_links(t, above, above->b[r], above->b[s], x);
      }
    sum_links(t, above);
  }
}

void irm_nested_get(const irm_nested *t, int32_t *const z[2], int32_t *upper)
{
  const irm_level *level = t->level;
  for (int64_t i = 0; i < t->graph->n[0]; i++) z[0][i] = level->b[i];
  for (int64_t j = 0; t->bipartite && j < t->graph->n[1]; j++) z[1][j] = level->b[t->graph->n[0] + j] - level->split;
  for (int l = 1; l <= t->top && upper; l++) {
    const irm_level *above = &t->level[l];
    for (int32_t i = 0; i < above->nodes; i++) upper[i] = above->b[i] < 0 ? 0 : above->b[i];
    upper += above->nodes;
  }
}

/* ---- the description length ---- */

static double level_length(const irm_nested *t, int l)
{
  const irm_level *level = &t->level[l];
  double sum = 0;
  for (int type = 0; type < 2; type++) {
    sum += partition_term(t, level->present[type], level->count[type]);
    for (int32_t a = 0; a < level->count[type]; a++) {
      const int32_t r = irm_active(level, type)[a];
      sum -= log_factorial(t, level->size[r]);
      if (!l) sum += group_term(t, level->sum[0][r], level->sum[1][r], level->size[r]);
      for (int32_t s = t->directed ? 0 : r; s < level->k; s++)
        sum += link_term(t, l, r == s, level->e[0][(int64_t) r * level->k + s], level->size[r], level->size[s]);
    }
  }
  return sum;
}

double irm_nested_length_above(const irm_nested *t, int l)
{
  double sum = 0;
  for (; l <= t->top; l++) sum += level_length(t, l);
  return sum;
}

double irm_nested_length(const irm_nested *t)
{
  double sum = t->constant + irm_nested_length_above(t, 0);
  for (size_t at = 0; at < t->counts.size && t->degrees; at++)
    if (t->counts.key[at] != UINT64_MAX) sum -= log_factorial(t, t->counts.count[at]);
  return sum;
}

/* ---- moving ---- */

static void touch(irm_level *level, int32_t s, int d, int64_t x)
{
  if (!level->w[0][s] && !level->w[1][s]) level->touched[level->touches++] = s;
  level->w[d][s] += x;
}

static void forget(irm_level *level)
{
  for (int32_t m = 0; m < level->touches; m++) level->w[0][level->touched[m]] = level->w[1][level->touched[m]] = 0;
  level->touches = 0;
}

static void touch_neighbours(irm_level *level, const weft_irm_lists *lists, int64_t i, int d, const int32_t *labels)
{
  for (int64_t j = lists->start[i]; j < lists->start[i + 1]; j++)
    touch(level, labels[lists->to[j]], d, lists->weight ? lists->weight[j] : 1);
}

/* Links of group r of the level below. */
static void touch_row(irm_nested *t, int l, const irm_level *below, int32_t r)
{
  for (int d = 0; d <= t->directed; d++)
    for (int type = 0; type < 2; type++)
      for (int32_t a = 0; a < below->count[type]; a++) {
        const int32_t s = irm_active(below, type)[a];
        const int64_t x = below->e[d][(int64_t) r * below->k + s];
        if (x && s != r) touch(&t->level[l], l == 0 || below == &t->level[l] ? s : t->level[l].b[s], d, x);
      }
  t->self = below->e[0][(int64_t) r * below->k + r];
}

/* Collects the links of node i of level l by the groups at their other ends, which changes of length are computed from.
 */
void irm_nested_take(irm_nested *t, int l, int32_t i)
{
  irm_level *level = &t->level[l];
  const weft_irm_graph *graph = t->graph;
  forget(level);
  if (l) {
    touch_row(t, l, level - 1, i);
    return;
  }
  t->self = graph->self_weight ? (t->directed ? 1 : 2) * (int64_t) graph->self_weight[i] : 0;
  if (t->bipartite && i >= graph->n[0])
    touch_neighbours(level, &graph->links[1], i - graph->n[0], 0, level->b);
  else
    touch_neighbours(level, &graph->links[0], i, 0, level->b + (t->bipartite ? graph->n[0] : 0));
  if (t->directed) touch_neighbours(level, &graph->links[1], i, 1, level->b);
}

void irm_nested_take_group(irm_nested *t, int l, int32_t r)
{
  forget(&t->level[l]);
  touch_row(t, l, &t->level[l], r);
}

/* The parent of a group at level l, which may not be there yet. */
static int32_t parent(const irm_nested *t, int l, int32_t s)
{
  return t->level[l].b[s] >= 0 && t->level[l - 1].size[s] ? t->level[l].b[s] : t->plan[l];
}

/* The moving node or group, as one level up sees it. */
static void lift(irm_nested *t, int l)
{
  const irm_level *level = &t->level[l];
  irm_level *above = &t->level[l + 1];
  forget(above);
  for (int32_t m = 0; m < level->touches; m++) {
    const int32_t s = level->touched[m];
    for (int d = 0; d <= t->directed; d++)
      if (level->w[d][s]) touch(above, above->b[s], d, level->w[d][s]);
  }
}

/* Change of the link terms of a level when what was taken goes from r to s, whose sizes change by dr and ds. */
static double links_change(const irm_nested *t, int l, int32_t r, int32_t s, int64_t dr, int64_t ds)
{
  const irm_level *level = &t->level[l];
  const int64_t k = level->k, nr = level->size[r], ns = level->size[s], *e = level->e[0];
  const int64_t rr = e[r * k + r], ss = e[s * k + s], rs = e[r * k + s], sr = e[s * k + r];
  const int64_t *wo = level->w[0], *wi = level->w[1];
  const int sized = l > 0 && (dr || ds);
  double sum = 0;
  for (int type = 0; type < 2; type++) {
    const int32_t *list = sized ? irm_active(level, type) : level->touched;
    const int32_t count = sized ? level->count[type] : type ? 0 : level->touches;
    for (int d = 0; d <= t->directed; d++) {
      const int64_t *from = level->e[d] + r * k, *to = level->e[d] + s * k, *w = level->w[d];
      for (int32_t m = 0; m < count; m++) {
        const int32_t u = list[m];
        if (u == r || u == s) continue;
        const int64_t x = from[u], y = to[u], by = w[u], nu = level->size[u];
        if (!x && !y && !by) continue;
        sum += link_term(t, l, 0, x - by, nr + dr, nu) - link_term(t, l, 0, x, nr, nu) +
               link_term(t, l, 0, y + by, ns + ds, nu) - link_term(t, l, 0, y, ns, nu);
      }
    }
  }
  if (t->directed) {
    sum += link_term(t, l, 1, rr - wo[r] - wi[r] - t->self, nr + dr, nr + dr) - link_term(t, l, 1, rr, nr, nr);
    sum += link_term(t, l, 1, ss + wo[s] + wi[s] + t->self, ns + ds, ns + ds) - link_term(t, l, 1, ss, ns, ns);
    sum += link_term(t, l, 0, rs - wo[s] + wi[r], nr + dr, ns + ds) - link_term(t, l, 0, rs, nr, ns);
    sum += link_term(t, l, 0, sr - wi[s] + wo[r], nr + dr, ns + ds) - link_term(t, l, 0, sr, nr, ns);
    return sum;
  }
  sum += link_term(t, l, 1, rr - 2 * wo[r] - t->self, nr + dr, nr + dr) - link_term(t, l, 1, rr, nr, nr);
  sum += link_term(t, l, 1, ss + 2 * wo[s] + t->self, ns + ds, ns + ds) - link_term(t, l, 1, ss, ns, ns);
  sum += link_term(t, l, 0, rs - wo[s] + wo[r], nr + dr, ns + ds) - link_term(t, l, 0, rs, nr, ns);
  return sum;
}

/* Change of the link terms of a group whose size alone changes, by dr. */
static double size_change(const irm_nested *t, int l, int32_t r, int64_t dr)
{
  const irm_level *level = &t->level[l];
  const int64_t k = level->k, n = level->size[r];
  double sum =
      link_term(t, l, 1, level->e[0][r * k + r], n + dr, n + dr) - link_term(t, l, 1, level->e[0][r * k + r], n, n);
  for (int type = 0; type < 2; type++)
    for (int d = 0; d <= t->directed; d++)
      for (int32_t m = 0; m < level->count[type]; m++) {
        const int32_t u = irm_active(level, type)[m];
        const int64_t x = level->e[d][r * k + u];
        if (u == r || !x) continue;
        sum += link_term(t, l, 0, x, n + dr, level->size[u]) - link_term(t, l, 0, x, n, level->size[u]);
      }
  return sum;
}

/* Change of the description length when what was taken, n nodes, goes from r to s, but for level 0's groups. */
static double change(irm_nested *t, int l, int32_t r, int32_t s, int64_t n)
{
  const int type = irm_type_of(&t->level[l], r);
  int64_t dr = -n, ds = n;
  double sum = 0;
  for (int m = l; m <= t->top; m++) {
    const irm_level *level = &t->level[m];
    const int64_t present = level->present[type], groups = level->count[type];
    if (r == s) {
      if (!(dr + ds)) break;
      sum += size_change(t, m, r, dr + ds) + partition_term(t, present + dr + ds, groups) -
             partition_term(t, present, groups) - log_factorial(t, level->size[r] + dr + ds) +
             log_factorial(t, level->size[r]);
      break;
    }
    const int64_t nr = level->size[r], ns = level->size[s];
    const int gone = dr < 0 && nr + dr == 0, made = ds > 0 && ns == 0;
    sum += links_change(t, m, r, s, dr, ds);
    if (dr || ds)
      sum += log_factorial(t, nr) + log_factorial(t, ns) - log_factorial(t, nr + dr) - log_factorial(t, ns + ds);
    if (dr + ds || gone || made)
      sum += partition_term(t, present + dr + ds, groups + made - gone) - partition_term(t, present, groups);
    if (m == t->top) break;
    const int32_t above_r = parent(t, m + 1, r), above_s = parent(t, m + 1, s);
    if (above_r != above_s) lift(t, m);
    r = above_r;
    s = above_s;
    dr = -gone;
    ds = made;
  }
  return sum;
}

static double groups_change(const irm_nested *t, int32_t r, int32_t s, int64_t out, int64_t in, int64_t n)
{
  const irm_level *level = &t->level[0];
  const int64_t *o = level->sum[0], *i = level->sum[1], *size = level->size;
  return group_term(t, o[r] - out, i[r] - in, size[r] - n) - group_term(t, o[r], i[r], size[r]) +
         group_term(t, o[s] + out, i[s] + in, size[s] + n) - group_term(t, o[s], i[s], size[s]);
}

double irm_nested_change(irm_nested *t, int l, int32_t i, int32_t s)
{
  const int32_t r = t->level[l].b[i];
  double sum = change(t, l, r, s, 1);
  if (l) return sum;
  sum += groups_change(t, r, s, t->degree[0][i], t->degree[1][i], 1);
  for (int d = 0; d <= t->directed && t->degrees; d++) {
    const int32_t c = t->class_of[d][i];
    sum += weft_log((double) degree_count(t, r, c)) - weft_log((double) degree_count(t, s, c) + 1);
  }
  return sum;
}

double irm_nested_merge_change(irm_nested *t, int l, int32_t r, int32_t s)
{
  const irm_level *level = &t->level[l];
  double sum = change(t, l, r, s, level->size[r]);
  if (l) return sum;
  return sum + groups_change(t, r, s, level->sum[0][r], level->sum[1][r], level->size[r]) + merged_degrees(t, r, s);
}

/* Links of a level when what was taken goes from r to s. */
static void move_links(irm_nested *t, irm_level *level, int32_t r, int32_t s)
{
  int64_t *e = level->e[0], moved[2] = { t->self, t->self };
  const int64_t k = level->k, self = t->self;
  for (int32_t m = 0; m < level->touches; m++) {
    const int32_t u = level->touched[m];
    const int64_t out = level->w[0][u], in = level->w[1][u];
    moved[0] += out;
    moved[1] += in;
    e[r * k + u] -= out;
    e[s * k + u] += out;
    if (!t->directed) {
      e[u * k + r] -= out;
      e[u * k + s] += out;
      continue;
    }
    e[u * k + r] -= in;
    e[u * k + s] += in;
    level->e[1][u * k + r] -= out;
    level->e[1][u * k + s] += out;
    level->e[1][r * k + u] -= in;
    level->e[1][s * k + u] += in;
  }
  e[r * k + r] -= self;
  e[s * k + s] += self;
  if (t->directed) {
    level->e[1][r * k + r] -= self;
    level->e[1][s * k + s] += self;
  }
  for (int d = 0; d <= t->directed; d++) {
    level->sum[d][r] -= moved[d];
    level->sum[d][s] += moved[d];
  }
}

/* Moves the n nodes that were taken from r to s at level l and above; the caller moves members. */
static void shift(irm_nested *t, int l, int32_t r, int32_t s, int64_t n)
{
  int64_t dr = -n, ds = n;
  const int type = irm_type_of(&t->level[l], r);
  for (int m = l; m <= t->top; m++) {
    irm_level *level = &t->level[m], *above = level + 1;
    const int made = ds > 0 && level->size[s] == 0;
    if (r == s && !dr && !ds) break;
    if (r != s) move_links(t, level, r, s);
    level->size[r] += dr;
    level->size[s] += ds;
    level->present[type] += dr + ds;
    const int gone = dr < 0 && level->size[r] == 0;
    if (r == s || m == t->top) break;
    const int32_t above_r = above->b[r], above_s = made ? t->plan[m + 1] : above->b[s];
    if (above_r != above_s) lift(t, m);
    if (made) {
      unspare(level, s);
      enlist(level, s);
      link_member(above, s, above_s);
    }
    if (gone) {
      delist(level, r);
      unlink_member(above, r);
      above->b[r] = -1;
    }
    dr = -gone;
    ds = made;
    r = above_r;
    s = above_s;
  }
}

void irm_nested_move(irm_nested *t, int l, int32_t i, int32_t s)
{
  irm_level *level = &t->level[l];
  const int32_t r = level->b[i];
  unlink_member(level, i);
  shift(t, l, r, s, 1);
  link_member(level, i, s);
  if (!l) move_degree(t, i, r, s);
}

void irm_nested_merge(irm_nested *t, int l, int32_t r, int32_t s)
{
  irm_level *level = &t->level[l];
  const int64_t n = level->size[r];
  shift(t, l, r, s, n);
  for (int32_t i = level->first[r], next; i >= 0; i = next) {
    next = level->next[i];
    unlink_member(level, i);
    link_member(level, i, s);
    if (!l) move_degree(t, i, r, s);
  }
}
