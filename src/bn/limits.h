/* The numbers by which plan.c chooses engines; kernels rely on some of them. */
#pragma once

/* Limits of the table on a device (cuda/table/kernels.cuh). */
#define WEFT_BN_TABLE_MEMBERS 32     /* most members of a set, its child and two that tiles share */
#define WEFT_BN_TABLE_CELLS 32768u   /* of a prefix, with the child */
#define WEFT_BN_TABLE_LISTED 8192u   /* those that hold a row */
#define WEFT_BN_TABLE_Q (1u << 18)   /* of a set */
#define WEFT_BN_DEVICE_LADDER 16     /* most temperatures of a device's chain */
#define WEFT_BN_ALL_SETS_SECONDS .03 /* above it, a table of what settled orders ask for takes less */
#define WEFT_BN_SUBSET_NODES 37      /* most nodes of answers from all subsets, 8 bytes each: 1.1 TB */
