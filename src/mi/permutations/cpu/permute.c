/* Permutation tests: the labels of the rows are exchanged, the packed data stay.
 *
 *   pairs   planes are moved to the new order of rows, the reported pairs are scored again, and one more search for the
 *           single best pair gives the maximum statistic; a device counts many label sets at once where it can
 *   rank    the permuted labels are packed as attributes: features against them are a matrix of pairs, which is one
 *           product of bit matrices
 *
 * Permutation b shuffles by Fisher and Yates, within strata; step i draws index b 2^32 + i. Scores are exact, so that
 * "at least as large" is meant literally. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/numbers/draws.h"
#include "core/call/parallel.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/search/cpu/coded.h"
#include "mi/permutations/cpu/permute.h"
#include "mi/permutations/both/permute_ternary.h"

enum { STREAM = 0x6d69 }; /* this purpose's draws */
#define LABELS_AT_ONCE 64

/* Draws a permutation of the pack's sorted rows within strata, whose rows are neighbours. */
static void permute(uint64_t key, uint64_t permutation, const weft_mi_pack *pack, uint32_t *perm)
{
  const weft_rng rng = { key, STREAM };
  for (size_t i = 0; i < pack->n; i++) perm[i] = (uint32_t) i;
  for (size_t c = 0, end = 0, start = 0; c < pack->classes; c++) {
    end += pack->class_rows[c];
    if ((c + 1) % pack->per) continue;
    for (size_t i = end; i-- > start + 1;) {
      const size_t j = start + (size_t) weft_draw_below(rng, permutation << 32 | i, i - start + 1);
      const uint32_t swap = perm[i];
      perm[i] = perm[j];
      perm[j] = swap;
    }
    start = end;
  }
}

/* The attributes of the tuples in `columns`. */
static weft_status select_found(weft_ctx *ctx, weft_arena *mem, const weft_mi_pack *pack, const uint32_t *columns,
                                size_t count, weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  uint8_t *side;
  WEFT_TAKE0(side, &own, pack->columns);
  for (size_t k = 0; k < count; k++) side[columns[k]] = 3;
  WEFT_TRY(weft_mi_pack_select(ctx, mem, pack, side, out));
done:
  weft_arena_end(&own);
  return st;
}

/* A pack with rows exchanged, on the host or on a device alone. */
typedef struct {
  weft_mi_pack on_host, on_device;
  weft_mi_resident *home, *copy; /* of a device: the planes as they are, and exchanged */
} exchange;

/* The pack to search: its planes are in *device, or will be sent there. */
static weft_status exchange_rows(weft_ctx *ctx, weft_arena *mem, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                 const uint32_t *perm, exchange *exchanged, const weft_mi_pack **moved)
{
  weft_status st = WEFT_OK;
  *moved = &exchanged->on_device;
  if (ops->permute && !exchanged->on_device.margins)
    WEFT_TAKE0(exchanged->on_device.margins, mem, pack->plane_rows * pack->classes + WEFT_MI_TILE);
  if (ops->permute) WEFT_TRY(ops->permute(ctx, pack, &exchanged->home, perm, &exchanged->on_device, &exchanged->copy));
  if (exchanged->copy) goto done;
  *moved = &exchanged->on_host;
  st = weft_mi_pack_permute(ctx, mem, pack, perm, &exchanged->on_host);
done:
  return st;
}

/* ---- many label sets at once, where the device has that ---- */

typedef struct {
  const weft_mi_pack *pack;
  const weft_mi_search *search;
  uint64_t key;
} label_source;

/* Set k is this part's k-th permutation. Two classes. */
static void draw_labels(const void *data, size_t set, uint32_t of, uint32_t *perm, uint32_t *rows)
{
  const label_source *source = data;
  const uint32_t second = source->pack->class_rows[0];
  permute(source->key, source->search->part + set * source->search->parts, source->pack, perm);
  for (size_t row = 0; row < source->pack->n; row++)
    if ((perm[row] >= second) == of) *rows++ = (uint32_t) row;
}

