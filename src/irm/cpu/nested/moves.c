/* Moves of nested groups: single nodes, and splits and merges.
 *
 * A node goes to a group that its neighbours' groups are linked with: a group u of a random link of the node's, then s
 * with probability (e_us + 1) / (e_u + B). With probability CREATE it goes to a new group instead, whose parent is its
 * present group's or, half of the time, a random one. Metropolis and Hastings' ratio has the reverse probability, from
 * the state after the move.
 *
 * A split takes a random group and two of its members as anchors, deals the other members out by coin, then by SCANS
 * scans in each of which a member goes to either side by its probability, and by a last scan, whose probability is that
 * of the proposal. A merge, of two groups of one parent, runs the same scans to learn the probability of the split that
 * would undo it (Jain and Neal 2004, Journal of Computational and Graphical Statistics 13, 158). */
#include <math.h>
#include "core/numbers/math.h"
#include "irm/cpu/nested/moves.h"

#define CREATE 0.02
#define MIN_GAIN 1e-7
/* Scans before the last one; groups of more nodes are not split by proposals; groups that irm_nested_join() tries. */
enum { SCANS = 2, MAX_SPLIT = 20000, NEAR = 8 };

static int64_t both_ways(const irm_nested *t, const irm_level *level, int32_t u, int32_t s)
{
  const int64_t at = (int64_t) u * level->k + s;
  return level->e[0][at] + (t->directed ? level->e[1][at] : 0);
}

static int64_t ends_of(const irm_nested *t, const irm_level *level, int32_t u)
{
  return level->sum[0][u] + (t->directed ? level->sum[1][u] : 0);
}

/* See moves.h: u by the links of what was taken, then s by the links of u. */
int32_t irm_nested_draw_group(irm_nested *t, int l, int type)
{
  const irm_level *level = &t->level[l];
  const int32_t *active = irm_active(level, type), groups = level->count[type];
  int64_t total = 0, at;
  int32_t u = -1;
  for (int32_t m = 0; m < level->touches; m++) total += level->w[0][level->touched[m]] + level->w[1][level->touched[m]];
  if (!total) return active[irm_nested_below(t, groups)];
  at = irm_nested_below(t, total);
  for (int32_t m = 0; at >= 0; m++) {
    u = level->touched[m];
    at -= level->w[0][u] + level->w[1][u];
  }
  at = irm_nested_below(t, ends_of(t, level, u) + groups);
  if (at < groups) return active[at];
  at -= groups;
  for (int32_t m = 0; m < groups; m++) {
    at -= both_ways(t, level, u, active[m]);
    if (at < 0) return active[m];
  }
  return active[groups - 1];
}

double irm_nested_draw_probability(const irm_nested *t, int l, int type, int32_t s)
{
  const irm_level *level = &t->level[l];
  const double groups = level->count[type];
  double sum = 0, total = 0;
  for (int32_t m = 0; m < level->touches; m++) {
    const int32_t u = level->touched[m];
    const double w = (double) (level->w[0][u] + level->w[1][u]);
    total += w;
    sum += w * ((double) both_ways(t, level, u, s) + 1) / ((double) ends_of(t, level, u) + groups);
  }
  return total > 0 ? sum / total : 1 / groups;
}

/* Probability that a group is made with this parent, of a node whose group has the parent `own`. */
static double parent_probability(const irm_nested *t, int l, int type, int32_t parent, int32_t own)
{
  return CREATE * (0.5 * (parent == own) + 0.5 / t->level[l + 1].count[type]);
}

/* A node to a new group. */
static double visit_new(irm_nested *t, int l, int32_t i, int cold)
{
  irm_level *level = &t->level[l], *above = level + 1;
  const int32_t r = level->b[i], own = above->b[r];
  const int type = irm_type_of(level, r);
  const int32_t s = irm_spare(level, type);
  const double coin = irm_nested_next(t), u = irm_nested_next(t);
  const int32_t other = irm_active(above, type)[irm_nested_below(t, above->count[type])];
  double by, forward;
  if (level->size[r] == 1 || s < 0) return 0;
  t->plan[l + 1] = coin < 0.5 ? own : other;
  by = irm_nested_change(t, l, i, s);
  if (cold && by > -MIN_GAIN) return 0;
  forward = parent_probability(t, l, type, t->plan[l + 1], own);
  if (!cold && weft_log(u) > -by - weft_log(forward)) return 0;
  irm_nested_move(t, l, i, s);
  if (cold || weft_log(u) <= -by + weft_log((1 - CREATE) * irm_nested_draw_probability(t, l, type, r) / forward))
    return by;
  irm_nested_move(t, l, i, r);
  return 0;
}

