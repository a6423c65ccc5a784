/* Vector code of meshes with AVX2 and FMA; see kernel_mesh_tile.h. */
#include "../base/simd.h"
#if WEFT_SIMD_X86
#define TARGET __attribute__((target("avx2,fma")))
#define MESH_CODE weft_mesh_avx2
#include "kernel_mesh_tile.h"
#endif
