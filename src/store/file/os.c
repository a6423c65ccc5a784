/* Files for the store; see os.h. Files are read with pread(), not mapped: one that is cut short while it is open
 * is an error here, and would end the process there. */
#define _FILE_OFFSET_BITS 64
#ifndef _DEFAULT_SOURCE
#  define _DEFAULT_SOURCE
#endif
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#ifdef _WIN32
#  include <io.h>
#else
#  include <unistd.h>
#endif
#include "store/file/os.h"

#define PIECE ((size_t) 1 << 24) /* bytes between two polls */

static weft_status failed(weft_ctx *ctx, const char *what, const char *name)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "Can't %s '%s': %s.", what, name, strerror(errno));
}

#ifdef _WIN32

int weft_store_os_scratch(const char *path)
{
  return _open(path, _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT | _O_TEMPORARY, _S_IREAD | _S_IWRITE);
}

void weft_store_os_remove(const char *path) { remove(path); }

static long long read_at(int file, void *to, size_t size, uint64_t offset)
{
  if (_lseeki64(file, (long long) offset, SEEK_SET) < 0) return -1;
  return _read(file, to, (unsigned) size);
}

static long long write_at(int file, const void *from, size_t size, uint64_t offset)
{
  if (_lseeki64(file, (long long) offset, SEEK_SET) < 0) return -1;
  return _write(file, from, (unsigned) size);
}

#else

#  ifndef O_NOFOLLOW
#    define O_NOFOLLOW 0
#  endif
#  ifndef O_CLOEXEC
#    define O_CLOEXEC 0
#  endif

int weft_store_os_scratch(const char *path)
{
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) unlink(path);
  return file;
}

void weft_store_os_remove(const char *path) { unlink(path); }

static ssize_t read_at(int file, void *to, size_t size, uint64_t offset)
{
  return pread(file, to, size, (off_t) offset);
}

static ssize_t write_at(int file, const void *from, size_t size, uint64_t offset)
{
  return pwrite(file, from, size, (off_t) offset);
}

#endif

/* Reads exactly `size` bytes at `offset`, at most PIECE at a time between polls; a file that ends before is
 * WEFT_ERR_INPUT. */
weft_status weft_store_os_read(weft_ctx *ctx, int file, const char *name, uint64_t offset, void *to, size_t size)
{
  unsigned char *at = to;
  while (size) {
    const long long got = (long long) read_at(file, at, size < PIECE ? size : PIECE, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(ctx, "read", name);
    if (got == 0)
      return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' ends at byte %.0f; %.0f more are needed.", name, (double) offset,
                       (double) size);
    at += got;
    offset += (uint64_t) got;
    size -= (size_t) got;
    if (size) {
      const weft_status st = weft_poll(ctx, 0, 0);
      if (st != WEFT_OK) return st;
    }
  }
  return WEFT_OK;
}

/* Writes exactly `size` bytes at `offset`, at most PIECE at a time between polls; a full disk is an error. */
weft_status weft_store_os_write(weft_ctx *ctx, int file, const char *name, uint64_t offset, const void *from,
                                size_t size)
{
  const unsigned char *at = from;
  while (size) {
    const long long put = (long long) write_at(file, at, size < PIECE ? size : PIECE, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return failed(ctx, "write", name);
    at += put;
    offset += (uint64_t) put;
    size -= (size_t) put;
    if (size) {
      const weft_status st = weft_poll(ctx, 0, 0);
      if (st != WEFT_OK) return st;
    }
  }
  return WEFT_OK;
}
