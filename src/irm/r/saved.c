/* Checkpoints: reading and checking them.
 *
 * A checkpoint is what saveRDS() writes: R's serialization in XDR form, versions 2 and 3. It may come from anywhere, so
 * it is read here and not by unserialize(), which makes functions, calls, environments, promises and external pointers
 * of whatever the bytes say, and can end R itself (README.md):
 *
 *   header   "X\n", version, writer, least reader, and in version 3 the name of an encoding
 *   item     flags: type in bits 0-7, attributes follow (bit 9), a tag comes first (bit 10), encoding of strings from
 *            bit 12; then a length and elements, or further items; attributes are a list of pairs that ends with
 *            NILVALUE
 *
 * Only vectors of logicals, integers, doubles and strings, and lists of these, are made; of attributes only names, dim,
 * dimnames, class and row.names, and through Rf_setAttrib(), which checks them against the vector. A length that the
 * bytes cannot fill is not trusted. */
#include <stdio.h>
#include <string.h>
#include "core/r/glue.h"

enum { TYPE_SYMBOL = 1, TYPE_PAIRS = 2, TYPE_STRING = 9, TYPE_REFERENCE = 255, TYPE_NOTHING = 254 };
enum { HAS_ATTRIBUTES = 1 << 9, HAS_TAG = 1 << 10, MAX_SYMBOLS = 64, MAX_DEPTH = 16 };

typedef struct {
  const unsigned char *at, *end;
  int depth, symbols;
  SEXP symbol[MAX_SYMBOLS];
} reader;

static void need(const reader *input, double bytes)
{
  if ((double) (input->end - input->at) < bytes) Rf_error("ends too early");
}

static int32_t next_int(reader *input)
{
  need(input, 4);
  const uint32_t x =
      (uint32_t) input->at[0] << 24 | (uint32_t) input->at[1] << 16 | (uint32_t) input->at[2] << 8 | input->at[3];
  input->at += 4;
  return (int32_t) x;
}

