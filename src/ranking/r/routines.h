/* The .Call entry points of the ranking room: name and number of arguments. */
/* clang-format off */
#define RANKING_ROUTINES(R) \
  R(C_weft_ranking_fit, 3) \
  R(C_weft_ranking_shape, 2) \
  R(C_weft_ranking_factors, 2)
/* clang-format on */
