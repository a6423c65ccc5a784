/* Genotypes that stay in their file, two bits each, on the CPU. */
#pragma once

#include "core/call/arena.h"
#include "core/numbers/product.h"
#include "pca/pca.h"

/* The matrix X less the weights of rows, as weft_product() reads it; what it points to is the arena's. */
weft_status weft_pca_open_genotypes(weft_ctx *ctx, weft_arena *mem, const weft_pca_data *data,
                                    const weft_pca_form *form, weft_coded *out);

/* The operation `moments` of pca.h for them. */
weft_status weft_pca_genotype_moments(weft_ctx *ctx, const weft_pca_data *data, const double *weights,
                                      const weft_pca_moments *out);
