/* Matrix Market text, in pieces whose sizes come from the input: the pieces must not change what is read, and entries
 * lie in the matrix that the text says. */
#include "parsers.h"
#include "store/store.h"
#include "store/import/market.h"

typedef struct {
  const weft_store_market *market;
  uint64_t count, sum;
} seen;

static weft_status take(weft_ctx *ctx, void *data, uint64_t row, uint64_t column, double value)
{
  seen *s = data;
  uint64_t bits;
  if (row >= s->market->rows || column >= s->market->columns) abort();
  memcpy(&bits, &value, sizeof bits);
  s->sum = (s->sum ^ row ^ column << 20 ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
  return ++s->count > 100000 ? weft_fail(ctx, WEFT_ERR_INPUT, "enough") : WEFT_OK;
}

static weft_status read_text(const uint8_t *data, size_t size, size_t piece, seen *s)
{
  weft_ctx ctx = one_thread();
  weft_store_market market = { 0 };
  weft_status status = WEFT_OK;
  *s = (seen){ .market = &market };
  for (size_t first = 0; first < size && status == WEFT_OK; first += piece) {
    const size_t count = size - first < piece ? size - first : piece;
    uint8_t *exact = malloc(count); /* so that reading one byte too far is noticed */
    size_t at = 0;
    if (!exact) abort();
    memcpy(exact, data + first, count);
    status = weft_store_market_read(&ctx, &market, exact, count, &at, 0, take, s);
    free(exact);
  }
  if (status == WEFT_OK) status = weft_store_market_end(&ctx, &market, take, s);
  nothing_left();
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 2) return 0;
  seen whole, pieces;
  const weft_status one = read_text(data + 1, size - 1, size, &whole);
  const weft_status other = read_text(data + 1, size - 1, 1 + data[0], &pieces);
  if (one != other || (one == WEFT_OK && (whole.count != pieces.count || whole.sum != pieces.sum))) abort();
  return 0;
}
