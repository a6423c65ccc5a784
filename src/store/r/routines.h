/* The .Call entry points of the store: name and number of arguments. */
/* clang-format off */
#define STORE_ROUTINES(R) \
  R(C_weft_store_open, 2) \
  R(C_weft_store_about, 1) \
  R(C_weft_store_vector, 3) \
  R(C_weft_store_select, 7) \
  R(C_weft_store_packed, 7) \
  R(C_weft_store_groups, 3) \
  R(C_weft_store_moments, 5) \
  R(C_weft_store_sums, 5) \
  R(C_weft_store_begin, 6) \
  R(C_weft_store_rows, 6) \
  R(C_weft_store_columns, 7) \
  R(C_weft_store_put_vector, 4) \
  R(C_weft_store_finish, 2) \
  R(C_weft_store_abandon, 1) \
  R(C_weft_store_at_once, 1) \
  R(C_weft_store_shared, 3) \
  R(C_weft_store_h5, 4) \
  R(C_weft_store_h5_read, 5) \
  R(C_weft_store_blocks, 4) \
  R(C_weft_store_sorter, 3) \
  R(C_weft_store_sort, 6) \
  R(C_weft_store_drain, 3) \
  R(C_weft_store_market, 0) \
  R(C_weft_store_market_read, 7) \
  R(C_weft_store_bytes, 2) \
  R(C_weft_store_numbers, 3) \
  R(C_weft_store_texts, 1) \
  R(C_weft_store_unpack, 3)
/* clang-format on */
