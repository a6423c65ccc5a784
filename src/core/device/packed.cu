/* Unpacks compressed columns; see packed.h. First a warp takes a chunk of 128 whole numbers: the low bits of number i
 * are in words of lane i % 4, and its high part is in unary, as many zero bits and then a one, so that the place of the
 * i-th one less that of the one before says it. Then a warp takes a column of a block, adds up its gaps, and puts rows
 * and values to their places. file/block.c does the same on the host, and gives the same rows and values but for the
 * last bits of logarithms. */
#include <cstring>
#include "core/device/packed.cuh"

enum { WARPS = 4, LANES = 32 };
#define EVERY 0xffffffffu
#define ENTRIES_AT_ONCE ((size_t) 1 << 24) /* of blocks that are unpacked together, unless one has more */

/* ---- whole numbers ---- */

/* Bytes of any alignment, the least significant first. */
template <typename T> static __device__ T word_at(const uint8_t *from)
{
  T word = 0;
  for (int i = 0; i < (int) sizeof(T); i++) word |= (T) from[i] << 8 * i;
  return word;
}

static __device__ uint32_t low_bits(const uint8_t *bits, unsigned width, unsigned i)
{
  const unsigned bit = i / 4 * width, word = 4 * (bit >> 5) + i % 4, shift = bit & 31;
  if (!width) return 0;
  uint32_t x = word_at<uint32_t>(bits + 4 * word) >> shift;
  if (shift + width > 32) x |= word_at<uint32_t>(bits + 4 * (word + 4)) << (32 - shift);
  return width == 32 ? x : x & ((1u << width) - 1);
}

/* The sum over the lanes before this one. */
static __device__ uint32_t sum_before(uint32_t x, unsigned lane, uint32_t *all)
{
  uint32_t sum = x;
  for (unsigned step = 1; step < LANES; step *= 2) {
    const uint32_t other = __shfl_up_sync(EVERY, sum, step);
    if (lane >= step) sum += other;
  }
  *all = __shfl_sync(EVERY, sum, LANES - 1);
  return sum - x;
}

/* places[i]: of the i-th one among the bits of `size` bytes, at most 255; how many there are, at most a chunk's. */
static __device__ uint32_t find_ones(const uint8_t *from, unsigned size, unsigned lane, uint16_t *places)
{
  uint64_t word = 0;
  uint32_t count;
  for (unsigned i = 0; i < 8 && 8 * lane + i < size; i++) word |= (uint64_t) from[8 * lane + i] << 8 * i;
  for (uint32_t i = sum_before((uint32_t) __popcll(word), lane, &count); word; word &= word - 1, i++)
    if (i < WEFT_PACKED_CHUNK) places[i] = (uint16_t) (64 * lane + (unsigned) __ffsll((long long) word) - 1);
  __syncwarp();
  return count < WEFT_PACKED_CHUNK ? count : WEFT_PACKED_CHUNK;
}

static __device__ void unpack_chunk(const uint8_t *bytes, const weft_packed_numbers *x, uint64_t chunk, uint64_t count,
                                    unsigned lane, uint16_t *places, uint32_t *out)
{
  const unsigned width = bytes[x->widths + chunk], high = x->high ? bytes[x->high + chunk] : 0;
  const uint8_t *bits = bytes + x->bits + ((const uint64_t *) (bytes + x->begin))[chunk];
  const uint32_t known = find_ones(bits + 16 * width, high, lane, places);
  for (unsigned i = lane; i < WEFT_PACKED_CHUNK; i += LANES) {
    uint32_t number = low_bits(bits, width, i);
    if (i < known && width < 32) number |= (uint32_t) (places[i] - (i ? places[i - 1] + 1 : 0)) << width;
    if (WEFT_PACKED_CHUNK * chunk + i < count) out[WEFT_PACKED_CHUNK * chunk + i] = number;
  }
  __syncwarp();
}

/* Unpacks the gaps (blockIdx.z = 1: the whole values) of blocks from .. to - 1 into one array, the entries of block
 * `from` first. */
