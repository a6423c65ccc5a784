/* Random tables with fixed margins among which high scores are frequent, for margins that are too small for a smooth
 * law to be right: cells that expect few rows.
 *
 * Levels are dealt over the classes one after the other, the greatest of them last, which gets what is left. Without a
 * tilt, a level's counts x have probability prod C(left_c, x_c) / C(open, r): left_c rows of class c and `open` rows
 * in all are not dealt yet. They are drawn with weights
 *
 *   prod C(left_c, x_c) exp(theta f(x_c) + eta_c x_c),
 *
 * whose sum Z over all ways to place r rows is found class by class from the last to the first. The level before the
 * last also takes the last one's f into account, in place of eta. A table's probability is then Z / C(open, r), of all
 * levels, over exp(theta S + eta ...) times that with which it is drawn, and the mean of this ratio over the tables
 * that reach a score is an unbiased estimate of the score's p-value (importance sampling). Tables whose Z is small are
 * replaced by copies of others while they are dealt (sequential Monte Carlo; Chopin and Papaspiliopoulos 2020, 10);
 * the standard error is from the sums over tables with the same ancestor (Chan and Lai 2013). theta and eta are from
 * the smooth law.
 *
 * A law has three sets of tables, for p-values from .2 to .02, to .0005 and to some 10^-7, of which those are drawn
 * that its scores reach. Below that the smooth law goes on, with its statistic moved by what the last set says at its
 * end. Draws are functions of the margins and of the number of the table, so that a law is the same in every call. */
#include <stdlib.h>
#include <string.h>
#include "core/numbers/draws.h"
#include "mi/null/law.h"
#include "mi/null/smooth.h"
#include "mi/null/sample.h"

#define MAX_OVER 64u   /* classes that levels are dealt over */
#define MAX_DEALT 256u /* levels */
#define MAX_MARGIN 96u /* rows of a level that is dealt */
#define TABLES 2000u   /* of the first set; the others have more */
#define MAX_TABLES (5 * TABLES)
#define MIN_TABLES 400u  /* not worth it with fewer */
#define SET_WORK 1e7     /* operations of the first set, roughly */
#define DRAW_WORK 10     /* those of a random number */
#define FEW_ROWS 5.0     /* cells that expect as many have a smooth law */
#define BORDER_TABLES 50 /* a set serves scores that as many of its tables reach */

/* A table, or what is dealt of it. `log_weight`: of its weight but for what all have in common and for `gain`, which it
 * is divided by in the end; `root`: the number that its first ancestor had. */
typedef struct {
  int64_t score;
  double log_weight, gain, weight;
  uint32_t root;
} draw;

/* The tables of one tilt, the highest score first; `sum`: of weights until there. */
typedef struct {
  draw *draws;
  double *sum;
  uint32_t count;
  int64_t border;       /* the highest score that the set serves */
  double min_statistic; /* the statistic of its p-value: of no higher score it is less */
} tables;

struct weft_mi_sampler {
  tables sets[WEFT_MI_TILTS];
  uint32_t r[MAX_DEALT], over[MAX_OVER], l, k; /* levels without the last, and classes */
  double ways[MAX_DEALT];                      /* C(open, r) / open^r */
  double gain[MAX_OVER][MAX_MARGIN + 1];       /* theta f(x) + eta x */
  double factor[MAX_OVER][MAX_MARGIN + 1];     /* its exponential, over x! */
  double cell[MAX_OVER][MAX_MARGIN + 1];       /* weights of a class's counts */
  double rest[MAX_OVER][MAX_MARGIN + 1];       /* rest[c][m]: weights of all ways to place m rows in classes c, ... */
  double theta, slope;
  uint64_t n;
  draw *spare;
  uint32_t *left, *spare_left; /* k numbers for every table */
  double *by_root;
};

