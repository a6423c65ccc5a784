/* .Call entry points of the forked child that reads an HDF5 file for an import (R/store-hdf5.R): compressed rows go
 * into a slot of memory that it shares with its parent (shared_memory.c). Data that are in the file in the form
 * that is needed are read by the parent's threads, which are told where to find them; deflated chunks are put into the
 * slot as they are, and inflated there.
 *
 * weft is not linked to libhdf5. What is called here is the library that the package rhdf5 has loaded. */
#include <string.h>
#ifndef _WIN32
#  include <dlfcn.h>
#  include <time.h>
#  include <unistd.h>
#endif
#include "store/import/inflate.h"
#include "store/r/shared_memory.h"

/* HDF5's own types and constants, version 1.10 and later. */
typedef int64_t h5_id;
typedef struct {
  h5_id (*open_file)(const char *path, unsigned flags, h5_id access);
  h5_id (*open_data)(h5_id file, const char *name, h5_id access);
  h5_id (*space_of)(h5_id data);
  h5_id (*type_of)(h5_id data);
  int (*class_of)(h5_id type);
  size_t (*size_of)(h5_id type);
  int (*sign_of)(h5_id type);
  int (*dimensions)(h5_id space);
  h5_id (*new_space)(int dimensions, const unsigned long long *size, const unsigned long long *most);
  int (*choose)(h5_id space, int how, const unsigned long long *start, const unsigned long long *stride,
                const unsigned long long *count, const unsigned long long *block);
  int (*read)(h5_id data, h5_id memory_type, h5_id memory_space, h5_id file_space, h5_id how, void *to);
  int (*close_space)(h5_id), (*close_type)(h5_id), (*close_data)(h5_id), (*close_file)(h5_id);
  h5_id native[WEFT_RAW_TYPES];
  /* what is needed to read past the library; `raw`: all of it is there */
  int raw;
  int (*same_type)(h5_id a, h5_id b);
  h5_id (*file_made)(h5_id file), (*data_made)(h5_id data); /* lists of properties */
  int (*close_list)(h5_id list);
  int (*user_block)(h5_id list, unsigned long long *size);
  int (*layout)(h5_id list), (*filters)(h5_id list), (*others)(h5_id list); /* others: files with the data */
  int (*filter)(h5_id list, unsigned which, unsigned *flags, size_t *numbers, unsigned *number, size_t name_size,
                char *name, unsigned *config);
  int (*chunk)(h5_id list, int dimensions, unsigned long long *size);
  int (*chunk_options)(h5_id list, unsigned *options);
  unsigned long long (*address)(h5_id data);
  int (*chunk_size)(h5_id data, const unsigned long long *start, unsigned long long *bytes);
  int (*read_chunk)(h5_id data, h5_id how, const unsigned long long *start, uint32_t *left_out, void *to);
} h5_library;
enum { H5_INTEGER = 0, H5_FLOAT = 1, H5_CONTIGUOUS = 1, H5_CHUNKED = 2, H5_DEFLATE = 1, H5_SHUFFLE = 2 };
#define H5_NOWHERE UINT64_MAX

/* A vector in the file, and how it lies there. */
typedef struct {
  h5_id id; /* 0: not open */
  weft_raw_target target;
  weft_raw_type type; /* WEFT_RAW_TYPES: of another kind */
  uint64_t address;   /* of the first number, where all follow; or H5_NOWHERE */
  uint64_t chunk;     /* numbers of a chunk, where these are known to be as follows; or 0 */
  int deflated, shuffled;
} h5_vector;

typedef struct {
  h5_library lib;
  h5_id file;          /* 0: not open */
  h5_vector vector[2]; /* columns, values */
} h5_rows;

static void release_h5(void *object)
{
  h5_rows *x = object;
  for (int i = 0; i < 2; i++)
    if (x->vector[i].id > 0) x->lib.close_data(x->vector[i].id);
  if (x->file > 0) x->lib.close_file(x->file);
  memset(x, 0, sizeof *x);
}

static const weft_handle_kind h5_kind = { "weft_store_h5", release_h5 };

#ifndef _WIN32
typedef struct {
  const char *name;
  void *to;
} h5_function;