/* A node to a group that is there. */
static double visit_old(irm_nested *t, int l, int32_t i, int cold, int create)
{
  irm_level *level = &t->level[l], *above = level + 1;
  const int32_t r = level->b[i], own = above->b[r];
  const int type = irm_type_of(level, r), last = level->size[r] == 1;
  const int32_t s = irm_nested_draw_group(t, l, type);
  const double u = irm_nested_next(t), forward = irm_nested_draw_probability(t, l, type, s) * (1 - CREATE);
  double by, back;
  if (s == r || (last && !create)) return 0;
  if (last && above->size[own] == 1 && own != above->b[s] && !cold) return 0; /* its parent could not be made again */
  by = irm_nested_change(t, l, i, s);
  if (cold && by > -MIN_GAIN) return 0;
  if (!cold && weft_log(u) > -by - weft_log(forward)) return 0;
  irm_nested_move(t, l, i, s);
  if (cold) return by;
  back = last ? parent_probability(t, l, type, own, above->b[s])
              : irm_nested_draw_probability(t, l, type, r) * (1 - CREATE);
  if (weft_log(u) <= -by + weft_log(back / forward)) return by;
  t->plan[l + 1] = own;
  irm_nested_move(t, l, i, r);
  return 0;
}

int32_t irm_nested_shuffle(irm_nested *t, int l)
{
  const irm_level *level = &t->level[l];
  int32_t count = 0;
  for (int32_t i = 0; i < level->nodes; i++)
    if (level->b[i] >= 0) t->order[count++] = i;
  for (int32_t m = count - 1; m > 0; m--) {
    const int64_t j = irm_nested_below(t, m + 1);
    const int32_t i = t->order[m];
    t->order[m] = t->order[j];
    t->order[j] = i;
  }
  return count;
}

double irm_nested_visit(irm_nested *t, int l, int32_t first, int32_t last, int cold, int create)
{
  double sum = 0;
  for (int32_t m = first; m < last; m++) {
    const int32_t i = t->order[m];
    const int fresh = irm_nested_next(t) < CREATE;
    if (t->level[l].b[i] < 0) continue;
    irm_nested_take(t, l, i);
    if (!fresh)
      sum += visit_old(t, l, i, cold, create);
    else if (create)
      sum += visit_new(t, l, i, cold);
  }
  return sum;
}

/* ---- splits and merges ---- */

typedef struct {
  int32_t r, s, count, *member; /* members of both but for the anchors */
  uint8_t *side;                /* where they were; 1: in s */
} halves;

/* Moves a member to either side by its probability (cold: the better one), or to `forced` (0, 1; else -1). Adds to the
 * log probability, and to the change of length. */
static void choose_side(irm_nested *t, int l, const halves *of, int32_t i, int forced, int cold, double *log_p,
                        double *by)
{
  const irm_level *level = &t->level[l];
  const int now = level->b[i] == of->s;
  const double u = irm_nested_next(t);
  irm_nested_take(t, l, i);
  const double d = irm_nested_change(t, l, i, now ? of->r : of->s);
  const double other = 1 / (1 + weft_exp(d > 700 ? 700 : d < -700 ? -700 : d));
  const int move = forced >= 0 ? forced != now : cold ? d < 0 : u < other;
  *log_p += move ? -weft_log1p(weft_exp(d > 700 ? 700 : d)) : -weft_log1p(weft_exp(-d > 700 ? 700 : -d));
  if (!move) return;
  *by += d;
  irm_nested_move(t, l, i, now ? of->r : of->s);
}

