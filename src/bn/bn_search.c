/* Best moves through an order; see bn_search.h. Where a node stands matters to itself and to those whose candidate it
 * is: a move is scored by their trees alone, at every place between two nodes that matter. At first nodes are put in
 * one by one, each at its best place. Then nodes wait in a queue; a move puts back those whose scores it changed. When
 * the queue is empty, all nodes are tried once more; when none moves, the order is left with a kick: some nodes that
 * are near each other go to random places, and the search goes on from there. What is worse than before is taken back.
 * Starts are independent of each other; each advances in portions, between which R is asked whether to go on. */
#include <math.h>
#include <string.h>
#include "../base/draws.h"
#include "../base/parallel.h"
#include "bn_search.h"

#define TIE_UNITS 8     /* scores that are equal by arithmetic may differ by so much */
#define KICKED 5        /* nodes that a kick moves, at most */
#define PORTION 2000    /* parent sets scored and trees asked between two polls; grows with what they take */
#define MOST_WIDENINGS 50

typedef struct climber {
  const weft_bn_problem *problem;
  const weft_bn_near *near;
  weft_bn_trees trees;
  weft_rng rng;
  uint64_t draws;
  int32_t *order, *place, *queue;
  size_t present;             /* the first so many of the order count; the others are still to be put in */
  int64_t *value;             /* p: of each node's parents */
  uint64_t *asked_for;        /* p: who would change that by coming before it or not any more (weft_bn_bit) */
  uint8_t *waits;             /* p: in the queue */
  size_t first, waiting;      /* queue: a ring of p */
  int64_t total;
  /* the best order so far */
  int32_t *best_order;
  int64_t *best_value, best_total;
  uint64_t *best_asked_for;
  size_t kicks_left;
  int local;                  /* after a kick: who changed waits, those around it do not */
  int checked;                /* all nodes were tried since anything moved, or need not be */
  int done;
  /* one move */
  int32_t *relevant;          /* p: nodes that matter, by place */
  uint8_t *why;               /* p: KID and PARENT, zero between moves */
  int64_t *without, *with;    /* p: of a node whose candidate moves */
  double moves, asked;
} climber;

typedef struct search_job { climber *climbers; weft_bn_scorer *scorers; double portion; } search_job;

static weft_status make_climber(weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                const weft_bn_listed *listed, size_t number, climber *out)
{
  weft_status st = WEFT_OK;
  const size_t p = search->problem->p;
  *out = (climber) { .problem = search->problem, .near = near, .rng = { search->key, (uint32_t) number } };
  WEFT_TAKE(out->order, mem, p);
  WEFT_TAKE(out->place, mem, p);
  WEFT_TAKE(out->queue, mem, p);
  WEFT_TAKE(out->value, mem, p);
  WEFT_TAKE(out->asked_for, mem, p);
  WEFT_TAKE(out->waits, mem, p);
  WEFT_TAKE(out->best_order, mem, p);
  WEFT_TAKE(out->best_value, mem, p);
  WEFT_TAKE(out->best_asked_for, mem, p);
  WEFT_TAKE(out->relevant, mem, p);
  WEFT_TAKE0(out->why, mem, p);
  WEFT_TAKE(out->without, mem, p);
  WEFT_TAKE(out->with, mem, p);
  WEFT_TRY(weft_bn_trees_make(mem, search, near, listed, &out->trees));
done:
  return st;
}

static size_t draw_below(climber *c, size_t n) { return (size_t) weft_draw_below(c->rng, c->draws++, n); }

static int needs(const weft_bn_problem *problem, size_t child, size_t parent)
{
  return problem->required && problem->required[child + problem->p * parent];
}

/* ---- orders ---- */

static void set_places(climber *c)
{
  for (size_t k = 0; k < c->problem->p; k++) c->place[c->order[k]] = (int32_t) k;
}

/* At random, parents that are required before their children: each time one of the nodes that lack nobody. */
static void random_order(climber *c)
{
  const size_t p = c->problem->p;
  int32_t *left = c->relevant;
  for (size_t i = 0; i < p; i++) left[i] = (int32_t) i;
  for (size_t k = p; k > 1; k--) {
    const size_t at = draw_below(c, k);
    const int32_t other = left[k - 1];
    left[k - 1] = left[at];
    left[at] = other;
  }
  if (!c->problem->required) {
    memcpy(c->order, left, p * sizeof *left);
    set_places(c);
    return;
  }
  memset(c->waits, 0, p);
  for (size_t placed = 0; placed < p;) {
    for (size_t k = 0; k < p; k++) {
      const size_t i = (size_t) left[k];
      int free = !c->waits[i];
      for (size_t v = 0; v < p && free; v++) free = !needs(c->problem, i, v) || c->waits[v];
      if (!free) continue;
      c->waits[i] = 1;
      c->order[placed++] = left[k];
    }
  }
  set_places(c);
}

