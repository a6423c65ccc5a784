/* Pairs of attributes of at most four planes, with or without missing values, and any classes: counted and screened in
 * one kernel on Hopper's 1-bit tensor cores (wgmma, compute capability 9.0a), so that no counts go to memory. What
 * passes is listed, and scored exactly afterwards (counted_hopper.cu).
 *
 * Blocks of 64 attributes by 256 rows of data lie together, attributes in groups of eight, one plane of a group after
 * the other; each group's plane is 256 bytes in the order of shared memory (core/device/hopper.cuh):
 *
 *   block   | eight 0: plane 0, plane 1, .. | eight 1: plane 0, .. | ... | eight 7 |
 *
 * So a stage of 256 rows is one copy for side a and one or a few for side b. A warpgroup counts 64 attributes of side a
 * against eights of side b: a product takes one plane of a, whose eights are apart, and all planes of b; a thread's
 * accumulators over all planes of a are whole tables of its pairs. Side a is the same for all warpgroups of a block.
 *
 * Warpgroups do not wait for each other: while one screens (fused.cuh), tensor cores count for the others. */
/* Build: hopper. */
#include <cmath>
#include "mi/pairs/cuda/counted_hopper.cuh"
#include "mi/search/cuda/products_hopper.cuh"
#include "mi/pairs/cuda/fused.cuh"
#include "mi/search/cuda/tiles_hopper.cuh"
#include "mi/pairs/cuda/fused_hopper.cuh"

#define GROUPS 4                /* warpgroups */
#define COUNTING (GROUPS * 128) /* threads */
/* Registers go from warpgroup to warpgroup, so that the producer is a whole one. */
#define FUSED_THREADS (COUNTING + 128)
#define STAGES 6
#define BLOCK 64             /* attributes that are arranged together */
#define EIGHT_BYTES (8 * 32) /* of a plane */

/* What a launch needs of a side: floats [class, or after the last: all rows][plane][room], then Σ a log2(a levels / n)
 * over the levels of all rows, then n times what the attribute says alone; [room] each. */
struct fused_args {
  const uint8_t *a, *b; /* arranged planes */
  int steps, class_step[WEFT_MI_PLANAR_CLASSES + 1];
  uint32_t classes, count_a, count_b, room_a, room_b;
  tile_grid grid;
  tile_walk start;
  uint64_t first;
  uint32_t tiles;
  const float *side_a, *side_b;
  float rows[WEFT_MI_PLANAR_CLASSES + 1]; /* of a class, of all */
  float weight[WEFT_MI_PLANAR_CLASSES + 1];
  fused_thresholds thresholds;
  mi_passed passed;
};

