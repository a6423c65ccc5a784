/* How the room's entry points read R's lists; see kernel_glue.c. */
#ifndef WEFT_KERNEL_GLUE_H
#define WEFT_KERNEL_GLUE_H

#include "../base/glue.h"
#include "kernel.h"

weft_kernel_task weft_kernel_task_of(SEXP list);
weft_tree weft_kernel_tree_of(SEXP list);

#endif
