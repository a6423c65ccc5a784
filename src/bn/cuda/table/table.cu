/* Score tables on the device: batches of nodes through the kernels of kernels.cuh. A batch fits the device;
 * joint values that do not fit are not kept: sets are then counted node by node. Gaussian data and BDs, whose f depends
 * on the counts, are left to the CPU; so are prefixes of very many cells. */
#include <chrono>
#include <cmath>
#include <cstring>
#include <type_traits>
#include "bn/plan.h"
#include "bn/cuda/bn.cuh"
#include "bn/both/joint.h"
#include "bn/both/set_terms.h"
#include "bn/cuda/table/functions.cuh"
#include "bn/cuda/table/kernels.cuh"

#define BATCH_SETS ((double) (1 << 28))
#define LAUNCH_SECONDS 0.03

/* ---- the whole ---- */

struct resident {
  weft_device_arena mem;
  weft_arena *host;
  weft_bn_ready *ready;
  weft_bn_node *nodes;
  count_job count;
  prune_job prune;
  uint32_t *classes; /* a node: class of its number of levels */
  uint32_t *root;    /* a node: plane of the rows that count */
  uint32_t class_count;
  size_t shared; /* bytes per block */
  int family;    /* sets are counted child by child */
};

/* Cells of the `count` widest among the members of a set and, for families, its child. */
static double widest(const weft_bn_ready *ready, size_t count)
{
  const weft_bn_problem *problem = ready->problem;
  double q = 1, before = INFINITY;
  size_t taken = 0;
  while (taken < count) { /* levels from the largest down, with their multiplicity */
    double largest = 0;
    size_t times = 0;
    for (size_t j = 0; j < problem->p; j++) {
      const double r = problem->levels[j];
      if (r < before && r > largest) {
        largest = r;
        times = 0;
      }
      times += r == largest && r < before;
    }
    if (largest <= 1) break;
    for (; times > 0 && taken < count; times--, taken++) q *= largest;
    before = largest;
  }
  return q;
}

static int fits_device(const weft_bn_ready *ready)
{
  const weft_bn_problem *problem = ready->problem;
  const size_t s = ready->max_parents;
  if (!weft_bn_kind(problem->score)->device) return 0;
  if (!problem->n || !s || problem->n > UINT32_MAX / 2) return 0;
  return weft_bn_device_counts((double) s, (double) problem->n, widest(ready, s), widest(ready, s + 1));
}

static weft_status copy_up(resident *device, void *to, const void *from, size_t bytes)
{
  weft_status st = WEFT_OK;
  weft_ctx *ctx = device->mem.ctx;
  WEFT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->mem.stream));
done:
  return st;
}

#define SEND(to, from, count) \
  do { \
    decltype(+(from)) from_ = (from); \
    std::remove_const<std::remove_pointer<decltype(from_)>::type>::type *to_; \
    WEFT_DEVICE_TAKE(to_, &device->mem, (count)); \
    WEFT_TRY(copy_up(device, to_, from_, (count) * sizeof *to_)); \
    (to) = to_; \
  } while (0)

