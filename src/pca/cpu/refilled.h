/* The Gram matrix of a dense matrix of which a few cells change again and again. */
#pragma once

#include "core/call/arena.h"
#include "pca/pca.h"

typedef struct weft_pca_refilled {
  double *by_row;          /* n × p: the matrix as the first form centres and scales it, row after row */
  double *center, *factor; /* of that form */
  double *g, *change;      /* p × p: its Gram matrix, and room for what is added to it */
  double *sums;            /* p: its columns' sums, weighted by form->row */
  double weight;           /* the sum of squares of form->row */
} weft_pca_refilled;

/* Makes all of it, in memory from `mem`. */
weft_status weft_pca_refilled_open(weft_ctx *ctx, weft_arena *mem, const weft_pca_data *data, const weft_pca_form *form,
                                   weft_pca_refilled *out);
/* Brings it up to date when `cells` got other values. */
weft_status weft_pca_refilled_change(weft_ctx *ctx, weft_pca_refilled *state, const weft_pca_form *form,
                                     const weft_pca_cells *cells);
/* The lower triangle of X'X, where X is what `form` makes of the data now. */
void weft_pca_refilled_square(const weft_ctx *ctx, const weft_pca_refilled *state, const weft_pca_form *form, size_t p,
                              double *g);
