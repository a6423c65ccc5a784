/* Chains on the device: for best graphs a block per ladder, a warp per temperature (steps.cuh); for sums many
 * ladders per block (sums.cuh); over layers again a warp per temperature (partition_steps.cuh). Swaps of
 * temperatures exchange places in an index. Ladders are processed in groups that fit the device, in launches of about
 * 30 ms. */
#include <chrono>
#include <cmath>
#include <cstring>
#include "bn/cuda/chains/steps.cuh"
#include "bn/cuda/chains/sums.cuh"
#include "bn/cuda/bn.cuh"
#include "bn/cuda/chains/partition_steps.cuh"
#include "bn/both/partitions.h"

#define LAUNCH_SECONDS 0.03
#define MAX_STEPS 0x40000000u /* between two checks of what is due */

/* ---- kernels ---- */

/* Scores of the orders to start from; `order` is in the state. */
template <int WORDS> __global__ static void start_chains(chain_job job)
{
  extern __shared__ uint64_t shared[];
  const uint32_t lane = threadIdx.x % 32, temperature = threadIdx.x / 32;
  const uint64_t number = (uint64_t) blockIdx.x * job.temperatures + temperature;
  const replica chain = view(job, job.state + number * job.at.step);
  int64_t score;
  int32_t *picks = job.sum ? chain.fresh_pick : chain.pick;
  if (WORDS == 0 && !job.sum) {
    score = start_wide(job, chain, lane);
  } else {
    uint64_t *placed = shared + temperature * job.words;
    for (uint32_t w = lane; w < job.words; w += 32) placed[w] = 0;
    __syncwarp();
    for (uint32_t k = 0; k < job.p; k++) {
      const int32_t node = chain.order[k];
      for (uint32_t w = lane; w < job.words; w += 32) chain.before[(uint64_t) node * job.words + w] = placed[w];
      __syncwarp();
      if (!lane) placed[node >> 6] |= (uint64_t) 1 << (node & 63);
      __syncwarp();
    }
    score = best_graph(job, chain, picks, lane);
  }
  keep_graph(job, number, score, hash_of(picks, job.p, lane), weft_bn_stamp(0, temperature), picks, lane);
  if (job.sum) {
    score = 0;
    for (uint32_t node = 0; node < job.p; node++) {
      const int64_t value = node_value<WORDS>(job, node, chain.before + (uint64_t) node * job.words, chain.mid, lane);
      score += value;
      __syncwarp();
      if (!lane) chain.value[node] = value;
    }
  }
  if (!lane) {
    job.now[number] = score;
    job.slot[number] = temperature;
  }
}

