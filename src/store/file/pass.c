/* What reads every block: sums, and any rows and columns as compressed columns; see store.h. Several blocks are decoded
 * at once, one per thread, and then put where they belong in their order, so that threads change nothing. Memory: these
 * blocks in bytes and decoded, beside the result. */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "store/file/read.h"
#include "store/file/blocks_parallel.h"
#include "store/file/pass.h"

/* Sums over rows are taken in this many runs of columns, each by one thread, and added in order. */
#define RUNS 16
#define VALUES_TOGETHER ((uint64_t) 1 << 19) /* of each thread, that are decoded at once, unless one block has more */

/* Which chosen rows lie in a block: places first .. first + count - 1 of the choice. */
typedef struct {
  size_t first, count;
  int all;
} chosen_rows;

static size_t first_not_below(const double *rows, size_t count, double bound)
{
  size_t low = 0, high = count;
  while (low < high) {
    const size_t mid = low + (high - low) / 2;
    if (rows[mid] < bound)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static chosen_rows rows_in(const weft_store_choice *choice, const weft_store_block *block)
{
  chosen_rows in = { (size_t) block->first, (size_t) block->rows, 1 };
  if (!choice->rows) return in;
  in.first = first_not_below(choice->rows, choice->row_count, (double) block->first);
  in.count = first_not_below(choice->rows, choice->row_count, (double) (block->first + block->rows)) - in.first;
  in.all = in.count == block->rows;
  return in;
}

/* place[row in the block] = place among the choice's, or -1 */
static void map_rows(const weft_store_choice *choice, const weft_store_block *block, chosen_rows in, int32_t *place)
{
  for (size_t i = 0; i < block->rows; i++) place[i] = in.all ? (int32_t) (in.first + i) : -1;
  if (in.all) return;
  for (size_t i = 0; i < in.count; i++)
    place[(size_t) choice->rows[in.first + i] - block->first] = (int32_t) (in.first + i);
}

static size_t column_at(const weft_store_choice *choice, size_t place)
{
  return choice->columns ? (size_t) choice->columns[place] : place;
}

static double dressed(const weft_store_recipe *recipe, uint64_t row, double v)
{
  if (recipe->size) v /= recipe->size[row];
  return recipe->log1p ? log1p(v) : v;
}

/* ---- blocks, some at once ---- */

/* A block decoded: rows in the block and values (as the recipe has them) of the entries of chosen columns, or, where
 * all its rows are chosen, these in their places among a selection's; place: map_rows(), or NULL then. */
typedef struct {
  size_t index;
  weft_arena mem;
  weft_store_view view;
  weft_store_decoding to;
  int32_t *place;
  double *known; /* what the recipe makes of the first whole numbers, by rows; or NULL */
} decoded;

typedef struct {
  const weft_store *store;
  const weft_store_choice *choice;
  const weft_store_recipe *recipe; /* NULL: values are not looked at */
  weft_ctx *ctx;                   /* to which the blocks' memory belongs */
  int in_place;                    /* what is decoded needs no room of its own */
  weft_arena keep;                 /* until the pass ends: new pages would take longer than decoding into them */
  int32_t *rows;
  double *values;
  size_t room, count;
  decoded block[WEFT_STORE_TOGETHER];
} batch;

/* Logarithms take longer than all else. Most values of a row are small whole numbers, whose results are there first. */
#define KNOWN 8

static weft_status know_values(const batch *all, decoded *unpacked)
{
  weft_status st = WEFT_OK;
  const uint64_t rows = unpacked->view.block->rows, first = unpacked->view.block->first;
  if (!all->recipe || !all->recipe->log1p || unpacked->view.block->values <= KNOWN * rows) goto done;
  WEFT_TAKE(unpacked->known, &unpacked->mem, KNOWN * (size_t) rows);
  for (size_t row = 0; row < rows; row++) {
    if (unpacked->place && unpacked->place[row] < 0) continue;
    for (int v = 1; v <= KNOWN; v++)
      unpacked->known[KNOWN * row + (size_t) v - 1] = dressed(all->recipe, first + row, v);
  }
done:
  return st;
}

/* The values of the chosen column at `place` as the recipe has them. */
static void dress_column(const batch *all, const decoded *unpacked, size_t place)
{
  const uint64_t first = unpacked->view.block->first;
  const size_t c = column_at(all->choice, place), shift = unpacked->to.shift ? unpacked->to.shift[place] : 0;
  const int32_t *rows = unpacked->to.rows + shift;
  double *values = unpacked->to.values + shift;
  for (size_t at = unpacked->view.starts[c]; at < unpacked->view.starts[c + 1]; at++) {
    const size_t row = (size_t) (rows[at] - unpacked->to.base);
    const double v = values[at];
    if (unpacked->place && unpacked->place[row] < 0) continue;
    const int there = unpacked->known && v >= 1 && v <= KNOWN && v == (double) (int) v;
    values[at] = there ? unpacked->known[KNOWN * row + (size_t) v - 1] : dressed(all->recipe, first + row, v);
  }
}

/* Loads a block. */
static weft_status load_one(weft_ctx *ctx, size_t item, void *data)
{
  weft_status st = WEFT_OK;
  batch *all = data;
  decoded *unpacked = &all->block[item];
  const weft_store_block *block = &all->store->block[unpacked->index];
  unpacked->mem.ctx = ctx;
  WEFT_TRY(weft_poll(ctx, (double) block->first, (double) all->store->n));
  WEFT_TRY(weft_store_load(ctx, all->store, unpacked->index, &unpacked->mem, &unpacked->view));
  unpacked->to.view = &unpacked->view;
  if (!all->in_place) {
    WEFT_TAKE(unpacked->place, &unpacked->mem, (size_t) block->rows);
    map_rows(all->choice, block, rows_in(all->choice, block), unpacked->place);
  }
  st = know_values(all, unpacked);
done:
  unpacked->mem.ctx = all->ctx;
  return st;
}

/* Some columns of a block: while they are in a cache, as the recipe has them. */
static int decode_group(const batch *all, const decoded *unpacked, size_t first, size_t last)
{
  if (!weft_store_decode(&unpacked->to, all->choice->columns, first, last)) return 0;
  if (all->recipe && (all->recipe->size || all->recipe->log1p))
    for (size_t place = first; place < last; place++) dress_column(all, unpacked, place);
  return 1;
}

/* All blocks that are loaded, with all threads at a time. */
static weft_status decode_batch(weft_ctx *ctx, batch *all)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t columns = all->choice->column_count, groups = (columns + WEFT_STORE_GROUP - 1) / WEFT_STORE_GROUP;
  double values = 0;
  uint8_t *sound;
  if (all->count) WEFT_TRY(weft_poll(ctx, (double) all->block[0].view.block->first, (double) all->store->n));
  for (size_t i = 0; i < all->count; i++) values += (double) all->block[i].view.block->values;
  const int threads = weft_threads_worth(ctx->threads, 5 * values);
  WEFT_TAKE(sound, &mem, all->count * groups + 1);
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t i = 0; i < (int64_t) (all->count * groups); i++) {
    const size_t first = (size_t) i % groups * WEFT_STORE_GROUP, left = columns - first,
                 last = first + (left < WEFT_STORE_GROUP ? left : WEFT_STORE_GROUP);
    sound[i] = (uint8_t) decode_group(all, &all->block[(size_t) i / groups], first, last);
  }
  for (size_t i = 0; i < all->count * groups && st == WEFT_OK; i++)
    if (!sound[i])
      st = weft_store_damaged(ctx, all->store, all->block[i / groups].index, "has an entry outside of its rows");
done:
  weft_arena_end(&mem);
  return st;
}

