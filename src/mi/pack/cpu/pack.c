/* Packing, see pack/pack.h: one pass to learn the shape of every attribute, one to write its planes. */
/* Build: shared. */
#include <string.h>
#include "core/call/parallel.h"
#include "mi/mi.h"
#include "mi/pack/pack.h"
#include "mi/pack/cpu/genotypes.h"

#define KEYS 512 /* group keys: coded, side (2 bits), missing, planes (5 bits) */
#define BATCH_CELLS 4e7
#define COPIED_WORDS 4e6 /* a thread's, between two polls */
#define BIT_LEVELS 8     /* up to so many codes of a byte are looked at bit plane by bit plane */

/* What the first pass learns of an attribute. used: of codes of a byte, those that occur, a bit each. */
typedef struct {
  weft_codes plan;
  weft_codes_result result;
  uint32_t levels;
  int missing;
  uint64_t used[4];
} shape_of;

/* One thread's buffers: codes as they come, codes made dense. */
typedef struct {
  uint16_t *raw, *dense, *lut;
  int32_t *wide;
  uint64_t *halves, *rows;
} workspace;

static int is_coded(const weft_mi_pack *pack, uint32_t levels)
{
  return levels > WEFT_MI_PLANAR_LEVELS || pack->classes > WEFT_MI_PLANAR_CLASSES;
}

/* ---- rows ---- */

static weft_status sort_rows(weft_arena *mem, const uint16_t *classes, weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  size_t *next;
  WEFT_TAKE0(out->class_rows, mem, out->classes + 1);
  WEFT_TAKE(out->class_word, mem, out->classes + 1);
  WEFT_TAKE(next, mem, out->classes + 1);
  for (size_t i = 0; i < out->rows_in; i++)
    if (classes[i] != WEFT_NA_U16) out->class_rows[classes[i]]++;
  out->n = 0;
  out->words = 0;
  for (uint32_t c = 0; c < out->classes; c++) {
    next[c] = out->n;
    out->class_word[c] = out->words;
    out->n += out->class_rows[c];
    out->words += weft_plane_words(out->class_rows[c]);
  }
  out->class_word[out->classes] = out->words;
  WEFT_TAKE(out->order, mem, out->n);
  for (size_t i = 0; i < out->rows_in; i++)
    if (classes[i] != WEFT_NA_U16) out->order[next[classes[i]]++] = (uint32_t) i;
  weft_arena_drop(mem, next);
done:
  return st;
}

/* Makes the table of f in fixed point. The unit is chosen so that the greatest sum, f of all rows, stays below 2^62. */
static weft_status make_log(weft_arena *mem, weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  int64_t *table;
  double largest = weft_mi_f((double) out->n);
  out->f.shift = 50;
  while (out->f.shift > 0 && largest * (double) ((int64_t) 1 << out->f.shift) >= 4611686018427387904.0) out->f.shift--;
  out->f.unit = 1.0 / (double) ((int64_t) 1 << out->f.shift);
  out->f.known = out->n + 1 < WEFT_MI_LOG_TABLE ? out->n + 1 : WEFT_MI_LOG_TABLE;
  WEFT_TAKE(table, mem, out->f.known);
  for (uint64_t k = 0; k < out->f.known; k++) table[k] = weft_mi_fixed_of(k, out->f.unit);
  out->f.table = table;
  weft_mi_by_class by_class = weft_mi_by_class_of(&out->f, out->per);
  for (uint32_t c = 0; c < out->classes; c++) weft_mi_by_class_add(&by_class, out->class_rows[c]);
  out->class_fixed = by_class.sum;
done:
  return st;
}

/* ---- codes ---- */

/* Codes that need 16 bits, in the input's order, missing as 65535, and how many numbers there may be. */
static weft_codes_result raw_codes(const weft_column *x, size_t n, int na_level, weft_codes *plan, workspace *w)
{
  weft_codes_result result = plan->width ? WEFT_CODES_OK : weft_codes_plan(x, n, na_level, plan);
  if (result == WEFT_CODES_WIDE) return weft_encode_wide(x, n, na_level, plan, w->raw, w->wide);
  if (result != WEFT_CODES_OK) return result;
  weft_encode_all(x, n, na_level, plan, w->raw, w->dense);
  return WEFT_CODES_OK;
}