template <int WORDS, int B>
/* Best graphs: iterations from .. from + count - 1 of this run (from 0) of every ladder. */
__global__ static void __launch_bounds__(32 * MAX_TEMPERATURES, B)
    run_chains(chain_job job, uint64_t from, uint64_t count)
{
  extern __shared__ uint64_t shared[];
  __shared__ uint32_t slot[MAX_TEMPERATURES];
  __shared__ int64_t score_at[MAX_TEMPERATURES];
  __shared__ uint32_t accepted[MAX_TEMPERATURES][3];
  const uint32_t lane = threadIdx.x % 32, temperature = threadIdx.x / 32, c = blockIdx.x, ladder = job.ladder0 + c;
  const uint64_t first_replica = (uint64_t) c * job.temperatures, list = first_replica + temperature;
  unsigned char *own = job.in_shared ? (unsigned char *) shared : job.state + first_replica * job.at.step;
  walker walk = { 0, accepted[temperature], INT64_MIN, list };
  nodes<WORDS ? WORDS : 1> held = {};
  if (job.in_shared)
    copy_state(own + (uint64_t) temperature * job.at.step, job.state + list * job.at.step, job.at.step, lane);
  if (lane < 3) accepted[temperature][lane] = 0;
  if (!lane) slot[temperature] = job.slot[list];
  __syncthreads();
  walk.score = job.now[first_replica + slot[temperature]];
  replica chain = view(job, own + (uint64_t) slot[temperature] * job.at.step);
  if (WORDS) load_nodes<WORDS ? WORDS : 1>(job, chain, held, lane);
  if (job.found.count[list] == job.most) walk.threshold = job.found.score[list * job.most + job.most - 1];
  const weft_rng rng = { job.key, WEFT_BN_STEPS + (ladder * job.temperatures + temperature) };
  const double scale = job.scale[temperature];
  drawn steps = { 0, 0 };
  bool any_drawn = false;
  for (uint64_t it = from; it < from + count;) {
    const uint64_t absolute = job.first + it, left = from + count - it;
    uint32_t now = (uint32_t) (left < MAX_STEPS ? left : MAX_STEPS);
    const uint32_t to_swap = job.swap_every - (uint32_t) (absolute % job.swap_every);
    const uint64_t to_save = job.thin - it % job.thin;
    if (job.temperatures > 1 && to_swap < now) now = to_swap;
    if (to_save < now) now = (uint32_t) to_save;
    for (uint32_t k = 0; k < now && job.p > 1; k++) {
      const uint32_t number = ((uint32_t) absolute + k) % 32;
      if (!number || !any_drawn) {
        steps = draw_steps(rng, (absolute + k) / 32, job.p, lane);
        any_drawn = true;
      }
      const weft_bn_move move = drawn_move(steps, number);
      const double log_u = __shfl_sync(FULL, steps.log_u, (int) number);
      if constexpr (WORDS > 0)
        step_max<WORDS>(job, chain, held, move, log_u, scale, it + k + 1, temperature, walk, lane);
      else
        step_wide(job, chain, move, log_u, scale, it + k + 1, temperature, walk, lane);
      __syncwarp();
    }
    it += now;
    if (temperature == 0 && it % job.thin == 0 && !lane)
      job.trace[(uint64_t) c * job.saved + it / job.thin - 1] = weft_div((double) walk.score, job.unit);
    if (job.temperatures > 1 && (absolute + now) % job.swap_every == 0) {
      const uint64_t round = (absolute + now) / job.swap_every;
      if (!lane) score_at[temperature] = walk.score;
      __syncthreads();
      const uint32_t lower = ((temperature ^ (uint32_t) round) & 1)
                                 ? temperature - 1
                                 : temperature; /* the pair that this temperature is in */
      int taken = 0;
      if (lower != UINT32_MAX && lower + 1 < job.temperatures) {
        const weft_rng swaps = { job.key, WEFT_BN_SWAPS + ladder };
        taken = weft_bn_accept(job.swap_scale[lower], (double) (score_at[lower + 1] - score_at[lower]),
                               weft_draw_words(swaps, round, lower));
        if (!lane && temperature == lower) {
          uint64_t *counted = job.swapped + 2 * ((uint64_t) c * (job.temperatures - 1) + lower);
          counted[1]++;
          counted[0] += taken;
          if (taken) {
            const uint32_t other = slot[temperature];
            slot[temperature] = slot[temperature + 1];
            slot[temperature + 1] = other;
          }
        }
        if (taken && WORDS) store_nodes<WORDS ? WORDS : 1>(job, chain, held, lane);
      }
      __syncthreads();
      if (taken) {
        walk.score = score_at[temperature == lower ? temperature + 1 : temperature - 1];
        chain = view(job, own + (uint64_t) slot[temperature] * job.at.step);
        if (WORDS) load_nodes<WORDS ? WORDS : 1>(job, chain, held, lane);
      }
      __syncthreads(); /* the scores are read */
    }
  }
  if (WORDS) store_nodes<WORDS ? WORDS : 1>(job, chain, held, lane);
  __syncthreads();
  if (!lane) {
    job.now[first_replica + slot[temperature]] = walk.score;
    job.slot[list] = slot[temperature];
    for (int k = 0; k < 3; k++) job.accepted[4 * list + k] += accepted[temperature][k];
    job.accepted[4 * list + 3] += count;
  }
  if (job.in_shared)
    copy_state(job.state + list * job.at.step, own + (uint64_t) temperature * job.at.step, job.at.step, lane);
}

/* ---- host ---- */

