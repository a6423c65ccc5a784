/* Errors that R signals. */
#pragma once

#ifndef R_NO_REMAP
#  define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS
#  define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "core/call/context.h"

/* Calls weft:::raise_native(status, message, column, control) with what a context says. Does not return. */
void weft_glue_raise(weft_status st, const weft_ctx *ctx, SEXP control);
/* A classed R error, from an entry point: nothing native may be owned. Does not return. */
void weft_glue_fail(weft_status st, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3), noreturn))
#endif
    ;
