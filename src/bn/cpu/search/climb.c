/* Best moves through an order; see search.h. The position of a node matters to itself and to those whose candidate
 * it is: a move is scored by their trees alone, at every place between two nodes that matter. At first nodes are
 * inserted one by one, each at its best place. Then nodes wait in a queue; a move puts back those whose scores it
 * changed. When the queue is empty, all nodes are tried once more; when none moves, the order is left by a kick: some
 * nodes that are near each other go to random places, and the search continues from there. If the result is worse than
 * before, it is undone; if it is better, parents are looked for in another way, too (weft_bn_trees_thin()).
 *
 * With categories, two parents may explain a node together and neither alone. Then single moves end early: the node
 * would lose its children on the way behind its parents. So nodes move with their descendants, too, when no single
 * node moves any more, and every second kick reverses an edge and keeps the others. */
#include <string.h>
#include "bn/both/moves.h"
#include "bn/cpu/search/climb.h"

#define KICKED 5  /* nodes that a kick moves, at most; */
#define WIDELY 12 /* a wide one: a random number of 2 to 12 */
#define SCANNED 8 /* sorting a node of a list takes as long as scanning 8 nodes of an order */

weft_status weft_bn_climber_make(weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                 weft_bn_trees *trees, size_t number, weft_bn_climber *out)
{
  weft_status st = WEFT_OK;
  const size_t p = search->problem->p;
  *out = (weft_bn_climber){ .problem = search->problem,
                            .near = near,
                            .trees = trees,
                            .rng = { search->key, (uint32_t) number },
                            .kept_total = INT64_MIN,
                            .queue = { .p = p } };
  WEFT_TAKE(out->order, mem, p);
  WEFT_TAKE(out->place, mem, p);
  WEFT_TAKE0(out->before, mem, p + 1);
  WEFT_TAKE(out->queue.node, mem, p);
  WEFT_TAKE(out->queue.waits, mem, p);
  WEFT_TAKE(out->value, mem, p);
  WEFT_TAKE(out->asked_for, mem, p);
  WEFT_TAKE(out->best_order, mem, p);
  WEFT_TAKE(out->kept_order, mem, p);
  WEFT_TAKE(out->best_value, mem, p);
  WEFT_TAKE(out->best_asked_for, mem, p);
  WEFT_TAKE0(out->is_moved, mem, p);
  WEFT_TAKE0(out->thinned_at, mem, p);
  WEFT_TAKE(out->moved, mem, p);
  WEFT_TAKE(out->relevant, mem, p);
  WEFT_TAKE0(out->why, mem, p);
  WEFT_TAKE(out->without, mem, p);
  WEFT_TAKE(out->with, mem, p);
  if (!weft_bn_gauss(search->problem)) {
    WEFT_TAKE(out->stays, mem, p);
    WEFT_TAKE(out->parent, mem, p * WEFT_BN_MAX_PARENTS);
    WEFT_TAKE(out->parent_count, mem, p);
  }
done:
  return st;
}

static size_t draw_below(weft_bn_climber *climber, size_t n)
{
  return (size_t) weft_draw_below(climber->rng, climber->draws++, n);
}

static int needs(const weft_bn_problem *problem, size_t child, size_t parent)
{
  return problem->required && problem->required[child + problem->p * parent];
}

/* ---- orders ---- */

/* Places and bits of the nodes at places `from` .. `end` - 1 of the order. */
static void set_places(weft_bn_climber *climber, size_t from, size_t end)
{
  for (size_t k = from; k < end; k++) {
    climber->place[climber->order[k]] = (int32_t) k;
    climber->before[k + 1] = climber->before[k] | weft_bn_bit(climber->order[k]);
  }
}

/* At random, required parents before their children: each time one of the nodes whose required parents are all
 * placed. */
