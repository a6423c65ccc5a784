/* One decomposition with its rows divided among the call's devices; see pca.h and core/together/spread.h. Each part is
 * what a rank is (ranks.c): it has its own rows and the small matrices of all, and meets the others where sums over
 * rows are needed.
 *
 *   dense    a run of rows of the whole matrix
 *   sparse   a run of its blocks of rows
 *   kept     the panels that the part's device has (core/device/resident.h) */
#include <string.h>
#include "core/call/arena.h"
#include "core/device/resident.h"
#include "core/together/exchange.h"
#include "core/together/spread.h"
#include "pca/pca.h"

typedef struct {
  const weft_pca_ops *ops;
  const weft_pca_data *data;
  const weft_pca_form *form;
  const weft_pca_job *job;
  weft_pca_panel *panels;          /* of the whole */
  size_t *first_panel, *first_row; /* of each part and behind the last */
  weft_pca_ranks ranks;
  weft_pca_result *out; /* of each part */
} spread_job;

typedef struct {
  const spread_job *job;
  size_t part;
} part_source;

static weft_status fetch_part(weft_ctx *ctx, void *source, size_t index, weft_pca_panel *out)
{
  const part_source *s = source;
  const size_t first = s->job->first_row[s->part];
  (void) ctx;
  *out = s->job->panels[s->job->first_panel[s->part] + index];
  if (out->dense) {
    out->dense += first;
    out->n = s->job->first_row[s->part + 1] - first;
  } else {
    out->row -= first;
  }
  return WEFT_OK;
}

/* One device's part: the decomposition with its rows as data and the other parts as ranks. */
static weft_status run_part(weft_ctx *ctx, size_t part, void *data)
{
  weft_status st;
  spread_job *job = data;
  part_source source = { job, part };
  weft_resident_choice kept;
  weft_pca_ranks ranks = job->ranks;
  weft_pca_form form = *job->form;
  weft_pca_data own = *job->data;
  memset(&kept, 0, sizeof kept);
  ranks.first = job->first_row[part];
  own.n = job->first_row[part + 1] - job->first_row[part];
  own.panels = own.sparse ? job->first_panel[part + 1] - job->first_panel[part] : 1;
  own.fetch = fetch_part;
  own.source = &source;
  own.ranks = &ranks;
  if (own.kept) {
    kept = *own.kept;
    kept.part = part;
    memset(&kept.to, 0, sizeof kept.to);
    own.kept = &kept;
    own.source = &kept;
  }
  if (form.row) form.row += job->first_row[part];
  st = weft_pca(ctx, job->ops, &own, &form, job->job, &job->out[part]);
  weft_packed_end(&kept.to);
  return st;
}

/* Rows of each part where panels stay on the devices. */
static size_t deal_kept(const weft_resident *of, size_t *first_panel, size_t *first_row)
{
  for (size_t k = 0; k <= of->parts; k++) {
    first_panel[k] = weft_resident_first(of, k);
    first_row[k] = weft_resident_row(of, first_panel[k]);
  }
  return of->parts;
}

/* Rows of each part; sparse blocks stay whole, so there are at most as many parts as blocks. */
static size_t deal(const weft_pca_data *data, size_t parts, const weft_pca_panel *panels, size_t *first_panel,
                   size_t *first_row)
{
  const size_t units = data->sparse ? data->panels : data->n;
  if (parts > units) parts = units;
  for (size_t k = 0; k <= parts; k++) {
    const size_t unit = (size_t) weft_share_start(units, k, parts);
    first_panel[k] = data->sparse ? unit : 0;
    first_row[k] = !data->sparse ? unit : unit < data->panels ? panels[unit].row : data->n;
  }
  return parts;
}

/* Deals the rows out and runs all parts. Each writes its rows' scores into `out`; the first writes d, v and the rest
 * there too, and the others' copies are thrown away. */
static weft_status spread(weft_ctx *ctx, spread_job *job, weft_pca_result *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_pca_data *data = job->data;
  const size_t n = data->n, p = data->p, k = job->job->k, wanted = (size_t) ctx->device_count;
  const int wide = p > n, devices = ctx->device_count;
  size_t *rows, parts;
  WEFT_TAKE0(job->panels, &mem, data->panels);
  WEFT_TAKE(job->first_panel, &mem, wanted + 1);
  WEFT_TAKE(job->first_row, &mem, wanted + 1);
  WEFT_TAKE(rows, &mem, wanted);
  WEFT_TAKE0(job->out, &mem, wanted);
  for (size_t t = 0; t < data->panels && !data->kept; t++) WEFT_TRY(data->fetch(ctx, data->source, t, &job->panels[t]));
  parts = data->kept ? deal_kept(data->kept->of, job->first_panel, job->first_row)
                     : deal(data, wanted, job->panels, job->first_panel, job->first_row);
  if (parts == 1) {
    st = weft_pca(ctx, job->ops, data, job->form, job->job, out);
    goto done;
  }
  for (size_t r = 0; r < parts; r++) {
    weft_pca_result *own = &job->out[r];
    rows[r] = job->first_row[r + 1] - job->first_row[r];
    *own = *out;
    if (!wide) {
      own->u = out->u + job->first_row[r];
      own->ld = n;
    } else if (r) {
      WEFT_TAKE(own->u, &mem, n * k);
    }
    if (!r) continue;
    if (own->cross) WEFT_TAKE(own->cross, &mem, k * k);
    WEFT_TAKE0(own->d, &mem, k);
    WEFT_TAKE(own->v, &mem, p * k);
    WEFT_TAKE0(own->residual, &mem, k);
    WEFT_TAKE0(own->iterations, &mem, k);
    WEFT_TAKE0(own->converged, &mem, k);
  }
  const weft_pca_ranks ranks = { 1, parts, rows, n, 0, weft_meet_add, weft_meet_gather };
  job->ranks = ranks;
  ctx->device_count = (int) parts;
  st = weft_spread(ctx, run_part, job);
  ctx->device_count = devices;
  if (st != WEFT_OK) goto done;
  out->rank = job->out[0].rank;
  out->passes = job->out[0].passes;
  out->method = job->out[0].method;
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_pca_spread(weft_ctx *ctx, const weft_pca_ops *ops, const weft_pca_data *data,
                            const weft_pca_form *form, const weft_pca_job *job, weft_pca_result *out)
{
  spread_job whole = { .ops = ops, .data = data, .form = form, .job = job };
  const int blocks = job->method == WEFT_PCA_KRYLOV || job->method == WEFT_PCA_GRAM;
  const size_t parts = data->kept && data->kept->part == WEFT_RESIDENT_ALL ? data->kept->of->parts : 1;
  if (data->kept && parts != (size_t) ctx->device_count)
    return weft_fail(ctx, WEFT_ERR_INTERNAL, "%.0f parts on %d devices.", (double) parts, ctx->device_count);
  if (ctx->device_count == 1 || !blocks || data->ranks || data->resident || (!data->stays && !data->kept))
    return weft_pca(ctx, ops, data, form, job, out);
  return spread(ctx, &whole, out);
}
