/* Compressed rows that are a block of their own, straight to bytes: see block.h. Each value goes once to its
 * place in the order of columns, with the gap to the row before it; no entries of 16 bytes are made, sorted and
 * checked. A range of columns is done at a time, of all rows, and packed at once, so that what is written here and
 * there stays in the processor's nearest caches. Rows with a zero, with a place that comes twice, with a column that
 * does not exist, or with numbers that need 64 bits are left to the functions that can put them right, or say what is
 * wrong. */
#include "store/file/block.h"
#include "store/file/block_of_rows.h"

#define RANGE 1024      /* least columns of a range: they write 64 kB here and there */
#define RANGE_VALUES 16 /* least values of a row in a range, on average */
#define AHEAD 64        /* values of a row that are fetched for the next range */

#if defined(__GNUC__)
#  define FETCH(x) __builtin_prefetch(x)
#else
#  define FETCH(x) (void) (x)
#endif

/* ---- values in 32 bits ---- */

#define WHOLE_VALUES(x) \
  for (size_t i = 0; i < count && whole; i++) { \
    const double v = (double) (x)[i]; \
    whole = v >= 1 && v <= 4294967296.0 && v == (double) (uint64_t) v; \
    out[i] = whole ? (uint32_t) ((uint64_t) v - 1) : 0; \
    *any |= out[i]; \
  }

/* In pieces of this many, whose tests need no branch. */
#define PIECE 64
#define BITS_OF_1 UINT32_C(0x3f800000)
#define BITS_OF_2_24 UINT32_C(0x4b800000)

/* Like whole_values() below, for floats from 1 to 2^24, which have the same order as their bits: returns how many it
 * has done. */
static size_t whole_floats(const float *x, size_t count, uint32_t *out, uint32_t *any)
{
  size_t done = 0;
  uint32_t all = 0;
  for (; done + PIECE <= count; done += PIECE) {
    uint32_t bits[PIECE], wrong = 0;
    memcpy(bits, x + done, sizeof bits);
    for (int i = 0; i < PIECE; i++) {
      const uint32_t outside = bits[i] - BITS_OF_1 > BITS_OF_2_24 - BITS_OF_1;
      wrong |= outside;
      bits[i] = outside ? BITS_OF_1 : bits[i];
    }
    float held[PIECE];
    memcpy(held, bits, sizeof held);
    for (int i = 0; i < PIECE; i++) {
      const int32_t number = (int32_t) held[i];
      wrong |= (float) number != held[i];
      out[done + (size_t) i] = (uint32_t) number - 1;
      all |= (uint32_t) number - 1;
    }
    if (wrong) break;
  }
  *any = all;
  return done;
}

/* Whether all are whole numbers from 1 to 2^32; out: these less 1. *any: the bits that are 1 in one of them. */
static int whole_values(const weft_store_values *x, size_t count, uint32_t *out, uint32_t *any)
{
  int whole = 1;
  *any = 0;
  if (x->floats) {
    const size_t done = whole_floats(x->floats, count, out, any);
    out += done;
    count -= done;
    WHOLE_VALUES(x->floats + done)
  } else if (x->doubles) {
    WHOLE_VALUES(x->doubles)
  } else if (x->integers) {
    WHOLE_VALUES(x->integers)
  } else {
    memset(out, 0, count * sizeof *out);
  }
  return whole;
}

/* Whether all are floats other than 0; out: their bits. Doubles are left to weft_store_encode(), which finds those that
 * floats hold exactly. */
static int single_values(const weft_store_values *x, size_t count, uint32_t *out, uint32_t *any)
{
  int zero = 0;
  if (!x->floats) return 0;
  for (size_t i = 0; i < count; i++) zero |= x->floats[i] == 0;
  if (!zero) memcpy(out, x->floats, count * sizeof *out);
  *any = UINT32_MAX;
  return !zero;
}

/* ---- to bytes ---- */

/* A block's values on their way: from rows to words in the order of columns, and from these to packed streams. */
typedef struct {
  const weft_store_rows *rows;
  const int32_t *columns;
  const uint32_t *values;
  uint32_t *next, *end; /* of each row: its first value that is in no place yet, and behind its last one */
  uint32_t *counts;     /* of each column */
  uint32_t *place;      /* of each column of the range: where its next value goes */
  void *words;          /* of each value: its row in the low half, its number in the high one */
  size_t done, packed;  /* of them: how many are in their place, how many are packed */
  size_t column, start; /* the first column that begins behind those that are packed, and where */
  uint32_t wrong;       /* has its highest bit where a place came twice */
  weft_store_packer gaps, numbers;
} ordering;

