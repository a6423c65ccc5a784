/* Columns to codes; see codes.h. A plan needs one pass over the column (least, greatest, missing), coding another. */
/* Build: shared. */
#include <string.h>
#include "core/data/codes.h"
#include "core/data/genotypes.h"

/* Codes of rows first .. first+count-1 of a column of genotypes, missing as the code's largest value. */
static void encode_genotypes(const weft_column *x, size_t first, size_t count, const weft_codes *plan, void *out)
{
  const uint16_t na = plan->width == 1 ? WEFT_NA_U8 : WEFT_NA_U16;
  uint16_t code[4];
  for (int k = 0; k < 4; k++) code[k] = k == WEFT_GENOTYPE_MISSING ? na : (uint16_t) (k - plan->base);
  for (size_t i = 0; i < count; i++) {
    const uint16_t now = code[weft_genotype_at(x->values, first + i)];
    if (plan->width == 1)
      ((uint8_t *) out)[i] = (uint8_t) now;
    else
      ((uint16_t *) out)[i] = now;
  }
}

static int is_sparse(const weft_column *x) { return x->type == WEFT_COLUMN_SPARSE || x->type == WEFT_COLUMN_PATTERN; }

/* Scans a column once for its range and its missing values, and plans a code for every whole number in between: one
 * byte where the levels fit beside the code for missing, else two. Zeros that a sparse column does not store belong to
 * the range. */
weft_codes_result weft_codes_plan(const weft_column *x, size_t n, int na_level, weft_codes *plan)
{
  const weft_bits_ops *ops = weft_bits();
  const size_t values = is_sparse(x) ? x->stored : n;
  int64_t least = 0, greatest = -1;
  plan->missing = 0;
  switch (x->type) {
  case WEFT_COLUMN_I32: {
    int32_t lo, hi;
    ops->scan_i32(x->values, values, &lo, &hi, &plan->missing);
    least = lo;
    greatest = hi;
    break;
  }
  case WEFT_COLUMN_U8: {
    uint8_t lo, hi;
    ops->scan_u8(x->values, values, &lo, &hi);
    if (values) {
      least = lo;
      greatest = hi;
    }
    break;
  }
  case WEFT_COLUMN_F64:
  case WEFT_COLUMN_SPARSE: {
    double lo, hi;
    int whole;
    ops->scan_f64(x->values, values, &lo, &hi, &plan->missing, &whole);
    if (!whole) return WEFT_CODES_NOT_WHOLE;
    if (plan->missing < values) {
      least = (int64_t) lo;
      greatest = (int64_t) hi;
    }
    break;
  }
  case WEFT_COLUMN_PATTERN:
    if (values) least = greatest = 1;
    break;
  case WEFT_COLUMN_GENOTYPE: {
    uint64_t count[4];
    weft_genotype_counts(x->values, values, NULL, count);
    plan->missing = (size_t) count[WEFT_GENOTYPE_MISSING];
    least = count[0] ? 0 : count[1] ? 1 : 2;
    greatest = count[2] ? 2 : count[1] ? 1 : 0;
    break;
  }
  }
  if (plan->missing == values) {
    least = 0;
    greatest = -1;
  }
  if (is_sparse(x) && values < n) { /* zeros that are not stored */
    if (least > greatest) greatest = least = 0;
    if (least > 0) least = 0;
    if (greatest < 0) greatest = 0;
  }
  uint64_t levels = (uint64_t) (greatest - least + 1) + (na_level && plan->missing);
  if (!levels) levels = 1; /* no value is known: a level that no row has, so that no size is a product with 0 */
  if (levels > WEFT_MAX_LEVELS) return WEFT_CODES_WIDE;
  plan->levels = (uint32_t) levels;
  plan->width = levels <= 255 ? 1 : 2;
  plan->base = (int32_t) least;
  return WEFT_CODES_OK;
}

/* Turns the code for "missing" into the last level. */
static void missing_to_level(void *out, size_t count, const weft_codes *plan)
{
  if (plan->width == 1) {
    uint8_t *c = out, level = (uint8_t) (plan->levels - 1);
    for (size_t i = 0; i < count; i++)
      if (c[i] == WEFT_NA_U8) c[i] = level;
  } else {
    uint16_t *c = out, level = (uint16_t) (plan->levels - 1);
    for (size_t i = 0; i < count; i++)
      if (c[i] == WEFT_NA_U16) c[i] = level;
  }
}

/* One loop for each type of column and width of code; where the missing are a level of their own, their codes are
 * replaced at the end. */
void weft_encode(const weft_column *x, size_t first, size_t count, int na_level, const weft_codes *plan, void *out)
{
  const weft_bits_ops *ops = weft_bits();
  switch (x->type) {
  case WEFT_COLUMN_I32: {
    const int32_t *value = (const int32_t *) x->values + first;
    if (plan->width == 1)
      ops->narrow_i32_u8(value, count, plan->base, out);
    else
      ops->narrow_i32_u16(value, count, plan->base, out);
    break;
  }
  case WEFT_COLUMN_F64:
  case WEFT_COLUMN_SPARSE: {
    const double *value = (const double *) x->values + first;
    if (plan->width == 1)
      ops->narrow_f64_u8(value, count, plan->base, out);
    else
      ops->narrow_f64_u16(value, count, plan->base, out);
    break;
  }
  case WEFT_COLUMN_U8: {
    const uint8_t *value = (const uint8_t *) x->values + first, base = (uint8_t) plan->base;
    if (plan->width == 1)
      for (size_t i = 0; i < count; i++) ((uint8_t *) out)[i] = (uint8_t) (value[i] - base);
    else
      for (size_t i = 0; i < count; i++) ((uint16_t *) out)[i] = (uint16_t) (value[i] - base);
    break;
  }
  case WEFT_COLUMN_PATTERN: /* ones; callers may want two bytes for few levels, too */
    if (plan->width == 1)
      memset(out, 1 - plan->base, count);
    else
      for (size_t i = 0; i < count; i++) ((uint16_t *) out)[i] = (uint16_t) (1 - plan->base);
    break;
  case WEFT_COLUMN_GENOTYPE: encode_genotypes(x, first, count, plan, out); break;
  }
  if (na_level && plan->missing) missing_to_level(out, count, plan);
}

