/* A sparse panel once more, in tiles: see tiles.h. A tile's part of the vectors stays in the nearest cache, its
 * values lie in the order in which they are read, and runs of one length are foreseen by the processor: that is worth a
 * copy when there are several products. */
#include <string.h>
#include "core/call/parallel.h"
#include "pca/cpu/sparse.h"
#include "pca/cpu/tiles.h"

#define MIN_SIDE 9      /* 2^9 rows of 8 vectors are 32 KB */
#define MAX_SIDE 16     /* bits of a row */
#define PLACES 65536    /* rows times ranks */
#define VALUES_EACH 16  /* of a column in a tile, on average, or tiles are larger */
#define VALUES_GROUP 25 /* of a column in a group, on average, or there are fewer: each has sums of its own */
#define AHEAD 4         /* columns */
#define BAND 8          /* tiles made at once, or one for each thread */
#define WORTH 4         /* values for each that is in the table, or more, for a table to pay */

static size_t min_of(size_t a, size_t b) { return a < b ? a : b; }

static int side_for(const weft_pca_panel *x)
{
  const double density = (double) x->starts[x->p] / ((double) x->n * (double) x->p);
  int side = MIN_SIDE;
  while (side < MAX_SIDE && density * (double) ((size_t) 1 << side) < VALUES_EACH) side++;
  return side;
}

/* How many groups of tiles have sums of their own, which is how many threads can work at once: a power of two that
 * depends on the data alone. */
static size_t groups_for(const weft_pca_panel *x, size_t tiles)
{
  size_t groups = 1;
  while (2 * groups <= min_of(WEFT_PCA_TILE_GROUPS, tiles) &&
         (double) (2 * groups * VALUES_GROUP) * (double) x->p <= (double) x->starts[x->p])
    groups *= 2;
  return groups;
}

/* ---- where columns begin in their tiles ---- */

/* Until a tile's columns are put in order, its part of `columns` says where the values of each begin. */
static void count_column(const weft_pca_tiles *x, const weft_pca_panel *from, size_t j)
{
  for (int32_t at = from->starts[j]; at < from->starts[j + 1];) {
    const size_t tile = (size_t) (from->rows[at] >> x->side);
    const int32_t first = at;
    while (at < from->starts[j + 1] && (size_t) (from->rows[at] >> x->side) == tile) at++;
    weft_pca_tile_columns(x, tile)[j + 1] = (uint32_t) (at - first);
  }
}

/* Counts each column's values in each tile, and turns the counts into places: x->begin of tiles, and starts of columns
 * within a tile. */
static weft_status count_columns(weft_ctx *ctx, weft_pca_tiles *x, const weft_pca_panel *from, int threads)
{
  for (size_t first = 0; first < x->p; first += 1024) {
    const int64_t last = (int64_t) min_of(first + 1024, x->p);
    const weft_status st = weft_poll(ctx, 0, 0);
    if (st != WEFT_OK) return st;
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t j = (int64_t) first; j < last; j++) count_column(x, from, (size_t) j);
  }
  x->begin[0] = 0;
  for (size_t tile = 0; tile < x->tiles; tile++) {
    uint32_t *start = weft_pca_tile_columns(x, tile);
    for (size_t j = 0; j < x->p; j++) start[j + 1] += start[j];
    x->begin[tile + 1] = x->begin[tile] + start[x->p];
  }
  return WEFT_OK;
}

/* ---- some tiles at once ---- */

/* Columns as they come, so that lines of the panel's memory serve all tiles of a band. */
typedef struct {
  size_t first, tiles;
  int32_t *at; /* p: where a column of the panel goes on */
  uint16_t *rows;
  double *values;
  size_t room; /* of rows and values */
} band;

/* What a tile needs while its columns are put in order. */
typedef struct {
  uint32_t *starts;
  struct {
    uint32_t column, value;
  } * next;        /* for each length: where its next column goes, and the values of that */
  double *known;   /* PLACES: the values of rows by their ranks, in the order in which they were met */
  uint16_t *count; /* of them, for each row */
} desk;

/* Copies column j's next values to the band's tiles, as rows within a tile and values; b->at[j] moves on. What column j
 * + AHEAD will need is fetched meanwhile. */
