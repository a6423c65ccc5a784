/* The table of local scores: raw scores of all sets of a node's candidates, penalties and priors, pruning, and the
 * sorted result.
 *
 * Raw scores come from joint values when all nodes may be parents of all (one count serves every child of a set), and
 * child by child otherwise. Nodes are processed in batches that bound the memory of the raw scores. */
/* Build: shared. */
#include <math.h>
#include <string.h>
#include "bn/plan.h"
#include "core/numbers/math.h"
#include "core/numbers/topk.h"
#include "bn/both/joint.h"
#include "bn/cpu/table/outside.h"
#include "bn/cpu/table/set_terms.h"

#define BATCH_SETS ((uint64_t) 2 << 20)

/* ---- preparation ---- */

static weft_status make_binomials(weft_arena *mem, size_t most, size_t k_most, weft_bn_binomials *out)
{
  weft_status st = WEFT_OK;
  out->most = most;
  WEFT_TAKE(out->choose, mem, (k_most + 1) * (most + 1));
  for (size_t v = 0; v <= most; v++) {
    out->choose[v] = 1;
    for (size_t k = 1; k <= k_most; k++) {
      uint64_t *row = out->choose + k * (most + 1);
      row[v] = v ? row[v - 1] + out->choose[(k - 1) * (most + 1) + v - 1] : 0;
      if (row[v] > UINT64_MAX / 4) row[v] = UINT64_MAX / 4;
    }
  }
done:
  return st;
}

/* A bound of |h(S)| and of the edges' share, so that no score leaves 52 bits. */
static int choose_bits(const weft_bn_problem *problem, size_t s)
{
  double bound, edge = 0, n = (double) problem->n;
  if (weft_bn_gauss(problem)) {
    double most = 1;
    for (size_t g = 0; g < problem->groups; g++)
      for (size_t j = 0; j < problem->p; j++)
        most = fmax(most, fabs(log(problem->scatter[(g * problem->p + j) * problem->p + j])));
    bound =
        (double) (s + 1) * (n + problem->alpha_w + (double) problem->p) * (most + log(n + problem->alpha_w + 2) + 8);
  } else {
    double log_q = 0, most = 1;
    for (size_t j = 0; j < problem->p; j++) most = fmax(most, problem->levels[j]);
    log_q = (double) (s + 1) * log(most);
    bound = n * fmax(fabs(log(problem->ess)) + log_q, log(n + fmax(problem->ess, most))) + 1;
    double unit = 0; /* of numbers: their density is a product of normal ones, each with the data's own variance */
    for (size_t j = 0; j < problem->p && problem->number; j++) unit = fmax(unit, fabs(problem->log_unit[j]));
    if (problem->number) bound += n * (40 + unit + log(n + 1));
  }
  if (problem->edge_prior)
    for (size_t k = 0; k < problem->p * problem->p; k++)
      if (problem->allowed[k] || (problem->outside && problem->outside[k]))
        edge = fmax(edge, fabs(problem->edge_prior[k]));
  int bits = 50 - (int) ceil(log2(2 * bound + (double) s * edge + 1));
  return bits > 40 ? 40 : bits;
}

/* What ln p(data of S) has beside the determinant, for each group of rows and size of S: the BGe score of Kuipers
 * and others 2014, with t = alpha_mu (alpha_w - p - 1) / (alpha_mu + 1). */
static weft_status gauss_constants(weft_arena *mem, weft_bn_ready *ready)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *pr = ready->problem;
  const double p = (double) pr->p, log_pi = log(M_PI), t = pr->alpha_mu * (pr->alpha_w - p - 1) / (pr->alpha_mu + 1);
  WEFT_TAKE(ready->gauss_constant, mem, pr->groups * (pr->p + 1));
  for (size_t g = 0; g < pr->groups; g++) {
    const double n = pr->scatter_rows[g];
    for (size_t m = 0; m <= ready->max_parents + 1 && m <= pr->p; m++) {
      const double l = (double) m, half = 0.5 * (pr->alpha_w - p + l);
      double c = 0.5 * l * log(pr->alpha_mu / (n + pr->alpha_mu)) - 0.5 * l * n * log_pi + half * l * log(t);
      for (size_t j = 0; j < m; j++) c += lgamma(half + 0.5 * n - 0.5 * (double) j) - lgamma(half - 0.5 * (double) j);
      ready->gauss_constant[g * (pr->p + 1) + m] = c;
    }
  }