#define SEND(to, from, count) \
  do { \
    auto *to_ = (to); \
    size_t count_ = (count); \
    WEFT_DEVICE_TAKE(to_, mem, count_); \
    if (count_) \
      WEFT_CUDA(cudaMemcpyAsync((void *) to_, (from), count_ * sizeof *to_, cudaMemcpyHostToDevice, mem->stream)); \
    (to) = to_; \
  } while (0)

/* The sets as lists of members, for wide networks. */
static weft_status send_members(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_table *table, chain_job *job)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const size_t total = (size_t) table->start[table->p];
  size_t width = 1;
  uint16_t *member;
  for (size_t k = 0; k < total; k++) {
    size_t m = 0;
    for (size_t w = 0; w < table->words; w++) m += (size_t) __builtin_popcountll(table->mask[k * table->words + w]);
    if (m > width) width = m;
  }
  WEFT_TAKE(member, &host, total * width);
  for (size_t k = 0; k < total; k++) {
    size_t m = 0;
    for (size_t w = 0; w < table->words; w++)
      for (uint64_t word = table->mask[k * table->words + w]; word; word &= word - 1)
        member[k * width + m++] = (uint16_t) (64 * w + (size_t) __builtin_ctzll(word));
    for (; m < width; m++) member[k * width + m] = 0xffff;
  }
  SEND(job->member, member, total * width);
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  job->width = (uint32_t) width;
done:
  weft_arena_end(&host);
  return st;
}

/* Sums: the sets, each with its node as a mark (sums.cuh). */
static weft_status send_marked(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_lists *lists, chain_job *job)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const weft_bn_weights *weights = lists->weights;
  const size_t words = lists->words;
  uint64_t *mask;
  WEFT_TAKE(mask, &host, weights->count * WEFT_BN_CHUNK * words);
  memcpy(mask, weights->mask, weights->count * WEFT_BN_CHUNK * words * sizeof *mask);
  for (size_t node = 0; node < lists->p; node++)
    for (size_t k = (size_t) weights->begin[node] * WEFT_BN_CHUNK;
         k < (size_t) weights->begin[node + 1] * WEFT_BN_CHUNK; k++)
      mask[k * words + node / 64] |= (uint64_t) 1 << node % 64;
  SEND(job->chunk_mask, mask, weights->count * WEFT_BN_CHUNK * words);
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
done:
  weft_arena_end(&host);
  return st;
}

/* Sends the table's sets, and for sums their weights, to the device in `mem`, and fills in the job's pointers and
 * sizes. */
static weft_status send_lists(weft_ctx *ctx, weft_device_arena *mem, const weft_bn_lists *lists, const weft_bn_run *run,
                              chain_job *job)
{
  weft_status st = WEFT_OK;
  const weft_bn_table *table = lists->table;
  const size_t p = lists->p, words = lists->words, total = (size_t) table->start[p];
  SEND(job->start, table->start, p + 1);
  SEND(job->score, table->score, total);
  SEND(job->mask, table->mask, total * words);
  SEND(job->users, lists->users, p * words);
  if (!run->sum && words > 2) WEFT_TRY(send_members(ctx, mem, table, job));
  if (run->sum) {
    const weft_bn_weights *weights = lists->weights;
    SEND(job->begin, weights->begin, p + 1);
    SEND(job->chunk, weights->chunk, weights->count);
    SEND(job->weight, weights->weight, weights->count * WEFT_BN_CHUNK);
    job->long_list = (uint32_t) (weights->count / p);
    if (run->layers) {
      SEND(job->chunk_mask, weights->mask, weights->count * WEFT_BN_CHUNK * words);
      SEND(job->offered, lists->offered, p * words);
      SEND(job->log_factorial, lists->log_factorial, p + 1);
    } else {
      WEFT_TRY(send_marked(ctx, mem, lists, job));
    }
  }
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  job->p = (uint32_t) p;
  job->words = (uint32_t) words;
  job->unit = lists->unit;
  job->sum = run->sum && !run->layers;
  job->layers = run->layers != 0;
  job->moves = (uint32_t) weft_bn_moves(run);
done:
  return st;
}

