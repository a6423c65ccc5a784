/* What the glue of packs and of the searches share. */
#pragma once

#include "core/r/record.h"
#include "mi/r/glue.h"
#include "mi/search/search.h"

/* A pack behind an external pointer. */
typedef struct weft_mi_handle {
  weft_ctx ctx; /* for releasing; its poll is NULL */
  weft_arena mem;
  weft_mi_pack pack;
  weft_mi_resident *device[WEFT_MOST_DEVICES]; /* its copies, one for each device of a call */
  int on[WEFT_MOST_DEVICES];                   /* the device of a copy */
  const weft_mi_ops *ops;                      /* whose they are */
} weft_mi_handle;

/* An R error when the pack was freed, or its planes are away. */
weft_mi_handle *weft_mi_handle_of(SEXP pointer);
/* The same wherever its planes are. */
weft_mi_handle *weft_mi_handle_anywhere(SEXP pointer);
/* Where `backend` keeps its copies, in the order of the call's devices. */
weft_mi_resident **weft_mi_handle_devices(weft_mi_handle *handle, const weft_backend *backend, const weft_ctx *ctx);
/* class_codes: integers from 0 with NA, those of one stratum after those of another, or NULL: all rows, one class. */
SEXP weft_mi_make_pack(SEXP x, SEXP class_codes, uint32_t class_levels, uint32_t strata, int na_level, SEXP control);
void weft_mi_free_pack(SEXP pointer);
