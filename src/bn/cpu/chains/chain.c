/* Ladders of chains over orders, layers or graphs: start, portions of steps in parallel over ladders, swaps of
 * neighbouring temperatures, traces, drawn graphs, and the best graphs of all. A ladder's result depends on the key and
 * its own number alone. */
/* Build: shared. */
#include <math.h>
#include "bn/cpu/chains/chain.h"
#include "bn/cpu/chains/graphs.h"
#include "bn/cpu/chains/order_by_best_graph.h"
#include "bn/cpu/chains/order_by_sum.h"
#include "bn/cpu/chains/partitions.h"
#include "bn/both/joint.h"

typedef struct ladder {
  weft_bn_replica *replica; /* as temperatures stand */
  weft_bn_replica **at;     /* replica at each temperature */
  weft_bn_best best;
  int32_t *picks;
} ladder;

typedef struct chain_job {
  const weft_bn_lists *lists;
  const weft_bn_run *run;
  weft_bn_chains *out;
  weft_bn_kernel kernel;
  ladder *ladders;
  size_t first, count; /* this portion's iterations, from 0 */
} chain_job;

/* ---- best graphs ---- */

static uint64_t hash_of(const int32_t *picks, size_t p)
{
  uint64_t hash = 0;
  for (size_t node = 0; node < p; node++) hash += weft_bn_pick_hash(node, picks[node]);
  return hash;
}

static void add_best_graph(const weft_bn_lists *lists, ladder *chain, const weft_bn_replica *replica, uint64_t stamp)
{
  const int64_t score = weft_bn_best_graph(lists, replica->before, chain->picks);
  weft_bn_best_add(&chain->best, lists->p, score, hash_of(chain->picks, lists->p), stamp, chain->picks);
}

/* ---- set-up ---- */

weft_status weft_bn_lists_make(weft_arena *mem, const weft_bn_table *table, int sum, weft_bn_lists *out)
{
  weft_status st = WEFT_OK;
  const size_t p = table->p, words = table->words;
  *out = (weft_bn_lists){ .table = table, .p = p, .words = words, .unit = ldexp(1.0, table->bits) };
  WEFT_TAKE0(out->users, mem, p * words);
  for (size_t node = 0; node < p; node++)
    for (int64_t k = table->start[node]; k < table->start[node + 1]; k++)
      for (size_t w = 0; w < words; w++)
        for (uint64_t word = table->mask[(size_t) k * words + w]; word; word &= word - 1)
          set_bit(out->users + (64 * w + (size_t) __builtin_ctzll(word)) * words, (int32_t) node);
  if (sum) WEFT_TRY(weft_bn_weights_make(mem, out));
done:
  return st;
}

/* What all sets of a node have in common: `needs` its parents, `needed` the converse; both p × words. `placed`,
 * `ready`: words. */
typedef struct order_room {
  uint64_t *needs, *needed, *placed, *ready;
} order_room;

/* Finds, in `mem`, which parents all sets of a node have in common: these must stand before it in every order. */
static weft_status open_order_room(weft_arena *mem, const weft_bn_lists *lists, order_room *out)
{
  weft_status st = WEFT_OK;
  const weft_bn_table *table = lists->table;
  const size_t p = lists->p, words = lists->words;
  WEFT_TAKE(out->needs, mem, p * words);
  WEFT_TAKE0(out->needed, mem, 64 * words * words);
  WEFT_TAKE(out->placed, mem, words);
  WEFT_TAKE(out->ready, mem, words);
  memset(out->needs, 0xff, p * words * sizeof *out->needs);
  for (size_t node = 0; node < p; node++) {
    uint64_t *own = out->needs + node * words;
    for (int64_t k = table->start[node]; k < table->start[node + 1]; k++)
      for (size_t w = 0; w < words; w++) own[w] &= table->mask[(size_t) k * words + w];
    for (size_t w = 0; w < words; w++)
      for (uint64_t word = own[w]; word; word &= word - 1)
        set_bit(out->needed + (64 * w + (size_t) __builtin_ctzll(word)) * words, (int32_t) node);
  }
done:
  return st;
}