/* The codes of a column of bytes, as they are where they need no change, else in `room`. */
static const uint8_t *bytes_of(const weft_mi_pack *pack, const weft_column *x, int na_level, const weft_codes *plan,
                               uint8_t *room, uint8_t *scratch)
{
  if (x->type == WEFT_COLUMN_U8 && plan->base == 0) return x->values;
  weft_encode_all(x, pack->rows_in, na_level, plan, room, scratch);
  return room;
}

/* Whether any row that counts has this code. */
static int occurs(const uint8_t *bytes, uint8_t code, const weft_mi_sorter *sorter, uint64_t *rows)
{
  uint64_t any = 0;
  weft_bits()->plane_u8(bytes, sorter->n, code, rows);
  for (size_t k = 0; k < sorter->words; k++) any |= rows[k] & sorter->counting[k];
  return any != 0;
}

/* Codes of a byte: which occur in the rows that count. */
static void learn_bytes(const weft_mi_pack *pack, const weft_column *x, int na_level, const weft_mi_sorter *sorter,
                        shape_of *shape, workspace *w)
{
  uint8_t seen[WEFT_NA_U8 + 1] = { 0 };
  const uint8_t *bytes = bytes_of(pack, x, na_level, &shape->plan, (uint8_t *) w->dense, (uint8_t *) w->raw);
  if (sorter->classes && shape->plan.levels <= BIT_LEVELS) {
    for (uint32_t k = 0; k < shape->plan.levels; k++) seen[k] = (uint8_t) occurs(bytes, (uint8_t) k, sorter, w->rows);
    if (shape->plan.missing) seen[WEFT_NA_U8] = (uint8_t) occurs(bytes, WEFT_NA_U8, sorter, w->rows);
  } else if (pack->n == pack->rows_in)
    for (size_t i = 0; i < pack->n; i++) seen[bytes[i]] = 1;
  else
    for (size_t row = 0; row < pack->n; row++) seen[bytes[pack->order[row]]] = 1;
  shape->missing = seen[WEFT_NA_U8];
  for (uint32_t k = 0; k < shape->plan.levels; k++) {
    shape->used[k / 64] |= (uint64_t) seen[k] << k % 64;
    shape->levels += seen[k];
  }
}

/* Their dense codes, in the order of the pack, missing as 255. Returns where they are. Bytes from 0 are codes already,
 * and are read where they lie. */
static const uint8_t *sort_bytes(const weft_mi_pack *pack, const weft_column *x, int na_level, const shape_of *shape,
                                 workspace *w)
{
  const int as_they_are = x->type == WEFT_COLUMN_U8 && !shape->plan.base;
  uint8_t *bytes = (uint8_t *) w->raw, *sorted = (uint8_t *) w->dense, dense[WEFT_NA_U8 + 1] = { 0 };
  const uint8_t *from = as_they_are ? x->values : bytes;
  const uint32_t *order = pack->order; /* bytes may alias all else: not through the pack */
  const size_t n = pack->n;
  uint8_t level = 0;
  for (uint32_t k = 0; k < shape->plan.levels; k++)
    if (shape->used[k / 64] >> k % 64 & 1) dense[k] = level++;
  dense[WEFT_NA_U8] = WEFT_NA_U8;
  if (!as_they_are) weft_encode_all(x, pack->rows_in, na_level, &shape->plan, bytes, sorted);
  if (level == shape->plan.levels) /* dense already */
    for (size_t row = 0; row < n; row++) sorted[row] = from[order[row]];
  else
    for (size_t row = 0; row < n; row++) sorted[row] = dense[from[order[row]]];
  return sorted;
}

/* lut: dense code of a raw one, over the rows that count. Returns the number of levels that occur. */
static uint32_t make_lut(const weft_mi_pack *pack, uint32_t numbers, workspace *w, int *missing)
{
  uint32_t levels = 0;
  memset(w->lut, 0, numbers * sizeof *w->lut);
  w->lut[WEFT_MI_MISSING] = 0;
  for (size_t row = 0; row < pack->n; row++) w->lut[w->raw[pack->order[row]]] = 1;
  *missing = w->lut[WEFT_MI_MISSING];
  for (uint32_t k = 0; k < numbers; k++) w->lut[k] = w->lut[k] ? (uint16_t) levels++ : 0;
  w->lut[WEFT_MI_MISSING] = WEFT_MI_MISSING;
  return levels;
}

