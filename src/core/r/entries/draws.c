/* .Call entry point of the draws. */
#include "core/numbers/draws_fill.h"
#include "core/r/record.h"

typedef struct {
  int kind;
  uint64_t key, first;
  uint32_t stream;
  size_t n;
  double a, b, *out;
} draws_job;
WEFT_WORK(fill, draws_job,
          backend->draws(ctx, job->kind, job->key, job->stream, job->first, job->n, job->a, job->b, job->out))

/* law: list(kind, n, a, b, key, stream, first); key and first are 64-bit numbers in two halves. */
SEXP C_weft_draws(SEXP law, SEXP control)
{
#define KIND_NAME(kind, name) name,
  static const char *const kinds[] = { WEFT_DRAW_LIST(KIND_NAME) };
  weft_record given = weft_record_open(law, "law");
  draws_job job = { .kind = weft_record_kind(&given, "kind", kinds, WEFT_DRAW_KINDS),
                    .key = weft_record_key(&given, "key"),
                    .first = weft_record_key(&given, "first"),
                    .stream = (uint32_t) weft_record_size(&given, "stream"),
                    .n = weft_record_size(&given, "n"),
                    .a = weft_record_number(&given, "a"),
                    .b = weft_record_number(&given, "b") };
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.n * weft_draws_width(job.kind)));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, fill, &job);
}
