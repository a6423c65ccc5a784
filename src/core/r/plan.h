/* Plans asked for by R: an entry point C_weft_<room>_plan(operation, kind, sizes, slowness) reads the room's sizes,
 * calls weft_<room>_plan(), and returns what it says. */
#pragma once

#include "core/call/plan.h"
#include "core/r/glue.h"

/* A room's sizes are a structure of doubles, made from a list WEFT_<ROOM>_SIZES(SIZE) of their names. R names those
 * that an operation asks for; the others are 0. */
#define WEFT_SIZE_FIELD(name, ...) double name;
#define WEFT_SIZE_NAME(name, ...) #name,
/* Fills `count` doubles at `out` from a named list of numbers; a name that is not among `names` is an internal error.
 */
void weft_plan_sizes(SEXP sizes, const char *const *names, int count, double *out);
weft_slowness weft_plan_slowness(SEXP slowness);
/* list(cpu, cuda, bytes, bytes_cuda, device_bytes, beside, divided, engine = c(cpu, cuda, hopper), stays). */
SEXP weft_plan_result(const weft_plan *plan);
