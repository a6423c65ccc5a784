/* Stores: every input is opened and read as it is, and again with its checksums made right, as somebody would who means
 * harm. What opens must give entries that lie in the matrix. */
#include "parsers.h"
#include "../../src/store/store.h"
#include "../../src/store/store_pack.h"

#define MOST 20000 /* rows or columns; the reader itself allows 2^31 - 1 */

static uint64_t get(const uint8_t *at, int bytes)
{
  uint64_t x = 0;
  for (int k = bytes - 1; k >= 0; k--) x = x << 8 | at[k];
  return x;
}

static void put_crc(uint8_t *at, const uint8_t *data, size_t size)
{
  const uint32_t crc = weft_store_crc(0, data, size);
  for (int k = 0; k < 4; k++) at[k] = (uint8_t) (crc >> (8 * k));
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
      if (from <= size && count <= size - from) put_crc(data + at + 32, data + from, count);
    }
    for (uint64_t k = 0; k < vectors && at + 40 <= directory + bytes; k++) {
      const uint64_t from = get(data + at, 8), count = get(data + at + 8, 8);
      if (from <= size && count <= size - from) put_crc(data + at + 28, data + from, count);
      at += 40 + (get(data + at + 32, 4) + 7) / 8 * 8;
    }
    put_crc(data + 56, data + directory, bytes);
  }
  put_crc(data + 60, data, 60);
}

static void read_entries(weft_ctx *ctx, const weft_store *store)
{
  const weft_store_recipe as_they_are = { NULL, 0 };
  const weft_store_choice all = { NULL, NULL, (size_t) store->n, (size_t) store->p };
  double *starts = calloc((size_t) store->p + 1, sizeof *starts), range[2];
  double *columns = calloc((size_t) store->p * 2 + 1, sizeof *columns);
  double *rows = calloc((size_t) store->n * 2 + 1, sizeof *rows);
  if (!starts || !columns || !rows) abort();
  if (weft_store_count(ctx, store, &all, starts) == WEFT_OK) {
    const size_t count = (size_t) starts[store->p];
    int32_t *at = malloc((count + 1) * sizeof *at);
    double *values = malloc((count + 1) * sizeof *values);
    if (!at || !values) abort();
    if (weft_store_select(ctx, store, &all, &as_they_are, starts, at, values) == WEFT_OK)
      for (size_t k = 0; k < count; k++)
        if (at[k] < 0 || (uint64_t) at[k] >= store->n) abort();
    free(at);
    free(values);
  }
  weft_store_sums sums = { .columns = columns, .column_counts = columns + store->p, .rows = rows,
                           .row_counts = rows + store->n };
  (void) weft_store_sum(ctx, store, &all, &as_they_are, &sums, range);
  free(starts);
  free(columns);
  free(rows);
}

static void use(const uint8_t *data, size_t size)
{
  char path[64];
  const int file = file_of(data, size, path);
  weft_ctx ctx = one_thread();
  weft_store store = { 0 };
  if (weft_store_open(&ctx, path, &store) == WEFT_OK) {
    if (store.n <= MOST && store.p <= MOST) read_entries(&ctx, &store);
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
