/* What the order of a gene's values says about the groups: information of three bins, the area under the ROC curve. */
#include <math.h>
#include <string.h>
#include "ranking/ranking.h"
#include "ranking/values.h"

#define SHORT_RUN 12 /* runs of this many are put in order by insertion */

static void insert_sorted(weft_ranking_value *values, size_t n)
{
  for (size_t i = 1; i < n; i++) {
    const weft_ranking_value now = values[i];
    size_t at = i;
    for (; at > 0 && values[at - 1].value > now.value; at--) values[at] = values[at - 1];
    values[at] = now;
  }
}

static void merge(const weft_ranking_value *values, size_t middle, size_t n, weft_ranking_value *out)
{
  size_t left = 0, right = middle;
  for (size_t i = 0; i < n; i++) {
    const int take_left = left < middle && (right >= n || values[left].value <= values[right].value);
    out[i] = take_left ? values[left++] : values[right++];
  }
}

static void merge_sort(weft_ranking_value *values, weft_ranking_value *other, size_t n)
{
  weft_ranking_value *from = values, *to = other;
  for (size_t at = 0; at < n; at += SHORT_RUN) insert_sorted(values + at, n - at < SHORT_RUN ? n - at : SHORT_RUN);
  for (size_t run = SHORT_RUN; run < n; run *= 2) {
    for (size_t at = 0; at < n; at += 2 * run) {
      const size_t size = n - at < 2 * run ? n - at : 2 * run;
      merge(from + at, size < run ? size : run, size, to + at);
    }
    weft_ranking_value *held = from;
    from = to;
    to = held;
  }
  if (from != values) memcpy(values, from, n * sizeof *values);
}

/* Values are dealt to as many boxes of equal width as there are values, after which few are out of order; boxes that
 * hold many, as beside an outlier, are merged. */
void weft_ranking_sort(weft_ranking_value *values, weft_ranking_value *other, int32_t *ends, size_t n)
{
  double least = INFINITY, greatest = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    if (values[i].value < least) least = values[i].value;
    if (values[i].value > greatest) greatest = values[i].value;
  }
  const double scale = (double) (n - 1) / (greatest - least);
  if (!(greatest > least)) return;
  if (!(scale < 1e300 && scale > 1e-300)) {
    merge_sort(values, other, n);
    return;
  }
  memset(ends, 0, (n + 1) * sizeof *ends);
  for (size_t i = 0; i < n; i++) ends[(size_t) ((values[i].value - least) * scale) + 1]++;
  for (size_t box = 0; box < n; box++) ends[box + 1] += ends[box];
  for (size_t i = 0; i < n; i++) other[ends[(size_t) ((values[i].value - least) * scale)]++] = values[i];
  for (size_t box = 0, from = 0; box < n; box++) {
    const size_t end = (size_t) ends[box]; /* filled to where the next box begins */
    if (end - from > 2 * SHORT_RUN)
      merge_sort(other + from, values + from, end - from);
    else
      insert_sorted(other + from, end - from);
    from = end;
  }
  memcpy(values, other, n * sizeof *values);
}

/* k log2 k */
static double f(double k) { return k > 0 ? k * log2(k) : 0; }

/* Mutual information in bits, from sums of f(count) over cells, bins, groups and all; what rounding leaves below 0
 * becomes 0. */
double weft_ranking_bits(const int32_t *table, size_t bins, size_t groups)
{
  double cells = 0, of_bins = 0, of_groups = 0, total = 0;
  for (size_t g = 0; g < groups; g++) {
    double sum = 0;
    for (size_t b = 0; b < bins; b++) {
      const double count = table[b + g * bins];
      cells += f(count);
      sum += count;
    }
    of_groups += f(sum);
    total += sum;
  }
  for (size_t b = 0; b < bins; b++) {
    double sum = 0;
    for (size_t g = 0; g < groups; g++) sum += table[b + g * bins];
    of_bins += f(sum);
  }
  const double bits = total > 0 ? ((cells - of_bins) - (of_groups - f(total))) / total : 0;
  return bits > 0 ? bits : 0;
}

/* Bin b ends at the value of rank ceil(b n / bins), as in discretize(): equal values share a bin, and no cut is at the
 * largest value. */
double weft_ranking_bits_of(const weft_ranking_value *values, size_t n, size_t groups, int32_t *table)
{
  double cuts[WEFT_RANKING_BINS - 1];
  size_t count = 0, bin = 0;
  for (size_t b = 1; b < WEFT_RANKING_BINS && n; b++) {
    const double cut = values[(b * n + WEFT_RANKING_BINS - 1) / WEFT_RANKING_BINS - 1].value;
    if (cut < values[n - 1].value && (!count || cut > cuts[count - 1])) cuts[count++] = cut;
  }
  memset(table, 0, WEFT_RANKING_BINS * groups * sizeof *table);
  for (size_t i = 0; i < n; i++) {
    while (bin < count && values[i].value > cuts[bin]) bin++;
    table[bin + (size_t) values[i].group * WEFT_RANKING_BINS]++;
  }
  return weft_ranking_bits(table, WEFT_RANKING_BINS, groups);
}

/* Pairs of the two groups in which the second has the greater value; ties count half. NaN where a group is empty. */
double weft_ranking_auc(const weft_ranking_value *values, size_t n)
{
  double first = 0, second = 0, won = 0; /* values so far of each group */
  for (size_t at = 0; at < n;) {
    double equal[2] = { 0, 0 };
    size_t end = at;
    for (; end < n && values[end].value == values[at].value; end++) equal[values[end].group != 0]++;
    won += equal[1] * (first + equal[0] / 2);
    first += equal[0];
    second += equal[1];
    at = end;
  }
  return won / (first * second);
}

int32_t weft_ranking_ties(const weft_ranking_value *values, size_t n)
{
  size_t most = 0;
  for (size_t at = 0; at < n;) {
    size_t end = at;
    while (end < n && values[end].value == values[at].value) end++;
    if (end - at > most) most = end - at;
    at = end;
  }
  return (int32_t) most;
}
