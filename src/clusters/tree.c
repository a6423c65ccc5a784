/* Dividing sets of points at their deepest valleys, and testing these.
 *
 * Null data have a set's covariances and no groups: along each of its principal axes they are uniform, which of all
 * densities with one mode rises most easily by chance (the reference of the gap statistic, Tibshirani, Walther and
 * Hastie 2001). Of more than LARGE points, half of the null data are normal along them instead, and the larger of the
 * two p-values counts: there the depths of normal data vary more. Null data are searched just as the set is. The
 * p-value is that of the data's depth in a Gumbel distribution with the mean and variance of the null depths, which are
 * maxima. As in Kimes and others (2017), a set with a share s of all points is tested at level * s, so that all sets
 * that ought not to be divided, which do not overlap, are wrongly divided with a probability of about `level`. */
#include <string.h>
#include "core/call/parallel.h"
#include "clusters/internal.h"

/* Null data sets are drawn in two batches; the second only where the first leaves the answer open. */
enum { FIRST_NULL_SETS = 9, LARGE = 1000 };

typedef struct tree_job {
  weft_ctx *ctx;
  const weft_points *points;
  const weft_clusters_search *search;
  const weft_clusters_rule *rule;
  weft_clusters_space *spaces; /* one per thread */
  double *variance, *depths;   /* d; null sets */
  int *rows, *moved;
  weft_clusters_node *nodes;
  double done; /* null sets so far, for progress */
} tree_job;

/* Points of null data set number `set`: normal ones have odd numbers. */
static void null_points(const tree_job *job, size_t n, size_t d, uint64_t first, int normal, double *points)
{
  const weft_rng rng = { job->search->key, WEFT_CLUSTERS_NULL };
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < d; j++)
      points[i * d + j] = normal ? sqrt(job->variance[j]) * weft_draw_normal(rng, first + i * d + j)
                                 : sqrt(12 * job->variance[j]) * (weft_draw_uniform(rng, first + i * d + j) - 0.5);
}

/* Depths of null data sets number `from` .. `to` - 1 of a node. */
static weft_status null_depths(tree_job *job, size_t node, size_t d, int from, int to)
{
  const size_t n = job->nodes[node].count;
  const int threads = job->ctx->threads;
  weft_status st = WEFT_OK;
  for (int first = from; first < to; first += threads) {
    const int end = first + threads < to ? first + threads : to;
    WEFT_TRY(weft_poll(job->ctx, job->done, job->done + 2 * to)); /* how many valleys will be tested is not known */
    job->done += end - first;
    WEFT_PARALLEL_FOR(weft_threads_worth(threads, 100.0 * (double) (n * d) * (end - first)), static)
    for (int set = first; set < end; set++) {
      weft_clusters_space *space = job->spaces + WEFT_THREAD();
      const uint64_t draw = ((uint64_t) node << 8) + (uint64_t) set + 1;
      null_points(job, n, d, draw << 32, n > LARGE && set % 2, space->points);
      job->depths[set] = weft_clusters_deepest(job->search, draw, n, d, space);
    }
  }
done:
  return st;
}

/* P(depth or more) under a Gumbel distribution with the mean and the variance of the null depths number `first`,
 * `first` + `step` and so on. */
static void compare_with(weft_clusters_node *node, const double *depths, int first, int step, int sets)
{
  const double euler = 0.57721566490153286, root_six_over_pi = 0.77969680123368015;
  const int count = (sets - first + step - 1) / step;
  double mean = 0, square = 0;
  for (int set = first; set < sets; set += step) mean += depths[set] / count;
  for (int set = first; set < sets; set += step) square += (depths[set] - mean) * (depths[set] - mean) / (count - 1);
  node->null_mean = mean;
  node->null_sd = sqrt(square);
  const double z = (node->valley - mean) / (node->null_sd * root_six_over_pi) + euler;
  node->p_value = node->null_sd > 0 ? -expm1(-exp(-z)) : node->valley > mean ? 0 : 1;
}

/* Where null data are of two kinds, the kind that gives the larger p-value counts. */
static void compare(weft_clusters_node *node, const double *depths, int sets)
{
  node->null_sets = sets;
  if (node->count <= LARGE || sets < 4) {
    compare_with(node, depths, 0, 1, sets);
    return;
  }
  weft_clusters_node normal = *node;
  compare_with(node, depths, 0, 2, sets);
  compare_with(&normal, depths, 1, 2, sets);
  if (normal.p_value > node->p_value) *node = normal;
}

/* Searches a node for its deepest valley, tests it if the rule says so, and moves the points beyond it to the end of
 * the node's rows; *beyond becomes how many there are. */