/* Lets the back end count many label sets at once. *done_there: 0 where it cannot, and nothing has been written then.
 * greatest[]: only this part's permutations. */
static weft_status relabel_pairs(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                 weft_mi_resident **device, const weft_mi_search *search, const uint32_t *columns,
                                 const weft_mi_tuple *observed, size_t count, size_t permutations, uint64_t key,
                                 double *at_least, double *greatest, int *done_there)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const label_source source = { pack, search, key };
  const size_t sets = (permutations - search->part + search->parts - 1) / search->parts;
  double *scores, *by_set;
  WEFT_TAKE(scores, &mem, count);
  WEFT_TAKE(by_set, &mem, sets);
  for (size_t k = 0; k < count; k++) scores[k] = search->by_interaction ? observed[k].interaction : observed[k].mi;
  const weft_mi_relabelling how = { search, columns, scores, count, sets, draw_labels, &source, at_least, by_set };
  WEFT_TRY(ops->relabel(ctx, pack, device, &how, done_there));
  for (size_t k = 0; k < sets && *done_there; k++) greatest[search->part + k * search->parts] = by_set[k];
done:
  weft_arena_end(&mem);
  return st;
}

/* For each permutation of this part, exchanges the rows, scores the reported pairs again, and searches the single best
 * pair, whose score goes to greatest[]; or, where the back end can, many label sets at once. */
weft_status weft_mi_permute_pairs(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack,
                                  const weft_mi_search *search, const uint32_t *columns, size_t count,
                                  size_t permutations, uint64_t key, double *at_least, double *greatest)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mi_search single = *search;
  weft_mi_tuple *observed, *now;
  weft_mi_pack found, found_moved;
  exchange exchanged;
  uint32_t *perm;
  memset(&found_moved, 0, sizeof found_moved);
  memset(&exchanged, 0, sizeof exchanged);
  single.top = 1;
  single.part = 0;
  single.parts = 1;
  single.min_mi = single.min_gain = -INFINITY;
  WEFT_TAKE(perm, &mem, pack->n);
  WEFT_TAKE(observed, &mem, count);
  WEFT_TAKE(now, &mem, count);
  WEFT_TRY(select_found(ctx, &mem, pack, columns, count * (size_t) search->order, &found));
  WEFT_TRY(weft_mi_score_tuples(ctx, &found, columns, count, search->order, observed));
  memset(at_least, 0, count * sizeof *at_least);
  if (ops->relabel && search->part < permutations) {
    int done_there = 0;
    WEFT_TRY(relabel_pairs(ctx, ops, pack, &exchanged.home, search, columns, observed, count, permutations, key,
                           at_least, greatest, &done_there));
    if (done_there) goto done;
  }
  for (size_t permutation = search->part; permutation < permutations; permutation += search->parts) {
    weft_arena step = weft_arena_begin(ctx);
    weft_mi_found best = { NULL, 0 };
    const weft_mi_pack *moved = NULL;
    weft_mi_resident *sent = NULL;
    ctx->stage = (double) ((permutation - search->part) / search->parts);
    ctx->stages = (double) ((permutations - search->part + search->parts - 1) / search->parts);
    permute(key, permutation, pack, perm);
    st = weft_mi_pack_permute(ctx, &mem, &found, perm, &found_moved);
    if (st == WEFT_OK) st = weft_mi_score_tuples(ctx, &found_moved, columns, count, search->order, now);
    if (st == WEFT_OK) st = exchange_rows(ctx, &mem, ops, pack, perm, &exchanged, &moved);
    if (st == WEFT_OK) st = ops->search(ctx, moved, exchanged.copy ? &exchanged.copy : &sent, &single, &step, &best);
    if (st == WEFT_OK) greatest[permutation] = best.count ? best.items[0].score : -INFINITY;
    weft_arena_end(&step);
    if (sent) ops->release(ctx, sent);
    if (st != WEFT_OK) goto done;
    for (size_t k = 0; k < count; k++)
      at_least[k] +=
          search->by_interaction ? now[k].interaction >= observed[k].interaction : now[k].mi >= observed[k].mi;
    WEFT_TRY(weft_poll(ctx, 1, 1));
  }
