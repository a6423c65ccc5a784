/* Moves of nodes and groups; see changes.h. */
#include "irm/cpu/nested/changes.h"
#include "irm/cpu/nested/degrees.h"
#include "irm/cpu/nested/lists.h"
#include "irm/cpu/nested/terms.h"

static void touch(irm_level *level, int32_t s, int d, int64_t x)
{
  if (!level->w[0][s] && !level->w[1][s]) level->touched[level->touches++] = s;
  level->w[d][s] += x;
}

static void forget(irm_level *level)
{
  for (int32_t m = 0; m < level->touches; m++) level->w[0][level->touched[m]] = level->w[1][level->touched[m]] = 0;
  level->touches = 0;
}

static void touch_neighbours(irm_level *level, const weft_irm_lists *lists, int64_t i, int d, const int32_t *labels)
{
  for (int64_t j = lists->start[i]; j < lists->start[i + 1]; j++)
    touch(level, labels[lists->to[j]], d, lists->weight ? lists->weight[j] : 1);
}

/* Links of group r of the level below. */
static void touch_row(irm_nested *t, int l, const irm_level *below, int32_t r)
{
  for (int d = 0; d <= t->directed; d++)
    for (int type = 0; type < 2; type++)
      for (int32_t a = 0; a < below->count[type]; a++) {
        const int32_t s = irm_active(below, type)[a];
        const int64_t x = below->e[d][(int64_t) r * below->k + s];
        if (x && s != r) touch(&t->level[l], l == 0 || below == &t->level[l] ? s : t->level[l].b[s], d, x);
      }
  t->self = below->e[0][(int64_t) r * below->k + r];
}

/* Collects the links of node i of level l by the groups at their other ends, which changes of length are computed from.
 */
void irm_nested_take(irm_nested *t, int l, int32_t i)
{
  irm_level *level = &t->level[l];
  const weft_irm_graph *graph = t->graph;
  forget(level);
  if (l) {
    touch_row(t, l, level - 1, i);
    return;
  }
  t->self = graph->self_weight ? (t->directed ? 1 : 2) * (int64_t) graph->self_weight[i] : 0;
  if (t->bipartite && i >= graph->n[0])
    touch_neighbours(level, &graph->links[1], i - graph->n[0], 0, level->b);
  else
    touch_neighbours(level, &graph->links[0], i, 0, level->b + (t->bipartite ? graph->n[0] : 0));
  if (t->directed) touch_neighbours(level, &graph->links[1], i, 1, level->b);
}

void irm_nested_take_group(irm_nested *t, int l, int32_t r)
{
  forget(&t->level[l]);
  touch_row(t, l, &t->level[l], r);
}

/* The parent of a group at level l, which may not be there yet. */
static int32_t parent(const irm_nested *t, int l, int32_t s)
{
  return t->level[l].b[s] >= 0 && t->level[l - 1].size[s] ? t->level[l].b[s] : t->plan[l];
}

/* The moving node or group, as one level up sees it. */
static void lift(irm_nested *t, int l)
{
  const irm_level *level = &t->level[l];
  irm_level *above = &t->level[l + 1];
  forget(above);
  for (int32_t m = 0; m < level->touches; m++) {
    const int32_t s = level->touched[m];
    for (int d = 0; d <= t->directed; d++)
      if (level->w[d][s]) touch(above, above->b[s], d, level->w[d][s]);
  }
}

/* Adds to a sum the change of the link terms within and between r and s when what was taken goes from r to s, whose
 * sizes change by dr and ds. */
