/* The entry point through which R's tests repeat on the host what pairs/cuda/ternary_hopper.cu does on a device, in
 * builds with WEFT_TESTS=yes: planes are arranged, tiles walked, every thread's accumulators counted as the tensor
 * cores lay them out, and each pair screened and scored from these counts by the functions that the kernel calls. */
#include <math.h>
#include <string.h>
#include "mi/r/pack.h"
#include "mi/pairs/both/ternary.h"
#include "mi/search/both/hopper_layout.h"
#include "mi/search/both/screen_words.h"
#include "mi/search/both/screen.h"

SEXP C_weft_mi_planes_test(SEXP pack, SEXP members, SEXP packed);

/* One side of a search: a group's planes as on a device, `steps` k-steps per row. */
typedef struct {
  const weft_mi_group *group;
  uint8_t *blocks;
  size_t rows;
} side;

typedef struct {
  const weft_mi_pack *pack;
  int packed;
  uint32_t steps[WEFT_PLANES_CLASSES], all_steps;
  weft_planes_units units, words; /* words: of the screen by words, too, where counts are packed */
  weft_planes_weights weights;
  double *joint, *screen, *seen; /* by pair of columns */
} search;

/* Bytes 16 p .. of a row whose classes are padded to whole steps. */
static void piece_of(const search *job, size_t row, uint32_t piece, uint8_t *out)
{
  const weft_mi_pack *p = job->pack;
  uint32_t step = piece / 2, c = 0;
  while (step >= job->steps[c]) step -= job->steps[c++];
  const size_t from = (size_t) step * 32 + piece % 2 * 16, bytes = 8 * (p->class_word[c + 1] - p->class_word[c]);
  const uint8_t *plane = (const uint8_t *) (p->bits + row * p->words + p->class_word[c]);
  memset(out, 0, 16);
  if (from < bytes) memcpy(out, plane + from, bytes - from < 16 ? bytes - from : 16);
}

/* Arranges a group's planes as the device's kernels do, and checks that the map from rows to attributes and planes can
 * be inverted. */
