/* mi_rank on the CPU. Threads share columns; a column is read once, from memory to score:
 *   two values  -> bit planes -> popcounts against the planes of the classes
 *   few levels  -> byte codes, in pieces that stay in the first-level cache -> planes -> popcounts
 *   else        -> codes -> histogram */
/* Build: shared. */
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "mi/search/search.h"
#include "mi/matrix/both/numeric.h"
#include "mi/networks/network.h"
#include "mi/pairs/both/pairs.h"
#include "mi/matrix/both/counts.h"
#include "mi/features/both/column_score.h"
#include "mi/features/both/columns.h"
#include "mi/transfer/both/transfer.h"

#define PIECE 16384 /* rows coded at a time; a multiple of 64 */
#define PIECE_WORDS (PIECE / 64)
#define BATCH_CELLS 2e7 /* cells that a thread may count between two polls: some 20 ms */

/* The class side and the table of f, made once per call. */
typedef struct {
  const weft_mi_data *data;
  const weft_bits_ops *ops;
  const uint8_t *class_bytes;          /* when class_levels <= 255 */
  const uint64_t *const *class_planes; /* when class_levels <= MAX_PLANES */
  const uint32_t *class_counts;
  const double *f; /* f[k] for k < f_known */
  size_t f_known, words;
} shared;

/* One thread's. */
typedef struct {
  uint64_t *planes;
  uint16_t *codes;
  uint32_t *table, *extra;
} workspace;

#define MAX_PLANES 32

static double f_of(const shared *job, uint32_t k) { return k < job->f_known ? job->f[k] : weft_mi_f((double) k); }

/* Scores column j from table[level * classes + class], with partial sums as column_score.h defines them. */
static void score_table(const shared *job, const uint32_t *table, uint32_t levels, const weft_mi_rank *out, size_t j)
{
  const uint32_t classes = job->data->class_levels;
  double joint[WEFT_MI_LANES] = { 0 }, attribute[WEFT_MI_LANES] = { 0 }, by_class[WEFT_MI_LANES] = { 0 };
  weft_mi_sums sums = { 0, 0, 0, 0, 0, 0 };
  uint64_t n = 0, cell = 0;
  for (uint32_t a = 0; a < levels; a++) {
    uint32_t margin = 0;
    for (uint32_t c = 0; c < classes; c++, cell++) {
      if (!table[cell]) continue;
      joint[cell % WEFT_MI_LANES] = weft_add(joint[cell % WEFT_MI_LANES], f_of(job, table[cell]));
      margin += table[cell];
    }
    if (!margin) continue;
    attribute[a % WEFT_MI_LANES] = weft_add(attribute[a % WEFT_MI_LANES], f_of(job, margin));
    sums.levels++;
    n += margin;
  }
  for (uint32_t c = 0; c < classes; c++) {
    uint32_t margin = 0;
    for (uint32_t a = 0; a < levels; a++) margin += table[(size_t) a * classes + c];
    if (!margin) continue;
    by_class[c % WEFT_MI_LANES] = weft_add(by_class[c % WEFT_MI_LANES], f_of(job, margin));
    sums.class_levels++;
  }
  sums.n = (double) n;
  sums.joint = weft_mi_tree(joint);
  sums.attribute = weft_mi_tree(attribute);
  sums.classes = weft_mi_tree(by_class);
  weft_mi_store(&sums, out, j);
}

/* An integer column of at most two neighbouring values: 1 when it was one, and is counted. */
static int count_binary(const shared *job, const weft_column *x, workspace *w, uint32_t *levels, size_t *missing)
{
  const size_t n = job->data->n, look = n < 256 ? n : 256;
  const uint32_t classes = job->data->class_levels;
  uint64_t *ones = w->planes, *na = w->planes + job->words;
  uint32_t *table = w->table;
  int32_t least, greatest;
  job->ops->scan_i32(x->values, look, &least, &greatest, missing);
  if (least > greatest || !job->ops->scan_pack_binary_i32(x->values, n, least, ones, na, missing)) return 0;
  job->ops->popcount_and_many(ones, job->class_planes, classes, job->words, table + classes);
  if (*missing)
    job->ops->popcount_and_many(na, job->class_planes, classes, job->words, table + 2 * classes);
  else
    memset(table + 2 * classes, 0, classes * sizeof *table);
  for (uint32_t c = 0; c < classes; c++) table[c] = job->class_counts[c] - table[classes + c] - table[2 * classes + c];
  *levels = job->data->na_level ? 3 : 2;
  if (*missing && job->data->na_level &&
      !weft_popcount(ones, job->words)) { /* one value: missing is level 1, as in codes */
    memcpy(table + classes, table + 2 * classes, classes * sizeof *table);
    *levels = 2;
  }
  return 1;
}

