/* The .Call entry points of the room of groups: name and number of arguments. */
/* clang-format off */
#define CLUSTERS_ROUTINES(R) \
  R(C_weft_clusters_tree, 3) \
  R(C_weft_clusters_settle, 3) \
  R(C_weft_clusters_grow, 3) \
  R(C_weft_clusters_subsamples, 4) \
  R(C_weft_clusters_vote, 4)
/* clang-format on */
