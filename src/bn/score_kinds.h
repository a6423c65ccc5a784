/* The scores, one row each. A new score is a row here, with the functions it names below, and its line in R
 * (`bn_score_types` and local_counts() in R/bn-scores.R).
 *
 *   kind, name   WEFT_BN_<kind>, and what R calls it
 *   data         COUNTS: sums of f over the cells of parents and family (count.h); GAUSS: determinants; MIXED: COUNTS
 *                for categories, regressions for numbers (mixed.c)
 *   masses       weft_bn_masses_<masses>(): the parameter of f for the cells of parents and family; -1: N ln N
 *   varies       which of the masses depends on the child's number of levels: a device has one f for each number
 *   occupied     the masses depend on how many configurations of the parents occur, which must be counted first
 *   penalty      weft_bn_penalty_<penalty>(): what a free parameter costs in nats
 *   joint        score(i | P) = h(P + i) - h(P): one count of every set serves all its children
 *   device       a device counts it */
#pragma once

#include <math.h>

/* clang-format off */
#define WEFT_BN_SCORE_KINDS(ROW) \
  /*  kind  name    data    masses  varies   occupied  penalty   joint  device */ \
  ROW(BDEU, "bdeu", COUNTS, bdeu,   FAMILY,  0,        none,     1,     1) \
  ROW(K2,   "k2",   COUNTS, k2,     PARENTS, 0,        none,     0,     1) \
  ROW(BIC,  "bic",  COUNTS, logs,   NEITHER, 0,        half_log, 1,     1) \
  ROW(AIC,  "aic",  COUNTS, logs,   NEITHER, 0,        one,      1,     1) \
  ROW(BDS,  "bds",  COUNTS, bds,    FAMILY,  1,        none,     0,     0) \
  ROW(BGE,  "bge",  GAUSS,  logs,   NEITHER, 0,        none,     1,     0) \
  ROW(BIC_CG, "bic-cg", MIXED, logs, NEITHER, 0,       half_log, 0,     0) \
  ROW(AIC_CG, "aic-cg", MIXED, logs, NEITHER, 0,       one,      0,     0)
/* clang-format on */

#define WEFT_BN_ENUM(kind, ...) WEFT_BN_##kind,
typedef enum { WEFT_BN_SCORE_KINDS(WEFT_BN_ENUM) } weft_bn_score;
#undef WEFT_BN_ENUM

#define WEFT_BN_PLUS_ONE(...) +1
enum { WEFT_BN_SCORES = 0 WEFT_BN_SCORE_KINDS(WEFT_BN_PLUS_ONE) };
#undef WEFT_BN_PLUS_ONE

typedef enum { WEFT_BN_COUNTS, WEFT_BN_GAUSS, WEFT_BN_MIXED } weft_bn_score_data;
typedef enum { WEFT_BN_NEITHER, WEFT_BN_PARENTS, WEFT_BN_FAMILY } weft_bn_score_varies;

typedef struct weft_bn_score_kind {
  const char *name;
  weft_bn_score_data data;
  weft_bn_score_varies varies;
  int occupied, joint, device;
} weft_bn_score_kind;

static inline const weft_bn_score_kind *weft_bn_kind(weft_bn_score score)
{
#define WEFT_BN_KIND(kind, name, data, masses, varies, occupied, penalty, joint, device) \
  { name, WEFT_BN_##data, WEFT_BN_##varies, occupied, joint, device },
  static const weft_bn_score_kind kinds[] = { WEFT_BN_SCORE_KINDS(WEFT_BN_KIND) };
#undef WEFT_BN_KIND
  return &kinds[score];
}

/* ---- masses: `q` possible configurations of the parents, `occupied` of them seen; `r` levels of the child ---- */

typedef struct weft_bn_masses {
  double parents, family;
} weft_bn_masses;

static inline weft_bn_masses weft_bn_masses_bdeu(double ess, double q, double occupied, double r)
{
  const weft_bn_masses m = { ess / q, ess / q / r };
  (void) occupied;
  return m;
}

static inline weft_bn_masses weft_bn_masses_bds(double ess, double q, double occupied, double r)
{
  (void) q;
  return weft_bn_masses_bdeu(ess, fmax(occupied, 1), occupied, r);
}

static inline weft_bn_masses weft_bn_masses_k2(double ess, double q, double occupied, double r)
{
  const weft_bn_masses m = { r, 1 };
  (void) ess;
  (void) q;
  (void) occupied;
  return m;
}

static inline weft_bn_masses weft_bn_masses_logs(double ess, double q, double occupied, double r)
{
  const weft_bn_masses m = { -1, -1 };
  (void) ess;
  (void) q;
  (void) occupied;
  (void) r;
  return m;
}

static inline weft_bn_masses weft_bn_masses_of(weft_bn_score score, double ess, double q, double occupied, double r)
{
/* clang-format off */
#define WEFT_BN_MASSES(kind, name, data, masses, ...) \
  case WEFT_BN_##kind: return weft_bn_masses_##masses(ess, q, occupied, r);
  /* clang-format on */
  switch (score) {
    WEFT_BN_SCORE_KINDS(WEFT_BN_MASSES)
  }
#undef WEFT_BN_MASSES
  return weft_bn_masses_logs(ess, q, occupied, r); /* never: every kind has its case */
}

/* ---- penalties, given the rows that count ---- */

static inline double weft_bn_penalty_none(double rows) { return (void) rows, 0; }
static inline double weft_bn_penalty_one(double rows) { return (void) rows, 1; }
static inline double weft_bn_penalty_half_log(double rows) { return rows > 0 ? 0.5 * log(rows) : 0; }

/* A row without its functions does not compile. */
#define WEFT_BN_THERE(kind, name, data, masses, varies, occupied, penalty, ...) \
  +sizeof &weft_bn_masses_##masses + sizeof &weft_bn_penalty_##penalty
enum { WEFT_BN_SCORES_THERE = 0 WEFT_BN_SCORE_KINDS(WEFT_BN_THERE) };
#undef WEFT_BN_THERE

static inline double weft_bn_penalty_of(weft_bn_score score, double rows)
{
/* clang-format off */
#define WEFT_BN_PENALTY(kind, name, data, masses, varies, occupied, penalty, ...) \
  case WEFT_BN_##kind: return weft_bn_penalty_##penalty(rows);
  /* clang-format on */
  switch (score) {
    WEFT_BN_SCORE_KINDS(WEFT_BN_PENALTY)
  }
#undef WEFT_BN_PENALTY
  return 0; /* never: every kind has its case */
}
