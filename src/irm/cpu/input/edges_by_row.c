/* Edge lists in canonical order, and graphs in both orders. Lists come from R, perhaps from a file, and are checked
 * before they are used.
 *
 * Pairs are sorted in sort_links.c, lists of one-mode graphs made in both_ways.c. Transposing lists (columns of rows
 * into rows of columns) is a pass over the links and leaves the neighbours ascending. */
#include <string.h>
#include "core/call/parallel.h"
#include "irm/cpu/input/both_ways.h"
#include "irm/cpu/input/edges_by_row.h"
#include "irm/both/score.h"

/* Is (i, j) in the canonical list? `at` moves forward only, so that a sorted walk is linear. */
static int listed(const weft_irm_edges *list, int64_t i, int32_t j, int64_t *at)
{
  if (!list || list->count == 0) return 0;
  int64_t end = (int64_t) list->start[i + 1];
  if (*at < (int64_t) list->start[i]) *at = (int64_t) list->start[i];
  while (*at < end && list->to[*at] < j) ++*at;
  return *at < end && list->to[*at] == j;
}

/* The most columns in a thread's piece of work: their offsets stay in its cache. Fewer columns are shared among the
 * threads, but not in small pieces, since every piece looks into all rows. TURN_LINKS: of a thread, between two
 * polls. */
#define TURN_COLUMNS 65536
#define MIN_COLUMNS 1024
#define TURN_LINKS 8000000

/* Counts (to NULL) or places the entries that rows `row` .. until-1 have in columns first .. last-1; next[j]: where the
 * column's next one goes. */
static void turn_columns(const weft_irm_edges *edges, int64_t row, int64_t until, int64_t first, int64_t last,
                         int drop_diagonal, int64_t *next, int32_t *to, int32_t *weight)
{
  for (int64_t i = row; i < until; i++) {
    const int64_t end = (int64_t) edges->start[i + 1];
    for (int64_t entry = first == 0 ? (int64_t) edges->start[i] : weft_irm_first_from(edges, i, first);
         entry < end && edges->to[entry] < last; entry++) {
      if (drop_diagonal && edges->to[entry] == i) continue;
      const int64_t at = next[edges->to[entry]]++;
      if (to) to[at] = (int32_t) i;
      if (weight) weight[at] = edges->weight[entry];
    }
  }
}

static int64_t columns_at_once(int64_t n, int threads)
{
  const int64_t share = (n + threads - 1) / threads;
  return share > TURN_COLUMNS ? TURN_COLUMNS : share < MIN_COLUMNS ? MIN_COLUMNS : share;
}

/* The lists by column, ascending: pieces of columns at a time, each thread its own. */
static weft_status turn_lists(weft_ctx *ctx, weft_arena *arena, const weft_irm_edges *edges, int drop_diagonal,
                              weft_irm_lists *out, int64_t *entries)
{
  weft_status st = WEFT_OK;
  const int threads = edges->count > 100000 ? ctx->threads : 1;
  const int64_t n = edges->n[1], piece = columns_at_once(n, threads), pieces = (n + piece - 1) / piece;
  int64_t *start, *next;
  int32_t *to = NULL, *weight = NULL;
  weft_arena mem = weft_arena_begin(ctx);
  WEFT_TAKE0(start, arena, (size_t) n + 1);
  WEFT_TAKE0(next, &mem, (size_t) n + 1);
  for (int placing = 0; placing < 2; placing++) {
    if (placing) {
      for (int64_t j = 0; j < n; j++) start[j + 1] = start[j] + next[j];
      memcpy(next, start, (size_t) (n + 1) * sizeof *next);
      WEFT_TAKE(to, arena, (size_t) start[n] + 1);
      if (edges->weight) WEFT_TAKE(weight, arena, (size_t) start[n] + 1);
    }
    for (int64_t row = 0, until = 0; row < edges->n[0]; row = until) {
      double work = 0;
      for (; until < edges->n[0] && work < (double) TURN_LINKS * threads; until++)
        work += (double) pieces + edges->start[until + 1] - edges->start[until];
      WEFT_PARALLEL_FOR(threads, dynamic)
      for (int64_t p = 0; p < pieces; p++)
        turn_columns(edges, row, until, p * piece, p + 1 < pieces ? (p + 1) * piece : n, drop_diagonal, next, to,
                     weight);
      WEFT_TRY(weft_poll(ctx, (double) until, (double) edges->n[0]));
    }
  }
  *out = (weft_irm_lists){ start, to, weight };
  *entries = start[n];
done:
  weft_arena_end(&mem);
  return st;
}

