/* The numbers by which engines are chosen. */
#pragma once

#define WEFT_REGULATION_SCREENED 1000 /* regulators from which the CPU screens gains: with fewer that gains nothing */