/* Two neighbouring values and no gap: the codes are dense already, and need not be looked at. */
static int plainly_binary(const weft_mi_pack *pack, const shape_of *shape)
{
  return shape->result == WEFT_CODES_OK && shape->plan.width == 1 && shape->plan.levels == 2 && !shape->plan.missing &&
         pack->n == pack->rows_in;
}

/* Genotypes of few classes are turned from two bits into planes directly. */
static int plainly_genotypes(const weft_column *x, const weft_mi_sorter *sorter)
{
  return x->type == WEFT_COLUMN_GENOTYPE && sorter->classes;
}

/* The first pass over a column: its coding, levels and missing values. Genotypes, two integer values and bytes have
 * shorter ways than others. */
static shape_of learn(const weft_mi_pack *pack, const weft_column *x, int na_level, const weft_mi_sorter *sorter,
                      workspace *w)
{
  shape_of shape;
  memset(&shape, 0, sizeof shape);
  if (plainly_genotypes(x, sorter)) {
    shape.levels = weft_mi_genotypes_learn(sorter, x->values, na_level, &shape.missing, &shape.plan.missing);
    return shape;
  }
  shape.result = weft_codes_plan(x, pack->rows_in, na_level, &shape.plan);
  if (plainly_binary(pack, &shape)) {
    shape.levels = 2;
    shape.used[0] = 3;
    return shape;
  }
  if (shape.result == WEFT_CODES_WIDE)
    shape.plan.width = 0;
  else if (shape.result != WEFT_CODES_OK)
    return shape;
  else if (shape.plan.width == 1) {
    learn_bytes(pack, x, na_level, sorter, &shape, w);
    return shape;
  }
  shape.result = raw_codes(x, pack->rows_in, na_level, &shape.plan, w);
  if (shape.result != WEFT_CODES_OK) return shape;
  shape.levels = make_lut(pack, shape.plan.levels, w, &shape.missing);
  return shape;
}

/* ---- planes ---- */

/* The planes of one class after another from byte codes in sorted order. */
static void write_planes(const weft_mi_pack *pack, const weft_mi_group *group, size_t place, const uint8_t *codes)
{
  const weft_bits_ops *ops = weft_bits();
  for (uint32_t q = 0; q < group->shape.planes; q++) {
    const size_t row = weft_mi_plane_row(group, place, q);
    const uint8_t *next = codes;
    for (uint32_t c = 0; c < pack->classes; c++) {
      uint64_t *words = pack->bits + row * pack->words + pack->class_word[c];
      ops->plane_u8(next, pack->class_rows[c], (uint8_t) q, words);
      pack->margins[c * pack->plane_rows + row] =
          (uint32_t) ops->popcount(words, pack->class_word[c + 1] - pack->class_word[c]);
      next += pack->class_rows[c];
    }
  }
}

/* The same from codes in the input's order, two planes at a time. */
static void write_bits(const weft_mi_pack *pack, const weft_mi_group *group, size_t place, const uint8_t *bytes,
                       const shape_of *shape, const weft_mi_sorter *sorter, workspace *w)
{
  uint64_t *rows[2] = { w->rows, w->rows + sorter->words };
  uint32_t code = 0;
  for (uint32_t q = 0; q < group->shape.planes; q += 2) {
    const uint32_t count = group->shape.planes - q < 2 ? 1 : 2;
    uint64_t *planes[2] = { NULL, w->halves };
    for (uint32_t k = 0; k < count; k++) {
      while (code + 1 < shape->plan.levels && !(shape->used[code / 64] >> code % 64 & 1)) code++;
      weft_bits()->plane_u8(bytes, sorter->n, (uint8_t) code++, rows[k]);
      planes[k] = pack->bits + weft_mi_plane_row(group, place, q + k) * pack->words;
    }
    weft_mi_sort_bits(sorter, pack, rows[0], rows[count - 1], planes[0], planes[1]);
    for (uint32_t k = 0; k < count; k++)
      for (uint32_t c = 0; c < pack->classes; c++)
        pack->margins[c * pack->plane_rows + weft_mi_plane_row(group, place, q + k)] =
            (uint32_t) weft_popcount(planes[k] + pack->class_word[c], pack->class_word[c + 1] - pack->class_word[c]);
  }
}

