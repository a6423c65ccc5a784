/* Genotypes on a device, two bits each. */
#pragma once

#include "pca/cuda/pca.cuh"

/* Sends as many columns as have room beside the vectors of an iteration; the others are sent for each product. */
weft_status weft_pca_place_genotypes(weft_pca_space *space);
/* The operation `product` of pca.h. */
weft_status weft_pca_genotype_product(weft_pca_space *space, int transposed, const double *v, size_t b, double *out);
