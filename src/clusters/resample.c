/* Groups of subsamples, and how far they agree with the groups of all points. */
#include <string.h>
#include "core/call/parallel.h"
#include "clusters/internal.h"

/* m of the points at random, in ascending order (Vitter 1984, selection sampling). */
static void draw_rows(size_t n, size_t m, weft_rng rng, uint64_t first, int *rows)
{
  size_t taken = 0;
  for (size_t i = 0; i < n && taken < m; i++)
    if (weft_draw_uniform(rng, first + i) * (double) (n - i) < (double) (m - taken)) rows[taken++] = (int) i;
}

/* One subsample: its points, and where their groups go. */
typedef struct drawn {
  weft_points points;
  size_t number, k;
  double *centres; /* k x d */
  int *labels;
} drawn;

/* Centres of the groups into which valleys divide the points; *found becomes how many there are. */
static weft_status valley_centres(weft_ctx *ctx, const drawn *own, const weft_clusters_search *search, int *found)
{
  const weft_clusters_rule rule = { own->k, 0, 0 };
  const size_t d = own->points.d;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_clusters_node *nodes;
  int *order;
  size_t count, group = 0;
  WEFT_TAKE(nodes, &mem, 2 * own->k);
  WEFT_TAKE(order, &mem, own->points.n);
  WEFT_TRY(weft_clusters_tree(ctx, &own->points, search, &rule, order, nodes, &count));
  for (size_t at = 0; at < count; at++) {
    const weft_clusters_node *node = nodes + at;
    if (node->order) continue;
    double *centre = own->centres + group++ * d;
    memset(centre, 0, d * sizeof *centre);
    for (size_t i = node->first; i < node->first + node->count; i++)
      for (size_t j = 0; j < d; j++) centre[j] += own->points.x[(size_t) order[i] * d + j] / (double) node->count;
  }
  *found = (int) group;
  WEFT_TRY(weft_clusters_settle(ctx, &own->points, group, own->centres, own->labels));
done:
  weft_arena_end(&mem);
  return st;
}

/* Centres of the k-means with the least sum of squares of several random starts. */
static weft_status best_centres(weft_ctx *ctx, const drawn *own, weft_rng rng, size_t starts)
{
  enum { ROUNDS = 100 };
  const weft_points *points = &own->points;
  const size_t size = own->k * points->d;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_clusters_space space = { .labels = own->labels };
  double least = WEFT_INFINITY;
  WEFT_TAKE(space.centres, &mem, size);
  WEFT_TAKE(space.moved, &mem, size);
  WEFT_TAKE(space.distance, &mem, points->n);
  WEFT_TAKE(space.sizes, &mem, own->k);
  for (size_t start = 0; start < starts; start++) {
    double sum = 0;
    WEFT_TRY(weft_poll(ctx, (double) start, (double) starts));
    weft_clusters_start(points, own->k, rng, (((uint64_t) own->number << 16) + start) << 32, &space);
    weft_clusters_iterate(points, own->k, ROUNDS, &space);
    for (size_t i = 0; i < points->n; i++) {
      double square;
      (void) weft_clusters_nearest(points->x + i * points->d, space.centres, own->k, points->d, &square);
      sum += square;
    }
    if (!(sum < least)) continue;
    least = sum;
    memcpy(own->centres, space.centres, size * sizeof *space.centres);
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Draws subsample number `sample` and finds its groups. */
static weft_status subsample(weft_ctx *ctx, const weft_points *points, const weft_clusters_search *search,
                             const weft_clusters_resample *resample, size_t sample, double *centres, int *found)
{
  const size_t m = resample->m, k = resample->k, d = points->d;
  const weft_rng rows_rng = { search->key, WEFT_CLUSTERS_ROWS }, starts_rng = { search->key, WEFT_CLUSTERS_MEANS };
  const weft_clusters_search own_search = { search->means, search->key + 1 + sample };
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  int *rows;
  double *x;
  WEFT_TAKE(rows, &mem, m);
  WEFT_TAKE(x, &mem, m * d);
  draw_rows(points->n, m, rows_rng, (uint64_t) sample << 32, rows);
  for (size_t i = 0; i < m; i++) memcpy(x + i * d, points->x + (size_t) rows[i] * d, d * sizeof *x);
  for (size_t i = 0; i < k * d; i++) centres[i] = WEFT_NAN;
  const drawn own = { { x, m, d }, sample, k, centres, rows };
  *found = (int) k;
  if (resample->starts)
    WEFT_TRY(best_centres(ctx, &own, starts_rng, resample->starts));
  else
    WEFT_TRY(valley_centres(ctx, &own, &own_search, found));
done:
  weft_arena_end(&mem);
  return st;
}

/* Subsamples are dealt to threads, each with a context of its own: R is polled between batches. */
weft_status weft_clusters_subsamples(weft_ctx *ctx, const weft_points *points, const weft_clusters_search *search,
                                     const weft_clusters_resample *resample, double *centres, int *found)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t samples = (int64_t) resample->samples, batch = ctx->threads;
  const size_t each = resample->k * points->d;
  weft_status *status;
  weft_ctx *own;
  WEFT_TAKE0(status, &mem, (size_t) batch);
  WEFT_TAKE(own, &mem, (size_t) batch);
  for (int64_t first = 0; first < samples; first += batch) {
    const int64_t end = first + batch < samples ? first + batch : samples;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) samples));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 100.0 * (double) (resample->m * points->d * resample->k)),
                      static)
    for (int64_t sample = first; sample < end; sample++) {
      weft_ctx *alone = own + (sample - first);
      *alone = *ctx;
      alone->poll = NULL;
      alone->threads = 1;
      status[sample - first] =
          subsample(alone, points, search, resample, (size_t) sample, centres + (size_t) sample * each, found + sample);
    }
    for (int64_t at = 0; at < end - first; at++) {
      if (status[at] == WEFT_OK) continue;
      memcpy(ctx->message, own[at].message, sizeof ctx->message);
      st = status[at];
      goto done;
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Matches a subsample's groups with those of all points: the pair with the largest Jaccard index first. shared[own * k
 * + group] counts points; match[own] becomes a group, -1 where there is none, agreement[group] the index. */
