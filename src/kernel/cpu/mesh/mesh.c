/* Sums over a mesh: where it lies, points in blocks, and the passes over them; see mesh.h.
 *
 * Points are put in order by blocks of nodes. The blocks of one value of the last dimension are a slab; every other
 * slab is spread at a time, each by one thread, so that no two threads add to the same node, and every node is added to
 * in the same order whatever their number. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/call/parallel.h"
#include "kernel/both/mesh.h"
#include "kernel/both/scalar.h"

#define POINTS_AT_ONCE ((size_t) 1 << 20) /* between two polls, per thread some 50 ms */
#define RUN ((size_t) 2048)               /* queries of one thread */
#define COLUMNS ((size_t) 32)             /* of a strip that is convolved at once */
#define NODES_AT_ONCE 4e6
#define NOWHERE UINT32_MAX
#define LEAST 1e-300 /* what sums may lose to underflow */

typedef struct {
  size_t blocks[WEFT_MESH_DIMENSIONS], all, slabs, per_slab;
  size_t *start; /* all + 1: of blocks, in `order` */
  int32_t *order;
  size_t ordered; /* points within the mesh */
} blocks;

static weft_mesh_points points_of(const weft_points *p, int columns)
{
  return (weft_mesh_points){ .x = p->x, .n = p->n, .point = columns ? 1 : p->d, .dimension = columns ? p->n : 1 };
}

/* The least and greatest coordinates of p in each of d dimensions; infinite, the wrong way round, where there are no
 * points. */
static weft_status box_of(weft_ctx *ctx, const weft_mesh_points *p, size_t d, weft_mesh_box *out)
{
  weft_status st = WEFT_OK;
  for (size_t j = 0; j < d; j++) {
    double least = INFINITY, most = -INFINITY;
    for (size_t start = 0; start < p->n; start += POINTS_AT_ONCE) {
      const size_t end = p->n - start < POINTS_AT_ONCE ? p->n : start + POINTS_AT_ONCE;
      WEFT_TRY(weft_poll(ctx, 0, 1));
      for (size_t i = start; i < end; i++) {
        const double x = p->x[i * p->point + j * p->dimension];
        least = x < least ? x : least;
        most = x > most ? x : most;
      }
    }
    out->least[j] = least, out->most[j] = most;
  }
done:
  return st;
}

/* ---- where the mesh lies ---- */

void weft_mesh_place(weft_mesh *mesh, const weft_mesh_box *references, const weft_mesh_box *queries, double h)
{
  const weft_mesh_scheme *scheme = mesh->scheme;
  const double node = scheme->spacing * h, reach = node * (scheme->taps + scheme->width);
  mesh->per_node = 1 / node;
  mesh->nodes = 1;
  for (size_t j = 0; j < mesh->d; j++) {
    double least = references->least[j], most = references->most[j];
    least = fmin(least, fmax(queries->least[j], least - reach));
    most = fmax(most, fmin(queries->most[j], most + reach));
    /* half a cell more on either side, for rounding */
    mesh->least[j] = least - 0.5 * node;
    mesh->count[j] = (size_t) ((most - mesh->least[j]) / node + 0.5) + (size_t) scheme->width + 1;
    mesh->stride[j] = mesh->nodes;
    mesh->nodes *= j ? mesh->count[j] : (mesh->count[0] + 23) / 8 * 8; /* whole vectors from any node on */
  }
}

static double nodes_of(const weft_mesh_scheme *scheme, const weft_mesh_box *references, const weft_mesh_box *queries,
                       size_t d, double h)
{
  const double node = scheme->spacing * h, reach = node * (scheme->taps + scheme->width);
  double nodes = 1;
  for (size_t j = 0; j < d; j++) {
    const double least = fmin(references->least[j], fmax(queries->least[j], references->least[j] - reach)),
                 most = fmax(references->most[j], fmin(queries->most[j], references->most[j] + reach));
    nodes *= (most - least) / node + scheme->width + (j ? 3 : 26);
  }
  return nodes;
}

/* ---- blocks ---- */

static uint32_t block_of(const weft_mesh *mesh, const blocks *blocked, const weft_mesh_points *p, size_t i)
{
  size_t block = 0;
  for (size_t j = mesh->d; j-- > 0;) {
    const double at = weft_mesh_at(mesh, p, i, j);
    if (!(at >= 0 && at < (double) (mesh->count[j] - (size_t) mesh->scheme->width + 1))) return NOWHERE;
    block = block * blocked->blocks[j] + (size_t) at / WEFT_MESH_BLOCK;
  }
  return (uint32_t) block;
}