done:
  return st;
}

/* Prepares a problem in `mem`: units, binomials, columns and a counter for each thread, or constants for Gaussian
 * data. Refuses more than WEFT_BN_MAX_PARENTS parents. */
weft_status weft_bn_ready_make(weft_ctx *ctx, weft_arena *mem, const weft_bn_problem *problem, weft_bn_ready *out)
{
  weft_status st = WEFT_OK;
  memset(out, 0, sizeof *out);
  out->problem = problem;
  for (size_t j = 0; j < problem->p; j++)
    if ((size_t) problem->max_parents[j] > out->max_parents) out->max_parents = (size_t) problem->max_parents[j];
  if (out->max_parents > WEFT_BN_MAX_PARENTS)
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "At most %d parents per node can be scored.", WEFT_BN_MAX_PARENTS));
  out->bits = choose_bits(problem, out->max_parents);
  out->unit = ldexp(1.0, out->bits);
  WEFT_TRY(make_binomials(mem, problem->p, out->max_parents + 2, &out->binomials));
  if (weft_bn_gauss(problem)) {
    WEFT_TRY(gauss_constants(mem, out));
    goto done;
  }
  WEFT_TRY(weft_bn_columns_make(mem, problem, &out->columns));
  WEFT_TAKE(out->counters, mem, problem->threads);
  for (size_t t = 0; t < problem->threads; t++)
    WEFT_TRY(weft_bn_counter_make(mem, &out->columns, out->bits, &out->counters[t]));
done:
  return st;
}

/* ---- from joint values to raw scores ---- */

/* The number that a set has among all nodes, of which the walk fixes all but the least member: what must be added to
 * the least member's own share. `extra` < p is inserted (p: none); positions start at `first`. */
static uint64_t fixed_part(const weft_bn_ready *ready, const weft_bn_node *node, const weft_bn_walk *w, size_t extra,
                           size_t first)
{
  uint64_t number = 0;
  size_t position = first;
  for (size_t j = 1; j < w->m; j++) {
    size_t member = node->candidate[w->c[j]];
    if (extra < member) {
      number += weft_bn_choose(&ready->binomials, extra, position++);
      extra = ready->problem->p;
    }
    number += weft_bn_choose(&ready->binomials, member, position++);
  }
  if (extra < ready->problem->p) number += weft_bn_choose(&ready->binomials, extra, position);
  return number;
}

/* Raw scores of all sets of one node, as differences of joint values. The walk keeps all but the least member, so
 * that the inner loop reads two rows of `joint` side by side. */
static void fill_from_joint(const weft_bn_ready *ready, weft_bn_node *node, const int64_t *joint,
                            const uint64_t *offset)
{
  const size_t p = ready->problem->p, i = node->node;
  size_t cut = 0; /* the first candidate beyond the child */
  while (cut < node->universe && node->candidate[cut] < i) cut++;
  node->score[0] = joint[offset[1] + i] - joint[0];
  for (size_t m = 1; m <= node->max_parents; m++) {
    weft_bn_walk w;
    if (!weft_bn_walk_begin(&w, node->universe, m)) break;
    do {
      int64_t *out = node->score + node->offset[m] + w.at;
      const int64_t *parents = joint + offset[m] + fixed_part(ready, node, &w, p, 2);
      const int64_t *above = joint + offset[m + 1] + fixed_part(ready, node, &w, i, 2);
      const size_t below = w.least < cut ? w.least : cut;
      for (size_t c = 0; c < below; c++) {
        const size_t member = node->candidate[c];
        out[c] = above[member] - parents[member];
      }
      if (w.least <= cut) continue;
      /* the child is the least of the family */
      above = joint + offset[m + 1] + i + fixed_part(ready, node, &w, p, 3);
      for (size_t c = cut; c < w.least; c++) {
        const size_t member = node->candidate[c];
        out[c] = above[weft_bn_choose(&ready->binomials, member, 2)] - parents[member];
      }
    } while (weft_bn_walk_next(&w));
  }
}

/* ---- penalties, priors, required parents ---- */