static int find_functions(void *object, const h5_function *functions, size_t count)
{
  int found = 1;
  for (size_t i = 0; i < count && found; i++) {
    void *at = dlsym(object, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    found = at != NULL;
  }
  return found;
}

/* Finds libhdf5's functions in the shared object at `path`, which R has loaded, or in one that it is linked to.
 * Returns 0 where a function is missing or the library is too old. */
static int find_library(const char *path, h5_library *lib)
{
  const h5_function functions[] = { { "H5Fopen", &lib->open_file },
                                    { "H5Dopen2", &lib->open_data },
                                    { "H5Dget_space", &lib->space_of },
                                    { "H5Dget_type", &lib->type_of },
                                    { "H5Tget_class", &lib->class_of },
                                    { "H5Tget_size", &lib->size_of },
                                    { "H5Tget_sign", &lib->sign_of },
                                    { "H5Sget_simple_extent_ndims", &lib->dimensions },
                                    { "H5Screate_simple", &lib->new_space },
                                    { "H5Sselect_hyperslab", &lib->choose },
                                    { "H5Dread", &lib->read },
                                    { "H5Sclose", &lib->close_space },
                                    { "H5Tclose", &lib->close_type },
                                    { "H5Dclose", &lib->close_data },
                                    { "H5Fclose", &lib->close_file } };
  const h5_function raw[] = { { "H5Tequal", &lib->same_type },
                              { "H5Fget_create_plist", &lib->file_made },
                              { "H5Dget_create_plist", &lib->data_made },
                              { "H5Pclose", &lib->close_list },
                              { "H5Pget_userblock", &lib->user_block },
                              { "H5Pget_layout", &lib->layout },
                              { "H5Pget_nfilters", &lib->filters },
                              { "H5Pget_external_count", &lib->others },
                              { "H5Pget_filter2", &lib->filter },
                              { "H5Pget_chunk", &lib->chunk },
                              { "H5Pget_chunk_opts", &lib->chunk_options },
                              { "H5Dget_offset", &lib->address },
                              { "H5Dget_chunk_storage_size", &lib->chunk_size },
                              { "H5Dread_chunk", &lib->read_chunk } };
  static const char *const natives[WEFT_RAW_TYPES] = {
    "H5T_NATIVE_SCHAR_g", "H5T_NATIVE_UCHAR_g", "H5T_NATIVE_SHORT_g",  "H5T_NATIVE_USHORT_g", "H5T_NATIVE_INT_g",
    "H5T_NATIVE_UINT_g",  "H5T_NATIVE_LLONG_g", "H5T_NATIVE_ULLONG_g", "H5T_NATIVE_FLOAT_g",  "H5T_NATIVE_DOUBLE_g"
  };
  union {
    void *p;
    int (*call)(unsigned *, unsigned *, unsigned *);
  } version;
  unsigned major = 0, minor = 0, release = 0;
  void *object = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!object) return 0;
  int found = find_functions(object, functions, sizeof functions / sizeof *functions);
  version.p = dlsym(object, "H5get_libversion");
  found = found && version.p && version.call(&major, &minor, &release) >= 0 && (major > 1 || minor >= 10);
  for (int i = 0; i < WEFT_RAW_TYPES && found; i++) {
    const h5_id *type = dlsym(object, natives[i]);
    found = type && *type > 0;
    if (found) lib->native[i] = *type;
  }
  lib->raw = found && find_functions(object, raw, sizeof raw / sizeof *raw);
  dlclose(object); /* R keeps it loaded */
  return found;
}

