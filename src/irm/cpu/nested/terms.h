/* Terms of the description length, as functions of counts; see levels.h for the formula. */
#pragma once

#include "irm/both/score.h"
#include "irm/cpu/nested/levels.h"

#define IRM_LOG_2 0.69314718055994531

/* Tables of log factorials and partitions, in `arena`; t->ends, t->n and level 0 are there. */
weft_status irm_terms_make(weft_arena *arena, irm_nested *t);
/* log q(e, n). */
double irm_log_partitions(const irm_nested *t, int64_t e, int64_t n);
/* n nodes in `groups` groups. */
double irm_partition_term(const irm_nested *t, int64_t n, int64_t groups);
/* A group of level 0 with these ends and nodes, without the counts of its degrees. */
double irm_group_term(const irm_nested *t, int64_t out, int64_t in, int64_t n);

static inline double irm_log_factorial(const irm_nested *t, int64_t x)
{
  return x < t->table ? t->log_factorial[x] : irm_log_gamma((double) x + 1);
}

static inline double irm_log_multisets(const irm_nested *t, int64_t n, int64_t x)
{
  return x ? irm_log_factorial(t, n + x - 1) - irm_log_factorial(t, n - 1) - irm_log_factorial(t, x) : 0;
}

/* x links of groups of a and b nodes, or (`same`) of a group of a nodes. */
static inline double irm_link_term(const irm_nested *t, int l, int same, int64_t x, int64_t a, int64_t b)
{
  if (!x) return 0;
  if (same && !t->directed) {
    const int64_t half = x / 2;
    return l ? irm_log_multisets(t, a * (a + 1) / 2, half) : -irm_log_factorial(t, half) - (double) half * IRM_LOG_2;
  }
  return l ? irm_log_multisets(t, a * b, x) : -irm_log_factorial(t, x);
}
