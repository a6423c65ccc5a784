/* Where chains of nested groups start, and how they get from a sample to the best partition near it.
 *
 * A start begins with a group per node (large graphs: with the groups of start.c), joins the pairs of groups that cost
 * least until 1 / SHRINK are left, lets nodes move downhill, and so on to a single group. At every number of groups the
 * levels above are made in the same way, from a group per group, and the best of all is kept (Peixoto 2014, Physical
 * Review E 89, 012804, has this heuristic for one number of groups). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "irm/cpu/nested/ascent.h"
#include "irm/cpu/nested/large/bisect.h"
#include "irm/cpu/nested/large/slices.h"
#include "irm/cpu/start.h"

#define SHRINK 1.25
/* From this many ends of links on: SHRINK_LARGE, and the path ends when WORSE numbers of groups in a row were worse. */
#define LARGE 2e6
#define SHRINK_LARGE 2
enum { WORSE = 2 };
/* Large graphs: visits after groups were parted; nodes in one that moves, below which there is no further visit; nodes
 * visit other groups than their twin, and groups join others, only where the number of groups no longer grows by this.
 */
enum { TWIN_VISITS = 2, FEW = 50 };
#define GROWING 1.5
/* Groups that a start begins with at most; groups for which upper levels are made; visits of all nodes after each
 * join; groups near one that it may join; pieces of a group. */
enum { MAX_FIRST = 1024, MAX_NESTED = 600, VISITS = 2, NEAR = 10, ALL_NEAR = 40, PIECES = 8 };
/* Starts follow the path again from pieces of the best groups so far, until IDLE_ROUNDS in a row were in vain, fewer
 * times in larger graphs. */
enum { IDLE_ROUNDS = 4, DESCENT_ROUNDS = 8 };
/* How often the upper levels of a best partition are made anew, for at most MAX_REMADE groups. */
enum { REMAKES = 8, MAX_REMADE = 200 };
#define ROUNDS_WORK 2e6
/* Graphs of fewer nodes and ends of links are sampled near the best groups: sweeps of a sample, proposals to split or
 * merge in each sweep and level, and samples in a row that end it because no better groups were near them. */
enum { SAMPLED_NODES = 10000, SAMPLED_ENDS = 100000, SAMPLE_SWEEPS = 100, PROPOSALS = 10, IDLE_SAMPLES = 3 };
/* Nodes that splits of a round and level may look at, besides two for every node. */
#define SPLIT_WORK 200000
#define START_SWEEP 0
/* Nodes that are visited, and groups that are joined, between two polls. */
enum { POLL_NODES = 4096, POLL_GROUPS = 16 };

/* Level 0 of a large graph is visited by threads. */
weft_status irm_nested_visit_all(weft_ctx *poll, irm_nested *t, int l, int cold, int create, double *by)
{
  weft_status st = WEFT_OK;
  if (t->views && cold && !l) {
    const double before = irm_nested_length(t);
    int64_t moved = 0;
    WEFT_TRY(irm_slices_visit(poll, t, NULL, &moved));
    *by += irm_nested_length(t) - before;
    return st;
  }
  const int32_t count = irm_nested_shuffle(t, l);
  for (int32_t first = 0; first < count; first += POLL_NODES) {
    const int32_t last = first + POLL_NODES < count ? first + POLL_NODES : count;
    if (poll) WEFT_TRY(weft_poll(poll, first, count));
    *by += irm_nested_visit(t, l, first, last, cold, create);
  }
done:
  return st;
}

static int groups_of(const irm_level *level) { return level->count[0] + level->count[1]; }

/* The smallest gain of a round, per end of a link, after which a large graph has another one. */
#define WORTHWHILE 1e-6