typedef struct table_job {
  weft_bn_ready *ready;
  weft_bn_node *nodes;
  const int64_t *joint; /* NULL: the nodes' scores are there already */
  const uint64_t *joint_offset;
  int64_t *raw;          /* raw scores of a batch */
  int64_t **best;        /* a thread: best of a set and its subsets */
  weft_bn_share **share; /* a thread: p */
  weft_scored **list;    /* a node: what is kept */
} table_job;

/* `one`: room for what each candidate adds by itself. */
static void add_shares(const weft_bn_ready *ready, weft_bn_node *node, weft_bn_share *one)
{
  const weft_bn_problem *problem = ready->problem;
  const size_t i = node->node, required = weft_bn_required(problem, i);
  const double penalty = weft_bn_penalty(problem, i) * ready->unit;
  if (!required && !(penalty > 0) && !problem->edge_prior) return;
  for (size_t c = 0; c < node->universe; c++) {
    one[c] = weft_bn_share_begin(1);
    weft_bn_share_add(ready, i, node->candidate[c], penalty, &one[c]);
  }
  for (size_t m = 0; m <= node->max_parents; m++) {
    weft_bn_walk w = { .least = 1 };
    if (m && !weft_bn_walk_begin(&w, node->universe, m)) break;
    do {
      weft_bn_share others = weft_bn_share_begin(required);
      for (size_t j = 1; j < m; j++) others = weft_bn_share_with(others, one[w.c[j]]);
      for (size_t c = 0; c < w.least; c++) {
        int64_t *score = &node->score[node->offset[m] + w.at + c];
        const int64_t share = weft_bn_share_of(m ? weft_bn_share_with(others, one[c]) : others, penalty);
        *score = share == WEFT_BN_NEVER ? WEFT_BN_NEVER : *score + share;
      }
    } while (m && weft_bn_walk_next(&w));
  }
}

/* ---- pruning ---- */

/* Dropped: worse than the best subset by `slack` or more (slack 0: not better). Marks by NEVER, counts what stays. */
static void prune(const weft_bn_ready *ready, weft_bn_node *node, int64_t *best)
{
  const int64_t slack = weft_bn_slack(ready);
  size_t kept = node->score[0] > WEFT_BN_NEVER, position;
  best[0] = node->score[0];
  for (size_t m = 1; m <= node->max_parents; m++) {
    weft_bn_walk w;
    if (!weft_bn_walk_begin(&w, node->universe, m)) break;
    do {
      int64_t *score = node->score + node->offset[m] + w.at, *mine = best + node->offset[m] + w.at;
      const int64_t *without[WEFT_BN_MAX_PARENTS];
      uint64_t number = 0;
      for (position = 1; position < m; position++) number += weft_bn_choose(&ready->binomials, w.c[position], position);
      const int64_t without_least = best[node->offset[m - 1] + number];
      for (position = 1; position < m; position++) { /* without c[position]; those above move down by one */
        number = 0;
        for (size_t j = 1; j < m; j++)
          if (j != position) number += weft_bn_choose(&ready->binomials, w.c[j], j < position ? j + 1 : j);
        without[position] = best + node->offset[m - 1] + number;
      }
      for (size_t c = 0; c < w.least; c++) mine[c] = without_least;
      for (position = 1; position < m; position++)
        for (size_t c = 0; c < w.least; c++) mine[c] = mine[c] > without[position][c] ? mine[c] : without[position][c];
      for (size_t c = 0; c < w.least; c++) {
        const int64_t s = score[c], below = mine[c];
        const int stays = s > below - slack && s > WEFT_BN_NEVER;
        mine[c] = s > below ? s : below;
        score[c] = stays ? s : WEFT_BN_NEVER;
        kept += (size_t) stays;
      }
    } while (weft_bn_walk_next(&w));
  }
  node->kept = kept;
}

static void score_task(void *data, size_t t, int thread)
{
  table_job *job = data;
  weft_bn_node *node = &job->nodes[t];
  if (job->joint) fill_from_joint(job->ready, node, job->joint, job->joint_offset);
  add_shares(job->ready, node, job->share[thread]);
  prune(job->ready, node, job->best[thread]);
}

