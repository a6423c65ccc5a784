/* Kernels that count, score and prune sets of parents; table.cu runs them.
 *
 * Counting: a set is a prefix of all its members but the least, and a leaf, the least one. A warp takes a prefix: its
 * cells (combinations of levels that may hold a row) are the rows of a bit matrix, made in registers by AND of the
 * members' planes, the levels of all leaves its columns, and 1-bit matrix units count 16 × 64 of them at a time:
 *
 *                     leaf 0      leaf 1      leaf 2
 *                   l0  l1  l2  l0  l1  l2  l0  l1  l2          c = popcount(cell AND level)
 *     cell 0         c   c   c   c   c   c   c   c   c          h(prefix + leaf) = Σ over its columns of f(c)
 *     cell 1         c   c   c   c   c   c   c   c   c
 *
 * f is the same table of fixed-point values as on the CPU, made on the host, so that sums have the same bits. No count
 * leaves the registers.
 * Pruning: sets of one size after another; each thread takes a set's raw score from the joint values, or from the count
 * of the node's own sets, adds its share and compares it with the best of its subsets. What stays goes to the host,
 * which sorts it. */
#pragma once

#include "bn/limits.h"
#include "core/device/device.cuh"
#include "bn/both/table.h"

#define FULL 0xffffffffu
#define WARPS 4
#define TILES 8 /* of eight columns */
#define COLUMNS (8 * TILES)
#define STEP_WORDS 16   /* 512 rows: two steps of the matrix units */
#define LISTED_FROM 96u /* cells of a prefix; from here on empty ones are left out */
#define MAX_CELLS WEFT_BN_TABLE_CELLS
#define MAX_LISTED WEFT_BN_TABLE_LISTED
#define MAX_MEMBERS WEFT_BN_TABLE_MEMBERS

/* One plane of ones for all rows and one of zeros come before those of the nodes. */
enum { PLANE_ALL, PLANE_NONE, PLANES_BEFORE };

/* The sets that one node (or, for joint values, none) is scored with. */
struct universe {
  uint32_t size, cand, column;        /* candidates, where they begin, where their columns begin */
  uint32_t child, root, limit;        /* the node; the plane of the rows that count; most members */
  uint32_t parents_kind, family_kind; /* rows of count_job.table */
  uint64_t score, best;               /* where its scores begin */
  uint64_t offset[MAX_MEMBERS];
};

struct count_job {
  const uint32_t *planes;        /* words each */
  const uint16_t *codes;         /* n × p */
  const uint32_t *levels, *base; /* of a node: levels, first plane */
  const universe *universes;
  const uint32_t *cand, *column_start, *column_plane, *column_leaf; /* a candidate, its first column; a column */
  const uint64_t *choose;
  const uint64_t *first_item; /* a universe: of the size at hand */
  const int64_t *f;           /* n + 1 values per table */
  const uint32_t *table;      /* which of them: [kind * q_stride + cells of the set, or of the parents] */
  int64_t *out;
  uint32_t n, p, words, universe_count, most, q_stride, cell_words, cell_list;
  int members; /* of the prefix */
};

/* c += popcounts of 16 rows AND 8 columns over 256 bits, in the layout of the matrix units' fragments; other devices
 * gather what a lane lacks from its neighbours. */
__device__ __forceinline__ void count_bits(int32_t c[4], const uint32_t a[4], const uint32_t b[2])
{
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const uint32_t lane = threadIdx.x % 32, row = lane & ~3u, column = 8 * (lane & 3u);
  for (uint32_t k = 0; k < 4; k++)
    for (int half = 0; half < 2; half++) {
      const uint32_t low = __shfl_sync(FULL, a[2 * half], row + k), high = __shfl_sync(FULL, a[2 * half + 1], row + k);
      const uint32_t left = __shfl_sync(FULL, b[half], column + k), right = __shfl_sync(FULL, b[half], column + 4 + k);
      c[0] += __popc(low & left);
      c[1] += __popc(low & right);
      c[2] += __popc(high & left);
      c[3] += __popc(high & right);
    }
#endif
}

/* ---- counting ---- */

/* A warp's shared memory. */
struct workspace {
  int64_t sum[COLUMNS];
  uint32_t offset[MAX_MEMBERS][16]; /* words to the plane of a tile's row in each member */
  uint32_t node[MAX_MEMBERS], base[MAX_MEMBERS], levels[MAX_MEMBERS];
};