__global__ static void unpack_numbers(const uint8_t *bytes, unsigned from, unsigned to, uint32_t *gaps, uint32_t *whole)
{
  __shared__ uint16_t places[WARPS][WEFT_PACKED_CHUNK];
  const weft_packed_block *block = (const weft_packed_block *) bytes;
  const unsigned warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  for (unsigned b = from + blockIdx.y; b < to; b += gridDim.y) {
    const weft_packed_block *x = &block[b];
    const uint64_t chunks = (x->values + WEFT_PACKED_CHUNK - 1) / WEFT_PACKED_CHUNK;
    uint32_t *out = (blockIdx.z ? whole : gaps) + (x->entry - block[from].entry);
    if (blockIdx.z && x->raw_bytes) continue;
    for (uint64_t chunk = (uint64_t) blockIdx.x * WARPS + warp; chunk < chunks; chunk += (uint64_t) gridDim.x * WARPS)
      unpack_chunk(bytes, blockIdx.z ? &x->whole : &x->gaps, chunk, x->values, lane, places[warp], out);
  }
}

/* ---- columns ---- */

struct panel_on_device {
  const uint8_t *bytes;
  const double *size;
  const uint32_t *first, *place;
  uint64_t p;
  int log1p;
};

static __device__ double value_of(const panel_on_device *x, const weft_packed_block *block, uint64_t entry,
                                  const uint32_t *whole, uint64_t row)
{
  double v;
  if (!block->raw_bytes)
    v = (double) whole[entry] + 1;
  else if (block->raw_bytes == 4)
    v = (double) __uint_as_float(word_at<uint32_t>(x->bytes + block->raw + 4 * entry));
  else
    v = __longlong_as_double((long long) word_at<uint64_t>(x->bytes + block->raw + 8 * entry));
  if (x->size) v /= x->size[row];
  return x->log1p ? log1p(v) : v;
}

/* A column of a block; gaps and whole: of this block. */
static __device__ void place_column(const panel_on_device *x, const weft_packed_block *block, uint32_t first,
                                    uint32_t count, const uint32_t *gaps, const uint32_t *whole, unsigned lane,
                                    int32_t *rows, double *values, int *unsound)
{
  const uint32_t last = (uint32_t) block->rows - 1;
  uint32_t done = 0, all; /* rows up to and with the entry before */
  for (uint32_t k = 0; k < count; k += LANES) {
    const bool there = k + lane < count;
    const uint32_t gap = there ? gaps[first + k + lane] : 0, step = gap > last ? last + 2 : gap + 1;
    const uint32_t row = done + sum_before(there ? step : 0, lane, &all) + step - 1, safe = row > last ? last : row;
    if (there && row > last) *unsound = 1;
    if (there) {
      rows[k + lane] = (int32_t) (block->row + safe);
      values[k + lane] = value_of(x, block, first + k + lane, whole, block->row + safe);
    }
    done = done + all > last + 1 ? last + 1 : done + all;
  }
}

/* A warp for each column of blocks from .. to - 1. */
__global__ static void place_columns(panel_on_device x, unsigned from, unsigned to, const uint32_t *gaps,
                                     const uint32_t *whole, int32_t *rows, double *values, int *unsound)
{
  const weft_packed_block *block = (const weft_packed_block *) x.bytes;
  const uint64_t all = (uint64_t) (to - from) * x.p, step = (uint64_t) gridDim.x * WARPS;
  for (uint64_t item = (uint64_t) blockIdx.x * WARPS + threadIdx.x / LANES; item < all; item += step) {
    const uint64_t b = from + item / x.p, cell = b * x.p + item % x.p, entry = block[b].entry - block[from].entry;
    const uint32_t to_place = x.place[cell];
    place_column(&x, &block[b], x.first[cell], x.place[cell + x.p] - to_place, gaps + entry, whole + entry,
                 threadIdx.x % LANES, rows + to_place, values + to_place, unsound);
  }
}

/* ---- a panel ---- */

static weft_status give_room(weft_unpacking *unpacking, size_t bytes, size_t entries)
{
  weft_status st = WEFT_OK;
  if (!unpacking->unsound) WEFT_DEVICE_TAKE(unpacking->unsound, unpacking->mem, 1);
  if (bytes > unpacking->room) {
    if (unpacking->bytes) weft_device_drop(unpacking->mem, unpacking->bytes);
    unpacking->bytes = NULL;
    unpacking->room = 0;
    WEFT_DEVICE_TAKE(unpacking->bytes, unpacking->mem, bytes + bytes / 8);
    unpacking->room = bytes + bytes / 8;
  }
  if (entries > unpacking->entries) {
    if (unpacking->gaps) weft_device_drop(unpacking->mem, unpacking->gaps);
    if (unpacking->whole) weft_device_drop(unpacking->mem, unpacking->whole);
    unpacking->gaps = unpacking->whole = NULL;
    unpacking->entries = 0;
    WEFT_DEVICE_TAKE(unpacking->gaps, unpacking->mem, entries);
    WEFT_DEVICE_TAKE(unpacking->whole, unpacking->mem, entries);
    unpacking->entries = entries;
  }
done:
  return st;
}