/* Moves node v to `to`, a place in the order without it. */
static void put(climber *c, size_t v, int32_t to)
{
  int32_t at = c->place[v];
  for (; at < to; at++) c->place[c->order[at] = c->order[at + 1]] = at;
  for (; at > to; at--) c->place[c->order[at] = c->order[at - 1]] = at;
  c->order[to] = (int32_t) v;
  c->place[v] = to;
}

/* Places in the order without v between which required edges leave it: after `*low` nodes at least, `*high` at most. */
static void allowed_places(const climber *c, size_t v, int32_t *low, int32_t *high)
{
  const size_t p = c->problem->p;
  *low = 0;
  *high = (int32_t) c->present - 1;
  for (size_t u = 0; u < p && c->problem->required; u++) {
    const int32_t at = c->place[u] - (c->place[u] > c->place[v]);
    if (needs(c->problem, v, u) && at + 1 > *low) *low = at + 1;
    if (needs(c->problem, u, v) && at < *high) *high = at;
  }
}

/* ---- the queue ---- */

static void wait(climber *c, size_t v)
{
  const size_t p = c->problem->p;
  if (c->waits[v]) return;
  c->waits[v] = 1;
  c->queue[(c->first + c->waiting++) % p] = (int32_t) v;
}

static void all_wait(climber *c)
{
  const size_t p = c->problem->p;
  memset(c->waits, 0, p);
  c->first = c->waiting = 0;
  for (size_t i = 0; i < p; i++) wait(c, i);
  for (size_t k = p; k > 1; k--) {
    const size_t at = draw_below(c, k);
    const int32_t other = c->queue[k - 1];
    c->queue[k - 1] = c->queue[at];
    c->queue[at] = other;
  }
}

static void neighbours_wait(climber *c, size_t i)
{
  wait(c, i);
  for (size_t k = c->near->start[i]; k < c->near->start[i + 1]; k++) wait(c, (size_t) c->near->node[k]);
}

/* ---- values ---- */

static int64_t value_at(climber *c, weft_bn_scorer *scorer, size_t i, int32_t limit, int32_t moved, int before,
                        uint64_t *asked_for)
{
  const weft_bn_prefix prefix = { c->place, limit, moved, before };
  c->asked++;
  return weft_bn_trees_value(&c->trees, scorer, i, prefix, asked_for, NULL, NULL);
}

/* The value of node i as the order is now. */
static int64_t value_now(climber *c, weft_bn_scorer *scorer, size_t i)
{
  return value_at(c, scorer, i, c->place[i], -1, 0, &c->asked_for[i]);
}

/* Those around i wait when its value is another now. */
static void renew(climber *c, weft_bn_scorer *scorer, size_t i)
{
  const int64_t now = value_now(c, scorer, i);
  if (now == c->value[i]) return;
  c->total += now - c->value[i];
  c->value[i] = now;
  if (c->local) wait(c, i);
  else neighbours_wait(c, i);
}

static void value_all(climber *c, weft_bn_scorer *scorer)
{
  c->total = 0;
  for (size_t i = 0; i < c->problem->p; i++) c->total += c->value[i] = value_now(c, scorer, i);
}

/* ---- one move ---- */

/* Nodes that matter to where v stands, ascending by place; flags say why. Returns how many. */
enum { KID = 1, PARENT = 2 };

static size_t list_relevant(climber *c, size_t v)
{
  uint8_t *why = c->why;
  const weft_bn_near *near = c->near;
  size_t count = 0, end = near->kid_start[v + 1];
  for (size_t k = near->kid_start[v]; k < end; k++) {
    if ((size_t) c->place[near->kid[k]] >= c->present) continue;
    why[near->kid[k]] |= KID;
    c->relevant[count++] = near->kid[k];
  }
  for (size_t k = near->start[v]; k < near->start[v + 1]; k++) {
    if ((size_t) c->place[near->node[k]] >= c->present) continue;
    if (!why[near->node[k]]) c->relevant[count++] = near->node[k];
    why[near->node[k]] |= PARENT;
  }
  for (size_t k = 0; k < count; k++) c->relevant[k] = c->place[c->relevant[k]];
  for (size_t gap = count / 2; gap > 0; gap /= 2) /* Shell's sort, of places */
    for (size_t k = gap; k < count; k++) {
      const int32_t x = c->relevant[k];
      size_t j = k;
      for (; j >= gap && c->relevant[j - gap] > x; j -= gap) c->relevant[j] = c->relevant[j - gap];
      c->relevant[j] = x;
    }
  for (size_t k = 0; k < count; k++) c->relevant[k] = c->order[c->relevant[k]];
  return count;
}

