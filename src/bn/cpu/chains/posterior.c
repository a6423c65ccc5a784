/* Posteriors of edges from drawn graphs. */
#include <string.h>
#include "core/call/parallel.h"
#include "bn/cpu/chains/chain.h"
#include "bn/both/joint.h"

#define NODES_EACH 8 /* nodes whose parents one thread counts at a time */

typedef struct {
  const weft_bn_table *table;
  const int32_t *sampled;
  size_t samples, ladders;
  double *edges;
} edges_job;

/* Columns first .. last - 1 of the edges, summed ladder by ladder; how far the ladders' means lie apart. room: 3 x p x
 * their number. */
static double edges_of(const edges_job *job, size_t first, size_t last, double *room)
{
  const weft_bn_table *table = job->table;
  const size_t p = table->p, cells = p * (last - first);
  double *own = room, *least = own + cells, *most = least + cells, *edges = job->edges + p * first, difference = 0;
  memset(edges, 0, cells * sizeof *edges);
  for (size_t c = 0; c < job->ladders; c++) {
    memset(own, 0, cells * sizeof *own);
    for (size_t at = c * job->samples; at < (c + 1) * job->samples; at++)
      for (size_t i = first; i < last; i++) {
        const uint64_t *set = table->mask + (size_t) (table->start[i] + job->sampled[at * p + i]) * table->words;
        double *to = own + p * (i - first);
        for (size_t w = 0; w < table->words; w++)
          for (uint64_t word = set[w]; word; word &= word - 1) to[64 * w + (size_t) __builtin_ctzll(word)]++;
      }
    for (size_t k = 0; k < cells; k++) {
      const double mean = own[k] / (double) job->samples;
      edges[k] += own[k];
      least[k] = c && least[k] < mean ? least[k] : mean;
      most[k] = c && most[k] > mean ? most[k] : mean;
    }
  }
  for (size_t k = 0; k < cells; k++) {
    edges[k] /= (double) (job->samples * job->ladders);
    if (most[k] - least[k] > difference) difference = most[k] - least[k];
  }
  return difference;
}

/* Threads take NODES_EACH children each; sums run over samples in their order, so that threads change nothing. */
weft_status weft_bn_edge_means(weft_ctx *ctx, const weft_bn_table *table, const int32_t *sampled, size_t samples,
                               size_t ladders, double *edges, double *difference)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const edges_job job = { table, sampled, samples, ladders, edges };
  const size_t p = table->p, step = NODES_EACH * (size_t) ctx->threads;
  double *room, *apart;
  WEFT_TAKE(room, &mem, (size_t) ctx->threads * 3 * NODES_EACH * p);
  WEFT_TAKE(apart, &mem, (size_t) ctx->threads);
  *difference = 0;
  for (size_t first = 0; first < p; first += step) {
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) (samples * ladders) * (double) (step < p ? step : p) * 10))
    WEFT_FOR(static)
    for (int k = 0; k < ctx->threads; k++) {
      const size_t from = first + NODES_EACH * (size_t) k, to = from + NODES_EACH < p ? from + NODES_EACH : p;
      apart[k] = from < p ? edges_of(&job, from, to, room + (size_t) k * 3 * NODES_EACH * p) : 0;
    }
    for (int k = 0; k < ctx->threads; k++)
      if (apart[k] > *difference) *difference = apart[k];
  }
done:
  weft_arena_end(&mem);
  return st;
}