/* A random order in which every node comes after what it needs: each place is drawn from the nodes that are ready. */
static int draw_order(const weft_bn_lists *lists, const order_room *room, weft_rng rng, int32_t *order)
{
  const size_t p = lists->p, words = lists->words;
  size_t ready = 0;
  memset(room->placed, 0, words * sizeof *room->placed);
  memset(room->ready, 0, words * sizeof *room->ready);
  for (size_t node = 0; node < p; node++)
    if (fits(room->needs + node * words, room->placed, words)) {
      set_bit(room->ready, (int32_t) node);
      ready++;
    }
  for (size_t k = 0; k < p; k++) {
    if (!ready) return 0;
    size_t left = weft_draw_below(rng, k, ready), w = 0;
    for (size_t here; (here = (size_t) __builtin_popcountll(room->ready[w])) <= left; w++) left -= here;
    uint64_t word = room->ready[w];
    while (left--) word &= word - 1;
    const int32_t chosen = (int32_t) (64 * w) + __builtin_ctzll(word);
    order[k] = chosen;
    room->ready[w] &= ~(word & -word);
    ready--;
    set_bit(room->placed, chosen);
    for (size_t u = 0; u < words; u++)
      for (uint64_t child = room->needed[(size_t) chosen * words + u]; child; child &= child - 1) {
        const int32_t node = (int32_t) (64 * u) + __builtin_ctzll(child);
        if (fits(room->needs + (size_t) node * words, room->placed, words)) {
          set_bit(room->ready, node);
          ready++;
        }
      }
  }
  return 1;
}

/* Whether every node comes after what it needs. */
static int order_works(const weft_bn_lists *lists, const order_room *room, const int32_t *order)
{
  memset(room->placed, 0, lists->words * sizeof *room->placed);
  for (size_t k = 0; k < lists->p; k++) {
    if (!fits(room->needs + (size_t) order[k] * lists->words, room->placed, lists->words)) return 0;
    set_bit(room->placed, order[k]);
  }
  return 1;
}

/* Draws the orders that are not given (order[0] < 0), each from a stream of its own number, and refuses given ones
 * in which a required parent stands after its child. */
weft_status weft_bn_start_orders(weft_ctx *ctx, const weft_bn_lists *lists, const weft_bn_run *run, int32_t *order)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t p = lists->p, replicas = run->ladders * run->temperatures;
  order_room room;
  WEFT_TRY(open_order_room(&mem, lists, &room));
  for (size_t r = 0; r < replicas; r++) {
    const weft_rng rng = { run->key, WEFT_BN_STARTS + (uint32_t) (run->ladder0 * run->temperatures + r) };
    int32_t *own = order + r * p;
    if (r % 64 == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
    if (own[0] < 0 && !draw_order(lists, &room, rng, own))
      WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "No order of the nodes has all required parents before their children."));
    if (!order_works(lists, &room, own))
      WEFT_TRY(weft_fail(ctx, WEFT_ERR_INPUT, "`start` must have every required parent before its child."));
  }
done:
  weft_arena_end(&mem);
  return st;
}

static void find_before(const weft_bn_lists *lists, weft_bn_replica *replica, uint64_t *placed)
{
  memset(placed, 0, lists->words * sizeof *placed);
  for (size_t k = 0; k < lists->p; k++) {
    const int32_t node = replica->order[k];
    memcpy(replica->before + (size_t) node * lists->words, placed, lists->words * sizeof *placed);
    set_bit(placed, node);
  }
}

static weft_status make_replica(weft_arena *mem, const weft_bn_lists *lists, const weft_bn_run *run,
                                weft_bn_replica *replica)
{
  weft_status st = WEFT_OK;
  memset(replica, 0, sizeof *replica);
  WEFT_TAKE(replica->order, mem, lists->p);
  WEFT_TAKE(replica->before, mem, lists->p * lists->words);
  WEFT_TAKE(replica->value, mem, lists->p);
  WEFT_TAKE(replica->pick, mem, lists->p);
  WEFT_TAKE(replica->children, mem, lists->p * lists->words);
  WEFT_TAKE(replica->improvable, mem, lists->words);
  if (run->graphs)
    WEFT_TRY(weft_bn_graphs_make(mem, lists, replica));
  else if (run->layers)
    WEFT_TRY(weft_bn_layers_make(mem, lists, replica));
done:
  return st;
}

