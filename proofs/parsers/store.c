/* Stores: every input is opened and read as it is, and again with its checksums corrected, as an attacker would do.
 * What opens must give entries that lie in the matrix. */
#include "entries.h"
#include "store/file/bitpack.h"
#include "store/file/read.h"

static uint64_t get(const uint8_t *at, int bytes)
{
  uint64_t x = 0;
  for (int k = bytes - 1; k >= 0; k--) x = x << 8 | at[k];
  return x;
}

static void make_right(uint8_t *data, size_t size)
{
  if (size < 64) return;
  const uint64_t directory = get(data + 40, 8), bytes = get(data + 48, 8);
  if (directory <= size && bytes <= size - directory && bytes >= 16) {
    const uint64_t blocks = get(data + directory, 8), vectors = get(data + directory + 8, 8);
    uint64_t at = directory + 16;
    for (uint64_t k = 0; k < blocks && at + 40 <= directory + bytes; k++, at += 40) {
      const uint64_t from = get(data + at, 8), count = get(data + at + 8, 8);
      if (from <= size && count <= size - from) put_crc(data + at + 32, weft_store_crc(0, data + from, count));
    }
    for (uint64_t k = 0; k < vectors && at + 40 <= directory + bytes; k++) {
      const uint64_t from = get(data + at, 8), count = get(data + at + 8, 8);
      if (from <= size && count <= size - from) put_crc(data + at + 28, weft_store_crc(0, data + from, count));
      at += 40 + (get(data + at + 32, 4) + 7) / 8 * 8;
    }
    put_crc(data + 56, weft_store_crc(0, data + directory, bytes));
  }
  put_crc(data + 60, weft_store_crc(0, data, 60));
}

static void use(const uint8_t *data, size_t size)
{
  char path[64];
  const int file = file_of(data, size, path);
  weft_ctx ctx = one_thread();
  weft_store store = { 0 };
  if (weft_store_open(&ctx, path, &store) == WEFT_OK) {
    read_entries(&ctx, &store);
    for (size_t k = 0; k < store.sections; k++) {
      uint8_t *bytes = malloc((size_t) store.section[k].bytes + 1);
      if (!bytes) continue;
      (void) weft_store_section_bytes(&ctx, &store, k, bytes);
      free(bytes);
    }
  }
  weft_store_close(&store);
  close(file);
  nothing_left();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  uint8_t *copy = malloc(size + 1);
  if (!copy) abort();
  memcpy(copy, data, size);
  use(copy, size);
  make_right(copy, size);
  use(copy, size);
  free(copy);
  return 0;
}
