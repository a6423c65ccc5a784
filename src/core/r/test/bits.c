/* The entry point through which R's tests run bits.h and topk.h, in builds with WEFT_TESTS=yes: it takes an operation's
 * name and its arguments, runs the variant in use and returns plain R vectors. Planes travel as raw vectors, eight
 * bytes per word; codes of either width as integers. It checks nothing but what keeps memory safe: only tests call
 * it. */
#include <string.h>
#include <R.h>
#include <Rinternals.h>
#include "core/call/arena.h"
#include "core/data/bits.h"
#include "core/numbers/topk.h"

SEXP C_weft_bits_test(SEXP op, SEXP args);

static SEXP arg(SEXP args, R_xlen_t i)
{
  if (i >= XLENGTH(args)) Rf_error("argument %d is missing", (int) i + 1);
  return VECTOR_ELT(args, i);
}

static uint8_t *codes_u8(SEXP x)
{
  uint8_t *codes = (uint8_t *) R_alloc((size_t) XLENGTH(x) + 1, 1);
  for (R_xlen_t i = 0; i < XLENGTH(x); i++) codes[i] = (uint8_t) INTEGER(x)[i];
  return codes;
}

static uint16_t *codes_u16(SEXP x)
{
  uint16_t *codes = (uint16_t *) R_alloc((size_t) XLENGTH(x) + 1, sizeof(uint16_t));
  for (R_xlen_t i = 0; i < XLENGTH(x); i++) codes[i] = (uint16_t) INTEGER(x)[i];
  return codes;
}

static uint64_t *words_of(SEXP x, size_t *words)
{
  *words = (size_t) XLENGTH(x) / 8;
  uint64_t *copy = (uint64_t *) R_alloc(*words + 1, sizeof(uint64_t));
  memcpy(copy, RAW(x), *words * sizeof(uint64_t));
  return copy;
}

static SEXP words_to_raw(const uint64_t *words, size_t count)
{
  SEXP out = Rf_allocVector(RAWSXP, (R_xlen_t) (count * sizeof(uint64_t)));
  memcpy(RAW(out), words, count * sizeof(uint64_t));
  return out;
}

static SEXP doubles(int count, double a, double b, double c, double d)
{
  SEXP out = Rf_allocVector(REALSXP, count);
  const double all[4] = { a, b, c, d };
  memcpy(REAL(out), all, (size_t) count * sizeof(double));
  return out;
}

/* scan(x): min, max, missing, all whole (doubles) */
static SEXP scan(SEXP args)
{
  SEXP x = arg(args, 0);
  size_t n = (size_t) XLENGTH(x), missing = 0;
  if (TYPEOF(x) == RAWSXP) {
    uint8_t least, greatest;
    weft_bits()->scan_u8(RAW(x), n, &least, &greatest);
    return doubles(2, least, greatest, 0, 0);
  }
  if (TYPEOF(x) == INTSXP) {
    int32_t least, greatest;
    weft_bits()->scan_i32(INTEGER(x), n, &least, &greatest, &missing);
    return doubles(3, least, greatest, (double) missing, 0);
  }
  double least, greatest;
  int whole;
  weft_bits()->scan_f64(REAL(x), n, &least, &greatest, &missing, &whole);
  return doubles(4, least, greatest, (double) missing, whole);
}

/* narrow(x, base, bits): codes as integers */
static SEXP narrow(SEXP args)
{
  SEXP x = arg(args, 0);
  size_t n = (size_t) XLENGTH(x);
  int32_t base = Rf_asInteger(arg(args, 1));
  int is_int = TYPEOF(x) == INTSXP, wide = Rf_asInteger(arg(args, 2)) == 16;
  SEXP out = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t) n));
  uint8_t *u8 = (uint8_t *) R_alloc(n + 1, 1);
  uint16_t *u16 = (uint16_t *) R_alloc(n + 1, sizeof(uint16_t));
  if (wide && is_int)
    weft_bits()->narrow_i32_u16(INTEGER(x), n, base, u16);
  else if (wide)
    weft_bits()->narrow_f64_u16(REAL(x), n, base, u16);
  else if (is_int)
    weft_bits()->narrow_i32_u8(INTEGER(x), n, base, u8);
  else
    weft_bits()->narrow_f64_u8(REAL(x), n, base, u8);
  for (size_t r = 0; r < n; r++) INTEGER(out)[r] = wide ? u16[r] : u8[r];
  UNPROTECT(1);
  return out;
}

