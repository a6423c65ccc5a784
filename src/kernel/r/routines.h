/* The .Call entry points of the kernel room: name and number of arguments. */
/* clang-format off */
#define KERNEL_ROUTINES(R) \
  R(C_weft_kernel_kinds, 0) \
  R(C_weft_kernel_plan, 4) \
  R(C_weft_kernel_work, 3) \
  R(C_weft_kernel_limits, 0) \
  R(C_weft_kernel_points, 5) \
  R(C_weft_kernel_range, 2) \
  R(C_weft_kernel_facts, 2) \
  R(C_weft_kernel_signs, 4) \
  R(C_weft_kernel_direct, 2) \
  R(C_weft_kernel_single, 4) \
  R(C_weft_kernel_wide, 3) \
  R(C_weft_kernel_slopes, 3) \
  R(C_weft_kernel_gaussian, 4) \
  R(C_weft_kernel_grid, 3) \
  R(C_weft_kernel_line, 4) \
  R(C_weft_kernel_bin, 3) \
  R(C_weft_kernel_matrix, 6) \
  R(C_weft_kernel_factor, 3) \
  R(C_weft_kernel_solve, 3) \
  R(C_weft_kernel_lag_sums, 4) \
  R(C_weft_kernel_deviations, 2) \
  R(C_weft_kernel_quantiles, 3) \
  R(C_weft_kernel_mesh_choose, 2) \
  R(C_weft_kernel_mesh, 4) \
  R(C_weft_kernel_mesh_pairs, 4) \
  R(C_weft_tree_grow, 3) \
  R(C_weft_tree_check, 3) \
  R(C_weft_kernel_walk, 5) \
  R(C_weft_kernel_moments, 3) \
  R(C_weft_ranks_split, 4) \
  R(C_weft_ranks_lower, 3) \
  R(C_weft_ranks_needed, 5) \
  R(C_weft_ranks_nearest, 4) \
  R(C_weft_kernel_pairs, 6)
/* clang-format on */