/* The lists by row, of R's own entries. */
static weft_status share_lists(weft_arena *arena, const weft_irm_edges *edges, weft_irm_lists *out, int64_t *entries)
{
  weft_status st = WEFT_OK;
  int64_t *start;
  WEFT_TAKE(start, arena, (size_t) edges->n[0] + 1);
  for (int64_t i = 0; i <= edges->n[0]; i++) start[i] = (int64_t) edges->start[i];
  *out = (weft_irm_lists){ start, edges->to, edges->weight };
  *entries = edges->count;
done:
  return st;
}

/* Links and observed pairs of each node with itself, in `arena`. */
static weft_status make_self(weft_ctx *ctx, weft_arena *arena, const weft_irm_edges *links,
                             const weft_irm_edges *missing, weft_irm_graph *out)
{
  weft_status st = WEFT_OK;
  int32_t *weight;
  uint8_t *pair;
  WEFT_TAKE0(weight, arena, (size_t) links->n[0] + 1);
  WEFT_TAKE0(pair, arena, (size_t) links->n[0] + 1);
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, 100 * (double) links->n[0]), static)
  for (int64_t i = 0; i < links->n[0]; i++) {
    const int64_t own = weft_irm_first_from(links, i, i), unseen = weft_irm_first_from(missing, i, i);
    if (own < (int64_t) links->start[i + 1] && links->to[own] == i) weight[i] = links->weight ? links->weight[own] : 1;
    pair[i] = !(unseen < (int64_t) missing->start[i + 1] && missing->to[unseen] == i);
  }
  out->self_weight = weight;
  out->self_pair = pair;
done:
  return st;
}

/* ---- lists that come from a file or a saved fit ---- */

/* Rows and entries between two polls, and the pieces in which threads take them. */
#define CHECK_SLICE 16000000
#define CHECK_PIECES 256

/* The greatest real value, in units: the squares of 2^23 such values add up in 64 bits. */
#define MAX_UNITS (1 << 20)

/* What the lists must be. */
typedef struct {
  weft_irm_type type;
  int self, real;
} check;

/* NULL, or what is wrong with the offsets. */
static const char *wrong_offsets(const weft_irm_edges *edges)
{
  const int64_t n = edges->n[0];
  if (edges->start[0] != 0 || edges->start[n] != (double) edges->count) return "offsets must span the list";
  for (int64_t i = 0; i < n; i++)
    if (!(edges->start[i] <= edges->start[i + 1])) return "offsets must ascend within the list";
  return NULL;
}

/* NULL, or what is wrong with the entries of row i. */
static const char *wrong_row(const check *must, const weft_irm_edges *edges, int64_t i)
{
  const int64_t first = (int64_t) edges->start[i], last = (int64_t) edges->start[i + 1];
  const int32_t *to = edges->to;
  int ascend = 1, counts = 1, in_range = 1;
  if (first == last) return NULL;
  for (int64_t entry = first + 1; entry < last; entry++) ascend &= to[entry] > to[entry - 1];
  if (!ascend) return "columns must ascend within a row";
  if (to[first] < 0 || to[last - 1] >= edges->n[1]) return "a column is outside of the graph";
  if (must->type == WEFT_IRM_UNDIRECTED && to[first] < i)
    return "an undirected pair must be in the row of its smaller node";
  if (must->type != WEFT_IRM_BIPARTITE && !must->self) {
    const int64_t own = weft_irm_first_from(edges, i, i);
    if (own < last && to[own] == i) return "a node must not be paired with itself";
  }
  for (int64_t entry = first; entry < last && edges->weight; entry++) {
    counts &= edges->weight[entry] >= 1;
    in_range &= edges->weight[entry] <= MAX_UNITS && edges->weight[entry] >= -MAX_UNITS;
  }
  if (edges->weight && !must->real && !counts) return "a count must be 1 or more";
  if (must->real && (!edges->weight || !in_range)) return "a value is out of its range";
  return NULL;
}

