/* Best moves through an order; see search.h. The position of a node matters to itself and to those whose candidate
 * it is: a move is scored by their trees alone, at every place between two nodes that matter. At first nodes are
 * inserted one by one, each at its best place. Then nodes wait in a queue; a move puts back those whose scores it
 * changed. When the queue is empty, all nodes are tried once more; when none moves, the order is left by a kick: some
 * nodes that are near each other go to random places, and the search continues from there. If the result is worse than
 * before, it is undone. */
#include <string.h>
#include "bn/cpu/search/climb.h"

#define TIE_UNITS 8 /* scores that are equal mathematically may differ by so much */
#define KICKED 5    /* nodes that a kick moves, at most */

weft_status weft_bn_climber_make(weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                 weft_bn_trees *trees, size_t number, weft_bn_climber *out)
{
  weft_status st = WEFT_OK;
  const size_t p = search->problem->p;
  *out = (weft_bn_climber){
    .problem = search->problem, .near = near, .trees = trees, .rng = { search->key, (uint32_t) number }
  };
  WEFT_TAKE(out->order, mem, p);
  WEFT_TAKE(out->place, mem, p);
  WEFT_TAKE(out->queue, mem, p);
  WEFT_TAKE(out->value, mem, p);
  WEFT_TAKE(out->asked_for, mem, p);
  WEFT_TAKE(out->waits, mem, p);
  WEFT_TAKE(out->best_order, mem, p);
  WEFT_TAKE(out->best_value, mem, p);
  WEFT_TAKE(out->best_asked_for, mem, p);
  WEFT_TAKE0(out->is_moved, mem, p);
  WEFT_TAKE(out->moved, mem, p);
  WEFT_TAKE(out->relevant, mem, p);
  WEFT_TAKE0(out->why, mem, p);
  WEFT_TAKE(out->without, mem, p);
  WEFT_TAKE(out->with, mem, p);
done:
  return st;
}

static size_t draw_below(weft_bn_climber *c, size_t n) { return (size_t) weft_draw_below(c->rng, c->draws++, n); }

static int needs(const weft_bn_problem *problem, size_t child, size_t parent)
{
  return problem->required && problem->required[child + problem->p * parent];
}

/* ---- orders ---- */

static void set_places(weft_bn_climber *c)
{
  for (size_t k = 0; k < c->problem->p; k++) c->place[c->order[k]] = (int32_t) k;
}

/* At random, required parents before their children: each time one of the nodes whose required parents are all
 * placed. */
void weft_bn_climber_shuffle(weft_bn_climber *c)
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
static void put(weft_bn_climber *c, size_t v, int32_t to)
{
  int32_t at = c->place[v];
  if (c->lane && !c->is_moved[v]) {
    c->is_moved[v] = 1;
    c->moved[c->moved_count++] = (int32_t) v;
  }
  for (; at < to; at++) c->place[c->order[at] = c->order[at + 1]] = at;
  for (; at > to; at--) c->place[c->order[at] = c->order[at - 1]] = at;
  c->order[to] = (int32_t) v;
  c->place[v] = to;
}

/* Places in the order without v between which required edges leave it: after `*low` nodes at least, `*high` at most. */
static void allowed_places(const weft_bn_climber *c, size_t v, int32_t *low, int32_t *high)
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

static void wait(weft_bn_climber *c, size_t v)
{
  const size_t p = c->problem->p;
  if (c->waits[v]) return;
  c->waits[v] = 1;
  c->queue[(c->first + c->waiting++) % p] = (int32_t) v;
}

static void all_wait(weft_bn_climber *c)
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

static void neighbours_wait(weft_bn_climber *c, size_t i)
{
  wait(c, i);
  for (size_t k = c->near->start[i]; k < c->near->start[i + 1]; k++) wait(c, (size_t) c->near->node[k]);
}

/* ---- values ---- */

static int64_t value_at(weft_bn_climber *c, weft_bn_scorer *scorer, size_t i, int32_t limit, int32_t moved, int before,
                        uint64_t *asked_for)
{
  const weft_bn_prefix prefix = { c->place, limit, moved, before };
  c->asked++;
  return weft_bn_trees_value(c->trees, scorer, i, prefix, asked_for, NULL, NULL);
}

/* The value of node i in the present order. */
static int64_t value_now(weft_bn_climber *c, weft_bn_scorer *scorer, size_t i)
{
  return value_at(c, scorer, i, c->place[i], -1, 0, &c->asked_for[i]);
}

/* The nodes around i are queued when its value has changed. */
static void renew(weft_bn_climber *c, weft_bn_scorer *scorer, size_t i)
{
  const int64_t now = value_now(c, scorer, i);
  if (now == c->value[i]) return;
  c->total += now - c->value[i];
  c->value[i] = now;
  if (c->local)
    wait(c, i);
  else
    neighbours_wait(c, i);
}

static void value_all(weft_bn_climber *c, weft_bn_scorer *scorer)
{
  c->total = 0;
  for (size_t i = 0; i < c->problem->p; i++) c->total += c->value[i] = value_now(c, scorer, i);
}

/* ---- one move ---- */

/* Nodes that matter to the position of v, ascending by place; flags say why. Returns how many. */
enum { KID = 1, PARENT = 2 };

/* Fills climber->relevant with the candidates of v and the nodes whose candidate v is, as far as they have been
 * inserted, ascending by place, and `why` with what they are to v. Returns how many. best_place() clears `why`
 * again. */
static size_t list_relevant(weft_bn_climber *c, size_t v)
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