__device__ static uint64_t choose_of(const count_job &job, uint32_t v, uint32_t k)
{
  return job.choose[(uint64_t) k * (job.most + 1) + v];
}

/* The largest v < upper with C(v, k) <= number, by the whole warp. */
__device__ static uint32_t last_member(const count_job &job, uint32_t upper, uint32_t k, uint64_t number, uint32_t lane)
{
  for (uint32_t first = (upper - 1) / 32 * 32;; first -= 32) {
    const uint32_t v = first + lane;
    const uint32_t found = __ballot_sync(FULL, v < upper && choose_of(job, v, k) <= number);
    if (found) return first + 31 - __clz(found);
    if (!first) return 0;
  }
}

/* Cells of the first `count` members that hold a row; how many, or q when all are taken. */
__device__ static uint32_t list_cells(const count_job &job, const workspace *mine, uint32_t count, uint32_t q,
                                      uint32_t *bits, uint16_t *list, uint32_t lane)
{
  if (q < LISTED_FROM) return q;
  uint32_t found = 0;
  for (uint32_t w = lane; w < (q + 31) / 32; w += 32) bits[w] = 0;
  __syncwarp();
  for (uint32_t i = lane; i < job.n; i += 32) {
    uint32_t cell = 0;
    for (uint32_t k = count; k-- > 0;) cell = cell * mine->levels[k] + job.codes[(uint64_t) mine->node[k] * job.n + i];
    atomicOr(&bits[cell / 32], 1u << cell % 32);
  }
  __syncwarp();
  for (uint32_t first = 0; first < (q + 31) / 32; first += 32) {
    const uint32_t w = first + lane;
    uint32_t word = w < (q + 31) / 32 ? bits[w] : 0, before = __popc(word);
    for (int d = 1; d < 32; d *= 2) {
      const uint32_t other = __shfl_up_sync(FULL, before, d);
      if (lane >= d) before += other;
    }
    const uint32_t total = __shfl_sync(FULL, before, 31);
    uint32_t at = found + before - __popc(word);
    for (; word; word &= word - 1) list[at++] = (uint16_t) (32 * w + __ffs(word) - 1);
    found += total;
  }
  __syncwarp();
  return found;
}

/* Four words at once: which of a plane's words a lane holds does not matter, as long as it holds the same of all
 * planes. */
__device__ static void meet(uint4 &a, const uint32_t *words)
{
  const uint4 b = *(const uint4 *) words;
  a.x &= b.x;
  a.y &= b.y;
  a.z &= b.z;
  a.w &= b.w;
}

template <int M>
/* Sums f over the cells of a tile's rows and 64 columns; M members, or `members` of them when M is 0. */
__device__ static void sum_tile(const count_job &job, const workspace *mine, int members, const uint32_t column[TILES],
                                const uint32_t table[TILES][2], int tiles, int64_t sum[TILES][2], uint32_t lane)
{
  const uint32_t row = lane / 4, t = lane % 4;
  int32_t c[TILES][4] = {};
  uint32_t low[M ? M : 1], high[M ? M : 1];
#pragma unroll
  for (int k = 0; k < M; k++) {
    low[k] = mine->offset[k][row] + 4 * t;
    high[k] = mine->offset[k][row + 8] + 4 * t;
  }
  for (uint32_t w = 0; w < job.words; w += STEP_WORDS) {
    uint4 l = make_uint4(FULL, FULL, FULL, FULL), h = l;
    if (M) {
#pragma unroll
      for (int k = 0; k < M; k++) {
        meet(l, job.planes + low[k] + w);
        meet(h, job.planes + high[k] + w);
      }
    } else {
      for (int k = 0; k < members; k++) {
        meet(l, job.planes + mine->offset[k][row] + 4 * t + w);
        meet(h, job.planes + mine->offset[k][row + 8] + 4 * t + w);
      }
    }
    const uint32_t first[4] = { l.x, h.x, l.y, h.y }, second[4] = { l.z, h.z, l.w, h.w };
#pragma unroll
    for (int j = 0; j < TILES; j++)
      if (j < tiles) {
        const uint4 b = *(const uint4 *) (job.planes + column[j] + w);
        const uint32_t b_first[2] = { b.x, b.y }, b_second[2] = { b.z, b.w };
        count_bits(c[j], first, b_first);
        count_bits(c[j], second, b_second);
      }
  }
#pragma unroll
  for (int j = 0; j < TILES; j++)
    if (j < tiles)
#pragma unroll
      for (int e = 0; e < 2; e++)
        sum[j][e] += job.f[table[j][e] + (uint32_t) c[j][e]] + job.f[table[j][e] + (uint32_t) c[j][2 + e]];
}