static side arrange(const search *job, const weft_mi_group *group)
{
  side out = { group, NULL, 2 * ((group->count + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B) };
  out.blocks = (uint8_t *) R_alloc(out.rows * job->all_steps + 1, 32);
  for (size_t row = 0; row < out.rows; row++)
    for (uint32_t piece = 0; piece < 2 * job->all_steps; piece++) {
      const size_t attribute = weft_planes_attribute(row);
      const uint32_t plane = weft_planes_plane(row);
      uint8_t *to = out.blocks + piece_offset(row, piece, job->all_steps);
      if (weft_planes_row(attribute, plane) != row) Rf_error("row %d has no way back", (int) row);
      if (attribute < group->count && plane < group->shape.planes)
        piece_of(job, weft_mi_plane_row(group, group->first + attribute, plane), piece, to);
      else
        memset(to, 0, 16);
    }
  return out;
}

/* Common bits of two rows of operands in shared memory. */
static uint32_t product(const uint8_t *a, uint32_t row_a, const uint8_t *b, uint32_t row_b)
{
  uint32_t sum = 0;
  for (uint32_t half = 0; half < 2; half++) {
    uint64_t x[2], y[2];
    memcpy(x, a + row_a / 8 * 256 + half * 128 + row_a % 8 * 16, 16);
    memcpy(y, b + row_b / 8 * 256 + half * 128 + row_b % 8 * 16, 16);
    sum += (uint32_t) (__builtin_popcountll(x[0] & y[0]) + __builtin_popcountll(x[1] & y[1]));
  }
  return sum;
}

/* Accumulators of one thread over k-steps first .. first+count-1 of tile (ta, tb). */
static void count_thread(const search *job, const side *a, const side *b, uint32_t ta, uint32_t tb, uint32_t thread,
                         uint32_t first, uint32_t count, uint32_t c[128])
{
  const uint32_t group = thread / 128, warp = thread % 128 / 32, lane = thread % 32;
  static uint8_t stage[STAGE_BYTES];
  for (uint32_t k = first; k < first + count; k++) {
    memcpy(stage, a->blocks + ((size_t) ta * job->all_steps + k) * BLOCK_BYTES, BLOCK_BYTES);
    memcpy(stage + BLOCK_BYTES, b->blocks + ((size_t) tb * 2 * job->all_steps + k) * BLOCK_BYTES, BLOCK_BYTES);
    memcpy(stage + 2 * BLOCK_BYTES, b->blocks + (((size_t) tb * 2 + 1) * job->all_steps + k) * BLOCK_BYTES,
           BLOCK_BYTES);
    for (uint32_t i = 0; i < 128; i++)
      c[i] += product(stage + group * 64 * 32, warp * 16 + lane / 4 + i / 2 % 2 * 8, stage + BLOCK_BYTES,
                      i / 4 * 8 + lane % 4 * 2 + i % 2);
  }
}

/* Margins of an attribute's two planes in a class; zero past the end. */
static void margins_of(const search *job, const weft_mi_group *group, size_t attribute, uint32_t c, uint32_t out[2])
{
  for (uint32_t q = 0; q < 2; q++)
    out[q] = attribute < group->count && q < group->shape.planes
                 ? job->pack->margins[c * job->pack->plane_rows + weft_mi_plane_row(group, group->first + attribute, q)]
                 : 0;
}

static void keep(search *job, size_t place_a, size_t place_b, int64_t fixed, float screen)
{
  const weft_mi_pack *p = job->pack;
  const size_t x = p->column[place_a], y = p->column[place_b], at = x < y ? x * p->columns + y : y * p->columns + x;
  job->joint[at] = weft_mi_bits(fixed > 0 ? fixed : 0, p->f.unit, p->n);
  job->screen[at] = ((double) screen - job->units.base) / job->units.unit;
  job->seen[at]++;
}

/* The lower of two bounds of the pair that was kept last. */
static void keep_lower(search *job, size_t place_a, size_t place_b, float screen)
{
  const weft_mi_pack *p = job->pack;
  const size_t x = p->column[place_a], y = p->column[place_b], at = x < y ? x * p->columns + y : y * p->columns + x;
  const double bits = ((double) screen - job->words.base) / job->words.unit;
  if (bits < job->screen[at]) job->screen[at] = bits;
}

/* Scores a pair from words of two classes, as the device does, by the exact sum and by both screens. */
static void score_packed(search *job, const side *a, const side *b, size_t one, size_t other, const uint32_t both[4])
{
  uint32_t of_a[2] = { 0, 0 }, of_b[2] = { 0, 0 }, class[2], cell[WEFT_PLANES_CELLS];
  for (uint32_t c = 0; c < 2; c++) {
    margins_of(job, a->group, one, c, class);
    for (int q = 0; q < 2; q++) of_a[q] += weft_planes_pack(c ? 0 : class[q], c ? class[q] : 0);
    margins_of(job, b->group, other, c, class);
    for (int q = 0; q < 2; q++) of_b[q] += weft_planes_pack(c ? 0 : class[q], c ? class[q] : 0);
  }
  const uint32_t all = weft_planes_pack(job->pack->class_rows[0], job->pack->class_rows[1]);
  weft_planes_cells(both, of_a, of_b, all, cell);
  keep(job, a->group->first + one, b->group->first + other,
       weft_planes_joint(&job->pack->f, cell) - job->pack->class_fixed,
       weft_planes_squares(both, weft_planes_side_of(of_a), weft_planes_side_of(of_b), all));
  const weft_words_side words_a = { { of_a[0], of_a[1] } }, words_b = { { of_b[0], of_b[1] } };
  keep_lower(job, a->group->first + one, b->group->first + other,
             weft_words_squares(both, words_a, words_b, all, 0, WEFT_WORDS_MAGIC));
}

/* Scores a pair from the counts of each class, as the device does, exactly and by logarithms in single precision. */
static void score_wide(search *job, const side *a, const side *b, size_t one, size_t other,
                       const uint32_t both[WEFT_PLANES_CLASSES][4])
{
  uint32_t rows[WEFT_PLANES_CELLS] = { 0 };
  float sum[WEFT_PLANES_CELLS] = { 0 }, total = 0;
  int64_t fixed = -job->pack->class_fixed;
  for (uint32_t c = 0; c < job->pack->classes; c++) {
    uint32_t of_a[2], of_b[2], cell[WEFT_PLANES_CELLS];
    margins_of(job, a->group, one, c, of_a);
    margins_of(job, b->group, other, c, of_b);
    weft_planes_cells(both[c], of_a, of_b, job->pack->class_rows[c], cell);
    for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
      sum[i] += weft_planes_term(cell[i], job->weights.of_class[c]);
      rows[i] += cell[i];
      fixed += weft_mi_fixed(&job->pack->f, cell[i]);
    }
  }
  for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
    total += sum[i] - weft_planes_term(rows[i], job->weights.of_rows);
    fixed -= weft_mi_fixed(&job->pack->f, rows[i]);
  }
  keep(job, a->group->first + one, b->group->first + other, fixed, total);
}