/* Layers or a graph as the caller gives them, or drawn given the order. `number`: of the replica among all. */
static weft_status start_layers(weft_ctx *ctx, const chain_job *job, size_t number, const int32_t *layer,
                                weft_bn_replica *replica)
{
  weft_status st = WEFT_OK;
  const weft_bn_run *run = job->run;
  const weft_rng rng = { run->key, WEFT_BN_STARTS + (uint32_t) (run->ladder0 * run->temperatures + number) };
  if (run->graphs && layer[0] < 0)
    weft_bn_graphs_draw(job->lists, replica, rng, job->lists->p);
  else if (run->graphs)
    WEFT_TRY(weft_bn_graphs_read(ctx, job->lists, replica, layer));
  else if (layer[0] < 0)
    weft_bn_layers_draw(job->lists, replica, rng, job->lists->p); /* the order took p draws */
  else if (!weft_bn_layers_read(job->lists, replica, layer))
    WEFT_TRY(weft_bn_layers_refuse(ctx));
done:
  return st;
}

/* Makes every replica's state in `mem`, at its starting order or layers, and notes the best graph of each. */
static weft_status make_ladders(weft_ctx *ctx, weft_arena *mem, chain_job *job)
{
  weft_status st = WEFT_OK;
  const weft_bn_lists *lists = job->lists;
  const size_t p = lists->p, temperatures = job->run->temperatures;
  uint64_t *placed;
  WEFT_TRY(weft_bn_start_orders(ctx, lists, job->run, job->out->order));
  if (job->run->layers && !job->run->graphs) WEFT_TRY(weft_bn_layers_check(ctx, p, job->run, job->out->layer));
  WEFT_TAKE(placed, mem, lists->words);
  for (size_t c = 0; c < job->run->ladders; c++) {
    ladder *chain = &job->ladders[c];
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_TRY(weft_bn_best_make(mem, p, job->run->best, &chain->best));
    WEFT_TAKE(chain->picks, mem, p);
    WEFT_TAKE(chain->replica, mem, temperatures);
    WEFT_TAKE(chain->at, mem, temperatures);
    for (size_t temperature = 0; temperature < temperatures; temperature++) {
      weft_bn_replica *replica = chain->at[temperature] = &chain->replica[temperature];
      const size_t number = c * temperatures + temperature;
      WEFT_TRY(make_replica(mem, lists, job->run, replica));
      memcpy(replica->order, job->out->order + number * p, p * sizeof *replica->order);
      find_before(lists, replica, placed);
      if (job->run->layers) WEFT_TRY(start_layers(ctx, job, number, job->out->layer + number * p, replica));
      job->kernel.start(lists, replica);
      add_best_graph(lists, chain, replica, weft_bn_stamp(0, temperature));
    }
  }
done:
  return st;
}

/* ---- iterations ---- */

/* Pairs (0,1), (2,3) ... and (1,2), (3,4) ... in turn. */
static void swap_temperatures(const chain_job *job, size_t c, uint64_t round)
{
  const weft_bn_run *run = job->run;
  ladder *chain = &job->ladders[c];
  double *counted = job->out->swapped + 2 * c * (run->temperatures - 1);
  for (size_t temperature = round & 1; temperature + 1 < run->temperatures; temperature += 2) {
    const weft_rng rng = { run->key, WEFT_BN_SWAPS + (uint32_t) (run->ladder0 + c) };
    const double difference = (double) (chain->at[temperature + 1]->score - chain->at[temperature]->score);
    counted[2 * temperature + 1]++;
    if (!weft_bn_accept((run->beta[temperature] - run->beta[temperature + 1]) / job->lists->unit, difference,
                        weft_draw_words(rng, round, (uint32_t) temperature)))
      continue;
    counted[2 * temperature]++;
    weft_bn_replica *replica = chain->at[temperature];
    double counts[WEFT_BN_MAX_MOVES + 1]; /* these stay with the temperature */
    memcpy(counts, replica->accepted, sizeof counts);
    memcpy(replica->accepted, chain->at[temperature + 1]->accepted, sizeof counts);
    memcpy(chain->at[temperature + 1]->accepted, counts, sizeof counts);
    chain->at[temperature] = chain->at[temperature + 1];
    chain->at[temperature + 1] = replica;
  }
}

