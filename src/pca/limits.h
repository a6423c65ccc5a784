/* The numbers by which plan.c and the engines choose. */
#pragma once

/* Filtering the Gram matrix finds up to this number of components, more on a device, where all eigenvectors take many
 * times as long as products (a few of WEFT_PCA_PANEL and WEFT_PCA_WIDEST are for the guard). Up to the orders below,
 * all eigenvectors take no longer, whatever the spectrum. */
#define WEFT_PCA_FILTER_K 52
#define WEFT_PCA_FILTER_K_DEVICE 104
#define WEFT_PCA_FILTER_ABOVE_CPU 1024
#define WEFT_PCA_FILTER_ABOVE_DEVICE 512
#define WEFT_PCA_SPREAD_OUT 1e7 /* numbers of a sparse matrix in memory that becomes a dense one on a device */
/* Whether k eigenvectors of a device's Gram matrix are the host's: they take as long as on the device, or the library
 * for it need not be opened for some milliseconds. */
#define WEFT_PCA_HOST_EIGEN(order, k) \
  ((double) (order) <= 256 || (double) (order) * ((double) (order) + 17 * (double) (k)) <= 1.1e5)
/* EM keeps a Gram matrix of this number of columns, where at most this share of the cells is missing. */
#define WEFT_PCA_EM_SQUARES 64
#define WEFT_PCA_EM_MAX_SQUARES 4096
#define WEFT_PCA_EM_SHARE 0.1
#define WEFT_PCA_GRAM_SIDE 10000     /* longest shorter side of a Gram matrix; */
#define WEFT_PCA_GRAM_FILTERED 40000 /* the same of a store that a device filters */
#define WEFT_PCA_ROUGH_ORDER 8000    /* from which a device's Gram matrix is made roughly, and corrected; */
#define WEFT_PCA_ROUGH_TOL 1e-7      /* from this tolerance on, smaller ones too */
