/* What weft keeps of devices between calls (core/device/kept.cu), on two devices that are made up: the functions of the
 * CUDA runtime below count what they are asked for. proofs/kept.sh builds and runs it. Random calls of four threads
 * take and drop blocks; every byte that a call has must stay its own. Then what each rule says, by counts. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>
#include "core/device/device.cuh"
#include "core/device/kept.cuh"

/* ---- two devices ---- */

#define TOTAL ((size_t) 2 << 30)

static std::mutex door;
static std::map<void *, std::pair<int, size_t>> blocks;
static std::set<void *> streams;
static size_t used[2];
static bool broken;       /* every wait reports an error */
static long driver_calls; /* what a second call must not need */
static thread_local int current;

extern "C" {
cudaError_t cudaMalloc(void **out, size_t bytes)
{
  std::lock_guard<std::mutex> hold(door);
  driver_calls++;
  if (used[current] + bytes > TOTAL) return cudaErrorMemoryAllocation;
  *out = malloc(bytes < 4096 ? 4096 : 4096 + bytes % 4096); /* little of it is ever touched */
  blocks[*out] = { current, bytes };
  used[current] += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void *data)
{
  std::lock_guard<std::mutex> hold(door);
  driver_calls++;
  if (!data) return cudaSuccess;
  auto found = blocks.find(data);
  if (found == blocks.end()) abort(); /* freed twice */
  used[found->second.first] -= found->second.second;
  blocks.erase(found);
  free(data);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
  std::lock_guard<std::mutex> hold(door);
  *available = TOTAL - used[current];
  *total = TOTAL;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device)
{
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
  std::lock_guard<std::mutex> hold(door);
  driver_calls++;
  *out = (cudaStream_t) malloc(8);
  streams.insert(*out);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  std::lock_guard<std::mutex> hold(door);
  driver_calls++;
  if (!streams.erase(stream)) abort();
  free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return broken ? cudaErrorIllegalAddress : cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t) { return "made up"; }

/* What these calls do not come to. */
#define NEVER(name, ...) \
  cudaError_t name(__VA_ARGS__) { abort(); }
NEVER(cudaGetDeviceCount, int *)
NEVER(cudaDriverGetVersion, int *)
NEVER(cudaRuntimeGetVersion, int *)
NEVER(cudaDeviceGetAttribute, int *, cudaDeviceAttr, int)
NEVER(cudaGetDeviceProperties, cudaDeviceProp *, int)
NEVER(cudaEventCreateWithFlags, cudaEvent_t *, unsigned)
NEVER(cudaEventDestroy, cudaEvent_t)
NEVER(cudaEventRecord, cudaEvent_t, cudaStream_t)
NEVER(cudaEventSynchronize, cudaEvent_t)
NEVER(cudaFreeHost, void *)
NEVER(cudaMallocHost, void **, size_t)
NEVER(cudaFuncGetAttributes, cudaFuncAttributes *, const void *)
NEVER(cudaFuncSetAttribute, const void *, cudaFuncAttribute, int)
NEVER(cudaMemcpy, void *, const void *, size_t, cudaMemcpyKind)
NEVER(cudaMemcpyAsync, void *, const void *, size_t, cudaMemcpyKind, cudaStream_t)
}

/* ---- what must hold ---- */

static weft_memory account;
static int failures;

static void expect(bool holds, const char *what)
{
  if (holds) return;
  failures++;
  printf("FAILED: %s\n", what);
}

static weft_ctx context(int device, double limit)
{
  weft_ctx ctx = {};
  ctx.device = device;
  ctx.memory = &account;
  ctx.device_limit = limit;
  return ctx;
}

/* A call that takes blocks of these sizes, drops every third on the way, and ends. */
static bool call(weft_ctx *ctx, const std::vector<size_t> &sizes, unsigned char mark)
{
  weft_device_arena mem = weft_device_begin(ctx);
  std::vector<unsigned char *> mine;
  bool good = true, taken = true;
  for (size_t k = 0; k < sizes.size() && taken; k++) {
    unsigned char *block = (unsigned char *) weft_device_take(&mem, sizes[k], 1);
    taken = block != NULL;
    if (!block) break;
    *block = mark;
    mine.push_back(block);
    if (k % 3 == 2) {
      good = good && *mine[k - 1] == mark;
      weft_device_drop(&mem, mine[k - 1]);
      mine[k - 1] = NULL;
    }
  }
  std::this_thread::yield();
  for (unsigned char *block : mine) good = good && (!block || *block == mark);
  expect(good, "a block belongs to one call");
  weft_device_end(&mem);
  return taken;
}

