/* The .Call entry points of the mutual-information room: name and number of arguments. */
/* clang-format off */
#define MI_ROUTINES(R) \
  R(C_weft_mi_kinds, 0) \
  R(C_weft_mi_plan, 4) \
  R(C_weft_mi_rank, 5) \
  R(C_weft_mi_numeric, 3) \
  R(C_weft_mi_tails, 3) \
  R(C_weft_mi_network, 3) \
  R(C_weft_mi_network_over, 4) \
  R(C_weft_mi_reaching, 4) \
  R(C_weft_mi_greatest, 5) \
  R(C_weft_mi_cut_edges, 5) \
  R(C_weft_mi_reaching_thresholds, 3) \
  R(C_weft_mi_cut_thresholds, 4) \
  R(C_weft_mi_edge_list, 3) \
  R(C_weft_mi_select, 6) \
  R(C_weft_mi_cuts, 5) \
  R(C_weft_mi_cut, 4) \
  R(C_weft_mi_genotypes, 4) \
  R(C_weft_mi_genotype_summary, 2) \
  R(C_weft_mi_fields, 2) \
  R(C_weft_mi_variant_counts, 3) \
  R(C_weft_mi_scan, 4) \
  R(C_weft_mi_refit, 4) \
  R(C_weft_mi_transfer, 3) \
  R(C_weft_mi_pack, 4) \
  R(C_weft_mi_pack_info, 1) \
  R(C_weft_mi_pack_digest, 1) \
  R(C_weft_mi_pack_free, 1) \
  R(C_weft_mi_pack_alive, 1) \
  R(C_weft_mi_matrix_counts, 5) \
  R(C_weft_mi_search, 4) \
  R(C_weft_mi_full, 2) \
  R(C_weft_mi_tuples, 4) \
  R(C_weft_mi_permute_pairs, 5) \
  R(C_weft_mi_permute_rank, 3) \
  R(C_weft_mi_pack_rank, 2) \
  R(C_weft_mi_null, 3)
/* clang-format on */