enum { STORE, STORE_NEGATIVE, ADD };

template <int M>
/* Rounded sums over the members' cells with every leaf, to out[leaf]. The first `count` members of the workspace
 * have levels; after them may come one plane with which all rows are intersected. `parents`: cells of the prefix;
 * `kind`: which row of job.table. */
__device__ static void score_leaves(const count_job &job, const universe &scope, workspace *mine, uint32_t *bits,
                                    uint16_t *list, uint32_t count, int members, uint32_t parents, uint32_t kind,
                                    uint32_t leaves, int how, int64_t *out, uint32_t lane)
{
  const uint32_t *start = job.column_start + scope.cand, columns = start[leaves], t = lane % 4;
  uint32_t q = 1;
  for (uint32_t k = 0; k < count; k++) q *= mine->levels[k];
  const uint32_t cells = list_cells(job, mine, count, q, bits, list, lane);
  int64_t carry = 0;
  for (uint32_t first = 0; first < columns; first += COLUMNS) {
    const uint32_t left = columns - first;
    const int tiles = left >= COLUMNS
    ? TILES : (int) ((left + 7) / 8);
    uint32_t column[TILES], table[TILES][2];
    int64_t sum[TILES][2] = {};
#pragma unroll
    for (int j = 0; j < TILES; j++) {
      const uint32_t at = 8 * j + lane / 4;
      column[j] = (at < left ? job.column_plane[scope.column + first + at] : (uint32_t) PLANE_NONE) * job.words + 4 * t;
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const uint32_t own = 8 * j + 2 * t + e;
        uint32_t levels = 1;
        if (own < left) levels = job.levels[job.cand[scope.cand + job.column_leaf[scope.column + first + own]]];
        table[j][e] = job.table[(uint64_t) kind * job.q_stride + parents * levels] * (job.n + 1);
      }
    }
    for (uint32_t cell = 0; cell < cells; cell += 16) {
      __syncwarp();
      if (lane < 16) {
        const uint32_t at = cell + lane;
        uint32_t rest = at >= cells ? 0 : q < LISTED_FROM ? at : list[at];
        for (uint32_t k = 0; k < (uint32_t) members; k++) {
          uint32_t plane = mine->base[k];
          if (k < count) {
            plane += rest % mine->levels[k];
            rest /= mine->levels[k];
          }
          mine->offset[k][lane] = (at < cells ? plane : (uint32_t) PLANE_NONE) * job.words;
        }
      }
      __syncwarp();
      sum_tile<M>(job, mine, members, column, table, tiles, sum, lane);
    }
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        for (int d = 4; d < 32; d *= 2) sum[j][e] += __shfl_xor_sync(FULL, sum[j][e], d);
        if (lane < 4) mine->sum[8 * j + 2 * t + e] = sum[j][e];
      }
    __syncwarp();
    /* the leaves of these columns; the last may go on in the next */
    const uint32_t end = first + (left < COLUMNS ? left : COLUMNS);
    const uint32_t leaf_first = job.column_leaf[scope.column + first],
                   leaf_last = job.column_leaf[scope.column + end - 1];
    int64_t open = 0;
    for (uint32_t leaf = leaf_first + lane; leaf <= leaf_last; leaf += 32) {
      uint32_t from = start[leaf], until = start[leaf + 1];
      int64_t total = leaf == leaf_first ? carry : 0;
      for (uint32_t k = from > first ? from : first; k < until && k < end; k++) total += mine->sum[k - first];
      if (until > end) {
        open = total;
        continue;
      }
      total = weft_bn_rounded(total);
      out[leaf] = how == STORE ? total : how == ADD ? out[leaf] + total : -total;
    }
    carry = __shfl_sync(FULL, open, (leaf_last - leaf_first) % 32);
    __syncwarp();
  }
}

template <int M, bool FAMILY>
/* Items first .. first + count - 1, a warp each: prefixes of job.members candidates with all leaves below the least of
 * them. FAMILY: the value of a parent set of a child, else a joint value. */