weft_mi_sampler *weft_mi_sampler_make(weft_arena *mem)
{
  weft_mi_sampler *sampler = weft_arena_take(mem, 1, sizeof *sampler);
  for (int i = 0; sampler && i < WEFT_MI_TILTS; i++) {
    sampler->sets[i].draws = weft_arena_take(mem, MAX_TABLES, sizeof *sampler->sets[i].draws);
    sampler->sets[i].sum = weft_arena_take(mem, MAX_TABLES, sizeof *sampler->sets[i].sum);
    if (!sampler->sets[i].draws || !sampler->sets[i].sum) return NULL;
  }
  if (!sampler) return NULL;
  sampler->spare = weft_arena_take(mem, MAX_TABLES, sizeof *sampler->spare);
  sampler->left = weft_arena_take(mem, (size_t) MAX_TABLES * MAX_OVER, sizeof *sampler->left);
  sampler->spare_left = weft_arena_take(mem, (size_t) MAX_TABLES * MAX_OVER, sizeof *sampler->spare_left);
  sampler->by_root = weft_arena_take(mem, MAX_TABLES, sizeof *sampler->by_root);
  return sampler->spare && sampler->left && sampler->spare_left && sampler->by_root ? sampler : NULL;
}

/* Operations of a table, roughly; infinite where there is no room. */
static double table_work(const uint32_t *dealt, uint32_t l, uint32_t k)
{
  double sum = 0;
  if (l > MAX_DEALT || k > MAX_OVER || dealt[l - 2] > MAX_MARGIN) return WEFT_INFINITY;
  for (uint32_t a = 0; a + 1 < l; a++)
    sum += k * (0.5 * (dealt[a] + 1) * (dealt[a] + 2) + (dealt[a] < DRAW_WORK ? dealt[a] : DRAW_WORK));
  return sum;
}

/* Whether classes are dealt over levels, which is less work. */
static int is_turned(const weft_mi_margins *margins)
{
  return table_work(margins->classes, margins->k, margins->l) < table_work(margins->levels, margins->l, margins->k);
}

uint32_t weft_mi_sampler_tables(const weft_mi_margins *margins)
{
  const double work = is_turned(margins) ? table_work(margins->classes, margins->k, margins->l)
                                         : table_work(margins->levels, margins->l, margins->k);
  const double tables = SET_WORK / work;
  if ((double) margins->levels[0] * margins->classes[0] >= FEW_ROWS * (double) margins->n || !(tables >= MIN_TABLES))
    return 0;
  return tables < TABLES ? (uint32_t) tables : TABLES;
}

/* Levels and classes of a law, and what its tables need that depends on no tilt. Returns whether sides are turned. */
static int set_margins(weft_mi_sampler *sampler, const weft_mi_margins *margins, const weft_mi_logs *logs)
{
  const int turned = is_turned(margins);
  uint64_t open = margins->n;
  sampler->n = margins->n;
  sampler->l = (turned ? margins->k : margins->l) - 1;
  sampler->k = turned ? margins->l : margins->k;
  memcpy(sampler->r, turned ? margins->classes : margins->levels, sampler->l * sizeof *sampler->r);
  memcpy(sampler->over, turned ? margins->levels : margins->classes, sampler->k * sizeof *sampler->over);
  for (uint32_t a = 0; a < sampler->l; a++) {
    const double *factorial = logs->factorial, r = sampler->r[a];
    sampler->ways[a] =
        factorial[open] - factorial[sampler->r[a]] - factorial[open - sampler->r[a]] - r * weft_log((double) open);
    open -= sampler->r[a];
  }
  return turned;
}

static void set_tilt(weft_mi_sampler *sampler, const weft_mi_logs *logs, double theta, const double *eta)
{
  const uint32_t limit = sampler->r[sampler->l - 1];
  sampler->theta = theta;
  for (uint32_t c = 0; c < sampler->k; c++)
    for (uint32_t x = 0; x <= limit; x++) {
      sampler->gain[c][x] = theta * logs->entropy[x] + eta[c] * x;
      sampler->factor[c][x] = weft_exp(sampler->gain[c][x] - logs->factorial[x]);
    }
}

/* The share that x rows of a level in class c add to the tilt. The last level but one decides on the last one too. */
static double gain_of(const weft_mi_sampler *sampler, const double *entropy, uint32_t a, uint32_t c, uint32_t x,
                      uint32_t left)
{
  if (a + 1 < sampler->l) return sampler->gain[c][x];
  return sampler->theta * (entropy[x] + entropy[left - x] - entropy[left]) + sampler->slope * x;
}

