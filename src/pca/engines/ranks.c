/* A decomposition whose rows are shared among ranks (pca.h). Loadings and small matrices are on every rank, in the same
 * bits: what small problems give (eigenvectors, whose signs depend on the library, and residuals, which decide how to
 * go on) is taken from the first rank, since ranks may run on different back ends and processors.
 *
 *   p <= n   near vectors are loadings, far ones have this rank's rows: X v here, X'u a sum over the ranks, and so are
 *            inner products of far vectors and the Gram matrix: p × b, b × b and p × p numbers travel
 *   p > n    near vectors have the rows of all, which are few: X v is gathered, X'u a sum
 *
 * What is exchanged goes through the host, so any back end will do; sums over the parts of one call stay on their
 * devices. */
#include <string.h>
#include "pca/engines/ranks.h"
#include "pca/engines/run.h"

weft_status weft_pca_ranks_add(weft_pca_run *run, double *s_x, size_t count)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(run->ctx);
  double *x;
  if (run->ranks->parts) return run->ops->join(run->space, s_x, count);
  WEFT_TAKE(x, &mem, count);
  WEFT_TRY(run->ops->get(run->space, x, s_x, count));
  WEFT_TRY(run->ranks->add(run->ctx, x, count));
  WEFT_TRY(run->ops->put(run->space, s_x, x, count));
done:
  weft_arena_end(&mem);
  return st;
}

/* Gathers from the first rank alone: the others send nothing. */
weft_status weft_pca_ranks_as_first(weft_pca_run *run, double *x, size_t count)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(run->ctx);
  uint64_t *sizes;
  unsigned char **to;
  double *first;
  if (!run->ranks) goto done;
  WEFT_TAKE(first, &mem, count);
  WEFT_TAKE0(sizes, &mem, run->ranks->size);
  WEFT_TAKE(to, &mem, run->ranks->size);
  for (size_t r = 0; r < run->ranks->size; r++) to[r] = (unsigned char *) first;
  sizes[0] = count * sizeof *x;
  WEFT_TRY(run->ranks->gather(run->ctx, x, sizes, to));
  memcpy(x, first, count * sizeof *x);
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_pca_ranks_agree(weft_pca_run *run, int *yes)
{
  weft_status st = WEFT_OK;
  double votes = *yes != 0;
  WEFT_TRY(run->ranks->add(run->ctx, &votes, 1));
  *yes = votes == (double) run->ranks->size;
done:
  return st;
}

/* Cuts the rows of this rank out of b vectors that have the rows of all ranks. */
static weft_status cut_rows(weft_pca_run *run, const double *s_v, size_t b, double *s_out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(run->ctx);
  const weft_pca_ranks *ranks = run->ranks;
  const size_t all = ranks->all;
  double *x, *own;
  WEFT_TAKE(x, &mem, all * b);
  WEFT_TAKE(own, &mem, run->here * b);
  WEFT_TRY(run->ops->get(run->space, x, s_v, all * b));
  for (size_t j = 0; j < b; j++) memcpy(own + j * run->here, x + j * all + ranks->first, run->here * sizeof *x);
  WEFT_TRY(run->ops->put(run->space, s_out, own, run->here * b));
done:
  weft_arena_end(&mem);
  return st;
}

/* Gathers b vectors, of which each rank has its own rows, with the rows of all ranks. */
static weft_status join_rows(weft_pca_run *run, const double *s_own, size_t b, double *s_out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(run->ctx);
  const weft_pca_ranks *ranks = run->ranks;
  const size_t all = ranks->all;
  double *own, *parts, *x;
  uint64_t *sizes;
  unsigned char **to;
  WEFT_TAKE(own, &mem, run->here * b);
  WEFT_TAKE(parts, &mem, all * b);
  WEFT_TAKE(x, &mem, all * b);
  WEFT_TAKE(sizes, &mem, ranks->size);
  WEFT_TAKE(to, &mem, ranks->size);
  for (size_t r = 0, first = 0; r < ranks->size; first += ranks->rows[r++]) {
    sizes[r] = ranks->rows[r] * b * sizeof *own;
    to[r] = (unsigned char *) (parts + first * b);
  }
  WEFT_TRY(run->ops->get(run->space, own, s_own, run->here * b));
  WEFT_TRY(ranks->gather(run->ctx, own, sizes, to));
  for (size_t r = 0, first = 0; r < ranks->size; first += ranks->rows[r++])
    for (size_t j = 0; j < b; j++)
      memcpy(x + j * all + first, parts + first * b + j * ranks->rows[r], ranks->rows[r] * sizeof *x);
  WEFT_TRY(run->ops->put(run->space, s_out, x, all * b));
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_pca_ranks_to_far(weft_pca_run *run, const double *s_v, size_t b, double *s_out)
{
  weft_status st = WEFT_OK;
  double *s_own = NULL;
  if (!run->near_is_rows) return run->ops->product(run->space, 0, s_v, b, s_out);
  WEFT_TRY(run->ops->take(run->space, run->here * b, &s_own));
  WEFT_TRY(cut_rows(run, s_v, b, s_own));
  WEFT_TRY(run->ops->product(run->space, 1, s_own, b, s_out));
  WEFT_TRY(weft_pca_ranks_add(run, s_out, run->p * b));
done:
  if (s_own) run->ops->drop(run->space, s_own);
  return st;
}

/* Loadings are near: X'u of the rows here, summed over ranks. Rows are near: X v of the rows here, joined with the
 * others'. */
weft_status weft_pca_ranks_to_near(weft_pca_run *run, const double *s_u, size_t b, double *s_out)
{
  weft_status st = WEFT_OK;
  double *s_own = NULL;
  if (!run->near_is_rows) {
    WEFT_TRY(run->ops->product(run->space, 1, s_u, b, s_out));
    WEFT_TRY(weft_pca_ranks_add(run, s_out, run->p * b));
    goto done;
  }
  WEFT_TRY(run->ops->take(run->space, run->here * b, &s_own));
  WEFT_TRY(run->ops->product(run->space, 0, s_u, b, s_own));
  WEFT_TRY(join_rows(run, s_own, b, s_out));
done:
  if (s_own) run->ops->drop(run->space, s_own);
  return st;
}