/* Planes of all nodes, codes, levels. */
static weft_status send_columns(weft_ctx *ctx, resident *device)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = device->ready->problem;
  const size_t n = problem->n, p = problem->p, words = (n + 511) / 512 * STEP_WORDS;
  size_t planes = PLANES_BEFORE;
  uint32_t *base, *plane;
  WEFT_TAKE(base, device->host, p);
  WEFT_TAKE(device->root, device->host, p);
  for (size_t j = 0; j < p; j++) {
    base[j] = (uint32_t) planes;
    planes += (size_t) problem->levels[j];
  }
  for (size_t j = 0; j < p; j++) {
    device->root[j] = PLANE_ALL;
    if (!problem->set) continue;
    int any = 0;
    for (size_t i = 0; i < n && !any; i++) any = problem->set[j * n + i] != 0;
    if (any) device->root[j] = (uint32_t) planes++;
  }
  if (planes * words > UINT32_MAX) {
    st = weft_fail(ctx, WEFT_ERR_INPUT, "The data have too many bits for the device; use `run = \"cpu\"`.");
    goto done;
  }
  WEFT_TAKE0(plane, device->host, planes * words);
  for (size_t i = 0; i < n; i++) plane[i / 32] |= 1u << i % 32;
  for (size_t j = 0; j < p; j++) {
    const uint16_t *codes = device->ready->columns.codes + j * n;
    for (size_t i = 0; i < n; i++) plane[(base[j] + codes[i]) * words + i / 32] |= 1u << i % 32;
    if (device->root[j] == PLANE_ALL) continue;
    for (size_t i = 0; i < n; i++)
      if (!problem->set[j * n + i]) plane[device->root[j] * words + i / 32] |= 1u << i % 32;
  }
  SEND(device->count.planes, plane, planes * words);
  SEND(device->count.codes, device->ready->columns.codes, n * p);
  SEND(device->count.levels, device->ready->columns.levels, p);
  SEND(device->count.base, base, p);
  SEND(device->count.choose, device->ready->binomials.choose, (device->ready->max_parents + 3) * (p + 1));
  device->prune.levels = device->count.levels;
  device->prune.choose = device->count.choose;
  device->count.n = (uint32_t) n;
  device->count.p = device->prune.p = (uint32_t) p;
  device->count.words = (uint32_t) words;
  device->count.most = device->prune.most = (uint32_t) device->ready->binomials.most;
done:
  return st;
}

/* Which f a set takes, for all products of levels that s nodes can have, and the values of all f. Rows of the table,
 * child by child: 1 + class of the child where the mass varies with its levels (score_kinds.h), else 0. */
static weft_status send_functions(weft_ctx *ctx, resident *device)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = device->ready->problem;
  const size_t p = problem->p, n = problem->n, s = device->ready->max_parents + (device->family ? 0 : 1);
  const weft_bn_score_varies varies = weft_bn_kind(problem->score)->varies;
  functions list;
  uint8_t *reached;
  uint32_t *class_levels;
  memset(&list, 0, sizeof list);
  WEFT_TAKE(device->classes, device->host, p);
  WEFT_TAKE(class_levels, device->host, p);
  for (size_t j = 0; j < p; j++) {
    uint32_t k = 0;
    while (k < device->class_count && class_levels[k] != (uint32_t) problem->levels[j]) k++;
    if (k == device->class_count) class_levels[device->class_count++] = (uint32_t) problem->levels[j];
    device->classes[j] = k;
  }
  list.q_stride = (uint32_t) widest(device->ready, s < 1 ? 1 : s) + 1;
  list.kinds = device->family && varies != WEFT_BN_NEITHER ? 1 + device->class_count : 1;
  list.room = 1u << 16;
  WEFT_TAKE(list.a, device->host, list.room);
  WEFT_TAKE0(list.table, device->host, (size_t) list.kinds * list.q_stride);
  WEFT_TAKE0(reached, device->host, list.q_stride);
  reached[1] = 1;
  for (size_t step = 0; step < s; step++)
    for (uint32_t q = list.q_stride; q-- > 1;)
      for (uint32_t k = 0; k < device->class_count && reached[q]; k++)
        if ((uint64_t) q * class_levels[k] < list.q_stride) reached[q * class_levels[k]] = 1;
  for (uint32_t q = 1; q < list.q_stride; q++) {
    if (!reached[q]) continue;
    for (uint32_t kind = 0; kind < list.kinds; kind++) {
      const weft_bn_masses mass =
          weft_bn_masses_of(problem->score, problem->ess, q, q, kind ? class_levels[kind - 1] : 1);
      const bool of_parents = (varies == WEFT_BN_PARENTS) == (kind > 0);
      const uint32_t found = find_function(&list, of_parents ? mass.parents : mass.family);
      if (found == UINT32_MAX)
        WEFT_TRY(weft_fail(ctx, WEFT_ERR_MEMORY, "Columns have too many different numbers of levels for the device."));
      list.table[(size_t) kind * list.q_stride + q] = found;
    }
  }
  {
    int64_t *value;
    WEFT_TAKE(value, device->host, (size_t) list.count * (n + 1));
    fill_task_data data = { &list, value, n, ldexp(1.0, device->ready->bits + WEFT_BN_GUARD_BITS) };
    WEFT_TRY(weft_bn_run_tasks(ctx, problem->threads, list.count, fill_task, &data, 0, 0));
    SEND(device->count.f, value, (size_t) list.count * (n + 1));
    SEND(device->count.table, list.table, (size_t) list.kinds * list.q_stride);
    WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
    weft_arena_drop(device->host, value);
  }
  device->count.q_stride = list.q_stride;