/* Weights of the counts of level a over the classes, divided by open^r; returns their sum. */
static double weigh(weft_mi_sampler *sampler, const weft_mi_logs *logs, uint32_t a, const uint32_t *left, double open)
{
  const uint32_t r = sampler->r[a];
  const int last = a + 1 == sampler->l;
  for (uint32_t c = sampler->k; c-- > 0;) {
    const uint32_t limit = r < left[c] ? r : left[c];
    double *cell = sampler->cell[c], *rest = sampler->rest[c], orders = 1;
    for (uint32_t x = 0; x <= limit; x++) {
      cell[x] = orders * (last ? weft_exp(gain_of(sampler, logs->entropy, a, c, x, left[c]) - logs->factorial[x])
                               : sampler->factor[c][x]);
      orders *= (left[c] - x) / open;
    }
    if (c + 1 == sampler->k) {
      memcpy(rest, cell, (limit + 1) * sizeof *rest);
      for (uint32_t m = limit + 1; m <= r; m++) rest[m] = 0;
      continue;
    }
    for (uint32_t m = c ? 0 : r; m <= r; m++) {
      double sum = 0;
      for (uint32_t x = 0; x <= m && x <= limit; x++) sum += cell[x] * sampler->rest[c + 1][m - x];
      rest[m] = sum;
    }
  }
  return sampler->rest[0][r];
}

/* Uniform numbers of a table, in the order in which they are asked for. */
typedef struct {
  weft_rng rng;
  uint64_t index;
  uint32_t used;
  weft_u32x4 words;
} stream;

static double next_uniform(stream *from)
{
  const uint32_t half = from->used++ & 1;
  if (!half) from->words = weft_draw_words(from->rng, from->index, from->used / 2);
  return weft_u01(from->words.v[2 * half], from->words.v[2 * half + 1]);
}

/* How many of the rows that are left of a level are of class c; never a count that is impossible. */
static uint32_t draw_count(const weft_mi_sampler *sampler, uint32_t c, uint32_t rest, uint32_t limit, double uniform)
{
  double u = uniform * sampler->rest[c][rest];
  uint32_t drawn = limit;
  for (uint32_t x = limit;; x--) {
    const double weight = sampler->cell[c][x] * sampler->rest[c + 1][rest - x];
    if (weight > 0) drawn = x;
    u -= weight;
    if (u <= 0 || !x) return drawn;
  }
}

/* Deals level a of one table. */
static void deal_level(weft_mi_sampler *sampler, const weft_mi_logs *logs, const int64_t *f, uint32_t a, double open,
                       stream *from, draw *out, uint32_t *left)
{
  uint32_t rest = sampler->r[a];
  out->log_weight += weft_log(weigh(sampler, logs, a, left, open)) - sampler->ways[a];
  for (uint32_t c = 0; c < sampler->k && rest; c++) {
    uint32_t x = rest < left[c] ? rest : left[c];
    if (c + 1 < sampler->k) x = draw_count(sampler, c, rest, x, next_uniform(from));
    out->gain += gain_of(sampler, logs->entropy, a, c, x, left[c]);
    out->score += f[x];
    left[c] -= x;
    rest -= x;
  }
}

/* Replaces tables by copies of others where their weights differ too much: each is taken in proportion to its weight,
 * at equal distances from a random start. Returns the logarithm of what all weights are then to be multiplied by. */
static double resample(weft_mi_sampler *sampler, tables *set, double uniform)
{
  const uint32_t count = set->count, k = sampler->k;
  double greatest = -WEFT_INFINITY, sum = 0, squares = 0, before = 0;
  for (uint32_t i = 0; i < count; i++) greatest = fmax(greatest, set->draws[i].log_weight);
  for (uint32_t i = 0; i < count; i++) {
    set->sum[i] = weft_exp(set->draws[i].log_weight - greatest);
    sum += set->sum[i];
    squares += set->sum[i] * set->sum[i];
  }
  if (sum * sum > 0.5 * count * squares) return 0;
  uint32_t to = 0;
  for (uint32_t i = 0; i < count; i++) {
    before += set->sum[i];
    for (; to < count && (i + 1 == count || (to + uniform) * sum < before * count); to++) {
      sampler->spare[to] = set->draws[i];
      sampler->spare[to].log_weight = 0;
      memcpy(sampler->spare_left + (size_t) to * k, sampler->left + (size_t) i * k, k * sizeof *sampler->left);
    }
  }
  memcpy(set->draws, sampler->spare, count * sizeof *sampler->spare);
  memcpy(sampler->left, sampler->spare_left, (size_t) count * k * sizeof *sampler->left);
  return greatest + weft_log(sum / count);
}

