/* What the exact posteriors over orders start from and end with on both back ends: sets sorted into cells, weights as
 * numbers of wide range, and the edges. See orders.h. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "bn/both/joint.h"
#include "bn/both/orders.h"
#include "bn/both/orders_ends.h"

#define LN_2 0.693147180559945309417232121458176568L
#define DIGIT_BITS 11

typedef struct keyed {
  uint64_t key;
  int64_t set;
} keyed;

/* Sorts n entries by the lowest `bits` bits of their keys, with equal keys in their order; `room` has n entries. */
static weft_status sort_by_key(weft_ctx *ctx, keyed *x, keyed *room, size_t n, int bits)
{
  weft_status st = WEFT_OK;
  size_t at[(1 << DIGIT_BITS) + 1];
  keyed *from = x, *to = room;
  for (int shift = 0; shift < bits || (shift / DIGIT_BITS) % 2; shift += DIGIT_BITS) { /* an even number of passes */
    memset(at, 0, sizeof at);
    for (size_t k = 0; k < n; k++) at[1 + (from[k].key >> shift & ((1 << DIGIT_BITS) - 1))]++;
    for (size_t d = 0; d < 1 << DIGIT_BITS; d++) at[d + 1] += at[d];
    for (size_t k = 0; k < n; k++) to[at[from[k].key >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[k];
    keyed *swap = from;
    from = to;
    to = swap;
    WEFT_TRY(weft_poll(ctx, 0, 1));
  }
done:
  return st;
}

/* exp(-units / unit) */
static uint64_t weight_of(weft_bn_wide form, int64_t units, long double unit)
{
  const long double nats = (long double) units / unit, exponent = rintl(nats / LN_2);
  return weft_bn_wide_of(form, (double) expl(exponent * LN_2 - nats), -(int32_t) exponent);
}

/* Exponents: every weight is at most 1, so that no sum exceeds p! Π (number of sets); and since the whole is at least
 * the best graph's weight, what is 2^-128 of that over the same bound adds nothing that a double would show, however
 * many such terms there are. */
static weft_status choose_form(weft_ctx *ctx, const weft_bn_table *table, int64_t optimum, weft_bn_wide *out)
{
  double most = lgamma((double) table->p + 1) / (double) LN_2, gap = -(double) optimum;
  int bits = 12;
  for (size_t i = 0; i < table->p; i++) {
    most += log2((double) (table->start[i + 1] - table->start[i]));
    gap += (double) table->score[table->start[i]];
  }
  most = ceil(most) + 4;
  const double least = ceil(gap / ldexp((double) LN_2, table->bits)) + most + 128 + WEFT_BN_MIN_FIELD;
  while (bits < 30 && ldexp(1, bits) <= most + least) bits++;
  if (ldexp(1, bits) <= most + least)
    return weft_fail(ctx, WEFT_ERR_INPUT,
                     "The scores differ too much: the best network scores %.3g nats less than "
                     "the best parents of each node.",
                     gap / ldexp(1, table->bits));
  out->fraction = 64 - bits;
  out->bias = (int32_t) least;
  return WEFT_OK;
}

/* Cells and slots of the sorted sets of one node. */
static void add_cells(weft_bn_order_plan *plan, const weft_bn_table *table, size_t node, const keyed *sorted, size_t n)
{
  const int64_t best = table->score[table->start[node]];
  const long double unit = ldexpl(1, table->bits);
  const int slot_shift = plan->mid_bits + plan->top_bits;
  plan->slot_start[node] = plan->slots;
  for (size_t k = 0; k < n; k++) {
    const uint64_t key = sorted[k].key, before = k ? sorted[k - 1].key : ~key;
    if (key >> slot_shift != before >> slot_shift || !k) plan->slot_low[plan->slots++] = (uint16_t) (key >> slot_shift);
    if (key >> plan->top_bits != before >> plan->top_bits || !k) {
      plan->cell_start[plan->cells] = plan->sets;
      plan->cell_slot[plan->cells] = plan->slots - 1;
      plan->cell_mid[plan->cells++] = (uint32_t) (key >> plan->top_bits & ((UINT64_C(1) << plan->mid_bits) - 1));
    }
    plan->top[plan->sets] = (uint32_t) (key & ((UINT64_C(1) << plan->top_bits) - 1));
    plan->weight[plan->sets++] = weight_of(plan->form, best - table->score[sorted[k].set], unit);
  }
}

/* Sorts each node's sets into cells and slots for subsets that are cut into low, middle and top bits. */
weft_status weft_bn_order_plan_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_table *table, int64_t optimum,
                                    int low_bits, int mid_bits, weft_bn_order_plan *out)
{
  weft_status st = WEFT_OK;
  const size_t p = table->p, total = (size_t) table->start[p];
  const int high_bits = (int) p - low_bits, top_bits = high_bits - mid_bits;
  size_t most = 0, slots = 0;
  keyed *sorted, *room;
  *out = (weft_bn_order_plan){ .p = (int) p, .low_bits = low_bits, .mid_bits = mid_bits, .top_bits = top_bits };
  WEFT_TRY(choose_form(ctx, table, optimum, &out->form));
  for (size_t i = 0; i < p; i++) {
    const size_t n = (size_t) (table->start[i + 1] - table->start[i]);
    most = n > most ? n : most;
    slots += n < (size_t) 1 << low_bits ? n : (size_t) 1 << low_bits;
  }
  WEFT_TAKE(out->weight, mem, total);
  WEFT_TAKE0(out->sum, mem, total);
  WEFT_TAKE(out->top, mem, total);
  WEFT_TAKE(out->cell_start, mem, total + 1);
  WEFT_TAKE(out->cell_mid, mem, total);
  WEFT_TAKE(out->cell_slot, mem, total);
  WEFT_TAKE(out->slot_start, mem, p + 1);
  WEFT_TAKE(out->slot_low, mem, slots);
  WEFT_TAKE(sorted, mem, most);
  WEFT_TAKE(room, mem, most);
  for (size_t i = 0; i < p; i++) {
    const int64_t first = table->start[i];
    const size_t n = (size_t) (table->start[i + 1] - first);
    for (size_t k = 0; k < n; k++) {
      const uint64_t mask = table->mask[first + (int64_t) k], high = mask >> low_bits;
      const uint64_t low = mask & ((UINT64_C(1) << low_bits) - 1), mid = high & ((UINT64_C(1) << mid_bits) - 1);
      sorted[k] = (keyed){ low << high_bits | mid << top_bits | high >> mid_bits, first + (int64_t) k };
    }
    WEFT_TRY(sort_by_key(ctx, sorted, room, n, (int) p));
    add_cells(out, table, i, sorted, n);
  }
  out->slot_start[p] = out->slots;
  out->cell_start[out->cells] = out->sets;
  weft_arena_drop(mem, room);
  weft_arena_drop(mem, sorted);
done:
  return st;
}

void weft_bn_parts_by_size(int bits, uint32_t *part, size_t *begin)
{
  size_t at[WEFT_BN_SUBSET_NODES + 1];
  memset(begin, 0, ((size_t) bits + 2) * sizeof *begin);
  for (size_t k = 0; k < (size_t) 1 << bits; k++) begin[__builtin_popcountll(k) + 1]++;
  for (int k = 0; k <= bits; k++) begin[k + 1] += begin[k];
  memcpy(at, begin, ((size_t) bits + 1) * sizeof *at);
  for (size_t k = 0; k < (size_t) 1 << bits; k++) part[at[__builtin_popcountll(k)]++] = (uint32_t) k;
}

/* x y / whole, a share of at most about 1. */
static double share_of(weft_bn_wide form, uint64_t x, uint64_t y, uint64_t whole)
{
  if (!x || !y) return 0;
  const int64_t exponent =
      (int64_t) weft_bn_wide_field(form, x) + weft_bn_wide_field(form, y) - weft_bn_wide_field(form, whole) - form.bias;
  const double fraction =
      weft_bn_wide_fraction(form, x) * weft_bn_wide_fraction(form, y) / weft_bn_wide_fraction(form, whole);
  return ldexp(fraction, exponent < -2000 ? -2000 : (int) exponent);
}

/* An internal error when the two directions or a node's probabilities disagree by 1e-7 or more. */
weft_status weft_bn_order_edges(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_order_plan *plan,
                                uint64_t forward, uint64_t backward, double *edges, double *log_total)
{
  weft_status st = WEFT_OK;
  const size_t p = table->p;
  const weft_bn_wide form = plan->form;
  double apart, offset = 0;
  size_t cell = 0;
  memset(edges, 0, p * p * sizeof *edges);
  if (!forward) return weft_fail(ctx, WEFT_ERR_INPUT, "No graph has all required parents within the limits.");
  apart = fabs(share_of(form, backward, weft_bn_wide_of(form, 1, 0), forward) - 1);
  for (size_t v = 0; v < p; v++) {
    double total = 0;
    for (; cell < plan->cells && plan->cell_slot[cell] < plan->slot_start[v + 1]; cell++) {
      const uint64_t low = plan->slot_low[plan->cell_slot[cell]];
      for (uint32_t k = plan->cell_start[cell]; k < plan->cell_start[cell + 1]; k++) {
        const double share = share_of(form, plan->weight[k], plan->sum[k], forward);
        uint64_t set = low | weft_bn_order_block(plan->low_bits, plan->mid_bits, plan->top[k], plan->cell_mid[cell]);
        for (; set; set &= set - 1) edges[(size_t) __builtin_ctzll(set) + p * v] += share;
        total += share;
      }
    }
    apart = fmax(apart, fabs(total - 1)); /* every node has one set */
    for (size_t u = 0; u < p; u++) edges[u + p * v] = fmin(edges[u + p * v] / total, 1);
    offset += ldexp((double) table->score[table->start[v]], -table->bits);
    WEFT_TRY(weft_poll(ctx, 1, 1));
  }
  if (!(apart < 1e-7))
    WEFT_TRY(
        weft_fail(ctx, WEFT_ERR_INTERNAL, "The sums over orders differ by %.2g between their two directions.", apart));
  *log_total = offset + log(weft_bn_wide_fraction(form, forward)) +
               (double) ((long double) (weft_bn_wide_field(form, forward) - form.bias) * LN_2);
done:
  return st;
}
