/* Pairs and triples on the device. Any shape of attributes: counts of a panel's tiles by 1-bit tensor cores (mma.sync on
 * compute capability 8.0 and later, POPC before), then one thread a pair scores its table. Binary attributes with two
 * classes have a way of their own on Hopper, mi_pairs_wgmma.cu. Attributes that are counted from codes are left to the CPU,
 * and so are triples of other than binary attributes. */
#include <cmath>
#include <cstring>
#include "mi_pairs_cuda.cuh"
#include "mi_tables.cuh"

#define COUNTS_WORDS ((size_t) 64 << 20)    /* counts of a panel's part: 256 MB */
#define HITS ((uint64_t) 1 << 20)
#define FIRST_PAIRS 1e5                     /* pairs before there is a bar */
#define GROWTH 32                           /* then so many times more */
#define MOST_PAIRS 2e10                     /* between two polls */
#define MOST_CELLS 1e14                     /* pairs × rows */
#define MOST_SCORED 5e8                     /* pairs, one thread each */

/* ---- collecting ---- */

/* What a search has found so far, and the device's buffer of more. */
struct collector {
  const weft_mi_search *search;
  weft_mi_keeper keeper;
  mi_bar bar;
  mi_hits hits;
  weft_scored *buffer;        /* on the host */
  cudaStream_t stream;
};

/* Brings the hits of what ran; *overflow when there were more than fit, and then nothing is kept but a higher bar. */
static weft_status collect(weft_ctx *ctx, collector *c, int *overflow)
{
  weft_status st = WEFT_OK;
  unsigned long long count;
  size_t brought;
  WEFT_CUDA(cudaMemcpyAsync(&count, c->hits.count, sizeof count, cudaMemcpyDeviceToHost, c->stream));
  WEFT_CUDA(cudaStreamSynchronize(c->stream));
  *overflow = count > c->hits.capacity;
  brought = *overflow ? c->hits.capacity : (size_t) count;
  if (brought) {
    WEFT_CUDA(cudaMemcpyAsync(c->buffer, c->hits.items, brought * sizeof *c->buffer, cudaMemcpyDeviceToHost, c->stream));
    WEFT_CUDA(cudaStreamSynchronize(c->stream));
  }
  if (*overflow) {
    /* the bar may rise to the k-th best of what was seen, but these pairs will come again */
    if (c->keeper.bounded && c->keeper.best.k <= brought) {
      weft_scored_select(c->buffer, brought, c->keeper.best.k);
      const weft_scored kth = c->buffer[c->keeper.best.k - 1];
      weft_scored now;
      now.score = c->bar.score;
      now.index = c->bar.index;
      if (weft_scored_before(kth, now)) { c->bar.score = kth.score; c->bar.index = kth.index + 1; }
    }
    goto done;
  }
  for (size_t k = 0; k < brought; k++) weft_mi_keep(&c->keeper, c->buffer[k].score, c->buffer[k].index);
  if (c->keeper.st != WEFT_OK) { memcpy(ctx->message, c->keeper.ctx.message, sizeof ctx->message); st = c->keeper.st; goto done; }
  if (c->keeper.bounded && c->keeper.best.count >= c->keeper.best.k) {
    weft_topk_shrink(&c->keeper.best);
    weft_scored now;
    now.score = c->bar.score;
    now.index = c->bar.index;
    const weft_scored kth = c->keeper.best.bar;
    if (kth.index != UINT64_MAX && weft_scored_before(kth, now)) { c->bar.score = kth.score; c->bar.index = kth.index; }
  }
done:
  return st;
}

/* Work in units: `run` does units first .. first+count-1; `until` is how many pairs (triples) come before a unit. Few at
 * first, more as the bar rises. */
struct runner {
  void *job;
  uint64_t units;
  double most;                /* pairs between two polls */
  weft_status (*run)(weft_ctx *ctx, void *job, collector *c, uint64_t first, uint64_t count);
  double (*until)(const void *job, uint64_t units);
};

