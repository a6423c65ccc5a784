/* Where the parts of a call meet (spread.h): each shows the others something of its own, all look at it, all go on. A
 * round is
 *
 *   WEFT_TRY(weft_meet(ctx, mine));        all have come; ctx->meeting->shown[r] is what part r shows
 *   ... look, with any failure kept in st; do not leave ...
 *   st = weft_meet_end(ctx, st);           all have looked: what was shown may change or go
 *
 * A part that is told to stop, or finds that another has ended, leaves weft_meet() with an error. weft_meet_end() waits
 * for everybody who is still looking, whatever happens. */
#pragma once

#include "core/call/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_meeting {
  int parts, lock, arrived, ended;
  unsigned round;
  int device[WEFT_MOST_DEVICES]; /* of each part */
  const void *shown[WEFT_MOST_DEVICES];
} weft_meeting;

weft_status weft_meet(weft_ctx *ctx, const void *mine);
weft_status weft_meet_end(weft_ctx *ctx, weft_status st);

/* x becomes the sum over the parts, added in their order: the same bits for all. */
weft_status weft_meet_add(weft_ctx *ctx, double *x, size_t count);
/* Part r's sizes[r] bytes to all[r]. */
weft_status weft_meet_gather(weft_ctx *ctx, const void *mine, const uint64_t *sizes, unsigned char **all);

/* This part will come to no more meetings. */
void weft_meet_leave(weft_meeting *meeting);

#ifdef __cplusplus
}
#endif
