/* The screen of pairs and triples on the CPU (screen.c), and the bound that the device's screens share. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a search's screens have in common. `classes` of a table's parts are added up to one level of its group: in
 * triples, of the fixed attribute's level; in pairs within strata, of the stratum. */
typedef struct weft_mi_screening {
  uint32_t classes;
  int stratified;
  float class_sum; /* Σ n_c log2 n_c - n log2 n, summed over strata */
  uint64_t n;
  uint64_t class0; /* rows of the first class, where there are two and both occur; else 0 */
  double steepest; /* then: weft_mi_steepest() of its share */
} weft_mi_screening;

/* What the screens of all tables of a pack share. */
weft_mi_screening weft_mi_screening_of(const weft_mi_pack *pack);

/* Approximate joint information of pair (i, j) for j < count; off by at most weft_mi_screen_error(), or, where it is
 * below `threshold`, at least the joint information less that. out has room for count rounded up to 16. */
void weft_mi_screen(const weft_mi_counts *counts, const weft_mi_screening *screening, size_t i, size_t count,
                    float threshold, float *out);
/* How far the screen may be off, in bits. */
double weft_mi_screen_error(const weft_mi_counts *counts, const weft_mi_screening *screening);

/* The greatest KL(q || p) / (q - p)² over q, in bits. */
double weft_mi_steepest(double p);

#ifdef __cplusplus
}
#endif
