/* What core/device/libraries.cu answers where NVIDIA's libraries are missing (none), are no libraries (damaged), or are
 * something else (foreign); for proofs/bare-root.sh. Status 1 if an answer lacks the library, the reason or what to
 * install. */
#include <cstdio>
#include <cstring>
#include <string>
#include "core/device/libraries.cuh"

int main(int, char **given)
{
  const std::string folder = given[1];
  const struct {
    const char *name, *wheel;
    weft_status (*open)(weft_ctx *);
  } libraries[] = { { "cuBLAS", "nvidia-cublas", weft_open_blas },
                    { "cuSOLVER", "nvidia-cusolver", weft_open_solver } };
  int failures = 0;
  for (const auto &library : libraries) {
    const char *why = "cannot open shared object file";
    if (folder == "damaged" && library.open == weft_open_blas) why = "file too short";
    if (folder == "foreign" && library.open == weft_open_blas) why = "lacks cublasCreate_v2";
    for (int turn = 0; turn < 2; turn++) { /* the second try is answered in the same way */
      weft_ctx ctx = {};
      const weft_status st = library.open(&ctx);
      const bool good = st == WEFT_ERR_DEVICE && strstr(ctx.message, library.name) && strstr(ctx.message, why) &&
                        strstr(ctx.message, library.wheel) && strstr(ctx.message, "LD_LIBRARY_PATH");
      failures += !good;
      if (!good) printf("FAILED: %s\n", ctx.message);
    }
    weft_ctx none = {}; /* what opens libraries beside a call does no harm */
    none.column = -1;
    weft_libraries_beside(0, WEFT_BLAS | WEFT_SOLVER);
  }
  printf("libraries %-8s %d findings\n", given[1], failures);
  return failures > 0;
}