/* The most units from `first` on, at least one, with no more than `pairs` pairs. */
static uint64_t units_of(const runner *r, uint64_t first, double pairs)
{
  uint64_t lo = 1, hi = r->units - first;
  const double before = r->until(r->job, first);
  while (lo < hi) {
    const uint64_t mid = lo + (hi - lo + 1) / 2;
    if (r->until(r->job, first + mid) - before <= pairs) lo = mid; else hi = mid - 1;
  }
  return lo;
}

static weft_status run_all(weft_ctx *ctx, collector *c, const runner *r)
{
  weft_status st = WEFT_OK;
  const int barred = c->keeper.bounded && c->bar.score > -INFINITY;
  uint64_t first = 0, halved = 0;
  while (first < r->units) {
    const double seen = r->until(r->job, first), pairs = barred || !c->keeper.bounded ? r->most : fmax(FIRST_PAIRS, GROWTH * seen);
    uint64_t now = halved ? halved : units_of(r, first, fmin(pairs, r->most));
    int overflow = 0;
    WEFT_TRY(weft_poll(ctx, (double) first, (double) r->units));
    WEFT_CUDA(cudaMemsetAsync(c->hits.count, 0, sizeof *c->hits.count, c->stream));
    WEFT_TRY(r->run(ctx, r->job, c, first, now));
    WEFT_TRY(collect(ctx, c, &overflow));
    if (!overflow) { first += now; halved = 0; }
    else halved = (now + 1) / 2;
  }
done:
  return st;
}

/* ---- panels of any shape ---- */

struct panel_job {
  const weft_mi_pack *pack;
  const weft_mi_resident *r;
  const weft_mi_panel *panel;
  size_t rows, columns, across;  /* attributes of a part each way; parts a row */
  uint32_t *counts;
  product *products, *host_products;
  double *mi, *interaction, *host_mi, *host_interaction; /* a part's scores, when all are wanted */
  double *full_mi, *full_interaction;
};

static weft_status plan_panel(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *pack,
                              const weft_mi_resident *r, const weft_mi_panel *panel, size_t words, panel_job *job)
{
  weft_status st = WEFT_OK;
  const size_t planes = (size_t) pack->classes * panel->g->shape.planes * panel->h->shape.planes;
  const size_t room = words / (planes ? planes : 1);
  memset(job, 0, sizeof *job);
  job->pack = pack;
  job->r = r;
  job->panel = panel;
  job->columns = room / COUNT_TILE < panel->h->count ? room / COUNT_TILE : panel->h->count;
  if (!job->columns) job->columns = 1;
  if (job->columns > 8192) job->columns = 8192;
  job->rows = room / job->columns < panel->g->count ? room / job->columns : panel->g->count;
  if (!job->rows) job->rows = 1;
  if (job->rows > 8192) job->rows = 8192;
  job->across = (panel->h->count + job->columns - 1) / job->columns;
  WEFT_DEVICE_TAKE(job->counts, mem, planes * job->rows * job->columns);
  WEFT_DEVICE_TAKE(job->products, mem, planes);
  WEFT_TAKE(job->host_products, host, planes + 1);
done:
  return st;
}

static void drop_panel(weft_device_arena *mem, weft_arena *host, panel_job *job)
{
  weft_device_drop(mem, job->counts);
  weft_device_drop(mem, job->products);
  weft_arena_drop(host, job->host_products);
}