/* Where v is best; returns its place in the order without it, which is its own when nothing is better. */
static int32_t best_place(climber *c, weft_bn_scorer *scorer, size_t v)
{
  uint8_t *why = c->why;
  const size_t count = list_relevant(c, v);
  const int32_t own_place = c->place[v];
  int32_t low, high, found = own_place;
  const uint64_t bit = weft_bn_bit((int32_t) v);
  uint64_t own_asked_for, ignored;
  int64_t own = value_at(c, scorer, v, 0, -1, 0, &own_asked_for), kids = 0, now = c->value[v], best;
  allowed_places(c, v, &low, &high);
  for (size_t k = 0; k < count; k++) {
    const size_t w = (size_t) c->relevant[k];
    if (!(why[w] & KID)) continue;
    const int after = c->place[w] > own_place;
    const int64_t other =
      c->asked_for[w] & bit ? value_at(c, scorer, w, c->place[w], (int32_t) v, !after, &ignored) : c->value[w];
    c->with[w] = after ? c->value[w] : other;
    c->without[w] = after ? other : c->value[w];
    kids += c->with[w];
    now += c->value[w];
  }
  best = now + TIE_UNITS;
  for (size_t k = 0;; k++) { /* v between the nodes k - 1 and k of those that matter */
    const int32_t before = k ? c->place[c->relevant[k - 1]] + 1 - (c->place[c->relevant[k - 1]] > own_place) : 0;
    const int32_t after = k < count ? c->place[c->relevant[k]] - (c->place[c->relevant[k]] > own_place)
                                    : (int32_t) c->present - 1;
    const int32_t first = before > low ? before : low, last = after < high ? after : high;
    if (first <= last && own + kids > best) {
      best = own + kids;
      found = own_place < first ? first : own_place > last ? last : own_place;
    }
    if (k == count) break;
    const size_t w = (size_t) c->relevant[k];
    if (why[w] & KID) kids += c->without[w] - c->with[w];
    if ((why[w] & PARENT) && (own_asked_for & weft_bn_bit((int32_t) w)))
      own = value_at(c, scorer, v, c->place[w] + 1, -1, 0, &own_asked_for);
  }
  for (size_t k = 0; k < count; k++) why[c->relevant[k]] = 0;
  return found;
}

/* After v went from one place to another: the values of those that it passed, and its own. */
static void after_move(climber *c, weft_bn_scorer *scorer, size_t v, int32_t from, int32_t to)
{
  const int32_t least = from < to ? from : to, most = from < to ? to : from;
  for (size_t k = c->near->kid_start[v]; k < c->near->kid_start[v + 1]; k++) {
    const size_t w = (size_t) c->near->kid[k];
    if (c->place[w] >= least && c->place[w] <= most && (c->asked_for[w] & weft_bn_bit((int32_t) v)))
      renew(c, scorer, w);
  }
  renew(c, scorer, v);
}

/* ---- kicks ---- */

static void keep_best(climber *c)
{
  const size_t p = c->problem->p;
  memcpy(c->best_order, c->order, p * sizeof *c->order);
  memcpy(c->best_value, c->value, p * sizeof *c->value);
  memcpy(c->best_asked_for, c->asked_for, p * sizeof *c->asked_for);
  c->best_total = c->total;
}

static void back_to_best(climber *c)
{
  const size_t p = c->problem->p;
  memcpy(c->order, c->best_order, p * sizeof *c->order);
  memcpy(c->value, c->best_value, p * sizeof *c->value);
  memcpy(c->asked_for, c->best_asked_for, p * sizeof *c->asked_for);
  c->total = c->best_total;
  set_places(c);
}

/* A node and some of its candidates, each to a random place between the first and the last of them. */
static void kick(climber *c, weft_bn_scorer *scorer)
{
  const size_t v = draw_below(c, c->problem->p), from = c->near->start[v], offered = c->near->start[v + 1] - from;
  size_t node[KICKED] = { v }, count = 1;
  int32_t first = c->place[v], last = first;
  for (size_t k = 1; k < KICKED && offered; k++) {
    const size_t u = (size_t) c->near->node[from + draw_below(c, offered)];
    size_t same = 0;
    while (same < count && node[same] != u) same++;
    if (same == count) node[count++] = u;
  }
  for (size_t k = 0; k < count; k++) {
    if (c->place[node[k]] < first) first = c->place[node[k]];
    if (c->place[node[k]] > last) last = c->place[node[k]];
  }
  for (size_t k = 0; k < count; k++) {
    int32_t low, high, was = c->place[node[k]];
    allowed_places(c, node[k], &low, &high);
    if (low < first) low = first;
    if (high > last) high = last;
    if (low > high) continue;
    put(c, node[k], low + (int32_t) draw_below(c, (size_t) (high - low) + 1));
    after_move(c, scorer, node[k], was, c->place[node[k]]);
    wait(c, node[k]);
  }
}