static void end_batch(batch *all)
{
  for (size_t i = 0; i < all->count; i++) weft_arena_end(&all->block[i].mem);
  all->count = 0;
}

static batch begin_pass(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                        const weft_store_recipe *recipe)
{
  const batch all = { .store = store, .choice = choice, .recipe = recipe, .ctx = ctx, .keep = weft_arena_begin(ctx) };
  return all;
}

static void end_pass(batch *all)
{
  end_batch(all);
  weft_arena_end(&all->keep);
}

/* Makes room for `values` decoded values in all blocks of a batch together. */
static weft_status give_room(batch *all, size_t values)
{
  weft_status st = WEFT_OK;
  if (values > all->room) {
    weft_arena_end(&all->keep);
    all->room = 0;
    WEFT_TAKE(all->rows, &all->keep, values);
    WEFT_TAKE(all->values, &all->keep, values);
    all->room = values;
  }
  for (size_t i = 0, at = 0; i < all->count; at += (size_t) all->store->block[all->block[i++].index].values) {
    all->block[i].to.rows = all->rows + at;
    all->block[i].to.values = all->values + at;
  }
done:
  return st;
}

static void add_block(weft_ctx *ctx, batch *all, size_t index)
{
  decoded *unpacked = &all->block[all->count++];
  memset(unpacked, 0, sizeof *unpacked);
  unpacked->index = index;
  unpacked->mem = weft_arena_begin(ctx);
}

