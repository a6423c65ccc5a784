/* A forked child that may crash (R/apart.R): it ends at once and without a word, where R would print and ask. */
#include <fcntl.h>
#include <signal.h>
#ifndef _WIN32
# include <unistd.h>
#endif
#include "glue.h"

SEXP C_weft_child_begin(void)
{
#ifndef _WIN32
  static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
  if (!weft_forked()) return R_NilValue;
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) {
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
#endif
  return R_NilValue;
}
