/* Vector code of meshes with AVX-512; see kernel_mesh_tile.h. */
#include "../base/simd.h"
#if WEFT_SIMD_X86
# ifdef __clang__
#  define TARGET __attribute__((target("avx512f,fma")))
# else /* by itself gcc takes half of the width */
#  define TARGET __attribute__((target("avx512f,fma,prefer-vector-width=512")))
# endif
#define MESH_CODE weft_mesh_avx512
#include "kernel_mesh_tile.h"
#endif