/* Decodes the next blocks from *next on that have chosen rows; none is left when all->count is 0. */
static weft_status next_batch(weft_ctx *ctx, batch *all, size_t *next)
{
  weft_status st = WEFT_OK;
  uint64_t values = 0;
  for (all->count = 0; *next < all->store->blocks && all->count < WEFT_STORE_TOGETHER; ++*next) {
    const weft_store_block *block = &all->store->block[*next];
    if (!rows_in(all->choice, block).count) continue;
    if (all->count && values + block->values > VALUES_TOGETHER * (uint64_t) ctx->threads) break;
    values += block->values;
    add_block(ctx, all, *next);
  }
  WEFT_TRY(give_room(all, (size_t) values + 1));
  WEFT_TRY(weft_store_together(ctx, all->count, 10.0 * (double) values, load_one, all));
  st = decode_batch(ctx, all);
done:
  return st;
}

/* ---- sums ---- */

typedef struct {
  double *rows, *counts, least, greatest;
} run_sums; /* of one run of columns */

/* Chosen columns at places from .. to - 1. */
static void sum_run(const decoded *unpacked, const weft_store_choice *choice, size_t from, size_t to,
                    const weft_store_sums *out, run_sums *run)
{
  for (size_t j = from; j < to; j++) {
    const size_t c = column_at(choice, j);
    double sum = 0;
    for (size_t at = unpacked->view.starts[c]; at < unpacked->view.starts[c + 1]; at++) {
      const double v = unpacked->to.values[at];
      if (isnan(v) && out->skip_missing) continue;
      sum += v;
      run->rows[unpacked->to.rows[at]] += v;
      run->counts[unpacked->to.rows[at]]++;
      if (!(v >= run->least)) run->least = isnan(v) ? run->least : v;
      if (!(v <= run->greatest)) run->greatest = isnan(v) ? run->greatest : v;
      out->column_counts[j]++;
    }
    out->columns[j] += sum;
  }
}

/* Adds one decoded block to the sums. Its columns are cut into RUNS runs, each with sums of rows of its own, added in
 * order: the result does not depend on threads. `range` widens. */