/* Deals the members out: the log probability of what the last scan does. */
static double deal(irm_nested *t, int l, const halves *of, int forced, int cold, double *by)
{
  double log_p = 0, ignored = 0;
  t->dealt = (2 + SCANS) * (int64_t) of->count;
  for (int32_t m = 0; m < of->count; m++) {
    const int side = irm_nested_next(t) < 0.5;
    if ((t->level[l].b[of->member[m]] == of->s) == side) continue;
    irm_nested_take(t, l, of->member[m]);
    *by += irm_nested_change(t, l, of->member[m], side ? of->s : of->r);
    irm_nested_move(t, l, of->member[m], side ? of->s : of->r);
  }
  for (int scan = 0; scan < SCANS; scan++)
    for (int32_t m = 0; m < of->count; m++) choose_side(t, l, of, of->member[m], -1, cold, &ignored, by);
  for (int32_t m = 0; m < of->count; m++)
    choose_side(t, l, of, of->member[m], forced ? of->side[m] : -1, cold, &log_p, by);
  return log_p;
}

/* The members of r and s but for the anchors, in random order. */
static void gather(irm_nested *t, int l, halves *of, int32_t anchor_r, int32_t anchor_s)
{
  const irm_level *level = &t->level[l];
  of->count = 0;
  of->member = t->order;
  of->side = t->side;
  for (int side = 0; side < 2; side++)
    for (int32_t i = side ? level->first[of->s] : level->first[of->r]; i >= 0; i = level->next[i]) {
      if (i == anchor_r || i == anchor_s) continue;
      of->side[of->count] = (uint8_t) side;
      of->member[of->count++] = i;
    }
  for (int32_t m = of->count - 1; m > 0; m--) {
    const int64_t j = irm_nested_below(t, m + 1);
    const int32_t i = of->member[m];
    const uint8_t side = of->side[m];
    of->member[m] = of->member[j];
    of->side[m] = of->side[j];
    of->member[j] = i;
    of->side[j] = side;
  }
}

static int32_t member_at(const irm_level *level, int32_t r, int64_t at)
{
  int32_t i = level->first[r];
  while (at--) i = level->next[i];
  return i;
}

/* Proposes to split group r; returns the change of length. */
static double split(irm_nested *t, int l, int32_t r, int cold)
{
  irm_level *level = &t->level[l], *above = level + 1;
  const int type = irm_type_of(level, r);
  const double n = (double) level->size[r], groups = level->count[0] + level->count[1];
  halves of = { .r = r, .s = irm_spare(level, type) };
  double by = 0, ratio;
  const int64_t at = irm_nested_below(t, level->size[r]);
  const int64_t other = irm_nested_below(t, level->size[r] > 1 ? level->size[r] - 1 : 1);
  const double u = irm_nested_next(t);
  if (of.s < 0 || level->size[r] < 2 || level->size[r] > MAX_SPLIT) return 0;
  const int32_t anchor_r = member_at(level, r, at), anchor_s = member_at(level, r, other + (other >= at));
  gather(t, l, &of, anchor_r, anchor_s);
  t->plan[l + 1] = above->b[r];
  irm_nested_take(t, l, anchor_s);
  by += irm_nested_change(t, l, anchor_s, of.s);
  irm_nested_move(t, l, anchor_s, of.s);
  const double log_p = deal(t, l, &of, 0, cold, &by);
  const double siblings = (double) above->size[above->b[r]] - 1; /* that s could be joined with afterwards */
  ratio = weft_log(groups * n * (n - 1)) - weft_log((groups + 1) * siblings) -
          weft_log((double) level->size[r] * (double) level->size[of.s]) - log_p;
  if (cold ? by < -MIN_GAIN : weft_log(u) < -by + ratio) return by;
  for (int32_t m = 0; m < of.count; m++) {
    if (level->b[of.member[m]] == r) continue;
    irm_nested_take(t, l, of.member[m]);
    irm_nested_move(t, l, of.member[m], r);
  }
  irm_nested_take(t, l, anchor_s);
  irm_nested_move(t, l, anchor_s, r);
  return 0;
}