/* plane(codes, level, bits): the words */
static SEXP plane(SEXP args)
{
  SEXP x = arg(args, 0);
  size_t n = (size_t) XLENGTH(x), words = weft_plane_words(n);
  int level = Rf_asInteger(arg(args, 1));
  uint64_t *out = (uint64_t *) R_alloc(words + 1, sizeof(uint64_t));
  if (Rf_asInteger(arg(args, 2)) == 16)
    weft_bits()->plane_u16(codes_u16(x), n, (uint16_t) level, out);
  else
    weft_bits()->plane_u8(codes_u8(x), n, (uint8_t) level, out);
  return words_to_raw(out, words);
}

/* binary(x, base, keep_na): NULL when x does not fit, else list(ones, na, number missing) */
static SEXP binary(SEXP args)
{
  SEXP x = arg(args, 0);
  size_t n = (size_t) XLENGTH(x), words = weft_plane_words(n), missing;
  int keep = Rf_asLogical(arg(args, 2));
  uint64_t *ones = (uint64_t *) R_alloc(words + 1, sizeof(uint64_t));
  uint64_t *na = (uint64_t *) R_alloc(words + 1, sizeof(uint64_t));
  if (!weft_bits()->scan_pack_binary_i32(INTEGER(x), n, Rf_asInteger(arg(args, 1)), ones, keep ? na : NULL, &missing))
    return R_NilValue;
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 3));
  SET_VECTOR_ELT(out, 0, words_to_raw(ones, words));
  if (keep) SET_VECTOR_ELT(out, 1, words_to_raw(na, words));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal((double) missing));
  UNPROTECT(1);
  return out;
}

/* popcount(a [, b [, c]]), planes of one length */
static SEXP popcount(SEXP args)
{
  size_t words[3] = { 0, 0, 0 };
  uint64_t *planes[3] = { NULL, NULL, NULL };
  R_xlen_t count = XLENGTH(args);
  for (R_xlen_t i = 0; i < count && i < 3; i++) {
    planes[i] = words_of(arg(args, i), &words[i]);
    if (words[i] != words[0]) Rf_error("planes must have one length");
  }
  if (count == 1) return Rf_ScalarReal((double) weft_popcount(planes[0], words[0]));
  if (count == 2) return Rf_ScalarReal((double) weft_bits()->popcount_and(planes[0], planes[1], words[0]));
  return Rf_ScalarReal((double) weft_bits()->popcount_and3(planes[0], planes[1], planes[2], words[0]));
}

/* tile(a, na, b, nb, words): na x nb counts, row by row; with na = 1 many(...) gives the same from the other kernel */
static SEXP tile(SEXP args, int many)
{
  size_t have_a, have_b;
  uint64_t *a = words_of(arg(args, 0), &have_a), *b = words_of(arg(args, 2), &have_b);
  size_t na = (size_t) Rf_asInteger(arg(args, 1)), nb = (size_t) Rf_asInteger(arg(args, 3));
  size_t words = (size_t) Rf_asInteger(arg(args, 4));
  if (have_a != na * words || have_b != nb * words || (many && na != 1)) Rf_error("planes do not fit the shape");
  SEXP out = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t) (na * nb)));
  uint32_t *counts = (uint32_t *) R_alloc(na * nb + 1, sizeof(uint32_t));
  if (many) {
    const uint64_t **planes = (const uint64_t **) R_alloc(nb + 1, sizeof *planes);
    for (size_t j = 0; j < nb; j++) planes[j] = b + j * words;
    weft_bits()->popcount_and_many(a, planes, nb, words, counts);
  } else {
    weft_bits()->popcount_tile(a, na, words, b, nb, words, words, counts, nb);
  }
  for (size_t i = 0; i < na * nb; i++) INTEGER(out)[i] = (int) counts[i];
  UNPROTECT(1);
  return out;
}

