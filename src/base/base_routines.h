/* The .Call entry points of the base layer: name and number of arguments. */
#define BASE_ROUTINES(R) \
  R(C_weft_cuda_missing, 1) \
  R(C_weft_mpi, 1) \
  R(C_weft_ranks_start, 1) \
  R(C_weft_ranks_stop, 0) \
  R(C_weft_ranks_end, 0) \
  R(C_weft_ranks_gather, 2) \
  R(C_weft_ranks_regroup, 2) \
  R(C_weft_ranks_reduce, 3) \
  R(C_weft_ranks_exchange, 2) \
  R(C_weft_ranks_post, 4) \
  R(C_weft_ranks_receive, 1) \
  R(C_weft_ranks_total, 2) \
  R(C_weft_devices, 1) \
  R(C_weft_threads, 2) \
  R(C_weft_openmp, 0) \
  R(C_weft_simd, 1) \
  R(C_weft_host_available, 0) \
  R(C_weft_memory, 1) \
  R(C_weft_finalisers, 0) \
  R(C_weft_upload, 3) \
  R(C_weft_download, 2) \
  R(C_weft_free, 1) \
  R(C_weft_resident, 1) \
  R(C_weft_file_read, 5) \
  R(C_weft_draws, 8) \
  R(C_weft_bits_test, 2)
