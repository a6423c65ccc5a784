/* LZ4 and BloscLZ; see lz.h. */
#include <string.h>
#include "store/import/lz.h"

#define SEQUENCES 1048576 /* between two polls */
#define FAR 8191          /* from where on BloscLZ counts distances in two bytes */

/* Bytes that are read, and bytes that are made. */
typedef struct {
  const uint8_t *in, *end;
  uint8_t *out;
  size_t made, whole;
} lz_state;

/* `length` bytes as they are; 0 where they are not there, or are too many. */
static int copy_literals(lz_state *s, size_t length)
{
  if (length > (size_t) (s->end - s->in) || length > s->whole - s->made) return 0;
  memcpy(s->out + s->made, s->in, length);
  s->in += length;
  s->made += length;
  return 1;
}

/* `length` bytes that begin `distance` before the next one, and may go on into what they make. */
static int copy_match(lz_state *s, size_t distance, size_t length)
{
  if (!distance || distance > s->made || length > s->whole - s->made) return 0;
  uint8_t *to = s->out + s->made;
  const uint8_t *from = to - distance;
  s->made += length;
  for (size_t ready = distance; length;) { /* the bytes that are there, and twice their number from then on */
    const size_t now = length < ready ? length : ready;
    memcpy(to, from, now);
    to += now;
    length -= now;
    ready += now;
  }
  return 1;
}

/* Adds bytes to a length until one is less than 255; 0 where they end before. */
static int longer(lz_state *s, size_t *length)
{
  uint8_t more;
  do {
    if (s->in == s->end) return 0;
    more = *s->in++;
    *length += more;
  } while (more == 255);
  return 1;
}

/* A token (4 bits for how many literals, 4 for the length of the match), the literals, a distance of 2 bytes. The last
 * sequence has no match. */
weft_status weft_lz4(weft_ctx *ctx, const uint8_t *bytes, size_t size, uint8_t *to, size_t whole)
{
  lz_state s = { bytes, bytes + size, to, 0, whole };
  for (size_t k = 1; s.in < s.end; k++) {
    if (k % SEQUENCES == 0 && weft_poll(ctx, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
    const uint8_t token = *s.in++;
    size_t literals = token >> 4, length = token & 15;
    if (literals == 15 && !longer(&s, &literals)) return WEFT_ERR_INPUT;
    if (!copy_literals(&s, literals)) return WEFT_ERR_INPUT;
    if (s.in == s.end) return s.made == whole ? WEFT_OK : WEFT_ERR_INPUT;
    if (s.end - s.in < 2) return WEFT_ERR_INPUT;
    const size_t distance = (size_t) s.in[0] | (size_t) s.in[1] << 8;
    s.in += 2;
    if (length == 15 && !longer(&s, &length)) return WEFT_ERR_INPUT;
    if (!copy_match(&s, distance, length + 4)) return WEFT_ERR_INPUT;
  }
  return WEFT_ERR_INPUT;
}

/* A match of BloscLZ behind its first byte: 3 bits for the length, 5 for the distance, and further bytes of both. */
static int blosclz_match(lz_state *s, uint8_t first)
{
  size_t length = (size_t) (first >> 5) - 1, distance = (size_t) (first & 31) << 8;
  if (length == 6 && !longer(s, &length)) return 0;
  if (s->in == s->end) return 0;
  const uint8_t low = *s->in++;
  if (low == 255 && distance == (size_t) 31 << 8) {
    if (s->end - s->in < 2) return 0;
    distance = ((size_t) s->in[0] << 8 | (size_t) s->in[1]) + FAR;
    s->in += 2;
  } else {
    distance += low;
  }
  return copy_match(s, distance + 1, length + 3);
}

/* A byte below 32: one more byte than that as they are; others begin a match. The first byte has only 5 bits. */
weft_status weft_blosclz(weft_ctx *ctx, const uint8_t *bytes, size_t size, uint8_t *to, size_t whole)
{
  lz_state s = { bytes, bytes + size, to, 0, whole };
  for (size_t k = 0; s.in < s.end; k++) {
    if (k % SEQUENCES == SEQUENCES - 1 && weft_poll(ctx, 0, 0) != WEFT_OK) return WEFT_ERR_INTERRUPT;
    const uint8_t first = k ? *s.in++ : *s.in++ & 31;
    if (!(first < 32 ? copy_literals(&s, (size_t) first + 1) : blosclz_match(&s, first))) return WEFT_ERR_INPUT;
  }
  return s.made == whole ? WEFT_OK : WEFT_ERR_INPUT;
}