/* Level after level. Groups of large graphs are split by double_groups(). */
weft_status irm_nested_descend_round(weft_ctx *poll, irm_nested *t)
{
  weft_status st = WEFT_OK;
  const int large = t->views || (double) t->ends >= LARGE;
  const double enough = large ? WORTHWHILE * (double) t->ends : 1e-6;
  double by = 0;
  for (int l = 0; l < t->top; l++) {
    if (l && groups_of(&t->level[l - 1]) <= 2) break;
    double last = 0, gain;
    do {
      gain = last;
      WEFT_TRY(irm_nested_visit_all(poll, t, l, 1, 1, &last));
      gain -= last;
    } while (large && !l && gain > enough && gain > -0.1 * last);
    WEFT_TRY(irm_nested_join(poll, t, l, &last));
    by += last;
    if (t->views && !l) continue;
    int64_t room = SPLIT_WORK + 2 * t->n;
    for (int n = groups_of(&t->level[l]); n > 0 && room > 0; n--) {
      by += irm_nested_split_merge(t, l, 1);
      room -= t->dealt;
      if (poll) WEFT_TRY(weft_poll(poll, 0, 1));
    }
  }
  t->idle = by < -enough ? 0 : t->views ? 2 : t->idle + 1;
done:
  return st;
}

weft_status irm_nested_descend(weft_ctx *poll, irm_nested *t, int rounds)
{
  weft_status st = WEFT_OK;
  t->idle = 0;
  for (int round = 0; round < rounds && t->idle < 2; round++) WEFT_TRY(irm_nested_descend_round(poll, t));
done:
  return st;
}

/* ---- joining ---- */

typedef struct {
  double by;
  int32_t r, s;
} pair;

static int by_cost(const void *a, const void *b)
{
  const pair *x = a, *y = b;
  return x->by < y->by ? -1 : x->by > y->by ? 1 : (x->r > y->r) - (x->r < y->r);
}

/* The group that r joins at least cost among those near it. */
static pair cheapest(irm_nested *t, int l, int32_t r)
{
  const irm_level *level = &t->level[l];
  const int type = irm_type_of(level, r), all = level->count[type] <= ALL_NEAR;
  pair best = { INFINITY, r, -1 };
  irm_nested_take_group(t, l, r);
  for (int32_t m = 0; m < (all ? level->count[type] : NEAR); m++) {
    const int32_t s = all ? irm_active(level, type)[m] : irm_nested_draw_group(t, l, type);
    if (s == r || s == best.s) continue;
    const double by = irm_nested_merge_change(t, l, r, s);
    if (by < best.by) best = (pair){ by, r, s };
  }
  return best;
}

/* Joins groups until only 1 / SHRINK of each type's are left, or fewer by one. */
static weft_status shrink(weft_ctx *poll, irm_nested *t, int l, pair *pairs, int32_t *now)
{
  weft_status st = WEFT_OK;
  irm_level *level = &t->level[l];
  int32_t count = 0, goal[2];
  for (int type = 0; type < 2; type++) {
    goal[type] = (int32_t) ((double) level->count[type] / ((double) t->ends < LARGE ? SHRINK : SHRINK_LARGE));
    if (goal[type] < 1) goal[type] = 1;
    for (int32_t m = 0; m < level->count[type]; m++) {
      const int32_t r = irm_active(level, type)[m];
      now[r] = r;
      if (level->count[type] > 1) pairs[count++] = cheapest(t, l, r);
      if (poll && m % POLL_GROUPS == 0) WEFT_TRY(weft_poll(poll, m, level->count[type]));
    }
  }
  qsort(pairs, (size_t) count, sizeof *pairs, by_cost);
  for (int32_t m = 0; m < count; m++) {
    const int type = irm_type_of(level, pairs[m].r);
    const int32_t r = pairs[m].r;
    int32_t s = pairs[m].s;
    if (s < 0 || level->count[type] <= goal[type] || now[r] != r) continue;
    while (now[s] != s) s = now[s];
    if (s == r) continue;
    irm_nested_take_group(t, l, r);
    irm_nested_merge(t, l, r, s);
    now[r] = s;
    if (poll && m % POLL_GROUPS == 0) WEFT_TRY(weft_poll(poll, m, count));
  }
done:
  return st;
}

/* ---- levels above, and the path ---- */

typedef struct {
  pair *pairs;
  int32_t *now, *upper, *best_upper, *tried_upper, *best_z[2], *z[2];
} path;

static int32_t *upper_level(const irm_nested *t, int32_t *upper, int l)
{
  for (int m = 1; m < l; m++) upper += t->level[m].nodes;
  return upper;
}

