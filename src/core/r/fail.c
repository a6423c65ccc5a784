/* Classed R errors from native code; see glue.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/r/glue.h"

void weft_glue_raise(weft_status st, const weft_ctx *ctx, SEXP control)
{
  static const char *const names[] = { "ok", "input", "memory", "device", "interrupt", "internal" };
  SEXP package = PROTECT(Rf_mkString("weft"));
  SEXP space = PROTECT(R_FindNamespace(package));
  SEXP status = PROTECT(Rf_mkString(names[st]));
  SEXP message = PROTECT(Rf_ScalarString(Rf_mkCharCE(ctx->message, CE_UTF8)));
  SEXP column = PROTECT(ctx->column < 0 ? Rf_ScalarReal(NA_REAL) : Rf_ScalarReal((double) ctx->column + 1));
  SEXP call = PROTECT(Rf_lang5(Rf_install("raise_native"), status, message, column, control));
  Rf_eval(call, space);
  UNPROTECT(6);
}

void weft_glue_fail(weft_status st, const char *format, ...)
{
  weft_ctx ctx;
  va_list args;
  memset(&ctx, 0, sizeof ctx);
  ctx.column = -1;
  va_start(args, format);
  vsnprintf(ctx.message, sizeof ctx.message, format, args);
  va_end(args);
  weft_glue_raise(st, &ctx, R_NilValue);
  Rf_error("%s", ctx.message); /* never: raise_native() does not return */
}
