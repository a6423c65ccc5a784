/* Numbers of other programs' files; see hdf5_chunks.h. */
#include <string.h>
#include "core/call/arena.h"
#include "store/file/os.h"
#include "store/import/hdf5_chunks.h"
#include "store/import/inflate.h"

#define AT_ONCE 8192 /* numbers that are read before they are converted */

size_t weft_raw_size(weft_raw_type type)
{
  static const size_t sizes[WEFT_RAW_TYPES] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8 };
  return sizes[type];
}

static int32_t nearest_integer(double x)
{
  return x >= INT32_MAX ? INT32_MAX : x > INT32_MIN ? (int32_t) x : INT32_MIN;
}

#define CONVERT(from_type) \
  for (size_t i = 0; i < count; i++) { \
    from_type x; \
    memcpy(&x, (const char *) from + i * sizeof x, sizeof x); \
    if (target == WEFT_RAW_INTEGERS) \
      ((int32_t *) to)[i] = nearest_integer((double) x); \
    else if (target == WEFT_RAW_FLOATS) \
      ((float *) to)[i] = (float) x; \
    else \
      ((double *) to)[i] = (double) x; \
  } \
  break;

/* A loop for each pair of types. */
void weft_raw_convert(weft_raw_type type, const void *from, size_t count, weft_raw_target target, void *to)
{
  switch (type) {
  case WEFT_RAW_INT8: CONVERT(int8_t)
  case WEFT_RAW_UINT8: CONVERT(uint8_t)
  case WEFT_RAW_INT16: CONVERT(int16_t)
  case WEFT_RAW_UINT16: CONVERT(uint16_t)
  case WEFT_RAW_INT32: CONVERT(int32_t)
  case WEFT_RAW_UINT32: CONVERT(uint32_t)
  case WEFT_RAW_INT64: CONVERT(int64_t)
  case WEFT_RAW_UINT64: CONVERT(uint64_t)
  case WEFT_RAW_FLOAT: CONVERT(float)
  case WEFT_RAW_DOUBLE: CONVERT(double)
  case WEFT_RAW_TYPES: break;
  }
}

static size_t target_size(weft_raw_target target) { return target == WEFT_RAW_DOUBLES ? 8 : 4; }

/* Bytes that are what they become. */
static int is_target(weft_raw_type type, weft_raw_target target)
{
  return target == WEFT_RAW_INTEGERS ? type == WEFT_RAW_INT32
         : target == WEFT_RAW_FLOATS ? type == WEFT_RAW_FLOAT
                                     : type == WEFT_RAW_DOUBLE;
}

static weft_status damaged(weft_ctx *ctx, const weft_raw_rows *rows, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' is damaged: %s.", rows->name, what);
}

/* ---- plain ---- */

static weft_status read_plain(weft_ctx *ctx, const weft_raw_rows *rows, const weft_raw_part *x, size_t count)
{
  weft_status st = WEFT_OK;
  const size_t size = weft_raw_size(x->type), wide = target_size(x->target);
  uint64_t at = x->address;
  char some[8 * AT_ONCE];
  if (at > rows->size || count > (rows->size - at) / size) return damaged(ctx, rows, "numbers are beyond its end");
  if (is_target(x->type, x->target)) return weft_store_os_read(ctx, rows->file, rows->name, at, x->to, size * count);
  for (size_t done = 0; done < count; done += AT_ONCE, at += size * AT_ONCE) {
    const size_t now = count - done < AT_ONCE ? count - done : AT_ONCE;
    WEFT_TRY(weft_store_os_read(ctx, rows->file, rows->name, at, some, size * now));
    weft_raw_convert(x->type, some, now, x->target, (char *) x->to + wide * done);
  }
done:
  return st;
}

/* ---- in chunks ---- */

void weft_raw_unshuffle(const uint8_t *from, size_t size, size_t count, uint8_t *to)
{
  for (size_t byte = 0; byte < size; byte++)
    for (size_t i = 0; i < count; i++) to[size * i + byte] = from[count * byte + i];
}

/* Chunks that are needed whole and as they are go to their place at once. */
static weft_status read_chunks(weft_ctx *ctx, const weft_raw_rows *rows, const weft_raw_part *x, size_t count)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t size = weft_raw_size(x->type), wide = target_size(x->target), whole = size * (size_t) x->length;
  const uint8_t *from = x->bytes;
  uint64_t skip = x->skip;
  size_t done = 0, left = x->room;
  uint8_t *some, *shuffled = NULL;
  weft_inflater *work = NULL;
  if (x->length > UINT32_MAX / size || skip >= x->length) return damaged(ctx, rows, "a chunk has an invalid size");
  WEFT_TAKE(some, &mem, whole);
  if (x->shuffled) WEFT_TAKE(shuffled, &mem, whole);
  work = weft_inflate_begin(&mem);
  if (!work) {
    st = weft_fail_memory(ctx, "host", 1 << 15, -1, "inflating");
    goto done;
  }
  for (uint64_t k = 0; k < x->chunks && done < count; k++, skip = 0) {
    const uint64_t bytes = x->sizes[k], here = x->length - skip;
    const size_t now = here < count - done ? (size_t) here : count - done;
    const int direct = !shuffled && now == x->length && is_target(x->type, x->target);
    uint8_t *place = (uint8_t *) x->to + wide * done, *to = shuffled ? shuffled : direct ? place : some;
    size_t made = 0;
    if (bytes > left ||
        weft_inflate(NULL, work, WEFT_DEFLATED_ZLIB, from, (size_t) bytes, to, whole, &made) != WEFT_INFLATE_DONE ||
        made != whole) {
      st = damaged(ctx, rows, "a chunk cannot be inflated");
      goto done;
    }
    if (shuffled) weft_raw_unshuffle(shuffled, size, (size_t) x->length, some);
    if (!direct) weft_raw_convert(x->type, some + size * (size_t) skip, now, x->target, place);
    from += bytes;
    left -= (size_t) bytes;
    done += now;
  }
  if (done < count) st = damaged(ctx, rows, "chunks are missing");
done:
  weft_inflate_end(work);
  weft_arena_end(&mem);
  return st;
}

weft_status weft_raw_fill(weft_ctx *ctx, const weft_raw_rows *rows, size_t count)
{
  weft_status st = WEFT_OK;
  for (int i = 0; i < 2; i++) {
    const weft_raw_part *x = &rows->part[i];
    WEFT_TRY(x->sizes ? read_chunks(ctx, rows, x, count) : read_plain(ctx, rows, x, count));
  }
done:
  return st;
}
