/* .Call entry points of the regulation room. */
#include "core/r/record.h"
#include "regulation/regulation.h"
#include "regulation/cpu/edges.h"
#include "regulation/cpu/scores.h"
#include "regulation/cpu/selection.h"
#include "regulation/cpu/sparse_cells.h"
#include "regulation/cpu/spread.h"
#include "regulation/cpu/weights.h"

/* ---- scores ---- */

typedef struct {
  const double *x;
  size_t n, p;
  weft_regulation_scale scale;
  double *places;
  int32_t *out;
} scores_job;
WEFT_WORK(places, scores_job, weft_regulation_places(ctx, job->x, job->n, job->p, &job->scale, job->places))

/* scale: list(quantile: of ranks 1, 1.5, 2 .. n, NULL where x has places already; by_rank; most: 0 for places). */
static weft_regulation_scale scale_of(SEXP scale)
{
  weft_record given = weft_record_open(scale, "scale");
  const weft_regulation_scale out = { weft_record_doubles_or_null(&given, "quantile", WEFT_ANY_LENGTH),
                                      weft_record_number(&given, "by_rank"), weft_record_integer(&given, "most") };
  weft_record_close(&given);
  return out;
}

/* x: doubles without NaN, at least one row. */
SEXP C_weft_regulation_places(SEXP x, SEXP scale, SEXP control)
{
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, Rf_nrows(x), Rf_ncols(x)));
  scores_job job = { REAL_RO(x), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), scale_of(scale), REAL(out), NULL };
  WEFT_RUN_RETURN(out, control, places, &job);
}

WEFT_WORK(scores, scores_job, weft_regulation_scores(ctx, job->x, job->n, job->p, &job->scale, job->out))

SEXP C_weft_regulation_scores(SEXP x, SEXP scale, SEXP control)
{
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, Rf_nrows(x), Rf_ncols(x)));
  scores_job job = { REAL_RO(x), (size_t) Rf_nrows(x), (size_t) Rf_ncols(x), scale_of(scale), NULL, INTEGER(out) };
  WEFT_RUN_RETURN(out, control, scores, &job);
}

typedef struct {
  weft_regulation_counts_of x;
  const double *quantile;
  int32_t most, *absent;
  int16_t *out;
} cells_job;
WEFT_WORK(cell_scores, cells_job,
          weft_regulation_cell_scores(ctx, &job->x, job->quantile, job->most, job->out, job->absent))

/* list(scores: a raw vector of 16-bit numbers, absent). x: list(starts, rows, values, n) of a sparse matrix by columns;
 * scale: list(quantile, most, as above; size: NULL or a double for each row). */
SEXP C_weft_regulation_cell_scores(SEXP x, SEXP scale, SEXP control)
{
  weft_record given = weft_record_open(scale, "scale");
  const double *quantile = weft_record_doubles(&given, "quantile", WEFT_ANY_LENGTH),
               *size = weft_record_doubles_or_null(&given, "size", Rf_asReal(weft_glue_element(x, "n")));
  const int most = weft_record_integer(&given, "most");
  weft_record_close(&given);
  SEXP starts = weft_glue_element(x, "starts"), values = weft_glue_element(x, "values");
  SEXP out = PROTECT(WEFT_NAMED_LIST("scores", "absent"));
  void *scores = RAW(weft_result_put(out, "scores", Rf_allocVector(RAWSXP, 2 * Rf_xlength(values))));
  int *absent = INTEGER(weft_result_put(out, "absent", Rf_allocVector(INTSXP, Rf_xlength(starts) - 1)));
  cells_job job = { { (size_t) Rf_asInteger(weft_glue_element(x, "n")), (size_t) Rf_xlength(starts) - 1,
                      INTEGER_RO(starts), INTEGER_RO(weft_glue_element(x, "rows")), REAL_RO(values), size },
                    quantile,
                    most,
                    absent,
                    scores };
  WEFT_RUN_RETURN(out, control, cell_scores, &job);
}

/* ---- halves ---- */

/* Random halves with partners, or random orders, of rows that are identified by their values. */
typedef struct {
  const double *x;
  size_t n, p;
  uint64_t key;
  size_t m, pairs, copies; /* halves */
  int32_t *rows, *partner;
  size_t count; /* orders, where `orders` is not NULL */
  uint32_t stream;
  int32_t *orders;
} rows_job;

static rows_job rows_job_of(SEXP x, weft_record *plan)
{
  return (rows_job){
    .x = REAL_RO(x), .n = (size_t) Rf_nrows(x), .p = (size_t) Rf_ncols(x), .key = weft_record_key(plan, "key")
  };
}