static int count_columns(const int32_t *columns, size_t count, uint64_t p, uint32_t *counts)
{
  for (size_t i = 0; i < count; i++) {
    if (columns[i] < 0 || (uint64_t) columns[i] >= p) return 0;
    counts[columns[i]]++;
  }
  return 1;
}

/* Takes from each row its next values, those in columns from .. from + width - 1, and puts them where their columns
 * are; returns how many they were. */
#define ORDER_RANGE(name, word) \
  static size_t name(ordering *order, uint32_t from, uint32_t width) \
  { \
    const int32_t *columns = order->columns; \
    const uint32_t *values = order->values; \
    word *to = order->words; \
    uint32_t *place = order->place, column; \
    size_t put = 0; \
    for (size_t row = 0; row < order->rows->rows; row++) { \
      const uint32_t end = order->end[row]; \
      uint32_t i = order->next[row]; \
      for (; i < end && (column = (uint32_t) columns[i] - from) < width; i++) \
        to[place[column]++] = (word) values[i] << 4 * sizeof(word) | (word) row; \
      put += i - order->next[row]; \
      order->next[row] = i; \
      for (uint32_t k = 0; k < AHEAD && k < end - i; k += 16) { \
        FETCH(columns + i + k); \
        FETCH(values + i + k); \
      } \
    } \
    return put; \
  }
ORDER_RANGE(order_narrow, uint32_t)
ORDER_RANGE(order_wide, uint64_t)

/* A chunk's words in two: rows less the row before and 1, and numbers. */
#define SPLIT_CHUNK(name, word) \
  static void name(const word *restrict x, uint32_t *restrict gaps, uint32_t *restrict numbers) \
  { \
    uint32_t rows[WEFT_STORE_CHUNK + 1]; \
    rows[0] = 0; \
    for (int i = 0; i < WEFT_STORE_CHUNK; i++) { \
      rows[i + 1] = (uint32_t) (x[i] & 0xffff); \
      numbers[i] = (uint32_t) (x[i] >> 4 * sizeof(word)); \
    } \
    for (int i = 0; i < WEFT_STORE_CHUNK; i++) gaps[i] = rows[i + 1] - rows[i] - 1; \
  }
SPLIT_CHUNK(split_narrow, uint32_t)
SPLIT_CHUNK(split_wide, uint64_t)

static uint32_t row_at(const ordering *order, int wide, size_t at)
{
  return (wide ? (uint32_t) ((const uint64_t *) order->words)[at] : ((const uint32_t *) order->words)[at]) & 0xffff;
}

/* Packs one chunk, of which `count` values are there. Single floats are not packed. */
static void pack_some(ordering *order, int wide, uint32_t kind, size_t count)
{
  uint32_t gaps[WEFT_STORE_CHUNK], numbers[WEFT_STORE_CHUNK], all = 0;
  uint64_t last[WEFT_STORE_CHUNK];
  const size_t size = wide ? 8 : 4, from = order->packed, to = from + count;
  const void *words = (const uint8_t *) order->words + size * from;
  if (count < WEFT_STORE_CHUNK) {
    memset(last, 0, sizeof last);
    words = memcpy(last, words, size * count);
  }
  if (wide)
    split_wide(words, gaps, numbers);
  else
    split_narrow(words, gaps, numbers);
  if (from) gaps[0] -= row_at(order, wide, from - 1);
  for (; order->start < to; order->start += order->counts[order->column++])
    gaps[order->start - from] = row_at(order, wide, order->start);
  for (size_t i = count; i < WEFT_STORE_CHUNK; i++) gaps[i] = 0;
  for (int i = 0; i < WEFT_STORE_CHUNK; i++) all |= gaps[i];
  order->wrong |= all;
  weft_store_pack_next(&order->gaps, gaps);
  if (kind == WEFT_STORE_WHOLE)
    weft_store_pack_next(&order->numbers, numbers);
  else
    for (size_t i = 0; i < count; i++, order->numbers.bits += 4) weft_store_put(order->numbers.bits, numbers[i], 4);
  order->packed = to;
}