done:
  ctx->stages = 0;
  if (exchanged.copy) ops->release(ctx, exchanged.copy);
  if (exchanged.home) ops->release(ctx, exchanged.home);
  weft_arena_end(&mem);
  return st;
}

/* Packs up to 64 permuted class columns as attributes and scores all features against them as a matrix. Label set 0 is
 * the classes as they are, whose scores are `observed`. */
weft_status weft_mi_permute_rank(weft_ctx *ctx, const weft_mi_ops *ops, const weft_mi_pack *pack, size_t permutations,
                                 uint64_t key, double *observed, double *at_least, double *greatest)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t rows = pack->rows_in;
  weft_column columns[LABELS_AT_ONCE];
  uint16_t *classes;
  uint32_t *perm;
  int32_t *values;
  double *scores;
  weft_mi_resident *device = NULL;
  WEFT_TAKE(perm, &mem, pack->n);
  WEFT_TAKE(classes, &mem, rows);
  const weft_mi_classes same = { classes, pack->classes, pack->per };
  WEFT_TAKE0(values, &mem, rows * LABELS_AT_ONCE);
  WEFT_TAKE(scores, &mem, pack->p * LABELS_AT_ONCE);
  memset(at_least, 0, pack->p * sizeof *at_least);
  memset(classes, 255, rows * sizeof *classes);
  for (size_t c = 0, row = 0; c < pack->classes; c++)
    for (size_t k = 0; k < pack->class_rows[c]; k++) classes[pack->order[row++]] = (uint16_t) c;
  memset(columns, 0, sizeof columns);
  for (int k = 0; k < LABELS_AT_ONCE; k++) columns[k].values = values + (size_t) k * rows;
  /* label set 0 is the classes as they are */
  for (size_t first = 0; first <= permutations; first += LABELS_AT_ONCE) {
    const size_t sets = permutations + 1 - first < LABELS_AT_ONCE ? permutations + 1 - first : LABELS_AT_ONCE;
    weft_arena step = weft_arena_begin(ctx);
    weft_mi_pack labels;
    for (size_t k = 0; k < sets; k++) {
      if (first + k) permute(key, first + k - 1, pack, perm);
      for (size_t row = 0; row < pack->n; row++)
        values[k * rows + pack->order[row]] = classes[pack->order[first + k ? perm[row] : row]];
    }
    st = weft_mi_pack_build(ctx, &step, columns, sets, rows, &same, 0, &labels);
    ctx->stage = (double) (first / LABELS_AT_ONCE);
    ctx->stages = (double) (permutations / LABELS_AT_ONCE + 1);
    if (st == WEFT_OK) st = ops->matrix(ctx, pack, &device, &labels, WEFT_MI_EMPIRICAL, scores);
    weft_arena_end(&step);
    if (st != WEFT_OK) goto done;
    for (size_t k = 0; k < sets; k++) {
      const double *score = scores + k * pack->p;
      if (first + k == 0) {
        memcpy(observed, score, pack->p * sizeof *score);
        continue;
      }
      double largest = -INFINITY;
      for (size_t j = 0; j < pack->p; j++) {
        at_least[j] += score[j] >= observed[j];
        largest = fmax(largest, score[j]);
      }
      greatest[first + k - 1] = largest;
    }
    WEFT_TRY(weft_poll(ctx, 1, 1));
  }
done:
  ctx->stages = 0;
  if (device) ops->release(ctx, device);
  weft_arena_end(&mem);
  return st;
}