void weft_bn_climber_shuffle(weft_bn_climber *climber)
{
  const size_t p = climber->problem->p;
  int32_t *left = climber->relevant;
  uint8_t *placed_yet = climber->queue.waits; /* nobody waits before the first climb */
  weft_bn_random_order(left, p, climber->rng, &climber->draws);
  if (!climber->problem->required) {
    memcpy(climber->order, left, p * sizeof *left);
    set_places(climber, 0, p);
    return;
  }
  memset(placed_yet, 0, p);
  for (size_t placed = 0; placed < p;) {
    for (size_t k = 0; k < p; k++) {
      const size_t i = (size_t) left[k];
      int free = !placed_yet[i];
      for (size_t node = 0; node < p && free; node++) free = !needs(climber->problem, i, node) || placed_yet[node];
      if (!free) continue;
      placed_yet[i] = 1;
      climber->order[placed++] = left[k];
    }
  }
  set_places(climber, 0, p);
}

void weft_bn_climber_keep(weft_bn_climber *climber)
{
  if (climber->best_total <= climber->kept_total) return;
  climber->kept_total = climber->best_total;
  memcpy(climber->kept_order, climber->best_order, climber->problem->p * sizeof *climber->kept_order);
}

void weft_bn_climber_restart(weft_bn_climber *climber, size_t number)
{
  climber->rng.stream = (uint32_t) number;
  climber->draws = 0;
  weft_bn_queue_clear(&climber->queue);
  weft_bn_climber_shuffle(climber);
  weft_bn_queue_clear(&climber->queue);
  climber->present = 0;
  climber->total = 0;
}

void weft_bn_climber_recall(weft_bn_climber *climber)
{
  memcpy(climber->order, climber->kept_order, climber->problem->p * sizeof *climber->order);
  set_places(climber, 0, climber->problem->p);
}

/* Moves `node` to `to`, a place in the order without it. */
static void put(weft_bn_climber *climber, size_t node, int32_t to)
{
  int32_t *order = climber->order;
  const int32_t at = climber->place[node];
  if (climber->lane && !climber->is_moved[node]) {
    climber->is_moved[node] = 1;
    climber->moved[climber->moved_count++] = (int32_t) node;
  }
  if (at < to)
    memmove(order + at, order + at + 1, (size_t) (to - at) * sizeof *order);
  else
    memmove(order + to + 1, order + to, (size_t) (at - to) * sizeof *order);
  order[to] = (int32_t) node;
  set_places(climber, (size_t) (at < to ? at : to), (size_t) (at < to ? to : at) + 1);
}

/* Places in the order without `node` between which required edges leave it: after `*low` nodes at least, `*high` at
 * most. */
static void allowed_places(const weft_bn_climber *climber, size_t node, int32_t *low, int32_t *high)
{
  const size_t p = climber->problem->p;
  *low = 0;
  *high = (int32_t) climber->present - 1;
  for (size_t other = 0; other < p && climber->problem->required; other++) {
    const int32_t at = climber->place[other] - (climber->place[other] > climber->place[node]);
    if (needs(climber->problem, node, other) && at + 1 > *low) *low = at + 1;
    if (needs(climber->problem, other, node) && at < *high) *high = at;
  }
}

/* ---- the queue ---- */

static void all_wait(weft_bn_climber *climber) { weft_bn_queue_all(&climber->queue, climber->rng, &climber->draws); }

static void neighbours_wait(weft_bn_climber *climber, size_t i)
{
  weft_bn_queue_add(&climber->queue, i);
  for (size_t k = climber->near->start[i]; k < climber->near->start[i + 1]; k++)
    weft_bn_queue_add(&climber->queue, (size_t) climber->near->node[k]);
}

/* ---- values ---- */

static int64_t value_at(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t i, int32_t limit, int32_t moved,
                        int before, uint64_t *asked_for)
{
  const weft_bn_prefix prefix = { climber->place, climber->before, limit, moved, before };
  climber->asked++;
  return weft_bn_trees_value(climber->trees, scorer, i, prefix, asked_for, NULL, NULL);
}

