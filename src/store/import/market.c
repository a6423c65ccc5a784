/* Matrix Market text, in pieces as they come; see store.h. The format is that of math.nist.gov/MatrixMarket: a line
 * that says what follows, comments, a line of sizes, then an entry per line, or a value per line by columns. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "store/store.h"

static weft_status at_line(weft_ctx *ctx, const weft_store_market *m, const char *what)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "Line %.0f of the Matrix Market file %s.", (double) m->line, what);
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

static weft_status first_line(weft_ctx *ctx, weft_store_market *m, const char *at, const char *end)
{
  char word[5][24];
  for (int i = 0; i < 5; i++) at = next_word(at, end, word[i], sizeof word[i]);
  m->begun = 1;
  if (strcmp(word[0], "%%matrixmarket") || strcmp(word[1], "matrix"))
    return at_line(ctx, m, "must begin with \"%%MatrixMarket matrix\"");
  m->dense = !strcmp(word[2], "array");
  m->pattern = !strcmp(word[3], "pattern");
  m->mirror = !strcmp(word[4], "symmetric") ? 1 : !strcmp(word[4], "skew-symmetric") ? -1 : 0;
  if ((!m->dense && strcmp(word[2], "coordinate")) || (m->dense && m->pattern) ||
      (!m->pattern && strcmp(word[3], "real") && strcmp(word[3], "integer") && strcmp(word[3], "double")) ||
      (!m->mirror && strcmp(word[4], "general")))
    return weft_fail(ctx, WEFT_ERR_INPUT,
                     "A Matrix Market file of kind \"%s %s %s\" cannot be read: kinds are "
                     "coordinate or array, real, integer or pattern, general, symmetric or skew-symmetric.",
                     word[2], word[3], word[4]);
  return WEFT_OK;
}

/* The line of sizes: rows, columns and, where the matrix is sparse, entries. Fails where there are not as many whole
 * numbers, or they are too large. */
static weft_status size_line(weft_ctx *ctx, weft_store_market *m, const char *at, const char *end)
{
  at = next_count(at, end, &m->rows);
  if (at) at = next_count(at, end, &m->columns);
  if (at && !m->dense) at = next_count(at, end, &m->stored);
  if (!at || skip_spaces(at, end) < end)
    return at_line(ctx, m,
                   m->dense ? "must have two whole numbers, the sizes" : "must have three whole numbers, the sizes");
  if (m->rows > INT32_MAX || m->columns > INT32_MAX)
    return at_line(ctx, m, "asks for more than 2147483647 rows or columns");
  if (m->mirror && m->rows != m->columns) return at_line(ctx, m, "asks for a symmetric matrix that is not square");
  if (m->dense) m->stored = !m->mirror ? m->rows * m->columns : m->rows * (m->rows + (m->mirror > 0 ? 1 : -1)) / 2;
  m->row = m->mirror < 0;
  m->sized = 1;
  return WEFT_OK;
}

static weft_status hand_over(weft_ctx *ctx, weft_store_market *m, uint64_t row, uint64_t column, double value,
                             weft_store_entry_work work, void *data)
{
  weft_status st = WEFT_OK;
  if (!m->half) WEFT_TRY(work(ctx, data, row, column, value));
  if (m->mirror && row != column) {
    m->half = 1; /* in case what follows is tried again */
    WEFT_TRY(work(ctx, data, column, row, m->mirror * value));
  }
  m->half = 0;
  m->read++;
done:
  return st;
}

static weft_status entry_line(weft_ctx *ctx, weft_store_market *m, const char *at, const char *end,
                              weft_store_entry_work work, void *data)
{
  uint64_t row = 0, column = 0;
  double value = 1;
  at = next_count(at, end, &row);
  if (at) at = next_count(at, end, &column);
  if (at && !m->pattern) at = next_number(at, end, &value);
  if (!at || skip_spaces(at, end) < end)
    return at_line(ctx, m, m->pattern ? "must be a row and a column" : "must be a row, a column and a number");
  if (row < 1 || row > m->rows || column < 1 || column > m->columns) return at_line(ctx, m, "is outside of the matrix");
  return hand_over(ctx, m, row - 1, column - 1, value, work, data);
}

