/* The entry point through which R's tests repeat on the host what triples/cuda/ternary_hopper.cu does with the counts
 * of a triple, in builds with WEFT_TESTS=yes: rows of each level of the first attribute are counted, made into words
 * and screened by the functions that the kernel calls. */
#include <math.h>
#include <string.h>
#include "mi/r/pack.h"
#include "mi/search/both/pair_tiles.h"
#include "mi/triples/both/ternary.h"
#include "mi/search/cpu/tuples.h"

SEXP C_weft_mi_triples_test(SEXP pack, SEXP many);

#define STEP_BITS 256

/* A word of an attribute's plane; of plane 2, the rows that are in neither. */
static uint64_t word_of(const weft_mi_pack *p, size_t place, uint32_t plane, uint32_t c, size_t w)
{
  const weft_mi_group *group = &p->groups[p->group_of[place]];
  const size_t before = (w - p->class_word[c]) * 64;
  if (plane < 2)
    return plane < group->shape.planes ? p->bits[weft_mi_plane_row(group, place, plane) * p->words + w] : 0;
  const uint64_t valid = before >= p->class_rows[c]        ? 0
                         : p->class_rows[c] - before >= 64 ? UINT64_MAX
                                                           : (UINT64_C(1) << (p->class_rows[c] - before)) - 1;
  return valid & ~word_of(p, place, 0, c, w) & ~word_of(p, place, 1, c, w);
}

/* The packed count of a level of `fixed` and, where their places are given, of planes of two others. */
static uint32_t count(const weft_mi_pack *p, size_t fixed, uint32_t level, size_t a, uint32_t x, size_t b, uint32_t y)
{
  uint32_t rows[2] = { 0, 0 };
  for (uint32_t c = 0; c < 2; c++)
    for (size_t w = p->class_word[c]; w < p->class_word[c + 1]; w++) {
      uint64_t bits = word_of(p, fixed, level, c, w);
      if (a != SIZE_MAX) bits &= word_of(p, a, x, c, w);
      if (b != SIZE_MAX) bits &= word_of(p, b, y, c, w);
      rows[c] += (uint32_t) __builtin_popcountll(bits);
    }
  return weft_planes_pack(rows[0], rows[1]);
}

static weft_words_side side(const weft_mi_pack *p, size_t fixed, uint32_t level, size_t place)
{
  weft_words_side out;
  for (uint32_t x = 0; x < 2; x++) out.plane[x] = count(p, fixed, level, place, x, SIZE_MAX, 0);
  return out;
}

/* The device's bound of a triple's information, in bits times rows, from counts of the pack's planes. */
static double screen(const weft_mi_pack *p, size_t fixed, size_t a, size_t b, double alone, int many)
{
  uint32_t level[3][2];
  float sum = 0;
  for (uint32_t q = 0; q < 3; q++) {
    const uint32_t word = count(p, fixed, q, SIZE_MAX, 0, SIZE_MAX, 0);
    level[q][0] = word >> 16;
    level[q][1] = (word & 0xffffu) - level[q][0];
  }
  const weft_triples_fixed of = weft_triples_fix((const uint32_t(*)[2]) level, alone, STEP_BITS);
  for (uint32_t q = 0; q < 3; q++) {
    uint32_t both[4];
    for (uint32_t x = 0; x < 2; x++)
      for (uint32_t y = 0; y < 2; y++) both[2 * x + y] = count(p, fixed, q, a, x, b, y);
    sum += of.weight[q] *
           weft_words_squares(both, side(p, fixed, q, a), side(p, fixed, q, b), of.rows[q], many, WEFT_WORDS_MAGIC);
  }
  return (double) (sum - of.base);
}

/* Pairs of a tile that some thread does not have once, in the rows and columns where a product of 64 rows by 128 leaves
 * their counts. */
static int lost_pairs(void)
{
  static uint8_t seen[2 * WEFT_PLANES_A][2 * WEFT_PLANES_B];
  int lost = 0;
  memset(seen, 0, sizeof seen);
  for (uint32_t thread = 0; thread < WEFT_TRIPLES_THREADS; thread++)
    for (uint32_t pair = 0; pair < WEFT_TRIPLES_PAIRS; pair++)
      for (uint32_t q = 0; q < 4; q++) {
        const uint32_t i = weft_planes_register(pair, q / 2, q % 2), group = thread / 128, lane = thread % 32;
        const size_t row = group / 2 * 64 + thread % 128 / 32 * 16 + lane / 4 + i / 2 % 2 * 8,
                     column = group % 2 * 128 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        lost += row != weft_planes_row(weft_triples_a(thread), q / 2) ||
                column != weft_planes_row(weft_triples_b(thread, pair), q % 2);
        seen[row][column]++;
      }
  for (size_t row = 0; row < 2 * WEFT_PLANES_A; row++)
    for (size_t column = 0; column < 2 * WEFT_PLANES_B; column++) lost += seen[row][column] != 1;
  return lost;
}

/* All triples of columns, each of the three held fixed: list(columns (three in a row), screen (bits, the first, the
 * second and the third held fixed), lost). */
SEXP C_weft_mi_triples_test(SEXP pointer, SEXP many)
{
  const char *fields[] = { "columns", "screen", "lost", "" };
  const weft_mi_pack *p = &weft_mi_handle_of(pointer)->pack;
  const int triples = (int) weft_mi_choose((double) p->columns, 3);
  int64_t *alone = (int64_t *) R_alloc(p->p + 1, sizeof *alone);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, fields));
  double *columns = REAL(weft_result_put(out, "columns", Rf_allocMatrix(REALSXP, 3, triples)));
  double *screens = REAL(weft_result_put(out, "screen", Rf_allocMatrix(REALSXP, 3, triples)));
  weft_mi_marginals(p, alone);
  for (uint32_t k = 0; k < (uint32_t) triples; k++) {
    uint32_t of[3];
    weft_mi_unrank(k, p->columns, 3, of);
    for (int i = 0; i < 3; i++) {
      const size_t fixed = p->place[of[i]];
      columns[3 * k + i] = of[i] + 1;
      screens[3 * k + i] = screen(p, fixed, p->place[of[(i + 1) % 3]], p->place[of[(i + 2) % 3]],
                                  (double) alone[fixed] * p->f.unit, Rf_asLogical(many)) /
                           (double) p->n;
    }
  }
  weft_result_put(out, "lost", Rf_ScalarInteger(lost_pairs()));
  weft_glue_handle_done();
  UNPROTECT(1);
  return out;
}
