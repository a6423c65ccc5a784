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
weft_sparse_table weft_sparse;

#define SYMBOL_NAME(name, symbol) TEXT_OF(symbol),
static const char *const blas_symbols[] = { WEFT_BLAS_FUNCTIONS(SYMBOL_NAME) "cublasGemmEx", NULL };
static const char *const solver_symbols[] = { WEFT_SOLVER_FUNCTIONS(SYMBOL_NAME) NULL };
static const char *const sparse_symbols[] = { WEFT_SPARSE_FUNCTIONS(SYMBOL_NAME) NULL };

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
static weft_status open_library(weft_ctx *ctx, const char *name, const char *file, const char *const *symbols,
                                void **table)
{
  weft_status st = WEFT_OK;
  char why[512] = "";
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
      st = weft_fail(ctx, WEFT_ERR_DEVICE,
                     "NVIDIA's library %s (%s) cannot be opened: %s. Install it, or let CUDA_HOME or LD_LIBRARY_PATH "
                     "name its folder; weft_install_cuda() fetches it.",
                     name, file, why);
  }
  pthread_mutex_unlock(&lock);
  return st;
}

weft_status weft_open_blas(weft_ctx *ctx)
{
  return open_library(ctx, "cuBLAS", "libcublas.so." TEXT(CUBLAS_VER_MAJOR), blas_symbols, (void **) &weft_blas);
}

weft_status weft_open_solver(weft_ctx *ctx)
{
  return open_library(ctx, "cuSOLVER", "libcusolver.so." TEXT(CUSOLVER_VER_MAJOR), solver_symbols,
                      (void **) &weft_solver);
}

weft_status weft_open_sparse(weft_ctx *ctx)
{
  return open_library(ctx, "cuSPARSE", "libcusparse.so." TEXT(CUSPARSE_VER_MAJOR), sparse_symbols,
                      (void **) &weft_sparse);
}

/* Handles by lane, kept for later calls on the same device. Another thread may make the first (weft_blas_beside()). */
static struct {
  cublasHandle_t handle;
  int device;
} kept[WEFT_MOST_DEVICES + 1];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* The lane's handle, made when first needed. */
static cublasStatus_t make_handle(weft_ctx *ctx, cublasHandle_t *out)
{
  auto &own = kept[ctx->lane];
  if (!ctx->lane) pthread_mutex_lock(&making);
  if (own.handle && own.device != ctx->device) {
    weft_blas.destroy(own.handle);
    own.handle = NULL;
  }
  own.device = ctx->device;
  cublasStatus_t error = own.handle ? CUBLAS_STATUS_SUCCESS : weft_blas.create(&own.handle);
  if (error != CUBLAS_STATUS_SUCCESS) own.handle = NULL;
  *out = own.handle;
  if (!ctx->lane) pthread_mutex_unlock(&making);
  return error;
}

void weft_blas_beside(int device)
{
  cublasHandle_t handle;
  weft_ctx ctx = {};
  ctx.device = device;
  if (weft_open_blas(&ctx) != WEFT_OK) return;
  weft_device_open(device);
  if (weft_device_opened(device)) make_handle(&ctx, &handle);
}

weft_status weft_blas_handle(weft_ctx *ctx, cudaStream_t stream, cublasHandle_t *out)
{
  weft_status st = weft_open_blas(ctx);
  if (st != WEFT_OK) return st;
  cublasStatus_t error = make_handle(ctx, out);
  if (error == CUBLAS_STATUS_SUCCESS) error = weft_blas.set_stream(*out, stream);
  if (error == CUBLAS_STATUS_ALLOC_FAILED) return weft_fail(ctx, WEFT_ERR_MEMORY, "Not enough device memory (cuBLAS).");
  if (error != CUBLAS_STATUS_SUCCESS)
    return weft_fail(ctx, WEFT_ERR_DEVICE, "cuBLAS: error %d when it was opened.", (int) error);
  return st;
}