/* A counting sort; points outside the mesh are left out. */
static weft_status put_in_blocks(weft_ctx *ctx, weft_arena *mem, const weft_mesh *mesh, weft_mesh_points *p,
                                 blocks *blocked)
{
  weft_status st = WEFT_OK;
  weft_arena scratch = weft_arena_begin(ctx);
  uint32_t *key;
  blocked->all = 1;
  for (size_t j = 0; j < mesh->d; j++) {
    blocked->blocks[j] = mesh->count[j] / WEFT_MESH_BLOCK + 1;
    blocked->all *= blocked->blocks[j];
  }
  blocked->slabs = blocked->blocks[mesh->d - 1], blocked->per_slab = blocked->all / blocked->slabs;
  WEFT_TAKE(key, &scratch, p->n);
  WEFT_TAKE0(blocked->start, mem, blocked->all + 2);
  WEFT_TAKE(blocked->order, mem, p->n);
  for (size_t start = 0; start < p->n; start += POINTS_AT_ONCE) {
    const size_t end = p->n - start < POINTS_AT_ONCE ? p->n : start + POINTS_AT_ONCE;
    WEFT_TRY(weft_poll(ctx, 0, 1));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * 4), static)
    for (size_t i = start; i < end; i++) key[i] = block_of(mesh, blocked, p, i);
    for (size_t i = start; i < end; i++)
      if (key[i] != NOWHERE) blocked->start[key[i] + 2]++;
  }
  for (size_t k = 0; k < blocked->all; k++) blocked->start[k + 2] += blocked->start[k + 1];
  for (size_t i = 0; i < p->n; i++) { /* start[k + 1]: where the next of block k goes */
    if (i % POINTS_AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, 0, 1));
    if (key[i] != NOWHERE) blocked->order[blocked->start[key[i] + 1]++] = (int32_t) i;
  }
  blocked->ordered = blocked->start[blocked->all];
  p->order = blocked->order;
done:
  weft_arena_end(&scratch);
  return st;
}

/* Whole runs of this many points of a block are added up in a tile of their own before they are added to the mesh, so
 * that rounding does not grow with the number of points: a tile has 32 nodes in each dimension. */
static size_t run_of(size_t d) { return d < 3 ? 512 : 4096; }

/* The most additions one after another that a node may get, from 2^d blocks: windows are no wider than a block. */
static double max_at_node(const weft_mesh *mesh, const blocks *blocked)
{
  const size_t run = run_of(mesh->d);
  size_t most = 0;
  for (size_t k = 0; k < blocked->all; k++) {
    size_t sum = 0;
    for (size_t corner = 0; corner < (size_t) 1 << mesh->d; corner++) {
      size_t at = k, rest = k, step = 1;
      int inside = 1;
      for (size_t j = 0; j < mesh->d; j++) {
        const size_t place = rest % blocked->blocks[j], back = corner >> j & 1;
        if (back > place) inside = 0;
        at -= back * step;
        rest /= blocked->blocks[j], step *= blocked->blocks[j];
      }
      if (inside)
        sum +=
            (blocked->start[at + 1] - blocked->start[at]) % run + (blocked->start[at + 1] - blocked->start[at]) / run;
    }
    most = sum > most ? sum : most;
  }
  return (double) (most + run);
}

/* ---- passes ---- */

#define TILE ((size_t) 2 * WEFT_MESH_BLOCK) /* nodes in each dimension that the points of a block reach */