__global__ static void __launch_bounds__(32 * WARPS) count_sets(count_job job, uint64_t first, uint64_t count)
{
  extern __shared__ uint64_t shared[];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  workspace *mine = (workspace *) shared + warp;
  uint32_t *bits = (uint32_t *) ((workspace *) shared + WARPS) + warp * job.cell_words;
  uint16_t *list =
      (uint16_t *) ((uint32_t *) ((workspace *) shared + WARPS) + WARPS * job.cell_words) + warp * job.cell_list;
  uint64_t number = first + (uint64_t) blockIdx.x * WARPS + warp;
  if (number >= first + count) return;
  uint32_t lo = 0, hi = job.universe_count - 1; /* the last universe that begins at or before the item */
  while (lo < hi) {
    const uint32_t mid = (lo + hi + 1) / 2;
    if (job.first_item[mid] <= number)
      lo = mid;
    else
      hi = mid - 1;
  }
  const universe &scope = job.universes[lo];
  number -= job.first_item[lo];
  const int members = job.members;
  uint32_t upper = scope.size, parents = 1;
  uint64_t at = scope.offset[members + 1];
  for (uint32_t k = members; k > 0; k--) {
    const uint32_t c = last_member(job, upper, k, number, lane), node = job.cand[scope.cand + c];
    number -= choose_of(job, c, k);
    at += choose_of(job, c, k + 1);
    upper = c;
    parents *= job.levels[node];
    if (!lane) {
      mine->node[k - 1] = node;
      mine->base[k - 1] = job.base[node];
      mine->levels[k - 1] = job.levels[node];
    }
  }
  if (!upper) return; /* no leaf below */
  int64_t *out = job.out + scope.score + at;
  __syncwarp();
  if (!FAMILY) {
    if (M || members) {
      score_leaves<M>(job, scope, mine, bits, list, members, members, parents, 0, upper, STORE, out, lane);
    } else {
      if (!lane) mine->base[0] = scope.root;
      __syncwarp();
      score_leaves<1>(job, scope, mine, bits, list, 0, 1, parents, 0, upper, STORE, out, lane);
    }
    return;
  }
  if (!lane) {
    mine->base[members] = scope.root;
    mine->levels[members] = 1;
  }
  __syncwarp();
  score_leaves<M ? M + 1 : 0>(job, scope, mine, bits, list, members, members + 1, parents, scope.parents_kind, upper,
                              STORE_NEGATIVE, out, lane);
  if (!lane) {
    mine->node[members] = scope.child;
    mine->base[members] = job.base[scope.child];
    mine->levels[members] = job.levels[scope.child];
    mine->base[members + 1] = scope.root;
  }
  __syncwarp();
  score_leaves<M ? M + 2 : 0>(job, scope, mine, bits, list, members + 1, members + 2, parents, scope.family_kind, upper,
                              ADD, out, lane);
}

/* ---- pruning ---- */

struct prune_job {
  const universe *universes;
  const uint32_t *cand, *levels;
  const uint64_t *choose;
  const uint64_t *joint_offset;
  const int64_t *joint;    /* NULL: raw scores are in `score` */
  const int64_t *edge;     /* [child + p * parent]; NULL: none */
  const uint8_t *required; /* the same shape; NULL: none */
  const uint32_t *required_count;
  const double *penalty; /* units per parent configuration */
  int64_t *score, *best;
  unsigned long long *kept;
  int64_t slack;
  uint32_t p, most;
};

__device__ static uint64_t choose_of(const prune_job &job, uint32_t v, uint32_t k)
{
  return job.choose[(uint64_t) k * (job.most + 1) + v];
}

/* What weft_bn_set_share() adds on the CPU. */
__device__ static int64_t share_of(const prune_job &job, const universe &scope, const uint32_t *node, int m)
{
  const double penalty = job.penalty[scope.child];
  int64_t edges = 0;
  uint32_t missing = job.required_count ? job.required_count[scope.child] : 0;
  double q = 1;
  for (int j = 0; j < m; j++) {
    const uint64_t at = scope.child + (uint64_t) job.p * node[j];
    if (job.edge) edges += job.edge[at];
    if (job.required) missing -= job.required[at];
    if (penalty > 0) q = weft_mul(q, (double) job.levels[node[j]]);
  }
  if (missing || weft_mul(q, penalty) > (double) -WEFT_BN_NEVER / 8) return WEFT_BN_NEVER;
  return edges - (int64_t) rint(weft_mul(q, penalty));
}

