/* The .Call entry points of the co-clustering room: name and number of arguments. */
/* clang-format off */
#define IRM_ROUTINES(R) \
  R(C_weft_irm_plan, 3) \
  R(C_weft_irm_edges, 2) \
  R(C_weft_irm_turned, 3) \
  R(C_weft_irm_joined, 2) \
  R(C_weft_irm_prepared, 2) \
  R(C_weft_irm_prepared_end, 1) \
  R(C_weft_irm_start, 4) \
  R(C_weft_irm_run, 5) \
  R(C_weft_irm_blocks, 3) \
  R(C_weft_irm_log_posterior, 4) \
  R(C_weft_irm_nested_length, 4) \
  R(C_weft_irm_nearest, 3) \
  R(C_weft_irm_numbers, 1) \
  R(C_weft_irm_saved_read, 1) \
  R(C_weft_irm_saved_sum, 1)
/* clang-format on */
