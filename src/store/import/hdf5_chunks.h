/* Numbers as they lie in another program's file, plain or deflated in chunks, and how rows are made of them by the
 * threads that encode them. Nothing that a file says about them is trusted. */
#pragma once

#include "core/call/context.h"

/* In the byte order of this machine. */
typedef enum {
  WEFT_RAW_INT8,
  WEFT_RAW_UINT8,
  WEFT_RAW_INT16,
  WEFT_RAW_UINT16,
  WEFT_RAW_INT32,
  WEFT_RAW_UINT32,
  WEFT_RAW_INT64,
  WEFT_RAW_UINT64,
  WEFT_RAW_FLOAT,
  WEFT_RAW_DOUBLE,
  WEFT_RAW_TYPES
} weft_raw_type;

/* What they become: int32_t, float or double. What does not fit is the nearest that does. */
typedef enum { WEFT_RAW_INTEGERS, WEFT_RAW_FLOATS, WEFT_RAW_DOUBLES } weft_raw_target;

/* Some numbers: in the file from `address` on, or in deflated chunks (`sizes` not NULL), of which the first one's first
 * `skip` numbers are others. */
typedef struct weft_raw_part {
  weft_raw_type type;
  weft_raw_target target;
  uint64_t address;
  uint64_t skip, length, chunks; /* `length`: numbers of a chunk */
  int shuffled;                  /* all first bytes of a chunk's numbers, then all second ones ... */
  const uint64_t *sizes;         /* bytes of each chunk */
  const uint8_t *bytes;
  size_t room; /* of all chunks */
  void *to;
} weft_raw_part;

/* Those of some rows: their columns and their values. */
typedef struct weft_raw_rows {
  int file;
  uint64_t size;
  const char *name;
  weft_raw_part part[2];
} weft_raw_rows;

size_t weft_raw_size(weft_raw_type type);
/* `count` numbers of a file's type to the type that is wanted. */
void weft_raw_convert(weft_raw_type type, const void *from, size_t count, weft_raw_target target, void *to);
/* `count` numbers of `size` bytes, of which all first bytes came first, then all second ones ... */
void weft_raw_unshuffle(const uint8_t *from, size_t size, size_t count, uint8_t *to);
weft_status weft_raw_fill(weft_ctx *ctx, const weft_raw_rows *rows, size_t count);