static int share_a_pair(const weft_irm_edges *links, const weft_irm_edges *missing, int64_t i)
{
  int64_t y = (int64_t) missing->start[i];
  for (int64_t x = (int64_t) links->start[i]; x < (int64_t) links->start[i + 1]; x++)
    if (listed(missing, i, links->to[x], &y)) return 1;
  return 0;
}

/* NULL, or what is wrong with rows first .. last-1 of the edges, none of which may be a pair of `others`. */
static const char *wrong_rows(const check *must, const weft_irm_edges *edges, const weft_irm_edges *others,
                              int64_t first, int64_t last)
{
  const char *wrong = NULL;
  for (int64_t i = first; i < last && !wrong; i++) {
    wrong = wrong_row(must, edges, i);
    if (!wrong && others && share_a_pair(others, edges, i)) wrong = "a pair is also a link";
  }
  return wrong;
}

/* Checks a list by all threads, in pieces whose first error counts, so that the message is the same with any number
 * of them. */
static weft_status check_edges(weft_ctx *ctx, const check *must, const weft_irm_edges *edges,
                               const weft_irm_edges *others, const char *what)
{
  weft_status st = WEFT_OK;
  const int64_t n = edges->n[0];
  const char *wrong = wrong_offsets(edges), *found[CHECK_PIECES];
  for (int64_t from = 0, next; from < n && !wrong; from = next) {
    double work = 0;
    for (next = from; next < n && work < CHECK_SLICE; next++) work += 1 + edges->start[next + 1] - edges->start[next];
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, work), dynamic)
    for (int piece = 0; piece < CHECK_PIECES; piece++)
      found[piece] = wrong_rows(must, edges, others, from + (next - from) * piece / CHECK_PIECES,
                                from + (next - from) * (piece + 1) / CHECK_PIECES);
    for (int piece = 0; piece < CHECK_PIECES && !wrong; piece++) wrong = found[piece];
    WEFT_TRY(weft_poll(ctx, (double) next, (double) n));
  }
  if (wrong) st = weft_fail(ctx, WEFT_ERR_INPUT, "The list of the graph's %s is damaged: %s.", what, wrong);
done:
  return st;
}

/* Everything below and in the samplers relies on this. */
static weft_status check_lists(weft_ctx *ctx, weft_irm_type type, int self, int real, const weft_irm_edges *links,
                               const weft_irm_edges *missing)
{
  weft_status st = WEFT_OK;
  const check of_links = { type, self, real }, of_missing = { type, self, 0 };
  WEFT_TRY(check_edges(ctx, &of_links, links, NULL, "links"));
  WEFT_TRY(check_edges(ctx, &of_missing, missing, links, "missing pairs"));
done:
  return st;
}

/* Entries that a thread copies at once. */
#define COPY_PIECE ((int64_t) 1 << 20)

/* Copies the rows of a shard into a list that has room for them, behind the `row` rows and `count` entries that are
 * there. */
weft_status weft_irm_edges_append(weft_ctx *ctx, const weft_irm_edges *shard, int64_t row, int64_t count, double *start,
                                  int32_t *to, int32_t *weight)
{
  const int64_t pieces = (shard->count + COPY_PIECE - 1) / COPY_PIECE;
  for (int64_t i = 0; i < shard->n[0]; i++) start[row + i + 1] = (double) count + shard->start[i + 1];
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) shard->count), dynamic)
  for (int64_t piece = 0; piece < pieces; piece++) {
    const int64_t at = piece * COPY_PIECE, some = shard->count - at < COPY_PIECE ? shard->count - at : COPY_PIECE;
    memcpy(to + count + at, shard->to + at, (size_t) some * sizeof *to);
    if (weight) memcpy(weight + count + at, shard->weight + at, (size_t) some * sizeof *weight);
  }
  return weft_poll(ctx, 0, 1);
}

