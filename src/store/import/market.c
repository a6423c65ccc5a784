/* Matrix Market text, in pieces as they come; see store.h. The format is that of math.nist.gov/MatrixMarket: a line
 * that says what follows, comments, a line of sizes, then an entry per line, or a value per line by columns. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "store/store.h"
#include "store/import/market.h"

static weft_status at_line(weft_ctx *ctx, const weft_store_market *market, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "Line %.0f of the Matrix Market file %s.", (double) market->line, what);
}

/* ---- words and numbers ---- */

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static const char *skip_spaces(const char *at, const char *end)
{
  while (at < end && is_space(*at)) at++;
  return at;
}

/* The next word in small letters, at most `size` - 1 of them. */
static const char *next_word(const char *at, const char *end, char *word, size_t size)
{
  size_t length = 0;
  at = skip_spaces(at, end);
  for (; at < end && !is_space(*at); at++)
    if (length + 1 < size) word[length++] = (char) tolower((unsigned char) *at);
  word[length] = 0;
  return at;
}

static const char *next_count(const char *at, const char *end, uint64_t *out)
{
  at = skip_spaces(at, end);
  const char *first = at;
  uint64_t x = 0;
  for (; at < end && *at >= '0' && *at <= '9' && at - first < 19; at++) x = 10 * x + (uint64_t) (*at - '0');
  if (at == first || (at < end && !is_space(*at))) return NULL;
  *out = x;
  return at;
}

static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/* What the fast way cannot do exactly. */
static const char *long_number(const char *at, const char *end, double *out)
{
  char word[128], *stopped;
  const char *next = next_word(at, end, word, sizeof word);
  if (!word[0] || strlen(word) + 1 == sizeof word || strchr(word, 'x')) return NULL;
  *out = strtod(word, &stopped);
  return *stopped ? NULL : next;
}

/* Digits below 2^53 times or divided by a power of ten that is exact in double precision: one rounding, so the result
 * is correct. */
static const char *next_number(const char *at, const char *end, double *out)
{
  at = skip_spaces(at, end);
  const char *first = at;
  const int negative = at < end && *at == '-';
  uint64_t x = 0;
  int digits = 0, behind = 0, point = 0;
  if (at < end && (*at == '-' || *at == '+')) at++;
  for (; at < end && (isdigit((unsigned char) *at) || (*at == '.' && !point)); at++) {
    if (*at == '.') {
      point = 1;
      continue;
    }
    x = 10 * x + (uint64_t) (*at - '0');
    behind += point;
    if (++digits > 15) return long_number(first, end, out);
  }
  if (!digits || behind > 22 || (at < end && !is_space(*at))) return long_number(first, end, out);
  const double value = (double) x / tens[behind];
  *out = negative ? -value : value;
  return at;
}

/* ---- lines ---- */

static weft_status first_line(weft_ctx *ctx, weft_store_market *market, const char *at, const char *end)
{
  char word[5][24];
  for (int i = 0; i < 5; i++) at = next_word(at, end, word[i], sizeof word[i]);
  market->begun = 1;
  if (strcmp(word[0], "%%matrixmarket") || strcmp(word[1], "matrix"))
    return at_line(ctx, market, "must begin with \"%%MatrixMarket matrix\"");
  market->dense = !strcmp(word[2], "array");
  market->pattern = !strcmp(word[3], "pattern");
  market->mirror = !strcmp(word[4], "symmetric") ? 1 : !strcmp(word[4], "skew-symmetric") ? -1 : 0;
  if ((!market->dense && strcmp(word[2], "coordinate")) || (market->dense && market->pattern) ||
      (!market->pattern && strcmp(word[3], "real") && strcmp(word[3], "integer") && strcmp(word[3], "double")) ||
      (!market->mirror && strcmp(word[4], "general")))
    return weft_fail(ctx, WEFT_ERR_INPUT,
                     "A Matrix Market file of type \"%s %s %s\" cannot be read: types are "
                     "coordinate or array, real, integer or pattern, general, symmetric or skew-symmetric.",
                     word[2], word[3], word[4]);
  return WEFT_OK;
}

/* The line of sizes: rows, columns and, where the matrix is sparse, entries. Fails where there are not as many whole
 * numbers, or they are too large. */
static weft_status size_line(weft_ctx *ctx, weft_store_market *market, const char *at, const char *end)
{
  at = next_count(at, end, &market->rows);
  if (at) at = next_count(at, end, &market->columns);
  if (at && !market->dense) at = next_count(at, end, &market->stored);
  if (!at || skip_spaces(at, end) < end)
    return at_line(ctx, market,
                   market->dense ? "must have two whole numbers, the sizes"
                                 : "must have three whole numbers, the sizes");
  if (market->rows > INT32_MAX || market->columns > INT32_MAX)
    return at_line(ctx, market, "gives more than 2147483647 rows or columns");
  if (market->mirror && market->rows != market->columns)
    return at_line(ctx, market, "gives a symmetric matrix that is not square");
  if (market->dense)
    market->stored = !market->mirror ? market->rows * market->columns
                                     : market->rows * (market->rows + (market->mirror > 0 ? 1 : -1)) / 2;
  market->row = market->mirror < 0;
  market->sized = 1;
  return WEFT_OK;
}