static double add_own_links(const irm_nested *t, int l, int32_t r, int32_t s, int64_t dr, int64_t ds, double sum)
{
  const irm_level *level = &t->level[l];
  const int64_t k = level->k, nr = level->size[r], ns = level->size[s], *e = level->e[0];
  const int64_t rr = e[r * k + r], ss = e[s * k + s], rs = e[r * k + s], sr = e[s * k + r];
  const int64_t *wo = level->w[0], *wi = level->w[1];
  if (t->directed) {
    sum += irm_link_term(t, l, 1, rr - wo[r] - wi[r] - t->self, nr + dr, nr + dr) - irm_link_term(t, l, 1, rr, nr, nr);
    sum += irm_link_term(t, l, 1, ss + wo[s] + wi[s] + t->self, ns + ds, ns + ds) - irm_link_term(t, l, 1, ss, ns, ns);
    sum += irm_link_term(t, l, 0, rs - wo[s] + wi[r], nr + dr, ns + ds) - irm_link_term(t, l, 0, rs, nr, ns);
    sum += irm_link_term(t, l, 0, sr - wi[s] + wo[r], nr + dr, ns + ds) - irm_link_term(t, l, 0, sr, nr, ns);
    return sum;
  }
  sum += irm_link_term(t, l, 1, rr - 2 * wo[r] - t->self, nr + dr, nr + dr) - irm_link_term(t, l, 1, rr, nr, nr);
  sum += irm_link_term(t, l, 1, ss + 2 * wo[s] + t->self, ns + ds, ns + ds) - irm_link_term(t, l, 1, ss, ns, ns);
  sum += irm_link_term(t, l, 0, rs - wo[s] + wo[r], nr + dr, ns + ds) - irm_link_term(t, l, 0, rs, nr, ns);
  return sum;
}

/* Change of all link terms of a level. */
static double links_change(const irm_nested *t, int l, int32_t r, int32_t s, int64_t dr, int64_t ds)
{
  const irm_level *level = &t->level[l];
  const int64_t k = level->k, nr = level->size[r], ns = level->size[s];
  const int sized = l > 0 && (dr || ds);
  double sum = 0;
  for (int type = 0; type < 2; type++) {
    const int32_t *list = sized ? irm_active(level, type) : level->touched;
    const int32_t count = sized ? level->count[type] : type ? 0 : level->touches;
    for (int d = 0; d <= t->directed; d++) {
      const int64_t *from = level->e[d] + r * k, *to = level->e[d] + s * k, *w = level->w[d];
      for (int32_t m = 0; m < count; m++) {
        const int32_t u = list[m];
        if (u == r || u == s) continue;
        const int64_t x = from[u], y = to[u], by = w[u], nu = level->size[u];
        if (!x && !y && !by) continue;
        sum += irm_link_term(t, l, 0, x - by, nr + dr, nu) - irm_link_term(t, l, 0, x, nr, nu) +
               irm_link_term(t, l, 0, y + by, ns + ds, nu) - irm_link_term(t, l, 0, y, ns, nu);
      }
    }
  }
  return add_own_links(t, l, r, s, dr, ds, sum);
}

/* Change of the link terms of a group whose size alone changes, by dr. */
static double size_change(const irm_nested *t, int l, int32_t r, int64_t dr)
{
  const irm_level *level = &t->level[l];
  const int64_t k = level->k, n = level->size[r];
  double sum = irm_link_term(t, l, 1, level->e[0][r * k + r], n + dr, n + dr) -
               irm_link_term(t, l, 1, level->e[0][r * k + r], n, n);
  for (int type = 0; type < 2; type++)
    for (int d = 0; d <= t->directed; d++)
      for (int32_t m = 0; m < level->count[type]; m++) {
        const int32_t u = irm_active(level, type)[m];
        const int64_t x = level->e[d][r * k + u];
        if (u == r || !x) continue;
        sum += irm_link_term(t, l, 0, x, n + dr, level->size[u]) - irm_link_term(t, l, 0, x, n, level->size[u]);
      }
  return sum;
}

