/* What all engines share: the operations of the open space, by themselves or over ranks, and when to look at what was
 * found. See block.h. */
#include <math.h>
#include "pca/engines/ranks.h"
#include "pca/engines/run.h"

weft_status weft_pca_to_far(weft_pca_run *run, const double *s_v, size_t b, double *s_out)
{
  run->passes += 1;
  if (run->ranks) return weft_pca_ranks_to_far(run, s_v, b, s_out);
  return run->ops->product(run->space, run->near_is_rows, s_v, b, s_out);
}

weft_status weft_pca_to_near(weft_pca_run *run, const double *s_u, size_t b, double *s_out)
{
  run->passes += 1;
  if (run->ranks) return weft_pca_ranks_to_near(run, s_u, b, s_out);
  return run->ops->product(run->space, !run->near_is_rows, s_u, b, s_out);
}

int weft_pca_reads_once(const weft_pca_run *run)
{
  return run->sparse && !run->near_is_rows && (!run->ranks || run->ranks->parts) && run->ops->twice;
}

weft_status weft_pca_twice(weft_pca_run *run, const double *s_v, size_t b, double *s_far, double *s_out)
{
  weft_status st = WEFT_OK;
  if (weft_pca_reads_once(run)) {
    run->passes += 1;
    WEFT_TRY(run->ops->twice(run->space, s_v, b, s_out));
    if (run->ranks) WEFT_TRY(weft_pca_ranks_add(run, s_out, run->p * b));
    goto done;
  }
  WEFT_TRY(weft_pca_to_far(run, s_v, b, s_far));
  WEFT_TRY(weft_pca_to_near(run, s_far, b, s_out));
done:
  return st;
}

weft_status weft_pca_square(weft_pca_run *run, int coarse, double *s_g, double *s_diagonal)
{
  weft_status st = WEFT_OK;
  WEFT_TRY(run->ops->square(run->space, run->near_is_rows, coarse, s_g, s_diagonal));
  if (!run->ranks) goto done;
  WEFT_TRY(weft_pca_ranks_add(run, s_g, run->near * run->near));
  WEFT_TRY(weft_pca_ranks_add(run, s_diagonal, run->near));
done:
  return st;
}

weft_status weft_pca_random(weft_pca_run *run, double *s_out, size_t count)
{
  const weft_rng rng = { run->job->key, 0x706361 };
  run->drawn += count;
  return run->ops->random(run->space, rng, run->drawn - count, s_out, count);
}

/* ---- when to look, and when to end ---- */

double weft_pca_blocks_left(double before, double now, size_t blocks, double tol)
{
  const double fall = log(before / now) / (double) blocks;
  return isfinite(fall) && fall > 0 ? log(now / tol) / fall : INFINITY;
}

size_t weft_pca_until_look(double left, size_t b)
{
  const double fewest = fmax(1, (double) (16 / b)), farthest = fmax(12, (double) (128 / b));
  return isfinite(left) ? (size_t) fmin(fmax(0.9 * left, fewest), farthest) : 64 / b > 4 ? 64 / b : 4;
}

int weft_pca_copies_missed(const double *values, size_t k, size_t b, double residual)
{
  const double width = 10 * fmax(residual, 1e-10) * values[0];
  for (size_t i = 0; i + b < k; i++)
    if (values[i] - values[i + b - 1] <= width && values[i + b - 1] - values[k - 1] > width) return 1;
  return 0;
}
