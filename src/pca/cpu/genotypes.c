/* Genotypes in their file: moments of columns from counts of the four codes, and the values of codes; see genotypes.h.
 */
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "core/data/genotypes.h"
#include "pca/both/genotypes.h"
#include "pca/cpu/genotypes.h"

weft_status weft_pca_open_genotypes(weft_ctx *ctx, weft_arena *mem, const weft_pca_data *data,
                                    const weft_pca_form *form, weft_coded *out)
{
  weft_status st = WEFT_OK;
  weft_pca_panel x;
  double *values;
  WEFT_TAKE(values, mem, 4 * data->p);
  WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
  for (size_t j = 0; j < data->p; j++)
    weft_pca_code_values(form->center[j], form->factor[j], form->missing ? form->missing[j] : form->center[j],
                         values + 4 * j);
  *out = (weft_coded){ x.genotypes->bytes, x.genotypes->stride, x.genotypes->place, values };
done:
  return st;
}

/* ---- moments ---- */

/* Bits of the rows of weight 1, where all weights are 0 or 1; else *keep becomes NULL. */
static weft_status kept_rows(weft_arena *mem, const double *weights, size_t n, uint64_t **keep)
{
  weft_status st = WEFT_OK;
  *keep = NULL;
  for (size_t i = 0; i < n; i++)
    if (weights[i] != 0 && weights[i] != 1) return st;
  uint64_t *bits;
  WEFT_TAKE0(bits, mem, weft_plane_words(n));
  for (size_t i = 0; i < n; i++) bits[i / 64] |= (uint64_t) (weights[i] != 0) << i % 64;
  *keep = bits;
done:
  return st;
}

/* Sums of the weights of the rows with 0, 1 and 2 copies, and of the missing ones; *missing: how many these are. */
static void weigh(const uint8_t *column, size_t n, const double *weights, double sum[4], double *missing)
{
  for (int c = 0; c < 4; c++) sum[c] = 0;
  *missing = 0;
  for (size_t i = 0; i < n; i++) {
    const int copies = weft_genotype_at(column, i);
    sum[copies] += weights[i];
    *missing += copies == WEFT_GENOTYPE_MISSING;
  }
}

/* Mean and norm about it by the weights of the three genotypes. */
static void put_moments(const double sum[4], double missing, size_t j, const weft_pca_moments *out)
{
  const double weight = sum[0] + sum[1] + sum[2];
  const int kinds = (sum[0] > 0) + (sum[1] > 0) + (sum[2] > 0);
  double mean = 0, square = 0;
  if (weight > 0) mean = kinds == 1 ? (sum[1] > 0 ? 1 : sum[2] > 0 ? 2 : 0) : (sum[1] + 2 * sum[2]) / weight;
  for (int c = 0; c < 3; c++) square += sum[c] * (c - mean) * (c - mean);
  out->mean[j] = mean;
  out->norm[j] = kinds > 1 ? sqrt(square) : 0;
  out->weight[j] = weight;
  out->missing[j] = missing;
  out->infinite[j] = 0;
}

/* Means, scales and counts of missing genotypes of all variants, from counts of the four codes over the kept rows. */
weft_status weft_pca_genotype_moments(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                      const weft_pca_moments *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = data->n, p = data->p, at_once = 1 + (size_t) (4e8 / (double) n); /* between two polls */
  uint64_t *keep = NULL;
  weft_pca_panel x;
  if (weights) WEFT_TRY(kept_rows(&mem, weights, n, &keep));
  WEFT_TRY(data->fetch(ctx, data->source, 0, &x));
  for (size_t first = 0; first < p; first += at_once) {
    const size_t last = p - first < at_once ? p : first + at_once;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) p));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) n * (double) (last - first) / 8), static)
    for (int64_t j = (int64_t) first; j < (int64_t) last; j++) {
      const uint8_t *column = x.genotypes->bytes + (size_t) x.genotypes->place[j] * x.genotypes->stride;
      double sum[4], missing;
      if (weights && !keep) {
        weigh(column, n, weights, sum, &missing);
      } else {
        uint64_t count[4];
        weft_genotype_counts(column, n, NULL, count);
        missing = (double) count[WEFT_GENOTYPE_MISSING];
        if (keep) weft_genotype_counts(column, n, keep, count);
        for (int c = 0; c < 4; c++) sum[c] = (double) count[c];
      }
      put_moments(sum, missing, (size_t) j, out);
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}