static void match_groups(const double *shared, size_t found, size_t k, int *match, double *agreement)
{
  for (size_t own = 0; own < found; own++) match[own] = -1;
  for (size_t group = 0; group < k; group++) agreement[group] = 0;
  for (size_t pair = 0; pair < found; pair++) {
    double best = 0;
    size_t best_own = 0, best_group = 0;
    for (size_t own = 0; own < found; own++)
      for (size_t group = 0; group < k && match[own] < 0; group++) {
        double own_size = 0, group_size = 0;
        if (agreement[group] > 0) continue;
        for (size_t other = 0; other < k; other++) own_size += shared[own * k + other];
        for (size_t other = 0; other < found; other++) group_size += shared[other * k + group];
        const double both = shared[own * k + group], index = both > 0 ? both / (own_size + group_size - both) : 0;
        if (index > best) {
          best = index;
          best_own = own;
          best_group = group;
        }
      }
    if (!(best > 0)) break;
    match[best_own] = (int) best_group;
    agreement[best_group] = best;
  }
}

weft_status weft_clusters_vote(weft_ctx *ctx, const weft_points *points, const weft_clusters_resample *resample,
                               const double *centres, const int *found, const int *labels, int *votes,
                               double *agreement)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = points->n, d = points->d, k = resample->k;
  double *shared;
  int *nearest, *match;
  WEFT_TAKE(shared, &mem, k * k);
  WEFT_TAKE(nearest, &mem, n);
  WEFT_TAKE(match, &mem, k);
  memset(votes, 0, n * k * sizeof *votes);
  for (size_t sample = 0; sample < resample->samples; sample++) {
    const double *own = centres + sample * k * d;
    const size_t own_k = (size_t) found[sample];
    WEFT_TRY(weft_poll(ctx, (double) sample, (double) resample->samples));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (n * d * own_k)), static)
    for (int64_t i = 0; i < (int64_t) n; i++) {
      double square;
      nearest[i] = (int) weft_clusters_nearest(points->x + (size_t) i * d, own, own_k, d, &square);
    }
    memset(shared, 0, k * k * sizeof *shared);
    for (size_t i = 0; i < n; i++) shared[(size_t) nearest[i] * k + (size_t) labels[i]]++;
    match_groups(shared, own_k, k, match, agreement + sample * k);
    for (size_t i = 0; i < n; i++)
      if (match[nearest[i]] >= 0) votes[(size_t) match[nearest[i]] * n + i]++;
  }
done:
  weft_arena_end(&mem);
  return st;
}