/* The value of node i in the present order. */
static int64_t value_now(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t i)
{
  return value_at(climber, scorer, i, climber->place[i], -1, 0, &climber->asked_for[i]);
}

/* The nodes around i are queued when its value has changed. */
static void renew(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t i)
{
  const int64_t now = value_now(climber, scorer, i);
  if (now == climber->value[i]) return;
  climber->total += now - climber->value[i];
  climber->value[i] = now;
  if (climber->local)
    weft_bn_queue_add(&climber->queue, i);
  else
    neighbours_wait(climber, i);
}

static void value_all(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  climber->total = 0;
  for (size_t i = 0; i < climber->problem->p; i++) climber->total += climber->value[i] = value_now(climber, scorer, i);
}

/* ---- one move ---- */

/* Why a node matters to another one's position: it has it as a candidate, or is a candidate of it. */
enum { KID = 1, PARENT = 2 };

/* Fills climber->relevant with the candidates of `node` and the nodes whose candidate it is, as far as they have been
 * inserted, ascending by place, and `why` with what they are to it. Returns how many. best_place() clears `why`
 * again. */
static size_t list_relevant(weft_bn_climber *climber, size_t node)
{
  uint8_t *why = climber->why;
  const weft_bn_near *near = climber->near;
  size_t count = 0, end = near->kid_start[node + 1];
  for (size_t k = near->kid_start[node]; k < end; k++) {
    if ((size_t) climber->place[near->kid[k]] >= climber->present) continue;
    why[near->kid[k]] |= KID;
    climber->relevant[count++] = near->kid[k];
  }
  for (size_t k = near->start[node]; k < near->start[node + 1]; k++) {
    if ((size_t) climber->place[near->node[k]] >= climber->present) continue;
    if (!why[near->node[k]]) climber->relevant[count++] = near->node[k];
    why[near->node[k]] |= PARENT;
  }
  if (SCANNED * count > climber->present) { /* most nodes: in the order */
    count = 0;
    for (size_t k = 0; k < climber->present; k++)
      if (why[climber->order[k]]) climber->relevant[count++] = climber->order[k];
    return count;
  }
  for (size_t k = 0; k < count; k++) climber->relevant[k] = climber->place[climber->relevant[k]];
  for (size_t gap = count / 2; gap > 0; gap /= 2) /* Shell's sort, of places */
    for (size_t k = gap; k < count; k++) {
      const int32_t x = climber->relevant[k];
      size_t j = k;
      for (; j >= gap && climber->relevant[j - gap] > x; j -= gap) climber->relevant[j] = climber->relevant[j - gap];
      climber->relevant[j] = x;
    }
  for (size_t k = 0; k < count; k++) climber->relevant[k] = climber->order[climber->relevant[k]];
  return count;
}

/* Finds the best place for `node`; returns its place in the order without it, which is its own when nothing is better.
 */