/* Change of the description length when what was taken, n nodes, goes from r to s, but for level 0's groups. */
static double change(irm_nested *t, int l, int32_t r, int32_t s, int64_t n)
{
  const int type = irm_type_of(&t->level[l], r);
  int64_t dr = -n, ds = n;
  double sum = 0;
  for (int m = l; m <= t->top; m++) {
    const irm_level *level = &t->level[m];
    const int64_t present = level->present[type], groups = level->count[type];
    if (r == s) {
      if (!(dr + ds)) break;
      sum += size_change(t, m, r, dr + ds) + irm_partition_term(t, present + dr + ds, groups) -
             irm_partition_term(t, present, groups) - irm_log_factorial(t, level->size[r] + dr + ds) +
             irm_log_factorial(t, level->size[r]);
      break;
    }
    const int64_t nr = level->size[r], ns = level->size[s];
    const int gone = dr < 0 && nr + dr == 0, made = ds > 0 && ns == 0;
    sum += links_change(t, m, r, s, dr, ds);
    if (dr || ds)
      sum += irm_log_factorial(t, nr) + irm_log_factorial(t, ns) - irm_log_factorial(t, nr + dr) -
             irm_log_factorial(t, ns + ds);
    if (dr + ds || gone || made)
      sum += irm_partition_term(t, present + dr + ds, groups + made - gone) - irm_partition_term(t, present, groups);
    if (m == t->top) break;
    const int32_t above_r = parent(t, m + 1, r), above_s = parent(t, m + 1, s);
    if (above_r != above_s) lift(t, m);
    r = above_r;
    s = above_s;
    dr = -gone;
    ds = made;
  }
  return sum;
}

static double groups_change(const irm_nested *t, int32_t r, int32_t s, int64_t out, int64_t in, int64_t n)
{
  const irm_level *level = &t->level[0];
  const int64_t *o = level->sum[0], *i = level->sum[1], *size = level->size;
  return irm_group_term(t, o[r] - out, i[r] - in, size[r] - n) - irm_group_term(t, o[r], i[r], size[r]) +
         irm_group_term(t, o[s] + out, i[s] + in, size[s] + n) - irm_group_term(t, o[s], i[s], size[s]);
}

double irm_leave_change(const irm_nested *t, int32_t i, int32_t r)
{
  const irm_level *level = &t->level[0];
  const int64_t n = level->size[r], out = level->sum[0][r], in = level->sum[1][r];
  double sum = irm_group_term(t, out - t->degree[0][i], in - t->degree[1][i], n - 1) - irm_group_term(t, out, in, n) +
               weft_log((double) n);
  for (int d = 0; d <= t->directed && t->degrees; d++)
    sum += weft_log((double) irm_degree_count(t, r, t->class_of[d][i]));
  return sum;
}

/* The levels above differ only where r and s have different parents. */
double irm_come_change(irm_nested *t, int32_t i, int32_t r, int32_t s)
{
  const irm_level *level = &t->level[0];
  const int64_t n = level->size[s], out = level->sum[0][s], in = level->sum[1][s];
  double sum = irm_group_term(t, out + t->degree[0][i], in + t->degree[1][i], n + 1) - irm_group_term(t, out, in, n) -
               weft_log((double) n + 1);
  sum = add_own_links(t, 0, r, s, -1, 1, sum);
  for (int d = 0; d <= t->directed && t->degrees; d++)
    sum -= weft_log((double) irm_degree_count(t, s, t->class_of[d][i]) + 1);
  for (int l = 1; l <= t->top; l++) {
    r = t->level[l].b[r];
    s = t->level[l].b[s];
    if (r == s) break;
    lift(t, l - 1);
    sum += links_change(t, l, r, s, 0, 0);
  }
  return sum;
}

double irm_nested_change(irm_nested *t, int l, int32_t i, int32_t s)
{
  const int32_t r = t->level[l].b[i];
  double sum = change(t, l, r, s, 1);
  if (l) return sum;
  sum += groups_change(t, r, s, t->degree[0][i], t->degree[1][i], 1);
  for (int d = 0; d <= t->directed && t->degrees; d++) {
    const int32_t c = t->class_of[d][i];
    sum += weft_log((double) irm_degree_count(t, r, c)) - weft_log((double) irm_degree_count(t, s, c) + 1);
  }
  return sum;
}

/* Change of -Σ log n_rk! when group r joins s. */
static double merged_degrees(irm_nested *t, int32_t r, int32_t s)
{
  const irm_level *level = &t->level[0];
  double sum = 0;
  int64_t touched = 0;
  if (!t->degrees) return 0;
  for (int32_t i = level->first[r]; i >= 0; i = level->next[i])
    for (int d = 0; d <= t->directed; d++) {
      const int32_t c = t->class_of[d][i];
      if (!t->class_count[c]++) t->class_touched[touched++] = c;
    }
  for (int64_t m = 0; m < touched; m++) {
    const int32_t c = t->class_touched[m];
    const int64_t a = t->class_count[c], b = irm_degree_count(t, s, c);
    if (b) sum += irm_log_factorial(t, a) + irm_log_factorial(t, b) - irm_log_factorial(t, a + b);
    t->class_count[c] = 0;
  }
  return sum;
}

