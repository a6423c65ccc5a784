/* Counting for greedy selection; see count.h. A table of X × W × Y comes from popcounts of planes when the levels
 * are few, row by row when the table is small, and by hashing the occupied cells otherwise. */
#include <string.h>
#include "core/data/codes.h"
#include "core/call/parallel.h"
#include "mi/select/count.h"

/* ---- features ---- */

static weft_codes_result encode(const weft_mi_data *data, size_t j, uint16_t *out, uint16_t *scratch, int32_t *work,
                                uint32_t *levels)
{
  weft_codes plan;
  weft_codes_result result = weft_codes_plan(&data->columns[j], data->n, data->na_level, &plan);
  if (result == WEFT_CODES_WIDE) {
    result = weft_encode_wide(&data->columns[j], data->n, data->na_level, &plan, out, work);
  } else if (result == WEFT_CODES_OK) {
    plan.width = 2;
    weft_encode_all(&data->columns[j], data->n, data->na_level, &plan, out, scratch);
  }
  *levels = plan.levels;
  return result;
}

/* Codes all features on all threads, then makes planes of those with at most `plane_levels` levels. Memory is from
 * `mem`; an error names the first bad column. */
weft_status weft_select_encode(weft_ctx *ctx, weft_arena *mem, const weft_mi_data *data, weft_select_features *x,
                               uint32_t plane_levels)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t n = data->n, p = data->p;
  uint64_t *planes = NULL;
  size_t total = 0;
  uint16_t *scratch;
  int32_t *work;
  weft_codes_result *results;
  *x = (weft_select_features){ n,          p, weft_plane_words(n), NULL, NULL, NULL, data->classes, data->class_levels,
                               weft_bits() };
  WEFT_TAKE(x->codes, mem, n * p);
  WEFT_TAKE(x->levels, mem, p);
  WEFT_TAKE0(x->planes, mem, p);
  WEFT_TAKE(results, &own, p);
  WEFT_TAKE(scratch, &own, n * (size_t) ctx->threads);
  WEFT_TAKE(work, &own, 2 * n * (size_t) ctx->threads);
  WEFT_TRY(weft_poll(ctx, 0, 1));
  WEFT_PARALLEL(weft_threads_worth(ctx->threads, (double) n * (double) p * 4))
  {
    const size_t mine = (size_t) WEFT_THREAD() * n;
    WEFT_FOR(guided)
    for (int64_t j = 0; j < (int64_t) p; j++)
      results[j] = encode(data, (size_t) j, x->codes + (size_t) j * n, scratch + mine, work + 2 * mine, &x->levels[j]);
  }
  for (size_t j = 0; j < p; j++) {
    if (results[j] != WEFT_CODES_OK) {
      st = weft_fail_column(ctx, j, "%s", weft_codes_problem(results[j]));
      goto done;
    }
    if (x->levels[j] <= plane_levels) total += x->levels[j];
  }
  WEFT_TAKE(planes, mem, total * x->words);
  for (size_t j = 0; j < p; j++) {
    if (x->levels[j] > plane_levels) continue;
    x->planes[j] = planes;
    planes += x->levels[j] * x->words;
  }
  WEFT_TRY(weft_poll(ctx, 0, 1));
  WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) n * (double) total / 4), guided)
  for (int64_t j = 0; j < (int64_t) p; j++)
    for (uint32_t a = 0; x->planes[j] && a < x->levels[j]; a++)
      x->ops->plane_u16(x->codes + (size_t) j * n, n, (uint16_t) a, x->planes[j] + a * x->words);
done:
  weft_arena_end(&own);
  return st;
}

static size_t hash_capacity(size_t n)
{
  size_t capacity = 64;
  while (capacity < 2 * n) capacity *= 2;
  return capacity;
}

weft_status weft_select_workspace_take(weft_arena *mem, size_t n, weft_select_workspace *w)
{
  weft_status st = WEFT_OK;
  w->capacity = hash_capacity(n);
  WEFT_TAKE(w->table, mem, WEFT_SELECT_CELLS);
  WEFT_TAKE(w->margin, mem, WEFT_SELECT_CELLS);
  WEFT_TAKE(w->slots, mem, w->capacity);
  WEFT_TAKE(w->counts, mem, n + 1);
  WEFT_TAKE(w->scratch, mem, n + 1);
  WEFT_TAKE(w->keys, mem, n + 1);
done:
  return st;
}