static void take_column(const weft_pca_tiles *x, const band *b, const weft_pca_panel *from, size_t j)
{
  const int32_t mask = (int32_t) ((1u << x->side) - 1);
  int32_t at = b->at[j];
  if (j + AHEAD < x->p) { /* which may be another thread's column: atomic */
    const int32_t next = __atomic_load_n(b->at + j + AHEAD, __ATOMIC_RELAXED);
    __builtin_prefetch(from->rows + next);
    __builtin_prefetch(from->values + next);
  }
  for (size_t tile = b->first; tile < b->first + b->tiles; tile++) {
    const uint32_t *start = weft_pca_tile_columns(x, tile) + j, length = start[1] - start[0];
    const size_t to = x->begin[tile] - x->begin[b->first] + start[0];
    const int32_t *rows = from->rows + at;
    for (size_t i = 0; i < length; i++) b->rows[to + i] = (uint16_t) (rows[i] & mask);
    memcpy(b->values + to, from->values + at, length * sizeof *b->values);
    at += (int32_t) length;
  }
  __atomic_store_n(b->at + j, at, __ATOMIC_RELAXED);
}

/* Copies the values of a band (some neighbouring tiles) from the panel's columns to memory of its own, tile by tile, on
 * all threads. */
static weft_status take_band(weft_ctx *ctx, const weft_pca_tiles *x, band *b, const weft_pca_panel *from,
                             weft_arena *passing, int threads)
{
  weft_status st = WEFT_OK;
  const size_t here = x->begin[b->first + b->tiles] - x->begin[b->first];
  if (here > b->room) {
    weft_arena_drop(passing, b->rows);
    weft_arena_drop(passing, b->values);
    WEFT_TAKE(b->rows, passing, here);
    WEFT_TAKE(b->values, passing, here);
    b->room = here;
  }
  for (size_t first = 0; first < x->p; first += 4096) {
    const int64_t last = (int64_t) min_of(first + 4096, x->p);
    WEFT_TRY(weft_poll(ctx, 0, 0));
    WEFT_PARALLEL_FOR(threads, static)
    for (int64_t j = (int64_t) first; j < last; j++) take_column(x, b, from, (size_t) j);
  }
done:
  return st;
}

/* The rank of a value in its row, or the end of the ranks when there are too many. */
static inline size_t rank_of(double value, size_t row, int side, desk *d)
{
  const size_t count = d->count[row];
  size_t rank = 0;
  while (rank < count && d->known[rank << side | row] != value) rank++;
  if (rank == count && rank < (size_t) PLACES >> side) {
    d->known[rank << side | row] = value;
    d->count[row]++;
  }
  return rank;
}

/* The places of a tile's columns, in the order of their lengths; `values`: theirs, or NULL for ranks. 0 if a table does
 * not pay. */
static int order_columns(const weft_pca_tiles *x, const band *b, size_t i, desk *d, double *values)
{
  const size_t tile = b->first + i, high = (size_t) 1 << x->side, from = x->begin[tile] - x->begin[b->first];
  const uint32_t *start = d->starts;
  weft_pca_runs *run = x->runs + tile * x->max_runs;
  uint16_t *places = x->places + x->begin[tile];
  uint32_t *to_columns = weft_pca_tile_columns(x, tile), column = 0, value = 0;
  size_t distinct = 0;
  memset(d->next, 0, (high + 1) * sizeof *d->next);
  memset(d->count, 0, high * sizeof *d->count);
  for (size_t j = 0; j < x->p; j++) d->next[start[j + 1] - start[j]].column++;
  for (size_t length = high; length > 0; length--) {
    const uint32_t columns = d->next[length].column;
    if (!columns) continue;
    *run++ = (weft_pca_runs){ (uint32_t) length, columns };
    d->next[length].column = column;
    d->next[length].value = value;
    column += columns;
    value += columns * (uint32_t) length;
  }
  run->length = 0;
  for (size_t j = 0; j < x->p; j++) {
    const uint32_t length = start[j + 1] - start[j];
    if (!length) continue;
    const uint16_t *rows = b->rows + from + start[j];
    const double *own = b->values + from + start[j];
    size_t to = d->next[length].value;
    d->next[length].value += length;
    to_columns[d->next[length].column++] = (uint32_t) j;
    if (values) {
      memcpy(places + to, rows, length * sizeof *rows);
      memcpy(values + to, own, length * sizeof *own);
      continue;
    }
    for (size_t l = 0; l < length; l++) {
      const size_t rank = rank_of(own[l], rows[l], x->side, d);
      if (rank == (size_t) PLACES >> x->side) return 0;
      places[to + l] = (uint16_t) (rank << x->side | rows[l]);
    }
  }
  for (size_t row = 0; row < high; row++) distinct += d->count[row];
  return WORTH * distinct <= value;
}

static size_t ranks_of(const weft_pca_tiles *x, const desk *d)
{
  size_t ranks = 0;
  for (size_t i = 0; i < (size_t) 1 << x->side; i++)
    if (d->count[i] > ranks) ranks = d->count[i];
  return ranks;
}

