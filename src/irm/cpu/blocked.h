/* What the blocked sampler draws for a sweep, and its threads' memory; see blocked.c. */
#pragma once

#include "irm/cpu/nodes.h"
#include "irm/cpu/moves.h"

/* Tables [0]: m * width[0] + l, [1]: l * width[1] + m; rows of clusters that are occupied. */
struct irm_blocked {
  int64_t width[2];                            /* clusters of each mode, rounded up to IRM_LANES */
  double *link_rows[2];                        /* log odds of η_lm (counts: log η_lm), in units */
  double *none_rows[2];                        /* log(1 - η_lm) (counts: -η_lm), in nats */
  double *missing_rows[2];                     /* the same in units, when pairs are missing */
  int32_t *link_narrow[2], *missing_narrow[2]; /* less the middle of each row; bipartite graphs only */
  int narrow[2];                               /* these hold */
  uint8_t *drawn;                              /* one-mode graphs: clusters whose rows are there */
  double *base[2];                             /* nats; bipartite graphs: units, the greatest 0 */
  int32_t *base_narrow[2];
  irm_node_scratch *scratch; /* one per thread */
};