/* ---- groups ---- */

weft_status weft_select_group_take(weft_arena *mem, const weft_select_features *x, weft_select_group *group,
                                   uint32_t max_planes)
{
  weft_status st = WEFT_OK;
  memset(group, 0, sizeof *group);
  group->max_planes = max_planes;
  group->capacity = hash_capacity(x->n);
  WEFT_TAKE(group->w, mem, x->n);
  WEFT_TAKE(group->planes, mem, max_planes * x->words);
  WEFT_TAKE(group->each, mem, max_planes);
  WEFT_TAKE(group->slots, mem, group->capacity);
  WEFT_TAKE(group->keys, mem, x->n + 1);
done:
  return st;
}

/* Planes of the combinations, when they are few: combination w + w_levels y. */
static void make_planes(const weft_select_features *x, weft_select_group *group)
{
  const uint64_t combinations = group->w_levels * group->y_levels;
  group->plane_count = 0;
  if (combinations > group->max_planes) return;
  group->plane_count = (uint32_t) combinations;
  memset(group->planes, 0, combinations * x->words * sizeof *group->planes);
  for (size_t i = 0; i < x->n; i++) {
    if (group->w[i] == UINT32_MAX || (group->y_levels > 1 && x->classes[i] == WEFT_NA_U16)) continue;
    const uint64_t c = group->w[i] + (group->y_levels > 1 ? group->w_levels * x->classes[i] : 0);
    group->planes[c * x->words + i / 64] |= (uint64_t) 1 << (i % 64);
  }
  for (uint32_t c = 0; c < group->plane_count; c++) group->each[c] = group->planes + c * x->words;
}

void weft_select_group_none(const weft_select_features *x, weft_select_group *group)
{
  for (size_t i = 0; i < x->n; i++) group->w[i] = x->classes[i] == WEFT_NA_U16 ? UINT32_MAX : 0;
  group->w_levels = 1;
  group->y_levels = x->class_levels;
  make_planes(x, group);
}

/* Rows without a class do not count, also where the class is not looked at. */
void weft_select_group_one(const weft_select_features *x, size_t j, int with_class, weft_select_group *group)
{
  const uint16_t *codes = x->codes + j * x->n;
  for (size_t i = 0; i < x->n; i++)
    group->w[i] = codes[i] == WEFT_NA_U16 || x->classes[i] == WEFT_NA_U16 ? UINT32_MAX : codes[i];
  group->w_levels = x->levels[j];
  group->y_levels = with_class ? x->class_levels : 1;
  make_planes(x, group);
}

