/* The digest of an R object, by which ranks see whether they have the same (R/ranks.R). It is of values, not of how
 * they are kept: the same for numbers of any type, 0 and -0, strings in any encoding, attributes in any order.
 * Environments, functions and external pointers count by their type alone. */
#include "core/r/glue.h"
#include "core/together/ranks_digest.h"

enum { AT_ONCE = 1024 };

/* Numbers as doubles, with one pattern each for NA and NaN. There is room for one more. */
static void add_numbers(weft_digest *digest, double *x, size_t n)
{
  static const uint64_t missing = UINT64_C(0x7ff00000000007a2), not_a_number = UINT64_C(0x7ff8000000000000);
  double even = 0, odd = 0; /* x - x is 0 but for what is not finite */
  for (size_t i = 0; i < n; i += 2) {
    x[i] += 0.0, x[i + 1] += 0.0;
    even += x[i] - x[i], odd += x[i + 1] - x[i + 1];
  }
  for (size_t i = 0; even + odd != 0 && i < n; i++)
    if (x[i] != x[i]) memcpy(&x[i], R_IsNA(x[i]) ? &missing : &not_a_number, sizeof missing);
  weft_digest_bytes(digest, x, n * sizeof *x);
}

/* Adds a numeric vector's values as doubles, AT_ONCE at a time, so that integer 1 and double 1 have the same digest and
 * compact vectors (1:n) are not expanded. */
static void add_vector(weft_digest *digest, SEXP x)
{
  const R_xlen_t n = Rf_xlength(x);
  double values[AT_ONCE + 1];
  int whole[AT_ONCE];
  for (R_xlen_t from = 0; from < n; from += AT_ONCE) {
    const R_xlen_t count = n - from < AT_ONCE ? n - from : AT_ONCE;
    if (TYPEOF(x) == REALSXP)
      REAL_GET_REGION(x, from, count, values);
    else {
      if (TYPEOF(x) == INTSXP)
        INTEGER_GET_REGION(x, from, count, whole);
      else
        LOGICAL_GET_REGION(x, from, count, whole);
      for (R_xlen_t i = 0; i < count; i++) values[i] = whole[i] == NA_INTEGER ? NA_REAL : whole[i];
    }
    values[count] = 0;
    add_numbers(digest, values, (size_t) count);
  }
}

static void add_text(weft_digest *digest, SEXP text)
{
  const void *top = vmaxget();
  if (text == NA_STRING)
    weft_digest_word(digest, UINT64_MAX);
  else {
    const char *utf8 = Rf_translateCharUTF8(text);
    weft_digest_bytes(digest, utf8, strlen(utf8));
  }
  vmaxset(top);
}

static void add(weft_digest *digest, SEXP x);

/* The sum of the digests of all attributes, which has no order. */
static void add_attributes(weft_digest *digest, SEXP x)
{
  SEXP call = PROTECT(Rf_lang2(Rf_install("attributes"), x)), all = PROTECT(Rf_eval(call, R_BaseEnv));
  SEXP names = PROTECT(Rf_getAttrib(all, R_NamesSymbol));
  uint64_t sum = 0;
  for (R_xlen_t i = 0; i < Rf_xlength(all); i++) {
    weft_digest one = weft_digest_begin();
    add_text(&one, STRING_ELT(names, i));
    add(&one, VECTOR_ELT(all, i));
    sum += weft_digest_end(&one);
  }
  weft_digest_word(digest, sum);
  UNPROTECT(3);
}

/* Adds an R object with all that it holds, by the values: types are told apart, except whole numbers from doubles. What
 * has no value to compare (environments, functions, pointers) adds its type alone. */
static void add(weft_digest *digest, SEXP x)
{
  const int type = TYPEOF(x);
  R_CheckStack();
  weft_digest_word(digest, (uint64_t) (type == INTSXP || type == LGLSXP ? REALSXP : type));
  switch (type) {
  case LGLSXP:
  case INTSXP:
  case REALSXP:
    weft_digest_word(digest, (uint64_t) Rf_xlength(x));
    add_vector(digest, x);
    break;
  case CPLXSXP:
    for (R_xlen_t i = 0; i < Rf_xlength(x); i++) add_numbers(digest, (double[]){ COMPLEX(x)[i].r, COMPLEX(x)[i].i }, 2);
    break;
  case RAWSXP: weft_digest_bytes(digest, RAW(x), (size_t) Rf_xlength(x)); break;
  case STRSXP:
    weft_digest_word(digest, (uint64_t) Rf_xlength(x));
    for (R_xlen_t i = 0; i < Rf_xlength(x); i++) add_text(digest, STRING_ELT(x, i));
    break;
  case VECSXP:
  case EXPRSXP:
    weft_digest_word(digest, (uint64_t) Rf_xlength(x));
    for (R_xlen_t i = 0; i < Rf_xlength(x); i++) add(digest, VECTOR_ELT(x, i));
    break;
  case SYMSXP: add_text(digest, PRINTNAME(x)); return;
  case LISTSXP:
  case LANGSXP:
    for (; x != R_NilValue; x = CDR(x)) {
      add(digest, TAG(x));
      add(digest, CAR(x));
    }
    return;
  case S4SXP: break;
  default: return;
  }
  add_attributes(digest, x);
}

/* Eight bytes. */
SEXP C_weft_ranks_digest(SEXP x)
{
  weft_digest digest = weft_digest_begin();
  add(&digest, x);
  const uint64_t all = weft_digest_end(&digest);
  SEXP out = Rf_allocVector(RAWSXP, sizeof all);
  memcpy(RAW(out), &all, sizeof all);
  return out;
}
