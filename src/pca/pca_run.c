/* The operations that all engines take from the open space, by themselves or over ranks: see pca_block.h. */
#include "pca_block.h"

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
  return run->rereads && !run->near_is_rows && run->ops->twice;
}

weft_status weft_pca_twice(weft_pca_run *run, const double *s_v, size_t b, double *s_far, double *s_out)
{
  weft_status st = WEFT_OK;
  if (weft_pca_reads_once(run)) {
    run->passes += 1;
    return run->ops->twice(run->space, s_v, b, s_out);
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