/* Popcounts of each level's plane with each class's, for `rows` byte codes from row `first` on. */
static void count_by_planes(const shared *job, const workspace *w, const uint8_t *codes, size_t first, size_t rows,
                            uint32_t levels)
{
  const uint32_t classes = job->data->class_levels;
  const size_t words = weft_plane_words(rows);
  const uint64_t *class_part[MAX_PLANES];
  for (uint32_t c = 0; c < classes; c++) class_part[c] = job->class_planes[c] + first / 64;
  for (uint32_t a = 0; a < levels; a++) {
    job->ops->plane_u8(codes, rows, (uint8_t) a, w->planes);
    job->ops->popcount_and_many(w->planes, class_part, classes, words, w->extra);
    for (uint32_t c = 0; c < classes; c++) w->table[(size_t) a * classes + c] += w->extra[c];
  }
}

static void count_dense(const shared *job, const weft_column *x, const weft_codes *plan, workspace *w)
{
  const weft_mi_data *data = job->data;
  const int by_planes = plan->width == 1 && job->class_planes && plan->levels * (4 + data->class_levels) <= 80;
  for (size_t first = 0; first < data->n; first += PIECE) {
    size_t rows = data->n - first < PIECE ? data->n - first : PIECE;
    weft_encode(x, first, rows, data->na_level, plan, w->codes);
    if (by_planes)
      count_by_planes(job, w, (uint8_t *) w->codes, first, rows, plan->levels);
    else if (plan->width == 1)
      weft_hist_u8((uint8_t *) w->codes, job->class_bytes + first, rows, plan->levels, data->class_levels, w->table);
    else
      weft_hist_u16(w->codes, data->classes + first, rows, plan->levels, data->class_levels, w->table);
  }
}

/* Stored values are counted one by one; the zeros are what is left of each class. */
static void count_sparse(const shared *job, const weft_column *x, const weft_codes *plan, workspace *w)
{
  const weft_mi_data *data = job->data;
  const uint32_t classes = data->class_levels, zero = (uint32_t) -plan->base;
  memcpy(w->extra, job->class_counts, classes * sizeof *w->extra);
  for (size_t first = 0; first < x->stored; first += PIECE) {
    size_t count = x->stored - first < PIECE ? x->stored - first : PIECE;
    weft_encode(x, first, count, data->na_level, plan, w->codes);
    for (size_t i = 0; i < count; i++) {
      uint32_t code = plan->width == 1 ? ((uint8_t *) w->codes)[i] : w->codes[i];
      uint32_t class = data->classes[x->rows[first + i]];
      if (class == WEFT_NA_U16) continue;
      w->extra[class]--;
      if (code < plan->levels) w->table[(size_t) code * classes + class]++;
    }
  }
  if (x->stored < data->n)
    for (uint32_t c = 0; c < classes; c++) w->table[(size_t) zero * classes + c] += w->extra[c];
}

/* Plans, counts and scores column j; a wide one is only planned. */
static weft_mi_code rank_column(const shared *job, size_t j, workspace *w, const weft_mi_rank *out)
{
  const weft_mi_data *data = job->data;
  const weft_column *x = &data->columns[j];
  weft_mi_code code;
  size_t missing;
  uint32_t levels;
  memset(&code, 0, sizeof code);
  if (x->type == WEFT_COLUMN_I32 && job->class_planes && count_binary(job, x, w, &levels, &missing)) {
    out->missing[j] = (double) missing;
    score_table(job, w->table, levels, out, j);
    return code;
  }
  code = weft_mi_code_plan(data, j);
  if (code.result != WEFT_CODES_OK) return code;
  out->missing[j] = (double) code.plan.missing;
  memset(w->table, 0, (size_t) code.plan.levels * data->class_levels * sizeof *w->table);
  if (x->type == WEFT_COLUMN_SPARSE || x->type == WEFT_COLUMN_PATTERN)
    count_sparse(job, x, &code.plan, w);
  else
    count_dense(job, x, &code.plan, w);
  score_table(job, w->table, code.plan.levels, out, j);
  return code;
}

