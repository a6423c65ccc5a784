/* Vector code of meshes with AVX2 and FMA; see vectors.h. */
/* Build: fused. */
#include "core/call/simd.h"
#if WEFT_SIMD_X86
#  define TARGET __attribute__((target("avx2,fma")))
#  define MESH_CODE weft_mesh_avx2
#  include "kernel/cpu/mesh/vectors.h"
#endif
