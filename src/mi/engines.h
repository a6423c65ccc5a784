/* The engines of the room, a row each: the name that plans and dry runs say, where it is and what it is, what it does,
 * where it runs, what it fits, what it gains over the next simpler one with the command that shows it, and the function
 * that chooses it. `Rscript tools/engines.R` writes the table in README.md from these rows; names go into C as
 * WEFT_MI_<ID>. */
#pragma once

/* clang-format off */
#define WEFT_MI_ENGINES(ENGINE) \
  ENGINE(COLUMNS, "columns", \
    "`features/cpu/rank.c`", \
    "single features", \
    "CPU", \
    "all; two values by planes, few levels in pieces, else a histogram", \
    "0.4 of the time of a plain C histogram loop, `mi-rank.R`", \
    "`rank_column()`") \
  ENGINE(SORTED_COLUMNS, "sorted columns", \
    "`features/cpu/columns.c`", \
    "the same, by sorting", \
    "CPU", \
    "tables of more than 2^18 cells", \
    "not measured", \
    "`weft_mi_code_plan()`") \
  ENGINE(DEVICE_COLUMNS, "columns on a device", \
    "`features/cuda/rank.cu`", \
    "single features", \
    "devices", \
    "tables of up to 2^18 cells", \
    "`mi-figures.R`", \
    "`rank()` there") \
  ENGINE(PLANES, "planes", \
    "`pairs/cpu/pairs.c`, planes", \
    "pairs, popcounts and screen", \
    "CPU", \
    "up to 24 levels and 64 classes", \
    "AVX-512 16 times PLINK 1.9's `boost`, `[G] cpu`", \
    "`better_from_codes()`") \
  ENGINE(CODES, "codes", \
    "`search/cpu/coded.c`", \
    "pairs from codes; tuples of any order; what is reported", \
    "CPU", \
    "all", \
    "10 µs a pair of 1,000 rows (planes 3.3)", \
    "`better_from_codes()`") \
  ENGINE(PANELS, "panels", \
    "`pairs/cuda/pairs.cu`, `panel.cu`", \
    "pairs and all scores, any planes", \
    "devices", \
    "up to 24 levels and 64 classes", \
    "not measured", \
    "`weft_mi_pairs_engine()`") \
  ENGINE(DEVICE_CODES, "codes on a device", \
    "`pairs/cuda/coded.cu`", \
    "pairs from codes", \
    "devices", \
    "tables in shared memory; larger ones go to the CPU", \
    "not measured", \
    "`weft_mi_large()`") \
  ENGINE(BINARY, "binary", \
    "`pairs/cuda/binary_hopper.cu`", \
    "pairs, binary", \
    "Hopper", \
    "2 classes of at most 65,535 rows each, no missing values", \
    "2,890 T in the kernel", \
    "`weft_mi_pairs_engine()`") \
  ENGINE(TERNARY, "ternary", \
    "`pairs/cuda/ternary_hopper.cu`", \
    "pairs, up to 3 levels", \
    "Hopper", \
    "no missing values; rows: see the table below", \
    "667 to 785 T at 50,000 rows, `[G] rates`", \
    "`weft_mi_pairs_engine()`") \
  ENGINE(FUSED, "fused", \
    "`pairs/cuda/fused_hopper.cu`", \
    "pairs, up to 4 planes, missing values", \
    "Hopper", \
    "up to 20,000 rows, of few planes up to 2^22: see below", \
    "143 T (1 % missing, 10,000 rows), 182 T (4 classes), 91 T (4 levels), 22 T (5 levels, 4 classes), " \
      "`[G] rates`", \
    "`weft_mi_pairs_engine()`") \
  ENGINE(COUNTED, "counted", \
    "`pairs/cuda/counted_hopper.cu`", \
    "pairs, counts through memory", \
    "Hopper", \
    "any planes and up to 64 classes", \
    "323 T (1 % missing, 50,000 rows), `[G] rates`", \
    "`weft_mi_pairs_engine()`") \
  ENGINE(TRIPLES, "triples", \
    "`triples/cpu/triples.c`", \
    "triples", \
    "CPU", \
    "all", \
    "not measured", \
    "`weft_mi_plan()`") \
  ENGINE(SORTED_TRIPLES, "sorted triples", \
    "`triples/cuda/ternary*.cu`", \
    "triples, rows sorted by the fixed attribute", \
    "Hopper", \
    "up to 3 levels, 2 classes, 65,535 rows; binary: up to 7,500 attributes", \
    "232 to 326 T, `[G] triples`", \
    "`weft_mi_triples_engine()`") \
  ENGINE(BINARY_TRIPLES, "binary triples", \
    "`binary_hopper.cu`, triples", \
    "binary triples", \
    "Hopper", \
    "more than 7,500 binary attributes", \
    "1.37 s for 1,000 x 10,000", \
    "`weft_mi_triples_engine()`") \
  ENGINE(FEW_LEVELS, "few levels", \
    "`triples/cuda/few_levels.cu`", \
    "triples", \
    "Hopper", \
    "2 to 5 levels, up to 8 classes, no missing values", \
    "24 T (three levels, before rows were sorted)", \
    "`weft_mi_triples_engine()`") \
  ENGINE(QUADRUPLES, "quadruples", \
    "`triples/cuda/quadruples.cu`", \
    "tuples of four, as pairs of pairs", \
    "Hopper", \
    "up to 3 levels, 2 classes, 65,535 rows, no missing values, by information", \
    "16,384 x 500 (H100): two levels 483 T tuple-samples/s, three 78; x 250: 102 and 54 (`mi-tuples.R`)", \
    "`plan_long_tuples()`") \
  ENGINE(LABEL_SETS, "label sets one by one", \
    "`permutations/cpu/permute.c`", \
    "permutation tests, one search for each label set", \
    "both", \
    "all", \
    "on a device 99 sets cost 112 to 140 searches", \
    "`weft_mi_permute_pairs()`") \
  ENGINE(LABEL_SETS_TOGETHER, "label sets together", \
    "`permutations/cuda/permute_ternary*.cu`", \
    "many label sets at once", \
    "Hopper", \
    "pairs, up to 3 levels, 2 classes, 65,535 rows", \
    "99 sets cost 44 searches (10,000 x 20,000), `[G] rates`", \
    "`weft_mi_permutation_engine()`") \
  ENGINE(PACK, "packing", \
    "`pack/cpu/pack.c`, `genotypes.c`", \
    "bit planes", \
    "CPU", \
    "all; genotypes from two bits a row", \
    "17 to 20 G genotypes/s on 16 threads, `[G] planes`", \
    "`learn()`") \
  ENGINE(DEVICE_PACK, "packing on a device", \
    "`pack/cuda/genotypes.cu`", \
    "planes of a .bed file", \
    "devices", \
    "one device; codes in half of its memory", \
    "105 GB/s of genotype bytes against 21, `[G] planes`", \
    "`weft_mi_pack_plantable()`, `weft_mi_plant_cuda()`") \
  ENGINE(BLOCKS, "blocks", \
    "`search/*/blocks.*`", \
    "planes that exceed the device", \
    "devices", \
    "pairs", \
    "makes them possible", \
    "`weft_mi_device_holds()`") \
  ENGINE(PAIR_SCAN, "scan with covariates", \
    "`scan/scan.c`, `tile.c`, `refit.c`", \
    "pairs of genotypes in linear and logistic models", \
    "CPU", \
    "0, 1, 2 and missing values; any covariates; 1 or 4 degrees of freedom", \
    "233 times as fast as a loop of `lm.fit()`, `pair-scan.R gain`", \
    "`plan_scan()`") \
  ENGINE(DEVICE_SCAN, "scan on a device", \
    "`scan/cuda/screen.cu`", \
    "the same, a screen of bytes on tensor cores; the CPU scores what passes", \
    "devices", \
    "variants with up to 10 % missing genotypes (none beyond 24 columns of covariates), up to 8.5 million rows, " \
      "`top` up to 2^20", \
    "500,000 x 20,000, ten covariates (H200): 4.9 s, with 4 degrees of freedom 15.9; x 3,072 with 1 % missing (H100): " \
      ".65 and 1.9 s, classes .80 and 1.9 (`pair-scan.R device`)", \
    "`plan_scan()`") \
  ENGINE(COUNTS_MATRIX, "matrix of counts", \
    "`matrix/*/counts.*`", \
    "all pairs, categorical", \
    "both", \
    "all", \
    "`mi-pairs.R`", \
    "R") \
  ENGINE(NUMERIC_MATRIX, "matrix of numbers", \
    "`matrix/*/numeric.*`", \
    "Pearson, Spearman, copula, KSG, Kendall", \
    "both", \
    "devices: KSG up to 32 neighbours", \
    "`mi-networks.R`", \
    "`weft_mi_numeric_cuda()`") \
  ENGINE(NETWORK, "network", \
    "`networks/cpu/network.c`", \
    "ARACNE, CLR, MRNET, MRNETB, relevance", \
    "CPU", \
    "all", \
    "CLR half, MRNET a quarter of parmigene's time, `mi-networks.R`", \
    "`networks/kinds.h`") \
  ENGINE(DEVICE_NETWORK, "network on a device", \
    "`networks/cuda/network.cu`, `steps.cu`", \
    "ARACNE in tiles; MRNET, MRNETB", \
    "devices", \
    "the matrix fits the device", \
    "20,000 genes: ARACNE 1.8 s, by `plan_network()` 5.3 on 16 threads; MRNET of 5,000 .8 s, 3.9 " \
      "(`auto.R`, H100)", \
    "`networks/kinds.h`") \
  ENGINE(TRANSFERS, "transfer entropy", \
    "`transfer/cpu/transfer.c`", \
    "transfer entropy of all pairs, and of permuted copies", \
    "CPU", \
    "up to 16 levels", \
    "not measured", \
    "`weft_mi_plan()`") \
  ENGINE(DEVICE_TRANSFERS, "transfer entropy on a device", \
    "`transfer/cuda/transfer.cu`", \
    "the same", \
    "devices", \
    "up to 16 levels; codes and planes in its memory", \
    "not measured", \
    "`weft_transfer_open_cuda()`") \
  ENGINE(HOPPER_TRANSFERS, "transfer entropy by products", \
    "`transfer/cuda/transfer_hopper.cu`", \
    "the same", \
    "Hopper", \
    "2 to 4 levels", \
    "22,469 genes, 20 permutations, H200: 3,000 samples 2.1 s at 2 levels, 2.4 at 3, 7.0 at 4; 100,955 cells 6.1 and " \
      "9.0 s (`transfer.R speed`)", \
    "`weft_transfer_open_cuda()`") \
  ENGINE(EXACT_TEST, "exact test", \
    "`null/exact_test.c`", \
    "p-values of single features: counts the tables, chooses", \
    "CPU", \
    "chi-squared where cells expect 100 rows or more (2 x 2: 1,000) and p > 10^-20, and above 2^20 " \
      "rows; else one of the next three", \
    "below", \
    "`needs_law()`, `find_law()`") \
  ENGINE(WALK, "all tables", \
    "`null/walk.c`", \
    "the same, exact: all tables", \
    "CPU", \
    "up to some 10^4 tables, equal ones merged; 16 classes", \
    "below", \
    "`weft_mi_walk_short()`") \
  ENGINE(SMOOTH, "smooth law", \
    "`null/smooth.c`", \
    "the same, a smooth law", \
    "CPU", \
    "all others but margins of too many kinds (chi-squared)", \
    "below", \
    "`find_law()`") \
  ENGINE(SAMPLE, "random tables", \
    "`null/sample.c`", \
    "the same, random tables that correct it", \
    "CPU", \
    "cells that expect under 5 rows, while tables are cheap", \
    "below", \
    "`weft_mi_sampler_tables()`") \
  ENGINE(SELECTION, "selection and bins", \
    "`select/`, `bins/`", \
    "greedy selection; cut points", \
    "CPU", \
    "all", \
    "not measured", \
    "")
/* clang-format on */

#define WEFT_MI_ENGINE_ID(id, ...) WEFT_MI_##id,
typedef enum { WEFT_MI_ENGINES(WEFT_MI_ENGINE_ID) WEFT_MI_NO_ENGINE } weft_mi_engine;
#undef WEFT_MI_ENGINE_ID
