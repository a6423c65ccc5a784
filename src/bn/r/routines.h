/* The .Call entry points of the Bayesian-network room: name and number of arguments. */
/* clang-format off */
#define BN_ROUTINES(R) \
  R(C_weft_bn_score_kinds, 0) \
  R(C_weft_bn_plan, 4) \
  R(C_weft_bn_scores, 2) \
  R(C_weft_bn_near_table, 3) \
  R(C_weft_bn_screen, 2) \
  R(C_weft_bn_search, 3) \
  R(C_weft_bn_wrong, 2) \
  R(C_weft_bn_chain, 3) \
  R(C_weft_bn_settle, 3) \
  R(C_weft_bn_optimum, 2) \
  R(C_weft_bn_edges_graphs, 3) \
  R(C_weft_bn_edges_orders, 4) \
  R(C_weft_bn_draw_graphs, 4) \
  R(C_weft_bn_edge_means, 3)
/* clang-format on */
