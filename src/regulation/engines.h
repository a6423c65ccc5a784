/* The engines of the room, a row each: the name that plans and dry runs say, where it is and what it is, what it does,
 * where it runs, what it fits, what it gains over the next simpler one with the command that shows it, and the function
 * that chooses it. `Rscript tools/engines.R` writes the table in README.md from these rows; names go into C as
 * WEFT_REGULATION_<ID>. */
#pragma once

/* clang-format off */
#define WEFT_REGULATION_ENGINES(ENGINE) \
  ENGINE(EXACT_GAINS, "exact gains", \
    "`selection_loops.c`", \
    "all gains in double", \
    "CPU: portable, AVX2, AVX-512, VNNI", \
    "any", \
    "the baseline", \
    "") \
  ENGINE(SCREEN, "screen", \
    "`screen.c`", \
    "16-bit screen with a bound of its error, then few exact gains", \
    "CPU: portable, AVX2, AVX-512", \
    "from 1,000 regulators; stops where half of a thread's screens fail", \
    "1,008 regulators 1.0 s, 992 unscreened 1.9 (12 steps); 480,000 selections 6.3 s of processor " \
      "time: no benchmark", \
    "") \
  ENGINE(SPARSE_CELLS, "sparse cells", \
    "`sparse_cells.c`", \
    "products block by block of what is stored", \
    "CPU", \
    "sparse scores, halves of blocks of cells", \
    "not measured against dense", \
    "") \
  ENGINE(DEVICE_SELECTION, "selection on a device", \
    "`cuda/selection.cu`, `digits.cu`", \
    "products of 8-bit digits on tensor cores, a block per target", \
    "any device with 8-bit tensor cores", \
    "dense, or sparse unpacked half by half", \
    "500 x 20,000, 1,800 regulators 1.56 s; 120,000 cells 40.7 s (H200, 16 cores): `Rscript " \
      "inst/bench/regulation-device.R`", \
    "")
/* clang-format on */

#define WEFT_REGULATION_ENGINE_ID(id, ...) WEFT_REGULATION_##id,
typedef enum { WEFT_REGULATION_ENGINES(WEFT_REGULATION_ENGINE_ID) WEFT_REGULATION_NO_ENGINE } weft_regulation_engine;
#undef WEFT_REGULATION_ENGINE_ID