/* Names the rows by their values, then draws what the job asks for: orders of the rows, or halves and partners. */
static weft_status draw_rows(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  const rows_job *job = data;
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_regulation_name *names;
  (void) backend;
  WEFT_TAKE(names, &mem, job->n);
  WEFT_TRY(weft_regulation_names(ctx, job->x, job->n, job->p, names));
  if (job->orders) {
    WEFT_TRY(weft_regulation_orders(ctx, names, job->n, job->count, job->stream, job->key, job->orders));
  } else {
    WEFT_TRY(weft_regulation_halves(ctx, names, job->n, job->m, job->pairs, job->key, job->rows));
    WEFT_TRY(weft_regulation_partners(ctx, names, job->n, job->copies, job->key, job->partner));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* list(rows: half × 2 pairs, partner: n × copies), from 0. plan: list(half, pairs, copies, key). */
SEXP C_weft_regulation_halves(SEXP x, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  rows_job job = rows_job_of(x, &given);
  const int half = weft_record_integer(&given, "half"), count = weft_record_integer(&given, "pairs"),
            nulls = weft_record_integer(&given, "copies");
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("rows", "partner"));
  job.m = (size_t) half, job.pairs = (size_t) count, job.copies = (size_t) nulls;
  job.rows = INTEGER(weft_result_put(out, "rows", Rf_allocMatrix(INTSXP, half, 2 * count)));
  job.partner = INTEGER(weft_result_put(out, "partner", Rf_allocMatrix(INTSXP, Rf_nrows(x), nulls)));
  WEFT_RUN_RETURN(out, control, draw_rows, &job);
}

/* n × count: rows from 0 in random orders. plan: list(count, purpose, key); orders for different purposes, numbered
 * from 0, are independent of each other. */
SEXP C_weft_regulation_orders(SEXP x, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  rows_job job = rows_job_of(x, &given);
  const int count = weft_record_integer(&given, "count");
  job.count = (size_t) count;
  job.stream = WEFT_REGULATION_ORDERS + (uint32_t) weft_record_integer(&given, "purpose");
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocMatrix(INTSXP, Rf_nrows(x), count));
  job.orders = INTEGER(out);
  WEFT_RUN_RETURN(out, control, draw_rows, &job);
}

/* ---- selection ---- */

typedef struct {
  weft_regulation_job job;
  weft_regulation_cells cells;
  int32_t *choices;
} select_job;
WEFT_WORK(select_features, select_job, weft_regulation_spread(ctx, backend->regulation, &job->job, job->choices))

static weft_regulation_job job_of(SEXP scores, SEXP genes)
{
  SEXP regulators = weft_glue_element(genes, "regulators"), targets = weft_glue_element(genes, "targets");
  weft_regulation_job job = { 0 };
  if (!Rf_isNewList(scores)) {
    job.n = (size_t) Rf_nrows(scores);
    job.p = (size_t) Rf_ncols(scores);
    job.scores = INTEGER_RO(scores);
  }
  job.regulators = (size_t) Rf_xlength(regulators);
  job.regulator = INTEGER_RO(regulators);
  job.targets = (size_t) Rf_xlength(targets);
  job.target = INTEGER_RO(targets);
  return job;
}

/* scores: list(starts, rows, scores, absent, n); samples: with `position`, `blocks` and `block_rows`. */
static void use_cells(select_job *job, SEXP scores, SEXP samples)
{
  SEXP starts = weft_glue_element(scores, "starts");
  weft_regulation_cells *cells = &job->cells;
  cells->starts = INTEGER_RO(starts);
  cells->rows = INTEGER_RO(weft_glue_element(scores, "rows"));
  cells->scores = (const int16_t *) (const void *) RAW_RO(weft_glue_element(scores, "scores"));
  cells->absent = INTEGER_RO(weft_glue_element(scores, "absent"));
  cells->blocks = (size_t) Rf_asInteger(weft_glue_element(samples, "blocks"));
  cells->block_rows = (size_t) Rf_asInteger(weft_glue_element(samples, "block_rows"));
  cells->position = INTEGER_RO(weft_glue_element(samples, "position"));
  cells->taken = job->job.m;
  cells->chosen = job->job.rows;
  job->job.n = (size_t) Rf_asInteger(weft_glue_element(scores, "n"));
  job->job.p = (size_t) Rf_xlength(starts) - 1;
  job->job.m = cells->taken * cells->block_rows;
  job->job.rows = NULL;
  job->job.cells = cells;
}