static size_t used_now(void) { return used[0] + used[1]; }

static void many_calls(int lane)
{
  std::mt19937 random(lane + 1);
  for (int k = 0; k < 4000; k++) {
    weft_ctx ctx = context((int) (random() % 2), random() % 50 ? 0 : 1e8);
    std::vector<size_t> sizes(random() % 12);
    for (size_t &size : sizes) size = random() % ((size_t) 1 << random() % 26);
    call(&ctx, sizes, (unsigned char) (16 * lane + k % 16));
  }
}

int main()
{
  weft_ctx one = context(0, 0), limited = context(0, 5e7);
  const std::vector<size_t> sizes = { 0, 1, 800, 4096, 1 << 20, 5000000, 33 << 20 };
  std::vector<size_t> small(sizes.begin(), sizes.end() - 1);

  call(&one, small, 1);
  const long before = driver_calls;
  const int64_t made = account.made;
  for (int k = 0; k < 100; k++) call(&one, small, 2);
  expect(driver_calls == before && account.made == made, "a second call asks the driver for nothing");
  expect(account.device_live == 0 && account.device_kept == (int64_t) used_now(), "what is kept is counted");
  for (size_t &size : small) size -= size / 8;
  call(&one, small, 3);
  expect(driver_calls == before, "blocks serve calls that need a little less");

  call(&one, sizes, 3);
  expect(account.device_kept <= 32 << 20, "blocks above 32 MB go back at once");
  std::vector<size_t> many(40, 8 << 20);
  call(&one, many, 4);
  expect(account.device_kept > 64 << 20 && account.device_kept <= 128 << 20, "at most 128 MB are kept");
  expect(account.device_kept == (int64_t) used_now() && account.device_live == 0, "and counted");

  std::vector<size_t> whole(1, TOTAL - ((size_t) 64 << 20) - 4096);
  expect(call(&one, whole, 5), "all of the device can be taken");
  expect(account.device_kept == 0 && used_now() == 0, "for which what was kept goes back");

  call(&one, small, 6);
  expect(account.device_kept > 0, "a call without a limit keeps blocks");
  expect(!call(&limited, std::vector<size_t>(1, 60000000), 7), "a limit is a limit");
  expect(account.device_kept == 0 && used_now() == 0, "with a limit nothing is kept");

  call(&one, small, 8);
  account.allocations = 0;
  account.fail_at = 3;
  expect(!call(&one, small, 9), "the third allocation fails");
  account.fail_at = 0;
  expect(account.device_live == 0 && account.device_kept == (int64_t) used_now(), "nothing is lost by that");

  const size_t there = streams.size();
  broken = true;
  call(&one, small, 10);
  broken = false;
  expect(account.device_live == 0 && streams.size() == there - 1, "nothing is kept of a call that broke the device");
  weft_kept_free_all();
  expect(account.device_kept == 0 && used_now() == 0, "weft_free() gives everything back");

  std::vector<std::thread> threads;
  for (int lane = 0; lane < 4; lane++) threads.emplace_back(many_calls, lane);
  for (std::thread &thread : threads) thread.join();
  expect(account.device_live == 0 && account.device_kept == (int64_t) used_now(), "counts agree after random calls");
  expect(account.device_kept <= 256 << 20 && streams.size() <= 32, "and are within their limits");
  weft_kept_free_all();
  expect(account.device_kept == 0 && used_now() == 0 && blocks.empty(), "all of it goes back");
  for (cudaStream_t stream; !streams.empty(); cudaStreamDestroy(stream)) stream = (cudaStream_t) *streams.begin();
  printf("%d findings, %ld calls of the driver\n", failures, driver_calls);
  return failures > 0;
}
