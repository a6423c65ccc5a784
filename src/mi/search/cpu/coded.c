/* Counting from codes: for attributes of many levels, for tuples of any order, and for the tuples that are reported.
 *
 * The levels of several attributes together become one dense number per row, attribute after attribute: by plain
 * arithmetic while the product of their levels is small, by a hash table of what occurs when it is not. Rows are sorted
 * by class, so counts by class are one run after another. Only the rows with all attributes known take part. */
/* Build: shared. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/search/cpu/coded.h"

#define PLANE_CELLS 2048            /* larger tables of pairs are counted from codes */
#define DIRECT ((uint64_t) 1 << 18) /* numbers up to here are used as they are */

/* How many numbers a tuple of `order` columns may have: of few levels as many as tables have cells. */
static size_t numbers_of(const weft_mi_pack *pack, int order)
{
  uint64_t levels = 1, numbers = 1;
  for (size_t place = 0; place < pack->p; place++)
    if (pack->levels[place] > levels) levels = pack->levels[place];
  for (int k = 0; k < order && numbers <= DIRECT; k++) numbers *= levels;
  if (numbers <= DIRECT) return (size_t) numbers;
  return DIRECT > pack->n ? (size_t) DIRECT : pack->n;
}

/* Takes a thread's room: numbers of rows, counts, and a hash table that is at most half full. */
weft_status weft_mi_coder_init(weft_mi_coder *w, weft_arena *mem, const weft_mi_pack *pack, int order)
{
  weft_status st = WEFT_OK;
  const size_t n = pack->n;
  w->n = n;
  w->hash_size = 16;
  while (w->hash_size < 2 * n) w->hash_size *= 2;
  WEFT_TAKE(w->ids, mem, n);
  WEFT_TAKE(w->rows, mem, n);
  WEFT_TAKE(w->class_end, mem, pack->classes + 1);
  WEFT_TAKE0(w->counts, mem, numbers_of(pack, order));
  WEFT_TAKE(w->keys, mem, w->hash_size);
  WEFT_TAKE(w->slots, mem, w->hash_size);
done:
  return st;
}