/* Where the parts of a replica's state begin, in bytes, each on a multiple of 8; `step` is the whole. */
static layout make_layout(size_t p, size_t words, int sum, int layers)
{
  layout at;
  const int wide = !sum && words > 2;
  size_t bytes = wide || layers ? 0 : 8 * p * words;
  const size_t numbers = (4 * p + 7) / 8 * 8;
  at.value = (uint32_t) bytes;
  bytes += sum ? 8 * p : 0;
  at.pick = (uint32_t) bytes;
  bytes += numbers;
  at.fresh = (uint32_t) bytes;
  bytes += sum ? 8 * p : numbers;
  at.order = (uint32_t) bytes;
  bytes += numbers;
  at.place = (uint32_t) bytes;
  bytes += wide || layers ? numbers : 0;
  at.mid = (uint32_t) bytes;
  bytes += layers ? layers_bytes(p, words) : 16 * words;
  at.step = (uint32_t) bytes;
  return at;
}

typedef void run_kernel(chain_job, uint64_t, uint64_t);
typedef void sum_kernel(chain_job, uint32_t, uint64_t, uint64_t);
typedef void start_kernel(chain_job);

/* How many ladders share a block: enough to keep every multiprocessor busy, and no more than shared memory holds. */
static weft_status share_blocks(weft_ctx *ctx, chain_job *job, size_t ladders)
{
  weft_status st = WEFT_OK;
  int device, processors, room, most;
  size_t each, blocks;
  const size_t temperatures = job->temperatures;
  WEFT_CUDA(cudaGetDevice(&device));
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  WEFT_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  WEFT_CUDA(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  if (room / BLOCKS_EACH < most) most = room / BLOCKS_EACH;
  blocks = BLOCKS_EACH * (size_t) processors;
  each = (ladders + blocks - 1) / blocks;
  if (each > MAX_CHAINS / temperatures) each = MAX_CHAINS / temperatures;
  do {
    job->room_bytes = lay_out_room(job->p, job->words, each * temperatures, job->at.step).bytes;
    job->in_shared = job->room_bytes + sizeof(block_state) + 1024 <= (size_t) most;
  } while (!job->in_shared && --each);
  job->ladders_each = (uint32_t) (each ? each : 1);
done:
  return st;
}

/* Portions of iterations, few at first, so that a launch takes about LAUNCH_SECONDS. */
static weft_status iterate(weft_ctx *ctx, weft_device_arena *mem, const chain_job *job, size_t ladders,
                           size_t iterations, double from, double to)
{
  weft_status st = WEFT_OK;
  run_kernel *kernel = job->words == 1 ? run_chains<1, 2> : job->words == 2 ? run_chains<2, 1> : run_chains<0, 2>;
  if (job->layers) kernel = job->words == 1 ? run_layers<1> : job->words == 2 ? run_layers<2> : run_layers<0>;
  sum_kernel *sums = job->words == 1 ? run_sums<1> : job->words == 2 ? run_sums<2> : run_sums<0>;
  const size_t shared = !job->in_shared ? 0 : job->sum ? job->room_bytes : (size_t) job->at.step * job->temperatures;
  size_t done_its = 0, portion = 16;
  WEFT_CUDA(weft_device_allow_shared(job->sum ? (const void *) sums : (const void *) kernel, shared));
  while (done_its < iterations) {
    const size_t now = portion < iterations - done_its ? portion : iterations - done_its;
    const auto started = std::chrono::steady_clock::now();
    if (job->sum) {
      const unsigned blocks = (unsigned) ((ladders + job->ladders_each - 1) / job->ladders_each);
      sums<<<blocks, 32 * WARPS, shared, mem->stream>>>(*job, (uint32_t) ladders, done_its, now);
    } else {
      kernel<<<(unsigned) ladders, 32 * job->temperatures, shared, mem->stream>>>(*job, done_its, now);
    }
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(mem->stream));
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    done_its += now;
    if (took < LAUNCH_SECONDS / 2)
      portion *= took < LAUNCH_SECONDS / 8 ? 4 : 2;
    else if (took > 2 * LAUNCH_SECONDS && portion > 1)
      portion /= 2;
    WEFT_TRY(weft_poll(ctx, from + (to - from) * (double) done_its / (double) iterations, 1));
  }
done:
  return st;
}