static weft_status sum_block(weft_ctx *ctx, const weft_store_choice *choice, const decoded *unpacked,
                             const weft_store_sums *out, double range[2])
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_store_block *block = unpacked->view.block;
  run_sums run[RUNS];
  double *sums;
  WEFT_TAKE0(sums, &mem, 2 * RUNS * (size_t) block->rows);
  const int threads = weft_threads_worth(ctx->threads, 4.0 * (double) block->values);
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int r = 0; r < RUNS; r++) {
    const run_sums mine = { sums + 2 * (size_t) r * block->rows, sums + (2 * (size_t) r + 1) * block->rows, INFINITY,
                            -INFINITY };
    run[r] = mine;
    sum_run(unpacked, choice, choice->column_count * (size_t) r / RUNS, choice->column_count * ((size_t) r + 1) / RUNS,
            out, &run[r]);
  }
  for (int r = 0; r < RUNS; r++) {
    for (size_t i = 0; i < block->rows; i++) {
      out->rows[block->first + i] += run[r].rows[i];
      out->row_counts[block->first + i] += run[r].counts[i];
    }
    range[0] = fmin(range[0], run[r].least);
    range[1] = fmax(range[1], run[r].greatest);
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* One pass over all blocks, several decoded at a time and added in the order of the file. */
weft_status weft_store_sum(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                           const weft_store_recipe *recipe, const weft_store_sums *out, double range[2])
{
  weft_status st = WEFT_OK;
  batch all = begin_pass(ctx, store, choice, recipe);
  size_t next = 0;
  memset(out->columns, 0, choice->column_count * sizeof(double));
  memset(out->column_counts, 0, choice->column_count * sizeof(double));
  memset(out->rows, 0, store->n * sizeof(double));
  memset(out->row_counts, 0, store->n * sizeof(double));
  range[0] = INFINITY;
  range[1] = -INFINITY;
  do {
    WEFT_TRY(next_batch(ctx, &all, &next));
    for (size_t i = 0; i < all.count; i++) WEFT_TRY(sum_block(ctx, choice, &all.block[i], out, range));
    end_batch(&all);
  } while (next < store->blocks);
done:
  end_pass(&all);
  return st;
}

/* ---- sums by groups of rows ---- */

static void add_column(const decoded *unpacked, const weft_store_groups *to, size_t j)
{
  const int32_t *of = to->of + unpacked->view.block->first;
  double *sums = to->sums + j * to->count;
  double *squares = to->squares ? to->squares + j * to->count : NULL;
  double *cubes = to->squares ? to->cubes + j * to->count : NULL;
  for (size_t at = unpacked->view.starts[j]; at < unpacked->view.starts[j + 1]; at++) {
    const int32_t group = of[unpacked->to.rows[at]];
    const double v = unpacked->to.values[at];
    if (group <= 0) continue;
    sums[group - 1] += to->seen ? 1 : v;
    if (!squares) continue;
    squares[group - 1] += v * v;
    cubes[group - 1] += v * v * v;
  }
}

/* One pass over all blocks; threads share the columns, and each adds the blocks of a batch in order. */
weft_status weft_store_sum_groups(weft_ctx *ctx, const weft_store *store, const weft_store_recipe *recipe,
                                  const weft_store_groups *groups, size_t count)
{
  weft_status st = WEFT_OK;
  const weft_store_choice whole = { .row_count = (size_t) store->n, .column_count = (size_t) store->p };
  batch all = begin_pass(ctx, store, &whole, recipe);
  size_t next = 0;
  for (size_t g = 0; g < count; g++) {
    const size_t bytes = groups[g].count * (size_t) store->p * sizeof(double);
    memset(groups[g].sums, 0, bytes);
    if (!groups[g].squares) continue;
    memset(groups[g].squares, 0, bytes);
    memset(groups[g].cubes, 0, bytes);
  }
  while (next < store->blocks) {
    double values = 0;
    WEFT_TRY(next_batch(ctx, &all, &next));
    for (size_t i = 0; i < all.count; i++) values += (double) all.block[i].view.block->values;
    const int threads = weft_threads_worth(ctx->threads, 2 * values);
    WEFT_PARALLEL_FOR(threads, guided)
    for (int64_t j = 0; j < (int64_t) store->p; j++)
      for (size_t i = 0; i < all.count; i++)
        for (size_t g = 0; g < count; g++) add_column(&all.block[i], &groups[g], (size_t) j);
    end_batch(&all);
  }
done:
  end_pass(&all);
  return st;
}

/* ---- any rows and columns ---- */

/* The head of a block whose rows are all chosen says how many entries its columns have. */
static weft_status count_whole(weft_ctx *ctx, const weft_store *store, size_t index, const weft_store_choice *choice,
                               double *counts)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_store_view view;
  WEFT_TRY(weft_poll(ctx, 0, 0));
  WEFT_TRY(weft_store_load_counts(ctx, store, index, &mem, &view));
  for (size_t j = 0; j < choice->column_count; j++) {
    const size_t c = column_at(choice, j);
    counts[j] += view.starts[c + 1] - view.starts[c];
  }
done:
  weft_arena_end(&mem);
  return st;
}