/* A graph drawn given the order, or the replica's own, as picks; draws first .. first + p - 1. Returns its score. */
static int64_t draw_graph(const weft_bn_lists *lists, const weft_bn_replica *replica, weft_rng rng, uint64_t first,
                          int32_t *picks)
{
  const weft_bn_table *table = lists->table;
  int64_t score = 0;
  if (replica->graph) {
    memcpy(picks, replica->pick, lists->p * sizeof *picks);
    return replica->score;
  }
  for (size_t node = 0; node < lists->p; node++) {
    picks[node] =
        weft_bn_draw_set(lists, node, replica->before + node * lists->words, weft_bn_layer_before(lists, replica, node),
                         replica->value[node], weft_draw_uniform(rng, first + node));
    score += table->score[table->start[node] + picks[node]];
  }
  return score;
}

/* Records the coldest order after iteration `it` (from 1). */
static void save(const chain_job *job, size_t c, size_t it)
{
  const weft_bn_run *run = job->run;
  const weft_bn_lists *lists = job->lists;
  ladder *chain = &job->ladders[c];
  const weft_bn_replica *replica = chain->at[0];
  const size_t p = lists->p, saved = run->iterations / run->thin, row = it / run->thin - 1;
  job->out->trace[c * saved + row] = (double) replica->score / lists->unit;
  if (!run->sum) return;
  if (replica->graph) weft_bn_graphs_sort(lists, chain->at[0]);
  add_best_graph(lists, chain, replica, weft_bn_stamp(it, 0));
  const size_t skipped = run->burn_in / run->thin;
  if (row < skipped) return;
  const size_t sample = c * job->out->samples + row - skipped;
  int32_t *picks = job->out->sampled + sample * p;
  const weft_rng rng = { run->key, WEFT_BN_GRAPHS + (uint32_t) (run->ladder0 + c) };
  const int64_t score = draw_graph(lists, replica, rng, (run->first + it) * p, picks);
  job->out->sample_score[sample] = (double) score / lists->unit;
  weft_bn_best_add(&chain->best, p, score, hash_of(picks, p), weft_bn_stamp(it, 1), picks);
}

/* Runs one ladder over the portion's iterations: steps of each temperature up to the next swap or save, then that. */
static void ladder_task(void *data, size_t c, int thread)
{
  chain_job *job = data;
  const weft_bn_run *run = job->run;
  ladder *chain = &job->ladders[c];
  (void) thread;
  for (size_t it = job->first; it < job->first + job->count;) {
    /* up to the next swap, save or end */
    const uint64_t absolute = run->first + it;
    size_t count = job->first + job->count - it;
    if (run->temperatures > 1 && run->swap_every - absolute % run->swap_every < count)
      count = run->swap_every - (size_t) (absolute % run->swap_every);
    if (run->thin - it % run->thin < count) count = run->thin - it % run->thin;
    for (size_t temperature = 0; temperature < run->temperatures; temperature++) {
      const weft_rng rng = {
        run->key,
        WEFT_BN_STEPS + (uint32_t) ((run->ladder0 + c) * run->temperatures + temperature)
      };
      if (job->lists->p > 1)
        job->kernel.steps(job->lists, chain->at[temperature], rng, run->beta[temperature], absolute, count,
                          &chain->best, weft_bn_stamp(it + 1, temperature));
      else /* a single node has one order; iterations count all the same */
        chain->at[temperature]->accepted[WEFT_BN_MAX_MOVES] += (double) count;
    }
    it += count;
    if (it % run->thin == 0) save(job, c, it);
    if (run->temperatures > 1 && (absolute + count) % run->swap_every == 0)
      swap_temperatures(job, c, (absolute + count) / run->swap_every);
  }
}