static size_t slot_of(uint64_t key, const uint32_t *slots, const uint64_t *keys, size_t capacity)
{
  size_t at = (size_t) ((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (capacity - 1);
  while (slots[at] != UINT32_MAX && keys[slots[at]] != key) at = (at + 1) & (capacity - 1);
  return at;
}

/* Numbers the combinations of W and feature j that occur, in order of appearance, and makes planes of them where they
 * are few. Rows where either is missing stay missing. */
weft_status weft_select_group_join(weft_ctx *ctx, const weft_select_features *x, size_t j, weft_select_group *group)
{
  const uint16_t *codes = x->codes + j * x->n;
  uint32_t seen = 0;
  memset(group->slots, 255, group->capacity * sizeof *group->slots);
  for (size_t i = 0; i < x->n; i++) {
    if (group->w[i] == UINT32_MAX || codes[i] == WEFT_NA_U16) {
      group->w[i] = UINT32_MAX;
      continue;
    }
    const uint64_t key = group->w[i] + group->w_levels * codes[i];
    const size_t at = slot_of(key, group->slots, group->keys, group->capacity);
    if (group->slots[at] == UINT32_MAX) {
      group->keys[seen] = key;
      group->slots[at] = seen++;
    }
    group->w[i] = group->slots[at];
  }
  group->w_levels = seen ? seen : 1;
  group->y_levels = x->class_levels;
  make_planes(x, group);
  return weft_poll(ctx, 0, 1);
}

/* ---- sums over tables ---- */

/* The table is [x][y][w] with W fastest, as the planes are numbered. */
static void sum_table(const uint32_t *t, size_t lx, size_t lw, size_t ly, const double *f, uint32_t *margin,
                      weft_select_sums *sums)
{
  uint32_t *wy = margin, *xw = wy + lw * ly, *by_w = xw + lw, *by_y = by_w + lw;
  uint64_t n = 0;
  double squares = 0, gini = 0;
  memset(margin, 0, (lw * ly + 2 * lw + ly) * sizeof *margin);
  for (size_t a = 0; a < lx; a++) {
    uint32_t of_a = 0;
    memset(xw, 0, lw * sizeof *xw);
    for (size_t y = 0; y < ly; y++)
      for (size_t b = 0; b < lw; b++) {
        const uint32_t c = t[(a * ly + y) * lw + b];
        sums->xwy += f[c];
        xw[b] += c;
        wy[y * lw + b] += c;
        of_a += c;
      }
    for (size_t b = 0; b < lw; b++) {
      sums->xw += f[xw[b]];
      if (!xw[b]) continue;
      squares = 0;
      for (size_t y = 0; y < ly; y++) {
        const double c = t[(a * ly + y) * lw + b];
        squares += c * c;
      }
      gini += squares / xw[b];
    }
    sums->x += f[of_a];
    n += of_a;
  }
  for (size_t y = 0; y < ly; y++)
    for (size_t b = 0; b < lw; b++) {
      const uint32_t c = wy[y * lw + b];
      sums->wy += f[c];
      by_w[b] += c;
      by_y[y] += c;
    }
  for (size_t b = 0; b < lw; b++) sums->w += f[by_w[b]];
  squares = 0;
  for (size_t y = 0; y < ly; y++) {
    sums->y += f[by_y[y]];
    squares += (double) by_y[y] * by_y[y];
  }
  sums->n = (double) n;
  sums->all = f[n];
  sums->gini = n ? (gini - squares / sums->n) / sums->n : 0;
}

/* What a row's key is made of, one sum each. */
enum { KEY_X = 1, KEY_W = 2, KEY_Y = 4 };

/* Counts the rows by some of (X, W, Y); returns how many cells are occupied, counts[0 ..] and keys[0 ..]. */
static uint32_t hash_rows(const weft_select_features *x, const uint16_t *codes, uint64_t lx,
                          const weft_select_group *group, int parts, weft_select_workspace *w, size_t *rows)
{
  uint32_t seen = 0;
  *rows = 0;
  memset(w->slots, 255, w->capacity * sizeof *w->slots);
  for (size_t i = 0; i < x->n; i++) {
    if (codes[i] == WEFT_NA_U16 || group->w[i] == UINT32_MAX || x->classes[i] == WEFT_NA_U16) continue;
    uint64_t key = parts & KEY_Y && group->y_levels > 1 ? x->classes[i] : 0;
    if (parts & KEY_W) key = key * group->w_levels + group->w[i];
    if (parts & KEY_X) key = key * lx + codes[i];
    const size_t at = slot_of(key, w->slots, w->keys, w->capacity);
    if (w->slots[at] == UINT32_MAX) {
      w->keys[seen] = key;
      w->counts[seen] = 0;
      w->slots[at] = seen++;
    }
    w->counts[w->slots[at]]++;
    ++*rows;
  }
  return seen;
}

/* Σ over cells (x, w, y) of count^2 / count(x, w). */
static double gini_of_rows(const weft_select_features *x, const uint16_t *codes, uint64_t lx,
                           const weft_select_group *group, weft_select_workspace *w, uint32_t *scratch)
{
  /* each row carries count(x, w, y) / count(x, w): the sum over rows is the sum over cells of count^2 / count(x, w) */
  size_t rows = 0, at = 0;
  double sum = 0;
  hash_rows(x, codes, lx, group, KEY_X | KEY_W | KEY_Y, w, &rows);
  for (size_t pass = 0; pass < 2; pass++) {
    at = 0;
    if (pass) hash_rows(x, codes, lx, group, KEY_X | KEY_W, w, &rows);
    for (size_t i = 0; i < x->n; i++) {
      if (codes[i] == WEFT_NA_U16 || group->w[i] == UINT32_MAX || x->classes[i] == WEFT_NA_U16) continue;
      uint64_t key = !pass && group->y_levels > 1 ? x->classes[i] : 0;
      key = (key * group->w_levels + group->w[i]) * lx + codes[i];
      const uint32_t count = w->counts[w->slots[slot_of(key, w->slots, w->keys, w->capacity)]];
      if (!pass)
        scratch[at++] = count;
      else
        sum += (double) scratch[at++] / count;
    }
  }
  return sum;
}

static double hashed_sum(const weft_select_features *x, const uint16_t *codes, uint64_t lx,
                         const weft_select_group *group, int parts, const double *f, weft_select_workspace *w,
                         size_t *rows, double *squares)
{
  const uint32_t cells = hash_rows(x, codes, lx, group, parts, w, rows);
  double sum = 0;
  *squares = 0;
  for (uint32_t c = 0; c < cells; c++) {
    sum += f[w->counts[c]];
    *squares += (double) w->counts[c] * w->counts[c];
  }
  return sum;
}

/* All sums of a table by hashing its occupied cells, one pass over the rows for each set of variables. */
static void sum_hashed(const weft_select_features *x, const uint16_t *codes, uint64_t lx,
                       const weft_select_group *group, const double *f, weft_select_workspace *w,
                       weft_select_sums *sums)
{
  size_t rows;
  double squares, gini;
  sums->xwy = hashed_sum(x, codes, lx, group, KEY_X | KEY_W | KEY_Y, f, w, &rows, &squares);
  sums->xw = hashed_sum(x, codes, lx, group, KEY_X | KEY_W, f, w, &rows, &squares);
  sums->wy = hashed_sum(x, codes, lx, group, KEY_W | KEY_Y, f, w, &rows, &squares);
  sums->x = hashed_sum(x, codes, lx, group, KEY_X, f, w, &rows, &squares);
  sums->w = hashed_sum(x, codes, lx, group, KEY_W, f, w, &rows, &squares);
  gini = gini_of_rows(x, codes, lx, group, w, w->scratch);
  sums->y = hashed_sum(x, codes, lx, group, KEY_Y, f, w, &rows, &squares);
  sums->n = (double) rows;
  sums->all = f[rows];
  sums->gini = rows ? (gini - squares / sums->n) / sums->n : 0;
}

/* Counts feature j against the group by the fastest way that fits: popcounts of planes, a table, or hashing. */
void weft_select_count(const weft_select_features *x, size_t j, const weft_select_group *group, const double *f,
                       weft_select_workspace *w, weft_select_sums *out)
{
  const uint16_t *codes = x->codes + j * x->n;
  const uint64_t lx = x->levels[j], combinations = group->w_levels * group->y_levels, cells = lx * combinations;
  memset(out, 0, sizeof *out);
  if (x->planes[j] && group->plane_count) {
    for (uint64_t a = 0; a < lx; a++)
      x->ops->popcount_and_many(x->planes[j] + a * x->words, group->each, group->plane_count, x->words,
                                w->table + a * combinations);
  } else if (cells <= WEFT_SELECT_CELLS / 4 && cells <= 4096 + 16 * x->n) {
    memset(w->table, 0, cells * sizeof *w->table);
    for (size_t i = 0; i < x->n; i++) {
      if (codes[i] == WEFT_NA_U16 || group->w[i] == UINT32_MAX || x->classes[i] == WEFT_NA_U16) continue;
      const uint64_t y = group->y_levels > 1 ? x->classes[i] : 0;
      w->table[codes[i] * combinations + y * group->w_levels + group->w[i]]++;
    }
  } else {
    sum_hashed(x, codes, lx, group, f, w, out);
    return;
  }
  sum_table(w->table, lx, group->w_levels, group->y_levels, f, w->margin, out);
}