static int by_score(const void *a, const void *b)
{
  const draw *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->weight != y->weight) return x->weight > y->weight ? 1 : -1;
  return (x->root > y->root) - (x->root < y->root);
}

/* The tables of the present tilt. */
static void fill_set(weft_mi_sampler *sampler, tables *set, uint32_t count, uint64_t key, const weft_mi_logs *logs,
                     const int64_t *f)
{
  uint64_t open = sampler->n;
  double common = 0, sum = 0;
  set->count = count;
  for (uint32_t i = 0; i < count; i++) {
    set->draws[i] = (draw){ 0, 0, 0, 0, i };
    memcpy(sampler->left + (size_t) i * sampler->k, sampler->over, sampler->k * sizeof *sampler->left);
  }
  for (uint32_t a = 0; a < sampler->l; a++) {
    sampler->slope = sampler->theta * (weft_log((double) open / sampler->k) + 1);
    for (uint32_t i = 0; i < count; i++) {
      stream from = { { key, a }, i, 0, { { 0, 0, 0, 0 } } };
      deal_level(sampler, logs, f, a, (double) open, &from, &set->draws[i], sampler->left + (size_t) i * sampler->k);
    }
    open -= sampler->r[a];
    if (a + 1 < sampler->l) common += resample(sampler, set, weft_draw_uniform((weft_rng){ key, a }, count));
  }
  for (uint32_t i = 0; i < count; i++) {
    draw *at = &set->draws[i];
    for (uint32_t c = 0; c < sampler->k; c++) at->score += f[sampler->left[(size_t) i * sampler->k + c]];
    at->weight = weft_exp(at->log_weight + common - at->gain);
  }
  qsort(set->draws, count, sizeof *set->draws, by_score);
  for (uint32_t i = 0; i < count; i++) set->sum[i] = sum += set->draws[i].weight;
}

/* The relative standard error of the sum of the first weights. */
static double error_of(weft_mi_sampler *sampler, const tables *set, uint32_t reach)
{
  const double sum = set->sum[reach - 1];
  double squares = 0;
  memset(sampler->by_root, 0, set->count * sizeof *sampler->by_root);
  for (uint32_t i = 0; i < reach; i++) sampler->by_root[set->draws[i].root] += set->draws[i].weight;
  for (uint32_t i = 0; i < set->count; i++) squares += sampler->by_root[i] * sampler->by_root[i];
  return weft_sqrt(fmax(squares / (sum * sum) - 1.0 / set->count, 0));
}

/* How many tables reach a score. */
static uint32_t reaching(const tables *set, int64_t score)
{
  uint32_t low = 0, high = set->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (set->draws[middle].score >= score)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Log of the upper tail of the gamma distribution (by its continued fraction), and what it loses where y grows by 1. */
static double log_tail(double a, double y, double *loss)
{
  const double log_density = (a - 1) * weft_log(y) - y - lgamma(a);
  double b = y + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 500; i++) {
    const double by = -i * (i - a);
    b += 2;
    d = 1 / (by * d + b);
    c = b + by / c;
    h *= d * c;
    if (fabs(d * c - 1) < 1e-13) break;
  }
  *loss = 1 / (y * h);
  return log_density + weft_log(y * h);
}

/* The statistic (2 y) with a given p-value, by Newton's method from a start that is the same for all: equal p-values
 * have equal statistics to the last bit. */
static double statistic_of(double a, double p)
{
  double y = a + 2 * weft_sqrt(a);
  for (int turn = 0; turn < 50; turn++) {
    double loss;
    const double step = (log_tail(a, y, &loss) - weft_log(p)) / loss, next = y + step;
    const double before = y;
    y = next > 0.5 * y ? next : 0.5 * y;
    if (fabs(y - before) < 1e-11 * y) break;
  }
  return 2 * y;
}

/* The last statistic that a set serves. */
static double until(double a, int set)
{
  static const double z[WEFT_MI_TILTS] = { 2.05, 3.3, 5.2 }; /* p of .02, .0005 and 10^-7 */
  const double root = 1 - 1 / (9 * a) + z[set] / (3 * weft_sqrt(a));
  return 2 * a * root * root * root;
}

