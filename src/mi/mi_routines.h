/* The .Call entry points of the mutual-information room: name and number of arguments. */
#define MI_ROUTINES(R) \
  R(C_weft_mi_rank, 5) \
  R(C_weft_mi_numeric, 5) \
  R(C_weft_mi_network, 5) \
  R(C_weft_mi_select, 7) \
  R(C_weft_mi_cuts, 6) \
  R(C_weft_mi_cut, 4) \
  R(C_weft_mi_genotypes, 4)
