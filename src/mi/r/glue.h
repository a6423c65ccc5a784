/* What the glue of the room's folders shares. */
#pragma once

#include "core/r/record.h"
#include "mi/mi.h"

/* Classes of rows from R's integers from 0, NA where a row does not count; R's until the entry point returns. */
static inline uint16_t *weft_mi_class_codes(SEXP class_codes)
{
  const size_t n = (size_t) Rf_xlength(class_codes);
  const int *codes = INTEGER_RO(class_codes);
  uint16_t *classes = (uint16_t *) R_alloc(n, sizeof *classes);
  for (size_t i = 0; i < n; i++) classes[i] = codes[i] == NA_INTEGER ? WEFT_NA_U16 : (uint16_t) codes[i];
  return classes;
}

/* The kinds that R names, in the order of the sheets. */
extern const char *const weft_network_names[], *const weft_select_names[], *const weft_mi_entropy_names[];
extern const char *const weft_mi_numeric_names[], *const weft_bins_names[];
