/* How the room's entry points read R's lists; see kernel.c. */
#pragma once

#include "core/r/glue.h"
#include "kernel/kernel.h"
#include "kernel/cpu/tree/tree.h"

/* Sums and what they are taken over; each entry point uses some of it. */
typedef struct weft_kernel_sum_job {
  weft_kernel_task task;
  double *out, *bound;
  const int32_t *own;
  int tensor;
  weft_tree query, reference;
  weft_kernel_effort effort;
} weft_kernel_sum_job;

/* The kernel of a name; a classed error where there is none. */
int weft_kernel_kind_of(SEXP name);
weft_points weft_kernel_points_of(SEXP list);
weft_kernel_task weft_kernel_task_of(SEXP list);
weft_tree weft_kernel_tree_of(SEXP list);