/* Counts and scores one part. */
static weft_status run_part(weft_ctx *ctx, panel_job *job, collector *c, uint64_t index)
{
  weft_status st = WEFT_OK;
  const weft_mi_pack *pack = job->pack;
  const weft_mi_resident *r = job->r;
  const weft_mi_group *g = job->panel->g, *h = job->panel->h;
  const size_t i0 = (size_t) (index / job->across) * job->rows, j0 = (size_t) (index % job->across) * job->columns;
  const uint32_t pa = g->shape.planes, pb = h->shape.planes;
  part p;
  size_t products = 0;
  memset(&p, 0, sizeof p);
  p.na = g->count - i0 < job->rows ? g->count - i0 : job->rows;
  p.nb = h->count - j0 < job->columns ? h->count - j0 : job->columns;
  if (job->panel->same && j0 + p.nb <= i0 + 1) goto done;
  p.counts.a = g->shape;
  p.counts.b = h->shape;
  p.counts.vary = g->shape.missing || h->shape.missing;
  p.counts.parts = pack->classes;
  p.counts.both = job->counts;
  p.counts.ld = p.nb;
  p.counts.stride = p.na * p.nb;
  p.counts.margin_a = r->margins + g->plane0 + i0;
  p.counts.margin_b = r->margins + h->plane0 + j0;
  p.counts.part_a = p.counts.part_b = pack->plane_rows;
  p.counts.plane_a = g->count;
  p.counts.plane_b = h->count;
  p.counts.totals = r->class_rows;
  p.f = r->f;
  p.place_a = g->first + i0;
  p.place_b = h->first + j0;
  p.columns = pack->columns;
  p.classes = pack->classes;
  p.n = pack->n;
  p.class_fixed = pack->class_fixed;
  p.same = job->panel->same;
  p.column = r->column;
  p.alone = r->alone;
  for (uint32_t cl = 0, word = 0; cl < pack->classes; cl++) {
    const uint32_t steps = (pack->class_rows[cl] + STEP_BITS - 1) / STEP_BITS;
    for (uint32_t x = 0; x < pa; x++)
      for (uint32_t y = 0; y < pb; y++) {
        product *q = &job->host_products[products];
        q->row_a = g->plane0 + x * g->count + i0;
        q->row_b = h->plane0 + y * h->count + j0;
        q->first_word = word;
        q->steps = steps;
        q->out = products++ * p.counts.stride;
      }
    word += steps * STEP_WORDS;
  }
  if (products) {
    WEFT_CUDA(cudaMemcpyAsync(job->products, job->host_products, products * sizeof *job->products, cudaMemcpyHostToDevice, c->stream));
    for (size_t first = 0; first < products; first += 32768) {
      const size_t now = products - first < 32768 ? products - first : 32768;
      const dim3 blocks((unsigned) ((p.nb + COUNT_TILE - 1) / COUNT_TILE), (unsigned) ((p.na + COUNT_TILE - 1) / COUNT_TILE), (unsigned) now);
      count_planes<<<blocks, 128, 0, c->stream>>>(r->planes, r->words, job->products + first, p.na, p.nb, p.counts.ld, job->counts);
      WEFT_CUDA(cudaGetLastError());
    }
  }
  score_part<<<dim3((unsigned) ((p.nb + SCORE_THREADS - 1) / SCORE_THREADS), (unsigned) p.na), SCORE_THREADS, 0, c->stream>>>(
    p, c->bar, c->hits, job->mi, job->interaction);
  WEFT_CUDA(cudaGetLastError());
  if (job->mi) {
    WEFT_CUDA(cudaMemcpyAsync(job->host_mi, job->mi, p.na * p.nb * sizeof *job->mi, cudaMemcpyDeviceToHost, c->stream));
    WEFT_CUDA(cudaMemcpyAsync(job->host_interaction, job->interaction, p.na * p.nb * sizeof *job->mi, cudaMemcpyDeviceToHost, c->stream));
    WEFT_CUDA(cudaStreamSynchronize(c->stream));
    for (size_t i = 0; i < p.na; i++)
      for (size_t j = p.same && p.place_a + i >= p.place_b ? p.place_a + i + 1 - p.place_b : 0; j < p.nb; j++) {
        const size_t x = pack->column[p.place_a + i], y = pack->column[p.place_b + j];
        job->full_mi[x * pack->columns + y] = job->full_mi[y * pack->columns + x] = job->host_mi[i * p.nb + j];
        job->full_interaction[x * pack->columns + y] = job->full_interaction[y * pack->columns + x] = job->host_interaction[i * p.nb + j];
      }
  }
done:
  return st;
}

static weft_status run_parts(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  for (uint64_t k = first; k < first + count; k++) WEFT_TRY(run_part(ctx, (panel_job *) data, c, k));
done:
  return st;
}

static double parts_until(const void *data, uint64_t units)
{
  const panel_job *job = (const panel_job *) data;
  return (double) units * (double) job->rows * (double) job->columns;
}

