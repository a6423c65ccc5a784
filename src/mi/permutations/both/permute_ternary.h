/* Permutation tests of pairs on a device, many label sets at once. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Permutation tests of pairs under many label sets at once. */
typedef struct weft_mi_relabelling {
  const weft_mi_search *search; /* by_interaction, near */
  const uint32_t *columns;      /* of the pairs that were found, two each */
  const double *observed;       /* their scores */
  size_t count, sets;
  /* The sorted rows that set `set` gives class `of`, by any thread; perm: room for pack->n. */
  void (*draw)(const void *data, size_t set, uint32_t of, uint32_t *perm, uint32_t *rows);
  const void *data;
  double *at_least, *greatest; /* by pair: sets in which it scores at least as much; by set */
} weft_mi_relabelling;

/* *done: 0 where the pack's shape or the device's memory does not allow it. */
weft_status weft_mi_relabel_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                 const weft_mi_relabelling *how, int *done);

#ifdef __cplusplus
}
#endif