/* Labels of the levels from l on: of level l a group per group if `apart`, and one per type above. */
static void write_upper(const irm_nested *t, int32_t *upper, int l, int apart)
{
  for (int m = l; m <= t->top; m++) {
    const irm_level *level = &t->level[m];
    int32_t *labels = upper_level(t, upper, m);
    for (int32_t i = 0; i < level->nodes; i++) labels[i] = irm_type_of(level - 1, i) ? level->split : 0;
    for (int type = 0; type < 2 && m == l && apart; type++) {
      const int32_t room = type ? level->k - level->split : level->split;
      for (int32_t a = 0; a < level[-1].count[type]; a++) labels[irm_active(level - 1, type)[a]] += a % room;
    }
  }
}

/* Makes the levels from l on. */
static weft_status make_upper(weft_ctx *poll, irm_nested *t, int l, const path *of)
{
  weft_status st = WEFT_OK;
  const irm_level *level = &t->level[l];
  double best;
  if (l == t->top || groups_of(level - 1) <= (t->bipartite ? 3 : 2)) return st;
  best = irm_nested_length_above(t, l);
  memcpy(of->best_upper, of->upper, (size_t) (upper_level(t, of->upper, t->top) - of->upper) * sizeof(int32_t));
  write_upper(t, of->upper, l, 1);
  irm_nested_set_upper(t, of->upper);
  for (;;) {
    double by = 0, length;
    for (int visit = 0; visit < VISITS; visit++) WEFT_TRY(irm_nested_visit_all(poll, t, l, 1, 0, &by));
    length = irm_nested_length_above(t, l);
    if (length < best - 1e-9) {
      best = length;
      memcpy(upper_level(t, of->best_upper, l), level->b, (size_t) level->nodes * sizeof(int32_t));
    }
    if (level->count[0] <= 1 && level->count[1] <= 1) break;
    WEFT_TRY(shrink(poll, t, l, of->pairs, of->now));
  }
  memcpy(of->upper, of->best_upper, (size_t) (upper_level(t, of->upper, t->top) - of->upper) * sizeof(int32_t));
  for (int32_t i = 0; i < level->nodes; i++)
    if (upper_level(t, of->upper, l)[i] < 0)
      upper_level(t, of->upper, l)[i] = irm_type_of(level - 1, i) ? level->split : 0;
  irm_nested_set_upper(t, of->upper);
  if (groups_of(level) < groups_of(level - 1)) WEFT_TRY(make_upper(poll, t, l + 1, of));
done:
  return st;
}

/* From the groups that are there to a single one; the best on the way goes to best_z and z's upper levels. */
static weft_status follow(weft_ctx *poll, irm_nested *t, const path *of, const int32_t most[2], int32_t *upper_out)
{
  weft_status st = WEFT_OK;
  irm_level *level = &t->level[0];
  double best = INFINITY, by = 0;
  int worse = 0;
  for (;;) {
    for (int visit = 0; visit < VISITS; visit++) WEFT_TRY(irm_nested_visit_all(poll, t, 0, 1, 0, &by));
    if (level->count[0] <= most[0] && level->count[1] <= most[1] && groups_of(level) <= MAX_NESTED) {
      write_upper(t, of->upper, 1, 0);
      WEFT_TRY(make_upper(poll, t, 1, of));
      const double length = irm_nested_length(t);
      worse = length < best ? 0 : worse + 1;
      if (length < best) {
        best = length;
        irm_nested_get(t, of->best_z, upper_out);
      }
      irm_nested_set_upper(t, NULL);
      if (worse >= WORSE && (double) t->ends >= LARGE) break;
    }
    if (level->count[0] <= 1 && level->count[1] <= 1) break;
    WEFT_TRY(shrink(poll, t, 0, of->pairs, of->now));
  }
done:
  return st;
}

/* Makes the levels above 0 anew some times, and keeps the best. The labels of level 0 are to be in of->best_z; `kept`
 * has room for the upper ones. */
