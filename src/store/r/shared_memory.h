/* The memory in which a forked child hands compressed rows to its parent, slot after slot; see shared_memory.c. */
#pragma once

#include <stdatomic.h>
#include "core/r/glue.h"
#include "store/import/hdf5_chunks.h"

typedef struct {
  unsigned char *bytes;
  size_t size, slots, room; /* room: values of a slot */
  long owner;               /* the process that made it */
  int file;                 /* descriptor + 1, in the parent: of what the child reads */
  uint64_t file_size;
  char name[256];
} weft_shared;

/* A slot has its columns, its values, and as much again for chunks as they are in the file, with what is known of them
 * in words in front of each part. */
enum { WEFT_SHARED_HEAD = 64, WEFT_SHARED_EACH = 24, WEFT_SHARED_CHUNK = 64 /* least length of a chunk */ };
typedef enum {
  WEFT_CHUNKS_TYPE,
  WEFT_CHUNKS_SKIP,
  WEFT_CHUNKS_LENGTH,
  WEFT_CHUNKS_COUNT,
  WEFT_CHUNKS_BYTES,
  WEFT_CHUNKS_SHUFFLED,
  WEFT_CHUNKS_WORDS
} weft_chunks_word;

static inline atomic_int *weft_slot_full(const weft_shared *memory, size_t slot)
{
  return (atomic_int *) (memory->bytes + WEFT_SHARED_HEAD * slot);
}

static inline int32_t *weft_slot_columns(const weft_shared *memory, size_t slot)
{
  return (int32_t *) (memory->bytes + WEFT_SHARED_HEAD * memory->slots + WEFT_SHARED_EACH * memory->room * slot);
}

static inline void *weft_slot_values(const weft_shared *memory, size_t slot)
{
  return weft_slot_columns(memory, slot) + memory->room;
}

static inline uint64_t *weft_slot_chunks(const weft_shared *memory, size_t slot)
{
  return (uint64_t *) (weft_slot_columns(memory, slot) + 3 * memory->room);
}

/* The shared memory behind a handle; NULL where it is something else. */
weft_shared *weft_shared_of(SEXP handle);