done:
  return st;
}

/* ---- batches of nodes ---- */

struct batch {
  weft_arena host;
  universe *universes;
  uint64_t *first_item;
  uint32_t *cand, *column_start, *column_plane, *column_leaf;
  uint64_t scores, bests;
  size_t count;
  /* on the device */
  universe *d_universes;
  uint64_t *d_first;
  uint32_t *d_cand, *d_start, *d_plane, *d_leaf;
};

/* `nodes`: count of them; NULL: one universe of all nodes, for joint values. */
static weft_status make_batch(weft_ctx *ctx, resident *device, const weft_bn_node *nodes, size_t count, batch *group)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = device->ready->problem;
  const weft_bn_score_varies varies = weft_bn_kind(problem->score)->varies;
  size_t members = 0, columns = 0, at = 0, column = 0;
  uint32_t *base;
  memset(group, 0, sizeof *group);
  group->host = weft_arena_begin(ctx);
  group->count = nodes ? count : 1;
  for (size_t k = 0; k < group->count; k++) {
    const size_t size = nodes ? nodes[k].universe : problem->p;
    members += size + 1;
    for (size_t j = 0; j < size; j++) columns += (size_t) problem->levels[nodes ? nodes[k].candidate[j] : j];
  }
  WEFT_TAKE0(group->universes, &group->host, group->count);
  WEFT_TAKE(group->first_item, &group->host, group->count + 1);
  WEFT_TAKE0(group->cand, &group->host, members);
  WEFT_TAKE0(group->column_start, &group->host, members);
  WEFT_TAKE(group->column_plane, &group->host, columns);
  WEFT_TAKE(group->column_leaf, &group->host, columns);
  WEFT_TAKE(base, &group->host, problem->p + 1);
  base[0] = PLANES_BEFORE;
  for (size_t j = 0; j < problem->p; j++) base[j + 1] = base[j] + (uint32_t) problem->levels[j];
  for (size_t k = 0; k < group->count; k++) {
    universe *scope = &group->universes[k];
    const size_t child = nodes ? nodes[k].node : 0;
    scope->size = (uint32_t) (nodes ? nodes[k].universe : problem->p);
    scope->limit = (uint32_t) (nodes ? nodes[k].max_parents : device->ready->max_parents + 1);
    scope->cand = (uint32_t) at;
    scope->column = (uint32_t) column;
    scope->child = (uint32_t) child;
    scope->root = nodes ? device->root[child] : (uint32_t) PLANE_ALL;
    if (device->family && varies == WEFT_BN_PARENTS) scope->parents_kind = 1 + device->classes[child];
    if (device->family && varies == WEFT_BN_FAMILY) scope->family_kind = 1 + device->classes[child];
    scope->score = group->scores;
    scope->best = group->bests;
    weft_bn_offsets(&device->ready->binomials, scope->size, scope->limit, scope->offset);
    group->scores += scope->offset[scope->limit + 1];
    group->bests += scope->offset[scope->limit];
    for (size_t j = 0; j < scope->size; j++) {
      const size_t v = nodes ? nodes[k].candidate[j] : j;
      group->cand[at] = (uint32_t) v;
      group->column_start[at++] = (uint32_t) (column - scope->column);
      for (uint32_t l = base[v]; l < base[v + 1]; l++, column++) {
        group->column_plane[column] = l;
        group->column_leaf[column] = (uint32_t) j;
      }
    }
    group->column_start[at++] = (uint32_t) (column - scope->column);
  }
  SEND(group->d_universes, group->universes, group->count);
  SEND(group->d_cand, group->cand, members);
  SEND(group->d_start, group->column_start, members);
  SEND(group->d_plane, group->column_plane, columns);
  SEND(group->d_leaf, group->column_leaf, columns);
  WEFT_DEVICE_TAKE(group->d_first, &device->mem, group->count + 1);
  WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
