/* Packed panels that stay on devices, so that nothing is read or sent again. Each is whole on one device, in the order
 * of the rows, those of a part of the devices one after another. A device has a panel's bytes as they are in the file,
 * for all columns and without a recipe; the host has where each column of each block begins, from which
 * weft_resident_fetch() makes a panel of any columns, with any recipe. */
#pragma once

#include "core/call/backend.h"
#include "core/device/packed.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_resident {
  size_t panels, room; /* how many are there; and how many there is room for */
  size_t n, p, parts;
  weft_packed_panel *panel;  /* bytes: the block table, and first and place of all columns */
  weft_device_matrix *there; /* the panel's bytes, eight for each number */
  size_t *part;              /* of each panel */
  weft_arena mem;
  weft_ctx own; /* of that memory and the devices' */
  const weft_device_ops *ops;
} weft_resident;

/* Takes memory for the directory of `room` panels of a matrix. */
weft_status weft_resident_begin(weft_ctx *ctx, weft_resident *x, size_t room, size_t n, size_t p);
/* Sends a panel, of all columns and without a recipe, to the call's device, as the next one; `part` is the last panel's
 * or one more. */
weft_status weft_resident_add(weft_ctx *ctx, const weft_device_ops *ops, weft_resident *x,
                              const weft_packed_panel *panel, size_t part);
/* Gives all memory back, on devices too. */
void weft_resident_end(weft_resident *x);

/* How it is read: columns (rising; NULL: all), what each row's values are divided by (NULL: nothing), whether log1p
 * follows; the panels of one part, or of all. */
typedef struct weft_resident_choice {
  const weft_resident *of;
  const double *columns, *size;
  size_t p, part;
  int log1p;
  weft_packed to; /* the last panel fetched */
} weft_resident_choice;

#define WEFT_RESIDENT_ALL SIZE_MAX /* as the part */

/* The first panel of a part, of `parts` the one behind the last; and the first row of a panel. */
size_t weft_resident_first(const weft_resident *x, size_t part);
size_t weft_resident_row(const weft_resident *x, size_t panel);

/* Panel `index` of the choice, whose rows count from the first of its part; valid until the next is fetched. */
weft_status weft_resident_fetch(weft_ctx *ctx, void *choice, size_t index, const weft_packed_panel **out);

#ifdef __cplusplus
}
#endif