static int32_t best_place(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t node)
{
  uint8_t *why = climber->why;
  const size_t count = list_relevant(climber, node);
  const int32_t own_place = climber->place[node];
  int32_t low, high, found = own_place;
  const uint64_t bit = weft_bn_bit((int32_t) node);
  uint64_t own_asked_for, ignored;
  int64_t own = value_at(climber, scorer, node, 0, -1, 0, &own_asked_for), kids = 0, now = climber->value[node], best;
  allowed_places(climber, node, &low, &high);
  for (size_t k = 0; k < count; k++) {
    const size_t w = (size_t) climber->relevant[k];
    if (!(why[w] & KID)) continue;
    const int after = climber->place[w] > own_place;
    const int64_t other = climber->asked_for[w] & bit
                              ? value_at(climber, scorer, w, climber->place[w], (int32_t) node, !after, &ignored)
                              : climber->value[w];
    climber->with[w] = after ? climber->value[w] : other;
    climber->without[w] = after ? other : climber->value[w];
    kids += climber->with[w];
    now += climber->value[w];
  }
  best = now + WEFT_BN_TIE_UNITS;
  for (size_t k = 0;; k++) { /* between the nodes k - 1 and k of those that matter */
    const int32_t before =
        k ? climber->place[climber->relevant[k - 1]] + 1 - (climber->place[climber->relevant[k - 1]] > own_place) : 0;
    const int32_t after =
        k < count ? climber->place[climber->relevant[k]] - (climber->place[climber->relevant[k]] > own_place)
                  : (int32_t) climber->present - 1;
    const int32_t first = before > low ? before : low, last = after < high ? after : high;
    if (first <= last && own + kids > best) {
      best = own + kids;
      found = own_place < first ? first : own_place > last ? last : own_place;
    }
    if (k == count) break;
    const size_t w = (size_t) climber->relevant[k];
    if (why[w] & KID) kids += climber->without[w] - climber->with[w];
    if ((why[w] & PARENT) && (own_asked_for & weft_bn_bit((int32_t) w)))
      own = value_at(climber, scorer, node, climber->place[w] + 1, -1, 0, &own_asked_for);
  }
  for (size_t k = 0; k < count; k++) why[climber->relevant[k]] = 0;
  return found;
}

/* After `node` went from one place to another: the values of those that it passed, and its own. */
static void after_move(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t node, int32_t from, int32_t to)
{
  const int32_t least = from < to ? from : to, most = from < to ? to : from;
  for (size_t k = climber->near->kid_start[node]; k < climber->near->kid_start[node + 1]; k++) {
    const size_t w = (size_t) climber->near->kid[k];
    if (climber->place[w] >= least && climber->place[w] <= most &&
        (climber->asked_for[w] & weft_bn_bit((int32_t) node)))
      renew(climber, scorer, w);
  }
  renew(climber, scorer, node);
}

/* ---- kicks ---- */

static void keep_best(weft_bn_climber *climber)
{
  const size_t p = climber->problem->p;
  memcpy(climber->best_order, climber->order, p * sizeof *climber->order);
  memcpy(climber->best_value, climber->value, p * sizeof *climber->value);
  memcpy(climber->best_asked_for, climber->asked_for, p * sizeof *climber->asked_for);
  climber->best_total = climber->total;
  climber->best_moved = climber->moved_count;
}

static void back_to_best(weft_bn_climber *climber)
{
  const size_t p = climber->problem->p;
  memcpy(climber->order, climber->best_order, p * sizeof *climber->order);
  memcpy(climber->value, climber->best_value, p * sizeof *climber->value);
  memcpy(climber->asked_for, climber->best_asked_for, p * sizeof *climber->asked_for);
  climber->total = climber->best_total;
  while (climber->moved_count > climber->best_moved) climber->is_moved[climber->moved[--climber->moved_count]] = 0;
  set_places(climber, 0, p);
}

/* A node and some of its candidates, each to a random place between the first and the last of them. */
static void kick(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  const size_t v = draw_below(climber, climber->problem->p), from = climber->near->start[v],
               offered = climber->near->start[v + 1] - from;
  size_t node[WIDELY] = { v }, count = 1;
  int32_t first = climber->place[v], last = first;
  const size_t kicked = climber->wide ? 2 + draw_below(climber, WIDELY - 1) : KICKED;
  for (size_t k = 1; k < kicked && offered; k++) {
    const size_t u = (size_t) climber->near->node[from + draw_below(climber, offered)];
    size_t same = 0;
    while (same < count && node[same] != u) same++;
    if (same == count) node[count++] = u;
  }
  for (size_t k = 0; k < count; k++) {
    if (climber->place[node[k]] < first) first = climber->place[node[k]];
    if (climber->place[node[k]] > last) last = climber->place[node[k]];
  }
  for (size_t k = 0; k < count; k++) {
    int32_t low, high, was = climber->place[node[k]];
    allowed_places(climber, node[k], &low, &high);
    if (low < first) low = first;
    if (high > last) high = last;
    if (low > high) continue;
    put(climber, node[k], low + (int32_t) draw_below(climber, (size_t) (high - low) + 1));
    after_move(climber, scorer, node[k], was, climber->place[node[k]]);
    weft_bn_queue_add(&climber->queue, node[k]);
  }
}

