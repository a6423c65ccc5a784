/* .Call entry points that read pieces of other programs' files: chunks of Zarr arrays and arrays of BPCells. R/zarr.R
 * and R/bpcells.R read what is around them, and say what a piece must hold; what it holds is checked here. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "core/r/glue.h"
#include "core/r/record.h"
#include "store/file/bytes.h"
#include "store/file/os.h"
#include "store/import/bp128.h"
#include "store/import/codecs.h"
#include "store/import/hdf5_chunks.h"

#define MAX_CODECS 8

typedef struct {
  const char *path, *label; /* `label`: in messages */
  double first, size;       /* bytes of the file; `size` NaN: all that follow */
  weft_codec codecs[MAX_CODECS];
  size_t count, whole, most;
  weft_arena *keep;
  weft_bytes bytes;
} piece_job;

/* Reads bytes of a file into the arena. */
static weft_status read_bytes(weft_ctx *ctx, piece_job *job)
{
  weft_status st = WEFT_OK;
  char why[WEFT_FILE_WHY];
  uint64_t size = 0;
  uint8_t *to;
  const int file = weft_file_open(job->path, &size, why);
  if (file < 0) return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", job->label, why);
  const double wanted = isnan(job->size) ? (double) size - job->first : job->size;
  if (!(wanted >= 0 && job->first + wanted <= (double) size)) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' ends at byte %.0f; it must have %.0f.", job->label, (double) size,
                   job->first + (isnan(job->size) ? 0 : job->size));
    goto done;
  }
  if (wanted > (double) job->most + 1048576) { /* compressed data may be a little longer */
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' has a piece of %.0f bytes, which is more than weft reads at once.",
                   job->label, wanted);
    goto done;
  }
  WEFT_TAKE(to, job->keep, (size_t) wanted + 1);
  WEFT_TRY(weft_store_os_read(ctx, file, job->label, (uint64_t) job->first, to, (size_t) wanted));
  job->bytes = (weft_bytes){ job->label, to, (size_t) wanted };
done:
  weft_file_close(file);
  return st;
}

static weft_status run_piece(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  piece_job *job = data;
  weft_status st = WEFT_OK;
  (void) backend;
  WEFT_TRY(read_bytes(ctx, job));
  st = weft_decode(ctx, job->keep, job->codecs, job->count, job->whole, job->most, &job->bytes);
done:
  return st;
}

/* `part`: list(path, label, first, size, codecs, whole, most). Bytes of a file, from `first` on (`size` NA: all), after
 * `codecs` were undone: `whole` of them, or at most `most` where that is NA. */
SEXP C_weft_store_bytes(SEXP part, SEXP control)
{
  static const char *const names[WEFT_CODECS] = WEFT_CODEC_NAMES;
  weft_record record = weft_record_open(part, "piece");
  piece_job job = { .path = weft_record_word(&record, "path"),
                    .label = weft_record_word(&record, "label"),
                    .first = weft_record_number(&record, "first"),
                    .size = weft_record_number(&record, "size") };
  SEXP codecs = weft_record_field(&record, "codecs");
  const double whole = weft_record_number(&record, "whole"), most = weft_record_number(&record, "most");
  weft_record_close(&record);
  job.count = (size_t) Rf_xlength(codecs);
  if (TYPEOF(codecs) != STRSXP || job.count > MAX_CODECS || !(job.first >= 0 && job.first < 9e15) ||
      !(most >= 0 && most < 4e9) || whole > most || whole < 0)
    weft_glue_fail(WEFT_ERR_INTERNAL, "A piece of an impossible size.");
  job.most = (size_t) most;
  job.whole = isnan(whole) ? SIZE_MAX : (size_t) whole;
  for (size_t k = 0; k < job.count; k++) {
    SEXP word = PROTECT(Rf_ScalarString(STRING_ELT(codecs, (R_xlen_t) k)));
    job.codecs[k] = (weft_codec) weft_kind_of(word, "codec", names, WEFT_CODECS);
    UNPROTECT(1);
  }
  SEXP holder = PROTECT(weft_glue_arena(&job.keep));
  weft_glue_run(control, run_piece, &job);
  SEXP out = PROTECT(weft_glue_vector(RAWSXP, (double) job.bytes.size));
  if (job.bytes.size) memcpy(RAW(out), job.bytes.at, job.bytes.size);
  weft_glue_arena_end(holder);
  UNPROTECT(2);
  return out;
}

/* ---- numbers and texts ---- */

static void swap_bytes(uint8_t *x, size_t size, size_t count)
{
  for (size_t i = 0; i < count; i++, x += size)
    for (size_t k = 0; k < size / 2; k++) {
      const uint8_t byte = x[k];
      x[k] = x[size - 1 - k];
      x[size - 1 - k] = byte;
    }
}

static int is_little_endian(void)
{
  const uint16_t one = 1;
  return *(const uint8_t *) &one == 1;
}

/* Bytes as numbers of a type: integers where 32 bits hold these, else doubles. `big`: the first byte of a number is the
 * most significant. */
