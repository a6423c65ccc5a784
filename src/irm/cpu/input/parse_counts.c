/* Reads whole numbers in text; see parse_counts.h. */
#include "irm/cpu/input/parse_counts.h"

/* Stops at the first byte that belongs to no whole number below 2^31. */
int64_t weft_irm_numbers(const unsigned char *text, int64_t length, int32_t *out, int64_t *bad)
{
  int64_t count = 0;
  *bad = -1;
  for (int64_t at = 0; at < length;) {
    if (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
      at++;
      continue;
    }
    int64_t value = 0;
    const int64_t first = at;
    for (; at < length && text[at] >= '0' && text[at] <= '9' && value <= INT32_MAX; at++)
      value = 10 * value + (text[at] - '0');
    if (at == first || value > INT32_MAX) {
      *bad = first;
      return count;
    }
    out[count++] = (int32_t) value;
  }
  return count;
}
