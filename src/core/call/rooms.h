/* The systems. A room is entered here once: its operations struct becomes a field of the back-end table (backend.h)
 * and its two instances, weft_<room>_cpu and weft_<room>_cuda, fill that field. */
#pragma once
/* clang-format off */
#define WEFT_ROOMS(ROOM) \
  ROOM(mi) ROOM(pca) ROOM(bn) ROOM(kernel) ROOM(irm) ROOM(regulation)
/* clang-format on */