/* Whether x is a vector of numbers, and what they fit in. */
static int find_type(const h5_library *lib, h5_vector *x)
{
  const h5_id space = lib->space_of(x->id), own = lib->type_of(x->id);
  int fits = space > 0 && own > 0 && lib->dimensions(space) == 1;
  const int kind = fits ? lib->class_of(own) : -1;
  const size_t size = fits ? lib->size_of(own) : 0;
  if (kind == H5_FLOAT)
    x->target = size <= 4 ? WEFT_RAW_FLOATS : WEFT_RAW_DOUBLES;
  else
    x->target = size < 4 || (size == 4 && lib->sign_of(own)) ? WEFT_RAW_INTEGERS : WEFT_RAW_DOUBLES;
  fits = (kind == H5_FLOAT || kind == H5_INTEGER) && size <= 8;
  x->type = fits && lib->raw ? WEFT_RAW_INT8 : WEFT_RAW_TYPES;
  while (x->type < WEFT_RAW_TYPES && lib->same_type(own, lib->native[x->type]) <= 0) x->type++;
  if (space > 0) lib->close_space(space);
  if (own > 0) lib->close_type(own);
  return fits;
}

/* Whether chunks are plain, deflated, or shuffled and deflated, the last one like the others; and which. */
static int known_chunks(const h5_library *lib, h5_id list, h5_vector *x)
{
  unsigned flags, config, options = 1;
  const int filters = lib->filters(list);
  x->deflated = filters > 0;
  x->shuffled = filters == 2;
  if (filters < 0 || filters > 2 || lib->chunk_options(list, &options) < 0 || options) return 0;
  for (int i = 0; i < filters; i++) {
    size_t numbers = 0;
    const int filter = lib->filter(list, (unsigned) i, &flags, &numbers, NULL, 0, NULL, &config);
    if (filter != (i + 1 < filters ? H5_SHUFFLE : H5_DEFLATE)) return 0;
  }
  return 1;
}

/* How x lies in the file: as the library says, which has no other files and nothing in front of its own. */
static void find_layout(const h5_library *lib, h5_id file, h5_vector *x)
{
  unsigned long long before = 1, chunk = 0;
  x->address = H5_NOWHERE;
  x->chunk = 0;
  if (x->type == WEFT_RAW_TYPES) return;
  const h5_id whole = lib->file_made(file), list = lib->data_made(x->id);
  if (whole > 0 && list > 0 && lib->user_block(whole, &before) >= 0 && before == 0) {
    const int layout = lib->layout(list);
    if (layout == H5_CONTIGUOUS && lib->filters(list) == 0 && lib->others(list) == 0) x->address = lib->address(x->id);
    if (layout == H5_CHUNKED && known_chunks(lib, list, x) && lib->chunk(list, 1, &chunk) == 1) x->chunk = chunk;
  }
  if (whole > 0) lib->close_list(whole);
  if (list > 0) lib->close_list(list);
}

static int open_rows(h5_rows *x, const char *library, const char *path, const char *const names[2])
{
  if (!find_library(library, &x->lib) || (x->file = x->lib.open_file(path, 0, 0)) <= 0) return 0;
  for (int i = 0; i < 2; i++) {
    x->vector[i].id = x->lib.open_data(x->file, names[i], 0);
    if (x->vector[i].id <= 0 || !find_type(&x->lib, &x->vector[i])) return 0;
    find_layout(&x->lib, x->file, &x->vector[i]);
  }
  if (x->vector[0].target == WEFT_RAW_FLOATS) return 0;
  x->vector[0].target = WEFT_RAW_INTEGERS;
  return 1;
}

/* ---- numbers into a slot ---- */

static h5_id native_of(const h5_library *lib, weft_raw_target target)
{
  static const weft_raw_type types[] = { WEFT_RAW_INT32, WEFT_RAW_FLOAT, WEFT_RAW_DOUBLE };
  return lib->native[types[target]];
}

static int read_part(const h5_library *lib, const h5_vector *x, uint64_t from, size_t count, void *to)
{
  const unsigned long long start = from, length = count;
  const h5_id space = lib->space_of(x->id), here = lib->new_space(1, &length, NULL);
  const int done = space > 0 && here > 0 && lib->choose(space, 0, &start, NULL, &length, NULL) >= 0 &&
                   lib->read(x->id, native_of(lib, x->target), here, space, 0, to) >= 0;
  if (space > 0) lib->close_space(space);
  if (here > 0) lib->close_space(here);
  return done;
}

/* The same by whole chunks, which spares a copy of each. 0: they are not what is wanted, or one is missing. scratch:
 * room for a chunk. */