/* An integer array, steps × targets × (1 + copies) × halves. genes: list(regulators, targets, favour), columns from 0
 * and a number for each regulator in each world; samples: what C_weft_regulation_halves() returned. Of sparse scores
 * (use_cells) its rows are blocks. plan: list(nonlinear, steps). */
SEXP C_weft_regulation_select(SEXP scores, SEXP genes, SEXP samples, SEXP plan, SEXP control)
{
  weft_record given = weft_record_open(plan, "plan");
  SEXP rows = weft_glue_element(samples, "rows"), partner = weft_glue_element(samples, "partner");
  select_job job = { .job = job_of(scores, genes) };
  job.job.m = (size_t) Rf_nrows(rows);
  job.job.halves = (size_t) Rf_ncols(rows);
  job.job.rows = INTEGER_RO(rows);
  job.job.copies = (size_t) Rf_ncols(partner);
  job.job.partner = INTEGER_RO(partner);
  job.job.favour = REAL_RO(weft_glue_element(genes, "favour"));
  job.job.hinges = weft_record_flag(&given, "nonlinear");
  job.job.steps = (size_t) weft_record_integer(&given, "steps");
  weft_record_close(&given);
  if (Rf_isNewList(scores)) use_cells(&job, scores, samples);
  SEXP out = PROTECT(Rf_allocVector(INTSXP, (R_xlen_t) weft_regulation_choices(&job.job)));
  SEXP shape = PROTECT(Rf_allocVector(INTSXP, 4));
  const size_t sides[] = { job.job.steps, job.job.targets, 1 + job.job.copies, job.job.halves };
  for (int k = 0; k < 4; k++) INTEGER(shape)[k] = (int) sides[k];
  Rf_setAttrib(out, R_DimSymbol, shape);
  job.choices = INTEGER(out);
  weft_glue_run(control, select_features, &job);
  UNPROTECT(2);
  return out;
}

typedef struct {
  weft_regulation_job job;
  double *out;
} hubs_job;
WEFT_WORK(hubs, hubs_job, weft_regulation_hubs(ctx, &job->job, job->out))

/* One number for each of genes$regulators. genes: list(regulators, targets, rows), from 0; `rows` are the samples that
 * count. */
SEXP C_weft_regulation_hubs(SEXP scores, SEXP genes, SEXP control)
{
  hubs_job job = { job_of(scores, genes), NULL };
  const SEXP rows = weft_glue_element(genes, "rows");
  job.job.m = (size_t) Rf_xlength(rows);
  job.job.halves = 1;
  job.job.rows = INTEGER_RO(rows);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.job.regulators));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, hubs, &job);
}

/* ---- edges ---- */

typedef struct {
  weft_regulation_chosen chosen;
  double *counts, *sums, *squares;
  const double *starts;
  weft_regulation_edges out;
} edges_job;
WEFT_WORK(counts, edges_job, weft_regulation_counts(ctx, &job->chosen, job->counts, job->sums, job->squares))

WEFT_WORK(edges, edges_job, weft_regulation_list(ctx, &job->chosen, job->starts, &job->out))

/* choices: what C_weft_regulation_select() returned; the other fields of `of` are regulators, their number, and world,
 * 0 for the data, else the null copy. */
static weft_regulation_chosen chosen_of(SEXP choices, weft_record *of)
{
  const int *shape = INTEGER(Rf_getAttrib(choices, R_DimSymbol));
  return (weft_regulation_chosen){ .regulators = weft_record_size(of, "regulators"),
                                   .steps = (size_t) shape[0],
                                   .targets = (size_t) shape[1],
                                   .worlds = (size_t) shape[2],
                                   .halves = (size_t) shape[3],
                                   .choices = INTEGER_RO(choices),
                                   .world = weft_record_size(of, "world") };
}

static double *put_doubles(SEXP result, const char *name, size_t length)
{
  return REAL(weft_result_put(result, name, Rf_allocVector(REALSXP, (R_xlen_t) length)));
}

/* list(counts: how many regulators each target has; sums and squares of each regulator's areas). of: list(regulators,
 * world). */