/* The second pass over a column: its planes, or its codes where it has many levels, in the order of the sorted rows. */
static void write_column(const weft_mi_pack *pack, const weft_column *x, int na_level, shape_of *shape, size_t place,
                         const weft_mi_sorter *sorter, workspace *w)
{
  const weft_mi_group *group = &pack->groups[pack->group_of[place]];
  if (!group->coded && !group->shape.planes) return;
  if (plainly_genotypes(x, sorter)) {
    weft_mi_genotypes_write(sorter, pack, x->values, na_level, group, place, w->halves);
    return;
  }
  uint16_t *out = group->coded ? pack->codes + (group->code0 + place - group->first) * pack->n : NULL;
  if (shape->plan.width == 1 && !group->coded && sorter->classes && shape->plan.levels <= BIT_LEVELS) {
    const uint8_t *bytes = bytes_of(pack, x, na_level, &shape->plan, (uint8_t *) w->dense, (uint8_t *) w->raw);
    write_bits(pack, group, place, bytes, shape, sorter, w);
    return;
  }
  if (shape->plan.width == 1) {
    const uint8_t *sorted = sort_bytes(pack, x, na_level, shape, w);
    if (!group->coded)
      write_planes(pack, group, place, sorted);
    else
      for (size_t row = 0; row < pack->n; row++) out[row] = sorted[row] == WEFT_NA_U8 ? WEFT_MI_MISSING : sorted[row];
    return;
  }
  int missing;
  if (shape->plan.width == 2) shape->plan.width = 0; /* plan again: a wide column is coded differently */
  raw_codes(x, pack->rows_in, na_level, &shape->plan, w);
  make_lut(pack, shape->plan.levels, w, &missing);
  if (group->coded) {
    for (size_t row = 0; row < pack->n; row++) out[row] = w->lut[w->raw[pack->order[row]]];
  } else {
    uint8_t *sorted = (uint8_t *) w->dense;
    for (size_t row = 0; row < pack->n; row++)
      sorted[row] = (uint8_t) w->lut[w->raw[pack->order[row]]]; /* missing: 255 */
    write_planes(pack, group, place, sorted);
  }
}

/* ---- groups ---- */

static uint32_t key_of(const weft_mi_pack *pack, uint32_t levels, int missing, int side)
{
  const uint32_t coded = (uint32_t) is_coded(pack, levels);
  const uint32_t planes = coded ? 0 : levels - !missing;
  return coded << 8 | (uint32_t) side << 6 | (uint32_t) (coded || missing) << 5 | planes;
}

/* Groups and places from levels, missing and side of every attribute 0 .. p-1; `columns` are their column numbers.
 * An attribute without any known value gets one level, which no row has: tables and buffers are sized by products of
 * levels, and no factor of such a product may be 0. */
static weft_status make_groups(weft_arena *mem, weft_mi_pack *out, uint32_t *levels, const uint8_t *missing,
                               const uint8_t *side, const uint32_t *columns)
{
  weft_status st = WEFT_OK;
  size_t start[KEYS + 1] = { 0 }, planes = 0, coded = 0;
  for (size_t j = 0; j < out->p; j++) {
    if (!levels[j]) levels[j] = 1;
    start[key_of(out, levels[j], missing[j], side ? side[j] : 3) + 1]++;
  }
  out->group_count = 0;
  for (int k = 0; k < KEYS; k++) out->group_count += start[k + 1] > 0;
  WEFT_TAKE(out->groups, mem, out->group_count);
  WEFT_TAKE(out->column, mem, out->p);
  WEFT_TAKE(out->place, mem, out->columns);
  WEFT_TAKE(out->group_of, mem, out->p);
  WEFT_TAKE(out->levels, mem, out->p);
  for (uint32_t k = 0, at = 0; k < KEYS; k++) {
    const size_t count = start[k + 1];
    start[k + 1] += start[k];
    if (!count) continue;
    weft_mi_group *group = &out->groups[at];
    group->shape.planes = k & 31;
    group->shape.missing = k >> 5 & 1;
    group->side = (int) (k >> 6 & 3);
    group->coded = (int) (k >> 8);
    group->first = start[k];
    group->count = count;
    group->plane0 = planes;
    group->code0 = coded;
    planes += count * group->shape.planes;
    if (group->coded) coded += count;
    for (size_t member = 0; member < count; member++) out->group_of[group->first + member] = at;
    at++;
  }
  out->plane_rows = planes;
  for (size_t j = 0; j < out->p; j++) {
    const size_t place = start[key_of(out, levels[j], missing[j], side ? side[j] : 3)]++;
    out->column[place] = columns ? columns[j] : (uint32_t) j;
    out->place[out->column[place]] = (uint32_t) place;
    out->levels[place] = levels[j];
    out->groups[out->group_of[place]].shape.levels = levels[j];
  }
  WEFT_TAKE0(out->margins, mem, planes * out->classes + WEFT_MI_TILE); /* vectors read past the end */
  WEFT_TAKE(out->codes, mem, coded * out->n);
done:
  return st;
}

