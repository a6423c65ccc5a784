/* All tuples of a given order over a chosen set of attributes, counted from codes. Tuples are numbered in lexicographic
 * order, so that threads can share them by number and ties go to the first. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/search/cpu/coded.h"
#include "mi/search/cpu/tuples.h"

#define UNIT 32 /* tuples per piece of work */

typedef struct {
  weft_mi_coder coder;
  weft_mi_keeper keeper;
} workspace;

double weft_mi_choose(double p, int order)
{
  double ways = 1;
  for (int k = 0; k < order; k++) ways = ways * (p - k) / (k + 1);
  return p < order ? 0 : floor(ways + 0.5);
}

void weft_mi_unrank(uint64_t rank, size_t p, int order, uint32_t *out)
{
  uint32_t next = 0;
  for (int j = 0; j < order; j++) {
    for (;; next++) {
      const double with = weft_mi_choose((double) (p - next) - 1, order - j - 1);
      if ((double) rank < with) break;
      rank -= (uint64_t) with;
    }
    out[j] = next++;
  }
}

/* The next tuple in order; not called on the last. */
static void advance(uint32_t *at, size_t p, int order)
{
  int j = order - 1;
  while (j > 0 && at[j] == p - (size_t) (order - j)) j--;
  at[j]++;
  for (j++; j < order; j++) at[j] = at[j - 1] + 1;
}

/* Scores one tuple from codes, without its parts where no interaction is asked for, and keeps it if it is above the
 * thresholds. */
static void score(const weft_mi_pack *pack, const uint32_t *chosen, const uint16_t *codes, const weft_mi_search *search,
                  const uint32_t *at, uint64_t rank, workspace *w)
{
  const int order = search->order, gains = search->by_interaction || search->min_gain > -INFINITY;
  const uint16_t *columns[WEFT_MI_ORDER];
  uint32_t levels[WEFT_MI_ORDER], masks[WEFT_MI_ORDER + 1];
  int64_t scores[WEFT_MI_ORDER + 1], greatest = 0;
  masks[0] = (1u << order) - 1;
  for (int j = 0; j < order; j++) {
    columns[j] = codes + (size_t) at[j] * pack->n;
    levels[j] = pack->levels[pack->place[chosen[at[j]]]];
    masks[1 + j] = masks[0] & ~(1u << j);
  }
  const size_t n = weft_mi_coded(&w->coder, pack, columns, levels, order, masks, gains ? 1 + order : 1, scores);
  for (int j = 0; gains && j < order; j++)
    if (scores[1 + j] > greatest) greatest = scores[1 + j];
  const double mi = weft_mi_bits(scores[0], pack->f.unit, n),
               gain = weft_mi_bits(scores[0] - greatest, pack->f.unit, n);
  if (mi >= search->min_mi && (!gains || gain >= search->min_gain))
    weft_mi_keep(&w->keeper, search->by_interaction ? gain : mi, rank);
}

/* Decodes the chosen attributes once; then threads share runs of UNIT tuples, numbered in lexicographic order. */
weft_status weft_mi_search_tuples(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *chosen, size_t p,
                                  const weft_mi_search *search, weft_arena *mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const double ways = weft_mi_choose((double) p, search->order);
  const int threads = weft_threads_worth(ctx->threads, ways * search->order * 2 * (double) pack->n);
  const uint64_t tuples = (uint64_t) ways, units = (tuples + UNIT - 1) / UNIT;
  int begun = 0;
  weft_mi_pace pace = { 4 * (size_t) threads, 0 };
  weft_mi_keeper *keepers = NULL;
  workspace *work;
  uint16_t *codes;
  WEFT_TAKE(codes, &own, p * pack->n);
  for (size_t k = 0; k < p; k++) weft_mi_pack_codes(pack, pack->place[chosen[k]], codes + k * pack->n);
  WEFT_TAKE(work, &own, (size_t) threads);
  WEFT_TAKE(keepers, &own, (size_t) threads);
  for (int thread = 0; thread < threads; thread++)
    WEFT_TRY(weft_mi_coder_init(&work[thread].coder, &own, pack, search->order));
  for (; begun < threads; begun++)
    WEFT_TRY(weft_mi_keeper_begin(ctx, &work[begun].keeper, search->top, tuples ? tuples : 1));
  for (uint64_t first = 0; first < units; first += pace.batch, weft_mi_pace_next(&pace)) {
    const int64_t count = (int64_t) (units - first < pace.batch ? units - first : pace.batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) units));
    weft_mi_pace_start(&pace);
    WEFT_PARALLEL_FOR(threads, dynamic)
    for (int64_t k = 0; k < count; k++) {
      const uint64_t from = (first + (uint64_t) k) * UNIT, to = from + UNIT < tuples ? from + UNIT : tuples;
      uint32_t at[WEFT_MI_ORDER];
      weft_mi_unrank(from, p, search->order, at);
      for (uint64_t rank = from; rank < to; rank++) {
        if (rank > from) advance(at, p, search->order);
        score(pack, chosen, codes, search, at, rank, &work[WEFT_THREAD()]);
      }
    }
  }
done:
  for (int thread = 0; thread < begun; thread++) keepers[thread] = work[thread].keeper;
  st = weft_mi_keepers_close(ctx, st, keepers, begun, mem, out);
  weft_arena_end(&own);
  return st;
}