/* A whole run of a block's points. tile: m * TILE^d zeros, and zeros again afterwards. */
static void spread_run(const weft_mesh *mesh, const weft_mesh_code *code, const weft_mesh_points *p,
                       const blocks *blocked, size_t block, size_t from, const double *weights, double *tile)
{
  size_t begin = 0, rows[WEFT_MESH_DIMENSIONS] = { 1, 1, 1 };
  weft_mesh own = *mesh;
  own.node = tile, own.nodes = 1, own.origin = 0;
  for (size_t j = 0; j < mesh->d; j++) {
    const size_t first = block % blocked->blocks[j] * WEFT_MESH_BLOCK, left = mesh->count[j] - first;
    block /= blocked->blocks[j];
    own.stride[j] = own.nodes, own.nodes *= TILE;
    own.origin += first * own.stride[j], begin += first * mesh->stride[j];
    rows[j] = left < TILE ? left : TILE;
  }
  code->spread(&own, p, from, from + run_of(mesh->d), weights);
  for (size_t c = 0; c < mesh->m; c++)
    for (size_t k = 0; k < rows[2]; k++)
      for (size_t i = 0; i < rows[1]; i++) {
        double *to = mesh->node + c * mesh->nodes + begin + (mesh->d > 1 ? i * mesh->stride[1] : 0) +
                     (mesh->d > 2 ? k * mesh->stride[2] : 0);
        const double *row = tile + c * own.nodes + (k * TILE + i) * TILE;
        for (size_t a = 0; a < rows[0]; a++) to[a] += row[a];
      }
  memset(tile, 0, mesh->m * own.nodes * sizeof *tile);
}

/* Takes some more points of a slab, from `from`, which is in block *block or at its beginning; returns up to which
 * point. */
static size_t spread_some(const weft_mesh *mesh, const weft_mesh_code *code, const weft_mesh_points *p,
                          const blocks *blocked, size_t *block, size_t end_block, size_t from, size_t some,
                          const double *weights, double *tile)
{
  const size_t run = run_of(mesh->d);
  size_t at = from, begin = from; /* of those that are added to the mesh as they are */
  while (*block < end_block && at - from < some) {
    const size_t end = blocked->start[*block + 1];
    if (end - at < run) {
      at = end;
      ++*block;
      continue;
    }
    code->spread(mesh, p, begin, at, weights);
    spread_run(mesh, code, p, blocked, *block, at, weights, tile);
    begin = at += run;
  }
  code->spread(mesh, p, begin, at, weights);
  return at;
}

/* Spreads all references over the nodes. Slabs of blocks go in two turns, even ones and then odd ones, so that no two
 * threads add to the same node, and each slab stops after `at_once` points so that the user can interrupt. */
static weft_status spread_all(weft_ctx *ctx, const weft_mesh *mesh, const weft_mesh_code *code,
                              const weft_mesh_points *p, const blocks *blocked, const double *weights)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t several = (blocked->slabs + 1) / 2, at_once = POINTS_AT_ONCE / several + 256;
  const size_t size = mesh->m * (mesh->d == 1 ? TILE : mesh->d == 2 ? TILE * TILE : TILE * TILE * TILE);
  size_t *done, *block, spread = 0;
  double *tiles;
  WEFT_TAKE(done, &mem, blocked->slabs);
  WEFT_TAKE(block, &mem, blocked->slabs);
  WEFT_TAKE0(tiles, &mem, size * (size_t) ctx->threads);
  for (size_t slab = 0; slab < blocked->slabs; slab++)
    block[slab] = slab * blocked->per_slab, done[slab] = blocked->start[block[slab]];
  for (size_t parity = 0; parity < 2; parity++) {
    size_t left = 1;
    while (left) {
      const int threads = weft_threads_worth(ctx->threads, (double) p->n * 50);
      left = 0;
      WEFT_TRY(weft_poll(ctx, (double) spread, 2 * (double) p->n));
      WEFT_PARALLEL_FOR(threads, dynamic)
      for (size_t slab = parity; slab < blocked->slabs; slab += 2)
        done[slab] = spread_some(mesh, code, p, blocked, block + slab, (slab + 1) * blocked->per_slab, done[slab],
                                 at_once, weights, tiles + size * (size_t) WEFT_THREAD());
      for (size_t slab = parity; slab < blocked->slabs; slab += 2)
        left += blocked->start[(slab + 1) * blocked->per_slab] - done[slab];
      spread += several * at_once;
    }
  }
done:
  weft_arena_end(&mem);
  return st;
}

