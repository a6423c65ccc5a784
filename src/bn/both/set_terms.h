/* What a parent set adds to its raw score; see set_terms.c. */
#pragma once

#include "bn/both/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A set's share: -penalty × parent configurations + edges, NEVER when a required parent is missing. weft_bn_penalty()
 * gives the penalty of one configuration in nats; the functions below take it in units. */
typedef struct weft_bn_share {
  int64_t edges;
  size_t lacking;
  double q;
} weft_bn_share;
/* Nats that a configuration of the parents of i costs; how many parents i must have. */
double weft_bn_penalty(const weft_bn_problem *problem, size_t i);
size_t weft_bn_required(const weft_bn_problem *problem, size_t i);
/* What parent v of i adds by itself. */
int64_t weft_bn_edge_share(const weft_bn_ready *ready, size_t i, size_t v);
/* The share of no parents; then with one more, v. */
weft_bn_share weft_bn_share_begin(size_t required);
void weft_bn_share_add(const weft_bn_ready *ready, size_t i, size_t v, double penalty, weft_bn_share *share);
/* The whole share of m parents, in units; WEFT_BN_NEVER when a required one is missing. */
int64_t weft_bn_set_share(const weft_bn_ready *ready, size_t i, const size_t *parents, size_t m, size_t required,
                          double penalty);
/* By how many units a subset must be better for a set to be dropped. */
int64_t weft_bn_slack(const weft_bn_ready *ready);

#ifdef __cplusplus
}
#endif
