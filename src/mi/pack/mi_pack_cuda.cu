/* A pack on the device: planes with classes padded to whole steps of the tensor cores, margins, and the table of f. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include "../../base/parallel.h"
#include "../pairs/mi_pairs_cuda.cuh"

/* Rows of planes with classes padded to whole steps. */
struct plane_source { const weft_mi_pack *pack; const uint32_t *class_word; uint32_t words; };

static void fill_planes(const void *data, size_t first, size_t count, void *out, int threads)
{
  const plane_source *s = (const plane_source *) data;
  const weft_mi_pack *p = s->pack;
  WEFT_PARALLEL(threads)
  WEFT_FOR(static)
  for (int64_t k = 0; k < (int64_t) count; k++) {
    uint32_t *to = (uint32_t *) out + (size_t) k * s->words;
    memset(to, 0, s->words * sizeof *to);
    for (uint32_t c = 0; c < p->classes; c++)
      memcpy(to + s->class_word[c], weft_mi_pack_row(p, first + (size_t) k) + p->class_word[c],
             (p->class_word[c + 1] - p->class_word[c]) * sizeof *p->bits);
  }
}

static void fill_copy(const void *data, size_t first, size_t count, void *out, int threads)
{
  (void) threads;
  memcpy(out, (const char *) data + first, count);
}

extern "C" void weft_mi_resident_release(weft_ctx *ctx, weft_mi_resident *r)
{
  int before = 0;
  (void) ctx;
  cudaGetDevice(&before);
  cudaSetDevice(r->own.device);
  weft_device_end(&r->mem);
  cudaSetDevice(before);
  free(r);
}

uint32_t weft_mi_resident_words(const weft_mi_pack *p, uint32_t classes)
{
  uint32_t words = 0;
  for (uint32_t c = 0; c < classes; c++) words += (p->class_rows[c] + STEP_BITS - 1) / STEP_BITS * STEP_WORDS;
  return words;
}

#define SEND(field, source, items) do { WEFT_DEVICE_TAKE(r->field, &r->mem, (items)); \
    WEFT_TRY(weft_device_upload(&r->mem, r->field, (items) * sizeof *r->field, 1, fill_copy, (source))); } while (0)

weft_status weft_mi_resident_make(weft_ctx *ctx, const weft_mi_pack *p, weft_mi_resident **out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_mi_resident *r = (weft_mi_resident *) calloc(1, sizeof *r);
  uint32_t *class_word;
  int64_t *alone;
  plane_source source;
  if (!r) { st = weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough memory."); goto done; }
  r->own = *ctx;
  r->own.poll = NULL;
  r->mem = weft_device_begin(ctx);
  WEFT_TAKE(class_word, &host, p->classes + 1);
  WEFT_TAKE(alone, &host, p->p);
  for (uint32_t c = 0; c <= p->classes; c++) class_word[c] = weft_mi_resident_words(p, c);
  r->words = class_word[p->classes];
  weft_mi_marginals(p, alone);
  for (size_t g = 0; g < p->group_count; g++)
    if (!p->groups[g].coded && !p->groups[g].shape.missing) r->complete += p->groups[g].count;
  std::partial_sort_copy(alone, alone + p->p, r->strongest, r->strongest + MI_STRONGEST, std::greater<int64_t>());
  source.pack = p;
  source.class_word = class_word;
  source.words = r->words;
  WEFT_DEVICE_TAKE(r->planes, &r->mem, p->plane_rows * r->words);
  if (p->plane_rows && r->words)
    WEFT_TRY(weft_device_upload(&r->mem, r->planes, p->plane_rows, r->words * sizeof *r->planes, fill_planes, &source));
  SEND(margins, p->margins, p->plane_rows * p->classes);
  SEND(column, p->column, p->p);
  SEND(class_rows, p->class_rows, (size_t) p->classes);
  SEND(class_word, class_word, (size_t) p->classes + 1);
  SEND(table, p->f.table, p->f.known);
  SEND(alone, alone, p->p);
  r->f = p->f;
  r->f.table = r->table;
  WEFT_CUDA(cudaStreamSynchronize(r->mem.stream)); /* searches have streams of their own */
done:
  weft_arena_end(&host);
  if (r && st != WEFT_OK) { weft_device_end(&r->mem); free(r); r = NULL; }
  if (r) r->mem.ctx = &r->own;
  *out = r;
  return st;
}