/* One strip of lines along dimension j, through a copy with zeros at its ends. */
static void convolve_strip(const weft_mesh *mesh, const weft_mesh_code *code, size_t j, double *first, size_t columns,
                           double *copy)
{
  const weft_mesh_scheme *scheme = mesh->scheme;
  const size_t taps = (size_t) scheme->taps, all = 2 * taps + 1;
  if (j == 0) {
    const size_t n = (mesh->count[0] + 7) / 8 * 8;
    memset(copy, 0, taps * sizeof *copy);
    memcpy(copy + taps, first, n * sizeof *copy);
    memset(copy + taps + mesh->count[0], 0, (taps + 8) * sizeof *copy);
    code->convolve(copy, 1, scheme->tap, all, n, first);
    return;
  }
  const size_t n = mesh->count[j], stride = mesh->stride[j];
  memset(copy, 0, taps * columns * sizeof *copy);
  for (size_t i = 0; i < n; i++) memcpy(copy + (taps + i) * columns, first + i * stride, columns * sizeof *copy);
  memset(copy + (taps + n) * columns, 0, taps * columns * sizeof *copy);
  for (size_t i = 0; i < n; i++)
    code->convolve(copy + i * columns, columns, scheme->tap, all, columns, first + i * stride);
}

/* All columns of weights, along dimension j. Lines start at the nodes whose place in dimension j is 0. */
static weft_status convolve_along(weft_ctx *ctx, const weft_mesh *mesh, const weft_mesh_code *code, size_t j,
                                  double *copies, size_t copy_size)
{
  weft_status st = WEFT_OK;
  const size_t row = mesh->d > 1 ? mesh->stride[1] : mesh->nodes, strips = j ? (row + COLUMNS - 1) / COLUMNS : 1;
  const size_t line = j ? mesh->stride[j] * mesh->count[j] : row; /* of nodes that lines along j do not leave */
  const size_t rows = j ? mesh->stride[j] / row : 1;              /* within one of these */
  const size_t all = mesh->m * mesh->nodes / line * rows * strips;
  const double each = (double) (line / rows / strips) * (1 + 0.12 * mesh->scheme->taps);
  const size_t batch = (size_t) (NODES_AT_ONCE * 5 / each) + 1;
  for (size_t start = 0; start < all; start += batch) {
    const size_t end = all - start < batch ? all : start + batch;
    WEFT_TRY(weft_poll(ctx, 1, 2));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) (end - start) * each), static)
    for (size_t k = start; k < end; k++) {
      const size_t strip = k % strips, at = k / strips % rows, from = strip * COLUMNS;
      double *first = mesh->node + k / strips / rows * line + at * row + from;
      convolve_strip(mesh, code, j, first, row - from < COLUMNS ? row - from : COLUMNS,
                     copies + (size_t) WEFT_THREAD() * copy_size);
    }
  }
done:
  return st;
}

/* The nodes of all columns are convolved with the scheme's taps, one dimension after another, in place. Each thread has
 * a copy of a strip of nodes to read from. */
static weft_status convolve_all(weft_ctx *ctx, const weft_mesh *mesh, const weft_mesh_code *code)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t around = 2 * (size_t) mesh->scheme->taps;
  size_t size = mesh->count[0] + around + 16;
  double *copies;
  for (size_t j = 1; j < mesh->d; j++) {
    const size_t strip = (mesh->count[j] + around) * COLUMNS;
    size = size > strip ? size : strip;
  }
  size = (size + 7) / 8 * 8;
  WEFT_TAKE(copies, &mem, size * (size_t) ctx->threads);
  for (size_t j = 0; j < mesh->d; j++) WEFT_TRY(convolve_along(ctx, mesh, code, j, copies, size));
done:
  weft_arena_end(&mem);
  return st;
}

/* out: the sums of the points p at the convolved nodes, in the order of their blocks; threads take runs of points.
 * Points beyond the mesh get nothing. */
static weft_status gather_all(weft_ctx *ctx, const weft_mesh *mesh, const weft_mesh_code *code,
                              const weft_mesh_points *p, const blocks *blocked, double *out)
{
  weft_status st = WEFT_OK;
  for (size_t start = 0; start < blocked->ordered; start += POINTS_AT_ONCE) {
    const size_t some = blocked->ordered - start < POINTS_AT_ONCE ? blocked->ordered - start : POINTS_AT_ONCE;
    WEFT_TRY(weft_poll(ctx, (double) (p->n + start), 2 * (double) p->n));
    WEFT_PARALLEL_FOR(weft_threads_worth(ctx->threads, (double) some * 50), dynamic)
    for (size_t k = 0; k < (some + RUN - 1) / RUN; k++) {
      const size_t from = start + k * RUN, end = k * RUN + RUN < some ? from + RUN : start + some;
      code->gather(mesh, p, from, end, out);
    }
  }
done:
  return st;
}