/* A group's results to the host, and its graphs into `all`. */
static weft_status fetch(weft_ctx *ctx, weft_device_arena *mem, const chain_job *job, const weft_bn_run *run,
                         size_t first, size_t count, weft_bn_chains *out, weft_bn_best *all)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const size_t p = job->p, temperatures = run->temperatures, replicas = count * temperatures, most = run->best;
  const size_t rows = job->saved, pairs = count * (temperatures - 1), counts = job->moves + 1;
  unsigned char *state;
  uint32_t *slot, *found;
  uint64_t *accepted, *swapped, *hash, *stamp;
  int64_t *score;
  int32_t *sets;
  weft_bn_best own;
  WEFT_TAKE(state, &host, replicas * job->at.step);
  WEFT_TAKE(slot, &host, replicas);
  WEFT_TAKE(found, &host, replicas);
  WEFT_TAKE(accepted, &host, counts * replicas);
  WEFT_TAKE(swapped, &host, 2 * pairs);
  WEFT_TAKE(score, &host, replicas * most);
  WEFT_TAKE(hash, &host, replicas * most);
  WEFT_TAKE(stamp, &host, replicas * most);
  WEFT_TAKE(sets, &host, replicas * most * p);
  WEFT_CUDA(cudaMemcpyAsync(state, job->state, replicas * job->at.step, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(slot, job->slot, replicas * sizeof *slot, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(found, job->found.count, replicas * sizeof *found, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(accepted, job->accepted, counts * replicas * sizeof *accepted, cudaMemcpyDeviceToHost,
                            mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(swapped, job->swapped, 2 * pairs * sizeof *swapped, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(
      cudaMemcpyAsync(score, job->found.score, replicas * most * sizeof *score, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(
      cudaMemcpyAsync(hash, job->found.hash, replicas * most * sizeof *hash, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(
      cudaMemcpyAsync(stamp, job->found.stamp, replicas * most * sizeof *stamp, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(
      cudaMemcpyAsync(sets, job->found.sets, replicas * most * p * sizeof *sets, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(out->trace + first * rows, job->trace, count * rows * sizeof *out->trace,
                            cudaMemcpyDeviceToHost, mem->stream));
  if (run->sum && out->samples) {
    WEFT_CUDA(cudaMemcpyAsync(out->sampled + first * out->samples * p, job->sampled,
                              count * out->samples * p * sizeof *out->sampled, cudaMemcpyDeviceToHost, mem->stream));
    WEFT_CUDA(cudaMemcpyAsync(out->sample_score + first * out->samples, job->sample_score,
                              count * out->samples * sizeof *out->sample_score, cudaMemcpyDeviceToHost, mem->stream));
  }
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  WEFT_TRY(weft_bn_best_make(&host, p, most, &own));
  for (size_t c = 0; c < count; c++) {
    own.found = 0;
    for (size_t temperature = 0; temperature < temperatures; temperature++) {
      const size_t r = c * temperatures + temperature, number = first * temperatures + r;
      const unsigned char *last = state + (c * temperatures + slot[r]) * job->at.step;
      memcpy(out->order + number * p, last + job->at.order, p * sizeof *out->order);
      if (job->layers) memcpy(out->layer + number * p, last + job->at.place, p * sizeof *out->layer);
      for (size_t k = 0; k < counts; k++) out->accepted[counts * number + k] = (double) accepted[counts * r + k];
      for (size_t k = 0; k < found[r]; k++)
        weft_bn_best_add(&own, p, score[r * most + k], hash[r * most + k], stamp[r * most + k],
                         sets + (r * most + k) * p);
    }
    for (size_t k = 0; k < own.found; k++)
      weft_bn_best_add(all, p, own.score[k], own.hash[k], (uint64_t) (first + c) << 32 | k, own.sets + k * p);
  }
  for (size_t k = 0; k < 2 * pairs; k++) out->swapped[2 * first * (temperatures - 1) + k] = (double) swapped[k];
done:
  weft_arena_end(&host);
  return st;
}

static double ladder_bytes(const chain_job *job, const weft_bn_run *run, const weft_bn_chains *out)
{
  const double p = job->p, state = (double) job->at.step + 8 + 4 + 8 * (job->moves + 1) + 16 + 4;
  const double replica = state + (double) run->best * (24 + 4 * p);
  return (double) run->temperatures * replica + 8.0 * (double) job->saved +
         (run->sum ? (double) out->samples * (8 + 4 * p) : 0) +
         (job->sum && !job->in_shared ? (double) job->room_bytes : 0);
}

/* Whether all layers to start from have graphs. */
static weft_status check_starts(weft_ctx *ctx, weft_device_arena *mem, const chain_job *job, size_t replicas)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  int64_t *score;
  WEFT_TAKE(score, &host, replicas);
  WEFT_CUDA(cudaMemcpyAsync(score, job->now, replicas * sizeof *score, cudaMemcpyDeviceToHost, mem->stream));
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  for (size_t r = 0; r < replicas && st == WEFT_OK; r++)
    if (score[r] == WEFT_BN_NEVER) st = weft_bn_layers_refuse(ctx);
done:
  weft_arena_end(&host);
  return st;
}

/* Ladders first .. first + count - 1. */
static weft_status run_group(weft_ctx *ctx, chain_job job, const weft_bn_run *run, size_t first, size_t count,
                             weft_bn_chains *out, weft_bn_best *all)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem_ = weft_device_begin(ctx), *mem = &mem_;
  const size_t p = job.p, replicas = count * run->temperatures, counts = job.moves + 1;
  const double from = (double) first / (double) run->ladders, to = (double) (first + count) / (double) run->ladders;
  unsigned char *state;
  start_kernel *start = job.words == 1 ? start_chains<1> : job.words == 2 ? start_chains<2> : start_chains<0>;
  if (job.layers) start = job.words == 1 ? start_layers<1> : job.words == 2 ? start_layers<2> : start_layers<0>;
  job.ladder0 = (uint32_t) (run->ladder0 + first);
  if (job.sum) WEFT_TRY(share_blocks(ctx, &job, count));
  WEFT_TAKE0(state, &host, replicas * job.at.step);
  for (size_t r = 0; r < replicas; r++) {
    unsigned char *own = state + r * job.at.step;
    const size_t number = first * run->temperatures + r;
    memcpy(own + job.at.order, out->order + number * p, p * sizeof *out->order);
    if (job.layers) memcpy(own + job.at.place, out->layer + number * p, p * sizeof *out->layer);
  }
  SEND(job.state, state, replicas * job.at.step);
  WEFT_DEVICE_TAKE(job.now, mem, replicas);
  WEFT_DEVICE_TAKE(job.slot, mem, replicas);
  WEFT_DEVICE_TAKE(job.accepted, mem, counts * replicas);
  WEFT_DEVICE_TAKE(job.swapped, mem, 2 * replicas);
  WEFT_DEVICE_TAKE(job.found.count, mem, replicas);
  WEFT_DEVICE_TAKE(job.found.score, mem, replicas * run->best);
  WEFT_DEVICE_TAKE(job.found.hash, mem, replicas * run->best);
  WEFT_DEVICE_TAKE(job.found.stamp, mem, replicas * run->best);
  WEFT_DEVICE_TAKE(job.found.sets, mem, replicas * run->best * p);
  WEFT_DEVICE_TAKE(job.trace, mem, count * job.saved);
  if (run->sum) {
    WEFT_DEVICE_TAKE(job.sampled, mem, count * out->samples * p);
    WEFT_DEVICE_TAKE(job.sample_score, mem, count * out->samples);
  }
  if (job.sum && !job.in_shared)
    WEFT_DEVICE_TAKE(job.room, mem, (count + job.ladders_each - 1) / job.ladders_each * job.room_bytes);
  WEFT_CUDA(cudaMemsetAsync(job.accepted, 0, counts * replicas * sizeof *job.accepted, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.swapped, 0, 2 * replicas * sizeof *job.swapped, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.count, 0, replicas * sizeof *job.found.count, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.score, 0, replicas * run->best * sizeof *job.found.score,
                            mem->stream)); /* unused ends travel back */
  WEFT_CUDA(cudaMemsetAsync(job.found.hash, 0, replicas * run->best * sizeof *job.found.hash, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.stamp, 0, replicas * run->best * sizeof *job.found.stamp, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(job.found.sets, 0, replicas * run->best * p * sizeof *job.found.sets, mem->stream));
  start<<<(unsigned) count, 32 * job.temperatures, 8 * job.words * job.temperatures, mem->stream>>>(job);
  WEFT_CUDA(cudaGetLastError());
  if (job.layers) WEFT_TRY(check_starts(ctx, mem, &job, replicas));
  WEFT_TRY(iterate(ctx, mem, &job, count, run->iterations, from, to));
  WEFT_TRY(fetch(ctx, mem, &job, run, first, count, out, all));
done:
  weft_device_end(mem);
  weft_arena_end(&host);
  return st;
}

/* The device's weft_bn_chain_op; more than MAX_TEMPERATURES temperatures are left to the CPU. Ladders go in groups
 * that fit the free memory. */
extern "C" weft_status weft_bn_chain_cuda(weft_ctx *ctx, const weft_bn_table *table, const weft_bn_run *run,
                                          weft_bn_chains *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem_ = weft_device_begin(ctx), *mem = &mem_;
  const size_t temperatures = run->temperatures;
  double scale[MAX_TEMPERATURES], swap_scale[MAX_TEMPERATURES], scale_of_graphs[MAX_TEMPERATURES];
  weft_bn_lists lists;
  weft_bn_best all;
  chain_job job;
  memset(&job, 0, sizeof job);
  if (temperatures > MAX_TEMPERATURES) {
    st = weft_bn_chain_cpu(ctx, table, run, out);
    goto done;
  }
  WEFT_TRY(weft_bn_lists_make(&host, table, run->sum, &lists));
  if (run->layers) WEFT_TRY(weft_bn_layers_prepare(&host, &lists));
  WEFT_TRY(weft_bn_start_orders(ctx, &lists, run, out->order));
  if (run->layers) WEFT_TRY(weft_bn_layers_check(ctx, table->p, run, out->layer));
  WEFT_TRY(weft_bn_best_make(&host, table->p, run->best, &all));
  WEFT_TRY(send_lists(ctx, mem, &lists, run, &job));
  for (size_t temperature = 0; temperature < temperatures; temperature++) {
    scale[temperature] = run->beta[temperature] / lists.unit;
    scale_of_graphs[temperature] = (run->beta[temperature] - 1) / lists.unit;
    swap_scale[temperature] =
        temperature + 1 < temperatures ? (run->beta[temperature] - run->beta[temperature + 1]) / lists.unit : 0;
  }
  SEND(job.scale, scale, temperatures);
  SEND(job.swap_scale, swap_scale, temperatures);
  SEND(job.scale_of_graphs, scale_of_graphs, temperatures);
  WEFT_CUDA(cudaStreamSynchronize(mem->stream));
  job.key = run->key;
  job.first = run->first;
  job.temperatures = (uint32_t) temperatures;
  job.thin = run->thin;
  job.swap_every = (uint32_t) run->swap_every;
  job.most = (uint32_t) run->best;
  job.saved = run->iterations / run->thin;
  job.skipped = run->burn_in / run->thin;
  job.samples = out->samples;
  job.at = make_layout(table->p, table->words, run->sum, run->layers);
  job.in_shared = temperatures * job.at.step <= MAX_SHARED;
  if (job.sum) WEFT_TRY(share_blocks(ctx, &job, 1));
  for (size_t first = 0; first < run->ladders;) {
    size_t count = weft_device_chunk(ctx, run->ladders - first, 1.02 * ladder_bytes(&job, run, out), 0);
    if (!count) {
      st = WEFT_ERR_MEMORY;
      goto done;
    }
    WEFT_TRY(run_group(ctx, job, run, first, count, out, &all));
    first += count;
  }
  for (size_t k = 0; k < all.found; k++) out->best_score[k] = (double) all.score[k] / lists.unit;
  memcpy(out->best_sets, all.sets, all.found * table->p * sizeof *out->best_sets);
  out->found = all.found;
done:
  weft_device_end(mem);
  weft_arena_end(&host);
  return st;
}
