/* The numbers by which kernel sums are planned, which R (R/kernel-plan.R) reads by name. Work is in units of one
 * dimension of one pair. */
#pragma once

/* clang-format off */
#define WEFT_KERNEL_LIMITS(LIMIT) \
  LIMIT(min_work, 3e7)                /* of all pairs: less is summed directly, */ \
  LIMIT(min_seconds, 1.5e-3)          /* as is what takes less than this, more in many dimensions, */ \
  LIMIT(min_over_trees, 1.5)          /* or less than this many times the building of trees */ \
  LIMIT(look_dims, 4)                 /* dimensions from which a sample shows whether trees would spare anything: */ \
  LIMIT(look_compact, 0.2)            /* not where leaves are below this many bandwidths of compact kernels, */ \
  LIMIT(look_narrow, 1.3)             /* of others, */ \
  LIMIT(look_wide, 6)                 /* or above this many; else */ \
  LIMIT(look_near, 0.7)               /* the share of pairs whose leaves are within reach */ \
  LIMIT(walk_of_a_query, 4e-6)        /* seconds of a walk at least */ \
  LIMIT(trees_over_direct, 1.15)      /* groups differ more than pairs do: near a tie the direct sum is safer */ \
  LIMIT(mesh_over_others, 0.5)        /* a mesh is taken where it takes less than this share of the others' time */ \
  LIMIT(mesh_nodes, 1e8)              /* most, where it was not asked for; */ \
  LIMIT(mesh_nodes_asked, 2e8)        /* where it was */ \
  LIMIT(grid_references, 2e4)         /* of a device's grid, at least, */ \
  LIMIT(grid_near, 0.2)               /* and the share of pairs near each other at most */ \
  LIMIT(grid_over_pairs, 4)           /* time of a pair in a grid over its time in a direct sum */ \
  LIMIT(single_share, 0.6)            /* direct sums in single precision with a tree of the queries, over double */ \
  LIMIT(single_error, 1e-4)           /* relative error from which single precision is tried, */ \
  LIMIT(single_pairs, 1e8)            /* and pairs */ \
  LIMIT(single_missed_unsorted, 0.02) /* the share of tried queries that may need double precision without a tree, */ \
  LIMIT(single_missed, 0.2)           /* and with one */ \
  LIMIT(wide_error, 1e-3)             /* of cross-validation for many bandwidths at once, as walks are weighed, */ \
  LIMIT(wide_share, 0.2)              /* and the work of one of them over the work of a direct sum in double */ \
  LIMIT(tensor_error, 1e-4)           /* relative error from which Gaussian sums are on tensor cores, */ \
  LIMIT(tensor_slopes_error, 3e-4)    /* slopes where queries are not references of one weight, */ \
  LIMIT(tensor_dims, 4)               /* and dimensions */ \
  LIMIT(line_pairs_of_a_point, 700)   /* pairs that sorting and cells of a line take the time of, for a point; */ \
  LIMIT(line_pairs_scattered, 30)     /* for a reference, where cells alone do */ \
  LIMIT(line_few_queries, 64)         /* references for a query where they do, */ \
  LIMIT(line_scattered_error, 1e-6)   /* with this relative error */ \
  LIMIT(line_seconds, 1e-3)           /* a line that takes less is taken without a look at meshes */ \
  LIMIT(line_beside_device, 1e-2)     /* a line that takes less is not compared with sums on a device */ \
  LIMIT(factor_points, 20000)         /* of a Gaussian process whose matrix is factored, */ \
  LIMIT(device_call, 0.02)            /* seconds of a sum on a device beside what its pairs take */ \
  LIMIT(factor_always, 200)           /* up to this many points always, if memory allows */
/* clang-format on */
