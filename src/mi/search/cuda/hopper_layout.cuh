/* How tiles of 128 rows of bits by 256 follow each other, and how rows lie in memory for Hopper's tensor cores
 * (tiles_hopper.cuh).
 *
 * Rows lie in global memory in the order of shared memory (core/device/hopper.cuh): blocks of 128 rows by k-step of 256
 * bits, in a block rows in eights, a row's 32 bytes in two halves. */
#pragma once

#include "core/numbers/math.h"

#define ROWS_A 128
#define ROWS_B 256
#define AREA (ROWS_A * ROWS_B) /* pairs per tile */
#define BLOCK_BYTES (128 * 32)
#define STAGE_BYTES (3 * BLOCK_BYTES)
#define GROUP 16 /* tiles of side a that share side b in the cache; a square has GROUP / 2 of side b */

/* All tiles of a search, or those on and above the diagonal. */
typedef struct tile_grid {
  uint32_t tiles_a, tiles_b;
  int same;
  uint32_t low; /* first row that counts */
} tile_grid;

/* Tiles go in groups of rows, in a group column after column, from the diagonal on: the first column of a group. */
static WEFT_HD inline uint32_t first_column(const tile_grid *grid, uint32_t group)
{
  const uint32_t diagonal = grid->same ? group * (GROUP / 2) : 0, behind = grid->low / ROWS_B;
  return diagonal > behind ? diagonal : behind;
}

static inline uint64_t tiles_of(const tile_grid *grid)
{
  uint64_t tiles = 0;
  for (uint32_t group = grid->low / ROWS_A / GROUP; group * GROUP < grid->tiles_a; group++) {
    const uint32_t from = first_column(grid, group);
    if (from < grid->tiles_b) tiles += (uint64_t) (grid->tiles_b - from) * GROUP;
  }
  return tiles;
}

/* Where a walk through the tiles has come. */
typedef struct tile_walk {
  uint64_t base;
  uint32_t group;
} tile_walk;

/* Tile `index`, not below the last one's, as (row of tiles, column of tiles); 0 when there is nothing in it. */
static WEFT_HD inline int place_tile(const tile_grid *grid, tile_walk *w, uint64_t index, uint32_t *ta, uint32_t *tb)
{
  uint32_t from = first_column(grid, w->group);
  for (;;) {
    const uint64_t size = from < grid->tiles_b ? (uint64_t) (grid->tiles_b - from) * GROUP : 0;
    if (index < w->base + size) break;
    w->base += size;
    from = first_column(grid, ++w->group);
  }
  const uint32_t within = (uint32_t) (index - w->base);
  *ta = w->group * GROUP + within % GROUP;
  *tb = from + within / GROUP;
  if (*ta >= grid->tiles_a || (*ta + 1) * ROWS_A <= grid->low) return 0;
  return !grid->same || (*tb + 1) * ROWS_B > *ta * ROWS_A + 1;
}

/* Where 16 bytes of a row lie: `steps` k-steps per row, piece 2 s + h is half h of step s. */
static WEFT_HD inline size_t piece_offset(size_t row, uint32_t piece, uint32_t steps)
{
  return (row / 128 * steps + piece / 2) * BLOCK_BYTES + row % 128 / 8 * 256 + piece % 2 * 128 + row % 8 * 16;
}