/* What all columns share. */
static weft_status prepare(weft_ctx *ctx, weft_arena *mem, const weft_mi_data *data, shared *job)
{
  weft_status st = WEFT_OK;
  uint8_t *bytes;
  uint32_t *counts;
  double *f;
  uint64_t *planes;
  const uint64_t **each;
  memset(job, 0, sizeof *job);
  job->data = data;
  job->ops = weft_bits();
  job->words = weft_plane_words(data->n);
  WEFT_TAKE0(counts, mem, data->class_levels);
  for (size_t i = 0; i < data->n; i++)
    if (data->classes[i] != WEFT_NA_U16) counts[data->classes[i]]++;
  job->class_counts = counts;
  if (data->class_levels <= 255) {
    WEFT_TAKE(bytes, mem, data->n);
    for (size_t i = 0; i < data->n; i++)
      bytes[i] = data->classes[i] == WEFT_NA_U16 ? WEFT_NA_U8 : (uint8_t) data->classes[i];
    job->class_bytes = bytes;
  }
  if (data->class_levels <= MAX_PLANES) {
    WEFT_TAKE(planes, mem, data->class_levels * job->words);
    WEFT_TAKE(each, mem, data->class_levels);
    for (uint32_t c = 0; c < data->class_levels; c++) {
      each[c] = planes + c * job->words;
      job->ops->plane_u16(data->classes, data->n, (uint16_t) c, planes + c * job->words);
    }
    job->class_planes = each;
  }
  if (data->p >= 64) { /* pays from some dozens of columns on */
    job->f_known = data->n < 65536 ? data->n + 1 : 65536;
    WEFT_TAKE(f, mem, job->f_known);
    for (size_t k = 0; k < job->f_known; k++) f[k] = weft_mi_f((double) k);
    job->f = f;
  }
done:
  (void) ctx;
  return st;
}

/* weft_mi_ops.rank on the CPU: batches of columns, which threads share; between batches it polls and reports the first
 * column that cannot be coded. */
static weft_status rank(weft_ctx *ctx, const weft_mi_data *data, const weft_mi_rank *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int threads = weft_threads_worth(ctx->threads, (double) data->p * ((double) data->n + 100));
  const double per_poll = BATCH_CELLS * threads / (double) (data->n ? data->n : 1);
  const size_t batch = per_poll < threads            ? (size_t) threads
                       : per_poll > (double) data->p ? data->p
                                                     : (size_t) per_poll;
  const size_t words = weft_plane_words(data->n);
  shared job;
  workspace *work;
  weft_mi_code *codes;
  if (!data->p) goto done;
  WEFT_TRY(prepare(ctx, &mem, data, &job));
  WEFT_TAKE(codes, &mem, batch);
  WEFT_TAKE(work, &mem, (size_t) threads);
  for (int thread = 0; thread < threads; thread++) {
    WEFT_TAKE(work[thread].planes, &mem, 2 * words + PIECE_WORDS);
    WEFT_TAKE(work[thread].codes, &mem, PIECE);
    WEFT_TAKE(work[thread].table, &mem, WEFT_MI_TABLE_CELLS);
    WEFT_TAKE(work[thread].extra, &mem, data->class_levels);
  }
  for (size_t first = 0; first < data->p; first += batch) {
    const int64_t count = (int64_t) (data->p - first < batch ? data->p - first : batch);
    WEFT_TRY(weft_poll(ctx, (double) first, (double) data->p));
    WEFT_PARALLEL(threads)
    {
      workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(guided)
      for (int64_t k = 0; k < count; k++) codes[k] = rank_column(&job, first + (size_t) k, w, out);
    }
    WEFT_TRY(weft_mi_check(ctx, codes, first, (size_t) count));
    WEFT_TRY(weft_mi_rank_wide(ctx, data, codes, first, (size_t) count, out));
  }
done:
  weft_arena_end(&mem);
  return st;
}

const weft_mi_ops weft_mi_cpu = { rank,
                                  weft_mi_search_cpu,
                                  weft_mi_full_cpu,
                                  weft_mi_matrix_cpu,
                                  NULL,
                                  weft_mi_numeric_cpu,
                                  weft_network_cpu,
                                  NULL,
                                  NULL,
                                  NULL,
                                  NULL,
                                  weft_transfer_open_cpu,
                                  weft_transfer_pass_cpu,
                                  weft_transfer_close_cpu,
                                  NULL };