/* A part must not have more pairs than the buffer has room: the parts are small at first. */
static weft_status search_panel(weft_ctx *ctx, weft_device_arena *mem, weft_arena *host, const weft_mi_pack *pack,
                                const weft_mi_resident *r, const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  panel_job job;
  const size_t planes = (size_t) pack->classes * panel->g->shape.planes * panel->h->shape.planes;
  size_t words = (planes ? planes : 1) * (size_t) (c->hits.capacity / 2);
  if (words > COUNTS_WORDS) words = COUNTS_WORDS;
  st = plan_panel(ctx, mem, host, pack, r, panel, words, &job);
  if (st == WEFT_OK) {
    const runner r_parts = { &job, job.across * ((panel->g->count + job.rows - 1) / job.rows), MOST_SCORED, run_parts, parts_until };
    st = run_all(ctx, c, &r_parts);
  }
  drop_panel(mem, host, &job);
  return st;
}

/* ---- binary attributes on Hopper ---- */

struct binary_job { mi_binary b; const uint8_t *tiles_a, *tiles_b; uint8_t *own_a, *own_b; float4 *constants; };

static int fits_wgmma(const weft_ctx *ctx, const weft_mi_pack *p, const weft_mi_group *g)
{
  return !g->coded && g->shape.planes == 1 && !g->shape.missing && p->classes == 2 && p->class_rows[0] && p->class_rows[1] &&
         p->class_rows[0] <= 65535 && p->class_rows[1] <= 65535 && weft_mi_wgmma_ready(ctx->device);
}

static mi_binary describe_binary(const weft_mi_pack *p, const weft_mi_resident *r, const weft_mi_group *g, const weft_mi_group *h)
{
  mi_binary b;
  memset(&b, 0, sizeof b);
  b.r = r;
  for (int c = 0; c < 2; c++) {
    b.class_rows[c] = p->class_rows[c];
    b.steps[c] = (int) ((p->class_rows[c] + STEP_BITS - 1) / STEP_BITS);
  }
  b.first_a = g->first;
  b.first_b = h->first;
  b.count_a = g->count;
  b.count_b = h->count;
  b.row_a = g->plane0;
  b.row_b = h->plane0;
  b.columns = p->columns;
  b.plane_rows = p->plane_rows;
  b.host_margins = p->margins;
  b.same = g == h;
  return b;
}

/* The planes of one group in wgmma's order. */
static weft_status arrange(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_resident *r, size_t row, size_t count, uint8_t **out)
{
  weft_status st = WEFT_OK;
  uint8_t *tiles;
  WEFT_DEVICE_TAKE(tiles, mem, (count + 255) / 256 * 256 * r->words * 4);
  *out = tiles;
  WEFT_TRY(weft_mi_wgmma_arrange(ctx, r, row, count, tiles, mem->stream));
done:
  return st;
}

static weft_status run_binary(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  binary_job *job = (binary_job *) data;
  return weft_mi_wgmma_pairs(ctx, &job->b, job->tiles_a, job->tiles_b, job->constants, &c->bar, &c->hits, first, count, c->stream);
}

static double binary_until(const void *job, uint64_t units)
{
  (void) job;
  return (double) units * 128 * 256;
}

static weft_status search_binary(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, weft_mi_resident *r,
                                 const weft_mi_panel *panel, collector *c)
{
  weft_status st = WEFT_OK;
  binary_job job;
  memset(&job, 0, sizeof job);
  job.b = describe_binary(pack, r, panel->g, panel->h);
  if (job.b.same) {
    if (!r->tiles || r->tiles_first != panel->g->first) {
      if (r->tiles) weft_device_drop(&r->mem, r->tiles);
      r->tiles = NULL;
      r->mem.ctx = ctx;
      st = arrange(ctx, &r->mem, r, job.b.row_a, job.b.count_a, &r->tiles);
      r->mem.ctx = &r->own;
      if (st != WEFT_OK) goto done;
      WEFT_CUDA(cudaStreamSynchronize(r->mem.stream));
      r->tiles_first = panel->g->first;
    }
    job.tiles_a = job.tiles_b = r->tiles;
  } else {
    WEFT_TRY(arrange(ctx, mem, r, job.b.row_a, job.b.count_a, &job.own_a));
    WEFT_TRY(arrange(ctx, mem, r, job.b.row_b, job.b.count_b, &job.own_b));
    job.tiles_a = job.own_a;
    job.tiles_b = job.own_b;
  }
  WEFT_DEVICE_TAKE(job.constants, mem, job.b.count_a + job.b.count_b + 512);
  {
    const runner r_tiles = { &job, weft_mi_wgmma_tiles(&job.b), fmin(MOST_PAIRS, MOST_CELLS / (double) pack->n), run_binary, binary_until };
    st = run_all(ctx, c, &r_tiles);
  }
done:
  weft_device_drop(mem, job.own_a);
  weft_device_drop(mem, job.own_b);
  weft_device_drop(mem, job.constants);
  return st;
}

