/* What other entry points share with those that write. */
#pragma once

#include "core/r/glue.h"
#include "store/store.h"

/* The writer behind a handle; an R error where the store was finished. */
weft_store_writer *weft_store_writer_of(SEXP handle);
/* The values in an R vector of `length` numbers; NULL: all are 1. */
weft_store_values weft_store_values_of(SEXP x, double length);