static weft_status remake_upper(weft_ctx *poll, irm_nested *t, const path *of, int32_t *kept)
{
  weft_status st = WEFT_OK;
  double least = irm_nested_length_above(t, 1);
  irm_nested_get(t, of->best_z, kept);
  for (int again = 0; again < REMAKES && groups_of(&t->level[0]) <= MAX_REMADE; again++) {
    write_upper(t, of->upper, 1, 0);
    irm_nested_set_upper(t, of->upper);
    WEFT_TRY(make_upper(poll, t, 1, of));
    const double length = irm_nested_length_above(t, 1);
    if (length < least) irm_nested_get(t, of->best_z, kept);
    least = length < least ? length : least;
  }
  irm_nested_set_upper(t, kept);
done:
  return st;
}

/* Deals each group out into as many as there is room for, at most PIECES. */
static weft_status shatter(weft_ctx *poll, irm_nested *t, int32_t *const z[2])
{
  irm_level *level = &t->level[0];
  for (int type = 0; type < 2; type++) {
    const int32_t room = type ? level->k - level->split : level->split, groups = level->count[type];
    const int32_t pieces = groups && room / groups < PIECES ? room / groups : PIECES;
    for (int64_t i = 0; i < t->graph->n[type] && groups; i++) {
      const int64_t at = i + (type ? t->graph->n[0] : 0);
      z[type][i] = level->place[level->b[at]] * pieces + (int32_t) irm_nested_below(t, pieces);
    }
  }
  return irm_nested_set(poll, t, z, NULL);
}

/* ---- large graphs ---- */

/* Parts the groups in two of one parent, as far as there may be more of a type, beginning with a random one. of->now:
 * each group's twin, or itself. */
static weft_status double_groups(weft_ctx *poll, irm_nested *t, const path *of, const int32_t most[2])
{
  weft_status st = WEFT_OK;
  const irm_level *level = &t->level[0];
  int8_t *side = (int8_t *) t->side;
  WEFT_TRY(irm_bisect(poll, t, side));
  irm_nested_get(t, of->z, of->upper);
  for (int32_t r = 0; r < level->k; r++) of->now[r] = r;
  for (int type = 0; type < 2 && level->count[type]; type++) {
    const int32_t base = type ? level->split : 0, count = level->count[type];
    const int32_t first = (int32_t) irm_nested_below(t, count);
    for (int32_t m = 0; m < count && m < most[type] - count; m++) {
      const int32_t r = irm_active(level, type)[(first + m) % count];
      const int32_t s = level->spare[base + level->spares[type] - 1 - m];
      of->now[r] = s;
      of->now[s] = r;
      of->upper[s] = of->upper[r];
    }
    for (int64_t i = 0; i < t->graph->n[type]; i++)
      if (side[i + (type ? t->graph->n[0] : 0)] < 0) of->z[type][i] = of->now[base + of->z[type][i]] - base;
  }
  WEFT_TRY(irm_nested_set(poll, t, of->z, of->upper));
done:
  return st;
}

/* Visits of all nodes until few of them move, at most `most`. */
static weft_status visit_often(weft_ctx *poll, irm_nested *t, const int32_t *twin, int most)
{
  weft_status st = WEFT_OK;
  int64_t moved = t->n;
  for (int visit = 0; visit < most && moved > t->n / FEW; visit++) {
    moved = 0;
    WEFT_TRY(irm_slices_visit(poll, t, twin, &moved));
  }
done:
  return st;
}

/* Joins twins again where that shortens the description; `kept`: how many are not. */
static weft_status join_twins(weft_ctx *poll, irm_nested *t, const int32_t *twin, int *kept)
{
  weft_status st = WEFT_OK;
  const irm_level *level = &t->level[0];
  *kept = 0;
  for (int32_t r = 0; r < level->k; r++) {
    if (twin[r] <= r || !level->size[r] || !level->size[twin[r]]) continue;
    irm_nested_take_group(t, 0, twin[r]);
    if (irm_nested_merge_change(t, 0, twin[r], r) < 0)
      irm_nested_merge(t, 0, twin[r], r);
    else
      ++*kept;
    if (poll) WEFT_TRY(weft_poll(poll, r, level->k));
  }
done:
  return st;
}

/* From the groups that are there: each is parted in two, nodes move, groups join, until no part is worth it. The best
 * on the way goes to best_z and upper_out. */
