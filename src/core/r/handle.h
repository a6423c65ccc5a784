/* Matrices that stay on a device, behind external pointers. */
#pragma once

#ifndef R_NO_REMAP
#  define R_NO_REMAP
#endif
#ifndef STRICT_R_HEADERS
#  define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "core/call/backend.h"

/* The device matrix behind a weft_upload() handle; an R error when it was freed or belongs to another session. */
weft_device_matrix *weft_glue_device_matrix(SEXP handle);