template <class S> struct fused_room {
  static constexpr int SPAN = GROUPS * S::OCTETS * 8;              /* attributes of b that a block counts */
  static constexpr uint32_t UNITS = ROWS_A / 64 * (ROWS_B / SPAN); /* of a tile */
  static constexpr uint32_t A_BYTES = BLOCK / 8 * S::PA * EIGHT_BYTES, B_BYTES = S::OCTETS * S::PB * EIGHT_BYTES;
  static constexpr uint32_t BYTES = A_BYTES + GROUPS * B_BYTES;       /* B_BYTES: of a warpgroup */
  static constexpr uint32_t PIECES = SPAN < BLOCK ? 1 : SPAN / BLOCK; /* copies for side b */
  static constexpr uint32_t SHARED = STAGES * BYTES + S::PA * S::COUNTS * 4 * COUNTING;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The first attributes of unit k; false when it has no pairs. */
template <class S>
__device__ static inline bool fused_unit(const fused_args &args, uint32_t k, tile_walk *walk, uint32_t *one,
                                         uint32_t *other)
{
  constexpr uint32_t UNITS = fused_room<S>::UNITS, SPAN = fused_room<S>::SPAN;
  uint32_t ta, tb;
  if (!place_tile(&args.grid, walk, args.first + k / UNITS, &ta, &tb)) return false;
  *one = ta * ROWS_A + k % UNITS % 2 * 64;
  *other = tb * ROWS_B + k % UNITS / 2 * SPAN;
  return *one < args.count_a && *other < args.count_b && (!args.grid.same || *other + SPAN > *one + 1);
}

/* Loads a unit's k-steps into the ring of stages; each lane of the warp issues one copy per step. */
template <class S>
__device__ static inline void bring_unit(const fused_args &args, ring<STAGES> *copies, uint8_t *stages, uint32_t one,
                                         uint32_t other, uint32_t *step)
{
  typedef fused_room<S> R;
  const uint32_t lane = threadIdx.x % 32, row = lane ? other + (lane - 1) * BLOCK : one;
  const uint32_t planes = lane ? S::PB : S::PA, apart = BLOCK / 8 * planes * EIGHT_BYTES;
  const uint32_t bytes = lane ? GROUPS * R::B_BYTES / R::PIECES : R::A_BYTES;
  const uint32_t to = lane ? R::A_BYTES + (lane - 1) * bytes : 0;
  const uint8_t *from =
      (lane ? args.b : args.a) + (size_t) (row / BLOCK) * args.steps * apart + row % BLOCK / 8 * planes * EIGHT_BYTES;
  for (int s = 0; s < args.steps; s++, ++*step, from += apart) {
    const uint32_t at = *step % STAGES;
    if (*step >= STAGES) barrier_wait(&copies->empty[at], (*step / STAGES - 1) & 1);
    if (lane == 0) barrier_expect(&copies->full[at], R::BYTES);
    __syncwarp();
    if (lane <= R::PIECES) bulk_copy(stages + at * R::BYTES + to, from, bytes, &copies->full[at]);
  }
}

/* Adds `steps` k-steps to the counts of a warpgroup. */
template <class S>
__device__ static inline void count_unit(ring_place<STAGES> *w, int steps, uint32_t (&c)[S::PA][S::COUNTS])
{
  const auto keep = [&] {
#  pragma unroll
    for (int x = 0; x < S::PA; x++) hold(c[x]);
  };
  uint32_t before = 0; /* the stage of the step before */
  for (int s = 0; s < steps; s++) {
    const uint64_t a = operand_at(*w, w->a, fused_room<S>::BYTES), b = operand_at(*w, w->b, fused_room<S>::BYTES);
    barrier_wait(&w->copies->full[w->at], w->phase);
    keep();
    product_fence();
#  pragma unroll
    for (int x = 0; x < S::PA; x++) mma_64_rows(c[x], a + x * EIGHT_BYTES / 16, b);
    product_commit();
    if (s > 0) { /* the step before is done: its stage is free */
      product_wait<1>();
      keep();
      if (threadIdx.x % 32 == 0) barrier_arrive(&w->copies->empty[before]);
    }
    before = w->at;
    next_place(w);
  }
  product_wait<0>();
  keep();
  if (threadIdx.x % 32 == 0) barrier_arrive(&w->copies->empty[before]);
}

template <class S>
__device__ static inline fused_margins margins_of(const fused_args &args, uint32_t class_index, uint32_t one,
                                                  uint32_t other)
{
  const fused_margins margins = { args.side_a + (size_t) (class_index * S::PA) * args.room_a + one,
                                  args.side_b + (size_t) (class_index * S::PB) * args.room_b + other, args.room_a,
                                  args.room_b };
  return margins;
}

__device__ static inline void list_pair(const fused_args &args, uint32_t one, uint32_t other)
{
  if (one >= args.count_a || other >= args.count_b || (args.grid.same && other <= one)) return;
  const uint32_t at = atomicAdd(args.passed.count, 1u);
  if (at < args.passed.capacity) args.passed.pairs[at] = make_uint2(one, other);
}

/* One warp loads, four warpgroups count. After each class a thread screens its pairs and keeps their sums; after the
 * last it adds the sum over all classes, if the pair needs it, and lists what may reach the threshold. */
template <class S, bool EACH>
__global__ static void __launch_bounds__(FUSED_THREADS, 1) screen_fused(const __grid_constant__ fused_args args)
{
  extern __shared__ __align__(1024) uint8_t stages[];
  __shared__ ring<STAGES> copies;
  constexpr int PAIRS
  = 4 * S::OCTETS; /* of a thread */
  const uint32_t thread = threadIdx.x, warp_of_block = __shfl_sync(0xffffffffu, thread / 32, 0);
  make_ring(&copies, COUNTING / 32);

  const uint32_t units = args.tiles * fused_room<S>::UNITS;
  uint32_t one, other;
  tile_walk walk = args.start;
  if (warp_of_block >= COUNTING / 32) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    uint32_t step = 0; /* k-steps since the start */
    if (warp_of_block == COUNTING / 32)
      for (uint32_t k = blockIdx.x; k < units; k += gridDim.x)
        if (fused_unit<S>(args, k, &walk, &one, &other)) bring_unit<S>(args, &copies, stages, one, other, &step);
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 112;"); /* of 96 that a thread starts with */
  ring_place<STAGES> w = {
    &copies, spaced_descriptor(stages, S::PA * EIGHT_BYTES),
    operand_descriptor(stages + fused_room<S>::A_BYTES + warp_of_block / 4 * fused_room<S>::B_BYTES), 0, 0
  };
  uint2 *const before = (uint2 *) (stages + STAGES * fused_room<S>::BYTES) + thread;
  const uint32_t lane = thread % 32;
  for (uint32_t k = blockIdx.x; k < units; k += gridDim.x) {
    if (!fused_unit<S>(args, k, &walk, &one, &other)) continue;
    one += warp_of_block % 4 * 16 + lane / 4;
    other += warp_of_block / 4 * S::OCTETS * 8 + lane % 4 * 2;
    uint32_t c[S::PA][S::COUNTS];
    float joint[PAIRS], alone[PAIRS][2];
#  pragma unroll
    for (int x = 0; x < S::PA; x++)
#  pragma unroll
      for (int i = 0; i < S::COUNTS; i++) c[x][i] = 0;
#  pragma unroll
    for (int i = 0; i < S::PA * S::COUNTS / 2; i++) before[i * COUNTING] = make_uint2(0, 0);
#  pragma unroll
    for (int i = 0; i < PAIRS; i++) joint[i] = alone[i][0] = alone[i][1] = 0;
#  pragma unroll 1
    for (uint32_t class_index = 0; class_index < args.classes; class_index++) {
      const int steps = args.class_step[class_index + 1] - args.class_step[class_index];
      if (!steps) continue;
      const fused_margins margins = margins_of<S>(args, class_index, one, other);
      count_unit<S>(&w, steps, c);
#  pragma unroll
      for (int p = 0; p < PAIRS; p += 2) {
        const fused_sums sums = fused_class<S, EACH, false>(c, before, COUNTING, p / 4, p / 2 % 2, margins,
                                                            args.rows[class_index], args.weight[class_index]);
#  pragma unroll
        for (int i = 0; i < 2; i++) {
          joint[p + i] += sums.joint[i];
          if (EACH) {
            alone[p + i][0] += sums.one[i];
            alone[p + i][1] += sums.other[i];
          }
        }
      }
    }
    const fused_margins margins = margins_of<S>(args, args.classes, one, other);
    const float *const levels_a = margins.a + S::PA * args.room_a, *const levels_b = margins.b + S::PB * args.room_b;
    const float n = args.rows[args.classes];
#  pragma unroll
    for (int p = 0; p < PAIRS; p += 2) {
      const uint32_t of_a = p / 2 % 2 * 8, of_b = p / 4 * 8;
      float own[2] = { 0, 0 };
      bool some = S::VARY;
      if (!S::VARY)
#  pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
          own[i] = levels_a[args.room_a + of_a] + levels_b[args.room_b + of_b + i];
          some |= fused_passes(args.thresholds, joint[p + i] - (levels_a[of_a] + levels_b[of_b + i]), own[i], n);
        }
      if (!some) continue;
      const fused_sums sums =
          fused_class<S, EACH, true>(c, before, COUNTING, p / 4, p / 2 % 2, margins, n, args.weight[args.classes]);
#  pragma unroll
      for (uint32_t i = 0; i < 2; i++) {
        if (EACH) own[i] = fmaxf(alone[p + i][0] - sums.one[i], 0.0f) + fmaxf(alone[p + i][1] - sums.other[i], 0.0f);
        if (fused_passes(args.thresholds, joint[p + i] - sums.joint[i], own[i], S::VARY ? sums.rows[i] : n))
          list_pair(args, one + of_a, other + of_b + i);
      }
    }
  }
}

