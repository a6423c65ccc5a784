/* Transfer entropy on a device: levels of all genes stay there, and every pass makes the sources' planes from them.
 *
 * Two to four levels on Hopper are counted by products of planes (transfer_hopper.cu). Otherwise a warp takes 32
 * sources and four targets: a lane loads a word of its source's plane once and counts it with four targets' words,
 * which all lanes share. Every cell is counted, so that no sums of other cells have to be kept. */
/* Build: exact. */
#include <cstring>
#include "mi/transfer/cuda/transfer.cuh"
#include "mi/search/cuda/hopper_layout.cuh"

#define THREADS 256
#define TARGETS 4          /* of a warp */
#define BLOCK_TARGETS 32   /* of a block's eight warps */
#define WORDS_AT_ONCE 7e10 /* of a launch: some 50 ms */

struct weft_transfer_engine {
  weft_arena host; /* which holds the engine */
  weft_device_arena mem;
  transfer_pass pass; /* the data; what a pass writes to */
  transfer_planes targets, sources;
  uint32_t *rows;
  double *of_source, *of_target;
};

/* ---- planes ---- */

__device__ static inline uint32_t *word_at(const transfer_planes &planes, uint32_t gene, uint32_t plane, uint32_t word)
{
  if (planes.stride) return planes.words + ((size_t) plane * planes.length + word) * planes.stride + gene;
  if (!planes.products) return planes.words + ((size_t) gene * planes.count + plane) * planes.length + word;
  const size_t row = planes.genes ? (size_t) (gene / planes.genes) * 256 + gene % planes.genes * planes.each + plane
                                  : (size_t) gene * planes.each + plane;
  return planes.words + piece_offset(row, word / 4, planes.steps) / 4 + word % 4;
}

/* A warp makes 32 words of a gene's planes. `rows`: samples of the sources, or NULL: states of the targets. */
__global__ static void __launch_bounds__(THREADS)
    make_planes(weft_transfer_data data, const uint32_t *rows, transfer_planes planes, uint32_t chunks)
{
  const size_t warp = ((size_t) blockIdx.x * THREADS + threadIdx.x) / 32;
  const uint32_t lane = threadIdx.x % 32, gene = (uint32_t) (warp / chunks);
  if (gene >= (rows ? data.source_count : data.target_count)) return;
  const uint8_t *codes = data.codes + (size_t) (rows ? data.sources : data.targets)[gene] * data.samples;
  const uint32_t first = (uint32_t) (warp % chunks) * 32;
  for (uint32_t word = first; word < first + 32 && word < planes.length; word++) {
    const size_t step = (size_t) word * 32 + lane;
    uint32_t code = UINT32_MAX;
    if (step < data.steps)
      code = rows ? codes[rows[step]] : codes[data.before[step]] * data.levels + codes[data.now[step]];
    for (uint32_t plane0 = 0; plane0 < planes.count; plane0 += 32) {
      uint32_t own = 0;
      for (uint32_t q = 0; q < 32 && plane0 + q < planes.count; q++) {
        const uint32_t bits = __ballot_sync(0xffffffffu, code == plane0 + q);
        if (lane == q) own = bits;
      }
      if (plane0 + lane < planes.count) *word_at(planes, gene, plane0 + lane, word) = own;
    }
  }
}

