/* What the blocked sampler draws for a sweep, and its threads' memory; see irm_blocked.c. */
#ifndef WEFT_IRM_BLOCKED_H
#define WEFT_IRM_BLOCKED_H

#include "irm_nodes.h"
#include "irm_state.h"

struct irm_blocked {
  int64_t width[2];          /* clusters of each mode, rounded up to IRM_LANES */
  double *log_stick[2];      /* log μ */
  double *link_rows[2];      /* [0]: m * width[0] + l, [1]: l * width[1] + m; log odds of η_lm (counts: log η_lm) */
  double *missing_rows[2];   /* log(1 - η_lm) (counts: -η_lm) */
  float *link_single[2], *missing_single[2]; /* the same, every row centred; bipartite graphs only */
  double *base[2];
  irm_node_scratch *scratch; /* one a thread */
};

#endif