/* The first block behind `from` that is not unpacked together with it; and how many entries those before have. */
static size_t together(const weft_packed_panel *x, size_t from, size_t *entries)
{
  const weft_packed_block *block = weft_packed_blocks(x);
  size_t to = from + 1;
  *entries = (size_t) block[from].values;
  while (to < x->blocks && *entries + block[to].values <= ENTRIES_AT_ONCE) *entries += (size_t) block[to++].values;
  return to;
}

static unsigned min_of(uint64_t a, uint64_t b) { return (unsigned) (a < b ? a : b); }

/* Unpacks the blocks from .. to - 1 of a panel that is on the device: first all packed numbers, 128 to a warp, then
 * each column's run to its place in the panel's compressed columns. `block` is the host's copy of their directory. */
static weft_status unpack_blocks(weft_unpacking *unpacking, const panel_on_device *x, unsigned from, unsigned to,
                                 const weft_packed_block *block, int32_t *rows, double *values)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = unpacking->mem->ctx;
  const cudaStream_t stream = unpacking->mem->stream;
  uint64_t most = 1;
  for (unsigned b = from; b < to; b++) most = block[b].values > most ? block[b].values : most;
  const uint64_t chunks = (most + WEFT_PACKED_CHUNK - 1) / WEFT_PACKED_CHUNK, columns = (to - from) * x->p;
  const dim3 grid(min_of((chunks + WARPS - 1) / WARPS, 4096), min_of(to - from, 65535), 2);
  unpack_numbers<<<grid, WARPS * LANES, 0, stream>>>(x->bytes, from, to, unpacking->gaps, unpacking->whole);
  WEFT_CUDA(cudaGetLastError());
  place_columns<<<min_of((columns + WARPS - 1) / WARPS, 1 << 20), WARPS * LANES, 0, stream>>>(*x, from, to,
                                                                                              unpacking->gaps,
                                                                                              unpacking->whole, rows,
                                                                                              values,
                                                                                              unpacking->unsound);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Sends a packed panel, without what is there already, and unpacks it into compressed columns on the device (starts:
 * p + 1, rows and values: x->stored), a group of blocks at a time, to bound what lies in between. *sound is 0 where a
 * place lies outside: the panel is damaged. */
weft_status weft_unpack(weft_unpacking *unpacking, const weft_packed_panel *x, int32_t *starts, int32_t *rows,
                        double *values, int *sound)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = unpacking->mem->ctx;
  const cudaStream_t stream = unpacking->mem->stream;
  const int32_t stored = (int32_t) x->stored;
  size_t most = 0, entries;
  int unsound = 0;
  panel_on_device on;
  for (size_t from = 0; from < x->blocks;) {
    from = together(x, from, &entries);
    if (entries > most) most = entries;
  }
  WEFT_TRY(give_room(unpacking, x->size, most + 1));
  on.bytes = x->there ? (const uint8_t *) x->there : unpacking->bytes;
  on.size = x->at_size ? (const double *) (unpacking->bytes + x->at_size) : NULL;
  on.first = (const uint32_t *) (unpacking->bytes + x->at_first);
  on.place = (const uint32_t *) (unpacking->bytes + x->at_place);
  on.p = x->p;
  on.log1p = x->log1p;
  WEFT_TRY(weft_device_upload(unpacking->mem, unpacking->bytes, x->size, 1, weft_fill_bytes, x->bytes));
  WEFT_CUDA(cudaMemsetAsync(unpacking->unsound, 0, sizeof *unpacking->unsound, stream));
  for (size_t from = 0, to; from < x->blocks; from = to) {
    to = together(x, from, &entries);
    WEFT_TRY(unpack_blocks(unpacking, &on, (unsigned) from, (unsigned) to, weft_packed_blocks(x), rows, values));
  }
  WEFT_CUDA(cudaMemcpyAsync(starts, on.place, x->p * sizeof *starts, cudaMemcpyDeviceToDevice, stream));
  WEFT_CUDA(cudaMemcpyAsync(starts + x->p, &stored, sizeof stored, cudaMemcpyHostToDevice, stream));
  WEFT_CUDA(cudaMemcpyAsync(&unsound, unpacking->unsound, sizeof unsound, cudaMemcpyDeviceToHost, stream));
  WEFT_CUDA(cudaStreamSynchronize(stream));
  *sound = !unsound;
done:
  return st;
}