#else /* host side, and devices that never run it */
template <class S, bool EACH> __global__ static void screen_fused(const __grid_constant__ fused_args args)
{
  (void) args;
}
#endif

/* ---- planes and sides ---- */

/* One thread per 16 bytes of a plane of an attribute; zero past the end. */
__global__ static void arrange_eights(const uint32_t *planes, uint32_t words, size_t count, uint32_t planes_each,
                                      size_t room, uint8_t *out)
{
  const uint32_t pieces = words / 4;
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x, attribute = k / pieces / planes_each;
  const uint32_t piece = (uint32_t) (k % pieces), plane = (uint32_t) (k / pieces % planes_each);
  const size_t eight = (attribute / BLOCK * (pieces / 2) + piece / 2) * (BLOCK / 8) + attribute % BLOCK / 8;
  uint4 v = { 0, 0, 0, 0 };
  if (attribute >= room) return;
  if (attribute < count) v = *(const uint4 *) (planes + (plane * count + attribute) * words + piece * 4);
  *(uint4 *) (out + (eight * planes_each + plane) * EIGHT_BYTES + piece % 2 * 128 + attribute % 8 * 16) = v;
}

struct fused_side {
  const uint32_t *margins; /* of plane 0 of attribute 0 in class 0 */
  const int64_t *alone;
  size_t plane_rows, count, room;
  uint32_t planes, levels, classes;
  uint64_t n;
  double unit;
  float *out;
};

