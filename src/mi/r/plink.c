/* .Call entry points of PLINK files. */
#include "core/r/record.h"
#include "mi/r/glue.h"

typedef struct {
  const char *path;
  size_t n, p;
  const double *wanted;
  int32_t *out;
} genotypes_job;
WEFT_WORK(genotypes, genotypes_job, weft_mi_genotypes(ctx, job->path, job->n, job->wanted, job->p, job->out))

/* wanted: numbers of variants, from 0. */
SEXP C_weft_mi_genotypes(SEXP path, SEXP n, SEXP wanted, SEXP control)
{
  SEXP out = PROTECT(weft_glue_matrix(INTSXP, Rf_asReal(n), (double) Rf_xlength(wanted)));
  genotypes_job job = { Rf_translateChar(STRING_ELT(path, 0)), (size_t) Rf_asReal(n), (size_t) Rf_xlength(wanted),
                        REAL(wanted), INTEGER(out) };
  WEFT_RUN_RETURN(out, control, genotypes, &job);
}

typedef struct {
  const weft_column *columns;
  size_t n, p;
  double *counts, *hwe;
} summary_job;
WEFT_WORK(summarise, summary_job, weft_mi_genotype_summary(ctx, job->columns, job->n, job->p, job->counts, job->hwe))

/* x: what genotype_columns() in R/plink.R makes. list(counts: 4 × variants, hwe: one per variant). */
SEXP C_weft_mi_genotype_summary(SEXP x, SEXP control)
{
  const size_t p = weft_glue_ncol(x);
  weft_column *columns = (weft_column *) R_alloc(p, sizeof *columns);
  SEXP out = PROTECT(WEFT_NAMED_LIST("counts", "hwe"));
  summary_job job = { columns, weft_glue_nrow(x), p, NULL, NULL };
  job.counts = REAL(weft_result_put(out, "counts", weft_glue_matrix(REALSXP, 4, (double) p)));
  job.hwe = REAL(weft_result_put(out, "hwe", weft_glue_vector(REALSXP, (double) p)));
  weft_glue_columns(x, columns);
  WEFT_RUN_RETURN(out, control, summarise, &job);
}

/* ---- tables ---- */

static int is_blank(char c) { return c == ' ' || c == '\t'; }
static int is_end(char c) { return is_blank(c) || c == '\r' || c == '\n'; }

/* The next field of a line that ends at `end`: returns its start, NULL when there is none, and sets *behind to its
 * end. */
static const char *next_field(const char *at, const char *end, const char **behind)
{
  while (at < end && is_blank(*at)) at++;
  if (at == end) return NULL;
  for (*behind = at; *behind < end && !is_blank(**behind);) ++*behind;
  return at;
}

/* Start and end of a line without the blanks around it. */
static const char *trimmed(SEXP line, const char **end)
{
  const char *at = CHAR(line);
  *end = at + LENGTH(line);
  while (at < *end && is_end(*at)) at++;
  while (*end > at && is_end((*end)[-1])) --*end;
  return at;
}

#define LINES_A_POLL 65536

/* The fields of lines, separated by spaces and tabs, `count` in each line, as one character vector per field; blank
 * lines are skipped. If a line has another number of fields: c(which of the lines that are not blank, how many). */
SEXP C_weft_mi_fields(SEXP lines, SEXP count)
{
  const int fields = Rf_asInteger(count);
  const R_xlen_t all = Rf_xlength(lines);
  R_xlen_t kept = 0;
  for (R_xlen_t i = 0; i < all; i++) {
    const char *end, *behind, *at = trimmed(STRING_ELT(lines, i), &end);
    int seen = 0;
    if (i % LINES_A_POLL == 0) R_CheckUserInterrupt();
    if (at == end) continue;
    kept++;
    while ((at = next_field(at, end, &behind))) {
      seen++;
      at = behind;
    }
    if (seen == fields) continue;
    SEXP bad = Rf_allocVector(REALSXP, 2);
    REAL(bad)[0] = (double) kept;
    REAL(bad)[1] = seen;
    return bad;
  }
  SEXP out = PROTECT(Rf_allocVector(VECSXP, fields));
  for (int f = 0; f < fields; f++) SET_VECTOR_ELT(out, f, Rf_allocVector(STRSXP, kept));
  kept = 0;
  for (R_xlen_t i = 0; i < all; i++) {
    const char *end, *behind, *at = trimmed(STRING_ELT(lines, i), &end);
    if (i % LINES_A_POLL == 0) R_CheckUserInterrupt();
    if (at == end) continue;
    for (int f = 0; (at = next_field(at, end, &behind)); f++, at = behind)
      SET_STRING_ELT(VECTOR_ELT(out, f), kept, Rf_mkCharLenCE(at, (int) (behind - at), CE_UTF8));
    kept++;
  }
  UNPROTECT(1);
  return out;
}