/* Runs all iterations in portions of some 40 ms, over ladders in parallel, with a poll after each portion. */
static weft_status iterate(weft_ctx *ctx, chain_job *job, size_t threads)
{
  weft_status st = WEFT_OK;
  const size_t iterations = job->run->iterations, ladders = job->run->ladders;
  size_t portion = 16;
  while (job->first < iterations && st == WEFT_OK) {
    const double from = (double) job->first / (double) iterations;
    double took = 0;
    job->count = portion < iterations - job->first ? portion : iterations - job->first;
    if (ladders > 64 * threads) { /* too many to go between two polls */
      st = weft_bn_run_tasks(ctx, threads, ladders, ladder_task, job, from,
                             from + (double) job->count / (double) iterations);
      job->first += job->count;
      portion = 256;
      continue;
    }
    st = weft_bn_run_timed(ctx, threads, ladders, ladder_task, job, from, &took);
    job->first += job->count;
    if (took < 0.02)
      portion *= took < 0.005 ? 4 : 2;
    else if (took > 0.06 && portion > 1)
      portion /= 2;
  }
  return st;
}

/* ---- the whole ---- */

static void merge_best(const chain_job *job, weft_bn_best *all)
{
  const size_t p = job->lists->p;
  for (size_t c = 0; c < job->run->ladders; c++) {
    const weft_bn_best *best = &job->ladders[c].best;
    for (size_t k = 0; k < best->found; k++)
      weft_bn_best_add(all, p, best->score[k], best->hash[k], (uint64_t) c << 32 | k, best->sets + k * p);
  }
  for (size_t k = 0; k < all->found; k++) job->out->best_score[k] = (double) all->score[k] / job->lists->unit;
  job->out->found = all->found;
}

/* The CPU's weft_bn_chain_op: as said in bn.h, out's orders (and layers) are where the chains start, and then where
 * they end. */
weft_status weft_bn_chain_cpu(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_run *run, weft_bn_chains *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_bn_lists lists;
  weft_bn_best all = { .most = run->best, .sets = out->best_sets };
  chain_job job = { &lists, run, out, { 0 }, NULL, 0, 0 };
  memset(out->swapped, 0, 2 * run->ladders * (run->temperatures - 1) * sizeof *out->swapped);
  WEFT_TRY(weft_bn_lists_make(&mem, table, run->sum, &lists));
  if (run->graphs) WEFT_TRY(weft_bn_graphs_prepare(ctx, &mem, &lists));
  if (run->layers && !run->graphs) WEFT_TRY(weft_bn_layers_prepare(&mem, &lists));
  job.kernel = (run->graphs   ? weft_bn_graphs_kernel
                : run->layers ? weft_bn_layers_kernel
                : run->sum    ? weft_bn_sum_kernel
                              : weft_bn_max_kernel)(lists.words);
  WEFT_TAKE(all.score, &mem, run->best);
  WEFT_TAKE(all.hash, &mem, run->best);
  WEFT_TAKE(all.stamp, &mem, run->best);
  WEFT_TAKE(job.ladders, &mem, run->ladders);
  WEFT_TRY(make_ladders(ctx, &mem, &job));
  WEFT_TRY(iterate(ctx, &job, (size_t) ctx->threads));
  merge_best(&job, &all);
  for (size_t c = 0; c < run->ladders; c++)
    for (size_t temperature = 0; temperature < run->temperatures; temperature++) {
      weft_bn_replica *replica = job.ladders[c].at[temperature];
      const size_t number = c * run->temperatures + temperature, moves = weft_bn_moves(run);
      if (run->graphs) {
        weft_bn_graphs_sort(&lists, replica);
        memcpy(out->layer + number * table->p, replica->pick, table->p * sizeof *replica->pick);
      } else if (run->layers) {
        weft_bn_layers_write(&lists, replica, out->layer + number * table->p);
      }
      memcpy(out->order + number * table->p, replica->order, table->p * sizeof *replica->order);
      memcpy(out->accepted + (moves + 1) * number, replica->accepted, moves * sizeof *replica->accepted);
      out->accepted[(moves + 1) * number + moves] = replica->accepted[WEFT_BN_MAX_MOVES];
    }
done:
  weft_arena_end(&mem);
  return st;
}