/* A thread per attribute: its counts by plane and class, and over all classes, and what it says by itself, all in
 * single precision as the screen reads them. */
__global__ static void make_fused_side(fused_side side)
{
  const size_t k = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= side.room) return;
  const double weight = side.levels / (double) side.n;
  uint64_t left = side.n;
  double sum = 0;
  for (uint32_t q = 0; q < side.planes; q++) {
    uint64_t rows = 0;
    for (uint32_t c = 0; c < side.classes; c++) {
      const uint32_t m = k < side.count ? side.margins[c * side.plane_rows + q * side.count + k] : 0;
      side.out[(c * side.planes + q) * side.room + k] = (float) m;
      rows += m;
    }
    side.out[(side.classes * side.planes + q) * side.room + k] = (float) rows;
    left -= rows;
    if (rows) sum += (double) rows * log2((double) rows * weight);
  }
  if (left && side.planes < side.levels) sum += (double) left * log2((double) left * weight);
  float *const levels = side.out + (size_t) (side.classes + 1) * side.planes * side.room;
  levels[k] = (float) sum;
  levels[side.room + k] = k < side.count ? (float) ((double) side.alone[k] * side.unit) : 0;
}

/* ---- host ---- */

typedef void (*fused_function)(const fused_args);
struct fused_kernel {
  fused_function run;
  uint32_t units, shared;
};

template <int PA, bool MA, int PB, bool MB> static fused_kernel kernel_of(bool each)
{
  typedef fused_shape<PA, MA, PB, MB> S;
  static_assert(fused_room<S>::SHARED <= 226 * 1024, "a multiprocessor has more, but not for this");
  const fused_kernel out = { each && S::VARY ? screen_fused<S, S::VARY> : screen_fused<S, false>, fused_room<S>::UNITS,
                             fused_room<S>::SHARED };
  return out;
}

/* run NULL: of none of these shapes. */
static fused_kernel kernel_for(const weft_mi_shape a, const weft_mi_shape b, bool each)
{
  const fused_kernel none = { NULL, 0, 0 };
#define OF(pa, ma, pb, mb) \
  if (a.planes == pa && !a.missing == !ma && b.planes == pb && !b.missing == !mb) \
    return kernel_of<pa, ma, pb, mb>(each);
#define COMPLETE(pa) OF(pa, 0, 1, 0) OF(pa, 0, 2, 0) OF(pa, 0, 3, 0) OF(pa, 0, 4, 0)
#define MISSING(pa) OF(pa, 1, 2, 1) OF(pa, 1, 3, 1) OF(pa, 1, 4, 1)
  COMPLETE(1)
  COMPLETE(2)
  COMPLETE(3)
  COMPLETE(4)
  MISSING(2)
  MISSING(3)
  MISSING(4)
#undef MISSING
#undef COMPLETE
#undef OF
  return none;
}

