/* Cells of sorted references, and their moments. */
#pragma once

#include "kernel/cpu/line/forms.h"

#define WEFT_LINE_BLOCK ((size_t) 8)

typedef struct weft_line_cell {
  size_t first, count;          /* references, in their order here */
  size_t block;                 /* the first */
  double lo, hi, middle, reach; /* reach: greatest |u| */
} weft_line_cell;

typedef struct weft_line {
  const weft_kernel_task *task;
  weft_line_form form;
  double per_unit;                    /* u = (x - middle) * per_unit */
  size_t n, m, cells, blocks, stride; /* stride: moments of all columns */
  size_t most;                        /* references of a cell */
  double *x, *w;                      /* in order; NULL where references were scattered */
  uint32_t *order;
  weft_line_cell *cell;
  double *total;          /* cells * stride */
  double *before, *after; /* blocks * stride: of the blocks before and after each in its cell; NULL where not needed */
  double *left, *right;   /* (cells + 1) * m: weights of the cells before, and from here on */
} weft_line;

/* Cells of task->reference with their moments, for line->form; what `line` points to belongs to mem. */
weft_status weft_line_build(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task, weft_line *line);