/* h(S + child) - h(S) from the joint values; `node` ascends. */
__device__ static int64_t raw_of(const prune_job &job, const universe &scope, const uint32_t *node, int m)
{
  uint64_t parents = job.joint_offset[m], family = job.joint_offset[m + 1];
  int place = 0;
  for (int j = 0; j < m; j++) {
    parents += choose_of(job, node[j], j + 1);
    if (node[j] < scope.child) {
      family += choose_of(job, node[j], j + 1);
      place = j + 1;
    } else
      family += choose_of(job, node[j], j + 2);
  }
  return job.joint[family + choose_of(job, scope.child, place + 1)] - job.joint[parents];
}

/* All sets of m members of every universe of the batch. M: m, or 0 for any. */
/* Scores set x of m members; 1 when it stays. */
template <int M> __device__ static int prune_set(const prune_job &job, const universe &scope, int m, uint64_t x)
{
  uint32_t c[M ? M : MAX_MEMBERS], node[M ? M : MAX_MEMBERS], upper = scope.size;
  uint64_t number = x;
#pragma unroll
  for (int k = m; k > 0; k--) { /* the largest c with C(c, k) <= number */
    uint32_t lo = k - 1, hi = upper - 1;
    while (lo < hi) {
      const uint32_t mid = (lo + hi + 1) / 2;
      if (choose_of(job, mid, k) <= number)
        lo = mid;
      else
        hi = mid - 1;
    }
    c[k - 1] = lo;
    node[k - 1] = job.cand[scope.cand + lo];
    number -= choose_of(job, lo, k);
    upper = lo;
  }
  int64_t *score = job.score + scope.score + scope.offset[m] + x;
  const int64_t share = share_of(job, scope, node, m), raw = job.joint ? raw_of(job, scope, node, m) : *score;
  const int64_t mine = share == WEFT_BN_NEVER ? WEFT_BN_NEVER : raw + share;
  int64_t below = INT64_MIN;
  uint64_t high = 0, low = 0; /* numbers of the members above, one place down, and of those below */
#pragma unroll
  for (int j = 1; j < m; j++) high += choose_of(job, c[j], j);
#pragma unroll
  for (int j = 0; j < m; j++) {
    const int64_t other = job.best[scope.best + scope.offset[m - 1] + low + high];
    below = other > below ? other : below;
    low += choose_of(job, c[j], j + 1);
    if (j + 1 < m) high -= choose_of(job, c[j + 1], j + 1);
  }
  const int stays = mine > WEFT_BN_NEVER && (!m || mine > below - job.slack);
  *score = stays ? mine : WEFT_BN_NEVER;
  if ((uint32_t) m < scope.limit) job.best[scope.best + scope.offset[m] + x] = mine > below ? mine : below;
  return stays;
}

/* All sets of m members of every universe of the batch. M: m, or 0 for any. */
template <int M> __global__ static void prune_sets(prune_job job, int any)
{
  const universe &scope = job.universes[blockIdx.y];
  const int m = M ? M : any;
  if ((uint32_t) m > scope.limit) return;
  const uint64_t count = choose_of(job, scope.size, m), step = (uint64_t) gridDim.x * blockDim.x;
  for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x; first < count;
       first += step) { /* all lanes take part in the vote */
    const uint64_t x = first + threadIdx.x;
    const unsigned staying = __ballot_sync(FULL, x < count && prune_set<M>(job, scope, m, x));
    if (staying && threadIdx.x % 32 == 0) atomicAdd(job.kept + blockIdx.y, (unsigned long long) __popc(staying));
  }
}

/* The kept sets of universes first .., in no order; `cursor` begins where each one's list does. */
__global__ static void list_sets(const universe *universes, const int64_t *score, unsigned long long *cursor,
                                 weft_scored *list)
{
  const universe &scope = universes[blockIdx.y];
  const uint64_t count = scope.offset[scope.limit + 1], step = (uint64_t) gridDim.x * blockDim.x;
  for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x; first < count; first += step) {
    const uint64_t x = first + threadIdx.x;
    const int64_t mine = x < count ? score[scope.score + x] : WEFT_BN_NEVER;
    const int stays = mine > WEFT_BN_NEVER;
    const unsigned staying = __ballot_sync(FULL, stays), lane = threadIdx.x % 32;
    unsigned long long at = 0;
    if (!staying) continue;
    if (!lane) at = atomicAdd(cursor + blockIdx.y, (unsigned long long) __popc(staying));
    at = __shfl_sync(FULL, at, 0) + __popc(staying & ((1u << lane) - 1));
    if (stays) {
      list[at].score = (double) mine;
      list[at].index = x;
    }
  }
}
