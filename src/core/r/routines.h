/* The .Call entry points of the core: name and number of arguments. */
/* clang-format off */
#define CORE_ROUTINES(R) \
  R(C_weft_cuda_missing, 1) \
  R(C_weft_child_begin, 0) \
  R(C_weft_pipe, 0) \
  R(C_weft_pipe_close, 1) \
  R(C_weft_pipe_send, 2) \
  R(C_weft_pipe_receive, 1) \
  R(C_weft_mpi, 1) \
  R(C_weft_ranks_start, 1) \
  R(C_weft_ranks_stop, 1) \
  R(C_weft_ranks_end, 0) \
  R(C_weft_ranks_enter, 3) \
  R(C_weft_ranks_leave, 1) \
  R(C_weft_ranks_give_up, 2) \
  R(C_weft_ranks_forget, 0) \
  R(C_weft_ranks_heard, 0) \
  R(C_weft_ranks_stopped, 0) \
  R(C_weft_ranks_digest, 1) \
  R(C_weft_ranks_gather, 2) \
  R(C_weft_ranks_regroup, 2) \
  R(C_weft_ranks_reduce, 3) \
  R(C_weft_ranks_exchange, 2) \
  R(C_weft_ranks_post, 4) \
  R(C_weft_ranks_receive, 1) \
  R(C_weft_ranks_total, 2) \
  R(C_weft_devices, 1) \
  R(C_weft_devices_opened, 1) \
  R(C_weft_free_kept, 0) \
  R(C_weft_beside_open, 3) \
  R(C_weft_beside_opened, 1) \
  R(C_weft_beside_wait, 0) \
  R(C_weft_threads, 2) \
  R(C_weft_openmp, 0) \
  R(C_weft_woken, 0) \
  R(C_weft_rates, 1) \
  R(C_weft_product, 4) \
  R(C_weft_symmetric, 2) \
  R(C_weft_simd, 1) \
  R(C_weft_host_available, 0) \
  R(C_weft_memory, 1) \
  R(C_weft_finalisers, 0) \
  R(C_weft_upload, 3) \
  R(C_weft_download, 2) \
  R(C_weft_free, 1) \
  R(C_weft_resident, 1) \
  R(C_weft_panels_begin, 2) \
  R(C_weft_panels_add, 4) \
  R(C_weft_panels_about, 1) \
  R(C_weft_panels_counts, 2) \
  R(C_weft_panels_free, 1) \
  R(C_weft_sparse_problem, 2) \
  R(C_weft_plain_columns, 1) \
  R(C_weft_set_attributes, 2) \
  R(C_weft_column_facts, 3) \
  R(C_weft_column_medians, 2) \
  R(C_weft_row_squares, 4) \
  R(C_weft_all_finite, 2) \
  R(C_weft_file_read, 5) \
  R(C_weft_file_look, 1) \
  R(C_weft_file_may_write, 1) \
  R(C_weft_file_write, 2) \
  R(C_weft_file_pause, 0) \
  R(C_weft_map, 4) \
  R(C_weft_draws, 2)
/* clang-format on */

/* Entry points for tests and benchmarks, which are there when configured with WEFT_TESTS=yes. */
#ifdef WEFT_TESTS
/* clang-format off */
# define TEST_ROUTINES(R) \
   R(C_weft_bits_test, 2) R(C_weft_mi_blocks_test, 4) R(C_weft_store_packed_test, 1) \
   R(C_weft_panels_test, 3)
/* clang-format on */
#else
#  define TEST_ROUTINES(R)
#endif
