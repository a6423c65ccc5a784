/* A forked child that may crash, and the pipe through which it sends what it makes (R/in-child.R). The child ends at
 * once and silently, where R would print a message and ask what to do; its parent then finds that the pipe has
 * ended. */
#include <errno.h>
#include <string.h>
#ifndef _WIN32
#  include <fcntl.h>
#  include <poll.h>
#  include <signal.h>
#  include <unistd.h>
#endif
#include "core/r/glue.h"

#ifdef _WIN32

SEXP C_weft_child_begin(void) { return R_NilValue; }
SEXP C_weft_pipe(void)
{
  weft_glue_fail(WEFT_ERR_INTERNAL, "There are no forked children here.");
  return R_NilValue;
}
SEXP C_weft_pipe_close(SEXP end)
{
  (void) end;
  return C_weft_pipe();
}
SEXP C_weft_pipe_send(SEXP end, SEXP bytes)
{
  (void) bytes;
  return C_weft_pipe_close(end);
}
SEXP C_weft_pipe_receive(SEXP end) { return C_weft_pipe_close(end); }

#else

SEXP C_weft_child_begin(void)
{
  static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
  if (!weft_forked()) return R_NilValue;
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) {
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
  return R_NilValue;
}

static void no_pipe(const char *what)
{
  weft_glue_fail(WEFT_ERR_INPUT, "A pipe between processes could not be %s: %s.", what, strerror(errno));
}

/* Its two ends, for reading and for writing. */
SEXP C_weft_pipe(void)
{
  int end[2];
  SEXP out = PROTECT(Rf_allocVector(INTSXP, 2));
  if (pipe(end)) no_pipe("made");
  for (int i = 0; i < 2; i++) {
    fcntl(end[i], F_SETFD, FD_CLOEXEC);
    INTEGER(out)[i] = end[i];
  }
  UNPROTECT(1);
  return out;
}

SEXP C_weft_pipe_close(SEXP end)
{
  close(Rf_asInteger(end));
  return R_NilValue;
}

static int send_all(int end, const void *bytes, size_t size)
{
  const unsigned char *at = bytes;
  while (size) {
    const ssize_t put = write(end, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return 0;
    at += put;
    size -= (size_t) put;
  }
  return 1;
}

/* A message: its length in 8 bytes, and the bytes. In the child. */
SEXP C_weft_pipe_send(SEXP end, SEXP bytes)
{
  const uint64_t size = (uint64_t) Rf_xlength(bytes);
  if (!send_all(Rf_asInteger(end), &size, sizeof size) || !send_all(Rf_asInteger(end), RAW(bytes), (size_t) size))
    no_pipe("written");
  return R_NilValue;
}

/* Receives the next bytes; returns how many came before the pipe ended. Checks for an interrupt at least ten times per
 * second. */
static size_t receive(int end, void *bytes, size_t size)
{
  size_t have = 0;
  while (have < size) {
    struct pollfd ready = { end, POLLIN, 0 };
    R_CheckUserInterrupt();
    if (poll(&ready, 1, 100) <= 0) continue;
    const ssize_t got = read(end, (unsigned char *) bytes + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += (size_t) got;
  }
  return have;
}

/* The next message, or NULL if the pipe ended before a whole one had come. */
SEXP C_weft_pipe_receive(SEXP end)
{
  uint64_t size = 0;
  const int from = Rf_asInteger(end);
  if (receive(from, &size, sizeof size) < sizeof size) return R_NilValue;
  SEXP out = PROTECT(weft_glue_vector(RAWSXP, (double) size));
  const size_t have = receive(from, RAW(out), (size_t) size);
  UNPROTECT(1);
  return have < size ? R_NilValue : out;
}

#endif
