/* The entry point through which R's tests see what cpu/blocks.c hands to a device, in builds with WEFT_TESTS=yes. */
#include <string.h>
#include "mi/r/pack.h"
#include "mi/search/both/blocks.h"
#include "mi/search/both/pair_tiles.h"

SEXP C_weft_mi_blocks_test(SEXP pack, SEXP side, SEXP max_bytes, SEXP control);

typedef struct {
  const weft_mi_pack *pack;
  const uint8_t *side;
  double max_bytes, parts, wrong, share, *seen;
} blocks_job;

/* Rows of planes and margins that are not those of the pack. */
static double wrong_rows(const weft_mi_pack *pack, const weft_mi_pack *part)
{
  double wrong = 0;
  for (size_t place = 0; place < part->p; place++) {
    const size_t old = pack->place[part->column[place]];
    const weft_mi_group *group_a = &part->groups[part->group_of[place]], *group_b = &pack->groups[pack->group_of[old]];
    wrong += group_a->shape.planes != group_b->shape.planes || group_a->coded != group_b->coded ||
             part->levels[place] != pack->levels[old];
    for (uint32_t q = 0; q < group_a->shape.planes; q++) {
      const size_t row = weft_mi_plane_row(group_a, place, q), old_row = weft_mi_plane_row(group_b, old, q);
      wrong += memcmp(weft_mi_pack_row(part, row), weft_mi_pack_row(pack, old_row), pack->words * 8) != 0;
      for (uint32_t c = 0; c < pack->classes; c++)
        wrong += part->margins[c * part->plane_rows + row] != pack->margins[c * pack->plane_rows + old_row];
    }
  }
  return wrong;
}

/* Notes which pairs a part has, compares its planes with the pack's, and checks how far the search says it has come. */
static weft_status look_at(weft_ctx *ctx, void *data, const weft_mi_pack *part, double before, double share)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  blocks_job *job = data;
  weft_mi_tiling tiling;
  job->parts++;
  job->wrong += wrong_rows(job->pack, part) + (fabs(before - job->share) > 1e-9);
  job->share += share;
  WEFT_TRY(weft_mi_tiling_make(&mem, part, NULL, &tiling));
  for (size_t k = 0; k < tiling.panel_count; k++) {
    const weft_mi_group *group_a = tiling.panels[k].group_a, *group_b = tiling.panels[k].group_b;
    for (size_t a = group_a->first; a < group_a->first + group_a->count; a++)
      for (size_t b = tiling.panels[k].same ? a + 1 : group_b->first; b < group_b->first + group_b->count; b++) {
        const size_t x = part->column[a], y = part->column[b];
        job->seen[x * job->pack->columns + y]++;
        job->seen[y * job->pack->columns + x]++;
      }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Cuts the pack, or the chosen attributes, into blocks and looks at every part. */
static weft_status blocks(weft_ctx *ctx, const weft_backend *backend, void *data)
{
  weft_status st = WEFT_OK;
  blocks_job *job = data;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mi_pack part;
  (void) backend;
  if (job->side) {
    WEFT_TRY(weft_mi_pack_select(ctx, &mem, job->pack, job->side, &part));
    job->pack = &part;
  }
  WEFT_TRY(weft_mi_blocks_each(ctx, job->pack, 1, job->max_bytes, look_at, job));
done:
  weft_arena_end(&mem);
  return st;
}

/* In blocks of at most that many planes: how often every pair of columns is searched (columns × columns), the number of
 * parts, how many of their rows are not those of the pack, and the sum of their shares. */
SEXP C_weft_mi_blocks_test(SEXP pointer, SEXP side, SEXP max_bytes, SEXP control)
{
  const weft_mi_pack *pack = &weft_mi_handle_of(pointer)->pack;
  const size_t columns = pack->columns;
  SEXP out = PROTECT(WEFT_NAMED_LIST("seen", "parts", "wrong", "share"));
  blocks_job job = { .pack = pack, .side = side == R_NilValue ? NULL : RAW(side), .max_bytes = Rf_asReal(max_bytes) };
  job.seen = REAL(weft_result_put(out, "seen", Rf_allocMatrix(REALSXP, (int) columns, (int) columns)));
  memset(job.seen, 0, columns * columns * sizeof *job.seen);
  weft_glue_run(control, blocks, &job);
  weft_result_put(out, "parts", Rf_ScalarReal(job.parts));
  weft_result_put(out, "wrong", Rf_ScalarReal(job.wrong));
  weft_result_put(out, "share", Rf_ScalarReal(job.share));
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