static void list_task(void *data, size_t t, int thread)
{
  table_job *job = data;
  const weft_bn_node *node = &job->nodes[t];
  size_t found = 0;
  (void) thread;
  for (uint64_t k = 0; k < weft_bn_sets_of(node); k++)
    if (node->score[k] > WEFT_BN_NEVER) job->list[t][found++] = (weft_scored){ (double) node->score[k], k };
}

/* Sorts the kept sets of one node, best first, and writes their scores and masks. */
static void collect_task(void *data, size_t t, int thread)
{
  table_job *job = data;
  const weft_bn_ready *ready = job->ready;
  weft_bn_node *node = &job->nodes[t];
  const size_t words = (ready->problem->p + 63) / 64;
  const size_t found = node->kept;
  size_t member[WEFT_BN_MAX_PARENTS + 1];
  (void) thread;
  weft_scored_sort(job->list[t], found);
  memset(node->kept_mask, 0, found * words * sizeof *node->kept_mask);
  for (size_t k = 0; k < found; k++) {
    node->kept_score[k] = (int64_t) job->list[t][k].score;
    size_t m = weft_bn_members(&ready->binomials, node->universe, node->offset, job->list[t][k].index, member);
    for (size_t j = 0; j < m; j++) {
      const size_t v = node->candidate[member[j]];
      node->kept_mask[k * words + v / 64] |= UINT64_C(1) << (v % 64);
    }
  }
}

weft_status weft_bn_collect(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes, size_t count,
                            weft_scored **list, double done)
{
  weft_status st = WEFT_OK;
  const size_t words = (ready->problem->p + 63) / 64;
  table_job job = { .ready = ready, .nodes = nodes, .list = list };
  for (size_t k = 0; k < count; k++) {
    WEFT_TAKE(nodes[k].kept_score, keep, nodes[k].kept);
    WEFT_TAKE(nodes[k].kept_mask, keep, nodes[k].kept * words);
  }
  WEFT_TRY(weft_bn_run_tasks(ctx, ready->problem->threads, count, collect_task, &job, done, done));
done:
  return st;
}

/* ---- the whole ---- */

static weft_status make_nodes(weft_arena *mem, const weft_bn_ready *ready, weft_bn_node *nodes)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = ready->problem;
  const size_t p = problem->p;
  for (size_t i = 0; i < p; i++) {
    weft_bn_node *node = &nodes[i];
    memset(node, 0, sizeof *node);
    node->node = i;
    WEFT_TAKE(node->candidate, mem, p);
    for (size_t v = 0; v < p; v++)
      if (v != i && problem->allowed[i + p * v]) node->candidate[node->universe++] = v;
    node->max_parents = (size_t) problem->max_parents[i];
    if (node->max_parents > node->universe) node->max_parents = node->universe;
    weft_bn_offsets(&ready->binomials, node->universe, node->max_parents, node->offset);
  }
done:
  return st;
}

int weft_bn_joint_pays(const weft_bn_ready *ready, const weft_bn_node *nodes, const uint64_t *offset)
{
  const weft_bn_problem *problem = ready->problem;
  const int interventions = weft_bn_gauss(problem) ? problem->groups > 1 : problem->set != NULL;
  double sets = 0;
  for (size_t i = 0; i < problem->p; i++) sets += (double) weft_bn_sets_of(&nodes[i]);
  return weft_bn_counts_jointly(problem->score, interventions, (double) offset[ready->max_parents + 2], sets);
}

/* Raw scores, shares, pruning and sorted lists of `count` nodes from job->nodes on; what is kept goes to `keep`. */
static weft_status score_batch(weft_ctx *ctx, weft_arena *keep, table_job *job, size_t count, double from, double to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_bn_ready *ready = job->ready;
  const size_t threads = ready->problem->threads;
  uint64_t at = 0;
  for (size_t k = 0; k < count; k++) {
    job->nodes[k].score = job->raw + at;
    at += weft_bn_sets_of(&job->nodes[k]);
  }
  if (!job->joint) WEFT_TRY(weft_bn_count_nodes(ctx, ready, job->nodes, count, from, to));
  WEFT_TRY(weft_bn_run_tasks(ctx, threads, count, score_task, job, to, to));
  WEFT_TAKE(job->list, &mem, count);
  for (size_t k = 0; k < count; k++) WEFT_TAKE(job->list[k], &mem, job->nodes[k].kept);
  WEFT_TRY(weft_bn_run_tasks(ctx, threads, count, list_task, job, to, to));
  WEFT_TRY(weft_bn_collect(ctx, keep, ready, job->nodes, count, job->list, to));
done:
  weft_arena_end(&mem);
  return st;
}

