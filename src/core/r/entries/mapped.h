/* Mapped files behind external pointers. */
#pragma once

#ifndef R_NO_REMAP
#  define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS
#  define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "core/data/mapped.h"

/* The file behind what C_weft_map() made; an R error when it belongs to another session. */
const weft_mapped *weft_glue_mapped(SEXP pointer);