/* Numbers of any size to dense ones, in order of appearance; returns how many there are. */
static uint64_t densify(weft_mi_coder *w, size_t rows, const uint16_t *codes, uint32_t levels)
{
  const size_t mask = w->hash_size - 1;
  uint32_t found = 0;
  memset(w->slots, 255, w->hash_size * sizeof *w->slots);
  for (size_t row = 0; row < rows; row++) {
    const uint64_t key = (uint64_t) w->ids[row] * levels + codes[w->rows[row]];
    size_t at = (size_t) ((key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & mask;
    while (w->slots[at] != UINT32_MAX && w->keys[at] != key) at = (at + 1) & mask;
    if (w->slots[at] == UINT32_MAX) {
      w->keys[at] = key;
      w->slots[at] = found++;
    }
    w->ids[row] = w->slots[at];
  }
  return found;
}

/* Σ f over the counts of w->ids in rows first .. end-1. */
static int64_t sum_f(weft_mi_coder *w, const weft_mi_log *f, size_t first, size_t end)
{
  int64_t sum = 0;
  for (size_t row = first; row < end; row++) w->counts[w->ids[row]]++;
  for (size_t row = first; row < end; row++) {
    sum += weft_mi_fixed(f, w->counts[w->ids[row]]);
    w->counts[w->ids[row]] = 0;
  }
  return sum;
}

/* Lists the rows where all columns are known, class after class. For each mask, the levels of its columns become one
 * number per row, which is counted within classes and within strata. */
size_t weft_mi_coded(weft_mi_coder *w, const weft_mi_pack *pack, const uint16_t *const *codes, const uint32_t *levels,
                     int k, const uint32_t *masks, int count, int64_t *out)
{
  size_t n = 0;
  for (size_t c = 0, row = 0, end = 0; c < pack->classes; c++) {
    for (end += pack->class_rows[c]; row < end; row++) {
      int known = 1;
      for (int j = 0; j < k; j++) known &= codes[j][row] != WEFT_MI_MISSING;
      w->rows[n] = (uint32_t) row;
      n += (size_t) known;
    }
    w->class_end[c] = (uint32_t) n;
  }
  weft_mi_by_class all = weft_mi_by_class_of(&pack->f, pack->per);
  for (uint32_t c = 0; c < pack->classes; c++)
    weft_mi_by_class_add(&all, w->class_end[c] - (c ? w->class_end[c - 1] : 0));
  for (int mask = 0; mask < count; mask++) {
    uint64_t span = 1;
    memset(w->ids, 0, n * sizeof *w->ids);
    for (int j = 0; j < k; j++) {
      if (!(masks[mask] >> j & 1)) continue;
      if (span * levels[j] <= DIRECT) {
        for (size_t row = 0; row < n; row++) w->ids[row] = w->ids[row] * levels[j] + codes[j][w->rows[row]];
        span *= levels[j];
      } else {
        span = densify(w, n, codes[j], levels[j]);
      }
    }
    int64_t sum = -all.sum;
    for (uint32_t c = 0; c < pack->classes; c++) {
      sum += sum_f(w, &pack->f, c ? w->class_end[c - 1] : 0, w->class_end[c]);
      if ((c + 1) % pack->per) continue; /* not the last class of its stratum */
      sum -= sum_f(w, &pack->f, c + 1 > pack->per ? w->class_end[c - pack->per] : 0, w->class_end[c]);
    }
    out[mask] = sum > 0 ? sum : 0;
  }
  return n;
}

/* ---- scores of given tuples ---- */

typedef struct {
  weft_mi_coder coder;
  uint16_t *codes;
  uint32_t *both, *margin_a, *margin_b, *cells, *work;
  uint64_t *masks; /* of tuples of more than two: a row of planes for each attribute and one more */
} workspace;

/* A pair of attributes with planes: a popcount for each pair of planes and class. */
static void score_planes(const weft_mi_pack *pack, size_t a, size_t b, workspace *w, weft_mi_tuple *out)
{
  const weft_mi_group *group_a = &pack->groups[pack->group_of[a]], *group_b = &pack->groups[pack->group_of[b]];
  const uint32_t pa = group_a->shape.planes, pb = group_b->shape.planes;
  const weft_bits_ops *ops = weft_bits();
  weft_mi_counts counts;
  int64_t scores[3];
  uint64_t n = 0;
  memset(&counts, 0, sizeof counts);
  counts.a = group_a->shape;
  counts.b = group_b->shape;
  counts.parts = pack->classes;
  counts.both = w->both;
  counts.stride = counts.plane_a = counts.plane_b = 1;
  counts.part_a = pa;
  counts.part_b = pb;
  counts.margin_a = w->margin_a;
  counts.margin_b = w->margin_b;
  counts.totals = pack->class_rows;
  for (uint32_t c = 0; c < pack->classes; c++) {
    const size_t first = pack->class_word[c], words = pack->class_word[c + 1] - first;
    for (uint32_t x = 0; x < pa; x++)
      w->margin_a[c * pa + x] = pack->margins[c * pack->plane_rows + weft_mi_plane_row(group_a, a, x)];
    for (uint32_t y = 0; y < pb; y++)
      w->margin_b[c * pb + y] = pack->margins[c * pack->plane_rows + weft_mi_plane_row(group_b, b, y)];
    for (uint32_t x = 0; x < pa; x++)
      for (uint32_t y = 0; y < pb; y++)
        w->both[(c * pa + x) * pb + y] =
            (uint32_t) ops->popcount_and(pack->bits + weft_mi_plane_row(group_a, a, x) * pack->words + first,
                                         pack->bits + weft_mi_plane_row(group_b, b, y) * pack->words + first, words);
  }
  weft_mi_cells(&counts, 0, 0, w->cells);
  for (int k = 0; k < 3; k++) {
    static const int masks[] = { 6, 2, 4 };
    scores[k] = weft_mi_of_table(pack, w->cells, 1, counts.a.levels, counts.b.levels, masks[k], w->work, &n);
  }
  out->mi = weft_mi_bits(scores[0], pack->f.unit, n);
  out->interaction = weft_mi_bits(scores[0] - scores[1] - scores[2], pack->f.unit, n);
  out->n = (double) n;
  out->each[0] = weft_mi_bits(scores[1], pack->f.unit, n);
  out->each[1] = weft_mi_bits(scores[2], pack->f.unit, n);
}

/* A tuple of which every attribute has planes. */
typedef struct {
  const weft_mi_pack *pack;
  size_t place[WEFT_MI_ORDER];
  int order;
} planar_tuple;

static int planar(const planar_tuple *tuple)
{
  size_t cells = tuple->pack->classes;
  for (int j = 0; j < tuple->order && cells <= PLANE_CELLS; j++) {
    if (tuple->pack->groups[tuple->pack->group_of[tuple->place[j]]].coded) return 0;
    cells *= tuple->pack->levels[tuple->place[j]];
  }
  return tuple->order > 2 && cells <= PLANE_CELLS;
}

/* The cells of a class among the rows in `mask`, by the levels of attribute j, then of the next; those of the
 * attributes before j are given. Returns where the cells end. An attribute without missing values has no plane of its
 * last level. */
static uint32_t *count_masked(const planar_tuple *tuple, int j, uint32_t c, uint64_t *mask, uint32_t *cells)
{
  const weft_mi_pack *p = tuple->pack;
  const size_t first = p->class_word[c], words = p->class_word[c + 1] - first;
  uint64_t *const within = mask + p->words;
  if (j == tuple->order) {
    *cells = (uint32_t) weft_bits()->popcount(mask, words);
    return cells + 1;
  }
  const weft_mi_group *group = &p->groups[p->group_of[tuple->place[j]]];
  for (uint32_t q = 0; q < group->shape.planes; q++) {
    const uint64_t *plane = weft_mi_pack_row(p, weft_mi_plane_row(group, tuple->place[j], q)) + first;
    for (size_t k = 0; k < words; k++) within[k] = mask[k] & plane[k];
    cells = count_masked(tuple, j + 1, c, within, cells);
  }
  if (group->shape.planes == p->levels[tuple->place[j]]) return cells;
  memcpy(within, mask, words * sizeof *within);
  for (uint32_t q = 0; q < group->shape.planes; q++) {
    const uint64_t *plane = weft_mi_pack_row(p, weft_mi_plane_row(group, tuple->place[j], q)) + first;
    for (size_t k = 0; k < words; k++) within[k] &= ~plane[k];
  }
  return count_masked(tuple, j + 1, c, within, cells);
}

/* What weft_mi_coded() computes, but from planes. */
static size_t score_masked(const planar_tuple *tuple, const uint32_t *masks, int count, workspace *w, int64_t *out)
{
  const weft_mi_pack *p = tuple->pack;
  uint32_t *end = w->cells;
  size_t n = 0;
  for (uint32_t c = 0; c < p->classes; c++) {
    const size_t words = p->class_word[c + 1] - p->class_word[c], rows = p->class_rows[c];
    for (size_t k = 0; k < words; k++)
      w->masks[k] = rows >= 64 * (k + 1) ? UINT64_MAX : rows > 64 * k ? (UINT64_C(1) << rows % 64) - 1 : 0;
    end = count_masked(tuple, 0, c, w->masks, end);
  }
  const size_t area = (size_t) (end - w->cells) / p->classes;
  for (int m = -1; m < count; m++) { /* first the classes by themselves */
    const uint32_t mask = m < 0 ? 0 : masks[m];
    weft_mi_by_class all = weft_mi_by_class_of(&p->f, p->per);
    size_t levels = 1;
    for (int j = 0; j < tuple->order; j++)
      if (mask >> j & 1) levels *= p->levels[tuple->place[j]];
    memset(w->work, 0, levels * p->classes * sizeof *w->work);
    for (size_t k = 0; k < area; k++) {
      size_t level = 0, scale = 1, left = k;
      for (int j = tuple->order - 1; j >= 0; j--) {
        const size_t of = p->levels[tuple->place[j]];
        if (mask >> j & 1) {
          level += left % of * scale;
          scale *= of;
        }
        left /= of;
      }
      for (uint32_t c = 0; c < p->classes; c++) w->work[level * p->classes + c] += w->cells[c * area + k];
    }
    for (size_t k = 0; k < levels * p->classes; k++) weft_mi_by_class_add(&all, w->work[k]);
    if (m < 0) {
      n = all.n;
      for (int i = 0; i < count; i++) out[i] = -all.sum;
      continue;
    }
    out[m] += all.sum;
    if (out[m] < 0) out[m] = 0;
  }
  return n;
}

/* Scores one reported tuple with all parts that its columns need: from planes where its table is small, else from
 * codes. */
static void score_tuple(const weft_mi_pack *pack, const uint32_t *columns, int order, workspace *w, weft_mi_tuple *out)
{
  planar_tuple planes = { pack, { 0 }, order };
  const uint16_t *codes[WEFT_MI_ORDER];
  uint32_t levels[WEFT_MI_ORDER], masks[2 * WEFT_MI_ORDER + 1];
  int64_t scores[2 * WEFT_MI_ORDER + 1];
  const uint32_t all = (1u << order) - 1;
  const size_t a = pack->place[columns[0]], b = pack->place[columns[1]];
  if (order == 2 && !pack->groups[pack->group_of[a]].coded && !pack->groups[pack->group_of[b]].coded &&
      (size_t) pack->levels[a] * pack->levels[b] * pack->classes <= PLANE_CELLS) {
    score_planes(pack, a, b, w, out);
    return;
  }
  masks[0] = all;
  for (int j = 0; j < order; j++) {
    planes.place[j] = pack->place[columns[j]];
    masks[1 + j] = 1u << j;
    masks[1 + order + j] = all & ~(1u << j);
  }
  const int by_planes = planar(&planes), count = order == 2 ? 3 : 1 + 2 * order;
  for (int j = 0; !by_planes && j < order; j++) {
    weft_mi_pack_codes(pack, planes.place[j], w->codes + (size_t) j * pack->n);
    codes[j] = w->codes + (size_t) j * pack->n;
    levels[j] = pack->levels[planes.place[j]];
  }
  const size_t n = by_planes ? score_masked(&planes, masks, count, w, scores)
                             : weft_mi_coded(&w->coder, pack, codes, levels, order, masks, count, scores);
  int64_t gain = scores[0] - scores[1] - scores[2];
  if (order > 2) {
    int64_t greatest = 0;
    for (int j = 0; j < order; j++)
      if (scores[1 + order + j] > greatest) greatest = scores[1 + order + j];
    gain = scores[0] - greatest;
  }
  out->mi = weft_mi_bits(scores[0], pack->f.unit, n);
  out->interaction = weft_mi_bits(gain, pack->f.unit, n);
  out->n = (double) n;
  for (int j = 0; j < order; j++) out->each[j] = weft_mi_bits(scores[1 + j], pack->f.unit, n);
}

/* Threads share tuples, each with its own room; polls between batches. */
weft_status weft_mi_score_tuples(weft_ctx *ctx, const weft_mi_pack *pack, const uint32_t *columns, size_t count,
                                 int order, weft_mi_tuple *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) count * order * 4 * (double) pack->n);
  const size_t batch = 1 + (size_t) (2e7 / ((double) pack->n + 1000)) * (size_t) threads;
  workspace *work;
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TRY(weft_mi_coder_init(&work[thread].coder, &mem, pack, order));
    WEFT_TAKE(work[thread].codes, &mem, (size_t) order * pack->n);
    WEFT_TAKE(work[thread].both, &mem, PLANE_CELLS);
    WEFT_TAKE(work[thread].margin_a, &mem, PLANE_CELLS);
    WEFT_TAKE(work[thread].margin_b, &mem, PLANE_CELLS);
    WEFT_TAKE(work[thread].cells, &mem, PLANE_CELLS);
    WEFT_TAKE(work[thread].work, &mem, PLANE_CELLS);
    WEFT_TAKE(work[thread].masks, &mem, (size_t) (order + 1) * pack->words);
  }
  for (size_t first = 0; first < count; first += batch) {
    const int64_t now = (int64_t) (count - first < batch ? count - first : batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) count));
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(dynamic)
      for (int64_t i = 0; i < now; i++) {
        const size_t at = first + (size_t) i;
        score_tuple(pack, columns + at * (size_t) order, order, w, &out[at]);
      }
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- every attribute by itself ---- */

