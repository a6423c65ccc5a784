/* Records: named lists that R hands to native code, read by name. What R sent and what C reads must be the same names:
 *
 *   weft_record run = weft_record_open(list, "run");
 *   const size_t thin = weft_record_size(&run, "thin");
 *   const double *beta = weft_record_doubles(&run, "beta", WEFT_ANY_LENGTH);
 *   weft_record_close(&run);
 *
 * A name that is missing, a value of another type or length, and (at the close) a name that nobody read are internal
 * errors that say which record and which name. Only entry points read records, before anything native is owned: an
 * error jumps. */
#pragma once

#include "core/r/glue.h"

typedef struct weft_record {
  SEXP list, names;
  const char *what; /* what it is called in messages */
  uint64_t read;    /* one bit per element: it has been read */
} weft_record;

#define WEFT_ANY_LENGTH (-1)

weft_record weft_record_open(SEXP list, const char *what);
void weft_record_close(const weft_record *record);

/* Any value, R's NULL among them. */
SEXP weft_record_field(weft_record *record, const char *name);
/* Single values. A number may be NA or infinite; an integer and a size (0 to 2^53) may not. */
double weft_record_number(weft_record *record, const char *name);
int weft_record_integer(weft_record *record, const char *name);
size_t weft_record_size(weft_record *record, const char *name);
int weft_record_flag(weft_record *record, const char *name);
const char *weft_record_word(weft_record *record, const char *name);
/* The place of a word among `count` words: R sends a kind's name, and C knows its number. */
int weft_record_kind(weft_record *record, const char *name, const char *const *words, int count);
/* A key of random draws, which R holds as two halves of 32 bits. */
uint64_t weft_record_key(weft_record *record, const char *name);
/* Vectors of a type and a length. */
const double *weft_record_doubles(weft_record *record, const char *name, double length);
const int *weft_record_integers(weft_record *record, const char *name, double length);
/* The same, or NULL for R's NULL. */
const double *weft_record_doubles_or_null(weft_record *record, const char *name, double length);
const int *weft_record_integers_or_null(weft_record *record, const char *name, double length);

/* The place of a kind's name, sent by itself, among `count` words; `what` names it in the error. */
int weft_kind_of(SEXP word, const char *what, const char *const *words, int count);

/* Results are named lists. Puts `value` at `name`, and returns it; an internal error where there is no such name. */
#define WEFT_NAMED_LIST(...) Rf_mkNamed(VECSXP, (const char *[]){ __VA_ARGS__, "" })
SEXP weft_result_put(SEXP result, const char *name, SEXP value);
