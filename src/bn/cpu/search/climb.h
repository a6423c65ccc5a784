/* One order that is improved by best moves of its nodes (climb.c); a search has many of them (search.c).
 *
 * A climber with kicks left continues from its best order after each. A *lane* takes over another climber's best order,
 * tries kicks of its own, and notes which nodes it moved for good; then the climber places these as the lane has them,
 * and keeps the result if the score is no worse. Lanes from the same order can be tried at once. */
#pragma once

#include "core/numbers/draws.h"
#include "bn/cpu/search/grow_shrink_trees.h"
#include "bn/cpu/search/queue.h"
#include "bn/cpu/search/search.h"

/* Scores that are equal mathematically may differ by so much for each node. */
#define WEFT_BN_TIE_UNITS 8

typedef struct weft_bn_climber {
  const weft_bn_problem *problem;
  const weft_bn_near *near;
  weft_bn_trees *trees; /* shared by all */
  weft_rng rng;
  uint64_t draws;
  int32_t *order, *place;
  uint64_t *before;    /* p + 1: bits of the nodes at lower places */
  size_t present;      /* how many nodes, from the order's first on, have been inserted */
  int64_t *value;      /* p: of each node's parents */
  uint64_t *asked_for; /* p: whose place before or after it matters to that (weft_bn_bit) */
  weft_bn_queue queue;
  int64_t total;
  /* the best order so far */
  int32_t *best_order;
  int64_t *best_value, best_total;
  uint64_t *best_asked_for;
  /* the nodes that a lane moved, in the best order the first best_moved of them */
  uint8_t *is_moved; /* p */
  int32_t *moved;    /* p */
  size_t moved_count, best_moved;
  size_t kicks_left, pause; /* it stops for a while when no more than `pause` are left */
  int lane;
  int wide;             /* kicks move more nodes */
  int64_t began_total;  /* of the order from which a lane began */
  int local;            /* after a kick: a node that changed is queued, those around it are not */
  int checked;          /* all nodes were tried since anything moved, or need not be */
  int stale;            /* candidates have changed since the values were computed */
  uint64_t *thinned_at; /* p: a hash of the nodes before it when its parents were thinned last */
  int done;
  /* one move */
  int32_t *relevant;       /* p: nodes that matter, by place */
  uint8_t *why;            /* p: KID and PARENT, zero between moves */
  int64_t *without, *with; /* p: of a node whose candidate moves */
  /* with categories, for moves of a node with its descendants; NULL elsewhere */
  int32_t *stays, *parent; /* p; p x WEFT_BN_MAX_PARENTS */
  uint8_t *parent_count;   /* p */
  /* of all orders since it was made */
  int32_t *kept_order; /* the best one */
  int64_t kept_total;
  double moves, asked, scored, swept;
} weft_bn_climber;

weft_status weft_bn_climber_make(weft_arena *mem, const weft_bn_search *search, const weft_bn_near *near,
                                 weft_bn_trees *trees, size_t number, weft_bn_climber *out);
/* A random order, into which no node has been inserted yet. */
void weft_bn_climber_shuffle(weft_bn_climber *climber);
/* Keeps the best order if it is better than the one that it has kept. */
void weft_bn_climber_keep(weft_bn_climber *climber);
/* Begins again with a random order, whose stream of draws has this number. */
void weft_bn_climber_restart(weft_bn_climber *climber, size_t number);
/* Takes the kept order back, to climb from it. */
void weft_bn_climber_recall(weft_bn_climber *climber);
/* Prepares it to climb, and then to use the kicks. `grown` (not NULL): at first, only nodes with new candidates and
 * those around them are queued. */
void weft_bn_climber_begin(weft_bn_climber *climber, size_t kicks, const uint8_t *grown);
/* After a pause: goes on until no more than `pause` kicks are left; with kicks_left and pause 0, to its end. */
void weft_bn_climber_resume(weft_bn_climber *climber, size_t kicks_left, size_t pause);
/* Continues to climb until `portion` sets have been scored or values requested, or until it is done. */
void weft_bn_climber_advance(weft_bn_climber *climber, weft_bn_scorer *scorer, double portion);
/* Makes a lane of another climber's best order, whose kicks are those from number `first` on. */
void weft_bn_climber_follow(weft_bn_climber *lane, const weft_bn_climber *from, size_t first, size_t kicks);
/* Takes over what a lane moved, if the best order's score does not get worse. */
void weft_bn_climber_take_over(weft_bn_climber *climber, const weft_bn_climber *lane, weft_bn_scorer *scorer);
