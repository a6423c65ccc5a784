/* Files for R code: what is at a path, and writing one in one step; see file.h and R/files.R. */
#include "core/r/glue.h"
#include "core/data/file.h"

static const char *native_path(SEXP path) { return Rf_translateChar(STRING_ELT(path, 0)); }

/* The size in bytes of a file that can be read, or why it cannot be, as text. */
SEXP C_weft_file_look(SEXP path)
{
  char why[WEFT_FILE_WHY];
  uint64_t size = 0;
  const int file = weft_file_open(native_path(path), &size, why);
  if (file < 0) return Rf_mkString(why);
  weft_file_close(file);
  return Rf_ScalarReal((double) size);
}

/* NULL, or why no file can be written there. */
SEXP C_weft_file_may_write(SEXP path)
{
  char why[WEFT_FILE_WHY];
  return weft_file_may_write(native_path(path), why) ? R_NilValue : Rf_mkString(why);
}

/* Writes raw bytes: NULL, or why that failed. */
SEXP C_weft_file_write(SEXP path, SEXP bytes)
{
  char why[WEFT_FILE_WHY];
  return weft_file_write(native_path(path), RAW(bytes), (size_t) XLENGTH(bytes), why) ? R_NilValue : Rf_mkString(why);
}

/* Between two pieces of a file that R code reads: lets the user stop. */
SEXP C_weft_file_pause(void)
{
  R_CheckUserInterrupt();
  return R_NilValue;
}