/* Finds the score at which a set ends: that of its p-value `end`, or where too few tables would be left. */
static void set_border(tables *set, const weft_mi_smooth *smooth, double nat, double a, double end)
{
  uint32_t low = BORDER_TABLES, high = set->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (weft_mi_smooth_statistic(smooth, (double) set->draws[middle].score * nat) > end)
      low = middle + 1;
    else
      high = middle;
  }
  set->border = set->draws[low < set->count ? low : set->count - 1].score;
  const uint32_t reach = reaching(set, set->border);
  set->min_statistic = statistic_of(a, set->sum[reach - 1] / set->count);
}

/* Draws tables of one tilt after the other until a set serves the highest score; returns how many sets there are. */
static int draw_sets(weft_mi_sampler *sampler, const weft_mi_margins *margins, const weft_mi_logs *logs,
                     const int64_t *f, double nat, const weft_mi_smooth *smooth, int64_t highest)
{
  const int turned = set_margins(sampler, margins, logs);
  const double half_df = 0.5 * (margins->l - 1) * (margins->k - 1);
  const uint32_t count = weft_mi_sampler_tables(margins);
  static const uint32_t times[WEFT_MI_TILTS] = { 1, 2, 5 };
  uint64_t key = margins->n;
  int sets = 0;
  for (uint32_t i = 0; i < sampler->l; i++)
    key = (key ^ sampler->r[i]) * UINT64_C(0x9e3779b97f4a7c15), key ^= key >> 29;
  for (uint32_t c = 0; c < sampler->k; c++)
    key = (key ^ sampler->over[c]) * UINT64_C(0x9e3779b97f4a7c15), key ^= key >> 29;
  while (sets < WEFT_MI_TILTS && (!sets || highest > sampler->sets[sets - 1].border)) {
    double eta[MAX_OVER];
    const double theta = weft_mi_smooth_tilt(smooth, sets, !turned, eta);
    if (!(theta > 0)) break;
    set_tilt(sampler, logs, theta, eta);
    fill_set(sampler, &sampler->sets[sets], count * times[sets], key + (uint64_t) sets, logs, f);
    set_border(&sampler->sets[sets], smooth, nat, half_df, until(half_df, sets));
    sets++;
  }
  return sets;
}

/* Draws the sets of tables that the scores reach (from high to low) and replaces the statistics: within a set by its
 * share of tables, beyond the last by the smooth law moved to meet it. */
void weft_mi_sampler_run(weft_mi_sampler *sampler, const weft_mi_margins *margins, const weft_mi_logs *logs,
                         const int64_t *f, double nat, const weft_mi_smooth *smooth, const int64_t *scores,
                         size_t count, double *statistic, double *error)
{
  const double half_df = 0.5 * (margins->l - 1) * (margins->k - 1),
               root = 1 - 1 / (9 * half_df) + 0.85 / (3 * weft_sqrt(half_df));
  const double begin = 2 * half_df * root * root * root;
  const int64_t rounding = 2 * (int64_t) margins->l * margins->k;
  if (statistic[0] <= begin) return;
  const int sets = draw_sets(sampler, margins, logs, f, nat, smooth, scores[0] - rounding);
  if (!sets) return;
  const tables *last = &sampler->sets[sets - 1];
  const double y = weft_mi_smooth_statistic(smooth, (double) last->border * nat) / 2;
  const double apart = (last->min_statistic / 2 - y) * (y - half_df + 1) / y;
  for (size_t i = 0; i < count && statistic[i] > begin; i++) {
    int which = 0;
    double least = begin, at = statistic[i] / 2;
    while (which < sets && scores[i] > sampler->sets[which].border + rounding)
      least = fmax(least, sampler->sets[which++].min_statistic);
    const tables *set = which < sets ? &sampler->sets[which] : last;
    const uint32_t reach = reaching(set, which < sets ? scores[i] - rounding : last->border);
    if (which < sets)
      statistic[i] = statistic_of(half_df, set->sum[reach - 1] / set->count);
    else
      statistic[i] = 2 * (at + apart * at / (at - half_df + 1));
    statistic[i] = fmax(statistic[i], least);
    error[i] = error_of(sampler, set, reach);
  }
}
