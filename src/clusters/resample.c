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

/* What all subsamples share. */
typedef struct resampling {
  const weft_points *points;
  const weft_clusters_search *search;
  const weft_clusters_resample *resample;
  const weft_clusters_grown *grown; /* NULL: random starts */
  double *centres;
  int *found;
} resampling;

/* One subsample: its points, and where their groups go. */
typedef struct drawn {
  weft_points points;
  size_t number, k;
  double *centres; /* k x d */
  int *labels;
} drawn;

/* Copies the points of some rows to x. */
static weft_points points_of_rows(const weft_points *points, const int *rows, size_t m, double *x)
{
  const size_t d = points->d;
  for (size_t i = 0; i < m; i++) memcpy(x + i * d, points->x + (size_t) rows[i] * d, d * sizeof *x);
  return (weft_points){ x, m, d };
}

/* Draws subsample number `sample` and divides it at its valleys. The group of a node is that of its left part; the
 * right part is a new group. */
static weft_status grow(weft_ctx *ctx, const resampling *job, size_t sample)
{
  const weft_clusters_grown *grown = job->grown;
  const size_t m = job->resample->m, k = job->resample->k;
  const weft_rng rng = { job->search->key, WEFT_CLUSTERS_ROWS };
  const weft_clusters_search search = { job->search->means, job->search->equal_means, job->search->key + 1 + sample };
  const weft_clusters_rule rule = { k, 0, 0 };
  int *rows = grown->rows + sample * m, *labels = grown->labels + sample * m, *parents = grown->parents + sample * k;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_clusters_node *nodes;
  int *order, *group;
  double *x;
  size_t count;
  WEFT_TAKE(x, &mem, m * job->points->d);
  WEFT_TAKE(nodes, &mem, 2 * k);
  WEFT_TAKE0(group, &mem, 2 * k);
  WEFT_TAKE(order, &mem, m);
  draw_rows(job->points->n, m, rng, (uint64_t) sample << 32, rows);
  const weft_points own = points_of_rows(job->points, rows, m, x);
  WEFT_TRY(weft_clusters_tree(ctx, &own, &search, &rule, order, nodes, &count));
  for (size_t at = 0; at < k; at++) parents[at] = 0;
  for (size_t at = 1; at < count; at++) { /* a node comes after its parent */
    const weft_clusters_node *parent = nodes + nodes[at].parent;
    const int of_parent = group[nodes[at].parent], right = parent->right == (int) at;
    group[at] = right ? parent->order : of_parent;
    if (right) parents[group[at]] = of_parent;
  }
  for (size_t at = 0; at < count; at++)
    for (size_t i = nodes[at].first; !nodes[at].order && i < nodes[at].first + nodes[at].count; i++)
      labels[order[i]] = group[at];
  grown->found[sample] = (int) ((count + 1) / 2);
done:
  weft_arena_end(&mem);
  return st;
}

/* Centres of k-means from the groups of a grown subsample, of which the last go back to their parents until there are
 * at most k. */
static weft_status grown_centres(weft_ctx *ctx, const drawn *own, const int *labels, const int *parents, int found)
{
  const size_t d = own->points.d;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  int *sizes;
  WEFT_TAKE0(sizes, &mem, own->k);
  memset(own->centres, 0, (size_t) found * d * sizeof *own->centres);
  for (size_t i = 0; i < own->points.n; i++) {
    int group = labels[i];
    while (group >= found) group = parents[group];
    sizes[group]++;
    for (size_t j = 0; j < d; j++) own->centres[(size_t) group * d + j] += own->points.x[i * d + j];
  }
  for (size_t group = 0; group < (size_t) found; group++)
    for (size_t j = 0; j < d; j++) own->centres[group * d + j] /= sizes[group];
  WEFT_TRY(weft_clusters_settle(ctx, &own->points, (size_t) found, own->centres, own->labels));
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

/* k-means of subsample number `sample`. */
static weft_status means(weft_ctx *ctx, const resampling *job, size_t sample)
{
  const weft_clusters_grown *grown = job->grown;
  const size_t m = job->resample->m, k = job->resample->k, d = job->points->d;
  const weft_rng rows_rng = { job->search->key, WEFT_CLUSTERS_ROWS };
  const weft_rng starts_rng = { job->search->key, WEFT_CLUSTERS_MEANS };
  double *centres = job->centres + sample * k * d, *x;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  int *rows, *labels;
  WEFT_TAKE(rows, &mem, m);
  WEFT_TAKE(labels, &mem, m);
  WEFT_TAKE(x, &mem, m * d);
  if (grown)
    memcpy(rows, grown->rows + sample * m, m * sizeof *rows);
  else
    draw_rows(job->points->n, m, rows_rng, (uint64_t) sample << 32, rows);
  for (size_t i = 0; i < k * d; i++) centres[i] = WEFT_NAN;
  const drawn own = { points_of_rows(job->points, rows, m, x), sample, k, centres, labels };
  job->found[sample] = grown && grown->found[sample] < (int) k ? grown->found[sample] : (int) k;
  if (!grown)
    WEFT_TRY(best_centres(ctx, &own, starts_rng, job->resample->starts));
  else
    WEFT_TRY(
        grown_centres(ctx, &own, grown->labels + sample * m, grown->parents + sample * grown->k, job->found[sample]));
done:
  weft_arena_end(&mem);
  return st;
}

/* Subsamples are dealt to threads, each with a context of its own: R is polled between batches. */
static weft_status each_subsample(weft_ctx *ctx, const resampling *job,
                                  weft_status (*work)(weft_ctx *, const resampling *, size_t))
{
  enum { BATCH = 4 }; /* subsamples of a thread between polls: they take unequal times */
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_clusters_resample *resample = job->resample;
  const int64_t samples = (int64_t) resample->samples, batch = BATCH * (int64_t) ctx->threads;
  weft_status *status;
  weft_ctx *own;
  WEFT_TAKE0(status, &mem, (size_t) batch);
  WEFT_TAKE(own, &mem, (size_t) batch);
  for (int64_t first = 0; first < samples; first += batch) {
    const int64_t end = first + batch < samples ? first + batch : samples;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) samples));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 100.0 * (double) (resample->m * job->points->d * resample->k)),
                      dynamic)
    for (int64_t sample = first; sample < end; sample++) {
      weft_ctx *alone = own + (sample - first);
      *alone = *ctx;
      alone->poll = NULL;
      alone->threads = 1;
      status[sample - first] = work(alone, job, (size_t) sample);
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

weft_status weft_clusters_grow(weft_ctx *ctx, const weft_points *points, const weft_clusters_search *search,
                               const weft_clusters_resample *resample, const weft_clusters_grown *grown)
{
  const resampling job = { points, search, resample, grown, NULL, NULL };
  return each_subsample(ctx, &job, grow);
}

weft_status weft_clusters_subsamples(weft_ctx *ctx, const weft_points *points, uint64_t key,
                                     const weft_clusters_resample *resample, const weft_clusters_grown *grown,
                                     double *centres, int *found)
{
  const weft_clusters_search search = { .key = key };
  const resampling job = { points, &search, resample, grown, centres, found };
  return each_subsample(ctx, &job, means);
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

/* For each subsample, every point votes for the nearest centre, as the group that the centre is matched to. */
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