static weft_status grow(weft_ctx *poll, irm_nested *t, const path *of, const int32_t most[2], int32_t *upper_out)
{
  weft_status st = WEFT_OK;
  const irm_level *level = &t->level[0];
  const double enough = WORTHWHILE * (double) t->ends;
  double best = irm_nested_length(t), last, by = 0;
  irm_nested_get(t, of->best_z, upper_out);
  do {
    const int before = groups_of(level);
    int kept;
    last = best;
    WEFT_TRY(double_groups(poll, t, of, most));
    WEFT_TRY(visit_often(poll, t, of->now, TWIN_VISITS));
    WEFT_TRY(join_twins(poll, t, of->now, &kept));
    if (!kept) break;
    if (groups_of(level) < GROWING * before) {
      WEFT_TRY(visit_often(poll, t, NULL, VISITS));
      WEFT_TRY(irm_nested_join(poll, t, 0, &by));
    }
    if (groups_of(level) <= MAX_NESTED) {
      irm_nested_get(t, of->z, of->upper);
      WEFT_TRY(make_upper(poll, t, 1, of));
    }
    const double length = irm_nested_length(t);
    if (length >= best) break;
    best = length;
    irm_nested_get(t, of->best_z, upper_out);
  } while (best < last - enough);
done:
  return st;
}

/* Labels 0 .. of the groups that are there, in the order of their first nodes, and the upper levels to match. */
static void renumber(const irm_nested *from, int32_t *const z[2], const int32_t *upper_from, const int32_t k[2],
                     int32_t *name, int32_t *upper)
{
  int32_t first[2] = { k[0], k[1] };
  const int32_t *below = NULL;
  int32_t *to_labels = upper;
  /* name[r]: what group r of a level is called, by type from 0 */
  for (int l = 0; l < from->top; l++) {
    const irm_level *level = &from->level[l];
    int32_t next[2] = { 0, 0 };
    int32_t *fresh = name + (l % 2) * from->level[0].k * 2;
    for (int32_t r = 0; r < level->k; r++) fresh[r] = -1;
    if (l == 0) {
      for (int type = 0; type < 2; type++)
        for (int64_t i = 0; i < from->graph->n[type] && (!type || from->bipartite); i++) {
          const int32_t r = z[type][i] + (type ? level->split : 0);
          if (fresh[r] < 0) fresh[r] = next[type]++;
          z[type][i] = fresh[r];
        }
    } else {
      const int32_t nodes = (l == 1 ? k[0] + k[1] : first[0] + first[1]), old_first = l == 1 ? k[0] : first[0];
      if (l > 1) first[0] = (first[0] + 1) / 2;
      if (l > 1) first[1] = (first[1] + 1) / 2;
      for (int32_t i = 0; i < nodes; i++) to_labels[i] = i < old_first ? 0 : first[0];
      for (int32_t i = 0; i < level->nodes; i++) {
        if (below[i] < 0) continue;
        const int type = irm_type_of(level - 1, i);
        const int32_t r = upper_from[i], room = first[type];
        if (fresh[r] < 0) fresh[r] = next[type]++ % room;
        to_labels[(type ? old_first : 0) + below[i]] = (type ? first[0] : 0) + fresh[r];
      }
      upper_from += level->nodes;
      to_labels += nodes;
    }
    below = fresh;
  }
  /* the top level's */
  for (int32_t i = 0; i < first[0] + first[1]; i++) to_labels[i] = i < first[0] ? 0 : 1;
}

/* From the best groups so far, z and `upper`, which the state has: samples of a Markov chain, each followed downhill. A
 * better one takes their place. */
static weft_status sample_near(weft_ctx *ctx, irm_nested *t, const int32_t k[2], int32_t *const z[2], int32_t *upper)
{
  weft_status st = WEFT_OK;
  double by = 0, least = irm_nested_length(t);
  if (t->n >= SAMPLED_NODES || t->ends >= SAMPLED_ENDS) return st;
  for (int idle = 0; idle < IDLE_SAMPLES;) {
    for (int sweep = 0; sweep < SAMPLE_SWEEPS; sweep++)
      for (int l = 0; l < t->top; l++) {
        WEFT_TRY(irm_nested_visit_all(ctx, t, l, 0, 1, &by));
        for (int n = 0; n < PROPOSALS; n++) irm_nested_split_merge(t, l, 0);
      }
    WEFT_TRY(irm_nested_descend(ctx, t, DESCENT_ROUNDS));
    const double length = irm_nested_length(t);
    const int fits = t->level[0].count[0] <= k[0] && t->level[0].count[1] <= k[1];
    idle = fits && length < least - 1e-6 ? 0 : idle + 1;
    if (!idle) {
      least = length;
      irm_nested_get(t, z, upper);
    }
    WEFT_TRY(irm_nested_set(ctx, t, z, upper));
  }
done:
  return st;
}