done:
  return st;
}

static void drop_batch(resident *device, batch *group)
{
  void *blocks[] = { group->d_universes, group->d_cand, group->d_start, group->d_plane, group->d_leaf, group->d_first };
  cudaStreamSynchronize(device->mem.stream);
  for (void *block : blocks)
    if (block) weft_device_drop(&device->mem, block);
  weft_arena_end(&group->host);
}

typedef void count_kernel(count_job, uint64_t, uint64_t);

static count_kernel *count_kernel_for(int members, int family)
{
  static count_kernel *const joint[] = { count_sets<0, false>, count_sets<1, false>, count_sets<2, false>,
                                         count_sets<3, false>, count_sets<4, false> };
  static count_kernel *const by_child[] = { count_sets<0, true>, count_sets<1, true>, count_sets<2, true>,
                                            count_sets<3, true>, count_sets<4, true> };
  return (family ? by_child : joint)[members <= 4 ? members : 0];
}

/* All sets of `size` members of the batch's universes, in launches of about LAUNCH_SECONDS. */
static weft_status count_size(weft_ctx *ctx, resident *device, batch *group, size_t size, int64_t *out, double from,
                              double to)
{
  weft_status st = WEFT_OK;
  count_job job = device->count;
  count_kernel *kernel = count_kernel_for((int) size - 1, device->family);
  uint64_t first = 0, total = 0, portion = 8192;
  for (size_t k = 0; k < group->count; k++) {
    group->first_item[k] = total;
    if (size <= group->universes[k].limit)
      total += weft_bn_choose(&device->ready->binomials, group->universes[k].size, size - 1);
  }
  group->first_item[group->count] = total;
  WEFT_TRY(copy_up(device, group->d_first, group->first_item, (group->count + 1) * sizeof *group->first_item));
  WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
  job.universes = group->d_universes;
  job.universe_count = (uint32_t) group->count;
  job.cand = group->d_cand;
  job.column_start = group->d_start;
  job.column_plane = group->d_plane;
  job.column_leaf = group->d_leaf;
  job.first_item = group->d_first;
  job.out = out;
  job.members = (int) size - 1;
  WEFT_CUDA(weft_device_allow_shared((const void *) kernel, device->shared));
  while (first < total) {
    const uint64_t now = portion < total - first ? portion : total - first;
    const auto started = std::chrono::steady_clock::now();
    kernel<<<(unsigned) ((now + WARPS - 1) / WARPS), 32 * WARPS, device->shared, device->mem.stream>>>(job, first, now);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    first += now;
    if (took < LAUNCH_SECONDS / 2)
      portion *= took < LAUNCH_SECONDS / 8 ? 4 : 2;
    else if (took > 2 * LAUNCH_SECONDS && portion > 64)
      portion /= 2;
    if (portion > (uint64_t) 1 << 30) portion = (uint64_t) 1 << 30;
    WEFT_TRY(weft_poll(ctx, from + (to - from) * (double) first / (double) total, 1));
  }
done:
  return st;
}

/* Values that need no device: of the empty set, and of every child without parents. */
static int64_t empty_value(resident *device, const universe *scope)
{
  const weft_bn_problem *problem = device->ready->problem;
  weft_bn_counter *counter = &device->ready->counters[0];
  const size_t n = problem->n;
  const int32_t *set = problem->set ? problem->set + (size_t) scope->child * n : NULL;
  const uint16_t *codes = device->ready->columns.codes + (size_t) scope->child * n;
  const double levels = problem->levels[scope->child];
  uint32_t rows = 0;
  int64_t family = 0;
  for (size_t i = 0; i < n; i++)
    if (!set || !set[i]) {
      counter->seen[codes[i]]++;
      rows++;
    }
  const weft_bn_masses mass = weft_bn_masses_of(problem->score, problem->ess, 1, 1, levels);
  const int64_t *f = weft_bn_function(counter, mass.family, rows);
  for (uint32_t l = 0; l < (uint32_t) problem->levels[scope->child]; l++) {
    family += f[counter->seen[l]];
    counter->seen[l] = 0;
  }
  f = weft_bn_function(counter, mass.parents, rows);
  return weft_bn_rounded(family) - weft_bn_rounded(f[rows]);
}