/* Does what one thread of the device does for one tile: counts its accumulators, and scores its pairs from them. */
static void search_thread(search *job, const side *a, const side *b, uint32_t ta, uint32_t tb, uint32_t thread)
{
  uint32_t c[WEFT_PLANES_CLASSES][128], first = 0;
  memset(c, 0, sizeof c);
  for (uint32_t k = 0; k < job->pack->classes; first += job->steps[k++]) {
    if (job->packed && k)
      for (int i = 0; i < 128; i++) c[0][i] *= 65537u;
    count_thread(job, a, b, ta, tb, thread, first, job->steps[k], c[job->packed ? 0 : k]);
  }
  for (uint32_t pair = 0; pair < WEFT_PLANES_PAIRS; pair++) {
    const size_t one = ta * WEFT_PLANES_A + weft_planes_a(thread),
                 other = tb * WEFT_PLANES_B + weft_planes_b(thread, pair);
    uint32_t both[WEFT_PLANES_CLASSES][4];
    if (one >= a->group->count || other >= b->group->count || (a->group == b->group && other <= one)) continue;
    for (uint32_t k = 0; k < WEFT_PLANES_CLASSES; k++)
      for (uint32_t q = 0; q < 4; q++) both[k][q] = c[k][weft_planes_register(pair, q / 2, q % 2)];
    if (job->packed)
      score_packed(job, a, b, one, other, both[0]);
    else
      score_wide(job, a, b, one, other, (const uint32_t(*)[4]) both);
  }
}

static double *zeros(SEXP list, const char *name, size_t columns)
{
  double *out = REAL(weft_result_put(list, name, Rf_allocMatrix(REALSXP, (int) columns, (int) columns)));
  memset(out, 0, columns * columns * sizeof *out);
  return out;
}

/* All pairs of attributes that have planes enough: list(joint, screen, seen), matrices whose lower triangles (row: the
 * later column) say the exact joint information in bits, the most that the screen allows, and how often the pair came.
 * members: how many attributes this must be. packed: two classes in one word. */
SEXP C_weft_mi_planes_test(SEXP pointer, SEXP members, SEXP packed)
{
  const weft_mi_pack *p = &weft_mi_handle_of(pointer)->pack;
  search job = { .pack = p, .packed = Rf_asLogical(packed) };
  size_t eligible = 0;
  SEXP out = PROTECT(WEFT_NAMED_LIST("joint", "screen", "seen"));
  if (p->classes > WEFT_PLANES_CLASSES || (job.packed && (p->classes != 2 || p->n > WEFT_PLANES_PACKED)))
    Rf_error("not a pack of this kernel");
  job.joint = zeros(out, "joint", p->columns);
  job.screen = zeros(out, "screen", p->columns);
  job.seen = zeros(out, "seen", p->columns);
  job.units = weft_planes_measure(job.packed, p->class_rows, p->classes,
                                  job.packed ? weft_mi_steepest(p->class_rows[0] / (double) p->n) : 0, 1);
  if (job.packed) job.words = weft_words_measure(p->class_rows, weft_mi_steepest(p->class_rows[0] / (double) p->n));
  job.weights = weft_planes_weigh(p->class_rows, p->classes);
  for (uint32_t c = 0; c < p->classes; c++) job.all_steps += job.steps[c] = (p->class_rows[c] + 255) / 256;
  side *sides = (side *) R_alloc(p->group_count + 1, sizeof *sides);
  size_t count = 0;
  for (size_t first = 0; first < p->group_count; first++) {
    const weft_mi_group *group = &p->groups[first];
    if (group->coded || group->shape.missing || group->shape.planes > 2) continue;
    sides[count++] = arrange(&job, group);
    eligible += group->count;
  }
  if (eligible != (size_t) Rf_asInteger(members)) Rf_error("%d attributes", (int) eligible);
  for (size_t first = 0; first < count; first++)
    for (size_t second = first; second < count; second++) {
      const tile_grid grid = { (uint32_t) ((sides[first].group->count + WEFT_PLANES_A - 1) / WEFT_PLANES_A),
                               (uint32_t) ((sides[second].group->count + WEFT_PLANES_B - 1) / WEFT_PLANES_B),
                               first == second, 0 };
      tile_walk walk = { 0, 0 };
      for (uint64_t k = 0; k < tiles_of(&grid); k++) {
        uint32_t ta, tb;
        if (!place_tile(&grid, &walk, k, &ta, &tb)) continue;
        for (uint32_t thread = 0; thread < WEFT_PLANES_THREADS; thread++)
          search_thread(&job, &sides[first], &sides[second], ta, tb, thread);
      }
    }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
