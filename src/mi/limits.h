/* The numbers by which plan.c chooses engines; kernels rely on some of them. */
#pragma once

#define WEFT_MI_PACKED_ROWS 65535u     /* most rows whose counts share a word with others */
#define WEFT_MI_UNPACKED_ABOVE 100000u /* rows above which counting takes longer than the ternary screen */
#define WEFT_MI_TERNARY_CLASSES 8u
#define WEFT_MI_FUSED_ROWS (1u << 22)  /* at most: counts are floats, made in the fraction of 2^23 */
#define WEFT_MI_FUSED_ROWS_MANY 20000u /* the same for more than WEFT_MI_FUSED_FEW products of planes: above it, */
#define WEFT_MI_FUSED_FEW 4u           /* counts through memory take less */
#define WEFT_MI_FUSED_PLANES 4u
#define WEFT_MI_COUNTED_PRODUCTS 2048u /* of planes and words of classes */
#define WEFT_MI_TRANSFER_HOPPER 4u     /* levels of columns whose transfer entropy tensor cores count */
#define WEFT_MI_TRIPLE_LEVELS 5u       /* of attributes in triples on a device */
#define WEFT_MI_TRIPLE_CLASSES 8u
#define WEFT_MI_TRIPLES_KEPT (1u << 19)   /* most triples that a search on a device keeps */
#define WEFT_MI_TRIPLES_PLACES (1u << 21) /* most attributes: three of them are one number of 64 bits */
/* Up to this number of binary attributes, triples go by sorted rows: the kernel of binary triples launches once per
 * attribute. 3,000 attributes of 1,000 rows take 0.07 s in place of 0.22. */
#define WEFT_MI_SORTED_BINARY 7500u
#define WEFT_MI_SCAN_ROWS 8500000u   /* most rows of a scan on a device: sums of 252 a row stay below 2^31 */
#define WEFT_MI_SCAN_TOP (1u << 20)  /* most pairs that it keeps */
#define WEFT_MI_SCAN_ROWS_BEYOND 24u /* fewest rows beyond the columns of the covariates */
#define WEFT_MI_SCAN_GAPS_COLUMNS 24 /* most columns of the covariates where genotypes are missing */