/* The next node of the order, at the best place among those that are there: a better beginning than a random order. */
static void put_in(climber *c, weft_bn_scorer *scorer)
{
  const int32_t at = (int32_t) c->present++;
  const size_t v = (size_t) c->order[at];
  c->total += c->value[v] = value_now(c, scorer, v);
  const int32_t to = best_place(c, scorer, v);
  if (to != at) {
    put(c, v, to);
    after_move(c, scorer, v, at, to);
  }
  if (c->present == c->problem->p) all_wait(c);
}

/* The queue is empty: all nodes once more, the next kick, or the end. */
static void settle(climber *c, weft_bn_scorer *scorer)
{
  if (!c->checked) {
    c->checked = 1;
    all_wait(c);
    return;
  }
  if (c->total >= c->best_total) keep_best(c); /* equal ones too: many orders have the same network */
  else back_to_best(c);
  if (c->kicks_left) {
    c->kicks_left--;
    c->local = 1;
    kick(c, scorer);
  } else if (c->local) { /* once more in full */
    c->local = c->checked = 0;
  } else c->done = 1;
}

static void climb_task(void *data, size_t t, int thread)
{
  search_job *job = data;
  climber *c = &job->climbers[t];
  weft_bn_scorer *scorer = &job->scorers[thread];
  const double from = scorer->scored + c->asked;
  while (!c->done && scorer->scored + c->asked - from < job->portion) {
    if (c->present < c->problem->p) {
      put_in(c, scorer);
      continue;
    }
    if (!c->waiting) {
      settle(c, scorer);
      continue;
    }
    const size_t v = (size_t) c->queue[c->first];
    c->first = (c->first + 1) % c->problem->p;
    c->waiting--;
    c->waits[v] = 0;
    const int32_t was = c->place[v], to = best_place(c, scorer, v);
    if (to == was) continue;
    c->moves++;
    put(c, v, to);
    after_move(c, scorer, v, was, to);
  }
}

/* ---- the whole ---- */

typedef struct search_run {
  const weft_bn_search *search;
  climber *climbers;
  weft_bn_scorer *scorers;
  weft_bn_near near;
  weft_bn_listed listed;
  double from, to;            /* progress */
} search_run;

/* All starts to where no move helps; with kicks, to where these are used up. `grown`: only nodes that have a new
 * candidate, and those around them, wait at first. */
static weft_status climb_all(weft_ctx *ctx, search_run *run, size_t kicks, const uint8_t *grown)
{
  weft_status st = WEFT_OK;
  const size_t starts = run->search->starts;
  search_job job = { run->climbers, run->scorers, PORTION };
  size_t left = starts;
  for (size_t t = 0; t < starts; t++) {
    climber *c = &run->climbers[t];
    if (c->present) {
      value_all(c, &run->scorers[0]);
      if (!grown) all_wait(c);
      for (size_t i = 0; grown && i < c->problem->p; i++) if (grown[i]) neighbours_wait(c, i);
    }
    c->best_total = INT64_MIN;
    c->kicks_left = kicks;
    c->done = c->local = 0;
    c->checked = grown != NULL;
  }
  while (left) {
    double took, done = 0;
    WEFT_TRY(weft_bn_run_timed(ctx, run->search->problem->threads, starts, climb_task, &job, run->from, &took));
    job.portion *= took < 0.01 ? 2 : took > 0.1 ? 0.5 : 1;
    left = 0;
    for (size_t t = 0; t < starts; t++) {
      left += !run->climbers[t].done;
      done += kicks ? 1 - (double) run->climbers[t].kicks_left / (double) kicks : run->climbers[t].done;
    }
    run->from = fmax(run->from, run->to * done / (double) starts);
  }
done:
  return st;
}