double irm_nested_merge_change(irm_nested *t, int l, int32_t r, int32_t s)
{
  const irm_level *level = &t->level[l];
  double sum = change(t, l, r, s, level->size[r]);
  if (l) return sum;
  return sum + groups_change(t, r, s, level->sum[0][r], level->sum[1][r], level->size[r]) + merged_degrees(t, r, s);
}

/* Links of a level when what was taken goes from r to s. */
static void move_links(irm_nested *t, irm_level *level, int32_t r, int32_t s)
{
  int64_t *e = level->e[0], moved[2] = { t->self, t->self };
  const int64_t k = level->k, self = t->self;
  for (int32_t m = 0; m < level->touches; m++) {
    const int32_t u = level->touched[m];
    const int64_t out = level->w[0][u], in = level->w[1][u];
    moved[0] += out;
    moved[1] += in;
    e[r * k + u] -= out;
    e[s * k + u] += out;
    if (!t->directed) {
      e[u * k + r] -= out;
      e[u * k + s] += out;
      continue;
    }
    e[u * k + r] -= in;
    e[u * k + s] += in;
    level->e[1][u * k + r] -= out;
    level->e[1][u * k + s] += out;
    level->e[1][r * k + u] -= in;
    level->e[1][s * k + u] += in;
  }
  e[r * k + r] -= self;
  e[s * k + s] += self;
  if (t->directed) {
    level->e[1][r * k + r] -= self;
    level->e[1][s * k + s] += self;
  }
  for (int d = 0; d <= t->directed; d++) {
    level->sum[d][r] -= moved[d];
    level->sum[d][s] += moved[d];
  }
}

/* Moves the n nodes that were taken from r to s at level l and above; the caller moves members. */
static void shift(irm_nested *t, int l, int32_t r, int32_t s, int64_t n)
{
  int64_t dr = -n, ds = n;
  const int type = irm_type_of(&t->level[l], r);
  for (int m = l; m <= t->top; m++) {
    irm_level *level = &t->level[m], *above = level + 1;
    const int made = ds > 0 && level->size[s] == 0;
    if (r == s && !dr && !ds) break;
    if (r != s) move_links(t, level, r, s);
    level->size[r] += dr;
    level->size[s] += ds;
    level->present[type] += dr + ds;
    const int gone = dr < 0 && level->size[r] == 0;
    if (r == s || m == t->top) break;
    const int32_t above_r = above->b[r], above_s = made ? t->plan[m + 1] : above->b[s];
    if (above_r != above_s) lift(t, m);
    if (made) {
      irm_unspare(level, s);
      irm_enlist(level, s);
      irm_link_member(above, s, above_s);
    }
    if (gone) {
      irm_delist(level, r);
      unirm_link_member(above, r);
      above->b[r] = -1;
    }
    dr = -gone;
    ds = made;
    r = above_r;
    s = above_s;
  }
}

void irm_nested_move(irm_nested *t, int l, int32_t i, int32_t s)
{
  irm_level *level = &t->level[l];
  const int32_t r = level->b[i];
  unirm_link_member(level, i);
  shift(t, l, r, s, 1);
  irm_link_member(level, i, s);
  if (!l) irm_degrees_move(t, i, r, s);
}

void irm_nested_merge(irm_nested *t, int l, int32_t r, int32_t s)
{
  irm_level *level = &t->level[l];
  const int64_t n = level->size[r];
  shift(t, l, r, s, n);
  for (int32_t i = level->first[r], next; i >= 0; i = next) {
    next = level->next[i];
    unirm_link_member(level, i);
    irm_link_member(level, i, s);
    if (!l) irm_degrees_move(t, i, r, s);
  }
}
