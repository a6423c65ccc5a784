/* The exact distribution of a table's score by a walk over all tables, level after level, where these are few.
 *
 * After some levels, all that matters is how many rows are left of the classes (in any order) and the score so far.
 * Tables that agree in both are one node with the sum of their probabilities, so that many small levels of the same
 * size, which make millions of tables, make a few hundred nodes. What is left of the classes is the last level. */
#include <string.h>
#include "mi/null/law.h"
#include "mi/null/walk.h"

#define MAX_NODES 16384u /* of one level; a power of two */
#define MAX_TABLES 10000 /* expected nodes of a walk that is tried */
#define MAX_VISITS 60000 /* a walk ends there without result */
#define MAX_CLASSES 16u

typedef struct {
  int64_t score;
  double p;
  uint32_t slot, left[MAX_CLASSES];
} node;

typedef struct {
  node *nodes;
  uint32_t *slots, count;
} layer; /* slots: a hash table of node numbers from 1; 0 empty */

struct weft_mi_walk {
  layer layers[2];
  const weft_mi_logs *logs;
  const int64_t *f;
  uint32_t k;
  int64_t rounding; /* scores nearer than this are equal but for rounding */
  size_t visits;
};

weft_mi_walk *weft_mi_walk_make(weft_arena *mem)
{
  weft_mi_walk *walk = weft_arena_take(mem, 1, sizeof *walk);
  if (!walk) return NULL;
  for (int i = 0; i < 2; i++) {
    walk->layers[i].nodes = weft_arena_take(mem, MAX_NODES, sizeof *walk->layers[i].nodes);
    walk->layers[i].slots = weft_arena_take0(mem, 2 * MAX_NODES, sizeof *walk->layers[i].slots);
    walk->layers[i].count = 0;
    if (!walk->layers[i].nodes || !walk->layers[i].slots) return NULL;
  }
  return walk;
}

/* The side with more margins is dealt over the other, so that little is to be known of what is left. */
static weft_mi_margins sides_of(const weft_mi_margins *margins)
{
  const weft_mi_margins turned = { margins->classes, margins->levels, margins->k, margins->l, margins->n };
  return margins->k > margins->l ||
                 (margins->k == margins->l && margins->classes[margins->k - 1] > margins->levels[margins->l - 1])
             ? turned
             : *margins;
}

/* Log of the number of tables, nearly (Gail and Mantel 1977): the levels' rows are dealt over the classes evenly, and
 * the sums over the levels are about normal. */
static double log_tables(const weft_mi_margins *margins, const double *factorial)
{
  const double pi = 3.14159265358979323846, c = margins->k, n = (double) margins->n;
  double ways = 0, variance = 0, apart = 0;
  for (uint32_t a = 0; a < margins->l; a++) {
    const double r = margins->levels[a];
    ways += factorial[margins->levels[a] + margins->k - 1] - factorial[margins->k - 1] - factorial[margins->levels[a]];
    variance += r * (r + c) / (c * (c + 1));
  }
  for (uint32_t j = 0; j < margins->k; j++) apart += (margins->classes[j] - n / c) * (margins->classes[j] - n / c);
  return ways + 0.5 * weft_log(c) - 0.5 * (c - 1) * weft_log(2 * pi * variance) - apart / (2 * variance);
}

int weft_mi_walk_short(const weft_mi_margins *margins, const weft_mi_logs *logs)
{
  const weft_mi_margins sides = sides_of(margins);
  if (sides.k > MAX_CLASSES || sides.n + sides.k >= logs->known) return 0;
  double nodes = log_tables(&sides, logs->factorial);
  for (uint32_t a = 0, next; a + 1 < sides.l;
       a = next) { /* tables that differ in the order of equal levels are one node */
    for (next = a; next + 1 < sides.l && sides.levels[next] == sides.levels[a]; next++)
      ;
    nodes -= logs->factorial[next - a];
  }
  return nodes <= weft_log(MAX_TABLES);
}