static weft_status examine(tree_job *job, size_t at, size_t *beyond)
{
  weft_clusters_node *node = job->nodes + at;
  weft_clusters_space *space = job->spaces;
  int *rows = job->rows + node->first;
  size_t here = 0, d;
  weft_status st = WEFT_OK;
  *beyond = 0;
  node->valley = node->null_mean = node->null_sd = node->p_value = WEFT_NAN;
  if (node->count < WEFT_CLUSTERS_DIVISIBLE) return st;
  WEFT_TRY(weft_poll(job->ctx, job->done, job->done + 1));
  d = weft_clusters_turn(job->points, rows, node->count, space, job->variance);
  if (!d) return st;
  node->valley = weft_clusters_deepest(job->search, (uint64_t) at << 8, node->count, d, space);
  if (node->valley <= -DBL_MAX) return st;
  for (size_t i = 0; i < node->count; i++)
    if (space->side[i])
      job->moved[(*beyond)++] = rows[i];
    else
      rows[here++] = rows[i];
  memcpy(rows + here, job->moved, *beyond * sizeof *rows);
  const int most = job->rule->null_sets, first = most < FIRST_NULL_SETS ? most : FIRST_NULL_SETS;
  if (!(job->rule->level > 0)) return st;
  const double level = job->rule->level * (double) node->count / (double) job->points->n;
  WEFT_TRY(null_depths(job, at, d, 0, first));
  compare(node, job->depths, first);
  if (most > first && node->p_value < 0.5 && node->p_value > 1e-6 * level) {
    WEFT_TRY(null_depths(job, at, d, first, most));
    compare(node, job->depths, most);
  }
done:
  return st;
}

/* The node to divide next: of those that may be divided, the one with the deepest valley; -1 where there is none. */
static int deepest_leaf(const tree_job *job, size_t count, const size_t *beyond)
{
  int deepest = -1;
  for (size_t at = 0; at < count; at++) {
    const weft_clusters_node *node = job->nodes + at;
    const double level = job->rule->level * (double) node->count / (double) job->points->n;
    const int open = !node->order && beyond[at] && (!(job->rule->level > 0) || node->p_value <= level);
    if (open && (deepest < 0 || node->valley > job->nodes[deepest].valley)) deepest = (int) at;
  }
  return deepest;
}

/* Takes the memory that a tree needs, for sets of up to all points. */
static weft_status tree_space(tree_job *job, weft_arena *mem, size_t leaves, size_t **beyond)
{
  const size_t threads = (size_t) job->ctx->threads, n = job->points->n, d = job->points->d;
  weft_status st = WEFT_OK;
  WEFT_TAKE0(job->spaces, mem, threads);
  for (size_t thread = 0; thread < (job->rule->level > 0 ? threads : 1); thread++)
    WEFT_TRY(weft_clusters_space_take(mem, n, d, job->search->means, job->spaces + thread));
  WEFT_TAKE(job->variance, mem, d);
  WEFT_TAKE(job->depths, mem, (size_t) job->rule->null_sets + 1);
  WEFT_TAKE(job->moved, mem, n);
  WEFT_TAKE0(*beyond, mem, 2 * leaves);
done:
  return st;
}

/* The part with the deepest valley is divided next, as long as that is deeper than in null data. */
weft_status weft_clusters_tree(weft_ctx *ctx, const weft_points *points, const weft_clusters_search *search,
                               const weft_clusters_rule *rule, int *rows, weft_clusters_node *nodes, size_t *count)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  tree_job job = { ctx, points, search, rule, NULL, NULL, NULL, rows, NULL, nodes, 0 };
  size_t *beyond;
  *count = 1;
  WEFT_TRY(tree_space(&job, &mem, rule->leaves, &beyond));
  for (size_t i = 0; i < points->n; i++) rows[i] = (int) i;
  nodes[0] = (weft_clusters_node){ .parent = -1, .left = -1, .right = -1, .count = points->n };
  WEFT_TRY(examine(&job, 0, beyond));
  for (size_t leaves = 1; leaves < rule->leaves; leaves++) {
    const int at = deepest_leaf(&job, *count, beyond);
    if (at < 0) break;
    weft_clusters_node *node = nodes + at;
    node->order = (int) leaves;
    node->left = (int) *count;
    node->right = (int) *count + 1;
    const size_t here = node->count - beyond[at];
    nodes[node->left] = (weft_clusters_node){ at, -1, -1, 0, node->first, here, .p_value = WEFT_NAN };
    nodes[node->right] = (weft_clusters_node){ at, -1, -1, 0, node->first + here, beyond[at], .p_value = WEFT_NAN };
    *count += 2;
    if (!(rule->level > 0) && leaves + 1 == rule->leaves) break; /* the last are not divided */
    for (int side = node->left; side <= node->right; side++) WEFT_TRY(examine(&job, (size_t) side, beyond + side));
  }
done:
  weft_arena_end(&mem);
  return st;
}