/* Follows the path from single nodes, and then from pieces of the best groups so far. */
weft_status weft_irm_nested_start(weft_ctx *ctx, const weft_irm_graph *graph, int degrees, uint64_t key,
                                  const int32_t k[2], uint32_t number, int32_t *const z[2], int32_t *upper)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  irm_nested *t;
  path of;
  int32_t room[2] = { 0, 0 }, *name, *best_upper;
  double least = INFINITY;
  for (int type = 0; type < 2 && k[type]; type++) {
    const int64_t n = graph->n[type], most = k[type] > MAX_FIRST ? k[type] : MAX_FIRST;
    room[type] = (int32_t) (n < most ? n : most);
  }
  WEFT_TAKE(t, &mem, 1);
  WEFT_TRY(irm_nested_make(ctx, &mem, graph, degrees, room, key, number, t));
  WEFT_TRY(irm_slices_make(&mem, t, ctx->threads));
  t->sweep = START_SWEEP;
  const size_t words = (size_t) weft_irm_nested_words(room), labels = (size_t) t->level[0].k;
  WEFT_TAKE(of.pairs, &mem, labels);
  WEFT_TAKE(of.now, &mem, labels);
  WEFT_TAKE0(of.upper, &mem, words);
  WEFT_TAKE(of.best_upper, &mem, words);
  WEFT_TAKE(best_upper, &mem, words);
  WEFT_TAKE(name, &mem, 4 * labels);
  WEFT_TAKE(of.tried_upper, &mem, words);
  for (int type = 0; type < 2; type++) {
    WEFT_TAKE(of.best_z[type], &mem, (size_t) graph->n[type]);
    WEFT_TAKE(of.z[type], &mem, (size_t) graph->n[type]);
  }
  if (!t->views && (graph->n[0] > room[0] || (room[1] && graph->n[1] > room[1])))
    WEFT_TRY(weft_irm_start(ctx, graph, key, room, number, z));
  for (int type = 0; type < 2; type++)
    for (int64_t i = 0; i < graph->n[type] && (t->views || room[type] == graph->n[type]); i++)
      z[type][i] = t->views ? 0 : (int32_t) i;
  WEFT_TRY(irm_nested_set(ctx, t, z, NULL));
  for (int idle = 0, round = 0; idle < IDLE_ROUNDS && round < 1 + (int) (ROUNDS_WORK / (1 + (double) t->ends));
       round++) {
    WEFT_TRY(t->views ? grow(ctx, t, &of, k, of.tried_upper) : follow(ctx, t, &of, k, of.tried_upper));
    WEFT_TRY(irm_nested_set(ctx, t, of.best_z, of.tried_upper));
    WEFT_TRY(irm_nested_descend(ctx, t, DESCENT_ROUNDS));
    if (t->level[0].count[0] > k[0] || t->level[0].count[1] > k[1])
      WEFT_TRY(irm_nested_set(ctx, t, of.best_z, of.tried_upper));
    WEFT_TRY(remake_upper(ctx, t, &of, of.tried_upper));
    const double length = irm_nested_length(t);
    idle = length < least - 1e-6 ? 0 : idle + 1;
    if (length < least) {
      least = length;
      irm_nested_get(t, z, best_upper);
    }
    WEFT_TRY(irm_nested_set(ctx, t, z, best_upper));
    if (!t->views) WEFT_TRY(shatter(ctx, t, of.z));
  }
  WEFT_TRY(irm_nested_set(ctx, t, z, best_upper));
  WEFT_TRY(sample_near(ctx, t, k, z, best_upper));
  renumber(t, z, best_upper, k, name, upper);
done:
  weft_arena_end(&mem);
  return st;
}