typedef void prune_kernel(prune_job, int);

/* Scores and prunes all sets of the batch, one size after another, since a set needs the best of its subsets. */
static weft_status prune_batch(weft_ctx *ctx, resident *device, const batch *group, const prune_job *job)
{
  weft_status st = WEFT_OK;
  static prune_kernel *const kernels[] = { prune_sets<0>, prune_sets<1>, prune_sets<2>, prune_sets<3>,
                                           prune_sets<4>, prune_sets<5>, prune_sets<6> };
  for (size_t m = 0; m <= device->ready->max_parents; m++) {
    uint64_t most = 0;
    for (size_t k = 0; k < group->count; k++) {
      const uint64_t sets =
          m <= group->universes[k].limit ? weft_bn_choose(&device->ready->binomials, group->universes[k].size, m) : 0;
      if (sets > most) most = sets;
    }
    if (!most) continue;
    const dim3 grid((unsigned) fmin(ceil((double) most / 256), 1 << 20), (unsigned) group->count);
    kernels[m <= 6 ? m : 0]<<<grid, 256, 0, device->mem.stream>>>(*job, (int) m);
    WEFT_CUDA(cudaGetLastError());
    WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
    WEFT_TRY(weft_poll(ctx, 0, 1));
  }
done:
  return st;
}

/* Sends what is kept of the batch's nodes to the host, as many nodes at a time as there is room for. */
static weft_status fetch_batch(weft_ctx *ctx, resident *device, const batch *group, weft_arena *keep,
                               weft_bn_node *nodes, const int64_t *score, const unsigned long long *kept, double done)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_scored *d_list = NULL, **list;
  unsigned long long *d_cursor = NULL, *cursor;
  uint64_t most = 0, total = 0;
  size_t room;
  for (size_t k = 0; k < group->count; k++) {
    total += kept[k];
    if (kept[k] > most) most = kept[k];
    nodes[k].score = NULL;
    nodes[k].kept = (size_t) kept[k];
  }
  WEFT_TAKE(list, &host, group->count);
  WEFT_TAKE(cursor, &host, group->count);
  WEFT_DEVICE_TAKE(d_cursor, &device->mem, group->count);
  room = weft_device_chunk(ctx, (size_t) total + 1, sizeof *d_list, 0);
  if (room < most) {
    st = weft_fail_memory(ctx, "device", (double) most * sizeof *d_list, weft_device_available(ctx),
                          "the sets kept of one node");
    goto done;
  }
  WEFT_DEVICE_TAKE(d_list, &device->mem, room);
  for (size_t first = 0, last; first < group->count; first = last) {
    uint64_t at = 0, sets = 0;
    for (last = first; last < group->count && at + kept[last] <= room; last++) {
      const universe *scope = &group->universes[last];
      cursor[last] = at;
      at += kept[last];
      if (scope->offset[scope->limit + 1] > sets) sets = scope->offset[scope->limit + 1];
    }
    const dim3 grid((unsigned) fmin(ceil((double) sets / 256), 1 << 20), (unsigned) (last - first));
    WEFT_TRY(copy_up(device, d_cursor, cursor + first, (last - first) * sizeof *cursor));
    list_sets<<<grid, 256, 0, device->mem.stream>>>(group->d_universes + first, score, d_cursor, d_list);
    WEFT_CUDA(cudaGetLastError());
    for (size_t k = first; k < last; k++) {
      weft_scored *one;
      WEFT_TAKE(one, &host, kept[k]);
      list[k] = one;
      if (kept[k])
        WEFT_CUDA(cudaMemcpyAsync(one, d_list + cursor[k], kept[k] * sizeof *d_list, cudaMemcpyDeviceToHost,
                                  device->mem.stream));
    }
    WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
    WEFT_TRY(weft_bn_collect(ctx, keep, device->ready, nodes + first, last - first, list + first, done));
    for (size_t k = first; k < last; k++) weft_arena_drop(&host, list[k]);
  }