static double next_double(reader *input)
{
  const uint64_t high = (uint32_t) next_int(input), bits = high << 32 | (uint32_t) next_int(input);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* A vector's length, which is trusted only if the bytes that are left can hold it, `each` bytes an element at least. */
static R_xlen_t next_length(reader *input, double each)
{
  int32_t n = next_int(input);
  double length = n;
  if (n == -1) {
    length = 4294967296.0 * (uint32_t) next_int(input);
    length += (uint32_t) next_int(input);
  } else if (n < 0) {
    Rf_error("has a length below 0");
  }
  need(input, each * length);
  return (R_xlen_t) length;
}

/* What follows the flags of a string. */
static SEXP next_string(reader *input, int32_t flags)
{
  const int32_t length = next_int(input), encoding = flags >> 12;
  if ((flags & 255) != TYPE_STRING || flags & HAS_ATTRIBUTES) Rf_error("has no string where one is expected");
  if (length == -1) return NA_STRING;
  if (length < 0) Rf_error("has a length below 0");
  need(input, length);
  const char *text = (const char *) input->at;
  input->at += length;
  const cetype_t known = encoding & 8 ? CE_UTF8 : encoding & 4 ? CE_LATIN1 : encoding & 2 ? CE_BYTES : CE_NATIVE;
  return Rf_mkCharLenCE(text, length, known);
}

/* What an error says of a type that a checkpoint must not have. The numbers are R's serialization codes for its own
 * environments. */
static const char *name_of_type(int type)
{
  switch (type) {
  case CLOSXP:
  case SPECIALSXP:
  case BUILTINSXP: return "a function";
  case LANGSXP:
  case EXPRSXP:
  case TYPE_SYMBOL: return "a call or a name";
  case PROMSXP: return "a promise";
  case ENVSXP:
  case 241:
  case 242:
  case 249:
  case 253: return "an environment";
  case EXTPTRSXP:
  case WEAKREFSXP: return "a pointer";
  case S4SXP: return "an S4 object";
  default: return "something else";
  }
}

static SEXP next_item(reader *input);

/* The symbol that names an attribute. */
static SEXP next_tag(reader *input)
{
  const int32_t flags = next_int(input), type = flags & 255;
  if (type == TYPE_REFERENCE) {
    const int32_t which = flags >> 8 ? flags >> 8 : next_int(input);
    if (which < 1 || which > input->symbols) Rf_error("refers to an undefined name");
    return input->symbol[which - 1];
  }
  if (type != TYPE_SYMBOL || input->symbols == MAX_SYMBOLS) Rf_error("has attributes without names");
  SEXP name = PROTECT(next_string(input, next_int(input)));
  if (name == NA_STRING || LENGTH(name) == 0 || LENGTH(name) > 255) Rf_error("has attributes without names");
  input->symbol[input->symbols++] = Rf_install(CHAR(name));
  UNPROTECT(1);
  return input->symbol[input->symbols - 1];
}

/* Sets one of the five attributes that are kept, if its type is right; others are dropped. An R error when it does
 * not fit. */
static void set_attribute(SEXP x, SEXP tag, SEXP value)
{
  const R_xlen_t n = Rf_xlength(x);
  int fits = 1;
  if (tag == R_NamesSymbol)
    fits = TYPEOF(value) == STRSXP && Rf_xlength(value) == n;
  else if (tag == R_DimSymbol)
    fits = TYPEOF(value) == INTSXP;
  else if (tag == R_DimNamesSymbol)
    fits = TYPEOF(value) == VECSXP;
  else if (tag == R_ClassSymbol)
    fits = TYPEOF(value) == STRSXP;
  else if (tag == R_RowNamesSymbol)
    fits = TYPEOF(value) == STRSXP || TYPEOF(value) == INTSXP;
  else
    return;
  if (!fits) Rf_error("has an invalid attribute `%s`", CHAR(PRINTNAME(tag)));
  Rf_setAttrib(x, tag, value);
}

static void next_attributes(reader *input, SEXP x)
{
  for (;;) {
    const int32_t flags = next_int(input);
    if ((flags & 255) == TYPE_NOTHING) return;
    const int named = (flags & 255) == TYPE_PAIRS && !(flags & HAS_ATTRIBUTES) && flags & HAS_TAG;
    if (!named) Rf_error("has attributes without names");
    const SEXP tag = next_tag(input);
    SEXP value = PROTECT(next_item(input));
    set_attribute(x, tag, value);
    UNPROTECT(1);
  }
}

/* Reads one object with all that it holds; an R error for any type but vectors and lists, for a length that the
 * bytes cannot fill, and for lists nested deeper than MAX_DEPTH. */
static SEXP next_item(reader *input)
{
  const int32_t flags = next_int(input), type = flags & 255;
  SEXP x = R_NilValue;
  if (type == TYPE_NOTHING) return x;
  if (++input->depth > MAX_DEPTH) Rf_error("has lists that are nested too deeply");
  switch (type) {
  case LGLSXP:
  case INTSXP:
    x = PROTECT(Rf_allocVector((SEXPTYPE) type, next_length(input, 4)));
    for (R_xlen_t i = 0; i < XLENGTH(x); i++) {
      const int32_t v = next_int(input);
      if (type == INTSXP)
        INTEGER(x)[i] = v;
      else
        LOGICAL(x)[i] = v == NA_LOGICAL ? v : v != 0;
    }
    break;
  case REALSXP:
    x = PROTECT(Rf_allocVector(REALSXP, next_length(input, 8)));
    for (R_xlen_t i = 0; i < XLENGTH(x); i++) REAL(x)[i] = next_double(input);
    break;
  case STRSXP:
    x = PROTECT(Rf_allocVector(STRSXP, next_length(input, 8)));
    for (R_xlen_t i = 0; i < XLENGTH(x); i++) SET_STRING_ELT(x, i, next_string(input, next_int(input)));
    break;
  case VECSXP:
    x = PROTECT(Rf_allocVector(VECSXP, next_length(input, 4)));
    for (R_xlen_t i = 0; i < XLENGTH(x); i++) SET_VECTOR_ELT(x, i, next_item(input));
    break;
  default: Rf_error("contains %s, but only vectors and lists are allowed", name_of_type(type));
  }
  if (flags & HAS_ATTRIBUTES) next_attributes(input, x);
  input->depth--;
  UNPROTECT(1);
  return x;
}

/* The object that a raw vector holds; an R error with what is wrong, to follow the file's name, otherwise. */
SEXP C_weft_irm_saved_read(SEXP bytes)
{
  reader input = { .at = RAW(bytes), .end = RAW(bytes) + XLENGTH(bytes) };
  need(&input, 14);
  if (input.at[0] != 'X' || input.at[1] != '\n') Rf_error("has another format");
  input.at += 2;
  const int32_t version = next_int(&input);
  if (version != 2 && version != 3) Rf_error("has another format");
  input.at += 8;
  if (version == 3) {
    const int32_t length = next_int(&input);
    if (length < 0) Rf_error("has another format");
    need(&input, length);
    input.at += length;
  }
  SEXP x = PROTECT(next_item(&input));
  if (input.at != input.end) Rf_error("continues after its end");
  UNPROTECT(1);
  return x;
}

/* ---- the checksum ---- */

static uint64_t mix(uint64_t sum, uint64_t word)
{
  sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return sum ^ sum >> 29;
}

static uint64_t add_string(uint64_t sum, SEXP string)
{
  if (string == NA_STRING) return mix(sum, UINT64_MAX);
  sum = mix(sum, (uint64_t) LENGTH(string));
  for (int i = 0; i < LENGTH(string); i++) sum = mix(sum, (unsigned char) CHAR(string)[i]);
  return sum;
}

/* A checksum of values, not of bytes: the same on every machine, and after reading what was written. */
static uint64_t add_object(uint64_t sum, SEXP x)
{
  const SEXP attributes[] = { R_NamesSymbol, R_DimSymbol, R_DimNamesSymbol, R_ClassSymbol };
  const R_xlen_t n = Rf_xlength(x);
  sum = mix(mix(sum, (uint64_t) TYPEOF(x)), (uint64_t) n);
  switch (TYPEOF(x)) {
  case NILSXP: return sum;
  case LGLSXP:
    for (R_xlen_t i = 0; i < n; i++) sum = mix(sum, (uint32_t) LOGICAL(x)[i]);
    break;
  case INTSXP:
    for (R_xlen_t i = 0; i < n; i++) sum = mix(sum, (uint32_t) INTEGER(x)[i]);
    break;
  case REALSXP:
    for (R_xlen_t i = 0; i < n; i++) {
      uint64_t bits;
      memcpy(&bits, REAL(x) + i, sizeof bits);
      sum = mix(sum, bits);
    }
    break;
  case STRSXP:
    for (R_xlen_t i = 0; i < n; i++) sum = add_string(sum, STRING_ELT(x, i));
    break;
  case VECSXP:
    for (R_xlen_t i = 0; i < n; i++) sum = add_object(sum, VECTOR_ELT(x, i));
    break;
  default: Rf_error("internal error: %s in a checkpoint", Rf_type2char(TYPEOF(x)));
  }
  for (int a = 0; a < 4; a++) {
    SEXP value = PROTECT(Rf_getAttrib(x, attributes[a]));
    if (value != R_NilValue) sum = add_object(mix(sum, (uint64_t) a), value);
    UNPROTECT(1);
  }
  return sum;
}

/* 16 hexadecimal digits. */
SEXP C_weft_irm_saved_sum(SEXP x)
{
  char text[17];
  snprintf(text, sizeof text, "%016llx", (unsigned long long) add_object(0, x));
  return Rf_mkString(text);
}
