/* What the glue of the room's folders shares. */
#ifndef WEFT_MI_GLUE_H
#define WEFT_MI_GLUE_H

#include "../base/record.h"
#include "mi.h"

/* Classes of rows from R's integers from 0, NA where a row does not count; R's until the entry point returns. */
uint16_t *weft_mi_class_codes(SEXP class_codes);

/* The kinds that R names, in the order of the sheets. */
extern const char *const weft_network_names[], *const weft_select_names[], *const weft_mi_entropy_names[];
extern const char *const weft_mi_numeric_names[], *const weft_bins_names[];

#endif
