/* The job that this process is a rank of, and what native work does with the other ranks; see ranks.h. */
#include <string.h>
#include "core/call/arena.h"
#include "core/together/ranks.h"

static const weft_mpi_table *mpi; /* set when MPI has started */
static weft_rank here = { 0, 1, 0 };

const weft_mpi_table *weft_ranks_table(void) { return mpi; }
uint64_t weft_ranks_steps(void) { return mpi ? mpi->steps() : 0; }
weft_rank weft_ranks_here(void) { return here; }

void weft_ranks_join(const weft_mpi_table *table, weft_rank rank)
{
  mpi = table;
  here = rank;
}

weft_status weft_ranks_ready(weft_ctx *ctx)
{
  if (!mpi) return weft_fail(ctx, WEFT_ERR_INTERNAL, "ranks were not started");
  if (weft_forked())
    return weft_fail(ctx, WEFT_ERR_DEVICE,
                     "MPI cannot be used after fork(): a forked process is not a rank of the job");
  return WEFT_OK;
}

weft_status weft_ranks_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all)
{
  weft_status st = WEFT_OK;
  if (!mpi) {
    memcpy(all[0], mine, (size_t) sizes[0]);
    return st;
  }
  WEFT_TRY(weft_ranks_ready(ctx));
  WEFT_TRY(mpi->all_gather(ctx, mine, sizes, all));
done:
  return st;
}

/* x becomes the sum over all ranks, added in the order of the ranks: the same bits on all. Gathers 2^20 numbers at a
 * time; nothing happens in a single process. */
weft_status weft_ranks_add(weft_ctx *ctx, double *x, size_t count)
{
  enum { ROUND = 1 << 20 }; /* numbers per rank at a time */
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t size = (size_t) here.size, round = count < ROUND ? count : ROUND;
  double *parts;
  uint64_t *sizes;
  unsigned char **all;
  if (!mpi || size == 1) return WEFT_OK;
  WEFT_TAKE(parts, &mem, size * round);
  WEFT_TAKE(sizes, &mem, size);
  WEFT_TAKE(all, &mem, size);
  for (size_t first = 0; first < count; first += round) {
    const size_t now = count - first < round ? count - first : round;
    for (size_t r = 0; r < size; r++) {
      sizes[r] = now * sizeof *x;
      all[r] = (unsigned char *) (parts + r * round);
    }
    WEFT_TRY(weft_ranks_gather(ctx, x + first, sizes, all));
    memcpy(x + first, parts, now * sizeof *x);
    for (size_t r = 1; r < size; r++)
      for (size_t i = 0; i < now; i++) x[first + i] += parts[r * round + i];
  }
done:
  weft_arena_end(&mem);
  return st;
}