/* The network of an order: each node's parents. */
static weft_status make_dag(weft_ctx *ctx, search_run *run, climber *c, int32_t *dag, double *node_score)
{
  weft_status st = WEFT_OK;
  const size_t p = run->search->problem->p;
  memset(dag, 0, p * p * sizeof *dag);
  for (size_t i = 0; i < p; i++) {
    size_t parents[WEFT_BN_MOST_PARENTS + 2], m;
    const weft_bn_prefix prefix = { c->place, c->place[i], -1, 0 };
    const int64_t value = weft_bn_trees_value(&c->trees, &run->scorers[0], i, prefix, &c->asked_for[i], parents, &m);
    if (i % 64 == 0) WEFT_TRY(weft_poll(ctx, run->from, 1));
    if (node_score) node_score[i] = ldexp((double) value, -run->scorers[0].ready->bits);
    for (size_t k = 0; k < m; k++) dag[parents[k] + p * i] = 1;
  }
done:
  return st;
}

/* While any start's network would gain by a parent that is no candidate, it becomes one and the search goes on around
 * it; and once more everywhere when that has ended. */
static weft_status widen_all(weft_ctx *ctx, search_run *run, weft_arena *mem, weft_bn_found *out)
{
  weft_status st = WEFT_OK;
  int settled = 1;
  for (int round = 0; round < MOST_WIDENINGS; round++) {
    const size_t starts = run->search->starts;
    size_t all = 0;
    memset(run->near.grown, 0, run->search->problem->p);
    for (size_t t = 0; t < starts; t++) {
      size_t added;
      WEFT_TRY(make_dag(ctx, run, &run->climbers[t], out->dag, NULL));
      WEFT_TRY(weft_bn_near_widen(ctx, mem, run->search, run->scorers, run->climbers[t].order, out->dag, &run->near,
                                  &added));
      all += added;
    }
    if (!all && settled) break;
    for (size_t t = 0; t < starts; t++) weft_bn_trees_forget(&run->climbers[t].trees, run->near.grown);
    out->rounds += all > 0;
    WEFT_TRY(climb_all(ctx, run, 0, all ? run->near.grown : NULL));
    settled = !all;
  }
done:
  return st;
}

static weft_status check_scored(weft_ctx *ctx, const search_run *run)
{
  size_t set[WEFT_BN_MOST_PARENTS + 1];
  for (size_t i = 0; i < run->search->problem->p; i++) {
    const size_t m = weft_bn_required_of(run->search->problem, i, set);
    if (weft_bn_scorer_value(&run->scorers[0], i, set, m) > WEFT_BN_NEVER) continue;
    return weft_fail_column(ctx, i, "has no set of parents that can be scored: with so many levels, its own or those "
                            "of parents that are required, the penalty of this score is too large.");
  }
  return WEFT_OK;
}

weft_status weft_bn_search_run(weft_ctx *ctx, const weft_bn_search *search, weft_bn_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  search_run run = { .search = search, .from = 0.3, .to = search->kicks ? 0.4 : 0.9 };
  weft_bn_ready ready;
  size_t best = 0;
  WEFT_TRY(weft_bn_ready_make(ctx, &mem, search->problem, &ready));
  WEFT_TAKE(run.scorers, &mem, search->problem->threads);
  WEFT_TAKE(run.climbers, &mem, search->starts);
  WEFT_TRY(weft_bn_scorers_make(&mem, &ready, run.scorers));
  WEFT_TRY(check_scored(ctx, &run));
  WEFT_TRY(weft_bn_near_find(ctx, &mem, search, run.scorers, &run.near));
  WEFT_TRY(weft_bn_listed_make(ctx, &mem, search, &run.near, &run.scorers[0], &run.listed));
  for (size_t t = 0; t < search->starts; t++) {
    WEFT_TRY(make_climber(&mem, search, &run.near, &run.listed, t, &run.climbers[t]));
    random_order(&run.climbers[t]);
  }
  WEFT_TRY(climb_all(ctx, &run, 0, NULL));
  WEFT_TRY(widen_all(ctx, &run, &mem, out));
  if (search->kicks) {
    run.to = 0.9;
    WEFT_TRY(climb_all(ctx, &run, search->kicks, NULL));
    WEFT_TRY(widen_all(ctx, &run, &mem, out));
  }
  for (size_t t = 0; t < search->starts; t++) {
    const climber *c = &run.climbers[t];
    out->start_score[t] = ldexp((double) c->total, -ready.bits);
    out->moves += c->moves;
    if (c->total > run.climbers[best].total) best = t;
  }
  WEFT_TRY(make_dag(ctx, &run, &run.climbers[best], out->dag, out->node_score));
  memcpy(out->order, run.climbers[best].order, search->problem->p * sizeof *out->order);
  for (size_t t = 0; t < search->problem->threads; t++) out->scored += run.scorers[t].scored;
  out->candidates = (double) run.near.pairs;
done:
  weft_arena_end(&mem);
  return st;
}
