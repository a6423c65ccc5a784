/* Nested groups of nodes with degrees of their own: the state of a chain, and what moving nodes or groups costs.
 *
 * Level 0 has the graph's nodes, level l > 0 the groups of level l - 1; b[i] is the group of node i of a level. The top
 * level has one group (bipartite graphs: one of rows and one of columns). Groups, and groups of groups, of a bipartite
 * graph are of rows or of columns only: labels below `split` are of type 0, others of type 1. With e_rs the links
 * between groups r and s (an undirected graph's e_rr counts both ends), e_r = Σ_s e_rs and n_r the nodes of a group,
 * the description length in nats is
 *
 *   level 0   - Σ_{r<s} log e_rs! - Σ_r log (2^m m!), m = e_rr / 2      + Σ_{i<j} log A_ij! + Σ_i log (2^w w!), w =
 * A_ii
 *             + Σ_r [log e_r! + log q(e_r, n_r) + log n_r! - Σ_k log n_rk!] - Σ_i log k_i!    with degrees
 *             + Σ_r e_r log n_r                                                               without
 *   level > 0   Σ_{r<s} log ((n_r n_s, e_rs)) + Σ_r log ((n_r (n_r + 1) / 2, e_rr / 2))
 *   every one + log C(N - 1, B - 1) + log N! - Σ_r log n_r! + log N     N nodes in B groups, for each type
 *
 * with ((n, x)) the number of multisets of x out of n, q(e, n) the number of partitions of e into at most n parts, and
 * n_rk the nodes of degree k in r. In a directed graph r, s run over ordered pairs, there is no halving, and a
 * group has the line of degrees twice, for out- and in-degrees (Peixoto 2017, Physical Review E 95, 012317). */
#pragma once

#include "core/call/arena.h"
#include "core/numbers/draws.h"
#include "irm/irm.h"

enum { IRM_LEVELS = 7 /* level 0, those above it, and the top */ };

typedef struct irm_level {
  int32_t nodes, k, split;
  int32_t *b;                        /* -1: no such node */
  int64_t *size, *e[2], *sum[2];     /* e[0][r * k + s]: from r to s; e[1]: transposed; undirected: the same array */
  int32_t *active, *place, count[2]; /* occupied groups, of type 1 from `split` on; place in it, or -1 */
  int32_t *spare, spares[2];         /* others, likewise */
  int64_t present[2];
  int32_t *first, *next, *before; /* members of each group */
  int64_t *w[2];                  /* links of what moves to, and from, each group, without those within it */
  int32_t *touched, touches;
} irm_level;

/* Nodes of degree class c in group r, by r * classes + c: in a plain table, or hashed, where a plain one would be
 * larger; counts that fell to 0 then stay until the next rebuild. */
typedef struct irm_degree_counts {
  uint64_t *key; /* NULL: a plain table */
  int32_t *count;
  size_t size, used;
} irm_degree_counts;

typedef struct irm_nested {
  const weft_irm_graph *graph;
  int directed, bipartite, degrees, top;
  int64_t n, ends; /* nodes; ends of links: of a directed graph, links */
  irm_level level[IRM_LEVELS];
  int64_t *degree[2];   /* in == out when undirected */
  int32_t *class_of[2]; /* of out- and in-degrees */
  int64_t classes, *class_count;
  int32_t *class_touched;
  irm_degree_counts counts;
  double constant, *log_factorial, *parts, *law[2];
  int64_t table, exact;
  int64_t dealt;                /* nodes that the last proposal to split looked at */
  int64_t self;                 /* of what moves: ends of links within it */
  int32_t plan[IRM_LEVELS + 1]; /* the parents of groups that are to be made */
  int32_t *order;               /* nodes of a level, as they are visited; members of a group that is split */
  uint8_t *side;
  weft_rng rng;
  int64_t sweep;
  uint64_t counter;
  int idle; /* rounds of a descent in vain, in a row */
  int threads;
  struct irm_nested *views; /* a thread's each: the state with room of its own for what moves; NULL in small graphs */
  int32_t *goes;            /* the group that each node goes to */
  int64_t *tables, room;    /* room for counts of links, and for draws of groups */
} irm_nested;

/* Room for `k` groups of each type at level 0. */
weft_status irm_nested_make(weft_ctx *ctx, weft_arena *arena, const weft_irm_graph *graph, int degrees,
                            const int32_t k[2], uint64_t key, uint32_t chain, irm_nested *out);
/* Degrees and what else depends on the links of t->graph alone, which may be other ones now. */
void irm_nested_read_degrees(irm_nested *t);
/* Labels of level 0 (rows, columns) and of those above, which may be NULL: one group per type. Lists are in the order
 * of labels afterwards, so that what follows depends on nothing else. poll may be NULL. */
weft_status irm_nested_set(weft_ctx *poll, irm_nested *t, int32_t *const z[2], const int32_t *upper);
/* Labels of the levels above 0 alone. */
void irm_nested_set_upper(irm_nested *t, const int32_t *upper);
void irm_nested_get(const irm_nested *t, int32_t *const z[2], int32_t *upper);
/* Description length; and the part of it that the levels from `l` on have. */
double irm_nested_length(const irm_nested *t);
double irm_nested_length_above(const irm_nested *t, int l);

static inline int irm_has_missing(const weft_irm_graph *graph)
{
  for (int64_t i = 0; graph->self_pair && i < graph->n[0]; i++)
    if (!graph->self_pair[i]) return 1;
  return graph->missing_count[0] > 0;
}

static inline int irm_type_of(const irm_level *level, int32_t r) { return r >= level->split; }
static inline int irm_node_type(const irm_nested *t, int l, int32_t i)
{
  return l ? irm_type_of(&t->level[l - 1], i) : t->bipartite && i >= t->graph->n[0];
}
/* The occupied groups of a type. */
static inline const int32_t *irm_active(const irm_level *level, int type)
{
  return level->active + (type ? level->split : 0);
}
static inline int32_t irm_spare(const irm_level *level, int type)
{
  return level->spares[type] ? level->spare[(type ? level->split : 0) + level->spares[type] - 1] : -1;
}

/* The next uniform of a sweep. */
static inline double irm_nested_next(irm_nested *t)
{
  return weft_draw_uniform(t->rng, ((uint64_t) t->sweep << 36) + t->counter++);
}
static inline int64_t irm_nested_below(irm_nested *t, int64_t n)
{
  return (int64_t) weft_draw_below(t->rng, ((uint64_t) t->sweep << 36) + t->counter++, (uint64_t) n);
}