/* The next node of the order, at the best place among those that are there: a better beginning than a random order. */
static void put_in(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  const int32_t at = (int32_t) climber->present++;
  const size_t node = (size_t) climber->order[at];
  climber->total += climber->value[node] = value_now(climber, scorer, node);
  const int32_t to = best_place(climber, scorer, node);
  if (to != at) {
    put(climber, node, to);
    after_move(climber, scorer, node, at, to);
  }
  if (climber->present == climber->problem->p) all_wait(climber);
}

/* Looks for better parents of the nodes before which others come than when it was done last; nodes around those that
 * have some are queued. Returns whether there are any. */
static int thin_all(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  uint64_t before = 0;
  int any = 0;
  for (size_t k = 0; k < climber->problem->p; k++) {
    const size_t i = (size_t) climber->order[k];
    const weft_bn_prefix prefix = { climber->place, climber->before, climber->place[i], -1, 0 };
    if (before != climber->thinned_at[i] && weft_bn_trees_thin(climber->trees, scorer, i, prefix, climber->value[i])) {
      renew(climber, scorer, i);
      any = 1;
    }
    climber->thinned_at[i] = before;
    before += weft_bn_pick_hash(i, 1);
  }
  return any;
}

/* ---- moves of a node with its descendants ---- */

/* The parents of node i in the present order. */
static void list_parents(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t i)
{
  size_t parents[WEFT_BN_MAX_PARENTS + 2], m;
  uint64_t ignored;
  const weft_bn_prefix prefix = { climber->place, climber->before, climber->place[i], -1, 0 };
  weft_bn_trees_value(climber->trees, scorer, i, prefix, &ignored, parents, &m);
  climber->parent_count[i] = (uint8_t) m;
  for (size_t k = 0; k < m; k++) climber->parent[i * WEFT_BN_MAX_PARENTS + k] = (int32_t) parents[k];
}

/* v and its descendants, which are at higher places, stay behind others. */
static void mark_descendants(weft_bn_climber *climber, size_t v)
{
  const size_t p = climber->problem->p;
  memset(climber->stays, 0, p * sizeof *climber->stays);
  climber->stays[v] = 1;
  for (size_t k = (size_t) climber->place[v] + 1; k < p; k++) {
    const size_t w = (size_t) climber->order[k];
    const int32_t *parent = climber->parent + w * WEFT_BN_MAX_PARENTS;
    for (size_t j = 0; j < climber->parent_count[w] && !climber->stays[w]; j++)
      climber->stays[w] = climber->stays[parent[j]];
  }
}

/* The nodes at the places `from` .. `end` - 1: those that do not stay first, each side in its order. The order as it
 * was is kept in climber->relevant. */
static void part_order(weft_bn_climber *climber, size_t from, size_t end)
{
  int32_t *kept = climber->relevant;
  size_t to = from;
  memcpy(kept + from, climber->order + from, (end - from) * sizeof *kept);
  for (int32_t side = 0; side < 2; side++)
    for (size_t k = from; k < end; k++)
      if (climber->stays[kept[k]] == side) climber->order[to++] = kept[k];
}

