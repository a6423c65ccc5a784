/* Opening NVIDIA's libraries; see libraries.cuh. They are looked for in the folders that the file `libraries` beside
 * the CUDA object names (one per line; weft_install_cuda() writes it), then where the system looks (which includes the
 * toolkit that the object was built with), then in CUDA_HOME and /usr/local/cuda. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include "core/device/libraries.cuh"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

weft_blas_table weft_blas;
weft_solver_table weft_solver;

#define SYMBOL_NAME(name, symbol) TEXT_OF(symbol),
static const char *const blas_symbols[] = { WEFT_BLAS_FUNCTIONS(SYMBOL_NAME) "cublasGemmEx", NULL };
static const char *const solver_symbols[] = { WEFT_SOLVER_FUNCTIONS(SYMBOL_NAME) NULL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Opens a file of a folder; `folder` may end in a new line. */
static void *open_in(const char *folder, const char *below, const char *file)
{
  char path[4096];
  const int length = (int) strcspn(folder, "\r\n");
  if (!length || snprintf(path, sizeof path, "%.*s%s/%s", length, folder, below, file) >= (int) sizeof path)
    return NULL;
  return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

/* In the folders that stand in the file beside this object. */
static void *open_named(const char *file)
{
  Dl_info own;
  char path[4096], line[4096];
  void *found = NULL;
  if (!dladdr((const void *) &weft_blas, &own) || !own.dli_fname) return NULL;
  const char *end = strrchr(own.dli_fname, '/');
  const int length = end ? (int) (end - own.dli_fname) : 0;
  if (!end || snprintf(path, sizeof path, "%.*s/libraries", length, own.dli_fname) >= (int) sizeof path) return NULL;
  FILE *list = fopen(path, "r");
  if (!list) return NULL;
  while (!found && fgets(line, sizeof line, list)) found = open_in(line, "", file);
  fclose(list);
  return found;
}

static void *open_anywhere(const char *file, char *why, size_t len)
{
  const char *home = getenv("CUDA_HOME");
  void *found = open_named(file);
  if (!found && !(found = dlopen(file, RTLD_LAZY | RTLD_LOCAL))) {
    const char *error = dlerror();
    snprintf(why, len, "%s", error ? error : "not found");
  }
  if (!found && home) found = open_in(home, "/lib64", file);
  if (!found && home) found = open_in(home, "/lib", file);
  if (!found) found = open_in("/usr/local/cuda", "/lib64", file);
  return found;
}

/* Fills a table of functions, one pointer for each name; none of them when one is missing. A library stays open: its
 * threads and contexts may outlive weft. */
static weft_status open_library(weft_ctx *ctx, const char *name, const char *wheel, const char *file,
                                const char *const *symbols, void **table)
{
  weft_status st = WEFT_OK;
  char why[512] = "";
  if (__atomic_load_n(table, __ATOMIC_ACQUIRE)) return st; /* another thread may be opening another library */
  pthread_mutex_lock(&lock);
  if (!__atomic_load_n(table, __ATOMIC_ACQUIRE)) {
    void *library = open_anywhere(file, why, sizeof why), *first = NULL;
    for (int i = 0; library && symbols[i]; i++) {
      void *symbol = dlsym(library, symbols[i]);
      if (!symbol) {
        snprintf(why, sizeof why, "%s lacks %s", file, symbols[i]);
        library = NULL;
      } else if (i) {
        table[i] = symbol;
      } else {
        first = symbol;
      }
    }
    if (library)
      __atomic_store_n(table, first, __ATOMIC_RELEASE);
    else
      st = weft_fail(
          ctx, WEFT_ERR_DEVICE,
          "NVIDIA's library %s cannot be opened (%s). Install it, for example with `python3 -m pip install %s`, "
          "and start R with its folder in LD_LIBRARY_PATH, or with CUDA_HOME; weft_install_cuda() finds wheels by "
          "itself.",
          name, why, wheel);
  }
  pthread_mutex_unlock(&lock);
  return st;
}

weft_status weft_open_blas(weft_ctx *ctx)
{
  return open_library(ctx, "cuBLAS", "nvidia-cublas", "libcublas.so." TEXT(CUBLAS_VER_MAJOR), blas_symbols,
                      (void **) &weft_blas);
}

weft_status weft_open_solver(weft_ctx *ctx)
{
  return open_library(ctx, "cuSOLVER", "nvidia-cusolver", "libcusolver.so." TEXT(CUSOLVER_VER_MAJOR), solver_symbols,
                      (void **) &weft_solver);
}

/* Handles by lane, kept for later calls on the same device. Another thread may make the first
 * (weft_libraries_beside()). */
static struct {
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  int device;
} kept[WEFT_MOST_DEVICES + 1];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static void destroy_handles(int lane)
{
  auto &own = kept[lane];
  if (own.blas) weft_blas.destroy(own.blas);
  if (own.solver) weft_solver.destroy(own.solver);
  own.blas = NULL;
  own.solver = NULL;
}

/* The lane's handle of a library, one of those above, made when first needed. */
template <typename Handle, typename Status>
static Status make_handle(weft_ctx *ctx, Handle &own, Status (*create)(Handle *), Handle *out)
{
  Status error = (Status) 0;
  if (!ctx->lane) pthread_mutex_lock(&making);
  if (kept[ctx->lane].device != ctx->device) destroy_handles(ctx->lane);
  kept[ctx->lane].device = ctx->device;
  if (!own) {
    weft_memory_count_made(ctx->memory);
    error = create(&own);
    if (error) own = NULL;
  }
  *out = own;
  if (!ctx->lane) pthread_mutex_unlock(&making);
  return error;
}

void weft_libraries_beside(int device, int which)
{
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  weft_ctx ctx = {};
  ctx.device = device;
  const bool found = which & WEFT_BLAS && weft_open_blas(&ctx) == WEFT_OK;
  weft_device_open(device);
  if (!weft_device_opened(device)) return;
  if (found) make_handle(&ctx, kept[0].blas, weft_blas.create, &blas);
  if (which & WEFT_SOLVER && weft_open_solver(&ctx) == WEFT_OK)
    make_handle(&ctx, kept[0].solver, weft_solver.create, &solver);
}

/* A status for a library's answer when its handle was made and given a stream; `full`: it found no memory. */
static weft_status opened(weft_ctx *ctx, const char *name, int error, int full)
{
  if (error == full) return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough device memory (%s).", name);
  if (error) return weft_fail(ctx, WEFT_ERR_DEVICE, "%s: error %d when it was opened.", name, error);
  return WEFT_OK;
}

weft_status weft_blas_handle(weft_ctx *ctx, cudaStream_t stream, cublasHandle_t *out)
{
  weft_status st = weft_open_blas(ctx);
  if (st != WEFT_OK) return st;
  cublasStatus_t error = make_handle(ctx, kept[ctx->lane].blas, weft_blas.create, out);
  return opened(ctx, "cuBLAS", error ? error : weft_blas.set_stream(*out, stream), CUBLAS_STATUS_ALLOC_FAILED);
}

weft_status weft_solver_handle(weft_ctx *ctx, cudaStream_t stream, cusolverDnHandle_t *out)
{
  weft_status st = weft_open_solver(ctx);
  if (st != WEFT_OK) return st;
  cusolverStatus_t error = make_handle(ctx, kept[ctx->lane].solver, weft_solver.create, out);
  return opened(ctx, "cuSOLVER", error ? error : weft_solver.set_stream(*out, stream), CUSOLVER_STATUS_ALLOC_FAILED);
}