SEXP C_weft_store_numbers(SEXP bytes, SEXP type, SEXP big)
{
  static const char *const names[WEFT_RAW_TYPES] = { "int8",   "uint8", "int16",  "uint16",  "int32",
                                                     "uint32", "int64", "uint64", "float32", "float64" };
  const weft_raw_type kind = (weft_raw_type) weft_kind_of(type, "type", names, WEFT_RAW_TYPES);
  const size_t size = weft_raw_size(kind);
  if (TYPEOF(bytes) != RAWSXP || (size_t) Rf_xlength(bytes) % size)
    weft_glue_fail(WEFT_ERR_INTERNAL, "%.0f bytes are no numbers.", (double) Rf_xlength(bytes));
  const size_t count = (size_t) Rf_xlength(bytes) / size;
  const int whole = kind <= WEFT_RAW_INT32;
  if ((Rf_asLogical(big) == 1) == is_little_endian()) {
    bytes = Rf_duplicate(bytes);
    swap_bytes(RAW(bytes), size, count);
  }
  PROTECT(bytes);
  SEXP out = PROTECT(weft_glue_vector(whole ? INTSXP : REALSXP, (double) count));
  weft_raw_convert(kind, RAW(bytes), count, whole ? WEFT_RAW_INTEGERS : WEFT_RAW_DOUBLES,
                   whole ? (void *) INTEGER(out) : (void *) REAL(out));
  UNPROTECT(2);
  return out;
}

/* Texts in UTF-8, each behind its length of 4 bytes, all behind how many there are. NULL where the bytes are something
 * else, or a text has a byte 0. */
SEXP C_weft_store_texts(SEXP bytes)
{
  if (TYPEOF(bytes) != RAWSXP) weft_glue_fail(WEFT_ERR_INTERNAL, "Texts must come as bytes.");
  const uint8_t *at = RAW(bytes);
  size_t left = (size_t) Rf_xlength(bytes);
  if (left < 4) return R_NilValue;
  const size_t count = (size_t) weft_store_get(at, 4);
  at += 4;
  left -= 4;
  if (count > left / 4) return R_NilValue;
  SEXP out = PROTECT(weft_glue_vector(STRSXP, (double) count));
  for (size_t i = 0; i < count; i++) {
    if (i % 65536 == 0) R_CheckUserInterrupt();
    const size_t length = left < 4 ? SIZE_MAX : (size_t) weft_store_get(at, 4);
    if (left < 4 || length > left - 4 || length > INT_MAX || memchr(at + 4, 0, length)) {
      UNPROTECT(1);
      return R_NilValue;
    }
    SET_STRING_ELT(out, (R_xlen_t) i, Rf_mkCharLenCE((const char *) at + 4, (int) length, CE_UTF8));
    at += 4 + length;
    left -= 4 + length;
  }
  UNPROTECT(1);
  return left ? R_NilValue : out;
}

/* ---- BPCells ---- */

/* Packed numbers of whole chunks, as doubles. ends: where each chunk begins in `bytes`, as numbers of 32 bits from 0
 * on, and where the last ends; starts: the first number of each chunk where they are differences, or NULL where one was
 * taken away from each. Chunks of 32 bits hold the numbers themselves. NULL where a chunk has an impossible size. */
SEXP C_weft_store_unpack(SEXP bytes, SEXP ends, SEXP starts)
{
  const R_xlen_t chunks = Rf_xlength(ends) - 1;
  if (TYPEOF(bytes) != RAWSXP || TYPEOF(ends) != REALSXP || chunks < 0 ||
      (starts != R_NilValue && (TYPEOF(starts) != REALSXP || Rf_xlength(starts) != chunks)))
    weft_glue_fail(WEFT_ERR_INTERNAL, "Packed numbers must come as bytes.");
  const double *end = REAL(ends), most = (double) (Rf_xlength(bytes) / 4);
  SEXP out = PROTECT(weft_glue_vector(REALSXP, (double) WEFT_BP128 * (double) chunks));
  uint32_t some[WEFT_BP128];
  for (R_xlen_t k = 0; k < chunks; k++) {
    const double words = end[k + 1] - end[k];
    if (k % 8192 == 0) R_CheckUserInterrupt();
    if (!(end[k] >= 0 && words >= 0 && words <= 128 && end[k + 1] <= most) || fmod(words, 4) != 0 ||
        fmod(end[k], 1) != 0 || (starts != R_NilValue && !(REAL(starts)[k] >= 0 && REAL(starts)[k] < 4294967296.0))) {
      UNPROTECT(1);
      return R_NilValue;
    }
    const int raw = words == 128;
    weft_bp128(RAW(bytes) + 4 * (size_t) end[k], (unsigned) words / 4, some);
    if (starts != R_NilValue && !raw) weft_bp128_sum((uint32_t) REAL(starts)[k], some);
    double *to = REAL(out) + WEFT_BP128 * k;
    for (int i = 0; i < WEFT_BP128; i++) to[i] = (double) some[i] + (starts == R_NilValue && !raw);
  }
  UNPROTECT(1);
  return out;
}