weft_status weft_mi_screened_arrange(weft_ctx *ctx, const weft_mi_resident *resident, const weft_mi_group *group,
                                     size_t room, uint8_t *out, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const size_t pieces = room * group->shape.planes * (resident->words / 4);
  arrange_eights<<<(unsigned) ((pieces + 255) / 256), 256, 0, stream>>>(resident->planes +
                                                                            group->plane0 * (size_t) resident->words,
                                                                        resident->words, group->count,
                                                                        group->shape.planes, room, out);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

size_t weft_mi_screened_floats(const weft_mi_pack *p, const weft_mi_group *group, size_t room)
{
  return ((size_t) (p->classes + 1) * group->shape.planes + 2) * room;
}

/* Makes a group's counts as the screen reads them, in `out`: weft_mi_screened_floats() numbers. */
weft_status weft_mi_screened_side(weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_resident *resident,
                                  const weft_mi_group *group, size_t room, float *out, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const fused_side side = { resident->margins + group->plane0,
                            resident->alone + group->first,
                            p->plane_rows,
                            group->count,
                            room,
                            group->shape.planes,
                            group->shape.levels,
                            p->classes,
                            p->n,
                            resident->f.unit,
                            out };
  make_fused_side<<<(unsigned) ((room + 127) / 128), 128, 0, stream>>>(side);
  WEFT_CUDA(cudaGetLastError());
done:
  return st;
}

/* Describes the panel for the kernel of its shapes and launches it. What passes is listed in job->passed, which may
 * overflow: the caller looks at its count. */
weft_status weft_mi_screen_pairs(weft_ctx *ctx, const mi_screened *job, const mi_threshold *threshold, uint64_t first,
                                 uint32_t tiles, cudaStream_t stream)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *p = job->pack;
  const uint32_t cells = job->a.levels * job->b.levels;
  fused_args args;
  fused_kernel kernel;
  int processors = 0;
  memset(&args, 0, sizeof args);
  args.a = job->planes[0];
  args.b = job->planes[1];
  args.classes = p->classes;
  for (uint32_t c = 0; c < p->classes; c++) {
    args.class_step[c + 1] = args.class_step[c] + (int) ((p->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
    args.rows[c] = (float) p->class_rows[c];
    args.weight[c] = p->class_rows[c] ? (float) (cells / (double) p->class_rows[c]) : 0;
  }
  args.steps = args.class_step[p->classes];
  args.rows[p->classes] = (float) p->n;
  args.weight[p->classes] = (float) (cells / (double) p->n);
  args.count_a = (uint32_t) job->count[0];
  args.count_b = (uint32_t) job->count[1];
  args.room_a = (uint32_t) job->room[0];
  args.room_b = (uint32_t) job->room[1];
  args.side_a = job->side[0];
  args.side_b = job->side[1];
  args.grid = job->grid;
  args.first = first;
  args.tiles = tiles;
  args.thresholds.mi =
      (float) (threshold->by_interaction ? threshold->min_mi : fmax(threshold->min_mi, threshold->score));
  args.thresholds.gain =
      (float) (threshold->by_interaction ? fmax(threshold->min_gain, threshold->score) : threshold->min_gain);
  args.thresholds.slack = fused_slack(cells, p->classes, (double) p->n);
  args.passed = job->passed;
  kernel = kernel_for(job->a, job->b, args.thresholds.gain > -INFINITY);
  WEFT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ctx->device));
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel.run, (size_t) kernel.shared));
  WEFT_CUDA(cudaMemsetAsync(job->passed.count, 0, sizeof *job->passed.count, stream));
  {
    const uint64_t units = (uint64_t) tiles * kernel.units;
    kernel.run<<<(units < (uint64_t) processors ? (unsigned) units : (unsigned) processors), FUSED_THREADS,
                 (size_t) kernel.shared, stream>>>(args);
    WEFT_CUDA(cudaGetLastError());
  }
done:
  return st;
}
