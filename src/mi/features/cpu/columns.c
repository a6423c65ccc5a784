/* What the back ends share: plans, the error of the first bad column, and columns that are counted by sorting. */
/* Build: shared. */
#include <string.h>
#include "core/call/arena.h"
#include "mi/mi.h"
#include "mi/features/both/column_score.h"
#include "mi/features/both/columns.h"

weft_mi_code weft_mi_code_plan(const weft_mi_data *data, size_t j)
{
  weft_mi_code code;
  memset(&code, 0, sizeof code);
  code.result = weft_codes_plan(&data->columns[j], data->n, data->na_level, &code.plan);
  if (data->class_levels > 255) code.plan.width = 2;
  if (code.result == WEFT_CODES_OK && (uint64_t) code.plan.levels * data->class_levels > WEFT_MI_TABLE_CELLS)
    code.result = WEFT_CODES_WIDE;
  return code;
}

weft_status weft_mi_check(weft_ctx *ctx, const weft_mi_code *codes, size_t first, size_t count)
{
  for (size_t k = 0; k < count; k++)
    if (codes[k].result != WEFT_CODES_OK && codes[k].result != WEFT_CODES_WIDE)
      return weft_fail_column(ctx, first + k, "%s", weft_codes_problem(codes[k].result));
  return WEFT_OK;
}

/* LSD radix sort by 16 bits; the result is in `x`. */
static void sort_u32(uint32_t *x, uint32_t *other, size_t n)
{
  static const int shifts[2] = { 0, 16 };
  for (int pass = 0; pass < 2; pass++) {
    uint32_t *from = pass ? other : x, *to = pass ? x : other;
    size_t start[65537];
    memset(start, 0, sizeof start);
    for (size_t i = 0; i < n; i++) start[((from[i] >> shifts[pass]) & 65535) + 1]++;
    for (int b = 0; b < 65536; b++) start[b + 1] += start[b];
    for (size_t i = 0; i < n; i++) to[start[(from[i] >> shifts[pass]) & 65535]++] = from[i];
  }
}

/* Adds f(count) to the partial sums of the sum that `index` numbers the cells of, and counts the level. */
static void add_cell(double *partial, int *levels, uint64_t index, size_t count)
{
  double *lane = &partial[index % WEFT_MI_LANES];
  if (!count) return;
  *lane = weft_add(*lane, weft_mi_f((double) count));
  ++*levels;
}

/* Scores attribute j from 16-bit codes. `keys`: 2n words; `margin`: a word per class. */
static void score_sorted(const weft_mi_data *data, const uint16_t *codes, uint32_t *keys, uint32_t *margin,
                         const weft_mi_rank *out, size_t j)
{
  const uint32_t classes = data->class_levels;
  double joint[WEFT_MI_LANES] = { 0 }, attribute[WEFT_MI_LANES] = { 0 }, by_class[WEFT_MI_LANES] = { 0 };
  size_t kept = 0, level_count = 0;
  weft_mi_sums sums = { 0, 0, 0, 0, 0, 0 };
  int cells = 0;
  memset(margin, 0, classes * sizeof *margin);
  for (size_t i = 0; i < data->n; i++) {
    if (codes[i] == WEFT_NA_U16 || data->classes[i] == WEFT_NA_U16) continue;
    keys[kept++] = codes[i] * classes + data->classes[i];
    margin[data->classes[i]]++;
  }
  sort_u32(keys, keys + data->n, kept);
  for (size_t i = 0, run; i < kept; i = run) {
    const uint32_t level = keys[i] / classes;
    for (run = i + 1; run < kept && keys[run] == keys[i];) run++;
    add_cell(joint, &cells, keys[i], run - i);
    level_count += run - i;
    if (run == kept || keys[run] / classes != level) {
      add_cell(attribute, &sums.levels, level, level_count);
      level_count = 0;
    }
  }
  for (uint32_t c = 0; c < classes; c++) add_cell(by_class, &sums.class_levels, c, margin[c]);
  sums.n = (double) kept;
  sums.joint = weft_mi_tree(joint);
  sums.attribute = weft_mi_tree(attribute);
  sums.classes = weft_mi_tree(by_class);
  weft_mi_store(&sums, out, j);
}

/* One column after another, so that room for one is enough; it is taken only when the first wide column is met. */
weft_status weft_mi_rank_wide(weft_ctx *ctx, const weft_mi_data *data, weft_mi_code *codes, size_t first, size_t count,
                              const weft_mi_rank *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = data->n;
  uint16_t *coded = NULL;
  uint32_t *keys = NULL, *margin = NULL;
  for (size_t k = 0; k < count; k++) {
    if (codes[k].result != WEFT_CODES_WIDE) continue;
    WEFT_TRY(weft_poll(ctx, (double) (first + k), (double) data->p));
    if (!coded) {
      WEFT_TAKE(coded, &mem, n);
      WEFT_TAKE(keys, &mem, 2 * n);
      WEFT_TAKE(margin, &mem, data->class_levels);
    }
    codes[k].result =
        weft_encode_wide(&data->columns[first + k], n, data->na_level, &codes[k].plan, coded, (int32_t *) keys);
    WEFT_TRY(weft_mi_check(ctx, &codes[k], first + k, 1));
    out->missing[first + k] = (double) codes[k].plan.missing;
    score_sorted(data, coded, keys, margin, out, first + k);
  }
done:
  weft_arena_end(&mem);
  return st;
}
