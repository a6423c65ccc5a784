/* Compressed rows that are a block of their own, straight to bytes: see store_block.h. Each value goes once to its
 * place in the order of columns, with the gap to the row before it; no entries of 16 bytes are made, sorted and
 * checked. Rows with a zero, with a place that comes twice, with a column that does not exist, or with numbers that
 * need 64 bits are left to the functions that can put them right, or say what is wrong. */
#include "store_block.h"

typedef struct { uint32_t at, row; } place; /* of a column's next value; the row behind its last one */

/* ---- values in 32 bits ---- */

#define WHOLE_VALUES(x) \
  for (size_t i = 0; i < count && whole; i++) { \
    const double v = (double) (x)[i]; \
    whole = v >= 1 && v <= 4294967296.0 && v == (double) (uint64_t) v; \
    out[i] = whole ? (uint32_t) ((uint64_t) v - 1) : 0; \
  }

/* In pieces of this many, whose tests need no branch. */
#define PIECE 64
#define BITS_OF_1 UINT32_C(0x3f800000)
#define BITS_OF_2_24 UINT32_C(0x4b800000)

/* Like whole_values() below, for floats from 1 to 2^24, which have the same order as their bits: returns how many it
 * has done. */
static size_t whole_floats(const float *x, size_t count, uint32_t *out)
{
  size_t done = 0;
  for (; done + PIECE <= count; done += PIECE) {
    uint32_t bits[PIECE], wrong = 0;
    memcpy(bits, x + done, sizeof bits);
    for (int i = 0; i < PIECE; i++) {
      const uint32_t outside = bits[i] - BITS_OF_1 > BITS_OF_2_24 - BITS_OF_1;
      wrong |= outside;
      bits[i] = outside ? BITS_OF_1 : bits[i];
    }
    float held[PIECE], again[PIECE];
    memcpy(held, bits, sizeof bits);
    for (int i = 0; i < PIECE; i++) {
      const int32_t number = (int32_t) held[i];
      again[i] = (float) number;
      out[done + (size_t) i] = (uint32_t) number - 1;
    }
    if (wrong || memcmp(again, held, sizeof held)) break;
  }
  return done;
}

/* Whether all are whole numbers from 1 to 2^32; out: these less 1. */
static int whole_values(const weft_store_values *x, size_t count, uint32_t *out)
{
  int whole = 1;
  if (x->floats) {
    const size_t done = whole_floats(x->floats, count, out);
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
static int single_values(const weft_store_values *x, size_t count, uint32_t *out)
{
  int zero = 0;
  if (!x->floats) return 0;
  for (size_t i = 0; i < count; i++) zero |= x->floats[i] == 0;
  if (!zero) memcpy(out, x->floats, count * sizeof *out);
  return !zero;
}

/* ---- to bytes ---- */

static int count_columns(const weft_store_rows *x, uint64_t p, uint32_t *counts)
{
  const size_t from = (size_t) x->starts[0], to = (size_t) x->starts[x->rows];
  for (size_t i = from; i < to; i++) {
    if (x->columns[i] < 0 || (uint64_t) x->columns[i] >= p) return 0;
    counts[x->columns[i]]++;
  }
  return 1;
}

/* Every value to its place: its gap in the low half of a word, the value in the high one. 0: a place came twice. */
#define ORDER_VALUES(name, word) \
  static int name(const weft_store_rows *x, const uint32_t *values, place *next, word *to) \
  { \
    const int32_t *columns = x->columns + (size_t) x->starts[0]; \
    uint32_t all = 0; \
    size_t i = 0; \
    for (size_t row = 0; row < x->rows; row++) \
      for (const size_t end = (size_t) (x->starts[row + 1] - x->starts[0]); i < end; i++) { \
        place *c = &next[columns[i]]; \
        const uint32_t gap = (uint32_t) row - c->row; \
        all |= gap; /* a row before the last one of its column is a gap beyond 2^31 */ \
        to[c->at++] = (word) values[i] << 4 * sizeof(word) | gap; \
        c->row = (uint32_t) row + 1; \
      } \
    return all >> 31 == 0; \
  }
ORDER_VALUES(order_narrow, uint32_t)
ORDER_VALUES(order_wide, uint64_t)

/* One half of each word. */
static void take_half(const void *words, int wide, int high, size_t count, uint32_t *out)
{
  const uint32_t *narrow = words;
  const uint64_t *broad = words;
  if (wide && high) for (size_t i = 0; i < count; i++) out[i] = (uint32_t) (broad[i] >> 32);
  else if (wide) for (size_t i = 0; i < count; i++) out[i] = (uint32_t) broad[i];
  else if (high) for (size_t i = 0; i < count; i++) out[i] = narrow[i] >> 16;
  else for (size_t i = 0; i < count; i++) out[i] = narrow[i] & 0xffff;
}

weft_status weft_store_encode_rows(weft_ctx *ctx, const weft_store_rows *x, uint64_t p, void *scratch, weft_arena *mem,
                                   uint8_t **bytes, uint64_t *size, uint32_t *kind)
{
  weft_status st = WEFT_OK;
  weft_arena own = weft_arena_begin(ctx);
  const size_t from = (size_t) x->starts[0], count = (size_t) x->starts[x->rows] - from;
  const weft_store_values values = weft_store_values_from(&x->values, from);
  uint32_t *part = (uint32_t *) scratch + 2 * count, *counts, total = 0, any = 0;
  place *next;
  uint8_t *out, *at, *end;
  *bytes = NULL;
  if (!count) goto done;
  *kind = WEFT_STORE_WHOLE;
  if (!whole_values(&values, count, part)) {
    *kind = WEFT_STORE_SINGLE;
    if (!single_values(&values, count, part)) goto done;
  }
  WEFT_TAKE0(counts, &own, p + 1);
  if (!count_columns(x, p, counts)) goto done;
  WEFT_TAKE(next, &own, p + 1);
  for (size_t j = 0; j < p; j++) {
    next[j] = (place) { total, 0 };
    total += counts[j];
  }
  for (size_t i = 0; i < count; i++) any |= part[i];
  const int wide = any > 0xffff;
  if (!(wide ? order_wide(x, part, next, scratch) : order_narrow(x, part, next, scratch))) goto done;
  WEFT_TAKE(out, mem, WEFT_STORE_STREAMS + weft_store_packed_most(p) + weft_store_packed_most(count) +
                          (*kind == WEFT_STORE_WHOLE ? weft_store_packed_most(count) : 4 * count));
  at = out + WEFT_STORE_STREAMS;
  end = at + weft_store_pack(counts, p, at);
  weft_store_put(out, (uint64_t) (end - at), 8);
  at = end;
  take_half(scratch, wide, 0, count, part);
  end = at + weft_store_pack(part, count, at);
  weft_store_put(out + 8, (uint64_t) (end - at), 8);
  at = end;
  take_half(scratch, wide, 1, count, part);
  if (*kind == WEFT_STORE_WHOLE) end = at + weft_store_pack(part, count, at);
  else for (size_t i = 0; i < count; i++, end += 4) weft_store_put(end, part[i], 4);
  weft_store_put(out + 16, (uint64_t) (end - at), 8);
  *bytes = out;
  *size = (uint64_t) (end - out);
done:
  weft_arena_end(&own);
  return st;
}