done:
  if (d_list) weft_device_drop(&device->mem, d_list);
  if (d_cursor) weft_device_drop(&device->mem, d_cursor);
  weft_arena_end(&host);
  return st;
}

/* Counts, prunes and fetches the sets of `count` nodes. Device memory that it takes is given back, unless a status
 * ends the call. */
static weft_status run_batch(weft_ctx *ctx, resident *device, weft_arena *keep, weft_bn_node *nodes, size_t count,
                             double from, double to)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  batch group;
  prune_job job = device->prune;
  unsigned long long *kept;
  WEFT_TRY(make_batch(ctx, device, nodes, count, &group));
  WEFT_TAKE0(kept, &host, count);
  WEFT_DEVICE_TAKE(job.score, &device->mem, group.scores);
  WEFT_DEVICE_TAKE(job.best, &device->mem, group.bests);
  WEFT_DEVICE_TAKE(job.kept, &device->mem, count);
  WEFT_CUDA(cudaMemsetAsync(job.kept, 0, count * sizeof *job.kept, device->mem.stream));
  job.universes = group.d_universes;
  job.cand = group.d_cand;
  if (device->family) {
    int64_t *empty;
    WEFT_TAKE(empty, &host, count);
    for (size_t k = 0; k < count; k++) {
      empty[k] = empty_value(device, &group.universes[k]);
      WEFT_TRY(copy_up(device, job.score + group.universes[k].score, empty + k, sizeof *empty));
    }
    for (size_t m = 1; m <= device->ready->max_parents; m++)
      WEFT_TRY(count_size(ctx, device, &group, m, job.score,
                          from + (to - from) * (double) (m - 1) / (double) device->ready->max_parents,
                          from + (to - from) * (double) m / (double) device->ready->max_parents));
  }
  WEFT_TRY(prune_batch(ctx, device, &group, &job));
  WEFT_CUDA(cudaMemcpyAsync(kept, job.kept, count * sizeof *kept, cudaMemcpyDeviceToHost, device->mem.stream));
  WEFT_CUDA(cudaStreamSynchronize(device->mem.stream));
  weft_device_drop(&device->mem, job.best);
  WEFT_TRY(fetch_batch(ctx, device, &group, keep, nodes, job.score, kept, to));
  weft_device_drop(&device->mem, job.score);
  weft_device_drop(&device->mem, job.kept);
done:
  drop_batch(device, &group);
  weft_arena_end(&host);
  return st;
}

/* Shares of edges, required parents, penalties. */
static weft_status send_shares(weft_ctx *ctx, resident *device)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = device->ready->problem;
  const size_t p = problem->p;
  double *penalty;
  WEFT_TAKE(penalty, device->host, p);
  for (size_t i = 0; i < p; i++) penalty[i] = weft_bn_penalty(problem, i) * device->ready->unit;
  SEND(device->prune.penalty, penalty, p);
  if (problem->edge_prior) {
    int64_t *edge;
    WEFT_TAKE(edge, device->host, p * p);
    for (size_t k = 0; k < p * p; k++) edge[k] = (int64_t) rint(problem->edge_prior[k] * device->ready->unit);
    SEND(device->prune.edge, edge, p * p);
  }
  if (problem->required) {
    uint8_t *required;
    uint32_t *count;
    WEFT_TAKE(required, device->host, p * p);
    WEFT_TAKE(count, device->host, p);
    for (size_t k = 0; k < p * p; k++) required[k] = problem->required[k] != 0;
    for (size_t i = 0; i < p; i++) count[i] = (uint32_t) weft_bn_required(problem, i);
    SEND(device->prune.required, required, p * p);
    SEND(device->prune.required_count, count, p);
  }
  device->prune.slack = weft_bn_slack(device->ready);
done:
  return st;
}

