/* Matrices of the information between categorical attributes, on both back ends. */
#pragma once

#include "mi/search/search.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Information between attributes of x and of y, packed over the same rows with the same classes, or none; y NULL: of x,
 * the diagonal with entropies. The classes play no part. out: x->columns × y->columns, column major. */
weft_status weft_mi_matrix_cpu(weft_ctx *ctx, const weft_mi_pack *x, weft_mi_resident **device, const weft_mi_pack *y,
                               int estimator, double *out);
weft_status weft_mi_matrix_cuda(weft_ctx *ctx, const weft_mi_pack *x, weft_mi_resident **device, const weft_mi_pack *y,
                                int estimator, double *out);

/* Only the pairs with codes whose tables have more than `words` entries (weft_mi_large()), which a device leaves out.
 * */
weft_status weft_mi_matrix_large(weft_ctx *ctx, const weft_mi_pack *x, const weft_mi_pack *y, int estimator,
                                 uint64_t words, double *out);

/* Σ f over the levels of every attribute with planes and without missing values, by place: the same in all its
 * pairs. */
void weft_mi_sums_of_levels(const weft_mi_pack *pack, int64_t *out);
/* The diagonal of a matrix: entropies in bits. */
weft_status weft_mi_own_entropies(weft_ctx *ctx, const weft_mi_pack *x, int estimator, double *out);

#ifdef __cplusplus
}
#endif
