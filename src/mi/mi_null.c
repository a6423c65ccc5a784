/* Tests of single attributes that hold for few rows.
 *
 * When class and attribute are independent, every assignment of the labels to the rows is equally likely. The margins
 * n_a of the attribute and n_c of the class stay as they are, and a table has probability Π n_a! Π n_c! / (n! Π n_ac!).
 * The score is Σ f(n_ac), which grows with the information; p is the probability of the observed score or more.
 * Attributes with the same margins share one law, and with bins of equal frequency all of them do. With E = min n_a min
 * n_c / n, the least count that is expected in a cell, the first of these that applies:
 *
 *   E >= 100, or E >= 5 and n > FEW_ROWS   NaN: chi-squared with Williams' correction is right within some percent
 *   (2 x 2, with scores far apart: 1000)
 *   at most MOST_TABLES tables             exact: all tables are visited
 *   E >= 5, or n > MOST_ROWS               NaN: with so many tables the score is all but continuous
 *   else                                   simulated: (1 + tables that score as high) / (1 + tables), as in a
 *                                          permutation test, until ENOUGH_HITS score as high */
#include <stdlib.h>
#include <string.h>
#include "../base/draws.h"
#include "../base/parallel.h"
#include "mi_null.h"

#define MOST_TABLES 2e6               /* by an estimate; a walk ends at four times as many */
#define MOST_ROWS 1000
#define FEW_ROWS 200
#define MOST_SIDE 1024u               /* levels or classes of a table that is looked at */
#define ATTRIBUTES_AT_ONCE 4096
#define MOST_FACTORIALS ((size_t) 1 << 20)
#define DRAWS_AT_ONCE 1024
#define LEAST_DRAWS 10000
#define MOST_DRAWS 1000000
#define ENOUGH_HITS 2500             /* tables that score as high: a standard error of 2 % of p */
#define DRAWING_WORK 2e8              /* rows dealt in a call, unless LEAST_DRAWS need more */
enum { STREAM = 0x6e756c6c, KEY = 1 }; /* the same tables in every call */

/* An attribute, and what it shares with others. Margins are sorted, the greatest last. */
typedef struct {
  uint64_t hash;
  int64_t score;
  size_t at, margins; /* place among the attributes asked for; where its levels' and then the classes' margins begin */
  uint32_t levels, classes;
  uint64_t n;
  double tables;        /* roughly how many there are; 0: to be simulated */
} item;

/* Attributes first .. last-1 of the sorted items: equal margins, scores from high to low. */
typedef struct { size_t first, last; int done; } law;

typedef struct { uint16_t *codes; uint32_t *level, *cell; } workspace;

static int by_number(const void *a, const void *b)
{
  const uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return (x > y) - (x < y);
}