/* ---- entry points ---- */

weft_status weft_mi_pack_begin(weft_arena *mem, const weft_mi_classes *classes, size_t p, size_t n, weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  memset(out, 0, sizeof *out);
  out->p = out->columns = p;
  out->rows_in = n;
  out->classes = classes->levels;
  out->per = classes->per;
  WEFT_TRY(sort_rows(mem, classes->codes, out));
  WEFT_TRY(make_log(mem, out));
  WEFT_TAKE(out->missing, mem, p);
done:
  return st;
}

weft_status weft_mi_pack_group(weft_arena *mem, uint32_t *levels, const uint8_t *missing, weft_mi_pack *out)
{
  return make_groups(mem, out, levels, missing, NULL, NULL);
}

int weft_mi_pack_plantable(const weft_column *columns, size_t p, const weft_mi_classes *classes)
{
  for (size_t j = 0; j < p; j++)
    if (columns[j].type != WEFT_COLUMN_GENOTYPE) return 0;
  return p > 0 && classes->levels > 0 && classes->levels <= WEFT_MI_SORTED_CLASSES;
}

/* Two passes over the columns, threads sharing them: the first learns shapes, from which groups and their places
 * follow; the second writes. An error names the first bad column. */
weft_status weft_mi_pack_build(weft_ctx *ctx, weft_arena *mem, const weft_column *columns, size_t p, size_t n,
                               const weft_mi_classes *classes, int na_level, weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, 2.0 * (double) p * (double) n);
  const double per_poll = BATCH_CELLS * threads / (double) (n ? n : 1);
  const size_t batch = per_poll < threads ? (size_t) threads : per_poll > (double) p ? (p ? p : 1) : (size_t) per_poll;
  shape_of *shapes;
  workspace *work;
  uint32_t *levels;
  uint8_t *missing;
  weft_mi_sorter sorter;
  WEFT_TRY(weft_mi_pack_begin(mem, classes, p, n, out));
  WEFT_TAKE(shapes, &own, p);
  WEFT_TAKE(levels, &own, p);
  WEFT_TAKE(missing, &own, p);
  WEFT_TRY(weft_mi_sorter_make(&own, out, columns, p, classes->codes, &sorter));
  WEFT_TAKE(work, &own, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].halves, &own, sorter.classes ? 2 * out->words : 0);
    WEFT_TAKE(work[thread].rows, &own, 2 * sorter.words);
    WEFT_TAKE(work[thread].raw, &own, n);
    WEFT_TAKE(work[thread].dense, &own, n + 1);
    WEFT_TAKE(work[thread].lut, &own, 65536);
    WEFT_TAKE(work[thread].wide, &own, 2 * n + 2);
  }
  for (int pass = 0; pass < 2; pass++) {
    for (size_t first = 0; first < p; first += batch) {
      const int64_t count = (int64_t) (p - first < batch ? p - first : batch);
      WEFT_TRY(weft_poll(ctx, (double) first + (double) p * pass, 2.0 * (double) p));
      WEFT_PARALLEL(threads)
      {
        workspace *w = &work[WEFT_THREAD()];
        WEFT_FOR(guided)
        for (int64_t k = 0; k < count; k++) {
          const size_t j = first + (size_t) k;
          if (pass)
            write_column(out, &columns[j], na_level, &shapes[j], out->place[j], &sorter, w);
          else
            shapes[j] = learn(out, &columns[j], na_level, &sorter, w);
        }
      }
      for (size_t j = first; !pass && j < first + (size_t) count; j++)
        if (shapes[j].result != WEFT_CODES_OK) {
          st = weft_fail_column(ctx, j, "%s", weft_codes_problem(shapes[j].result));
          goto done;
        }
    }
    if (pass) break;
    for (size_t j = 0; j < p; j++) {
      levels[j] = shapes[j].levels;
      missing[j] = (uint8_t) shapes[j].missing;
      out->missing[j] = (double) shapes[j].plan.missing;
    }
    WEFT_TRY(weft_mi_pack_group(mem, levels, missing, out));
    WEFT_TAKE(out->bits, mem, out->plane_rows * out->words);
  }