static weft_status fill_planes(weft_ctx *ctx, weft_transfer_engine *engine, const uint32_t *rows,
                               const transfer_planes *planes)
{
  weft_status st = WEFT_OK;
  const weft_transfer_data *data = &engine->pass.data;
  const uint32_t chunks = (planes->length + 31) / 32;
  const size_t threads = (rows ? data->source_count : data->target_count) * (size_t) chunks * 32;
  make_planes<<<(unsigned) ((threads + THREADS - 1) / THREADS), THREADS, 0, engine->mem.stream>>>(*data, rows, *planes,
                                                                                                  chunks);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* ---- pairs ---- */

/* Targets from block first + blockIdx.y on. Planes hold all states and all levels, and zeros behind the last gene. */
__global__ static void __launch_bounds__(THREADS)
    count_pairs(const __grid_constant__ transfer_pass pass, const __grid_constant__ transfer_planes targets,
                const __grid_constant__ transfer_planes sources, uint32_t first)
{
  const weft_transfer_data &data = pass.data;
  const uint32_t lane = threadIdx.x % 32, i = blockIdx.x * 32 + lane, levels = data.levels, length = targets.length;
  const uint32_t j0 = (first + blockIdx.y) * BLOCK_TARGETS + threadIdx.x / 32 * TARGETS;
  int64_t sum[TARGETS] = {}, of_source = 0;
  for (uint32_t before = 0; before < levels; before++)
    for (uint32_t level = 0; level < levels; level++) {
      const uint32_t *x = sources.words + (size_t) level * length * sources.stride + i;
      uint32_t with[TARGETS] = {};
      for (uint32_t state = before * levels; state < (before + 1) * levels; state++) {
        const uint32_t *y = targets.words + ((size_t) j0 * targets.count + state) * length;
        uint32_t k[TARGETS] = {};
        for (uint32_t word = 0; word < length; word++) {
          const uint32_t bits = x[word * sources.stride];
#pragma unroll
          for (int t = 0; t < TARGETS; t++) k[t] += __popc(bits & y[(size_t) t * targets.count * length + word]);
        }
#pragma unroll
        for (int t = 0; t < TARGETS; t++) {
          sum[t] += weft_mi_fixed(&data.f, k[t]);
          with[t] += k[t];
        }
      }
#pragma unroll
      for (int t = 0; t < TARGETS; t++) sum[t] -= weft_mi_fixed(&data.f, with[t]);
    }
#pragma unroll
  for (int t = 0; t < TARGETS; t++) {
    const uint32_t j = j0 + t;
    int64_t part = 0;
    if (i < data.source_count && j < data.target_count && weft_transfer_scored(&data, i, j))
      part = take_score(pass, i, j, sum[t] - data.base[j]);
    of_source += part;
    if (pass.goal.goal == WEFT_TRANSFER_SUMS) add_of_warp(pass.goal.target_sums, j, part);
  }
  if (of_source) add_own(pass.goal.source_sums, i, of_source);
}

/* All blocks of a pass without tensor cores, in launches of a moment each. */
static weft_status by_counting(weft_ctx *ctx, weft_transfer_engine *engine, const transfer_pass *pass)
{
  weft_status st = WEFT_OK;
  const weft_transfer_data *data = &pass->data;
  const uint32_t across = (uint32_t) ((data->source_count + 31) / 32),
                 down = (uint32_t) ((data->target_count + BLOCK_TARGETS - 1) / BLOCK_TARGETS);
  const double row = 32.0 * across * BLOCK_TARGETS * engine->targets.length * engine->targets.count * data->levels;
  const double fit = WORDS_AT_ONCE / row;
  const uint32_t rows = fit < 1 ? 1 : fit > 60000 ? 60000 : (uint32_t) fit;
  for (uint32_t first = 0; first < down; first += rows) {
    const dim3 grid(across, down - first < rows ? down - first : rows);
    WEFT_TRY(weft_poll(ctx, first, down));
    count_pairs<<<grid, THREADS, 0, engine->mem.stream>>>(*pass, engine->targets, engine->sources, first);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(engine->mem.stream));
  }
done:
  return st;
}

/* ---- host ---- */

/* The data on the device. */
static weft_status send_data(weft_device_arena *mem, const weft_transfer_data *from, weft_transfer_data *to)
{
  weft_status st = WEFT_OK;
  const size_t levels = from->levels;
  uint8_t *codes;
  uint32_t *numbers;
  int64_t *whole;
  *to = *from;
  WEFT_DEVICE_TAKE(codes, mem, from->genes * from->samples);
  WEFT_TRY(weft_device_upload(mem, codes, from->genes * from->samples, 1, weft_fill_bytes, from->codes));
  to->codes = codes;
#define SEND(field, room, count) \
  WEFT_TRY(weft_device_send(mem, from->field, count, &room)); \
  to->field = room
  SEND(now, numbers, from->steps);
  SEND(before, numbers, from->steps);
  SEND(sources, numbers, from->source_count);
  SEND(targets, numbers, from->target_count);
  SEND(of_levels, numbers, from->source_count * levels);
  SEND(of_states, numbers, from->target_count * levels * levels);
  SEND(source_df, numbers, from->source_count);
  SEND(target_df, numbers, from->target_count);
  SEND(base, whole, from->target_count);
  SEND(f.table, whole, from->f.known);
#undef SEND
done:
  return st;
}