/* Adds to a node, which is made if it is new. 0 when there is no room. */
static int add_node(weft_mi_walk *walk, layer *to, const uint32_t *left, int64_t score, double p)
{
  const uint32_t mask = 2 * MAX_NODES - 1;
  uint32_t sorted[MAX_CLASSES];
  uint64_t hash = (uint64_t) (score / (8 * walk->rounding)) * UINT64_C(0x9e3779b97f4a7c15);
  for (uint32_t j = 0; j < walk->k; j++) {
    uint32_t i = j;
    for (; i > 0 && sorted[i - 1] > left[j]; i--) sorted[i] = sorted[i - 1];
    sorted[i] = left[j];
  }
  for (uint32_t j = 0; j < walk->k; j++) hash = (hash ^ sorted[j]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 29;
  for (uint32_t slot = (uint32_t) (hash >> 32) & mask;; slot = (slot + 1) & mask) {
    if (!to->slots[slot]) {
      if (to->count == MAX_NODES) return 0;
      node *fresh = &to->nodes[to->count++];
      to->slots[slot] = to->count;
      fresh->slot = slot;
      fresh->score = score;
      fresh->p = p;
      memcpy(fresh->left, sorted, walk->k * sizeof *sorted);
      return 1;
    }
    node *known = &to->nodes[to->slots[slot] - 1];
    const int64_t apart = known->score - score;
    if (apart <= walk->rounding && -apart <= walk->rounding && !memcmp(known->left, sorted, walk->k * sizeof *sorted)) {
      known->p += p;
      return 1;
    }
  }
}

/* Deals `rest` rows over classes j, j + 1, ... of a node. log_p: of the node's probability and all cells so far. */
static int deal(weft_mi_walk *walk, layer *to, const node *from, uint32_t *left, uint32_t j, uint32_t rest,
                int64_t score, double log_p)
{
  const double *factorial = walk->logs->factorial;
  if (j + 1 == walk->k) {
    if (rest > from->left[j]) return 1;
    left[j] = from->left[j] - rest;
    if (++walk->visits > MAX_VISITS) return 0;
    return add_node(walk, to, left, score + walk->f[rest],
                    weft_exp(log_p + factorial[from->left[j]] - factorial[rest] - factorial[left[j]]));
  }
  uint64_t beyond = 0;
  for (uint32_t i = j + 1; i < walk->k; i++) beyond += from->left[i];
  const uint32_t limit = rest < from->left[j] ? rest : from->left[j];
  for (uint32_t x = rest > beyond ? rest - (uint32_t) beyond : 0; x <= limit; x++) {
    left[j] = from->left[j] - x;
    if (!deal(walk, to, from, left, j + 1, rest - x, score + walk->f[x],
              log_p + factorial[from->left[j]] - factorial[x] - factorial[left[j]]))
      return 0;
  }
  return 1;
}

static void empty(layer *x)
{
  for (uint32_t i = 0; i < x->count; i++) x->slots[x->nodes[i].slot] = 0;
  x->count = 0;
}

/* All levels but the last; returns the last layer, or NULL when there are too many nodes. */
static const layer *deal_levels(weft_mi_walk *walk, const weft_mi_margins *margins)
{
  const double *factorial = walk->logs->factorial;
  layer *from = &walk->layers[0], *to = &walk->layers[1];
  uint64_t open = margins->n;
  empty(from);
  add_node(walk, from, margins->classes, 0, 1);
  for (uint32_t a = 0; a + 1 < margins->l; a++) {
    const uint32_t rows = margins->levels[a];
    const double ways = factorial[open] - factorial[rows] - factorial[open - rows];
    empty(to);
    for (uint32_t i = 0; i < from->count; i++) {
      const node *at = &from->nodes[i];
      uint32_t left[MAX_CLASSES];
      if (at->p > 0 && !deal(walk, to, at, left, 0, rows, at->score, weft_log(at->p) - ways)) return NULL;
    }
    layer *swap = from;
    from = to;
    to = swap;
    open -= rows;
  }
  return from;
}

/* The first of the sorted scores that `score` reaches; `count` when none. */
static size_t reached(const int64_t *scores, size_t count, int64_t score)
{
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (scores[middle] <= score)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Deals all levels but the last, whose counts are what is left, and adds up the probability of each table at the score
 * that it reaches. Scores within rounding are equal. */
int weft_mi_walk_run(weft_mi_walk *walk, const weft_mi_margins *margins, const weft_mi_logs *logs, const int64_t *f,
                     const int64_t *scores, size_t count, double *tail)
{
  const weft_mi_margins sides = sides_of(margins);
  double total = 0, sum = 0;
  walk->logs = logs;
  walk->f = f;
  walk->k = sides.k;
  walk->rounding = (int64_t) sides.l * sides.k;
  walk->visits = 0;
  const layer *last = deal_levels(walk, &sides);
  if (!last) return 0;
  memset(tail, 0, count * sizeof *tail);
  for (uint32_t i = 0; i < last->count; i++) {
    const node *at = &last->nodes[i];
    int64_t score = at->score;
    for (uint32_t j = 0; j < sides.k; j++) score += f[at->left[j]];
    const size_t first = reached(scores, count, score + 2 * walk->rounding);
    total += at->p;
    if (first < count) tail[first] += at->p;
  }
  for (size_t i = 0; i < count; i++) {
    sum += tail[i];
    tail[i] = sum < total ? sum / total : 1; /* rounding aside the total is 1 */
  }
  return 1;
}