static int read_chunks(const h5_library *lib, const h5_vector *x, uint64_t from, size_t count, void *to, void *scratch)
{
  const size_t size = weft_raw_size(x->type);
  if (!x->chunk || x->deflated || lib->native[x->type] != native_of(lib, x->target)) return 0;
  for (size_t done = 0; done < count;) {
    const uint64_t skip = (from + done) % x->chunk, here = x->chunk - skip;
    const size_t now = here < count - done ? (size_t) here : count - done;
    const unsigned long long start = from + done - skip;
    unsigned char *place = (unsigned char *) to + size * done;
    unsigned long long bytes = 0;
    uint32_t left_out = 0;
    if (lib->chunk_size(x->id, &start, &bytes) < 0 || bytes != size * x->chunk ||
        lib->read_chunk(x->id, 0, &start, &left_out, now == x->chunk ? place : scratch) < 0)
      return 0;
    if (now < x->chunk) memcpy(place, (unsigned char *) scratch + size * skip, size * now);
    done += now;
  }
  return 1;
}

static int read_numbers(const h5_rows *x, int which, const weft_shared *memory, size_t slot, uint64_t from,
                        size_t count)
{
  const h5_vector *v = &x->vector[which];
  void *to = which ? weft_slot_values(memory, slot) : (void *) weft_slot_columns(memory, slot);
  const int by_chunks = v->chunk >= WEFT_SHARED_CHUNK && v->chunk <= memory->room;
  return (by_chunks && read_chunks(&x->lib, v, from, count, to, weft_slot_chunks(memory, slot))) ||
         read_part(&x->lib, v, from, count, to);
}

/* The chunks with these numbers as they are: behind words that describe them, their sizes. Words that were used; 0:
 * there is no room for them, or one is not deflated. */
static size_t put_chunks(const h5_library *lib, const h5_vector *x, uint64_t from, size_t count, uint64_t *to,
                         size_t room)
{
  const uint64_t first = from / x->chunk, chunks = (from + count - 1) / x->chunk - first + 1;
  if (WEFT_CHUNKS_WORDS + chunks > room) return 0;
  uint64_t *sizes = to + WEFT_CHUNKS_WORDS;
  unsigned char *bytes = (unsigned char *) (sizes + chunks);
  size_t left = 8 * (room - WEFT_CHUNKS_WORDS - (size_t) chunks), used = 0;
  for (uint64_t k = 0; k < chunks; k++) {
    const unsigned long long start = (first + k) * x->chunk;
    unsigned long long size = 0;
    uint32_t left_out = 0;
    if (lib->chunk_size(x->id, &start, &size) < 0 || size == 0 || size > left - used ||
        lib->read_chunk(x->id, 0, &start, &left_out, bytes + used) < 0 || left_out)
      return 0;
    sizes[k] = size;
    used += (size_t) size;
  }
  to[WEFT_CHUNKS_TYPE] = x->type;
  to[WEFT_CHUNKS_SKIP] = from - first * x->chunk;
  to[WEFT_CHUNKS_LENGTH] = x->chunk;
  to[WEFT_CHUNKS_COUNT] = chunks;
  to[WEFT_CHUNKS_BYTES] = used;
  to[WEFT_CHUNKS_SHUFFLED] = (uint64_t) x->shuffled;
  return WEFT_CHUNKS_WORDS + (size_t) chunks + (used + 7) / 8;
}

/* Whether the chunks are of a length for which it is worth it: at a piece's ends some are inflated for a part. */
static int put_deflated(const h5_rows *x, const weft_shared *memory, size_t slot, uint64_t from, size_t count)
{
  uint64_t *to = weft_slot_chunks(memory, slot);
  size_t room = WEFT_SHARED_EACH / 2 / 8 * memory->room;
  if (!weft_inflates()) return 0;
  for (int i = 0; i < 2; i++)
    if (!x->vector[i].deflated || x->vector[i].chunk < WEFT_SHARED_CHUNK || x->vector[i].chunk > memory->room / 4)
      return 0;
  for (int i = 0; i < 2; i++) {
    const size_t used = put_chunks(&x->lib, &x->vector[i], from, count, to, room);
    if (!used) return 0;
    to += used;
    room -= used;
  }
  return 1;
}