/* Room for planes, all zero. */
static weft_status take_planes(weft_device_arena *mem, size_t words, transfer_planes *planes)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = mem->ctx;
  WEFT_DEVICE_TAKE(planes->words, mem, words);
  WEFT_CUDA(cudaMemsetAsync(planes->words, 0, words * sizeof *planes->words, mem->stream));
done:
  return st;
}

/* Chooses the engine by the number of levels, and takes room for its planes. */
static weft_status make_room(weft_transfer_engine *engine, const weft_transfer_data *data, int device)
{
  weft_status st = WEFT_OK;
  const uint32_t levels = data->levels, length = (uint32_t) ((data->steps + 31) / 32);
  if (weft_transfer_products_fit(levels, device)) {
    const uint32_t steps = (length + 7) / 8;
    engine->targets = weft_transfer_product_planes(levels, steps, 1);
    engine->sources = weft_transfer_product_planes(levels, steps, 0);
    engine->targets.length = engine->sources.length = length;
    WEFT_TRY(take_planes(&engine->mem, weft_transfer_product_rows(levels, data->target_count, 1) * steps * 8,
                         &engine->targets));
    WEFT_TRY(take_planes(&engine->mem, weft_transfer_product_rows(levels, data->source_count, 0) * steps * 8,
                         &engine->sources));
  } else {
    const size_t targets = (data->target_count + BLOCK_TARGETS - 1) / BLOCK_TARGETS * BLOCK_TARGETS;
    memset(&engine->targets, 0, sizeof engine->targets);
    memset(&engine->sources, 0, sizeof engine->sources);
    engine->targets.count = levels * levels;
    engine->sources.count = levels;
    engine->targets.length = engine->sources.length = length;
    engine->sources.stride = (data->source_count + 31) / 32 * 32;
    WEFT_TRY(take_planes(&engine->mem, targets * engine->targets.count * length, &engine->targets));
    WEFT_TRY(take_planes(&engine->mem, engine->sources.stride * levels * length, &engine->sources));
  }
done:
  return st;
}

extern "C" void weft_transfer_close_cuda(weft_ctx *ctx, weft_transfer_engine *engine)
{
  weft_arena host = engine->host;
  (void) ctx;
  weft_device_end(&engine->mem);
  weft_arena_end(&host);
}

/* Sends the data and makes the targets' planes, which no copy changes. */
extern "C" weft_status weft_transfer_open_cuda(weft_ctx *ctx, const weft_transfer_data *data,
                                               weft_transfer_engine **out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_transfer_engine *engine;
  *out = NULL;
  WEFT_TAKE0(engine, &host, 1);
  engine->host = host;
  engine->mem = weft_device_begin(ctx);
  WEFT_TRY(send_data(&engine->mem, data, &engine->pass.data));
  WEFT_TRY(make_room(engine, data, ctx->device));
  WEFT_DEVICE_TAKE(engine->rows, &engine->mem, data->steps);
  WEFT_DEVICE_TAKE(engine->of_source, &engine->mem, data->source_count);
  WEFT_DEVICE_TAKE(engine->of_target, &engine->mem, data->target_count);
  WEFT_DEVICE_TAKE(engine->pass.found, &engine->mem, 1);
  WEFT_TRY(fill_planes(ctx, engine, NULL, &engine->targets));
  *out = engine;
done:
  if (st != WEFT_OK && engine) weft_transfer_close_cuda(ctx, engine);
  return st;
}