static weft_status value_line(weft_ctx *ctx, weft_store_market *m, const char *at, const char *end,
                              weft_store_entry_work work, void *data)
{
  double value = 0;
  at = next_number(at, end, &value);
  if (!at || skip_spaces(at, end) < end) return at_line(ctx, m, "must be a number");
  const weft_status st = hand_over(ctx, m, m->row, m->column, value, work, data);
  if (st != WEFT_OK) return st;
  if (++m->row == m->rows) {
    m->column++;
    m->row = !m->mirror ? 0 : m->mirror > 0 ? m->column : m->column + 1;
  }
  return WEFT_OK;
}

/* A line is as long in pieces as in one: spaces before it do not count, and comments may be of any length. */
static int too_long(const weft_store_market *m, const char *at, size_t count)
{
  return count > sizeof m->carry && (*at != '%' || !m->begun);
}

static weft_status refuse_long(weft_ctx *ctx, const weft_store_market *m)
{
  return at_line(ctx, m, "is followed by one that is too long");
}

static weft_status one_line(weft_ctx *ctx, weft_store_market *m, const char *at, const char *end,
                            weft_store_entry_work work, void *data)
{
  weft_status st;
  at = skip_spaces(at, end);
  if (too_long(m, at, (size_t) (end - at))) return refuse_long(ctx, m);
  m->line++;
  if (!m->begun) return first_line(ctx, m, at, end);
  if (at == end || *at == '%') return WEFT_OK;
  if (!m->sized) return size_line(ctx, m, at, end);
  if (m->read == m->stored) return at_line(ctx, m, "comes after the last entry that the sizes announce");
  st = m->dense ? value_line(ctx, m, at, end, work, data) : entry_line(ctx, m, at, end, work, data);
  if (st != WEFT_OK) m->line--; /* it may be tried again */
  return st;
}

/* ---- pieces ---- */

/* The rest of a piece after its last whole line, without spaces before it. */
static weft_status keep(weft_ctx *ctx, weft_store_market *m, const char *from, size_t count)
{
  if (m->skipping) return WEFT_OK;
  if (!m->held) {
    const char *end = from + count;
    from = skip_spaces(from, end);
    count = (size_t) (end - from);
  }
  if (m->held + count > sizeof m->carry) {
    if (too_long(m, m->held ? m->carry : from, m->held + count)) return refuse_long(ctx, m);
    m->skipping = 1;
    m->held = 0;
    return WEFT_OK;
  }
  memcpy(m->carry + m->held, from, count);
  m->held += count;
  return WEFT_OK;
}

/* Handles the whole lines among the bytes; the beginning of a line that does not end here is kept in m->carry for the
 * next call. *at moves on by lines, so that a second try continues. */
weft_status weft_store_market_read(weft_ctx *ctx, weft_store_market *m, const uint8_t *bytes, size_t size, size_t *at,
                                   int size_only, weft_store_entry_work work, void *data)
{
  weft_status st = WEFT_OK;
  const char *text = (const char *) bytes;
  while (*at < size && !(size_only && m->sized)) {
    const char *from = text + *at, *end = memchr(from, '\n', size - *at);
    const size_t before = m->held, length = end ? (size_t) (end - from) : size - *at;
    if (m->line % 4096 == 0) WEFT_TRY(weft_poll(ctx, 0, 0));
    if (!end || m->held || m->skipping) {
      WEFT_TRY(keep(ctx, m, from, length));
      if (end && !m->skipping) st = one_line(ctx, m, m->carry, m->carry + m->held, work, data);
      if (st != WEFT_OK) {
        m->held = before;
        goto done;
      }
      if (end) {
        m->held = 0;
        m->skipping = 0;
      }
    } else {
      WEFT_TRY(one_line(ctx, m, from, end, work, data));
    }
    *at += length + (end != NULL);
  }
done:
  return st;
}

weft_status weft_store_market_end(weft_ctx *ctx, weft_store_market *m, weft_store_entry_work work, void *data)
{
  weft_status st = WEFT_OK;
  if (m->held) WEFT_TRY(one_line(ctx, m, m->carry, m->carry + m->held, work, data));
  m->held = 0;
  if (!m->begun || !m->sized)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "The Matrix Market file ends before its sizes.");
  else if (m->read < m->stored)
    st = weft_fail(ctx, WEFT_ERR_INPUT, "The Matrix Market file ends after %.0f of %.0f entries.", (double) m->read,
                   (double) m->stored);
done:
  return st;
}
