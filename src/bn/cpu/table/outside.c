/* Sets with one parent from outside the candidates ("plus one"): every set that is kept is tried again with each node
 * that may be an outsider, and those that have no better subset join the node's list. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "core/numbers/topk.h"
#include "bn/both/joint.h"
#include "bn/both/set_terms.h"
#include "bn/cpu/table/outside.h"

static size_t mask_members(const uint64_t *mask, size_t words, size_t *member)
{
  size_t m = 0;
  for (size_t w = 0; w < words; w++)
    for (uint64_t word = mask[w]; word; word &= word - 1) member[m++] = 64 * w + (size_t) __builtin_ctzll(word);
  return m;
}

static int mask_within(const uint64_t *a, const uint64_t *b, size_t words)
{
  for (size_t w = 0; w < words; w++)
    if (a[w] & ~b[w]) return 0;
  return 1;
}

typedef struct outside_job {
  weft_bn_ready *ready;
  weft_bn_node *nodes;
  weft_bn_bench *bench;
  int64_t *value; /* value[kept set * outsiders + outsider], of one node */
  int64_t *own;   /* a thread: the values of one outsider */
  size_t node, words;
  const size_t *outsider;
  size_t outsiders;
} outside_job;

/* Scores of kept set t with every outsider added. */
static void outside_task(void *data, size_t set, int thread)
{
  outside_job *job = data;
  const weft_bn_node *node = &job->nodes[job->node];
  const size_t i = node->node;
  size_t member[WEFT_BN_MAX_PARENTS + 2], m = mask_members(node->kept_mask + set * job->words, job->words, member);
  int64_t *out = job->value + set * job->outsiders;
  const double penalty = weft_bn_penalty(job->ready->problem, i) * job->ready->unit;
  if (m >= (size_t) job->ready->problem->max_parents[i]) {
    for (size_t k = 0; k < job->outsiders; k++) out[k] = WEFT_BN_NEVER;
    return;
  }
  weft_bn_extend(job->ready, thread, &job->bench[thread], i, member, m, job->outsider, job->outsiders, out);
  for (size_t k = 0; k < job->outsiders; k++) {
    member[m] = job->outsider[k];
    int64_t share = weft_bn_set_share(job->ready, i, member, m + 1, weft_bn_required(job->ready->problem, i), penalty);
    out[k] = share == WEFT_BN_NEVER ? WEFT_BN_NEVER : out[k] + share;
  }
}

typedef struct grown_set {
  int64_t score;
  uint32_t base, outsider;
} grown_set;

/* Marks by NEVER the sets that have a better subset: of the kept sets (the grown set's own base among them, all within
 * the candidates), and of those with outsider k. */
static void compare_task(void *data, size_t k, int thread)
{
  outside_job *job = data;
  const weft_bn_node *node = &job->nodes[job->node];
  const int64_t slack = weft_bn_slack(job->ready);
  int64_t *own = job->own + (size_t) thread * node->kept;
  for (size_t set = 0; set < node->kept; set++) own[set] = job->value[set * job->outsiders + k];
  for (size_t set = 0; set < node->kept; set++) {
    const uint64_t *base = node->kept_mask + set * job->words;
    int stays = own[set] != WEFT_BN_NEVER;
    for (size_t other = 0; other < node->kept && stays; other++) {
      if (own[set] > node->kept_score[other] - slack &&
          (other == set || own[other] == WEFT_BN_NEVER || own[set] > own[other] - slack))
        continue;
      if (mask_within(node->kept_mask + other * job->words, base, job->words)) stays = 0;
    }
    if (!stays) job->value[set * job->outsiders + k] = WEFT_BN_NEVER;
  }
}

static size_t list_grown(const outside_job *job, grown_set *out)
{
  size_t found = 0;
  for (size_t k = 0; k < job->outsiders; k++)
    for (size_t set = 0; set < job->nodes[job->node].kept; set++) {
      const int64_t score = job->value[set * job->outsiders + k];
      if (score != WEFT_BN_NEVER) out[found++] = (grown_set){ score, (uint32_t) set, (uint32_t) job->outsider[k] };
    }
  return found;
}

/* Adds the grown sets to node k's list and sorts it anew. */
static weft_status merge_grown(weft_arena *keep, weft_arena *mem, weft_bn_node *node, size_t words,
                               const grown_set *grown, size_t count)
{
  weft_status st = WEFT_OK;
  const size_t total = node->kept + count;
  weft_scored *order = NULL;
  int64_t *score;
  uint64_t *mask;
  WEFT_TAKE(order, mem, total);
  WEFT_TAKE(score, keep, total);
  WEFT_TAKE(mask, keep, total * words);
  for (size_t k = 0; k < total; k++)
    order[k] = (weft_scored){ (double) (k < node->kept ? node->kept_score[k] : grown[k - node->kept].score), k };
  weft_scored_sort(order, total);
  for (size_t k = 0; k < total; k++) {
    const size_t from = order[k].index;
    const grown_set *extended = from < node->kept ? NULL : &grown[from - node->kept];
    score[k] = (int64_t) order[k].score;
    memcpy(mask + k * words, node->kept_mask + (extended ? extended->base : from) * words, words * sizeof *mask);
    if (extended) mask[k * words + extended->outsider / 64] |= UINT64_C(1) << (extended->outsider % 64);
  }
  weft_arena_drop(mem, order);
  order = NULL;
  weft_arena_drop(keep, node->kept_score);
  weft_arena_drop(keep, node->kept_mask);
  node->kept_score = score;
  node->kept_mask = mask;
  node->kept = total;
done:
  weft_arena_drop(mem, order);
  return st;
}

/* Node by node; lists that grow are replaced in `keep`. */
weft_status weft_bn_add_outsiders(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes,
                                  double from)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p;
  outside_job job = { ready, nodes, NULL, NULL, NULL, 0, (p + 63) / 64, NULL, 0 };
  size_t *outsider;
  WEFT_TAKE(outsider, &mem, p);
  WEFT_TAKE(job.bench, &mem, problem->threads);
  for (size_t t = 0; t < problem->threads; t++) WEFT_TRY(weft_bn_bench_make(&mem, ready, &job.bench[t]));
  for (size_t i = 0; i < p; i++) {
    grown_set *grown;
    job.node = i;
    job.outsider = outsider;
    job.outsiders = 0;
    for (size_t other = 0; other < p; other++)
      if (problem->outside[i + p * other]) outsider[job.outsiders++] = other;
    if (!job.outsiders || !nodes[i].kept) continue;
    WEFT_TAKE(job.value, &mem, nodes[i].kept * job.outsiders);
    WEFT_TAKE(job.own, &mem, problem->threads * nodes[i].kept);
    const double now = from + (1 - from) * (double) i / (double) p,
                 next = from + (1 - from) * (double) (i + 1) / (double) p;
    WEFT_TRY(weft_bn_run_tasks(ctx, problem->threads, nodes[i].kept, outside_task, &job, now, next));
    WEFT_TRY(weft_bn_run_tasks(ctx, problem->threads, job.outsiders, compare_task, &job, next, next));
    WEFT_TAKE(grown, &mem, nodes[i].kept * job.outsiders);
    WEFT_TRY(merge_grown(keep, &mem, &nodes[i], job.words, grown, list_grown(&job, grown)));
    weft_arena_drop(&mem, grown);
    weft_arena_drop(&mem, job.own);
    weft_arena_drop(&mem, job.value);
  }
done:
  weft_arena_end(&mem);
  return st;
}
