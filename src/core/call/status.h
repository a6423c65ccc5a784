/* What a native function returns. Every function that can fail returns a weft_status and leaves the words for
 * the user in the context (context.h); nothing below the glue prints, exits or knows R. */
#pragma once

typedef enum {
  WEFT_OK = 0,
  WEFT_ERR_INPUT,     /* the data break a rule; the message names it */
  WEFT_ERR_MEMORY,    /* host or device memory; the message has bytes needed and bytes free */
  WEFT_ERR_DEVICE,    /* no device, a failed launch, a missing library */
  WEFT_ERR_INTERRUPT, /* the caller's poll asked to stop */
  WEFT_ERR_INTERNAL   /* a broken invariant: a bug of ours */
} weft_status;

/* Runs a step of a function that has `weft_status st` and one exit label `done`. */
#define WEFT_TRY(step) \
  do { \
    if ((st = (step)) != WEFT_OK) goto done; \
  } while (0)
