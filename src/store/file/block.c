/* One block of rows; see block.h and inst/store-format.md. A column's rows are held as gaps: the first row, and
 * then how many rows lie between one and the next. Every column begins anew, so that any of them can be read alone. */
#include <float.h>
#include <math.h>
#include "core/call/parallel.h"
#include "store/file/block.h"

/* ---- to bytes ---- */

static int is_whole(double view) { return view >= 1 && view <= 4294967296.0 && view == floor(view); }

/* NaN with a payload (R's NA) is no float's. */
static int is_single(double view)
{
  if (isinf(view)) return 1;
  if (isnan(view)) {
    const double plain = (double) (float) view;
    return !memcmp(&plain, &view, sizeof view);
  }
  return fabs(view) <= FLT_MAX && (double) (float) view == view;
}

static uint32_t kind_of(const weft_store_entry *entry, size_t count)
{
  uint32_t kind = WEFT_STORE_WHOLE;
  for (size_t i = 0; i < count; i++) {
    if (kind == WEFT_STORE_WHOLE && !is_whole(entry[i].value)) kind = WEFT_STORE_SINGLE;
    if (kind == WEFT_STORE_SINGLE && !is_single(entry[i].value)) return WEFT_STORE_DOUBLE;
  }
  /* one fraction among the last: those before it are whole, and may be too large for a float */
  for (size_t i = 0; kind == WEFT_STORE_SINGLE && i < count; i++)
    if (!is_single(entry[i].value)) kind = WEFT_STORE_DOUBLE;
  return kind;
}

static uint8_t *put_values(const weft_store_entry *entry, size_t count, uint32_t kind, uint32_t *scratch, uint8_t *to)
{
  if (kind == WEFT_STORE_WHOLE) {
    for (size_t i = 0; i < count; i++) scratch[i] = (uint32_t) (entry[i].value - 1);
    return to + weft_store_pack(scratch, count, to);
  }
  if (kind == WEFT_STORE_SINGLE) {
    for (size_t i = 0; i < count; i++, to += 4) weft_store_put_float(to, (float) entry[i].value);
  } else {
    for (size_t i = 0; i < count; i++, to += 8) weft_store_put_double(to, entry[i].value);
  }
  return to;
}

/* One block from entries in the order of columns and rows: counts of columns, gaps between rows, values, each stream
 * packed. *bytes is taken from `mem`. */
weft_status weft_store_encode(weft_ctx *ctx, const weft_store_entry *entry, size_t count, uint64_t p, weft_arena *mem,
                              uint8_t **bytes, uint64_t *size, uint32_t *kind)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  uint32_t *counts, *gaps;
  uint8_t *out, *at, *next;
  *kind = kind_of(entry, count);
  const size_t max_values =
      *kind == WEFT_STORE_WHOLE ? weft_store_packed_max(count) : count * (*kind == WEFT_STORE_SINGLE ? 4 : 8);
  WEFT_TAKE0(counts, &own, p + 1);
  WEFT_TAKE(gaps, &own, count + 1);
  WEFT_TAKE(out, mem, WEFT_STORE_STREAMS + weft_store_packed_max(p) + weft_store_packed_max(count) + max_values);
  for (size_t i = 0; i < count; i++) {
    const int first = i == 0 || entry[i].column != entry[i - 1].column;
    counts[entry[i].column]++;
    gaps[i] = first ? entry[i].row : entry[i].row - entry[i - 1].row - 1;
  }
  at = out + WEFT_STORE_STREAMS;
  next = at + weft_store_pack(counts, p, at);
  weft_store_put(out, (uint64_t) (next - at), 8);
  at = next;
  next = at + weft_store_pack(gaps, count, at);
  weft_store_put(out + 8, (uint64_t) (next - at), 8);
  at = next;
  next = put_values(entry, count, *kind, gaps, at);
  weft_store_put(out + 16, (uint64_t) (next - at), 8);
  *bytes = out;
  *size = (uint64_t) (next - out);
done:
  weft_arena_end(&own);
  return st;
}

/* ---- from bytes ---- */

weft_status weft_store_damaged(weft_ctx *ctx, const weft_store *store, size_t index, const char *what)
{
  const weft_store_block *block = &store->block[index];
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: block %.0f of %.0f (rows %.0f to %.0f) %s.", store->name,
                   (double) index + 1, (double) store->blocks, (double) block->first + 1,
                   (double) (block->first + block->rows), what);
}

/* Bytes of the three streams; 0 where they do not agree with the block's size. */
static int streams(const uint8_t *bytes, const weft_store_block *block, uint64_t size[3])
{
  uint64_t left = block->bytes - WEFT_STORE_STREAMS;
  for (int i = 0; i < 3; i++) {
    size[i] = weft_store_get(bytes + 8 * i, 8);
    if (size[i] > left) return 0;
    left -= size[i];
  }
  return left == 0;
}

/* Where each column's entries begin, from their counts (starts: p + 1). Fails where counts cannot be those of a block
 * with so many rows and values. */