/* A list with its rows and columns exchanged, in `arena`. */
weft_status weft_irm_edges_turn(weft_ctx *ctx, weft_arena *arena, const weft_irm_edges *columns, int drop_diagonal,
                                weft_irm_edges *out)
{
  weft_status st = WEFT_OK;
  const weft_irm_edges none = { .n = { 0, 0 }, .start = (const double[]){ 0 } };
  const int64_t n[2] = { columns->n[1], columns->n[0] };
  weft_irm_lists lists;
  int64_t count;
  double *start;
  WEFT_TRY(check_lists(ctx, WEFT_IRM_BIPARTITE, 1, 0, columns, &none));
  WEFT_TRY(turn_lists(ctx, arena, columns, drop_diagonal, &lists, &count));
  WEFT_TAKE(start, arena, (size_t) n[0] + 1);
  for (int64_t i = 0; i <= n[0]; i++) start[i] = (double) lists.start[i];
  *out = (weft_irm_edges){ { n[0], n[1] }, count, start, lists.to, lists.weight };
done:
  return st;
}

/* Entries whose log factorials a thread adds up. */
#define SUM_PIECE ((int64_t) 1 << 16)

/* Sums of pieces are added up in their order, so that threads change no bit. */
static weft_status add_log_factorials(weft_ctx *ctx, const weft_irm_edges *links, double *sum)
{
  weft_status st = WEFT_OK;
  double part[CHECK_PIECES];
  for (int64_t first = 0; first < links->count; first += CHECK_PIECES * SUM_PIECE) {
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (links->count - first)), dynamic)
    for (int piece = 0; piece < CHECK_PIECES; piece++) {
      const int64_t at = first + piece * SUM_PIECE, end = at + SUM_PIECE < links->count ? at + SUM_PIECE : links->count;
      part[piece] = 0;
      for (int64_t entry = at; entry < end; entry++)
        if (links->weight[entry] > 1) part[piece] += irm_log_gamma(1.0 + links->weight[entry]);
    }
    for (int piece = 0; piece < CHECK_PIECES; piece++) *sum += part[piece];
    WEFT_TRY(weft_poll(ctx, (double) first, (double) links->count));
  }
done:
  return st;
}

/* Checks both lists, then makes what the samplers read, in `arena`; lists by row of bipartite graphs are R's own
 * memory. */
weft_status weft_irm_graph_make(weft_ctx *ctx, weft_arena *arena, weft_irm_type type, int self,
                                const weft_irm_edges *links, const weft_irm_edges *missing, double unit,
                                double log_scale, weft_irm_graph *out)
{
  weft_status st = WEFT_OK;
  const int one_mode = type != WEFT_IRM_BIPARTITE;
  memset(out, 0, sizeof *out);
  WEFT_TRY(check_lists(ctx, type, self, unit > 0, links, missing));
  out->unit = unit;
  out->type = type;
  out->n[0] = links->n[0];
  out->n[1] = one_mode ? 0 : links->n[1];
  for (int side = 0; side < 2; side++) {
    const weft_irm_edges *edges = side == 0 ? links : missing;
    weft_irm_lists *lists = side == 0 ? out->links : out->missing;
    int64_t *entries = side == 0 ? out->link_count : out->missing_count;
    if (type == WEFT_IRM_UNDIRECTED) {
      WEFT_TRY(weft_irm_lists_make(ctx, arena, edges, 1, &lists[0], &entries[0]));
      lists[1] = lists[0];
      entries[1] = entries[0];
    } else {
      if (one_mode)
        WEFT_TRY(weft_irm_lists_make(ctx, arena, edges, 0, &lists[0], &entries[0]));
      else
        WEFT_TRY(share_lists(arena, edges, &lists[0], &entries[0]));
      WEFT_TRY(turn_lists(ctx, arena, edges, one_mode, &lists[1], &entries[1]));
    }
  }
  if (one_mode && self) WEFT_TRY(make_self(ctx, arena, links, missing, out));
  if (unit > 0)
    out->log_factorials =
        ((double) links->n[0] * (double) links->n[1] - (double) missing->count) * (IRM_LOG_ROOT_2PI + log_scale);
  if (links->weight && unit == 0) WEFT_TRY(add_log_factorials(ctx, links, &out->log_factorials));
done:
  return st;
}
