/* The .Call entry points of the regulation room: name and number of arguments. */
/* clang-format off */
#define REGULATION_ROUTINES(R) \
  R(C_weft_regulation_plan, 3) \
  R(C_weft_regulation_places, 3) \
  R(C_weft_regulation_scores, 3) \
  R(C_weft_regulation_cell_scores, 3) \
  R(C_weft_regulation_halves, 3) \
  R(C_weft_regulation_orders, 3) \
  R(C_weft_regulation_select, 5) \
  R(C_weft_regulation_hubs, 3) \
  R(C_weft_regulation_counts, 3) \
  R(C_weft_regulation_edges, 3) \
  R(C_weft_regulation_excess, 3) \
  R(C_weft_regulation_reversed, 3)
/* clang-format on */