/* ---- errors ---- */

/* The error of a sum relative to the sum of its weights: the scheme's, and the error of rounding places, in bandwidths
 * at most 1.5 eps of the extent when they are counted in nodes, and .5 eps where points come without their low parts.
 */
double weft_mesh_error(const weft_mesh *mesh)
{
  const double d = (double) mesh->d;
  double longest = 0;
  for (size_t j = 0; j < mesh->d; j++) longest = fmax(longest, (double) mesh->count[j]);
  const double places = 4 * DBL_EPSILON * longest * mesh->scheme->spacing * d; /* the kernel's slope is at most .61 */
  return expm1(d * log1p(mesh->scheme->error)) + places;
}

/* The rounding error of adding, relative to the sum of weights. */
static double rounding_of(const weft_mesh *mesh, const blocks *references)
{
  const weft_mesh_scheme *scheme = mesh->scheme;
  const double d = (double) mesh->d;
  const double adds = max_at_node(mesh, references) + d * (2 * scheme->taps + 1) + pow(scheme->width, d - 1) + 64;
  return 0.5 * DBL_EPSILON * adds * pow(scheme->size, d);
}

/* ---- sums ---- */

static int is_self(const weft_kernel_task *task) { return task->query.x == task->reference.x; }

/* Places the mesh of a task. */
static weft_status place(weft_ctx *ctx, const weft_kernel_task *task, const weft_mesh_scheme *scheme, weft_mesh *mesh)
{
  weft_status st = WEFT_OK;
  weft_mesh_box of_references, of_queries;
  const weft_mesh_points reference = points_of(&task->reference, task->columns),
                         query = points_of(&task->query, task->columns);
  *mesh = (weft_mesh){ .d = task->reference.d, .m = task->m, .scheme = scheme };
  WEFT_TRY(box_of(ctx, &reference, mesh->d, &of_references));
  if (is_self(task))
    of_queries = of_references;
  else
    WEFT_TRY(box_of(ctx, &query, mesh->d, &of_queries));
  if (!(nodes_of(scheme, &of_references, &of_queries, mesh->d, task->h) < WEFT_MESH_MAX_NODES)) {
    st = weft_fail(ctx, WEFT_ERR_INTERNAL, "a mesh of more than %g nodes", WEFT_MESH_MAX_NODES);
    goto done;
  }
  weft_mesh_place(mesh, &of_references, &of_queries, task->h);
done:
  return st;
}

/* Spreads the references' weights over the nodes, which are allocated here. */
static weft_status spread_references(weft_ctx *ctx, weft_arena *mem, const weft_kernel_task *task,
                                     const weft_mesh_code *code, weft_mesh *mesh, weft_mesh_points *reference,
                                     blocks *blocked)
{
  weft_status st = WEFT_OK;
  *reference = points_of(&task->reference, task->columns);
  WEFT_TAKE0(mesh->node, mem, mesh->m * mesh->nodes);
  WEFT_TRY(put_in_blocks(ctx, mem, mesh, reference, blocked));
  WEFT_TRY(spread_all(ctx, mesh, code, reference, blocked, task->weights));
done:
  return st;
}

/* Spreads the references, convolves, gathers; the order of the blocks serves for both where queries are the
 * references. */
weft_status weft_kernel_mesh_sums(weft_ctx *ctx, const weft_kernel_task *task, const weft_mesh *placed,
                                  const double *total, double *out, double *rounding)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mesh mesh = *placed;
  weft_mesh_points reference, query = points_of(&task->query, task->columns);
  blocks of_references, of_queries;
  const weft_mesh_code *code = weft_mesh_variant();
  (void) total;
  WEFT_TRY(spread_references(ctx, &mem, task, code, &mesh, &reference, &of_references));
  *rounding = rounding_of(&mesh, &of_references);
  WEFT_TRY(convolve_all(ctx, &mesh, code));
  if (is_self(task))
    query.order = reference.order, of_queries = of_references;
  else
    WEFT_TRY(put_in_blocks(ctx, &mem, &mesh, &query, &of_queries));
  if (of_queries.ordered < task->query.n) memset(out, 0, task->m * task->query.n * sizeof *out);
  WEFT_TRY(gather_all(ctx, &mesh, code, &query, &of_queries, out));
done:
  weft_arena_end(&mem);
  return st;
}