/* One past the last node of the batch that begins with `first`. */
static size_t batch_end(const weft_bn_node *nodes, size_t p, size_t first)
{
  uint64_t sets = weft_bn_sets_of(&nodes[first]);
  size_t last = first + 1;
  while (last < p && sets + weft_bn_sets_of(&nodes[last]) <= BATCH_SETS) sets += weft_bn_sets_of(&nodes[last++]);
  return last;
}

/* Memory that all batches use in turn. */
static weft_status make_batch_memory(weft_arena *mem, const weft_bn_ready *ready, const weft_bn_node *nodes,
                                     table_job *out)
{
  weft_status st = WEFT_OK;
  const size_t p = ready->problem->p, threads = ready->problem->threads;
  uint64_t largest = 0, most = 0;
  for (size_t first = 0, last; first < p; first = last) {
    uint64_t sets = 0;
    last = batch_end(nodes, p, first);
    for (size_t k = first; k < last; k++) {
      sets += weft_bn_sets_of(&nodes[k]);
      if (weft_bn_sets_of(&nodes[k]) > most) most = weft_bn_sets_of(&nodes[k]);
    }
    if (sets > largest) largest = sets;
  }
  WEFT_TAKE(out->raw, mem, largest);
  WEFT_TAKE(out->best, mem, threads);
  WEFT_TAKE(out->share, mem, threads);
  for (size_t t = 0; t < threads; t++) {
    WEFT_TAKE(out->best[t], mem, most);
    WEFT_TAKE(out->share[t], mem, p);
  }
done:
  return st;
}

/* Puts the nodes' lists one after another into a table in `keep`, and drops the lists. Refuses a node without sets
 * and a table of 2^31 sets or more. */
static weft_status join_nodes(weft_ctx *ctx, weft_arena *keep, const weft_bn_ready *ready, weft_bn_node *nodes,
                              weft_bn_table *out)
{
  weft_status st = WEFT_OK;
  const size_t p = ready->problem->p, words = (p + 63) / 64;
  size_t total = 0;
  for (size_t i = 0; i < p; i++) {
    total += nodes[i].kept;
    if (!nodes[i].kept)
      WEFT_TRY(weft_fail_column(ctx, i,
                                "has no parent set that can be scored: its levels or those of required parents are too "
                                "many for the penalty of this score, or it is numeric and constant or has too few "
                                "rows."));
  }
  if (total > INT32_MAX)
    WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT,
                       "A table must have at most %d parent sets; %.0f would be kept. Lower "
                       "`max_parents`, or give `candidates`.",
                       INT32_MAX, (double) total));
  out->p = p;
  out->words = words;
  out->bits = ready->bits;
  WEFT_TAKE(out->start, keep, p + 1);
  WEFT_TAKE(out->score, keep, total);
  WEFT_TAKE(out->mask, keep, total * words);
  out->start[0] = 0;
  for (size_t i = 0; i < p; i++) {
    const int64_t at = out->start[i];
    memcpy(out->score + at, nodes[i].kept_score, nodes[i].kept * sizeof *out->score);
    memcpy(out->mask + at * (int64_t) words, nodes[i].kept_mask, nodes[i].kept * words * sizeof *out->mask);
    out->start[i + 1] = at + (int64_t) nodes[i].kept;
    weft_arena_drop(keep, nodes[i].kept_score);
    weft_arena_drop(keep, nodes[i].kept_mask);
  }
done:
  return st;
}

/* Counts jointly or child by child, whichever weft_bn_joint_pays() says, and scores the nodes in batches of at most
 * BATCH_SETS sets. */
