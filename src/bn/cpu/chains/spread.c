/* Ladders divided among the devices of a call; see bn.h and core/together/spread.h. What a ladder does depends on the
 * key and its number alone, so each device runs its own ladders and writes the results where a single run would put
 * them. */
#include <string.h>
#include "core/together/spread.h"
#include "bn/bn.h"

typedef struct {
  weft_bn_chain_op *chain;
  const weft_bn_table *table;
  const weft_bn_run *run;
  weft_bn_chains *out; /* of all */
  size_t parts;
  int32_t *best_sets; /* p × best × parts */
  double *best_score;
  size_t found[WEFT_MOST_DEVICES];
} chain_job;

/* Runs one device's share of the ladders, which writes into that share of all results; best graphs go to its own
 * list. */
static weft_status chain_part(weft_ctx *ctx, size_t part, void *data)
{
  chain_job *job = data;
  const weft_bn_run *run = job->run;
  const weft_bn_chains *all = job->out;
  const size_t p = job->table->p, saved = run->iterations / run->thin;
  const size_t first = (size_t) weft_share_start(run->ladders, part, job->parts), replica = first * run->temperatures;
  weft_bn_run own = *run;
  weft_bn_chains out = { .order = all->order + replica * p,
                         .trace = all->trace + first * saved,
                         .layer = run->layers ? all->layer + replica * p : NULL,
                         .accepted = all->accepted + (weft_bn_moves(run) + 1) * replica,
                         .swapped = all->swapped + 2 * first * (run->temperatures - 1),
                         .samples = all->samples,
                         .best_sets = job->best_sets + part * run->best * p,
                         .best_score = job->best_score + part * run->best };
  weft_status st = WEFT_OK;
  own.ladders = (size_t) weft_share_start(run->ladders, part + 1, job->parts) - first;
  own.ladder0 = run->ladder0 + first;
  if (run->sum) {
    out.sampled = all->sampled + first * all->samples * p;
    out.sample_score = all->sample_score + first * all->samples;
  }
  if (own.ladders) st = job->chain(ctx, job->table, &own, &out);
  job->found[part] = out.found;
  return st;
}

/* Merges the parts' lists of best graphs; at equal scores earlier ladders come first, and each graph is kept once. */
static void merge_best(const chain_job *job)
{
  const size_t p = job->table->p, most = job->run->best;
  weft_bn_chains *out = job->out;
  size_t at[WEFT_MOST_DEVICES] = { 0 };
  for (out->found = 0; out->found < most;) {
    size_t best = job->parts, k = 0;
    for (size_t part = 0; part < job->parts; part++)
      if (at[part] < job->found[part] &&
          (best == job->parts || job->best_score[part * most + at[part]] > job->best_score[best * most + at[best]]))
        best = part;
    if (best == job->parts) break;
    const double score = job->best_score[best * most + at[best]];
    const int32_t *sets = job->best_sets + (best * most + at[best]++) * p;
    while (k < out->found && (out->best_score[k] != score || memcmp(out->best_sets + k * p, sets, p * sizeof *sets)))
      k++;
    if (k < out->found) continue;
    memcpy(out->best_sets + out->found * p, sets, p * sizeof *sets);
    out->best_score[out->found++] = score;
  }
}

weft_status weft_bn_chain_spread(weft_ctx *ctx, weft_bn_chain_op *chain, const weft_bn_table *table,
                                 const weft_bn_run *run, weft_bn_chains *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  chain_job job = { .chain = chain, .table = table, .run = run, .out = out, .parts = (size_t) ctx->device_count };
  if (job.parts == 1) return chain(ctx, table, run, out);
  WEFT_TAKE(job.best_sets, &mem, job.parts * run->best * table->p);
  WEFT_TAKE(job.best_score, &mem, job.parts * run->best);
  WEFT_TRY(weft_spread(ctx, chain_part, &job));
  merge_best(&job);
done:
  weft_arena_end(&mem);
  return st;
}
