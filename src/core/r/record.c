/* Reading records, and filling results, by name; see record.h. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/r/record.h"

#define MAX_FIELDS 64 /* bits of weft_record.read */

weft_record weft_record_open(SEXP list, const char *what)
{
  if (TYPEOF(list) != VECSXP)
    weft_glue_fail(WEFT_ERR_INTERNAL, "The record `%s` must be a list; it is of type %s.", what,
                   Rf_type2char(TYPEOF(list)));
  if (Rf_xlength(list) > MAX_FIELDS)
    weft_glue_fail(WEFT_ERR_INTERNAL, "The record `%s` has %.0f elements; at most %d can be read.", what,
                   (double) Rf_xlength(list), MAX_FIELDS);
  const weft_record record = { list, Rf_getAttrib(list, R_NamesSymbol), what, 0 };
  if (Rf_xlength(list) > 0 && record.names == R_NilValue)
    weft_glue_fail(WEFT_ERR_INTERNAL, "The elements of the record `%s` have no names.", what);
  return record;
}

void weft_record_close(const weft_record *record)
{
  for (R_xlen_t i = 0; i < Rf_xlength(record->list); i++)
    if (!(record->read >> i & 1))
      weft_glue_fail(WEFT_ERR_INTERNAL, "The record `%s` has an element `%s`, which is unknown here.", record->what,
                     CHAR(STRING_ELT(record->names, i)));
}

SEXP weft_record_field(weft_record *record, const char *name)
{
  for (R_xlen_t i = 0; i < Rf_xlength(record->names); i++) {
    if (strcmp(CHAR(STRING_ELT(record->names, i)), name)) continue;
    record->read |= UINT64_C(1) << i;
    return VECTOR_ELT(record->list, i);
  }
  weft_glue_fail(WEFT_ERR_INTERNAL, "The record `%s` has no element `%s`.", record->what, name);
}

static void fail_field(const weft_record *record, const char *name, const char *must, SEXP value)
{
  weft_glue_fail(WEFT_ERR_INTERNAL, "The element `%s` of the record `%s` must be %s; it is of type %s and length %.0f.",
                 name, record->what, must, Rf_type2char(TYPEOF(value)), (double) Rf_xlength(value));
}

double weft_record_number(weft_record *record, const char *name)
{
  const SEXP value = weft_record_field(record, name);
  if (!(Rf_isNumeric(value) || TYPEOF(value) == LGLSXP) || Rf_xlength(value) != 1)
    fail_field(record, name, "a number", value);
  return Rf_asReal(value);
}

int weft_record_integer(weft_record *record, const char *name)
{
  const double value = weft_record_number(record, name);
  if (!(value >= -INT_MAX && value <= INT_MAX) || value != floor(value))
    weft_glue_fail(WEFT_ERR_INTERNAL, "The element `%s` of the record `%s` must be an integer; it is %g.", name,
                   record->what, value);
  return (int) value;
}

size_t weft_record_size(weft_record *record, const char *name)
{
  const double value = weft_record_number(record, name);
  if (!(value >= 0 && value <= 0x1p53) || value != floor(value))
    weft_glue_fail(WEFT_ERR_INTERNAL, "The element `%s` of the record `%s` must be a whole number from 0; it is %g.",
                   name, record->what, value);
  return (size_t) value;
}

int weft_record_flag(weft_record *record, const char *name)
{
  const SEXP value = weft_record_field(record, name);
  if (TYPEOF(value) != LGLSXP || Rf_xlength(value) != 1 || LOGICAL(value)[0] == NA_LOGICAL)
    fail_field(record, name, "TRUE or FALSE", value);
  return LOGICAL(value)[0];
}

const char *weft_record_word(weft_record *record, const char *name)
{
  const SEXP value = weft_record_field(record, name);
  if (TYPEOF(value) != STRSXP || Rf_xlength(value) != 1 || STRING_ELT(value, 0) == NA_STRING)
    fail_field(record, name, "a word", value);
  return CHAR(STRING_ELT(value, 0));
}

static int place_of(const char *word, const char *what, const char *const *words, int count)
{
  for (int k = 0; k < count; k++)
    if (!strcmp(words[k], word)) return k;
  weft_glue_fail(WEFT_ERR_INTERNAL, "`%s` has no kind \"%s\".", what, word);
}

int weft_record_kind(weft_record *record, const char *name, const char *const *words, int count)
{
  return place_of(weft_record_word(record, name), name, words, count);
}

int weft_kind_of(SEXP word, const char *what, const char *const *words, int count)
{
  if (TYPEOF(word) != STRSXP || Rf_xlength(word) != 1)
    weft_glue_fail(WEFT_ERR_INTERNAL, "`%s` must be a word; it is of type %s.", what, Rf_type2char(TYPEOF(word)));
  return place_of(CHAR(STRING_ELT(word, 0)), what, words, count);
}

static SEXP vector_of(weft_record *record, const char *name, SEXPTYPE type, double length, int may_be_null)
{
  const SEXP value = weft_record_field(record, name);
  if (may_be_null && value == R_NilValue) return value;
  if ((SEXPTYPE) TYPEOF(value) != type || (length >= 0 && (double) Rf_xlength(value) != length)) {
    char must[80];
    if (length >= 0)
      snprintf(must, sizeof must, "of type %s and length %.0f", Rf_type2char(type), length);
    else
      snprintf(must, sizeof must, "of type %s", Rf_type2char(type));
    fail_field(record, name, must, value);
  }
  return value;
}

uint64_t weft_record_key(weft_record *record, const char *name)
{
  const double *halves = weft_record_doubles(record, name, 2);
  return (uint64_t) halves[0] << 32 | (uint64_t) halves[1];
}

const double *weft_record_doubles(weft_record *record, const char *name, double length)
{
  return REAL_RO(vector_of(record, name, REALSXP, length, 0));
}

const int *weft_record_integers(weft_record *record, const char *name, double length)
{
  return INTEGER_RO(vector_of(record, name, INTSXP, length, 0));
}

const double *weft_record_doubles_or_null(weft_record *record, const char *name, double length)
{
  const SEXP value = vector_of(record, name, REALSXP, length, 1);
  return value == R_NilValue ? NULL : REAL_RO(value);
}

const int *weft_record_integers_or_null(weft_record *record, const char *name, double length)
{
  const SEXP value = vector_of(record, name, INTSXP, length, 1);
  return value == R_NilValue ? NULL : INTEGER_RO(value);
}

SEXP weft_result_put(SEXP result, const char *name, SEXP value)
{
  const SEXP names = Rf_getAttrib(result, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(names); i++)
    if (!strcmp(CHAR(STRING_ELT(names, i)), name)) return SET_VECTOR_ELT(result, i, value);
  weft_glue_fail(WEFT_ERR_INTERNAL, "A result has no element `%s`.", name);
}

/* Gives x these attributes, a list by name, where it stands: for a large result that nobody else holds, which R would
 * copy. */
SEXP C_weft_set_attributes(SEXP x, SEXP attributes)
{
  const SEXP names = Rf_getAttrib(attributes, R_NamesSymbol);
  for (R_xlen_t i = 0; i < Rf_xlength(attributes); i++)
    Rf_setAttrib(x, Rf_installTrChar(STRING_ELT(names, i)), VECTOR_ELT(attributes, i));
  return x;
}
