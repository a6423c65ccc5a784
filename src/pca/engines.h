/* The engines of the room, a row each: the name that plans and dry runs say, where it is and what it is, what it does,
 * where it runs, what it fits, what it gains over the next simpler one with the command that shows it, and the function
 * that chooses it. `Rscript tools/engines.R` writes the table in README.md from these rows; names go into C as
 * WEFT_PCA_<ID>. */
#pragma once

/* clang-format off */
#define WEFT_PCA_ENGINES(ENGINE) \
  ENGINE(VECTORS, "one component at a time", \
    "`gs`, `nipals` (`power_iteration.c`)", \
    "one component at a time", \
    "both", \
    "complete data; by name only", \
    "the papers' methods, slower than the default (`inst/bench/pca-figure.R`)", \
    "") \
  ENGINE(FUSED_STEP, "one reading per step", \
    "one reading per step (`gs_step.cu`; `open_fused()`)", \
    "step of gs", \
    "Hopper", \
    "X and a copy of it on the device, p as `weft_pca_fused_fits()` says, k <= 256", \
    "15,000 x 7,500: H200 .28 ms, two products .43 (dgemv .21) and .03 for what follows; H100 .36, " \
      "products alone .61, as nipals takes .935 less .325 (its time at 500 rows) (`pca-figure.R run " \
      "cuda`)", \
    "") \
  ENGINE(KRYLOV, "block Krylov", \
    "block Krylov (`by_blocks()`)", \
    "krylov", \
    "both", \
    "any X, any k", \
    "1,000 x 1,000, 10 components in noise: .03 s, gram .15 (no command)", \
    "") \
  ENGINE(LANCZOS, "Lanczos", \
    "Lanczos on G (`gram/lanczos.c`; `weft_pca_lanczos_capacity()`)", \
    "krylov, sparse", \
    "CPU", \
    "near at least twice the vectors", \
    "20,000 x 2,000 at 2 %: 1.37 s, block Krylov 2.85 (no command)", \
    "") \
  ENGINE(ALL_EIGENVECTORS, "all eigenvectors", \
    "all eigenvectors of G (`ops->eigen`)", \
    "gram", \
    "both", \
    "near below 1,024 (CPU), 512 (device), or k > 52 (104)", \
    "as fast as filtering there (no figure)", \
    "") \
  ENGINE(FILTERING, "filtering", \
    "filtering (`gram/chebyshev.c`; `weft_pca_filter_block()`)", \
    "gram", \
    "both", \
    "larger near, k <= 52 (CPU), 104 (device)", \
    "15,000 x 7,500, k = 10: 27 ms, Krylov 84 (`pca-device.R time`, H200)", \
    "") \
  ENGINE(HALVES, "Gram matrix from halves", \
    "G from halves (`coarse_square()` in `gram.cu`)", \
    "gram", \
    "CUDA", \
    "tolerance >= 2e-5, room for halves", \
    "15,000 x 7,500: forming G 5 ms, in double 17.6 (`pca-device.R time`, H200)", \
    "") \
  ENGINE(ROUGH_GRAM, "rough Gram matrix", \
    "rough G, corrected (`gram/gram_half.c`; `by_rough()`)", \
    "gram of a store", \
    "CUDA", \
    "near >= 8,000, or tolerance >= 1e-7 and all blocks stay; k <= 104; no ranks", \
    "20,000 genes: 4.1 s, krylov 8.8 (`cells-rows.R`, H200)", \
    "") \
  ENGINE(TILES, "tiles", \
    "tiles (`tiles.c`; `make_tiles()`)", \
    "sparse products", \
    "CPU", \
    "data that stay, 10^5 values, 3 vectors or more, half of memory", \
    "1.0 and .8 ns per value and four vectors, columns 2.6 and 1.4 (no command)", \
    "") \
  ENGINE(TWO_BITS, "genotypes in a file", \
    "products that decode two bits (`pack_coded()` in `core/numbers/product.c`; `genotypes.cu`)", \
    "products of a `plink_file()`", \
    "both", \
    "more genotypes than `block_size` holds as doubles", \
    "400,000 x 400,000, K = 40 (H100): 8.6 s, where the matrix would take 1.3 TB as doubles; one " \
      "thread, 32 vectors: 1.5 and 1.8 ns per genotype, of which decoding takes .4 (`genotypes-pca.R`)", \
    "") \
  ENGINE(BOTH_PRODUCTS, "both products of a panel", \
    "both products of a panel (`twice()`)", \
    "X'X v, sparse", \
    "both", \
    "rows not the near side, no ranks", \
    "from a store 30 passes become 21, 42.8 s 7.1 (with faster reading; no command); on a device 11 " \
      "become 7 (`cells-rows.R`)", \
    "") \
  ENGINE(GATHERED, "gathered values", \
    "products that gather (`sparse/gathered.cu`; `weft_pca_gather_from()`)", \
    "sparse products", \
    "CUDA", \
    "blocks in memory, of more than 10^7 numbers, of which at most a twentieth is stored", \
    "60,000 x 10,100 at 1 %, 24 vectors (H200): 1.6 ms, orthonormalisation included (no command)", \
    "") \
  ENGINE(SPARSE_GRAM, "Gram matrix from pairs in rows", \
    "G from pairs within rows (`gram_sparse.c`)", \
    "gram, sparse", \
    "CPU", \
    "columns are near; by `\"auto\"` at most 10,000 columns (`cost_stored()`)", \
    "20,000 x 2,000 at 8 %, a store: 2.2 s, steps on X 6.0 (no command)", \
    "") \
  ENGINE(EM, "EM", \
    "EM with Anderson steps (`em.c`)", \
    "missing values", \
    "both", \
    "NaN in a dense matrix", \
    "50,000 x 500, 2 % missing, K = 10 of rank 5 and 10 (H100): .28 and .08 s, 16 cores 1.8 and .23 " \
      "(`pca-missing.R`); 6,525 steps where EM takes 42,245 (no command)", \
    "") \
  ENGINE(SPREAD_ROWS, "rows over devices or processes", \
    "rows over devices or processes (`spread.c`, `ranks.c`)", \
    "krylov, gram", \
    "both", \
    "dense or sparse in memory, a store that stays on devices", \
    "two and four H200: 62 and 35 % of ideal, all transfer (`devices.R`)", \
    "")
/* clang-format on */

#define WEFT_PCA_ENGINE_ID(id, ...) WEFT_PCA_##id,
typedef enum { WEFT_PCA_ENGINES(WEFT_PCA_ENGINE_ID) WEFT_PCA_NO_ENGINE } weft_pca_engine;
#undef WEFT_PCA_ENGINE_ID