typedef struct {
  workspace counts;
  uint32_t *levels;
} rank_workspace;

/* Information and entropies of one packed attribute over the rows where it is known, in bits. */
static void rank_one(const weft_mi_pack *pack, size_t j, rank_workspace *w, const weft_mi_rank *out)
{
  const weft_mi_log *f = &pack->f;
  const size_t place = pack->place[j];
  const uint16_t *codes = w->counts.codes;
  const uint32_t mask = 1, levels = pack->levels[place];
  int64_t score;
  weft_mi_pack_codes(pack, place, w->counts.codes);
  const size_t n = weft_mi_coded(&w->counts.coder, pack, &codes, &levels, 1, &mask, 1, &score);
  int64_t attribute = weft_mi_fixed(f, n), classes = attribute;
  memset(w->levels, 0, levels * sizeof *w->levels);
  for (size_t row = 0; row < n; row++) w->levels[codes[w->counts.coder.rows[row]]]++;
  out->levels[j] = out->class_levels[j] = 0;
  for (uint32_t k = 0; k < levels; k++) {
    out->levels[j] += w->levels[k] > 0;
    attribute -= weft_mi_fixed(f, w->levels[k]);
  }
  for (uint32_t c = 0; c < pack->classes; c++) {
    const uint32_t rows = w->counts.coder.class_end[c] - (c ? w->counts.coder.class_end[c - 1] : 0);
    out->class_levels[j] += rows > 0;
    classes -= weft_mi_fixed(f, rows);
  }
  out->mi[j] = weft_mi_bits(score, f->unit, n);
  out->entropy[j] = weft_mi_bits(attribute, f->unit, n);
  out->class_entropy[j] = weft_mi_bits(classes, f->unit, n);
  out->n[j] = (double) n;
  out->missing[j] = pack->missing[j];
}

/* Threads share attributes; polls between batches. */
weft_status weft_mi_pack_rank(weft_ctx *ctx, const weft_mi_pack *pack, const weft_mi_rank *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) pack->p * 2 * (double) pack->n);
  const size_t batch = 1 + (size_t) (1e7 / ((double) pack->n + 100)) * (size_t) threads;
  rank_workspace *work;
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TRY(weft_mi_coder_init(&work[thread].counts.coder, &mem, pack, 1));
    WEFT_TAKE(work[thread].counts.codes, &mem, pack->n);
    WEFT_TAKE(work[thread].levels, &mem, 65536);
  }
  for (size_t first = 0; first < pack->p; first += batch) {
    const int64_t end = (int64_t) (pack->p - first < batch ? pack->p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) pack->p));
    WEFT_PARALLEL_FOR(threads, guided)
    for (int64_t j = (int64_t) first; j < end; j++) rank_one(pack, (size_t) j, &work[WEFT_THREAD()], out);
  }
done:
  weft_arena_end(&mem);
  return st;
}