/* Puts nodes that do not stay before v. Returns whether the score rises; if not, the order is as it was. */
static int put_behind(weft_bn_climber *climber, weft_bn_scorer *scorer, size_t v)
{
  const size_t p = climber->problem->p, at = (size_t) climber->place[v];
  const int64_t was = climber->total;
  part_order(climber, at, p);
  for (int undo = 0;; undo = 1) {
    set_places(climber, at, p);
    for (size_t k = at; k < p; k++) renew(climber, scorer, (size_t) climber->order[k]);
    if (undo) return 0;
    if (climber->total > was + WEFT_BN_TIE_UNITS) break;
    memcpy(climber->order + at, climber->relevant + at, (p - at) * sizeof *climber->order);
  }
  climber->moves++;
  for (size_t k = at; k < p; k++) list_parents(climber, scorer, (size_t) climber->order[k]);
  return 1;
}

/* Tries to move each node with its descendants behind all others: no edge is lost, and it may get better parents, which
 * it cannot reach alone where it has to pass its children. Returns whether any did. */
static int move_families(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  const size_t p = climber->problem->p;
  int any = 0;
  for (size_t i = 0; i < p; i++) list_parents(climber, scorer, i);
  for (size_t v = 0; v < p; v++) {
    const size_t at = (size_t) climber->place[v];
    uint64_t bits[2] = { 0, climber->before[at] }, ignored;
    mark_descendants(climber, v);
    for (size_t k = at + 1; k < p; k++)
      if (!climber->stays[climber->order[k]]) bits[1] |= weft_bn_bit(climber->order[k]);
    const weft_bn_prefix prefix = { climber->stays, bits, 1, -1, 0 };
    climber->asked++;
    const int64_t value = weft_bn_trees_value(climber->trees, scorer, v, prefix, &ignored, NULL, NULL);
    if (value > climber->value[v] + WEFT_BN_TIE_UNITS && put_behind(climber, scorer, v)) any = 1;
  }
  return any;
}

/* Reverses an edge of the network: a node goes before one of its parents, and so do its other ancestors between them.
 */
static void kick_edge(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  const size_t p = climber->problem->p, u = draw_below(climber, p);
  const int32_t *order = climber->order;
  int32_t *stays = climber->stays;
  size_t parents[WEFT_BN_MAX_PARENTS + 2], m;
  uint64_t ignored;
  weft_bn_prefix prefix = { climber->place, climber->before, climber->place[u], -1, 0 };
  weft_bn_trees_value(climber->trees, scorer, u, prefix, &ignored, parents, &m);
  if (!m) return;
  const size_t v = parents[draw_below(climber, m)], from = (size_t) climber->place[v], end = (size_t) climber->place[u];
  for (size_t k = from; k <= end; k++) stays[order[k]] = 1;
  stays[u] = 0;
  for (size_t k = end; k > from; k--) {
    const size_t w = (size_t) order[k];
    if (stays[w]) continue;
    if (needs(climber->problem, w, v)) return;
    prefix.limit = (int32_t) k;
    weft_bn_trees_value(climber->trees, scorer, w, prefix, &ignored, parents, &m);
    for (size_t j = 0; j < m; j++) stays[parents[j]] = 0;
  }
  stays[v] = 1;
  part_order(climber, from, end + 1);
  set_places(climber, from, end + 1);
  for (size_t k = from; k <= end; k++) renew(climber, scorer, (size_t) order[k]);
  weft_bn_queue_add(&climber->queue, u);
  weft_bn_queue_add(&climber->queue, v);
}

/* When the queue is empty: queues all nodes once more, or begins the next kick, or pauses, or ends. */
static void settle(weft_bn_climber *climber, weft_bn_scorer *scorer)
{
  if (!climber->checked) {
    climber->checked = 1;
    all_wait(climber);
    return;
  }
  if (climber->trees->thinned.count && climber->total > climber->best_total && thin_all(climber, scorer) &&
      climber->queue.waiting)
    return;
  if (climber->stays && (!climber->local || climber->total > climber->best_total) && move_families(climber, scorer) &&
      climber->queue.waiting)
    return;
  if (climber->total > climber->best_total)
    keep_best(climber); /* equal ones, too: many orders have the same network */
  else
    back_to_best(climber);
  if (climber->kicks_left > climber->pause) {
    climber->kicks_left--;
    climber->local = 1;
    if (climber->stays && draw_below(climber, 2))
      kick_edge(climber, scorer);
    else
      kick(climber, scorer);
  } else if (climber->local && !climber->lane && !climber->pause) { /* once more in full */
    climber->local = climber->checked = 0;
  } else
    climber->done = 1;
}