/* ---- triples ---- */

struct triple_job { mi_binary b; const uint8_t *tiles; uint8_t *masked; float4 *constants; uint32_t *joint; size_t ld; };

static weft_status run_triples(weft_ctx *ctx, void *data, collector *c, uint64_t first, uint64_t count)
{
  weft_status st = WEFT_OK;
  triple_job *job = (triple_job *) data;
  /* the last attributes first: they have the fewest pairs behind them */
  for (uint64_t k = first; k < first + count; k++)
    WEFT_TRY(weft_mi_wgmma_triples(ctx, &job->b, job->tiles, job->masked, job->constants, job->joint, job->ld,
                                   (uint32_t) (job->b.count_a - 3 - k), &c->bar, &c->hits, c->stream));
done:
  return st;
}

static double triples_until(const void *job, uint64_t units)
{
  (void) job;
  return (double) units * ((double) units + 1) * ((double) units + 2) / 6;
}

static weft_status search_triples(weft_ctx *ctx, weft_device_arena *mem, const weft_mi_pack *pack, const weft_mi_resident *r, collector *c)
{
  weft_status st = WEFT_OK;
  triple_job job;
  uint8_t *tiles = NULL;
  size_t bytes;
  memset(&job, 0, sizeof job);
  job.b = describe_binary(pack, r, &pack->groups[0], &pack->groups[0]);
  job.ld = (pack->p + 255) / 256 * 256;
  bytes = job.ld * r->words * 4;
  WEFT_TRY(arrange(ctx, mem, r, job.b.row_a, job.b.count_a, &tiles));
  job.tiles = tiles;
  WEFT_DEVICE_TAKE(job.masked, mem, bytes);
  WEFT_DEVICE_TAKE(job.constants, mem, 4 * job.ld);
  WEFT_DEVICE_TAKE(job.joint, mem, job.ld * job.ld);
  WEFT_TRY(weft_mi_wgmma_counts(ctx, &job.b, job.tiles, job.joint, job.ld, mem->stream));
  {
    const runner r_fixed = { &job, pack->p - 2, fmin(MOST_PAIRS, MOST_CELLS / (double) pack->n), run_triples, triples_until };
    st = run_all(ctx, c, &r_fixed);
  }
done:
  return st;
}

/* ---- entry points ---- */

static int any_coded(const weft_mi_tiling *tiling)
{
  for (size_t k = 0; k < tiling->panel_count; k++) if (tiling->panels[k].coded) return 1;
  return 0;
}

