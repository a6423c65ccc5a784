/* Files of users; see file.h. */
#define _FILE_OFFSET_BITS 64
#ifndef _DEFAULT_SOURCE
#  define _DEFAULT_SOURCE
#endif
#ifndef _POSIX_C_SOURCE
#  define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#ifdef _WIN32
#  include <io.h>
#  include <process.h>
#else
#  include <unistd.h>
#endif
#include "core/data/file.h"

#define PIECE 65536         /* numbers between two polls; 512 KB */
#define MAX_PATH_BYTES 4096 /* bytes of the path of a file to be written, with its end */

/* 0, with the phrase in `why`. */
static int refuse(char *why, const char *format, ...)
{
  va_list values;
  va_start(values, format);
  vsnprintf(why, WEFT_FILE_WHY, format, values);
  va_end(values);
  return 0;
}

static int refuse_system(char *why, const char *what) { return refuse(why, "cannot be %s: %s", what, strerror(errno)); }

uint64_t weft_file_unique(void)
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

#  define seek_to _fseeki64

/* Whether this is a regular file. */
static int check_kind(unsigned short mode, char *why)
{
  if (mode & _S_IFREG) return 1;
  return refuse(why, mode & _S_IFDIR ? "is a folder" : "is a device or a pipe, not a regular file");
}

int weft_file_open(const char *path, uint64_t *size, char *why)
{
  struct _stat64 about;
  int file = -1;
  if (_stat64(path, &about))
    return errno == ENOENT ? refuse(why, "does not exist") - 1 : refuse_system(why, "read") - 1;
  if (!check_kind(about.st_mode, why)) return -1;
  file = _open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
  if (file < 0) return refuse_system(why, "read") - 1;
  *size = (uint64_t) about.st_size;
  return file;
}

void weft_file_close(int file) { _close(file); }

FILE *weft_file_stream(const char *path, char *why)
{
  uint64_t size;
  const int file = weft_file_open(path, &size, why);
  FILE *stream = file < 0 ? NULL : _fdopen(file, "rb");
  if (file >= 0 && !stream) {
    refuse_system(why, "read");
    _close(file);
  }
  return stream;
}

int weft_file_may_write(const char *path, char *why)
{
  struct _stat64 about;
  if (_stat64(path, &about)) return errno == ENOENT ? 1 : refuse_system(why, "written");
  return check_kind(about.st_mode, why) && (!_access(path, 2) || refuse_system(why, "written"));
}

int weft_file_create(const char *path)
{
  return _open(path, _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
}

static long long put(int file, const void *from, size_t size) { return _write(file, from, (unsigned) size); }

int weft_file_publish(int file, const char *part, const char *path, int overwrite, char *why)
{
  const int lost = _commit(file);
  if (_close(file) || lost) return refuse_system(why, "written");
  if (overwrite) {
    if (!weft_file_may_write(path, why)) return 0;
    remove(path);
  }
  if (rename(part, path)) return errno == EEXIST ? refuse(why, "exists") : refuse_system(why, "written");
  return 1;
}

#else

#  define seek_to fseeko
#  ifndef O_NOFOLLOW
#    define O_NOFOLLOW 0
#  endif
#  ifndef O_CLOEXEC
#    define O_CLOEXEC 0
#  endif

/* Whether this is a regular file. */
static int check_kind(mode_t mode, char *why)
{
  if (S_ISREG(mode)) return 1;
  if (S_ISDIR(mode)) return refuse(why, "is a folder");
  return refuse(why, "is a %s, not a regular file", S_ISFIFO(mode) ? "pipe" : S_ISSOCK(mode) ? "socket" : "device");
}

/* Calls stat() for a file that is to be read, or says why it fails. */
static int look(const char *path, struct stat *about, char *why)
{
  struct stat link;
  if (!stat(path, about)) return check_kind(about->st_mode, why);
  if (errno != ENOENT && errno != ENOTDIR) return refuse_system(why, "read");
  if (!lstat(path, &link)) return refuse(why, "is a link to a file that does not exist");
  return refuse(why, "does not exist");
}

/* Looks first, because opening some devices does something. O_NONBLOCK: opening a pipe waits for a writer, should one
 * have taken the file's place in between. */
int weft_file_open(const char *path, uint64_t *size, char *why)
{
  struct stat about;
  int file = -1;
  if (!look(path, &about, why)) return -1;
  file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return refuse_system(why, "read") - 1;
  if (fstat(file, &about))
    refuse_system(why, "read");
  else if (check_kind(about.st_mode, why)) {
    *size = (uint64_t) about.st_size;
    return file;
  }
  close(file);
  return -1;
}

void weft_file_close(int file) { close(file); }

FILE *weft_file_stream(const char *path, char *why)
{
  uint64_t size;
  const int file = weft_file_open(path, &size, why);
  FILE *stream = file < 0 ? NULL : fdopen(file, "rb");
  if (file >= 0 && !stream) {
    refuse_system(why, "read");
    close(file);
  }
  return stream;
}

/* Links into /dev and /proc, such as /dev/stdout, are the system's, and lead to whatever is open at the moment. */
static int is_of_system(const char *path)
{
  char to[8] = "";
  const ssize_t length = readlink(path, to, sizeof to - 1);
  return length > 0 && (!strncmp(to, "/dev/", 5) || !strncmp(to, "/proc/", 6));
}

/* The folder of a path, without a slash behind it. 0: the path is too long. */
static int folder_of(const char *path, char folder[MAX_PATH_BYTES])
{
  const char *slash = strrchr(path, '/');
  const size_t length = slash ? (size_t) (slash - path) + (slash == path) : 1;
  if (length >= MAX_PATH_BYTES) return 0;
  memcpy(folder, slash ? path : ".", length);
  folder[length] = 0;
  return 1;
}

/* A new file is made beside the old one and takes its name, so the folder must be writable. The old one must be
 * writable too: what its owner has protected is not replaced. */
int weft_file_may_write(const char *path, char *why)
{
  struct stat about;
  char folder[MAX_PATH_BYTES];
  if (!folder_of(path, folder)) return refuse(why, "has a name that is too long");
  if (lstat(path, &about)) {
    if (errno != ENOENT) return refuse_system(why, "written");
  } else if (!S_ISLNK(about.st_mode)) {
    if (!check_kind(about.st_mode, why)) return 0;
    if (access(path, W_OK)) return refuse_system(why, "written");
  } else {
    if (is_of_system(path)) return refuse(why, "is a system link, not a regular file");
    if (!stat(path, &about)) {
      if (!check_kind(about.st_mode, why)) return 0;
    } else if (errno != ENOENT)
      return refuse_system(why, "written");
  }
  return !access(folder, W_OK | X_OK) || refuse_system(why, "written");
}

int weft_file_create(const char *path) { return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666); }