/* hist(codes, class, levels, classes, bits): counts, class fastest */
static SEXP hist(SEXP args)
{
  SEXP x = arg(args, 0), class_codes = arg(args, 1);
  size_t n = (size_t) XLENGTH(x), levels = (size_t) Rf_asInteger(arg(args, 2));
  size_t classes = (size_t) Rf_asInteger(arg(args, 3)), cells = levels * classes;
  if ((size_t) XLENGTH(class_codes) != n) Rf_error("codes and class must have one length");
  SEXP out = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t) cells));
  uint32_t *counts = (uint32_t *) R_alloc(cells + 1, sizeof(uint32_t));
  memset(counts, 0, cells * sizeof *counts);
  if (Rf_asInteger(arg(args, 4)) == 16)
    weft_hist_u16(codes_u16(x), codes_u16(class_codes), n, levels, classes, counts);
  else
    weft_hist_u8(codes_u8(x), codes_u8(class_codes), n, levels, classes, counts);
  for (size_t i = 0; i < cells; i++) INTEGER(out)[i] = (int) counts[i];
  UNPROTECT(1);
  return out;
}

/* Shares the pushes among `parts` collectors in turn and merges them. Item i has index[i]. */
static weft_status topk_run(weft_ctx *ctx, const double *score, const double *index, size_t n, size_t k, size_t parts,
                            weft_scored *best, size_t *found)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_topk *part;
  WEFT_TAKE(part, &mem, parts);
  for (size_t p = 0; p < parts; p++) WEFT_TRY(weft_topk_init(&part[p], &mem, k));
  for (size_t i = 0; i < n; i++) weft_topk_push(&part[i % parts], score[i], (uint64_t) index[i]);
  for (size_t p = 1; p < parts; p++) weft_topk_merge(&part[0], &part[p]);
  *found = weft_topk_sort(&part[0]);
  if (*found) memcpy(best, part[0].items, *found * sizeof *best);
done:
  weft_arena_end(&mem);
  return st;
}

/* topk(score, index, k, parts): list(score, index), best first */
static SEXP topk(SEXP args)
{
  SEXP score = arg(args, 0), index = arg(args, 1);
  size_t n = (size_t) XLENGTH(score), k = (size_t) Rf_asInteger(arg(args, 2)), found = 0;
  size_t parts = (size_t) Rf_asInteger(arg(args, 3));
  if ((size_t) XLENGTH(index) != n || !parts) Rf_error("score and index must have one length, and parts be positive");
  weft_scored *best = (weft_scored *) R_alloc((n < k ? n : k) + 1, sizeof *best);
  weft_memory account = { 0 };
  weft_ctx ctx = { .threads = 1, .memory = &account };
  if (topk_run(&ctx, REAL(score), REAL(index), n, k, parts, best, &found) != WEFT_OK) Rf_error("%s", ctx.message);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, 2));
  SET_VECTOR_ELT(out, 0, Rf_allocVector(REALSXP, (R_xlen_t) found));
  SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, (R_xlen_t) found));
  for (size_t i = 0; i < found; i++) {
    REAL(VECTOR_ELT(out, 0))[i] = best[i].score;
    REAL(VECTOR_ELT(out, 1))[i] = (double) best[i].index;
  }
  UNPROTECT(1);
  return out;
}

SEXP C_weft_bits_test(SEXP op, SEXP args)
{
  const char *name = CHAR(STRING_ELT(op, 0));
  if (!strcmp(name, "scan")) return scan(args);
  if (!strcmp(name, "narrow")) return narrow(args);
  if (!strcmp(name, "plane")) return plane(args);
  if (!strcmp(name, "binary")) return binary(args);
  if (!strcmp(name, "popcount")) return popcount(args);
  if (!strcmp(name, "tile")) return tile(args, 0);
  if (!strcmp(name, "many")) return tile(args, 1);
  if (!strcmp(name, "hist")) return hist(args);
  if (!strcmp(name, "topk")) return topk(args);
  Rf_error("no such operation: %s", name);
  return R_NilValue;
}