static weft_status make_starts(weft_ctx *ctx, const weft_store *store, size_t index, const weft_store_packed *counts,
                               uint32_t *starts)
{
  const weft_store_block *block = &store->block[index];
  uint32_t some[WEFT_STORE_CHUNK];
  uint64_t total = 0;
  for (size_t j = 0; j < store->p; j++) {
    if (j % WEFT_STORE_CHUNK == 0) weft_store_unpack(counts, j / WEFT_STORE_CHUNK, some);
    starts[j] = (uint32_t) total;
    total += some[j % WEFT_STORE_CHUNK];
    if (some[j % WEFT_STORE_CHUNK] > block->rows || total > block->values)
      return weft_store_damaged(ctx, store, index, "has a column with too many entries");
  }
  starts[store->p] = (uint32_t) total;
  if (total != block->values) return weft_store_damaged(ctx, store, index, "has too few entries");
  return WEFT_OK;
}

/* A block's bytes as a view to decode from: lengths of all streams are checked here, so that decoding cannot leave
 * them. `bytes` must outlive the view; its tables come from `mem`. counts_only: out->starts alone. */
weft_status weft_store_parse(weft_ctx *ctx, const weft_store *store, size_t index, const uint8_t *bytes,
                             int counts_only, weft_arena *mem, weft_store_view *out)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const weft_store_block *block = &store->block[index];
  const size_t chunks = weft_store_chunks(block->values);
  uint64_t size[3];
  uint64_t *begin;
  weft_store_packed counts;
  if (!streams(bytes, block, size)) {
    st = weft_store_damaged(ctx, store, index, "has parts of invalid length");
    goto done;
  }
  WEFT_TAKE(begin, &own, weft_store_chunks(store->p) + 1);
  WEFT_TAKE(out->starts, mem, store->p + 1);
  out->block = block;
  out->index = index;
  out->p = store->p;
  bytes += WEFT_STORE_STREAMS;
  if (!weft_store_packed_view(bytes, size[0], store->p, store->version, begin, &counts)) {
    st = weft_store_damaged(ctx, store, index, "has counts that cannot be read");
    goto done;
  }
  WEFT_TRY(make_starts(ctx, store, index, &counts, out->starts));
  if (counts_only) goto done;
  WEFT_TAKE(begin, mem, chunks + 1);
  if (!weft_store_packed_view(bytes + size[0], size[1], block->values, store->version, begin, &out->gaps)) {
    st = weft_store_damaged(ctx, store, index, "has rows that cannot be read");
    goto done;
  }
  out->raw = bytes + size[0] + size[1];
  if (block->kind == WEFT_STORE_WHOLE) {
    WEFT_TAKE(begin, mem, chunks + 1);
    if (!weft_store_packed_view(out->raw, size[2], block->values, store->version, begin, &out->whole))
      st = weft_store_damaged(ctx, store, index, "has values that cannot be read");
  } else if (size[2] != block->values * (block->kind == WEFT_STORE_SINGLE ? 4 : 8)) {
    st = weft_store_damaged(ctx, store, index, "has values that cannot be read");
  }
done:
  weft_arena_end(&own);
  return st;
}

/* Decodes the rows of columns from .. to - 1 (`place`: the first one's place in the list of chosen columns). Returns 0
 * where a row lies outside the block. */
static int decode_rows(const weft_store_decoding *decoding, size_t from, size_t to, size_t place)
{
  const weft_store_view *view = decoding->view;
  uint32_t some[WEFT_STORE_CHUNK];
  size_t at = view->starts[from], ready = SIZE_MAX;
  for (size_t j = from; j < to; j++) {
    const size_t shift = decoding->shift ? decoding->shift[place + j - from] : 0;
    uint64_t row = 0;
    for (; at < view->starts[j + 1]; at++) {
      if (at / WEFT_STORE_CHUNK != ready) {
        ready = at / WEFT_STORE_CHUNK;
        weft_store_unpack(&view->gaps, ready, some);
      }
      row += some[at % WEFT_STORE_CHUNK];
      decoding->rows[at + shift] = (int32_t) row + decoding->base;
      row++;
    }
    if (row > view->block->rows) return 0;
  }
  return 1;
}

/* Values of columns from .. to - 1 into d->values, moved by d->shift; whole numbers are unpacked 128 at a time, and a
 * chunk that several columns share once. */
static void decode_values(const weft_store_decoding *decoding, size_t from, size_t to, size_t place)
{
  const weft_store_view *view = decoding->view;
  uint32_t some[WEFT_STORE_CHUNK];
  size_t ready = SIZE_MAX;
  for (size_t j = from; j < to; j++) {
    double *values = decoding->values + (decoding->shift ? decoding->shift[place + j - from] : 0);
    for (size_t at = view->starts[j]; at < view->starts[j + 1]; at++) {
      if (view->block->kind == WEFT_STORE_SINGLE) {
        values[at] = weft_store_get_float(view->raw + 4 * at);
        continue;
      }
      if (view->block->kind == WEFT_STORE_DOUBLE) {
        values[at] = weft_store_get_double(view->raw + 8 * at);
        continue;
      }
      if (at / WEFT_STORE_CHUNK != ready) {
        ready = at / WEFT_STORE_CHUNK;
        weft_store_unpack(&view->whole, ready, some);
      }
      values[at] = (double) some[at % WEFT_STORE_CHUNK] + 1;
    }
  }
}

int weft_store_decode(const weft_store_decoding *decoding, const double *columns, size_t first, size_t last)
{
  while (first < last) { /* a run of neighbours at a time */
    const size_t from = columns ? (size_t) columns[first] : first;
    size_t run = 1;
    while (first + run < last && (!columns || (size_t) columns[first + run] == from + run)) run++;
    if (!decode_rows(decoding, from, from + run, first)) return 0;
    decode_values(decoding, from, from + run, first);
    first += run;
  }
  return 1;
}