/* Puts every tile's columns in the order of their lengths. A first pass finds out whether a table of values is small
 * enough; tiles without one get their values in a second pass, when there is memory for them. */
static weft_status order_band(weft_ctx *ctx, weft_pca_tiles *x, const band *b, desk *desks, weft_arena *mem,
                              int threads)
{
  weft_status st = weft_poll(ctx, 0, 0);
  if (st != WEFT_OK) return st;
  int *tabled = x->tabled + b->first;
  double **values = x->values + b->first;
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t i = 0; i < (int64_t) b->tiles; i++) {
    memcpy(desks[i].starts, weft_pca_tile_columns(x, b->first + (size_t) i), (x->p + 1) * sizeof *desks[i].starts);
    tabled[i] = order_columns(x, b, (size_t) i, &desks[i], NULL);
  }
  for (size_t i = 0; i < b->tiles; i++) {
    const size_t tile = b->first + i, stored = x->begin[tile + 1] - x->begin[tile];
    const size_t size = tabled[i] ? ranks_of(x, &desks[i]) << x->side : stored;
    WEFT_TAKE(values[i], mem, size + 1);
    if (tabled[i]) memcpy(values[i], desks[i].known, size * sizeof **values);
  }
  WEFT_PARALLEL_FOR(threads, dynamic)
  for (int64_t i = 0; i < (int64_t) b->tiles; i++)
    if (!tabled[i]) order_columns(x, b, (size_t) i, &desks[i], values[i]);
done:
  return st;
}

/* Fills x->places, values and runs from the panel, a band of tiles at a time: BAND of them, or one for each thread
 * where there are more threads. Each has a desk, where its columns are put in order. */
static weft_status take_panel(weft_ctx *ctx, weft_pca_tiles *x, const weft_pca_panel *from, weft_arena *mem)
{
  weft_status st = WEFT_OK;
  weft_arena passing = weft_arena_begin(ctx);
  const int threads = weft_pca_threads_for_cells(ctx, (double) from->starts[from->p]);
  const size_t high = (size_t) 1 << x->side, at_once = threads > BAND ? (size_t) threads : BAND;
  band b = { .tiles = min_of(at_once, x->tiles) };
  desk *desks;
  WEFT_TAKE(desks, &passing, b.tiles);
  WEFT_TAKE(b.at, &passing, x->p);
  for (size_t i = 0; i < b.tiles; i++) {
    WEFT_TAKE(desks[i].starts, &passing, x->p + 1);
    WEFT_TAKE(desks[i].next, &passing, high + 1);
    WEFT_TAKE(desks[i].known, &passing, PLACES);
    WEFT_TAKE(desks[i].count, &passing, high);
    memset(desks[i].known, 0, PLACES * sizeof *desks[i].known);
  }
  memcpy(b.at, from->starts, x->p * sizeof *b.at);
  WEFT_TRY(count_columns(ctx, x, from, threads));
  for (; b.first < x->tiles; b.first += at_once) {
    b.tiles = min_of(at_once, x->tiles - b.first);
    WEFT_TRY(take_band(ctx, x, &b, from, &passing, threads));
    WEFT_TRY(order_band(ctx, x, &b, desks, mem, threads));
  }
done:
  weft_arena_end(&passing);
  return st;
}

/* Chooses the size of tiles and groups, takes all memory from `mem`, and sorts the panel into it. */
weft_status weft_pca_tile(weft_ctx *ctx, const weft_pca_panel *x, weft_arena *mem, weft_pca_tiles *out)
{
  weft_status st = WEFT_OK;
  weft_pca_tiles t = { .n = x->n, .p = x->p, .side = side_for(x) };
  const size_t high = (size_t) 1 << t.side;
  t.tiles = (x->n + high - 1) >> t.side;
  t.groups = groups_for(x, t.tiles);
  t.max_runs = min_of(high, t.p) + 1;
  WEFT_TAKE0(t.columns, mem, t.tiles * (t.p + 1) + WEFT_PCA_TILE_AHEAD);
  WEFT_TAKE(t.begin, mem, t.tiles + 1);
  WEFT_TAKE(t.places, mem, (size_t) x->starts[x->p] + 1);
  WEFT_TAKE(t.values, mem, t.tiles);
  WEFT_TAKE(t.tabled, mem, t.tiles);
  WEFT_TAKE(t.runs, mem, t.tiles * t.max_runs);
  WEFT_TAKE(t.sums, mem, t.groups * t.p * WEFT_PCA_TILE_BLOCK);
  WEFT_TAKE(t.far, mem, t.groups * high * WEFT_PCA_TILE_BLOCK);
  WEFT_TRY(take_panel(ctx, &t, x, mem));
  *out = t;
done:
  return st;
}
