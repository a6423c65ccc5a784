/* Topological overlap of the pairs that are edges: (shared + a) / (min(k_i, k_j) + 1 - a), where `shared` sums the
 * products of both genes' weights to the neighbours they have in common, and k_i is the sum of gene i's weights (Zhang
 * and Horvath 2005). */
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "modules/modules.h"

typedef struct {
  const weft_modules_graph *graph;
  const double *strength;
  double *overlap;
  size_t shared;
} overlap_job;

/* Edges of gene i to later genes. `own` is 0 but while gene i is at work. */
static void overlap_of(const overlap_job *job, size_t i, double *own)
{
  const weft_modules_graph *g = job->graph;
  for (size_t at = g->start[i]; at < g->start[i + 1]; at++) own[g->to[at]] = g->weight[at];
  for (size_t at = g->start[i]; at < g->start[i + 1]; at++) {
    const size_t j = (size_t) g->to[at];
    if (j <= i) continue;
    size_t common = 0;
    double sum = 0;
    for (size_t other = g->start[j]; other < g->start[j + 1]; other++) {
      const double weight = own[g->to[other]];
      if (weight > 0) sum += weight * g->weight[other], common++;
    }
    const double a = g->weight[at], k = job->strength[i] < job->strength[j] ? job->strength[i] : job->strength[j];
    job->overlap[at] = common < job->shared ? 0 : (sum + a) / (k + 1 - a);
  }
  for (size_t at = g->start[i]; at < g->start[i + 1]; at++) own[g->to[at]] = 0;
}

/* The place of the edge from i to j. */
static size_t edge_at(const weft_modules_graph *g, size_t i, int j)
{
  size_t low = g->start[i], high = g->start[i + 1];
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (g->to[middle] <= j)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* The overlap of each edge is computed once, at its first gene, and then written to both of its places. */
weft_status weft_modules_overlap(weft_ctx *ctx, const weft_modules_graph *graph, size_t shared)
{
  enum { GENES = 2048 };
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = graph->p, edges = graph->start[p];
  double *strength, *overlap, *own;
  const int threads = weft_threads_worth(ctx->threads, 50.0 * (double) edges);
  WEFT_TAKE0(strength, &mem, p);
  WEFT_TAKE0(overlap, &mem, edges + 1);
  WEFT_TAKE0(own, &mem, p * (size_t) threads);
  for (size_t i = 0; i < p; i++)
    for (size_t at = graph->start[i]; at < graph->start[i + 1]; at++) strength[i] += graph->weight[at];
  const overlap_job job = { graph, strength, overlap, shared };
  for (size_t first = 0; first < p; first += GENES) {
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    const size_t end = p - first < GENES ? p : first + GENES;
    WEFT_PARALLEL_FOR(threads, guided)
    for (size_t i = first; i < end; i++) overlap_of(&job, i, own + p * (size_t) WEFT_THREAD());
  }
  for (size_t i = 0; i < p; i++)
    for (size_t at = graph->start[i]; at < graph->start[i + 1]; at++) {
      const size_t j = (size_t) graph->to[at];
      graph->weight[at] = j > i ? overlap[at] : overlap[edge_at(graph, j, (int) i)];
    }
done:
  weft_arena_end(&mem);
  return st;
}