/* ---- entry points ---- */

static weft_status total_weights(weft_ctx *ctx, const weft_kernel_task *task, double *total)
{
  weft_status st = WEFT_OK;
  memset(total, 0, task->m * sizeof *total);
  if (!task->weights) total[0] = (double) task->reference.n;
  for (size_t i = 0; task->weights && i < task->reference.n; i++) {
    if (i % POINTS_AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, 1, 2));
    for (size_t c = 0; c < task->m; c++) total[c] += task->weights[i * task->m + c];
  }
done:
  return st;
}

/* Removes the references that queries leave out, takes logarithms, and lists the queries whose error is above what is
 * allowed. */
static weft_status settle(weft_ctx *ctx, const weft_kernel_task *task, const double *error, double *out,
                          int32_t *missed, size_t *missing)
{
  weft_status st = WEFT_OK;
  const size_t nq = task->query.n;
  size_t count = 0;
  for (size_t i = 0; i < nq; i++) {
    int misses = 0;
    if (i % POINTS_AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, (double) i, (double) nq));
    for (size_t c = 0; c < task->m; c++) {
      double *f = out + i + c * nq;
      if (task->leave_one_out) *f -= task->weights ? task->weights[i * task->m + c] : 1;
      const double least = fmax(*f - error[c], 0);
      misses |= !(error[c] <= task->rel_error * least + (task->logarithm ? 0 : task->abs_error));
      *f = task->logarithm ? log(fmax(*f, 0)) : fmax(*f, 0);
    }
    if (misses) missed[count++] = (int32_t) i;
  }
  *missing = count;
done:
  return st;
}

/* Places the mesh, sums over it by `ops`, and lists the queries whose error may be above what the task asks for. */
weft_status weft_kernel_mesh(weft_ctx *ctx, const weft_kernel_ops *ops, const weft_kernel_task *task,
                             const weft_mesh_scheme *scheme, double *out, int32_t *missed, size_t *missing,
                             double *error)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mesh mesh;
  double *total, rounding;
  WEFT_TAKE(total, &mem, task->m);
  WEFT_TRY(place(ctx, task, scheme, &mesh));
  WEFT_TRY(total_weights(ctx, task, total));
  WEFT_TRY(ops->mesh(ctx, task, &mesh, total, out, &rounding));
  *error = weft_mesh_error(&mesh) + rounding;
  for (size_t c = 0; c < task->m; c++) total[c] = total[c] > 0 ? total[c] * *error + LEAST : 0;
  WEFT_TRY(settle(ctx, task, total, out, missed, missing));
done:
  weft_arena_end(&mem);
  return st;
}

/* The sum over all pairs is Σ over nodes of what was spread times what the convolution made of it. */
weft_status weft_kernel_mesh_pairs(weft_ctx *ctx, const weft_kernel_task *task, const weft_mesh_scheme *scheme,
                                   double *sum, double *error)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  weft_mesh mesh;
  weft_mesh_points reference;
  blocks of_references;
  const weft_mesh_code *code = weft_mesh_variant();
  double *spread, total = 0, rest = 0;
  WEFT_TRY(place(ctx, task, scheme, &mesh));
  WEFT_TRY(spread_references(ctx, &mem, task, code, &mesh, &reference, &of_references));
  WEFT_TAKE(spread, &mem, mesh.nodes);
  memcpy(spread, mesh.node, mesh.nodes * sizeof *spread);
  WEFT_TRY(convolve_all(ctx, &mesh, code));
  for (size_t start = 0; start < mesh.nodes; start += 256) {
    const size_t end = mesh.nodes - start < 256 ? mesh.nodes : start + 256;
    double part = 0;
    if (start % POINTS_AT_ONCE == 0) WEFT_TRY(weft_poll(ctx, 1, 2));
    for (size_t k = start; k < end; k++) part += spread[k] * mesh.node[k];
    weft_add_to(&total, &rest, part);
  }
  *sum = total + rest;
  /* a query's sum is gathered from as many nodes: its rounding is that of spreading once more */
  WEFT_TRY(total_weights(ctx, task, &rest));
  *error = rest * rest *
           (weft_mesh_error(&mesh) + rounding_of(&mesh, &of_references) +
            DBL_EPSILON * (512 + max_at_node(&mesh, &of_references)));
done:
  weft_arena_end(&mem);
  return st;
}