/* Memory on the device for what the pass adds to, with what is there so far, or for what it finds. */
static weft_status begin_pass(weft_transfer_engine *engine, weft_device_arena *mem, const weft_transfer_pass *from,
                              weft_transfer_pass *to)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = mem->ctx;
  const weft_transfer_data *data = &engine->pass.data;
  WEFT_CUDA(
      cudaMemcpyAsync(engine->rows, from->rows, data->steps * sizeof *from->rows, cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(engine->of_source, from->of_source, data->source_count * sizeof(double),
                            cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemcpyAsync(engine->of_target, from->of_target, data->target_count * sizeof(double),
                            cudaMemcpyHostToDevice, mem->stream));
  WEFT_CUDA(cudaMemsetAsync(engine->pass.found, 0, sizeof *engine->pass.found, mem->stream));
  *to = *from;
  to->rows = engine->rows;
  to->of_source = engine->of_source;
  to->of_target = engine->of_target;
  switch (from->goal) {
  case WEFT_TRANSFER_SUMS:
    WEFT_TRY(weft_device_send(mem, from->source_sums, data->source_count, &to->source_sums));
    WEFT_TRY(weft_device_send(mem, from->target_sums, data->target_count, &to->target_sums));
    break;
  case WEFT_TRANSFER_COUNT: WEFT_TRY(weft_device_send(mem, from->counts, WEFT_TRANSFER_BINS, &to->counts)); break;
  case WEFT_TRANSFER_FIND:
    WEFT_DEVICE_TAKE(to->pairs, mem, from->capacity);
    WEFT_DEVICE_TAKE(to->scores, mem, from->capacity);
    break;
  }
done:
  return st;
}

/* Brings back what the pass has made. */
static weft_status end_pass(const weft_transfer_engine *engine, weft_device_arena *mem, const weft_transfer_pass *from,
                            weft_transfer_pass *to)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = mem->ctx;
  const weft_transfer_data *data = &engine->pass.data;
  unsigned long long found = 0;
  WEFT_CUDA(cudaStreamSynchronize(engine->mem.stream));
  switch (to->goal) {
  case WEFT_TRANSFER_SUMS:
    WEFT_TRY(weft_device_download(mem, to->source_sums, from->source_sums, data->source_count * sizeof(int64_t)));
    WEFT_TRY(weft_device_download(mem, to->target_sums, from->target_sums, data->target_count * sizeof(int64_t)));
    break;
  case WEFT_TRANSFER_COUNT:
    WEFT_TRY(weft_device_download(mem, to->counts, from->counts, WEFT_TRANSFER_BINS * sizeof(uint64_t)));
    break;
  case WEFT_TRANSFER_FIND:
    WEFT_TRY(weft_device_download(mem, &found, engine->pass.found, sizeof found));
    to->found = found;
    if (found > to->capacity) found = to->capacity;
    WEFT_TRY(weft_device_download(mem, to->pairs, from->pairs, found * sizeof(uint64_t)));
    WEFT_TRY(weft_device_download(mem, to->scores, from->scores, found * sizeof(int64_t)));
    break;
  }
done:
  return st;
}

/* Makes the sources' planes and scores all pairs. */
extern "C" weft_status weft_transfer_pass_cuda(weft_ctx *ctx, weft_transfer_engine *engine, weft_transfer_pass *pass)
{
  weft_status st = WEFT_OK;
  weft_device_arena mem = weft_device_begin(ctx);
  transfer_pass own = engine->pass;
  WEFT_TRY(begin_pass(engine, &mem, pass, &own.goal));
  WEFT_CUDA(cudaStreamSynchronize(mem.stream)); /* the kernels go through the engine's stream */
  WEFT_TRY(weft_poll(ctx, 0, 1));
  WEFT_TRY(fill_planes(ctx, engine, engine->rows, &engine->sources));
  if (engine->sources.products)
    WEFT_TRY(weft_transfer_products(ctx, &own, &engine->targets, &engine->sources, engine->mem.stream));
  else
    WEFT_TRY(by_counting(ctx, engine, &own));
  WEFT_TRY(end_pass(engine, &mem, &own.goal, pass));
done:
  weft_device_end(&mem);
  return st;
}