/* Proposes to join r with a random group of its parent. */
static double merge(irm_nested *t, int l, int32_t r)
{
  irm_level *level = &t->level[l], *above = level + 1;
  const int32_t own = above->b[r];
  const int64_t siblings = above->size[own] - 1;
  const double groups = level->count[0] + level->count[1], u = irm_nested_next(t);
  const int64_t which = irm_nested_below(t, siblings > 0 ? siblings : 1);
  halves of = { .r = r };
  double undone = 0, ratio;
  if (siblings < 1) return 0;
  of.s = member_at(above, own, which);
  for (int64_t at = 0; at <= which; at++) /* the which-th of the others */
    if (member_at(above, own, at) == r) of.s = member_at(above, own, which + 1);
  const double nr = (double) level->size[r], ns = (double) level->size[of.s], n = nr + ns;
  const int64_t at_r = irm_nested_below(t, level->size[r]), at_s = irm_nested_below(t, level->size[of.s]);
  if (n > MAX_SPLIT) return 0;
  irm_nested_take_group(t, l, of.s);
  const double by = irm_nested_merge_change(t, l, of.s, r);
  ratio = weft_log(groups * (double) siblings * nr * ns) - weft_log((groups - 1) * n * (n - 1));
  if (weft_log(u) >= -by + ratio) return 0;
  gather(t, l, &of, member_at(level, r, at_r), member_at(level, of.s, at_s));
  if (weft_log(u) >= -by + ratio + deal(t, l, &of, 1, 0, &undone)) return 0;
  irm_nested_take_group(t, l, of.s);
  irm_nested_merge(t, l, of.s, r);
  return by;
}

/* Deals the members of r and of a group near it out anew; downhill only. */
static double redeal(irm_nested *t, int l, int32_t r)
{
  irm_level *level = &t->level[l];
  const int type = irm_type_of(level, r);
  halves of = { .r = r };
  double by = 0;
  irm_nested_take_group(t, l, r);
  of.s = irm_nested_draw_group(t, l, type);
  if (of.s == r || level->size[r] + level->size[of.s] > MAX_SPLIT) return 0;
  const int32_t anchor_r = member_at(level, r, irm_nested_below(t, level->size[r]));
  const int32_t anchor_s = member_at(level, of.s, irm_nested_below(t, level->size[of.s]));
  gather(t, l, &of, anchor_r, anchor_s);
  deal(t, l, &of, 0, 1, &by);
  if (by < -MIN_GAIN) return by;
  for (int32_t m = 0; m < of.count; m++) {
    const int32_t home = of.side[m] ? of.s : r;
    if (level->b[of.member[m]] == home) continue;
    irm_nested_take(t, l, of.member[m]);
    irm_nested_move(t, l, of.member[m], home);
  }
  return 0;
}

double irm_nested_split_merge(irm_nested *t, int l, int cold)
{
  t->dealt = 0;
  const irm_level *level = &t->level[l];
  const int64_t at = irm_nested_below(t, level->count[0] + level->count[1]);
  const int type = at >= level->count[0];
  const int32_t r = irm_active(level, type)[at - (type ? level->count[0] : 0)];
  if (irm_nested_next(t) < 0.5) return split(t, l, r, cold);
  return cold ? redeal(t, l, r) : merge(t, l, r);
}

/* Groups in the order of their labels; where there are few, every other one is tried. */
weft_status irm_nested_join(weft_ctx *poll, irm_nested *t, int l, double *by)
{
  weft_status st = WEFT_OK;
  irm_level *level = &t->level[l];
  for (int32_t r = 0; r < level->k; r++) {
    const int type = irm_type_of(level, r);
    int32_t best = -1;
    double least = -MIN_GAIN;
    if (!level->size[r]) continue;
    if (poll) WEFT_TRY(weft_poll(poll, r, level->k));
    irm_nested_take_group(t, l, r);
    for (int32_t m = 0; m < (level->count[type] <= 4 * NEAR ? level->count[type] : NEAR); m++) {
      const int32_t s = level->count[type] <= 4 * NEAR ? irm_active(level, type)[m] : irm_nested_draw_group(t, l, type);
      if (s == r) continue;
      const double change = irm_nested_merge_change(t, l, r, s);
      if (change >= least) continue;
      least = change;
      best = s;
    }
    if (best < 0) continue;
    irm_nested_merge(t, l, r, best);
    *by += least;
  }
done:
  return st;
}
