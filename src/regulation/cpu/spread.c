/* One selection with its halves dealt over the call's devices: halves are independent, so each device has a run of
 * pairs and writes their choices to their place. */
#include "core/together/spread.h"
#include "regulation/regulation.h"
#include "regulation/cpu/spread.h"

typedef struct {
  const weft_regulation_ops *ops;
  const weft_regulation_job *job;
  int32_t *choices;
  size_t parts;
} spread_job;

/* Selection in this part's share of the pairs of halves; the choices of halves lie one after another, so parts do not
 * meet. */
static weft_status select_part(weft_ctx *ctx, size_t part, void *data)
{
  const spread_job *all = data;
  weft_regulation_job own = *all->job;
  weft_regulation_cells cells;
  const size_t pairs = (own.halves + 1) / 2, first = 2 * weft_share_start(pairs, part, all->parts);
  const size_t behind = 2 * weft_share_start(pairs, part + 1, all->parts);
  const size_t end = behind < own.halves ? behind : own.halves;
  if (first >= end) return WEFT_OK;
  if (own.cells) {
    cells = *own.cells;
    cells.chosen += first * cells.taken;
    own.cells = &cells;
  } else
    own.rows += first * own.m;
  own.halves = end - first;
  return all->ops->select(ctx, &own, all->choices + weft_regulation_choices(&own) / own.halves * first);
}

weft_status weft_regulation_spread(weft_ctx *ctx, const weft_regulation_ops *ops, const weft_regulation_job *job,
                                   int32_t *choices)
{
  spread_job all = { ops, job, choices, (size_t) ctx->device_count };
  return weft_spread(ctx, select_part, &all);
}
