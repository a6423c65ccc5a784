/* Vector code of meshes with AVX-512; see vectors.h. */
/* Build: fused. */
#include "core/call/simd.h"
#if WEFT_SIMD_X86
#  define TARGET __attribute__((target("avx512f,fma")))
#  define MESH_CODE weft_mesh_avx512
#  include "kernel/cpu/mesh/vectors.h"
#endif
