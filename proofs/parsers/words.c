/* Bag-of-words text: the numbers that are read, written again, must read as the same numbers. */
#include "parsers.h"
#include "irm/cpu/input/parse_counts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  int32_t *out = malloc((size / 2 + 1) * sizeof *out), *again;
  uint8_t *text = malloc(size + 1);
  int64_t bad, worse;
  if (!out || !text) abort();
  memcpy(text, data, size);
  const int64_t count = weft_irm_numbers(text, (int64_t) size, out, &bad);
  if (count < 0 || count > (int64_t) size / 2 + 1 || bad < -1 || bad >= (int64_t) size) abort();
  char *written = malloc((size_t) count * 12 + 1);
  if (!written) abort();
  size_t length = 0;
  for (int64_t k = 0; k < count; k++) length += (size_t) sprintf(written + length, "%d\n", out[k]);
  again = malloc((length / 2 + 1) * sizeof *again);
  if (!again) abort();
  if (weft_irm_numbers((unsigned char *) written, (int64_t) length, again, &worse) != count || worse != -1 ||
      memcmp(out, again, (size_t) count * sizeof *out)) abort();
  free(out);
  free(text);
  free(written);
  free(again);
  return 0;
}