/* Ranges of `width` columns. 0: the values of a row do not rise from range to range, or a place came twice. */
static int order_and_pack(ordering *order, uint64_t p, uint64_t width, int wide, uint32_t kind)
{
  for (uint64_t from = 0; from < p; from += width) {
    const size_t before = order->done;
    if (width > p - from) width = p - from;
    for (size_t j = 0; j < width; j++) {
      order->place[j] = (uint32_t) order->done;
      order->done += order->counts[from + j];
    }
    if ((wide ? order_wide : order_narrow)(order, (uint32_t) from, (uint32_t) width) != order->done - before) return 0;
    while (order->done - order->packed >= WEFT_STORE_CHUNK) pack_some(order, wide, kind, WEFT_STORE_CHUNK);
    if (order->wrong >> 31) return 0;
  }
  if (order->done > order->packed) pack_some(order, wide, kind, order->done - order->packed);
  return !(order->wrong >> 31);
}

/* Columns of a range: p where there are few of them, or few values in each row. */
static uint64_t range_of(uint64_t p, size_t count, size_t rows)
{
  const size_t most = count / (RANGE_VALUES * rows) + 1;
  const uint64_t width = (p + most - 1) / most;
  return p < RANGE ? p : width < RANGE ? RANGE : width;
}

/* Sets every row to its first value, and begins the packed streams at `gaps` and `numbers`. */
static void begin_order(ordering *order, size_t count, uint32_t kind, uint8_t *gaps, uint8_t *numbers)
{
  const weft_store_rows *x = order->rows;
  for (size_t row = 0; row < x->rows; row++) {
    order->next[row] = (uint32_t) (x->starts[row] - x->starts[0]);
    order->end[row] = (uint32_t) (x->starts[row + 1] - x->starts[0]);
  }
  order->done = order->packed = order->column = order->start = 0;
  order->wrong = 0;
  order->gaps = weft_store_pack_begin(gaps, count);
  order->numbers = weft_store_pack_begin(numbers, kind == WEFT_STORE_WHOLE ? count : 0);
}

/* Moves the bytes from .. end - 1 to `to`, and returns the new end. */
static uint8_t *move_up(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
  memmove(to, from, (size_t) (end - from));
  return to + (end - from);
}

/* A block from compressed rows without making entries of them: values become 32-bit words, then ranges of columns are
 * put in order and packed. *bytes is NULL where the rows are not plain (zeros, equal places, columns that do not exist,
 * numbers that need 64 bits): the caller then goes by entries. */
weft_status weft_store_encode_rows(weft_ctx *ctx, const weft_store_rows *x, uint64_t p, void *scratch, weft_arena *mem,
                                   uint8_t **bytes, uint64_t *size, uint32_t *kind)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t from = (size_t) x->starts[0], count = (size_t) x->starts[x->rows] - from;
  const weft_store_values values = weft_store_values_from(&x->values, from);
  uint32_t *part = (uint32_t *) scratch + 2 * count, any;
  ordering order = { .rows = x, .columns = x->columns + from, .values = part, .words = scratch };
  uint8_t *out, *gaps, *numbers, *at, *end;
  *bytes = NULL;
  if (!count) goto done;
  *kind = WEFT_STORE_WHOLE;
  if (!whole_values(&values, count, part, &any)) {
    *kind = WEFT_STORE_SINGLE;
    if (!single_values(&values, count, part, &any)) goto done;
  }
  WEFT_TAKE0(order.counts, &own, p + 1);
  if (!count_columns(order.columns, count, p, order.counts)) goto done;
  WEFT_TAKE(order.place, &own, p + 1);
  WEFT_TAKE(order.next, &own, 2 * x->rows);
  order.end = order.next + x->rows;
  const size_t max_counts = weft_store_packed_max(p), most = weft_store_packed_max(count);
  WEFT_TAKE(out, mem, WEFT_STORE_STREAMS + max_counts + most + (*kind == WEFT_STORE_WHOLE ? most : 4 * count));
  at = out + WEFT_STORE_STREAMS;
  gaps = at + max_counts;
  numbers = gaps + most;
  const uint64_t width = range_of(p, count, x->rows);
  begin_order(&order, count, *kind, gaps, numbers);
  if (!order_and_pack(&order, p, width, any > 0xffff, *kind)) {
    if (width == p) goto done;
    begin_order(&order, count, *kind, gaps, numbers);
    if (!order_and_pack(&order, p, p, any > 0xffff, *kind)) goto done;
  }
  end = at + weft_store_pack(order.counts, p, at);
  weft_store_put(out, (uint64_t) (end - at), 8);
  weft_store_put(out + 8, (uint64_t) (order.gaps.bits - gaps), 8);
  weft_store_put(out + 16, (uint64_t) (order.numbers.bits - numbers), 8);
  end = move_up(end, gaps, order.gaps.bits);
  end = move_up(end, numbers, order.numbers.bits);
  *bytes = out;
  *size = (uint64_t) (end - out);
done:
  weft_arena_end(&own);
  return st;
}