done:
  weft_arena_end(&own);
  return st;
}

/* Copies of what planes say, with bit `from[r]` at the place of sorted row r. */
static void move_bits(const weft_mi_pack *in, weft_mi_pack *out, size_t row, const uint32_t *from)
{
  const uint64_t *old = in->bits + row * in->words;
  for (uint32_t c = 0; c < in->classes; c++) {
    uint64_t *words = out->bits + row * in->words + in->class_word[c];
    uint32_t total = 0;
    for (size_t done = 0; done < in->class_rows[c];
         from += 64 < in->class_rows[c] - done ? 64 : in->class_rows[c] - done, done += 64) {
      const size_t count = in->class_rows[c] - done < 64 ? in->class_rows[c] - done : 64;
      uint64_t word = 0;
      for (size_t k = 0; k < count; k++) word |= (old[from[k] >> 6] >> (from[k] & 63) & 1) << k;
      words[done / 64] = word;
    }
    total = (uint32_t) weft_popcount(words, in->class_word[c + 1] - in->class_word[c]);
    out->margins[c * in->plane_rows + row] = total;
  }
}

/* Finds for every sorted row where its bit comes from, then moves the bits of all planes and the codes. Rows keep their
 * order within a class. */
weft_status weft_mi_pack_permute(weft_ctx *ctx, weft_arena *mem, const weft_mi_pack *in, const uint32_t *perm,
                                 weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  uint32_t *bit, *class_of, *from, *source;
  size_t *next, coded = 0;
  if (!out->bits) {
    *out = *in;
    out->bits = NULL;
    for (size_t group = 0; group < in->group_count; group++)
      if (in->groups[group].coded) coded += in->groups[group].count;
    WEFT_TAKE(out->codes, mem, coded * in->n);
    WEFT_TAKE0(out->margins, mem, in->plane_rows * in->classes + WEFT_MI_TILE);
    WEFT_TAKE(out->bits, mem, in->plane_rows * in->words);
  }
  WEFT_TAKE(bit, &own, in->n);
  WEFT_TAKE(class_of, &own, in->n);
  WEFT_TAKE(from, &own, in->n);
  WEFT_TAKE(source, &own, in->n);
  WEFT_TAKE(next, &own, in->classes + 1);
  for (size_t c = 0, row = 0; c < in->classes; c++) {
    next[c] = row;
    for (size_t k = 0; k < in->class_rows[c]; k++, row++) {
      bit[row] = (uint32_t) (in->class_word[c] * 64 + k);
      class_of[row] = (uint32_t) c;
    }
  }
  for (size_t row = 0; row < in->n; row++) {
    const size_t to = next[class_of[perm[row]]]++;
    from[to] = bit[row];
    source[to] = (uint32_t) row;
  }
  for (size_t first = 0, batch = 1 + (size_t) (BATCH_CELLS * ctx->threads / (double) (in->n + 1));
       first < in->plane_rows; first += batch) {
    const int64_t count = (int64_t) (in->plane_rows - first < batch ? in->plane_rows - first : batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) in->plane_rows));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) count * (double) in->n), static)
    for (int64_t k = 0; k < count; k++) move_bits(in, out, first + (size_t) k, from);
  }
  for (size_t group = 0; group < in->group_count; group++) {
    if (!in->groups[group].coded) continue;
    for (size_t member = 0; member < in->groups[group].count; member++) {
      const size_t at = (in->groups[group].code0 + member) * in->n;
      for (size_t row = 0; row < in->n; row++) out->codes[at + row] = in->codes[at + source[row]];
    }
  }
done:
  weft_arena_end(&own);
  return st;
}