/* Finds the best place for v; returns its place in the order without it, which is its own when nothing is better. */
static int32_t best_place(weft_bn_climber *c, weft_bn_scorer *scorer, size_t v)
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
    const int32_t after =
        k < count ? c->place[c->relevant[k]] - (c->place[c->relevant[k]] > own_place) : (int32_t) c->present - 1;
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
static void after_move(weft_bn_climber *c, weft_bn_scorer *scorer, size_t v, int32_t from, int32_t to)
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

static void keep_best(weft_bn_climber *c)
{
  const size_t p = c->problem->p;
  memcpy(c->best_order, c->order, p * sizeof *c->order);
  memcpy(c->best_value, c->value, p * sizeof *c->value);
  memcpy(c->best_asked_for, c->asked_for, p * sizeof *c->asked_for);
  c->best_total = c->total;
  c->best_moved = c->moved_count;
}

static void back_to_best(weft_bn_climber *c)
{
  const size_t p = c->problem->p;
  memcpy(c->order, c->best_order, p * sizeof *c->order);
  memcpy(c->value, c->best_value, p * sizeof *c->value);
  memcpy(c->asked_for, c->best_asked_for, p * sizeof *c->asked_for);
  c->total = c->best_total;
  while (c->moved_count > c->best_moved) c->is_moved[c->moved[--c->moved_count]] = 0;
  set_places(c);
}

/* A node and some of its candidates, each to a random place between the first and the last of them. */
static void kick(weft_bn_climber *c, weft_bn_scorer *scorer)
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
static void put_in(weft_bn_climber *c, weft_bn_scorer *scorer)
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

/* When the queue is empty: queues all nodes once more, or begins the next kick, or ends. */
static void settle(weft_bn_climber *c, weft_bn_scorer *scorer)
{
  if (!c->checked) {
    c->checked = 1;
    all_wait(c);
    return;
  }
  if (c->total >= c->best_total)
    keep_best(c); /* equal ones, too: many orders have the same network */
  else
    back_to_best(c);
  if (c->kicks_left) {
    c->kicks_left--;
    c->local = 1;
    kick(c, scorer);
  } else if (c->local && !c->lane) { /* once more in full */
    c->local = c->checked = 0;
  } else
    c->done = 1;
}

/* Inserts nodes that are still missing, then moves waiting nodes to their best places, then kicks, until `portion`
 * sets and values have been asked for or the climber is done. */
void weft_bn_climber_advance(weft_bn_climber *c, weft_bn_scorer *scorer, double portion)
{
  const double from = scorer->scored + c->asked;
  if (c->stale) value_all(c, scorer);
  c->stale = 0;
  while (!c->done && scorer->scored + c->asked - from < portion) {
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

void weft_bn_climber_begin(weft_bn_climber *c, size_t kicks, const uint8_t *grown)
{
  c->best_total = INT64_MIN;
  c->kicks_left = kicks;
  c->done = c->local = 0;
  c->checked = grown != NULL;
  if (!c->present) return;
  c->stale = 1;
  if (!grown) all_wait(c);
  for (size_t i = 0; grown && i < c->problem->p; i++)
    if (grown[i]) neighbours_wait(c, i);
}

/* ---- lanes ---- */

static void nobody_waits(weft_bn_climber *c)
{
  memset(c->waits, 0, c->problem->p);
  c->first = c->waiting = 0;
}

/* Copies `from`'s best order into a lane of its own memory and sets its stream of draws to that of kick number
 * `first`. */
void weft_bn_climber_follow(weft_bn_climber *lane, const weft_bn_climber *from, size_t first, size_t kicks)
{
  const size_t p = lane->problem->p;
  memcpy(lane->best_order, from->best_order, p * sizeof *lane->order);
  memcpy(lane->best_value, from->best_value, p * sizeof *lane->value);
  memcpy(lane->best_asked_for, from->best_asked_for, p * sizeof *lane->asked_for);
  lane->best_total = lane->began_total = from->best_total;
  lane->best_moved = 0;
  back_to_best(lane);
  nobody_waits(lane);
  lane->present = p;
  lane->draws = (uint64_t) (first + 1) << 32; /* no climber draws as often as this by itself */
  lane->kicks_left = kicks;
  lane->lane = lane->local = lane->checked = 1;
  lane->done = lane->stale = 0;
}

/* Each node that the lane moved is put behind the node that it follows there, from the first on: in the order from
 * which the lane began, that makes the lane's order. */
void weft_bn_climber_take_over(weft_bn_climber *c, const weft_bn_climber *lane, weft_bn_scorer *scorer)
{
  const size_t p = c->problem->p;
  int any = 0, fits = 1;
  if (!lane->best_moved) return;
  c->local = 1; /* no neighbours: nothing moves */
  for (size_t at = 0; at < p && fits; at++) {
    const int32_t v = lane->best_order[at];
    int32_t low, high;
    if (!lane->is_moved[v]) continue;
    const int32_t was = c->place[v], before = at ? c->place[lane->best_order[at - 1]] : -1;
    const int32_t to = before + 1 - (before > was);
    if (to == was) continue;
    allowed_places(c, (size_t) v, &low, &high);
    fits = to >= low && to <= high;
    if (!fits) break;
    put(c, (size_t) v, to);
    after_move(c, scorer, (size_t) v, was, to);
    any = 1;
  }
  if (any && fits && c->total >= c->best_total)
    keep_best(c);
  else if (any)
    back_to_best(c);
  nobody_waits(c);
}
