/* The exact score of one pair from its cells, in the sums of fixed_point.h. No table is kept: `cell` computes each cell
 * when it is needed. Classes may be those of strata, `per` of them in each. */
#pragma once

#include "mi/search/cuda/search.cuh"

struct pair_score {
  int64_t joint, gain;
  uint64_t n;
};

/* The sum over a table's cells that the information is made of; cell(c, x, y) gives their counts. */
template <class Cell>
__device__ static int64_t joint_sum(const weft_mi_log &f, uint32_t classes, uint32_t per, uint32_t la, uint32_t lb,
                                    const Cell &cell, uint64_t *n)
{
  weft_mi_by_class all = weft_mi_by_class_of(&f, per);
  for (uint32_t x = 0; x < la; x++)
    for (uint32_t y = 0; y < lb; y++)
      for (uint32_t c = 0; c < classes; c++) weft_mi_by_class_add(&all, cell(c, x, y));
  *n = all.n;
  return all.sum;
}

/* The scores of a pair of which an attribute has missing values: margins are sums over the pair's own table. */
template <class Cell>
__device__ static pair_score score_varying(const weft_mi_log &f, uint32_t classes, uint32_t per, uint32_t la,
                                           uint32_t lb, const Cell &cell)
{
  pair_score out;
  int64_t joint = joint_sum(f, classes, per, la, lb, cell, &out.n);
  weft_mi_by_class of_a = weft_mi_by_class_of(&f, per), of_b = of_a, of_classes = of_a;
  for (uint32_t x = 0; x < la; x++)
    for (uint32_t c = 0; c < classes; c++) {
      uint64_t k = 0;
      for (uint32_t y = 0; y < lb; y++) k += cell(c, x, y);
      weft_mi_by_class_add(&of_a, k);
    }
  for (uint32_t y = 0; y < lb; y++)
    for (uint32_t c = 0; c < classes; c++) {
      uint64_t k = 0;
      for (uint32_t x = 0; x < la; x++) k += cell(c, x, y);
      weft_mi_by_class_add(&of_b, k);
    }
  for (uint32_t c = 0; c < classes; c++) {
    uint64_t k = 0;
    for (uint32_t x = 0; x < la; x++)
      for (uint32_t y = 0; y < lb; y++) k += cell(c, x, y);
    weft_mi_by_class_add(&of_classes, k);
  }
  joint -= of_classes.sum;
  of_a.sum -= of_classes.sum;
  of_b.sum -= of_classes.sum;
  out.joint = joint > 0 ? joint : 0;
  out.gain = out.joint - (of_a.sum > 0 ? of_a.sum : 0) - (of_b.sum > 0 ? of_b.sum : 0);
  return out;
}

/* The scores of a pair of complete attributes, whose information alone is `alone_a` and `alone_b`. */
template <class Cell>
__device__ static pair_score score_complete(const weft_mi_log &f, uint32_t classes, uint32_t per, uint32_t la,
                                            uint32_t lb, const Cell &cell, int64_t class_fixed, int64_t alone_a,
                                            int64_t alone_b)
{
  pair_score out;
  const int64_t joint = joint_sum(f, classes, per, la, lb, cell, &out.n) - class_fixed;
  out.joint = joint > 0 ? joint : 0;
  out.gain = out.joint - alone_a - alone_b;
  return out;
}