/* Groups and margins of the chosen attributes, and, for every row of planes, the row of `in` that it is. */
static weft_status choose(weft_arena *mem, const weft_mi_pack *in, const uint8_t *side, weft_mi_pack *out,
                          size_t **rows)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(mem->ctx);
  uint32_t *levels, *columns;
  uint8_t *missing, *sides;
  WEFT_TAKE(levels, &own, in->p);
  WEFT_TAKE(columns, &own, in->p);
  WEFT_TAKE(missing, &own, in->p);
  WEFT_TAKE(sides, &own, in->p);
  *out = *in;
  out->p = 0;
  for (size_t j = 0; j < in->columns; j++) {
    if (!side[j]) continue;
    const size_t place = in->place[j];
    levels[out->p] = in->levels[place];
    missing[out->p] = (uint8_t) in->groups[in->group_of[place]].shape.missing;
    columns[out->p] = (uint32_t) j;
    sides[out->p++] = side[j];
  }
  WEFT_TRY(make_groups(mem, out, levels, missing, sides, columns));
  WEFT_TAKE(*rows, mem, out->plane_rows);
  for (size_t place = 0; place < out->p; place++) {
    const size_t old = in->place[out->column[place]];
    const weft_mi_group *to = &out->groups[out->group_of[place]], *from = &in->groups[in->group_of[old]];
    if (to->coded)
      memcpy(out->codes + (to->code0 + place - to->first) * in->n,
             in->codes + (from->code0 + old - from->first) * in->n, in->n * sizeof *in->codes);
    for (uint32_t q = 0; q < to->shape.planes; q++) {
      const size_t row = weft_mi_plane_row(to, place, q), old_row = weft_mi_plane_row(from, old, q);
      (*rows)[row] = old_row;
      for (uint32_t c = 0; c < in->classes; c++)
        out->margins[c * out->plane_rows + row] = in->margins[c * in->plane_rows + old_row];
    }
  }
done:
  weft_arena_end(&own);
  return st;
}

/* Copies the planes of the chosen attributes on all threads, or fetches them from the device that has them. */
weft_status weft_mi_pack_select(weft_ctx *ctx, weft_arena *mem, const weft_mi_pack *in, const uint8_t *side,
                                weft_mi_pack *out)
{
  weft_status st = WEFT_OK;
  size_t *rows, batch;
  WEFT_TRY(choose(mem, in, side, out, &rows));
  WEFT_TAKE(out->bits, mem, out->plane_rows * in->words);
  if (in->away.at) {
    memset(&out->away, 0, sizeof out->away);
    st = in->away.ops->planes(ctx, in, rows, out->plane_rows, out->bits);
    goto done;
  }
  batch = 1 + (size_t) (COPIED_WORDS * ctx->threads / (double) (in->words + 1));
  for (size_t first = 0; first < out->plane_rows; first += batch) {
    const size_t count = out->plane_rows - first < batch ? out->plane_rows - first : batch;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) out->plane_rows));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) count * (double) in->words), static)
    for (int64_t k = 0; k < (int64_t) count; k++) {
      const size_t row = first + (size_t) k;
      memcpy(out->bits + row * in->words, in->bits + rows[row] * in->words, in->words * sizeof *in->bits);
    }
  }
done:
  return st;
}

weft_status weft_mi_pack_view(weft_arena *mem, const weft_mi_pack *in, const uint8_t *side, weft_mi_pack *out)
{
  size_t *rows = NULL;
  const weft_status st = choose(mem, in, side, out, &rows);
  out->rows = rows;
  return st;
}

/* Reads codes back from planes: all rows begin as the level without a plane (or as missing), then each plane's bits set
 * theirs. */
void weft_mi_pack_codes(const weft_mi_pack *pack, size_t place, uint16_t *out)
{
  const weft_mi_group *group = &pack->groups[pack->group_of[place]];
  if (group->coded) {
    memcpy(out, pack->codes + (group->code0 + place - group->first) * pack->n, pack->n * sizeof *out);
    return;
  }
  for (size_t row = 0; row < pack->n; row++)
    out[row] = group->shape.missing ? WEFT_MI_MISSING : (uint16_t) group->shape.planes;
  for (uint32_t q = 0; q < group->shape.planes; q++) {
    const uint64_t *plane = pack->bits + weft_mi_plane_row(group, place, q) * pack->words;
    uint16_t *next = out;
    for (uint32_t c = 0; c < pack->classes; c++) {
      const uint64_t *words = plane + pack->class_word[c];
      for (size_t w = 0; w < pack->class_word[c + 1] - pack->class_word[c]; w++)
        for (uint64_t left = words[w]; left; left &= left - 1)
          next[w * 64 + (size_t) __builtin_ctzll(left)] = (uint16_t) q;
      next += pack->class_rows[c];
    }
  }
}
