/* The .Call entry points of the room of principal components: name and number of arguments. */
/* clang-format off */
#define PCA_ROUTINES(R) \
  R(C_weft_pca_plan, 4) \
  R(C_weft_pca_moments, 3) \
  R(C_weft_pca_seen, 2) \
  R(C_weft_pca_null, 3) \
  R(C_weft_pca_counts_moments, 3) \
  R(C_weft_pca_counts_residuals, 3) \
  R(C_weft_pca_counts_draw, 2) \
  R(C_weft_pca, 4) \
  R(C_weft_pca_times, 5) \
  R(C_weft_pca_form, 2) \
  R(C_weft_pca_em, 5) \
  R(C_weft_pca_scores, 5) \
  R(C_weft_pca_cross, 2)
/* clang-format on */