/* A sparse column's stored values are encoded into `scratch`, and then put among zeros' codes. */
void weft_encode_all(const weft_column *x, size_t n, int na_level, const weft_codes *plan, void *out, void *scratch)
{
  if (!is_sparse(x)) {
    weft_encode(x, 0, n, na_level, plan, out);
    return;
  }
  weft_encode(x, 0, x->stored, na_level, plan, scratch);
  if (plan->width == 1) {
    memset(out, -plan->base, n);
    for (size_t k = 0; k < x->stored; k++) ((uint8_t *) out)[x->rows[k]] = ((uint8_t *) scratch)[k];
  } else {
    uint16_t *o = out, zero = (uint16_t) -plan->base;
    for (size_t i = 0; i < n; i++) o[i] = zero;
    for (size_t k = 0; k < x->stored; k++) o[x->rows[k]] = ((uint16_t *) scratch)[k];
  }
}

/* ---- wide columns ---- */

/* LSD radix sort by bytes; the sign bit is flipped so that negative values come first. The result is in `x`. */
static void sort_i32(int32_t *x, int32_t *other, size_t n)
{
  uint32_t *from = (uint32_t *) x, *to = (uint32_t *) other;
  for (int shift = 0; shift < 32; shift += 8) {
    size_t start[257] = { 0 };
    for (size_t i = 0; i < n; i++) start[(((from[i] ^ 0x80000000u) >> shift) & 255) + 1]++;
    for (int b = 0; b < 256; b++) start[b + 1] += start[b];
    for (size_t i = 0; i < n; i++) to[start[((from[i] ^ 0x80000000u) >> shift) & 255]++] = from[i];
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
}

/* Value i of a column that is not a pattern, WEFT_NA_I32 when missing. */
static int32_t value_at(const weft_column *x, size_t i)
{
  switch (x->type) {
  case WEFT_COLUMN_I32: return ((const int32_t *) x->values)[i];
  case WEFT_COLUMN_U8: return ((const uint8_t *) x->values)[i];
  case WEFT_COLUMN_GENOTYPE: {
    const int copies = weft_genotype_at(x->values, i);
    return copies == WEFT_GENOTYPE_MISSING ? WEFT_NA_I32 : copies;
  }
  default: {
    double value = ((const double *) x->values)[i];
    return value == value ? (int32_t) value : WEFT_NA_I32;
  }
  }
}

/* Sorts the values (and a zero, where some are not stored), keeps one of each, and finds every row's rank by bisection.
 * WEFT_CODES_TOO_MANY beyond 65,535 distinct values: `out` is not written then. */
weft_codes_result weft_encode_wide(const weft_column *x, size_t n, int na_level, weft_codes *plan, uint16_t *out,
                                   int32_t *work)
{
  const size_t values = is_sparse(x) ? x->stored : n;
  size_t kept = 0, distinct = 0;
  for (size_t i = 0; i < values; i++) {
    int32_t value = value_at(x, i);
    if (value != WEFT_NA_I32) work[kept++] = value;
  }
  plan->missing = values - kept;
  if (values < n) work[kept++] = 0;
  sort_i32(work, work + n, kept);
  for (size_t i = 0; i < kept; i++)
    if (!distinct || work[i] != work[distinct - 1]) work[distinct++] = work[i];
  plan->width = 2;
  plan->base = 0;
  if (distinct + (na_level && plan->missing) > WEFT_MAX_LEVELS) return WEFT_CODES_TOO_MANY;
  plan->levels = (uint32_t) (distinct + (na_level && plan->missing));
  for (size_t i = 0, dense = values == n; i < (dense ? n : n + values); i++) {
    /* a sparse column: first every row as zero, then the stored ones */
    int32_t value = dense ? value_at(x, i) : i < n ? 0 : value_at(x, i - n);
    size_t row = is_sparse(x) && (dense || i >= n) ? (size_t) x->rows[dense ? i : i - n] : i;
    size_t lo = 0, hi = distinct;
    while (lo < hi) {
      size_t mid = (lo + hi) / 2;
      if (work[mid] < value)
        lo = mid + 1;
      else
        hi = mid;
    }
    out[row] = value != WEFT_NA_I32 ? (uint16_t) lo : na_level ? (uint16_t) (plan->levels - 1) : WEFT_NA_U16;
  }
  return WEFT_CODES_OK;
}

const char *weft_codes_problem(weft_codes_result r)
{
  switch (r) {
  case WEFT_CODES_NOT_WHOLE:
    return "must contain categories or whole numbers below 2^31, not fractional, infinite or larger numbers. "
           "Use discretize() or `bins =`.";
  case WEFT_CODES_TOO_MANY: return "must have at most 65535 different values; it has more.";
  default: return "cannot be coded.";
  }
}
