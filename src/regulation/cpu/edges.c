/* From choices to edges; see regulation.h. A target's choices lie in one run of each half, and are counted in a
 * thread's own arrays, one entry per regulator. */
#include <string.h>
#include "core/call/parallel.h"
#include "regulation/regulation.h"
#include "regulation/cpu/edges.h"

typedef struct {
  int32_t area, signed_area, times, both, pair;
} tally; /* pair: of its last choice, from 1 */

/* Fills a thread's tallies for target t and lists the regulators that have any. */
static size_t count_target(const weft_regulation_chosen *c, size_t target, tally *tallies, int32_t *touched)
{
  size_t found = 0;
  for (size_t half = 0; half < c->halves; half++) {
    const int32_t *choice = c->choices + ((half * c->worlds + c->world) * c->targets + target) * c->steps;
    const int32_t pair = (int32_t) (half / 2) + 1;
    for (size_t step = 0; step < c->steps && choice[step]; step++) {
      const int32_t feature = choice[step] > 0 ? choice[step] - 1 : -choice[step] - 1;
      const int32_t j = feature % (int32_t) c->regulators, share = (int32_t) (c->steps - step);
      tally *now = &tallies[j];
      if (!now->times) touched[found++] = j;
      now->area += share;
      now->signed_area += choice[step] > 0 ? share : -share;
      now->times++;
      now->both += now->pair == pair;
      now->pair = pair;
    }
  }
  return found;
}

static void forget(tally *tallies, const int32_t *touched, size_t found)
{
  for (size_t k = 0; k < found; k++) memset(&tallies[touched[k]], 0, sizeof *tallies);
}

/* Tallies in the order of the regulators. */
static void write_target(tally *tallies, size_t regulators, size_t target, size_t at, const weft_regulation_edges *out)
{
  for (size_t j = 0; j < regulators; j++) {
    const tally *now = &tallies[j];
    if (!now->times) continue;
    out->regulator[at] = (int32_t) j + 1;
    out->target[at] = (int32_t) target + 1;
    out->area[at] = now->area;
    out->signed_area[at] = now->signed_area;
    out->times[at] = now->times;
    out->both[at++] = now->both;
  }
}

/* What a thread adds up: whole numbers, so that it does not matter which thread has which target. */
static void add_areas(const tally *tallies, const int32_t *touched, size_t found, double *sums, double *squares)
{
  for (size_t k = 0; k < found; k++) {
    const double area = tallies[touched[k]].area;
    sums[touched[k]] += area;
    squares[touched[k]] += area * area;
  }
}

/* counts and moments (of each thread: sums, squares), or out; the others are NULL. */
static weft_status all_targets(weft_ctx *ctx, const weft_regulation_chosen *c, double *counts, double *moments,
                               const double *starts, const weft_regulation_edges *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t threads = (size_t) ctx->threads;
  const int64_t targets = (int64_t) c->targets;
  const int64_t batch = (int64_t) (1 + ctx->threads * 4e6 / ((double) (c->halves * c->steps) + (double) c->regulators));
  tally *tallies;
  int32_t *touched;
  WEFT_TAKE0(tallies, &mem, threads * c->regulators);
  WEFT_TAKE(touched, &mem, threads * c->regulators);
  for (int64_t first = 0; first < targets; first += batch) {
    const int64_t end = first + batch < targets ? first + batch : targets;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) targets));
    const double each = 4 * (double) (c->halves * c->steps) + (double) c->regulators;
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - first) * each), guided)
    for (int64_t target = first; target < end; target++) {
      const size_t own = (size_t) WEFT_THREAD() * c->regulators;
      const size_t found = count_target(c, (size_t) target, tallies + own, touched + own);
      if (out)
        write_target(tallies + own, c->regulators, (size_t) target, (size_t) starts[target], out);
      else {
        counts[target] = (double) found;
        add_areas(tallies + own, touched + own, found, moments + 2 * own, moments + 2 * own + c->regulators);
      }
      forget(tallies + own, touched + own, found);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Threads count their targets' choices apart; sums over targets are sums of whole numbers, so the division does not
 * matter. */
weft_status weft_regulation_counts(weft_ctx *ctx, const weft_regulation_chosen *chosen, double *counts, double *sums,
                                   double *squares)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t regulators = chosen->regulators;
  double *moments;
  WEFT_TAKE0(moments, &mem, 2 * regulators * (size_t) ctx->threads);
  WEFT_TRY(all_targets(ctx, chosen, counts, moments, NULL, NULL));
  for (size_t j = 0; j < regulators; j++) {
    sums[j] = squares[j] = 0;
    for (int thread = 0; thread < ctx->threads; thread++) {
      sums[j] += moments[2 * regulators * (size_t) thread + j];
      squares[j] += moments[2 * regulators * (size_t) thread + regulators + j];
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_regulation_list(weft_ctx *ctx, const weft_regulation_chosen *chosen, const double *starts,
                                 const weft_regulation_edges *out)
{
  return all_targets(ctx, chosen, NULL, NULL, starts, out);
}
