/* Resumed imports: the input is the unfinished file and the list of its blocks, as they are and again with the list's
 * head and all checksums corrected. The import is then finished, and what it made is read. */
#include "entries.h"
#include "store/file/write.h"
#include <sys/stat.h>

enum { ROWS = 300, COLUMNS = 8, HEAD = 48, RECORD = 48, HEADER = 64 };

static char path[256], part[300], list[310];
static uint8_t head[HEAD];

static void write_file(const char *name, const uint8_t *data, size_t size)
{
  FILE *f = fopen(name, "wb");
  if (!f || fwrite(data, 1, size, f) != size || fclose(f)) abort();
}

static weft_status begin(weft_ctx *ctx, weft_store_writer *w)
{
  return weft_store_begin(ctx, path, 1, ROWS, COLUMNS, 1, "this", 0, w);
}

/* The folder, and the head that a list of this import has. */
static void prepare(void)
{
  weft_ctx ctx = one_thread();
  weft_store_writer w = { 0 };
  snprintf(path, sizeof path, "%s/weft-resume-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  if (!mkdtemp(path)) abort();
  strcat(path, "/s");
  snprintf(part, sizeof part, "%.*s.s.resume.part", (int) strlen(path) - 1, path);
  snprintf(list, sizeof list, "%s.list", part);
  if (begin(&ctx, &w) != WEFT_OK) abort();
  weft_store_abandon(&w);
  FILE *f = fopen(list, "rb");
  if (!f || fread(head, 1, HEAD, f) != HEAD || fclose(f)) abort();
}

static void use(const uint8_t *blocks, size_t size, const uint8_t *listed, size_t count)
{
  weft_ctx ctx = one_thread();
  weft_store_writer w = { 0 };
  weft_store store = { 0 };
  int late;
  write_file(part, blocks, size);
  write_file(list, listed, count);
  unlink(path);
  if (begin(&ctx, &w) == WEFT_OK) {
    if (w.resumed > ROWS) abort();
    weft_status status = WEFT_OK;
    if (w.resumed < ROWS) status = weft_store_push(&ctx, &w, ROWS - 1, COLUMNS - 1, 2, &late);
    if (status == WEFT_OK && weft_store_finish(&ctx, &w) == WEFT_OK && weft_store_open(&ctx, path, &store) == WEFT_OK)
      read_entries(&ctx, &store);
    weft_store_close(&store);
  }
  weft_store_abandon(&w);
  nothing_left();
}

/* Blocks one after another from the header on, as many as the list has. */
static void make_right(const uint8_t *blocks, size_t size, uint8_t *listed, size_t count)
{
  uint64_t at = HEADER;
  if (count < HEAD) return;
  memcpy(listed, head, HEAD);
  for (size_t k = HEAD; k + RECORD <= count; k += RECORD) {
    uint8_t *record = listed + k;
    uint64_t bytes = (uint64_t) record[8] | (uint64_t) record[9] << 8;
    if (at > size || bytes > size - at) bytes = at > size ? 0 : size - at;
    for (int b = 0; b < 8; b++) {
      record[b] = (uint8_t) (at >> (8 * b));
      record[8 + b] = (uint8_t) (bytes >> (8 * b));
      if (b > 1) record[24 + b] = 0; /* of the rows */
    }
    record[25] &= 1;
    put_crc(record + 36, weft_store_crc(0, at > size ? NULL : blocks + at, (size_t) bytes));
    memset(record + 40, 0, 4);
    put_crc(record + 44, weft_store_crc(0, record, 44));
    at += bytes;
  }
}

/* Two bytes say how long the list is; the list and the unfinished file follow. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (!*path) prepare();
  if (size < 2) return 0;
  const size_t rest = size - 2, asked = data[0] | (size_t) data[1] << 8, count = asked < rest ? asked : rest;
  uint8_t *listed = malloc(count + 1);
  if (!listed) abort();
  memcpy(listed, data + 2, count);
  use(data + 2 + count, rest - count, listed, count);
  make_right(data + 2 + count, rest - count, listed, count);
  use(data + 2 + count, rest - count, listed, count);
  free(listed);
  return 0;
}