static weft_status hand_over(weft_ctx *ctx, weft_store_market *market, uint64_t row, uint64_t column, double value,
                             weft_store_entry_work work, void *data)
{
  weft_status st = WEFT_OK;
  if (!market->half) WEFT_TRY(work(ctx, data, row, column, value));
  if (market->mirror && row != column) {
    market->half = 1; /* in case what follows is tried again */
    WEFT_TRY(work(ctx, data, column, row, market->mirror * value));
  }
  market->half = 0;
  market->read++;
done:
  return st;
}

static weft_status entry_line(weft_ctx *ctx, weft_store_market *market, const char *at, const char *end,
                              weft_store_entry_work work, void *data)
{
  uint64_t row = 0, column = 0;
  double value = 1;
  at = next_count(at, end, &row);
  if (at) at = next_count(at, end, &column);
  if (at && !market->pattern) at = next_number(at, end, &value);
  if (!at || skip_spaces(at, end) < end)
    return at_line(ctx, market,
                   market->pattern ? "must be a row and a column" : "must be a row, a column and a number");
  if (row < 1 || row > market->rows || column < 1 || column > market->columns)
    return at_line(ctx, market, "is outside of the matrix");
  return hand_over(ctx, market, row - 1, column - 1, value, work, data);
}

static weft_status value_line(weft_ctx *ctx, weft_store_market *market, const char *at, const char *end,
                              weft_store_entry_work work, void *data)
{
  double value = 0;
  at = next_number(at, end, &value);
  if (!at || skip_spaces(at, end) < end) return at_line(ctx, market, "must be a number");
  const weft_status st = hand_over(ctx, market, market->row, market->column, value, work, data);
  if (st != WEFT_OK) return st;
  if (++market->row == market->rows) {
    market->column++;
    market->row = !market->mirror ? 0 : market->mirror > 0 ? market->column : market->column + 1;
  }
  return WEFT_OK;
}

/* A line is as long in pieces as in one: spaces before it do not count, and comments may be of any length. */
static int too_long(const weft_store_market *market, const char *at, size_t count)
{
  return count > sizeof market->carry && (*at != '%' || !market->begun);
}

static weft_status refuse_long(weft_ctx *ctx, const weft_store_market *market)
{
  return at_line(ctx, market, "is followed by one that is too long");
}

static weft_status one_line(weft_ctx *ctx, weft_store_market *market, const char *at, const char *end,
                            weft_store_entry_work work, void *data)
{
  weft_status st;
  at = skip_spaces(at, end);
  if (too_long(market, at, (size_t) (end - at))) return refuse_long(ctx, market);
  market->line++;
  if (!market->begun) return first_line(ctx, market, at, end);
  if (at == end || *at == '%') return WEFT_OK;
  if (!market->sized) return size_line(ctx, market, at, end);
  if (market->read == market->stored) return at_line(ctx, market, "is after the stated number of entries");
  st = market->dense ? value_line(ctx, market, at, end, work, data) : entry_line(ctx, market, at, end, work, data);
  if (st != WEFT_OK) market->line--; /* it may be tried again */
  return st;
}

/* ---- pieces ---- */

/* The rest of a piece after its last whole line, without spaces before it. */
static weft_status keep(weft_ctx *ctx, weft_store_market *market, const char *from, size_t count)
{
  if (market->skipping) return WEFT_OK;
  if (!market->held) {
    const char *end = from + count;
    from = skip_spaces(from, end);
    count = (size_t) (end - from);
  }
  if (market->held + count > sizeof market->carry) {
    if (too_long(market, market->held ? market->carry : from, market->held + count)) return refuse_long(ctx, market);
    market->skipping = 1;
    market->held = 0;
    return WEFT_OK;
  }
  memcpy(market->carry + market->held, from, count);
  market->held += count;
  return WEFT_OK;
}

/* Handles the whole lines among the bytes; the beginning of a line that does not end here is kept in m->carry for the
 * next call. *at moves on by lines, so that a second try continues. */
weft_status weft_store_market_read(weft_ctx *ctx, weft_store_market *market, const uint8_t *bytes, size_t size,
                                   size_t *at, int size_only, weft_store_entry_work work, void *data)
{
  weft_status st = WEFT_OK;
  const char *text = (const char *) bytes;
  while (*at < size && !(size_only && market->sized)) {
    const char *from = text + *at, *end = memchr(from, '\n', size - *at);
    const size_t before = market->held, length = end ? (size_t) (end - from) : size - *at;
    if (market->line % 4096 == 0) WEFT_TRY(weft_poll(ctx, 0, 0));
    if (!end || market->held || market->skipping) {
      WEFT_TRY(keep(ctx, market, from, length));
      if (end && !market->skipping) st = one_line(ctx, market, market->carry, market->carry + market->held, work, data);
      if (st != WEFT_OK) {
        market->held = before;
        goto done;
      }
      if (end) {
        market->held = 0;
        market->skipping = 0;
      }
    } else {
      WEFT_TRY(one_line(ctx, market, from, end, work, data));
    }
    *at += length + (end != NULL);
  }
done:
  return st;
}

weft_status weft_store_market_end(weft_ctx *ctx, weft_store_market *market, weft_store_entry_work work, void *data)
{
  weft_status st = WEFT_OK;
  if (market->held) WEFT_TRY(one_line(ctx, market, market->carry, market->carry + market->held, work, data));
  market->held = 0;
  if (!market->begun || !market->sized)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "The Matrix Market file ends before its sizes.");
  else if (market->read < market->stored)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "The Matrix Market file ends after %.0f of %.0f entries.",
                   (double) market->read, (double) market->stored);
done:
  return st;
}
