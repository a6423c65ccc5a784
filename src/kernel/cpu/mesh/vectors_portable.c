/* Vector code of meshes for any machine, and the choice among its variants; see vectors.h. */
#include "core/call/simd.h"
#define TARGET
#define MESH_CODE weft_mesh_portable
#include "kernel/cpu/mesh/vectors.h"

const weft_mesh_code *weft_mesh_variant(void)
{
#if WEFT_SIMD_X86
  if (weft_simd_level() == WEFT_SIMD_AVX512) return &weft_mesh_avx512;
  if (weft_simd_level() == WEFT_SIMD_AVX2 && __builtin_cpu_supports("fma")) return &weft_mesh_avx2;
#endif
  return &weft_mesh_portable;
}