/* Waits until the parent has finished with the slot. It looks ever more rarely, since a look costs microseconds of the
 * system's time; a block takes the parent ten milliseconds and more, and others are full by then. */
static void wait_for_slot(const weft_shared *memory, size_t slot)
{
  struct timespec moment = { 0, 50000 };
  while (atomic_load_explicit(weft_slot_full(memory, slot), memory_order_acquire)) {
    if ((long) getpid() == memory->owner || (long) getppid() != memory->owner)
      weft_glue_fail(WEFT_ERR_INTERNAL, "Slot %.0f is in use, and nobody empties it.", (double) slot + 1);
    nanosleep(&moment, NULL);
    if (moment.tv_nsec < 1000000) moment.tv_nsec *= 2;
  }
}

static SEXP numbers(size_t count, const double *x)
{
  SEXP out = Rf_allocVector(REALSXP, (R_xlen_t) count);
  memcpy(REAL(out), x, count * sizeof *x);
  return out;
}

/* How to read a piece that lies in the file as it is: target type, then type and address of the columns and of the
 * values. */
static SEXP addresses(const h5_rows *x, double from)
{
  const h5_vector *c = &x->vector[0], *v = &x->vector[1];
  const double out[5] = { v->target, c->type, (double) c->address + from * (double) weft_raw_size(c->type), v->type,
                          (double) v->address + from * (double) weft_raw_size(v->type) };
  return numbers(5, out);
}
#endif

/* indices, values: names of data sets in the file at `path`; library: of rhdf5. NULL where R has to read them. */
SEXP C_weft_store_h5(SEXP library, SEXP path, SEXP indices, SEXP values)
{
#ifdef _WIN32
  (void) library;
  (void) path;
  (void) indices;
  (void) values;
  return R_NilValue;
#else
  SEXP handle = PROTECT(weft_glue_handle(&h5_kind, sizeof(h5_rows)));
  const char *const names[2] = { CHAR(STRING_ELT(indices, 0)), CHAR(STRING_ELT(values, 0)) };
  const int open = open_rows(weft_glue_handle_peek(handle, &h5_kind), CHAR(STRING_ELT(library, 0)),
                             Rf_translateChar(STRING_ELT(path, 0)), names);
  if (!open) weft_glue_handle_free(handle, &h5_kind);
  UNPROTECT(1);
  return open ? handle : R_NilValue;
#endif
}

/* Values from .. from + count - 1, into a slot as soon as it is free: their target, alone if the slot has them all,
 * with a 1 if it has their chunks; or as addresses() says. NULL where they could not be read. */
SEXP C_weft_store_h5_read(SEXP h5, SEXP shared, SEXP slot, SEXP from, SEXP count)
{
#ifdef _WIN32
  (void) h5;
  (void) shared;
  (void) slot;
  (void) from;
  (void) count;
  return R_NilValue;
#else
  const h5_rows *x = weft_glue_handle_peek(h5, &h5_kind);
  const weft_shared *memory = weft_shared_of(shared);
  const size_t at = (size_t) Rf_asReal(slot);
  const double start = Rf_asReal(from), length = Rf_asReal(count);
  if (!x || !memory || at >= memory->slots || !(start >= 0 && length >= 0 && length <= (double) memory->room))
    weft_glue_fail(WEFT_ERR_INTERNAL, "%.0f values for slot %.0f.", length, (double) at + 1);
  const h5_vector *columns = &x->vector[0], *values = &x->vector[1];
  const double how[2] = { values->target, 1 };
  if (memory->file && columns->address != H5_NOWHERE && values->address != H5_NOWHERE) return addresses(x, start);
  wait_for_slot(memory, at);
  const uint64_t first = (uint64_t) start;
  const size_t some = (size_t) length, deflated = some && put_deflated(x, memory, at, first, some);
  if (some && !deflated &&
      !(read_numbers(x, 0, memory, at, first, some) && read_numbers(x, 1, memory, at, first, some)))
    return R_NilValue;
  atomic_store_explicit(weft_slot_full(memory, at), 1, memory_order_release);
  return numbers(deflated ? 2 : 1, how);
#endif
}
