/* Files for the store; see store_os.h. Files are read with pread(), not mapped: one that is cut short while it is open
 * is an error here, and would end the process there. */
#define _FILE_OFFSET_BITS 64
#ifndef _DEFAULT_SOURCE
# define _DEFAULT_SOURCE
#endif
#ifndef _POSIX_C_SOURCE
# define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#ifdef _WIN32
# include <io.h>
# include <process.h>
#else
# include <unistd.h>
#endif
#include "store_os.h"

#define PIECE ((size_t) 1 << 24) /* bytes between two polls */

static weft_status failed(weft_ctx *ctx, const char *what, const char *name)
{
  return weft_fail(ctx, WEFT_ERR_INPUT, "Can't %s '%s': %s.", what, name, strerror(errno));
}

uint64_t weft_store_os_unique(void)
{
  static unsigned calls;
  const double now = weft_seconds();
  uint64_t bits;
  memcpy(&bits, &now, sizeof bits);
#ifdef _WIN32
  const uint64_t process = (uint64_t) _getpid();
#else
  const uint64_t process = (uint64_t) getpid();
#endif
  return (process << 40) ^ bits * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t) ++calls;
}

#ifdef _WIN32

int weft_store_os_open(const char *path, uint64_t *size)
{
  struct _stat64 about;
  const int file = _open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
  if (file < 0) return -1;
  if (_fstat64(file, &about) || !(about.st_mode & _S_IFREG)) { _close(file); errno = EINVAL; return -1; }
  *size = (uint64_t) about.st_size;
  return file;
}

int weft_store_os_create(const char *path)
{
  return _open(path, _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
}

int weft_store_os_scratch(const char *path)
{
  return _open(path, _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT | _O_TEMPORARY, _S_IREAD | _S_IWRITE);
}

int weft_store_os_keep(const char *path, uint64_t *size)
{
  const int file = _open(path, _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
  if (file >= 0) *size = (uint64_t) _filelengthi64(file);
  return file;
}

static int cut(int file, uint64_t size) { return _chsize_s(file, (long long) size); }

void weft_store_os_close(int file) { _close(file); }
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

weft_status weft_store_os_publish(weft_ctx *ctx, int file, const char *part, const char *path, int overwrite)
{
  const int lost = _commit(file);
  if (_close(file) || lost) return failed(ctx, "write", path);
  if (overwrite) remove(path);
  if (rename(part, path)) return failed(ctx, "make", path);
  return WEFT_OK;
}

#else

#ifndef O_NOFOLLOW
# define O_NOFOLLOW 0
#endif
#ifndef O_CLOEXEC
# define O_CLOEXEC 0
#endif

/* O_NONBLOCK: opening a pipe without a writer would wait for ever. */
int weft_store_os_open(const char *path, uint64_t *size)
{
  struct stat about;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return -1;
  if (fstat(file, &about)) { close(file); return -1; }
  if (!S_ISREG(about.st_mode)) {
    close(file);
    errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    return -1;
  }
  *size = (uint64_t) about.st_size;
  return file;
}

int weft_store_os_create(const char *path)
{
  return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

int weft_store_os_scratch(const char *path)
{
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) unlink(path);
  return file;
}

int weft_store_os_keep(const char *path, uint64_t *size)
{
  struct stat about;
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  const int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) return -1;
  int sound = !fstat(file, &about);
  if (sound && (!S_ISREG(about.st_mode) || about.st_uid != geteuid())) {
    errno = EPERM;
    sound = 0;
  }
  if (sound && !fcntl(file, F_SETLK, &whole)) {
    *size = (uint64_t) about.st_size;
    return file;
  }
  const int why = errno;
  close(file);
  errno = why;
  return -1;
}

static int cut(int file, uint64_t size) { return ftruncate(file, (off_t) size); }

void weft_store_os_close(int file) { close(file); }
void weft_store_os_remove(const char *path) { unlink(path); }

static ssize_t read_at(int file, void *to, size_t size, uint64_t offset)
{
  return pread(file, to, size, (off_t) offset);
}

static ssize_t write_at(int file, const void *from, size_t size, uint64_t offset)
{
  return pwrite(file, from, size, (off_t) offset);
}

/* The new name itself is on the disk once its folder has been synchronised. */
static void sync_folder(const char *path)
{
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  const size_t length = slash ? (size_t) (slash - path) + (slash == path) : 1;
  if (length >= sizeof folder) return;
  memcpy(folder, slash ? path : ".", length);
  folder[length] = 0;
  const int file = open(folder, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file); /* some file systems cannot do this: continuing loses nothing */
  close(file);
}

/* link() takes a new name only; rename() replaces whatever has the name, a link and not what it leads to. */
weft_status weft_store_os_publish(weft_ctx *ctx, int file, const char *part, const char *path, int overwrite)
{
  struct stat about;
  const int lost = fsync(file); /* closing a file without an error leaves errno alone */
  if (close(file) || lost) return failed(ctx, "write", path);
  if (overwrite) {
    if (rename(part, path)) return failed(ctx, "make", path);
  } else if (!link(part, path)) {
    unlink(part);
  } else {
    if (errno == EEXIST || !lstat(path, &about))
      return weft_fail(ctx, WEFT_ERR_INPUT, "Can't make '%s': it exists.", path);
    if (rename(part, path)) return failed(ctx, "make", path); /* a file system without links */
  }
  sync_folder(path);
  return WEFT_OK;
}

#endif

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

weft_status weft_store_os_cut(weft_ctx *ctx, int file, const char *name, uint64_t size)
{
  return cut(file, size) ? failed(ctx, "write", name) : WEFT_OK;
}

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
