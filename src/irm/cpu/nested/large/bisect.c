/* Where the groups of a large graph part in two: by the signs of the leading vector of what the groups do not explain.
 *
 * Every node has a number, at first by coin. In each step it becomes the sum of its neighbours' numbers over the root
 * of its degree, less its group's mean (by degrees), which is what the groups explain, and scaled to the deviation in
 * its group: power iteration in all groups at once. In a directed graph, links are followed forward and backward in
 * turn. Numbers are whole, from -127 to 127, and fill little of a processor's cache. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/nested/large/bisect.h"

/* Steps; a deviation of the numbers, and the unit of the quotients; ends of links between two polls. */
enum { STEPS = 7, DEVIATION = 48, UNIT = 16, POLL_ENDS = 50000000, PIECE = 256 };

static int64_t add_up(const weft_irm_lists *lists, int64_t at, const int8_t *numbers)
{
  int64_t sum = 0;
  if (lists->weight)
    for (int64_t j = lists->start[at]; j < lists->start[at + 1]; j++)
      sum += (int64_t) lists->weight[j] * numbers[lists->to[j]];
  else
    for (int64_t j = lists->start[at]; j < lists->start[at + 1]; j++) sum += numbers[lists->to[j]];
  return sum;
}

/* The sum of the neighbours' numbers over the root of the degree. */
static int32_t quotient(const irm_nested *state, int64_t i, int backward, const int8_t *numbers)
{
  const weft_irm_graph *graph = state->graph;
  const int column = state->bipartite && i >= graph->n[0];
  const int64_t degree = state->degree[backward][i];
  const int64_t sum = add_up(&graph->links[column || backward], column ? i - graph->n[0] : i,
                             numbers + (state->bipartite && !column ? graph->n[0] : 0));
  const double value = degree ? UNIT * (double) sum / sqrt((double) degree) : 0;
  return (int32_t) (value > 1e8 ? 1e8 : value < -1e8 ? -1e8 : rint(value));
}

/* Numbers from quotients. */
static void scale(const irm_nested *state, const int32_t *quotients, int backward, double *mean, double *deviation,
                  int8_t *numbers)
{
  const irm_level *level = &state->level[0];
  for (int32_t home = 0; home < level->k; home++) mean[home] = deviation[home] = 0;
  for (int64_t i = 0; i < state->n; i++) {
    const double y = quotients[i];
    mean[level->b[i]] += y * (double) state->degree[backward][i];
    deviation[level->b[i]] += y * y;
  }
  for (int32_t home = 0; home < level->k; home++) {
    mean[home] /= level->sum[backward][home] ? (double) level->sum[backward][home] : 1;
    deviation[home] = sqrt(deviation[home] / (level->size[home] ? (double) level->size[home] : 1));
  }
  WEFT_PARALLEL_FOR(weft_threads_worth(state->threads, 10 * (double) state->n), static)
  for (int64_t i = 0; i < state->n; i++) {
    const int32_t home = level->b[i];
    const double y = deviation[home] > 0 ? DEVIATION * (quotients[i] - mean[home]) / deviation[home] : 0;
    numbers[i] = (int8_t) (y > 127 ? 127 : y < -127 ? -127 : rint(y));
  }
}

/* Signs by coin, then STEPS steps. */
weft_status irm_bisect(weft_ctx *poll, irm_nested *state, int8_t *side)
{
  weft_status st = WEFT_OK;
  double *sums = (double *) state->tables;
  const int64_t chunk = POLL_ENDS / (state->ends / state->n + 1) + 1;
  for (int64_t i = 0; i < state->n; i++) side[i] = irm_nested_next(state) < 0.5 ? -DEVIATION : DEVIATION;
  for (int step = 0; step < STEPS; step++) {
    const int backward = state->directed && step % 2;
    for (int64_t first = 0; first < state->n; first += chunk) {
      const int64_t last = first + chunk < state->n ? first + chunk : state->n;
      WEFT_PARALLEL_FOR(weft_threads_worth(state->threads, 100 * (double) (last - first)), dynamic)
      for (int64_t some = first; some < last; some += PIECE)
        for (int64_t i = some; i < last && i < some + PIECE; i++) state->goes[i] = quotient(state, i, backward, side);
      if (poll) WEFT_TRY(weft_poll(poll, (double) last, (double) state->n));
    }
    scale(state, state->goes, backward, sums, sums + state->level[0].k, side);
  }
done:
  return st;
}
