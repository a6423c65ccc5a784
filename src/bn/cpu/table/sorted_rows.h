/* Rows sorted by the cells of a set of nodes, so that one more pair of nodes is counted in a single pass over them.
 *
 * Each cell with two rows or more begins a word of its own, so that a table of two more nodes within the cell is some
 * popcounts of ANDs over the cell's words alone: all cells together cost little more than one. Nodes are numbered anew,
 * those with few levels first, and eight with as many levels stand side by side in a *group*: a word of a column holds
 * 64 rows of each of them,
 *
 *     plane[(column * words + word) * 8 + lane]      column = the group's first + level
 *
 * The last level of a node has no column: its counts are what the others leave. Adding a node to the set splits each
 * cell by its levels: the bits of every column that lie in a level move together. */
#pragma once

#include "bn/both/count.h"

#define WEFT_BN_LANES 8

typedef struct weft_bn_group {
  size_t first, count, levels, column;
} weft_bn_group;

/* How nodes are numbered: `label` 0 .. p - 1, of which the first `plain` have groups; the others have more than
 * WEFT_BN_PLANE_LEVELS levels. */
typedef struct weft_bn_layout {
  size_t p, plain, groups, columns, max_levels;
  size_t *node, *group_of; /* by label */
  weft_bn_group *group;
} weft_bn_layout;

typedef struct weft_bn_sorted {
  double q;             /* possible cells */
  uint32_t cells, ones; /* cells of two rows or more, of one row */
  uint32_t rows, most;  /* rows in the former; the largest count, at least 1 */
  uint32_t max_cells;
  size_t words;
  uint32_t *count; /* by cell */
  size_t *begin;   /* first word, cells + 1 */
  uint64_t *plane;
  uint64_t *seen; /* rows of a cell that have a level: (cell * columns + column) * 8 + lane */
} weft_bn_sorted;

/* One thread's work space: of a node that is added, the rows of each level and how their bits move. */
typedef struct weft_bn_sorter {
  uint64_t *rows, *move;
} weft_bn_sorter;

weft_status weft_bn_layout_make(weft_arena *mem, const weft_bn_columns *columns, weft_bn_layout *out);
/* Room for the cells of a set of `members` nodes. */
weft_status weft_bn_sorted_make(weft_arena *mem, const weft_bn_columns *columns, const weft_bn_layout *layout,
                                size_t members, weft_bn_sorted *out);
weft_status weft_bn_sorter_make(weft_arena *mem, const weft_bn_columns *columns, weft_bn_sorter *out);

/* All rows, the cell of the empty set. */
void weft_bn_sort_none(const weft_bn_columns *columns, const weft_bn_layout *layout, weft_bn_sorted *out);
/* Adds a node, for those with smaller labels; 0 when the cells would take too many words. */
int weft_bn_sort_more(const weft_bn_layout *layout, weft_bn_sorter *sorter, const weft_bn_sorted *from, size_t label,
                      weft_bn_sorted *out);
/* Whether walking the rows would take longer than counting pairs of `label` with a group. */
int weft_bn_sort_pays(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t label, size_t group);

/* Sums of f over the cells of the set and one more node, or two, for each lane of the group. */
void weft_bn_sum_one(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t group, const int64_t *f,
                     int64_t *out);
void weft_bn_sum_two(const weft_bn_layout *layout, const weft_bn_sorted *sorted, size_t label, size_t group,
                     const int64_t *f, int64_t *out);