extern "C" weft_status weft_mi_search_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device,
                                           const weft_mi_search *search, weft_arena *out_mem, weft_mi_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  const double p = (double) pack->p, possible = search->order == 2 ? p * (p - 1) / 2 : p * (p - 1) * (p - 2) / 6;
  collector c;
  weft_mi_tiling tiling;
  int begun = 0;
  memset(&c, 0, sizeof c);
  if (search->order == 3 && (search->top > HITS / 2 || pack->group_count != 1 || pack->p < 3 || !fits_wgmma(ctx, pack, &pack->groups[0]))) {
    st = weft_mi_search_cpu(ctx, pack, device, search, out_mem, out);
    goto done;
  }
  WEFT_TRY(weft_mi_tiling_make(&host, pack, NULL, &tiling));
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  c.search = search;
  c.bar.score = -INFINITY;
  c.bar.index = UINT64_MAX;
  c.bar.min_mi = search->min_mi;
  c.bar.min_gain = search->min_gain;
  c.bar.by_interaction = search->by_interaction;
  c.stream = mem.stream;
  c.hits.capacity = HITS;
  WEFT_DEVICE_TAKE(c.hits.items, &mem, c.hits.capacity);
  WEFT_DEVICE_TAKE(c.hits.count, &mem, 1);
  WEFT_TAKE(c.buffer, &host, c.hits.capacity);
  WEFT_TRY(weft_mi_keeper_begin(ctx, &c.keeper, search->top, possible < 1 ? 1 : (size_t) fmin(possible, 1e15)));
  begun = 1;
  if (search->order == 3) {
    WEFT_TRY(search_triples(ctx, &mem, pack, *device, &c));
  } else {
    for (size_t k = 0; k < tiling.panel_count; k++) {
      const weft_mi_panel *panel = &tiling.panels[k];
      if (panel->coded) continue;
      if (fits_wgmma(ctx, pack, panel->g) && fits_wgmma(ctx, pack, panel->h)) WEFT_TRY(search_binary(ctx, &mem, pack, *device, panel, &c));
      else WEFT_TRY(search_panel(ctx, &mem, &host, pack, *device, panel, &c));
    }
    if (any_coded(&tiling)) {
      weft_mi_found more = { NULL, 0 };
      WEFT_TRY(weft_mi_search_coded(ctx, pack, search, &host, &more));
      for (size_t k = 0; k < more.count; k++) weft_mi_keep(&c.keeper, more.items[k].score, more.items[k].index);
    }
  }
done:
  if (begun && st == WEFT_OK) st = weft_mi_keepers_end(ctx, &c.keeper, 1, out_mem, out);
  else if (begun) weft_arena_end(&c.keeper.mem);
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}

extern "C" weft_status weft_mi_full_cuda(weft_ctx *ctx, const weft_mi_pack *pack, weft_mi_resident **device, double *mi, double *interaction)
{
  weft_status st = WEFT_OK;
  weft_arena host = weft_arena_begin(ctx);
  weft_device_arena mem = weft_device_begin(ctx);
  collector c;
  weft_mi_tiling tiling;
  memset(&c, 0, sizeof c);
  c.stream = mem.stream;
  WEFT_TRY(weft_mi_tiling_make(&host, pack, NULL, &tiling));
  if (any_coded(&tiling)) { st = weft_mi_full_cpu(ctx, pack, device, mi, interaction); goto done; }
  if (!*device) WEFT_TRY(weft_mi_resident_make(ctx, pack, device));
  for (size_t k = 0; k < tiling.panel_count; k++) {
    const weft_mi_panel *panel = &tiling.panels[k];
    const size_t planes = (size_t) pack->classes * panel->g->shape.planes * panel->h->shape.planes;
    panel_job job;
    size_t scores;
    WEFT_TRY(plan_panel(ctx, &mem, &host, pack, *device, panel, (planes ? planes : 1) << 20, &job));
    scores = job.rows * job.columns;
    job.full_mi = mi;
    job.full_interaction = interaction;
    WEFT_DEVICE_TAKE(job.mi, &mem, scores);
    WEFT_DEVICE_TAKE(job.interaction, &mem, scores);
    WEFT_CUDA(cudaMemsetAsync(job.mi, 0, scores * sizeof *job.mi, c.stream)); /* cells below the diagonal travel back unfilled */
    WEFT_CUDA(cudaMemsetAsync(job.interaction, 0, scores * sizeof *job.interaction, c.stream));
    WEFT_TAKE(job.host_mi, &host, scores);
    WEFT_TAKE(job.host_interaction, &host, scores);
    const uint64_t parts = job.across * ((panel->g->count + job.rows - 1) / job.rows);
    for (uint64_t part = 0; part < parts; part++) {
      WEFT_TRY(weft_poll(ctx, (double) k + (double) part / (double) parts, (double) tiling.panel_count));
      WEFT_TRY(run_part(ctx, &job, &c, part));
    }
    WEFT_CUDA(cudaStreamSynchronize(c.stream));
    weft_device_drop(&mem, job.mi);
    weft_device_drop(&mem, job.interaction);
    weft_arena_drop(&host, job.host_mi);
    weft_arena_drop(&host, job.host_interaction);
    drop_panel(&mem, &host, &job);
  }
done:
  weft_device_end(&mem);
  weft_arena_end(&host);
  return st;
}