static int by_law_and_score(const void *a, const void *b)
{
  const item *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

static uint64_t hash_of(const uint32_t *x, size_t count, uint64_t h)
{
  for (size_t i = 0; i < count; i++) h = (h ^ x[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
  return h;
}

/* The margins of one attribute and its score. */
static void tabulate(const weft_mi_pack *pack, size_t column, workspace *w, uint32_t *margins, item *out)
{
  const size_t place = pack->place[column];
  size_t row = 0;
  weft_mi_pack_codes(pack, place, w->codes);
  out->levels = out->classes = 0;
  out->n = 0;
  out->score = 0;
  for (uint32_t c = 0; c < pack->classes; c++) {
    const size_t first = row, end = row + pack->class_rows[c];
    uint32_t kept = 0;
    for (; row < end; row++) {
      if (w->codes[row] == WEFT_MI_MISSING) continue;
      w->cell[w->codes[row]]++;
      kept++;
    }
    for (row = first; row < end; row++) {
      const uint16_t code = w->codes[row];
      if (code == WEFT_MI_MISSING || !w->cell[code]) continue;
      out->score += weft_mi_fixed(&pack->f, w->cell[code]);
      w->level[code] += w->cell[code];
      w->cell[code] = 0;
    }
    if (kept && out->classes < MOST_SIDE) margins[MOST_SIDE + out->classes] = kept;
    out->classes += kept > 0;
    out->n += kept;
  }
  for (row = 0; row < pack->n; row++) {
    const uint16_t code = w->codes[row];
    if (code == WEFT_MI_MISSING || !w->level[code]) continue;
    if (out->levels < MOST_SIDE) margins[out->levels] = w->level[code];
    out->levels++;
    w->level[code] = 0;
  }
}

static double williams(const uint32_t *margins, uint32_t count, double n)
{
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += n / margins[i];
  return sum - 1;
}

/* Log of the number of tables with these margins, nearly (Gail and Mantel 1977): the rows' margins are dealt over the
 * classes evenly, and the sums over the rows are about normal. */
static double log_tables(const uint32_t *rows, uint32_t l, const uint32_t *classes, uint32_t k, double n,
                         const double *factorial)
{
  const double pi = 3.14159265358979323846, c = k;
  double ways = 0, variance = 0, apart = 0;
  for (uint32_t a = 0; a < l; a++) {
    const double m = rows[a];
    ways += factorial[rows[a] + k - 1] - factorial[k - 1] - factorial[rows[a]];
    variance += m * (m + c) / (c * (c + 1));
  }
  for (uint32_t j = 0; j < k; j++) apart += (classes[j] - n / c) * (classes[j] - n / c);
  return ways + 0.5 * weft_log(c) - 0.5 * (c - 1) * weft_log(2 * pi * variance) - apart / (2 * variance);
}

/* ---- exact ---- */

/* A walk over all tables: cell by cell, level after level; what is left of the classes is the last level. */
typedef struct {
  const uint32_t *rows;
  uint32_t l, k;
  const int64_t *f;
  const double *factorial;
  uint32_t *left;           /* of each class */
  const item *items;        /* scores from high to low */
  size_t count;
  int64_t rounding;         /* scores nearer than this are equal but for rounding */
  double *tail, total;      /* tail[i]: of tables that reach score i, but not score i - 1 */
  double visited;
} walk;

/* The first of the sorted scores that `score` reaches; `count` when none. */
static size_t reached(const item *items, size_t count, int64_t score)
{
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (items[middle].score <= score) high = middle;
    else low = middle + 1;
  }
  return low;
}

static void visit(walk *w, int64_t score, double log_p)
{
  for (uint32_t j = 0; j < w->k; j++) {
    score += w->f[w->left[j]];
    log_p -= w->factorial[w->left[j]];
  }
  const double p = weft_exp(log_p);
  const size_t i = reached(w->items, w->count, score + w->rounding);
  w->visited++;
  w->total += p;
  if (i < w->count) w->tail[i] += p;
}

/* Deals `rest` rows of level a over classes j, j + 1, ... */
static void deal(walk *w, uint32_t a, uint32_t j, uint32_t rest, int64_t score, double log_p)
{
  if (a + 1 == w->l) {
    visit(w, score, log_p);
    return;
  }
  uint64_t beyond = 0;
  for (uint32_t i = j + 1; i < w->k; i++) beyond += w->left[i];
  const uint32_t most = rest < w->left[j] ? rest : w->left[j], least = rest > beyond ? rest - (uint32_t) beyond : 0;
  for (uint32_t x = least; x <= most && w->visited < 4 * MOST_TABLES; x++) {
    const int64_t next = score + w->f[x];
    const double next_p = log_p - w->factorial[x];
    w->left[j] -= x;
    if (j + 1 == w->k) deal(w, a + 1, 0, w->rows[a + 1], next, next_p);
    else deal(w, a, j + 1, rest - x, next, next_p);
    w->left[j] += x;
  }
}

/* 0 when there are too many tables after all. */
static int exact(const item *items, const uint32_t *margins, size_t count, const int64_t *f, const double *factorial,
                 uint32_t *left, double *tail)
{
  const uint32_t l = items->levels, k = items->classes;
  walk w = { margins, l, k, f, factorial, left, items, count, (int64_t) l * k, tail, 0, 0 };
  double log_p = -factorial[items->n], sum = 0;
  memcpy(left, margins + l, k * sizeof *left);
  memset(tail, 0, count * sizeof *tail);
  for (uint32_t i = 0; i < l + k; i++) log_p += factorial[margins[i]];
  deal(&w, 0, 0, margins[0], 0, log_p);
  if (w.visited >= 4 * MOST_TABLES) return 0;
  for (size_t i = 0; i < count; i++) {
    sum += tail[i];
    tail[i] = sum < w.total ? sum / w.total : 1; /* rounding aside the total is 1 */
  }
  return 1;
}

/* ---- simulated ---- */

/* Deals the labels of the side whose greatest margin is less over that of the other, whose greatest level is what is
 * left. */
typedef struct {
  const uint32_t *rows, *classes;
  uint32_t l, k;
  size_t n;
} sides;

static sides sides_of(const item *x, const uint32_t *margins)
{
  const uint32_t *rows = margins, *classes = margins + x->levels;
  sides s = { rows, classes, x->levels, x->classes, (size_t) x->n };
  if (classes[x->classes - 1] > rows[x->levels - 1]) {
    s.rows = classes;
    s.classes = rows;
    s.l = x->classes;
    s.k = x->levels;
  }
  return s;
}

/* Table b. `sorted`: a label for each of n rows; `labels`: room for n; `cells`, `left`: for a number for each class. */
static int64_t dealt_score(const sides *s, const int64_t *f, uint64_t b, const uint16_t *sorted, uint16_t *labels,
                           uint32_t *cells, uint32_t *left)
{
  const weft_rng rng = { KEY, STREAM };
  weft_u32x4 words = {{0, 0, 0, 0}};
  int64_t score = 0;
  size_t i = 0;
  memcpy(labels, sorted, s->n * sizeof *labels);
  memcpy(left, s->classes, s->k * sizeof *left);
  for (uint32_t a = 0; a + 1 < s->l; a++) {
    memset(cells, 0, s->k * sizeof *cells);
    for (uint32_t m = 0; m < s->rows[a]; m++, i++) {
      if (i % 4 == 0) words = weft_draw_words(rng, b << 16 | i / 4, 0);
      const size_t other = i + (size_t) ((uint64_t) words.v[i % 4] * (s->n - i) >> 32);
      const uint16_t label = labels[other];
      labels[other] = labels[i];
      cells[label]++;
    }
    for (uint32_t j = 0; j < s->k; j++) {
      score += f[cells[j]];
      left[j] -= cells[j];
    }
  }
  for (uint32_t j = 0; j < s->k; j++) score += f[left[j]];
  return score;
}

/* What the tables of one law are dealt from, and how many of a thread's had each place among the scores. */
typedef struct {
  sides s;
  const item *items;
  size_t count;
  const int64_t *f;
  uint16_t *sorted, *labels;
  uint32_t *cells;
  size_t *hits;
} dealing;

static weft_status deal_tables(weft_ctx *ctx, const dealing *d, size_t from, size_t until, size_t most)
{
  const sides *s = &d->s;
  const int64_t rounding = (int64_t) s->l * s->k;
  const int threads = ctx->threads;
  const size_t step = 4 * (size_t) threads * DRAWS_AT_ONCE;
  for (size_t first = from; first < until; first += step) {
    const size_t end = first + step < until ? first + step : until;
    const int64_t pieces = (int64_t) ((end - first + DRAWS_AT_ONCE - 1) / DRAWS_AT_ONCE);
    const weft_status st = weft_poll(ctx, (double) first, (double) most);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL(weft_threads_worth(threads, (double) (end - first) * 5 * (double) s->n))
    {
      const size_t t = (size_t) WEFT_THREAD();
      uint32_t *cells = d->cells + 2 * t * s->k;
      WEFT_FOR(static)
      for (int64_t piece = 0; piece < pieces; piece++) {
        const size_t begin = first + (size_t) piece * DRAWS_AT_ONCE;
        for (size_t b = begin; b < end && b < begin + DRAWS_AT_ONCE; b++) {
          const int64_t score = dealt_score(s, d->f, b, d->sorted, d->labels + t * s->n, cells, cells + s->k);
          d->hits[t * (d->count + 1) + reached(d->items, d->count, score + rounding)]++;
        }
      }
    }
  }
  return WEFT_OK;
}

/* Settles the p-values (below 0: open) that `dealt` tables suffice for; all of them when no more tables may be dealt.
 * Each depends on its own score alone, so that it is the same whatever other attributes share the law. Returns 1 when
 * none is open. */
static int settle(const dealing *d, int threads, size_t dealt, size_t most, double *tail)
{
  size_t sum = 0;
  int settled = 1;
  for (size_t i = 0; i < d->count; i++) {
    for (int t = 0; t < threads; t++) sum += d->hits[(size_t) t * (d->count + 1) + i];
    if (tail[i] >= 0) continue;
    if (sum >= ENOUGH_HITS || dealt == most) tail[i] = (1 + (double) sum) / (1 + (double) dealt);
    else settled = 0;
  }
  return settled;
}

/* Doubles the number of tables until every p-value is settled. */
static weft_status simulated(weft_ctx *ctx, const item *items, const uint32_t *margins, size_t count, const int64_t *f,
                             size_t most, double *tail)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t threads = (size_t) ctx->threads;
  dealing d = { sides_of(items, margins), items, count, f, NULL, NULL, NULL, NULL };
  WEFT_TAKE(d.sorted, &mem, d.s.n);
  WEFT_TAKE(d.labels, &mem, threads * d.s.n);
  WEFT_TAKE(d.cells, &mem, 2 * threads * d.s.k);
  WEFT_TAKE0(d.hits, &mem, threads * (count + 1));
  for (uint32_t j = 0, r = 0; j < d.s.k; j++)
    for (uint32_t m = 0; m < d.s.classes[j]; m++) d.sorted[r++] = (uint16_t) j;
  for (size_t i = 0; i < count; i++) tail[i] = -1;
  for (size_t from = 0, until = LEAST_DRAWS;; from = until, until *= 2) {
    if (until > most) until = most;
    WEFT_TRY(deal_tables(ctx, &d, from, until, most));
    if (settle(&d, ctx->threads, until, most, tail)) break;
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- all attributes ---- */

/* 0 ... most, by a compensated sum. */
static void fill_factorials(double *factorial, size_t most)
{
  double sum = 0, low = 0;
  for (size_t k = 0; k <= most; k++) {
    const double term = k ? weft_sub(weft_log((double) k), low) : 0, next = weft_add(sum, term);
    low = weft_sub(weft_sub(next, sum), term);
    factorial[k] = sum = next;
  }
}

/* Whether chi-squared is not accurate enough; and roughly how many tables there are, 0 for too many. */
static int needs_law(item *x, const uint32_t *margins, const double *factorial, size_t most)
{
  const uint32_t *rows = margins, *classes = margins + x->levels;
  const double expected = (double) rows[0] * classes[0] / (double) x->n;
  double log_count;
  x->tables = 0;
  if (x->levels == 2 && x->classes == 2 ? expected >= 1000 : expected >= (x->n > FEW_ROWS ? 5 : 100)) return 0;
  if (x->n + MOST_SIDE <= most) {
    log_count = log_tables(rows, x->levels, classes, x->classes, (double) x->n, factorial);
    if (log_count <= weft_log(MOST_TABLES)) x->tables = 1 + weft_exp(log_count);
  }
  return x->tables > 0 || (expected < 5 && x->n <= MOST_ROWS);
}

/* Puts the margins of `x` in order behind those of `used` numbers; NaN is left in `p` when its law is needed. */
static int keep_margins(item *x, uint32_t *rows, uint32_t *classes, uint32_t *margins, size_t *used, double *p,
                        double *correction)
{
  *p = WEFT_NAN;
  *correction = 0;
  if (x->levels < 2 || x->classes < 2) *p = 1;
  if (x->levels < 2 || x->classes < 2 || x->levels > MOST_SIDE || x->classes > MOST_SIDE) return 0;
  *correction =
      williams(rows, x->levels, (double) x->n) * williams(classes, x->classes, (double) x->n) / (6.0 * (double) x->n);
  if (x->levels == x->n || x->classes == x->n) { /* all tables have the same score */
    *p = 1;
    return 0;
  }
  qsort(rows, x->levels, sizeof *rows, by_number);
  qsort(classes, x->classes, sizeof *classes, by_number);
  x->margins = *used;
  memcpy(margins + *used, rows, x->levels * sizeof *rows);
  memcpy(margins + *used + x->levels, classes, x->classes * sizeof *classes);
  *used += x->levels + x->classes;
  x->hash = hash_of(margins + x->margins, x->levels + x->classes, x->levels);
  return 1;
}

static int same_law(const item *a, const item *b, const uint32_t *margins)
{
  return a->hash == b->hash && a->levels == b->levels && a->classes == b->classes &&
    !memcmp(margins + a->margins, margins + b->margins, (a->levels + a->classes) * sizeof *margins);
}

/* The laws by walks over all tables; what is left is marked. */
static weft_status walk_all(weft_ctx *ctx, const item *items, law *laws, size_t count, const uint32_t *margins,
                            const int64_t *f, const double *factorial, size_t widest, double *tail)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = ctx->threads;
  uint32_t *left;
  WEFT_TAKE(left, &mem, (size_t) threads * widest);
  for (size_t first = 0, next = 0; first < count; first = next) {
    double work = 0;
    for (; next < count && work < MOST_TABLES * threads; next++) work += items[laws[next].first].tables;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_PARALLEL_FOR(weft_threads_worth(threads, 10 * work), dynamic)
    for (int64_t g = (int64_t) first; g < (int64_t) next; g++) {
      const item *x = &items[laws[g].first];
      laws[g].done = x->tables > 0 && exact(x, margins + x->margins, laws[g].last - laws[g].first, f, factorial,
                                            left + (size_t) WEFT_THREAD() * widest, tail + laws[g].first);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

static weft_status simulate_rest(weft_ctx *ctx, const item *items, const law *laws, size_t count,
                                 const uint32_t *margins, const int64_t *f, double *tail)
{
  double rows = 0;
  for (size_t g = 0; g < count; g++) if (!laws[g].done) rows += (double) items[laws[g].first].n;
  const double wanted = rows > 0 ? DRAWING_WORK / rows : 0;
  const size_t draws = (size_t) (wanted < LEAST_DRAWS ? LEAST_DRAWS : wanted > MOST_DRAWS ? MOST_DRAWS : wanted);
  for (size_t g = 0; g < count; g++) {
    const item *x = &items[laws[g].first];
    const size_t members = laws[g].last - laws[g].first;
    if (laws[g].done) continue;
    if (x->n > MOST_ROWS) { /* more tables than estimated */
      for (size_t i = 0; i < members; i++) tail[laws[g].first + i] = WEFT_NAN;
      continue;
    }
    const weft_status st = simulated(ctx, x, margins + x->margins, members, f, draws, tail + laws[g].first);
    if (st != WEFT_OK) return st;
  }
  return WEFT_OK;
}

weft_status weft_mi_null(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count, double *p,
                         double *correction)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) count * 4 * (double) pack->n);
  const size_t most = (pack->n < MOST_FACTORIALS ? pack->n : MOST_FACTORIALS) + MOST_SIDE;
  const double fit = 1 + 1e7 / ((double) pack->n + 100) * threads;
  const size_t at_once = fit < ATTRIBUTES_AT_ONCE ? (size_t) fit : ATTRIBUTES_AT_ONCE;
  size_t room = 0, used = 0, kept = 0, groups = 0, widest = 1;
  workspace *work;
  uint32_t *margins, *fresh;
  item *items, *found;
  law *laws;
  double *factorial, *tail;
  int64_t *f;
  if (!count) goto done;
  for (size_t i = 0; i < count; i++) {
    const size_t levels = pack->levels[pack->place[columns[i]]];
    room += (levels < MOST_SIDE ? levels : MOST_SIDE) + (pack->classes < MOST_SIDE ? pack->classes : MOST_SIDE);
  }
  WEFT_TAKE(margins, &mem, room);
  WEFT_TAKE(items, &mem, count);
  WEFT_TAKE(laws, &mem, count);
  WEFT_TAKE(tail, &mem, count);
  WEFT_TAKE(factorial, &mem, most + 1);
  WEFT_TAKE(f, &mem, most + 1);
  WEFT_TAKE(fresh, &mem, at_once * 2 * MOST_SIDE);
  WEFT_TAKE(found, &mem, at_once);
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int t = 0; t < threads; t++) {
    WEFT_TAKE(work[t].codes, &mem, pack->n);
    WEFT_TAKE0(work[t].level, &mem, 65536);
    WEFT_TAKE0(work[t].cell, &mem, 65536);
  }
  fill_factorials(factorial, most);
  for (size_t k = 0; k <= most; k++) f[k] = k <= pack->n ? weft_mi_fixed(&pack->f, k) : 0;

  for (size_t first = 0; first < count; first += at_once) {
    const int64_t now = (int64_t) (count - first < at_once ? count - first : at_once);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(guided)
      for (int64_t i = 0; i < now; i++)
        tabulate(pack, columns[first + (size_t) i], w, fresh + 2 * MOST_SIDE * (size_t) i, &found[i]);
    }
    for (int64_t i = 0; i < now; i++) {
      uint32_t *rows = fresh + 2 * MOST_SIDE * (size_t) i;
      const size_t at = first + (size_t) i;
      item *x = &found[i];
      x->at = at;
      if (!keep_margins(x, rows, rows + MOST_SIDE, margins, &used, &p[at], &correction[at])) continue;
      if (needs_law(x, margins + x->margins, factorial, most)) items[kept++] = *x;
      else used = x->margins;
    }
  }

  qsort(items, kept, sizeof *items, by_law_and_score);
  for (size_t i = 0; i < kept; i++) {
    if (!i || !same_law(&items[i], &items[i - 1], margins)) laws[groups++] = (law) { i, i + 1, 0 };
    if (items[i].classes > widest) widest = items[i].classes;
    laws[groups - 1].last = i + 1;
  }
  WEFT_TRY(walk_all(ctx, items, laws, groups, margins, f, factorial, widest, tail));
  WEFT_TRY(simulate_rest(ctx, items, laws, groups, margins, f, tail));
  for (size_t i = 0; i < kept; i++) p[items[i].at] = tail[i];
done:
  weft_arena_end(&mem);
  return st;
}