/* h of all sets of at most s + 1 nodes. */
static weft_status make_joint(weft_ctx *ctx, resident *device, const uint64_t *offset)
{
  weft_status st = WEFT_OK;
  const weft_bn_problem *problem = device->ready->problem;
  const size_t sizes = device->ready->max_parents + 1, n = problem->n;
  batch group;
  int64_t *joint, empty;
  WEFT_TRY(make_batch(ctx, device, NULL, 0, &group));
  WEFT_DEVICE_TAKE(joint, &device->mem, offset[sizes + 1]);
  empty = weft_bn_rounded(weft_bn_function(&device->ready->counters[0],
                                           weft_bn_masses_of(problem->score, problem->ess, 1, 1, 1).parents,
                                           (uint32_t) n)[n]);
  WEFT_TRY(copy_up(device, joint, &empty, sizeof empty));
  for (size_t size = 1; size <= sizes; size++)
    WEFT_TRY(count_size(ctx, device, &group, size, joint, 0.6 * (double) (size - 1) / (double) sizes,
                        0.6 * (double) size / (double) sizes));
  device->prune.joint = joint;
  SEND(device->prune.joint_offset, offset, sizes + 2);
done:
  drop_batch(device, &group);
  return st;
}

static double node_bytes(const weft_bn_node *node)
{
  return 8.0 * ((double) weft_bn_sets_of(node) + (double) node->offset[node->max_parents]);
}

/* The device's weft_bn_prune: what fits_device() refuses goes to the CPU. Joint values are made when they pay and
 * fit; nodes go in batches that leave room for the lists of what is kept. */
static weft_status prune_cuda(weft_ctx *ctx, weft_arena *keep, weft_bn_ready *ready, weft_bn_node *nodes, double to)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  const size_t p = ready->problem->p;
  uint64_t offset[WEFT_BN_MAX_PARENTS + 3];
  double largest = 0, room, cells;
  resident device_, *device = &device_;
  if (!fits_device(ready)) {
    st = weft_bn_prune_cpu(ctx, keep, ready, nodes, to);
    weft_arena_end(&host);
    return st;
  }
  memset(&device_, 0, sizeof device_);
  device->mem = weft_device_begin(ctx);
  device->host = &host;
  device->ready = ready;
  device->nodes = nodes;
  WEFT_TRY(send_columns(ctx, device));
  for (size_t k = 0; k < p; k++) largest = fmax(largest, node_bytes(&nodes[k]));
  weft_bn_offsets(&ready->binomials, p, ready->max_parents + 1, offset);
  device->family = !weft_bn_joint_pays(ready, nodes, offset) ||
                   8 * (double) offset[ready->max_parents + 2] + 2 * largest > 0.9 * weft_device_available(ctx);
  cells = widest(ready, ready->max_parents);
  device->count.cell_words = ((uint32_t) cells + 63) / 64 * 2;
  device->count.cell_list = ((uint32_t) fmin(cells, (double) ready->problem->n) + 3) / 4 * 4;
  device->shared = WARPS * (sizeof(workspace) + device->count.cell_words * sizeof(uint32_t) +
                            device->count.cell_list * sizeof(uint16_t));
  WEFT_TRY(send_functions(ctx, device));
  WEFT_TRY(send_shares(ctx, device));
  if (!device->family) WEFT_TRY(make_joint(ctx, device, offset));
  room = 0.6 * weft_device_available(ctx); /* the rest is for the lists of what is kept */
  for (size_t first = 0, last; first < p; first = last) {
    const double from = device->family ? 0 : 0.6;
    double bytes = 0;
    for (last = first; last < p; last++) {
      bytes += node_bytes(&nodes[last]);
      if (last > first && (bytes > room || bytes > 8 * BATCH_SETS)) break;
    }
    WEFT_TRY(run_batch(ctx, device, keep, nodes + first, last - first, from + (to - from) * (double) first / (double) p,
                       from + (to - from) * (double) last / (double) p));
  }
done:
  weft_device_end(&device->mem);
  weft_arena_end(&host);
  return st;
}

static weft_status scores_cuda(weft_ctx *ctx, const weft_bn_problem *problem, weft_arena *keep, weft_bn_table *out)
{
  return weft_bn_table_make(ctx, problem, prune_cuda, keep, out);
}

extern "C" {
extern const weft_bn_ops weft_bn_cuda;
const weft_bn_ops weft_bn_cuda = { scores_cuda, weft_bn_chain_cuda, weft_bn_optimum_cuda, weft_bn_edges_orders_cuda,
                                   weft_bn_edges_graphs_cuda };
}