SEXP C_weft_regulation_counts(SEXP choices, SEXP of, SEXP control)
{
  weft_record given = weft_record_open(of, "of");
  edges_job job = { .chosen = chosen_of(choices, &given) };
  weft_record_close(&given);
  SEXP out = PROTECT(WEFT_NAMED_LIST("counts", "sums", "squares"));
  job.counts = put_doubles(out, "counts", job.chosen.targets);
  job.sums = put_doubles(out, "sums", job.chosen.regulators);
  job.squares = put_doubles(out, "squares", job.chosen.regulators);
  WEFT_RUN_RETURN(out, control, counts, &job);
}

/* A list of integer vectors. of: list(regulators, world, starts: where each target's edges begin, from 0, and the
 * end). */
SEXP C_weft_regulation_edges(SEXP choices, SEXP of, SEXP control)
{
  const char *fields[] = { "from", "to", "area", "signed_area", "times", "both", "" };
  weft_record given = weft_record_open(of, "of");
  edges_job job = { .chosen = chosen_of(choices, &given) };
  job.starts = weft_record_doubles(&given, "starts", (double) job.chosen.targets + 1);
  weft_record_close(&given);
  const R_xlen_t count = (R_xlen_t) job.starts[job.chosen.targets];
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  int32_t **const vectors[] = { &job.out.regulator,   &job.out.target, &job.out.area,
                                &job.out.signed_area, &job.out.times,  &job.out.both };
  for (int k = 0; k < 6; k++) *vectors[k] = INTEGER(weft_result_put(out, fields[k], Rf_allocVector(INTSXP, count)));
  WEFT_RUN_RETURN(out, control, edges, &job);
}

/* ---- weights ---- */

typedef struct {
  weft_regulation_listed edges;
  weft_regulation_similar genes;
  size_t block;
  const double *area;
  const int32_t *back, *there;
  double *out;
} weights_job;
WEFT_WORK(excess, weights_job, weft_regulation_excess(ctx, &job->edges, &job->genes, job->block, job->out))

WEFT_WORK(reversed, weights_job, weft_regulation_reversed(ctx, &job->edges, job->area, job->back, job->there, job->out))

/* edges: list(regulators, targets: genes, from 0; starts, from: as C_weft_regulation_edges() has them). */
static weft_regulation_listed listed_of(SEXP edges)
{
  weft_record given = weft_record_open(edges, "edges");
  weft_regulation_listed out = { .regulators = (size_t) Rf_xlength(weft_record_field(&given, "regulators")),
                                 .targets = (size_t) Rf_xlength(weft_record_field(&given, "targets")) };
  out.regulator = weft_record_integers(&given, "regulators", WEFT_ANY_LENGTH);
  out.target = weft_record_integers(&given, "targets", WEFT_ANY_LENGTH);
  out.starts = weft_record_doubles(&given, "starts", (double) out.targets + 1);
  out.from = weft_record_integers(&given, "from", out.starts[out.targets]);
  weft_record_close(&given);
  return out;
}

/* A number from 0 to 1 for each edge. genes: list(whole or NULL, z, weighted or NULL, own, block). */
SEXP C_weft_regulation_excess(SEXP edges, SEXP genes, SEXP control)
{
  weights_job job = { .edges = listed_of(edges) };
  weft_record given = weft_record_open(genes, "genes");
  const SEXP own = weft_record_field(&given, "own"), z = weft_record_field(&given, "z");
  const double p = (double) Rf_xlength(own);
  job.genes.p = (size_t) p;
  job.genes.n = Rf_isNull(z) ? 0 : (size_t) Rf_nrows(z);
  job.genes.own = weft_record_doubles(&given, "own", p);
  job.genes.whole = weft_record_doubles_or_null(&given, "whole", p * p);
  job.genes.z = weft_record_doubles_or_null(&given, "z", (double) job.genes.n * p);
  job.genes.weighted = weft_record_doubles_or_null(&given, "weighted", (double) job.genes.n * p);
  job.block = weft_record_size(&given, "block");
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) job.edges.starts[job.edges.targets]));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, excess, &job);
}

/* The areas of the reversed edges. of: list(area, back, there). */
SEXP C_weft_regulation_reversed(SEXP edges, SEXP of, SEXP control)
{
  weights_job job = { .edges = listed_of(edges) };
  weft_record given = weft_record_open(of, "of");
  const double count = job.edges.starts[job.edges.targets];
  job.area = weft_record_doubles(&given, "area", count);
  job.back = weft_record_integers(&given, "back", (double) job.edges.regulators);
  job.there = weft_record_integers(&given, "there", (double) job.edges.targets);
  weft_record_close(&given);
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) count));
  job.out = REAL(out);
  WEFT_RUN_RETURN(out, control, reversed, &job);
}