static long long put(int file, const void *from, size_t size) { return (long long) write(file, from, size); }

/* The new name itself is on the disk once its folder has been synchronised. */
static void sync_folder(const char *path)
{
  char folder[MAX_PATH_BYTES];
  const int file = folder_of(path, folder) ? open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY) : -1;
  if (file < 0) return;
  fsync(file); /* some file systems cannot do this: continuing loses nothing */
  close(file);
}

/* link() takes a new name only; rename() replaces whatever has the name, a link and not what it leads to. A file that
 * is replaced hands on who may read it. */
int weft_file_publish(int file, const char *part, const char *path, int overwrite, char *why)
{
  struct stat about;
  if (overwrite && !lstat(path, &about) && S_ISREG(about.st_mode)) fchmod(file, about.st_mode & 0777);
  const int lost = fsync(file); /* closing a file without an error leaves errno alone */
  if (close(file) || lost) return refuse_system(why, "written");
  if (overwrite) {
    if (!weft_file_may_write(path, why)) return 0;
    if (rename(part, path)) return refuse_system(why, "written");
  } else if (!link(part, path)) {
    unlink(part);
  } else {
    if (errno == EEXIST || !lstat(path, &about)) return refuse(why, "exists");
    if (rename(part, path)) return refuse_system(why, "written"); /* a file system without links */
  }
  sync_folder(path);
  return 1;
}

#endif

/* Writes all bytes, in pieces that every system takes. */
static int write_all(int file, const unsigned char *at, size_t size)
{
  const size_t most = (size_t) 1 << 26;
  while (size) {
    const long long done = put(file, at, size < most ? size : most);
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC;
    if (done <= 0) return 0;
    at += done;
    size -= (size_t) done;
  }
  return 1;
}

/* Replaces the file at `path` in one step: writes `size` bytes under a temporary name in the same folder, and renames
 * it. Returns 1, or 0 with the reason in `why` (words that follow the file's name); then nothing is left behind. */
int weft_file_write(const char *path, const void *bytes, size_t size, char *why)
{
  char part[MAX_PATH_BYTES + 32];
  const char *slash = strrchr(path, '/');
  const int folder = slash ? (int) (slash - path) + 1 : 0;
  int file = -1, done = 0;
  if (strlen(path) >= MAX_PATH_BYTES) return refuse(why, "has a name that is too long");
  if (!weft_file_may_write(path, why)) return 0;
  for (int tries = 0; tries < 100 && file < 0; tries++) {
    snprintf(part, sizeof part, "%.*s.weft-%016llx.part", folder, path, (unsigned long long) weft_file_unique());
    file = weft_file_create(part);
    if (file < 0 && errno != EEXIST) break;
  }
  if (file < 0) return refuse_system(why, "written");
  if (write_all(file, bytes, size)) {
    done = weft_file_publish(file, part, path, 1, why); /* which closes it */
  } else {
    refuse_system(why, "written");
    weft_file_close(file);
  }
  if (!done) remove(part);
  return done;
}

/* Reads `count` numbers from number `first` on into `out`; `single` where the file has 32-bit floats. Fails where the
 * file cannot be read or is too short, and polls once in PIECE numbers. */
weft_status weft_file_read(weft_ctx *ctx, const char *path, int single, int64_t first, int64_t count, double *out)
{
  weft_status st = WEFT_OK;
  const size_t size = single ? sizeof(float) : sizeof(double);
  float part[4096];
  char why[WEFT_FILE_WHY];
  FILE *f = weft_file_stream(path, why);
  if (!f) return weft_fail(ctx, WEFT_ERR_INPUT, "'%s' %s.", path, why);
  if (seek_to(f, first * (int64_t) size, SEEK_SET)) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' cannot be read: %s.", path, strerror(errno));
    goto done;
  }
  for (int64_t i = 0; i < count;) {
    if (i % PIECE == 0) WEFT_TRY(weft_poll(ctx, (double) i, (double) count));
    size_t want = (size_t) (count - i < 4096 ? count - i : 4096);
    size_t got = single ? fread(part, size, want, f) : fread(out + i, size, want, f);
    if (got < want) {
      st = weft_fail(ctx, WEFT_ERR_INPUT, "'%s' ends after %lld numbers; %lld are needed.", path,
                     (long long) (first + i + (int64_t) got), (long long) (first + count));
      goto done;
    }
    if (single)
      for (size_t k = 0; k < got; k++) out[i + (int64_t) k] = part[k];
    i += (int64_t) got;
  }
done:
  fclose(f);
  return st;
}