weft_status weft_bn_prune_cpu(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes, double to)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = ready->problem->p;
  uint64_t offset[WEFT_BN_MAX_PARENTS + 3];
  int64_t *joint = NULL;
  weft_bn_offsets(&ready->binomials, p, ready->max_parents + 1, offset);
  if (weft_bn_joint_pays(ready, nodes, offset)) {
    WEFT_TAKE(joint, &mem, offset[ready->max_parents + 2]);
    WEFT_TRY(weft_bn_joint(ctx, ready, joint, offset));
  }
  table_job job = { .ready = ready, .joint = joint, .joint_offset = offset };
  WEFT_TRY(make_batch_memory(&mem, ready, nodes, &job));
  const double from = joint ? 0.7 : 0;
  for (size_t first = 0, last; first < p; first = last) {
    last = batch_end(nodes, p, first);
    job.nodes = nodes + first;
    WEFT_TRY(score_batch(ctx, keep, &job, last - first, from + (to - from) * (double) first / (double) p,
                         from + (to - from) * (double) last / (double) p));
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* Everything from the problem to the table in `keep`; `prune` is the back end's part of it. */
weft_status weft_bn_table_make(weft_ctx *ctx, const weft_bn_problem *problem, weft_bn_prune *prune, weft_arena *keep,
                               weft_bn_table *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const double to = problem->outside ? 0.8 : 1;
  weft_bn_node *nodes;
  weft_bn_ready ready;
  WEFT_TRY(weft_bn_ready_make(ctx, &mem, problem, &ready));
  WEFT_TAKE(nodes, &mem, problem->p);
  WEFT_TRY(make_nodes(&mem, &ready, nodes));
  WEFT_TRY(prune(ctx, keep, &ready, nodes, to));
  if (problem->outside) WEFT_TRY(weft_bn_add_outsiders(ctx, keep, &ready, nodes, to));
  WEFT_TRY(join_nodes(ctx, keep, &ready, nodes, out));
done:
  weft_arena_end(&mem);
  return st;
}

weft_status weft_bn_scores_cpu(weft_ctx *ctx, const weft_bn_problem *problem, weft_arena *keep, weft_bn_table *out)
{
  return weft_bn_table_make(ctx, problem, weft_bn_prune_cpu, keep, out);
}

const weft_bn_ops weft_bn_cpu = { weft_bn_scores_cpu, weft_bn_chain_cpu, weft_bn_optimum_cpu, weft_bn_edges_orders_cpu,
                                  weft_bn_edges_graphs_cpu };

/* ---- screening ---- */

typedef struct screen_job {
  weft_bn_ready *ready;
  weft_bn_cells *cells;
  double *information;
} screen_job;

/* Pairs (i, j), j < i: I = (Σ_ij - Σ_i - Σ_j + f(n)) / n with f(N) = N ln N. */
static void screen_task(void *data, size_t i, int thread)
{
  screen_job *job = data;
  const weft_bn_problem *problem = job->ready->problem;
  weft_bn_counter *counter = &job->ready->counters[thread];
  weft_bn_cells *root = &job->cells[2 * thread], *mine = root + 1;
  const size_t n = problem->n, p = problem->p;
  uint32_t occupied;
  job->information[i + p * i] = 0;
  weft_bn_root(&job->ready->columns, NULL, root);
  weft_bn_refine(counter, root, i, mine);
  for (size_t j = 0; j < i; j++) {
    int64_t both = weft_bn_leaf(counter, mine, j, -1, &occupied), own = weft_bn_value(counter, mine, -1);
    int64_t other = weft_bn_leaf(counter, root, j, -1, &occupied), all = weft_bn_value(counter, root, -1);
    const double rows = (double) n / problem->completions;
    double value = n > 0 ? (double) (both - own - other + all) / (rows * job->ready->unit) : 0;
    job->information[i + p * j] = job->information[j + p * i] = value > 0 ? value : 0;
  }
}

weft_status weft_bn_screen(weft_ctx *ctx, const weft_bn_problem *problem, double *information)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_bn_ready ready;
  screen_job job = { &ready, NULL, information };
  WEFT_TRY(weft_bn_ready_make(ctx, &mem, problem, &ready));
  WEFT_TAKE(job.cells, &mem, 2 * problem->threads);
  for (size_t k = 0; k < 2 * problem->threads; k++) WEFT_TRY(weft_bn_cells_make(&mem, &ready.columns, &job.cells[k]));
  WEFT_TRY(weft_bn_run_tasks(ctx, problem->threads, problem->p, screen_task, &job, 0, 1));
done:
  weft_arena_end(&mem);
  return st;
}