static void count_some(const weft_store_choice *choice, const decoded *unpacked, double *counts)
{
  for (size_t j = 0; j < choice->column_count; j++) {
    const size_t c = column_at(choice, j);
    for (size_t at = unpacked->view.starts[c]; at < unpacked->view.starts[c + 1]; at++)
      counts[j] += unpacked->place[unpacked->to.rows[at]] >= 0;
  }
}

/* Blocks of which all rows are wanted tell their counts without being decoded, blocks without a wanted row are skipped,
 * others are decoded. */
weft_status weft_store_count(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice, double *starts)
{
  weft_status st = WEFT_OK;
  batch all = begin_pass(ctx, store, choice, NULL);
  memset(starts, 0, (choice->column_count + 1) * sizeof *starts);
  for (size_t k = 0; k < store->blocks;) {
    const chosen_rows in = rows_in(choice, &store->block[k]);
    if (in.all || !in.count) {
      if (in.all) WEFT_TRY(count_whole(ctx, store, k, choice, starts + 1));
      k++;
      continue;
    }
    WEFT_TRY(next_batch(ctx, &all, &k));
    for (size_t i = 0; i < all.count; i++) count_some(choice, &all.block[i], starts + 1);
    end_batch(&all);
  }
  for (size_t j = 0; j < choice->column_count; j++) starts[j + 1] += starts[j];
done:
  end_pass(&all);
  return st;
}

typedef struct {
  const double *starts;
  size_t *next; /* where a column's next entry goes */
  int32_t *rows;
  double *values;
} selection;

/* The chosen column at `place`: 0 where it has more entries than were counted. */
static int copy_column(const selection *to, const weft_store_choice *choice, const decoded *unpacked, size_t place)
{
  const size_t c = column_at(choice, place), end = (size_t) to->starts[place + 1];
  size_t next = to->next[place];
  for (size_t at = unpacked->view.starts[c]; at < unpacked->view.starts[c + 1]; at++) {
    const int32_t row = unpacked->place[unpacked->to.rows[at]];
    if (row < 0) continue;
    if (next >= end) return 0;
    to->rows[next] = row;
    to->values[next++] = unpacked->to.values[at];
  }
  to->next[place] = next;
  return 1;
}

/* Copies the wanted rows of a decoded batch to the result, column by column on all threads. Fails where there are more
 * entries than were counted: the file has changed. */
