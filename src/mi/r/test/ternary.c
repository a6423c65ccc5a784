/* The entry point through which R's tests repeat on the host what pairs/cuda/ternary_hopper.cu does on a device, in
 * builds with WEFT_TESTS=yes: planes are arranged, tiles walked, every thread's accumulators counted as the tensor
 * cores lay them out, and each pair screened and scored from these counts by the functions that the kernel calls. */
#include <math.h>
#include <string.h>
#include "mi/r/pack.h"
#include "mi/pairs/both/ternary.h"
#include "mi/search/both/hopper_layout.h"
#include "mi/search/both/screen_words.h"

SEXP C_weft_mi_planes_test(SEXP pack, SEXP members, SEXP packed);

/* One side of a search: a group's planes as on a device, `steps` k-steps per row. */
typedef struct {
  const weft_mi_group *g;
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
static void piece_of(const search *s, size_t row, uint32_t piece, uint8_t *out)
{
  const weft_mi_pack *p = s->pack;
  uint32_t step = piece / 2, c = 0;
  while (step >= s->steps[c]) step -= s->steps[c++];
  const size_t from = (size_t) step * 32 + piece % 2 * 16, bytes = 8 * (p->class_word[c + 1] - p->class_word[c]);
  const uint8_t *plane = (const uint8_t *) (p->bits + row * p->words + p->class_word[c]);
  memset(out, 0, 16);
  if (from < bytes) memcpy(out, plane + from, bytes - from < 16 ? bytes - from : 16);
}

/* Arranges a group's planes as the device's kernels do, and checks that the map from rows to attributes and planes can
 * be inverted. */
static side arrange(const search *s, const weft_mi_group *g)
{
  side out = { g, NULL, 2 * ((g->count + WEFT_PLANES_B - 1) / WEFT_PLANES_B * WEFT_PLANES_B) };
  out.blocks = (uint8_t *) R_alloc(out.rows * s->all_steps + 1, 32);
  for (size_t row = 0; row < out.rows; row++)
    for (uint32_t piece = 0; piece < 2 * s->all_steps; piece++) {
      const size_t attribute = weft_planes_attribute(row);
      const uint32_t plane = weft_planes_plane(row);
      uint8_t *to = out.blocks + piece_offset(row, piece, s->all_steps);
      if (weft_planes_row(attribute, plane) != row) Rf_error("row %d has no way back", (int) row);
      if (attribute < g->count && plane < g->shape.planes)
        piece_of(s, weft_mi_plane_row(g, g->first + attribute, plane), piece, to);
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
static void count_thread(const search *s, const side *a, const side *b, uint32_t ta, uint32_t tb, uint32_t thread,
                         uint32_t first, uint32_t count, uint32_t c[128])
{
  const uint32_t group = thread / 128, warp = thread % 128 / 32, lane = thread % 32;
  static uint8_t stage[STAGE_BYTES];
  for (uint32_t k = first; k < first + count; k++) {
    memcpy(stage, a->blocks + ((size_t) ta * s->all_steps + k) * BLOCK_BYTES, BLOCK_BYTES);
    memcpy(stage + BLOCK_BYTES, b->blocks + ((size_t) tb * 2 * s->all_steps + k) * BLOCK_BYTES, BLOCK_BYTES);
    memcpy(stage + 2 * BLOCK_BYTES, b->blocks + (((size_t) tb * 2 + 1) * s->all_steps + k) * BLOCK_BYTES, BLOCK_BYTES);
    for (uint32_t i = 0; i < 128; i++)
      c[i] += product(stage + group * 64 * 32, warp * 16 + lane / 4 + i / 2 % 2 * 8, stage + BLOCK_BYTES,
                      i / 4 * 8 + lane % 4 * 2 + i % 2);
  }
}

/* Margins of an attribute's two planes in a class; zero past the end. */
static void margins_of(const search *s, const weft_mi_group *g, size_t attribute, uint32_t c, uint32_t out[2])
{
  for (uint32_t q = 0; q < 2; q++)
    out[q] = attribute < g->count && q < g->shape.planes
                 ? s->pack->margins[c * s->pack->plane_rows + weft_mi_plane_row(g, g->first + attribute, q)]
                 : 0;
}

static void keep(search *s, size_t place_a, size_t place_b, int64_t fixed, float screen)
{
  const weft_mi_pack *p = s->pack;
  const size_t x = p->column[place_a], y = p->column[place_b], at = x < y ? x * p->columns + y : y * p->columns + x;
  s->joint[at] = weft_mi_bits(fixed > 0 ? fixed : 0, p->f.unit, p->n);
  s->screen[at] = ((double) screen - s->units.base) / s->units.unit;
  s->seen[at]++;
}

/* The lower of two bounds of the pair that was kept last. */
static void keep_lower(search *s, size_t place_a, size_t place_b, float screen)
{
  const weft_mi_pack *p = s->pack;
  const size_t x = p->column[place_a], y = p->column[place_b], at = x < y ? x * p->columns + y : y * p->columns + x;
  const double bits = ((double) screen - s->words.base) / s->words.unit;
  if (bits < s->screen[at]) s->screen[at] = bits;
}

/* Scores a pair from words of two classes, as the device does, by the exact sum and by both screens. */
static void score_packed(search *s, const side *a, const side *b, size_t one, size_t other, const uint32_t both[4])
{
  uint32_t of_a[2] = { 0, 0 }, of_b[2] = { 0, 0 }, class[2], cell[WEFT_PLANES_CELLS];
  for (uint32_t c = 0; c < 2; c++) {
    margins_of(s, a->g, one, c, class);
    for (int q = 0; q < 2; q++) of_a[q] += weft_planes_pack(c ? 0 : class[q], c ? class[q] : 0);
    margins_of(s, b->g, other, c, class);
    for (int q = 0; q < 2; q++) of_b[q] += weft_planes_pack(c ? 0 : class[q], c ? class[q] : 0);
  }
  const uint32_t all = weft_planes_pack(s->pack->class_rows[0], s->pack->class_rows[1]);
  weft_planes_cells(both, of_a, of_b, all, cell);
  keep(s, a->g->first + one, b->g->first + other, weft_planes_joint(&s->pack->f, cell) - s->pack->class_fixed,
       weft_planes_squares(both, weft_planes_side_of(of_a), weft_planes_side_of(of_b), all));
  const weft_words_side words_a = { { of_a[0], of_a[1] } }, words_b = { { of_b[0], of_b[1] } };
  keep_lower(s, a->g->first + one, b->g->first + other,
             weft_words_squares(both, words_a, words_b, all, 0, WEFT_WORDS_MAGIC));
}

/* Scores a pair from the counts of each class, as the device does, exactly and by logarithms in single precision. */
static void score_wide(search *s, const side *a, const side *b, size_t one, size_t other,
                       const uint32_t both[WEFT_PLANES_CLASSES][4])
{
  uint32_t rows[WEFT_PLANES_CELLS] = { 0 };
  float sum[WEFT_PLANES_CELLS] = { 0 }, total = 0;
  int64_t fixed = -s->pack->class_fixed;
  for (uint32_t c = 0; c < s->pack->classes; c++) {
    uint32_t of_a[2], of_b[2], cell[WEFT_PLANES_CELLS];
    margins_of(s, a->g, one, c, of_a);
    margins_of(s, b->g, other, c, of_b);
    weft_planes_cells(both[c], of_a, of_b, s->pack->class_rows[c], cell);
    for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
      sum[i] += weft_planes_term(cell[i], s->weights.of_class[c]);
      rows[i] += cell[i];
      fixed += weft_mi_fixed(&s->pack->f, cell[i]);
    }
  }
  for (int i = 0; i < WEFT_PLANES_CELLS; i++) {
    total += sum[i] - weft_planes_term(rows[i], s->weights.of_rows);
    fixed -= weft_mi_fixed(&s->pack->f, rows[i]);
  }
  keep(s, a->g->first + one, b->g->first + other, fixed, total);
}

/* Does what one thread of the device does for one tile: counts its accumulators, and scores its pairs from them. */
static void search_thread(search *s, const side *a, const side *b, uint32_t ta, uint32_t tb, uint32_t thread)
{
  uint32_t c[WEFT_PLANES_CLASSES][128], first = 0;
  memset(c, 0, sizeof c);
  for (uint32_t k = 0; k < s->pack->classes; first += s->steps[k++]) {
    if (s->packed && k)
      for (int i = 0; i < 128; i++) c[0][i] *= 65537u;
    count_thread(s, a, b, ta, tb, thread, first, s->steps[k], c[s->packed ? 0 : k]);
  }
  for (uint32_t pair = 0; pair < WEFT_PLANES_PAIRS; pair++) {
    const size_t one = ta * WEFT_PLANES_A + weft_planes_a(thread),
                 other = tb * WEFT_PLANES_B + weft_planes_b(thread, pair);
    uint32_t both[WEFT_PLANES_CLASSES][4];
    if (one >= a->g->count || other >= b->g->count || (a->g == b->g && other <= one)) continue;
    for (uint32_t k = 0; k < WEFT_PLANES_CLASSES; k++)
      for (uint32_t q = 0; q < 4; q++) both[k][q] = c[k][weft_planes_register(pair, q / 2, q % 2)];
    if (s->packed)
      score_packed(s, a, b, one, other, both[0]);
    else
      score_wide(s, a, b, one, other, (const uint32_t(*)[4]) both);
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
  search s = { .pack = p, .packed = Rf_asLogical(packed) };
  size_t eligible = 0;
  SEXP out = PROTECT(WEFT_NAMED_LIST("joint", "screen", "seen"));
  if (p->classes > WEFT_PLANES_CLASSES || (s.packed && (p->classes != 2 || p->n > WEFT_PLANES_PACKED)))
    Rf_error("not a pack of this kernel");
  s.joint = zeros(out, "joint", p->columns);
  s.screen = zeros(out, "screen", p->columns);
  s.seen = zeros(out, "seen", p->columns);
  s.units = weft_planes_measure(s.packed, p->class_rows, p->classes,
                                s.packed ? weft_mi_steepest(p->class_rows[0] / (double) p->n) : 0, 1);
  if (s.packed) s.words = weft_words_measure(p->class_rows, weft_mi_steepest(p->class_rows[0] / (double) p->n));
  s.weights = weft_planes_weigh(p->class_rows, p->classes);
  for (uint32_t c = 0; c < p->classes; c++) s.all_steps += s.steps[c] = (p->class_rows[c] + 255) / 256;
  side *sides = (side *) R_alloc(p->group_count + 1, sizeof *sides);
  size_t count = 0;
  for (size_t g = 0; g < p->group_count; g++) {
    const weft_mi_group *group = &p->groups[g];
    if (group->coded || group->shape.missing || group->shape.planes > 2) continue;
    sides[count++] = arrange(&s, group);
    eligible += group->count;
  }
  if (eligible != (size_t) Rf_asInteger(members)) Rf_error("%d attributes", (int) eligible);
  for (size_t g = 0; g < count; g++)
    for (size_t h = g; h < count; h++) {
      const tile_grid grid = { (uint32_t) ((sides[g].g->count + WEFT_PLANES_A - 1) / WEFT_PLANES_A),
                               (uint32_t) ((sides[h].g->count + WEFT_PLANES_B - 1) / WEFT_PLANES_B), g == h, 0 };
      tile_walk walk = { 0, 0 };
      for (uint64_t k = 0; k < tiles_of(&grid); k++) {
        uint32_t ta, tb;
        if (!place_tile(&grid, &walk, k, &ta, &tb)) continue;
        for (uint32_t thread = 0; thread < WEFT_PLANES_THREADS; thread++)
          search_thread(&s, &sides[g], &sides[h], ta, tb, thread);
      }
    }
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