/* Inserts nodes that are still missing, then moves waiting nodes to their best places, then kicks, until `portion`
 * sets and values have been asked for or the climber is done. */
void weft_bn_climber_advance(weft_bn_climber *climber, weft_bn_scorer *scorer, double portion)
{
  const double scored = scorer->scored, swept = scorer->swept, from = scored + climber->asked;
  if (climber->stale) value_all(climber, scorer);
  climber->stale = 0;
  while (!climber->done && scorer->scored + climber->asked - from < portion) {
    if (climber->present < climber->problem->p) {
      put_in(climber, scorer);
      continue;
    }
    if (!climber->queue.waiting) {
      settle(climber, scorer);
      continue;
    }
    const size_t node = weft_bn_queue_next(&climber->queue);
    const int32_t was = climber->place[node], to = best_place(climber, scorer, node);
    if (to == was) continue;
    climber->moves++;
    put(climber, node, to);
    after_move(climber, scorer, node, was, to);
  }
  climber->scored += scorer->scored - scored;
  climber->swept += scorer->swept - swept;
}

void weft_bn_climber_begin(weft_bn_climber *climber, size_t kicks, const uint8_t *grown)
{
  climber->best_total = INT64_MIN;
  climber->kicks_left = kicks;
  climber->pause = 0;
  climber->done = climber->local = 0;
  climber->checked = grown != NULL;
  if (!climber->present) return;
  climber->stale = 1;
  if (!grown) all_wait(climber);
  for (size_t i = 0; grown && i < climber->problem->p; i++)
    if (grown[i]) neighbours_wait(climber, i);
}

void weft_bn_climber_resume(weft_bn_climber *climber, size_t kicks_left, size_t pause)
{
  climber->kicks_left = kicks_left;
  climber->pause = pause;
  climber->done = 0;
}

/* ---- lanes ---- */

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
  weft_bn_queue_clear(&lane->queue);
  lane->present = p;
  lane->draws = (uint64_t) (first + 1) << 32; /* no climber draws as often as this by itself */
  lane->kicks_left = kicks;
  lane->lane = lane->local = lane->checked = 1;
  lane->done = lane->stale = 0;
}

/* Each node that the lane moved is put behind the node that it follows there, from the first on: in the order from
 * which the lane began, that makes the lane's order. */
void weft_bn_climber_take_over(weft_bn_climber *climber, const weft_bn_climber *lane, weft_bn_scorer *scorer)
{
  const size_t p = climber->problem->p;
  int any = 0, fits = 1;
  if (!lane->best_moved) return;
  climber->local = 1; /* no neighbours: nothing moves */
  for (size_t at = 0; at < p && fits; at++) {
    const int32_t node = lane->best_order[at];
    int32_t low, high;
    if (!lane->is_moved[node]) continue;
    const int32_t was = climber->place[node], before = at ? climber->place[lane->best_order[at - 1]] : -1;
    const int32_t to = before + 1 - (before > was);
    if (to == was) continue;
    allowed_places(climber, (size_t) node, &low, &high);
    fits = to >= low && to <= high;
    if (!fits) break;
    put(climber, (size_t) node, to);
    after_move(climber, scorer, (size_t) node, was, to);
    any = 1;
  }
  if (any && fits && climber->total > climber->best_total)
    keep_best(climber);
  else if (any)
    back_to_best(climber);
  weft_bn_queue_clear(&climber->queue);
}