static weft_status copy_batch(weft_ctx *ctx, const batch *all, const selection *to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const int64_t columns = (int64_t) all->choice->column_count;
  double values = 0;
  uint8_t *fits;
  WEFT_TAKE(fits, &mem, (size_t) columns + 1);
  for (size_t i = 0; i < all->count; i++) values += (double) all->block[i].view.block->values;
  const int threads = weft_threads_worth(ctx->threads, 2 * values);
  WEFT_PARALLEL_FOR(threads, guided)
  for (int64_t j = 0; j < columns; j++) {
    fits[j] = 1;
    for (size_t i = 0; i < all->count && fits[j]; i++)
      fits[j] = (uint8_t) copy_column(to, all->choice, &all->block[i], (size_t) j);
  }
  for (int64_t j = 0; j < columns && st == WEFT_OK; j++)
    if (!fits[j]) st = weft_store_damaged(ctx, all->store, all->block[0].index, "changed while it was read");
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- blocks all of whose rows are chosen: straight to their places ---- */

/* Loads the next blocks from *next on as long as all their rows are chosen. */
static weft_status next_whole(weft_ctx *ctx, batch *all, size_t *next)
{
  uint64_t values = 0;
  all->in_place = 1;
  for (; *next < all->store->blocks && all->count < WEFT_STORE_TOGETHER; ++*next) {
    const weft_store_block *block = &all->store->block[*next];
    const chosen_rows in = rows_in(all->choice, block);
    if (!in.all && in.count) break;
    if (!in.count) continue;
    values += block->values;
    add_block(ctx, all, *next);
  }
  return weft_store_together(ctx, all->count, 2.0 * (double) values, load_one, all);
}

/* Where the column at `place` of each block goes, behind what is there; 0 where that is more than was counted. */
static int make_room(const batch *all, const selection *to, size_t *shift, size_t place)
{
  const size_t columns = all->choice->column_count, c = column_at(all->choice, place);
  for (size_t i = 0; i < all->count; i++) {
    const uint32_t *starts = all->block[i].view.starts;
    shift[i * columns + place] = to->next[place] - starts[c];
    to->next[place] += starts[c + 1] - starts[c];
  }
  return to->next[place] <= (size_t) to->starts[place + 1];
}

/* Decodes blocks of which all rows are wanted straight to their places in the result; `shift` says for each block and
 * column where its entries go. */
static weft_status put_whole(weft_ctx *ctx, batch *all, const selection *to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_store_choice *choice = all->choice;
  const size_t columns = choice->column_count;
  size_t *shift;
  WEFT_TAKE(shift, &mem, all->count * columns + 1);
  for (size_t j = 0; j < columns; j++)
    if (!make_room(all, to, shift, j)) {
      st = weft_store_damaged(ctx, all->store, all->block[0].index, "changed while it was read");
      goto done;
    }
  for (size_t i = 0; i < all->count; i++) {
    weft_store_decoding *unpacked = &all->block[i].to;
    unpacked->rows = to->rows;
    unpacked->values = to->values;
    unpacked->shift = shift + i * columns;
    unpacked->base = (int32_t) rows_in(choice, unpacked->view->block).first;
  }
  st = decode_batch(ctx, all);
done:
  weft_arena_end(&mem);
  return st;
}

/* Goes through the blocks in order: runs of wholly wanted ones are decoded in place, others are decoded and copied.
 * Fails where the number of entries is not what weft_store_count() found. */
weft_status weft_store_select(weft_ctx *ctx, const weft_store *store, const weft_store_choice *choice,
                              const weft_store_recipe *recipe, const double *starts, int32_t *rows, double *values)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  batch all = begin_pass(ctx, store, choice, recipe);
  size_t *next, block = 0;
  WEFT_TAKE(next, &mem, choice->column_count + 1);
  for (size_t j = 0; j < choice->column_count; j++) next[j] = (size_t) starts[j];
  const selection to = { starts, next, rows, values };
  while (block < store->blocks) {
    WEFT_TRY(next_whole(ctx, &all, &block));
    if (all.count) {
      WEFT_TRY(put_whole(ctx, &all, &to));
    } else {
      all.in_place = 0;
      WEFT_TRY(next_batch(ctx, &all, &block));
      if (all.count) WEFT_TRY(copy_batch(ctx, &all, &to));
    }
    end_batch(&all);
  }
  for (size_t j = 0; j < choice->column_count && st == WEFT_OK; j++)
    if (next[j] != (size_t) starts[j + 1])
      st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' changed while it was read.", store->name);
done:
  end_pass(&all);
  weft_arena_end(&mem);
  return st;
}
