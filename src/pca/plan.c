/* Chooses the method and predicts what it takes; see plan.h. */
#include "pca/plan.h"

#define NAME(id, name, ...) name,
static const char *const engine_names[] = { WEFT_PCA_ENGINES(NAME) NULL };
#undef NAME

enum { KRYLOV, GRAM, VECTORS, METHODS }; /* gs and nipals go vector by vector */

/* The cost of a method. */
typedef struct {
  double cpu, cuda, bytes, beside, divided;
} method_cost;

static double near_of(const weft_pca_sizes *sizes) { return fmin(sizes->n, sizes->p); }

/* Columns of a block of krylov's. */
static double block_of(double k) { return fmin(64, fmax(16, floor((k + 13) / 8) * 8)); }

/* Krylov takes 5 to 7 blocks where values fall or have a gap, 20 to 50 where they are flat, and at most those that fill
 * the smaller side. */
static double usual_blocks(double near, double k) { return fmin(20, ceil(near / block_of(k))); }

/* ---- dense, on the CPU ---- */

/* The time of engines that go block by block over a dense n x p on the CPU, in seconds of one core. Krylov: `block` for
 * a block (the `first` are quicker), of which `host` is for small matrices on both back ends. Gram: `gram`, and `steps`
 * for each block that krylov would take; their number depends on the spectrum. Fitted to 1 to 100
 * components of 200 x 200 to 10,000 x 300 with flat, falling and gapped spectra: within 1.4 then. What components add
 * to all eigenvectors is of 2026-11-28 (700 x 700 to 1,000 x 5,000). */
typedef struct {
  double block, host, first, gram, steps;
} block_seconds;

/* The same for given sizes; bounds of sides and blocks are those of engines/block.c. */
static block_seconds seconds_of_blocks(const weft_pca_sizes *sizes)
{
  const double near = near_of(sizes), all = sizes->n + sizes->p, k = sizes->k, cells = sizes->n * sizes->p;
  const double b = fmin(block_of(k), near);
  const double space = fmin(near, fmax(k + 12 * b, k + 2 * b + 128));
  const double held =
      fmin(fmin(10 * b, (k + 3 * b + space) / 2), near); /* vectors that a block is made orthogonal to */
  const double look = 1.2e-10 * held * held * held + 1.6e-9 * held * held * k;
  /* products with the Gram matrix (engines/gram/chebyshev.c); else all its eigenvectors */
  const int filter = near >= WEFT_PCA_FILTER_ABOVE_CPU && k <= WEFT_PCA_FILTER_K;
  const double width = fmin(64, floor((k + fmax(16, floor(k / 2)) + 7) / 8) * 8);
  const double step = filter ? 4.7e-11 * near * near * width : 0;
  const double ratio = 1050 / near, cache = fmax(0, 1 - ratio * ratio * ratio); /* share of steps out of cache */
  const double eigen = filter ? 5 * step : near * near * near * (1.1e-10 + 2.4e-10 * cache) + 7e-10 * near * near * k;
  const double narrow = 1.9e-10 * cells * b + 4.8e-8 * all * b;
  const double host = look / 2 + 4e-9 * b * b * held;
  const block_seconds out = { .block = narrow + 4.1e-11 * all * b * held + host,
                              .host = host,
                              .first = narrow + 6e-9 * b * b * b,
                              .gram = 1.5e-11 * cells * near + 1e-9 * all * k * k + eigen,
                              .steps = 1.75 * step };
  return out;
}

/* Whether krylov should begin, and give way to gram when its first blocks show that gram is cheaper. That is seen after
 * three blocks, five or six being the fewest as a rule: where three are more than a quarter of what gram would take,
 * gram begins. On the CPU, of a dense matrix in memory; whatever the machine and its threads. */
static int gives_way(const weft_pca_sizes *sizes, weft_pca_plans *out)
{
  const double near = near_of(sizes);
  if (3 * sizes->k >= near || near <= 128 || near > WEFT_PCA_GRAM_SIDE) return 0;
  const block_seconds one = seconds_of_blocks(sizes);
  if (1.5e-8 * sizes->n * sizes->p + one.gram + 14 * one.steps < 12 * one.first) return 0;
  out->gram_blocks = one.gram / one.block;
  out->gram_steps = one.steps / one.block;
  return 1;
}

/* ---- a store ---- */

/* Blocks are read for each pass, and the Gram matrix takes one, which adds the products of the values of each row. A
 * device unpacks blocks itself; compressed columns stay there where they fit, and are spread out for each product; of
 * many columns the Gram matrix is made roughly, and corrected (engines/gram/gram_half.c). */
static void cost_stored(const weft_pca_sizes *sizes, double threads, const weft_slowness *slow, method_cost *out)
{
  const double n = sizes->n, p = sizes->p, cells = sizes->cells, k = sizes->k, dense = n * p;
  const double read = weft_on_core(slow, cells * 5e-9) + weft_on_core(slow, cells * 1.2e-8 / threads);
  const int stays = 12 * cells < 4e10, filtered = k <= WEFT_PCA_FILTER_K_DEVICE;
  const int rough = filtered && p >= WEFT_PCA_ROUGH_ORDER;
  const double unpacked =
      weft_on_core(slow, cells * 1.4e-9 / threads) + weft_sent(slow, cells) + weft_on_device(slow, cells * 1.5e-10);
  const double pass = weft_in_device_memory(slow, dense * 9e-12) + (stays ? 0 : unpacked);
  const double filter = 160 * p * p * fmax(32, 1.5 * k), all = 10 * p * p * p;
  const double eigen = k <= WEFT_PCA_FILTER_K ? filter : all;
  const double there_eigen = weft_on_device(slow, filtered ? filter / 4e13 : all / 3e12);
  const int on_cpu = p <= fmin(n, WEFT_PCA_GRAM_SIDE);
  const int on_device = p <= fmin(n, filtered ? WEFT_PCA_GRAM_FILTERED : WEFT_PCA_GRAM_SIDE);
  const double there = weft_launching(slow, 0.05) + 2 * unpacked + weft_fetched(slow, 16 * n * k);
  /* with blocks of 8 vectors, X'X v in one pass */
  const double product = weft_on_core(slow, 2 * 8 * 8e-10 * cells / threads);
  const double summed = cells * cells / fmax(1, n) / 2 * 1.5e-9;
  out[KRYLOV] = (method_cost){ .cpu = 40 * (read + product),
                               .cuda = there + 70 * (pass + weft_on_core(slow, 0.01)),
                               .bytes = 8 * cells };
  out[GRAM] = (method_cost){ .cpu = on_cpu ? 4 * read + weft_on_core(slow, (summed + eigen / 7e9) / threads) : INFINITY,
                             .cuda = on_device ? there + (rough ? 7 : 3) * pass +
                                                     weft_on_device(slow, dense * p / (rough ? 1e14 : 4e13)) +
                                                     (rough ? 3 : 1) * there_eigen
                                               : INFINITY,
                             .bytes = 8 * (n * k + p * p) };
  out[VECTORS] = (method_cost){ .cpu = 1000 * k * read, .cuda = there + 1000 * k * pass, .bytes = 8 * cells };
}

/* ---- genotypes in a file ---- */

/* Two bits each, which stay as they are: in the system's memory for the file, or on a device after one reading. A
 * product decodes them on its way, a fifth of a product with 32 vectors on a core; on a device the tensor cores for
 * doubles bind. There the Gram matrix would be made by products with unit vectors. */
static void cost_genotypes(const weft_pca_sizes *sizes, double threads, const weft_slowness *slow, method_cost *out)
{
  const double cells = sizes->cells, k = sizes->k, near = near_of(sizes), b = block_of(k),
               blocks = usual_blocks(near, k);
  const double counted = weft_on_core(slow, cells * 2.6e-10 / threads), bytes = 8 * 13 * b * (sizes->n + sizes->p);
  const double product = cells * (2e-10 + 4.2e-11 * b), there = cells * 2 * b / 4.8e13;
  const block_seconds one = seconds_of_blocks(sizes);
  const double sent = weft_launching(slow, 0.05) + weft_sent(slow, cells / 4) + weft_fetched(slow, 16 * sizes->n * k);
  out[KRYLOV] =
      (method_cost){ .cpu = counted + weft_on_core(slow, blocks * 2 * product / threads),
                     .cuda = counted + sent + blocks * (weft_on_device(slow, 2 * there) + weft_on_core(slow, one.host)),
                     .bytes = bytes };
  out[GRAM] =
      (method_cost){ .cpu = near <= WEFT_PCA_GRAM_SIDE ? counted + weft_on_core(slow, one.gram / threads) : INFINITY,
                     .cuda = counted + sent + weft_on_device(slow, cells * 4 * near / 4e13),
                     .bytes = 8 * near * near };
  out[VECTORS] = (method_cost){ .cpu = counted + weft_on_core(slow, 1000 * k * cells * 3e-10 / threads),
                                .cuda = counted + sent + weft_on_device(slow, 1000 * k * cells * 2e-13),
                                .bytes = bytes };
}

/* ---- in memory ---- */

/* The Lanczos steps of a sparse matrix in memory on the CPU (engines/gram/lanczos.c), each with a block of 4 vectors
 * (pca_block() in R), where the spectrum is flat: both products, vectors made orthogonal to all before, and a small
 * matrix's eigenvectors. */
static double seconds_of_lanczos(const weft_pca_sizes *sizes, double threads, const weft_slowness *slow)
{
  const double near = near_of(sizes), held = 2 * sizes->k + 128;
  const double steps = 6.75 * fmax(sizes->k, 4) * fmin(2.2, sqrt(near / 1000));
  const double products = 16 * sizes->cells * 2.8e-10 * (sizes->p > sizes->n ? 1.7 : 1);
  return steps * weft_on_core(slow, products / fmin(threads, 6) + 3e-9 * near * held / fmin(threads, 1.5) +
                                        2.3e-8 * held * held);
}

/* Whether a device makes the Gram matrix of a sparse matrix in memory: from dense pieces of it, which have all columns,
 * or of a small one as of a dense matrix. */
static int sparse_gram(const weft_pca_sizes *sizes)
{
  const int whole = fmax(sizes->n, 16) * sizes->p <= WEFT_PCA_SPREAD_OUT;
  return near_of(sizes) <= WEFT_PCA_GRAM_SIDE && (whole || sizes->p <= sizes->n);
}

/* A device's seconds for both products of krylov's blocks with a sparse matrix in memory: each stored value takes some
 * vectors' numbers from the cache, at 3 TB/s, or dense pieces are written and read. By arithmetic. */
static double sparse_products(const weft_pca_sizes *sizes, double blocks)
{
  const double gathered = sizes->cells * (12 + 8 * block_of(sizes->k)) / 3e12, pieces = sizes->n * sizes->p * 9e-12;
  return 2 * blocks * fmin(gathered, pieces);
}

/* Dense, sparse and resident matrices. */
static void cost_in_memory(weft_pca_kind kind, const weft_pca_sizes *sizes, double threads, const weft_slowness *slow,
                           method_cost *out)
{
  const double near = near_of(sizes), cells = sizes->cells, k = sizes->k;
  const int filtered = k <= WEFT_PCA_FILTER_K_DEVICE && near >= WEFT_PCA_FILTER_ABOVE_DEVICE; /* on a device */
  const int sparse = kind == WEFT_PCA_SPARSE, square = kind <= WEFT_PCA_RESIDENT && near <= WEFT_PCA_GRAM_SIDE;
  const int formed_there = sparse ? sparse_gram(sizes) : square;
  const double eigenvectors =
      filtered ? weft_on_device(slow, 80 * near * near * fmax(32, 1.5 * k) / 5.5e12) + weft_launching(slow, 0.015)
               : weft_on_device(slow, 10 * near * near * near / 8e11);
  const double core = 7e9 * fmin(threads, 16) / slow->core;
  const double there =
      weft_launching(slow, 0.004) + weft_sent(slow, (sparse ? 12 : 8) * cells) + weft_in_memory(slow, 4.4e-10 * cells);
  const double blocks = usual_blocks(near, k), moments = 1.5e-8 * cells;
  const block_seconds one = seconds_of_blocks(sizes);
  const double formed = weft_on_device(slow, sizes->n * sizes->p * near / 4e13);
  const double products = sparse ? sparse_products(sizes, blocks) : 150 * 8 * cells / 2e12;
  const double iterated = weft_in_device_memory(slow, products) + weft_launching(slow, 0.05) + there +
                          weft_on_core(slow, blocks * one.host);
  double by_blocks, summed;
  if (sparse) {
    method_cost stored[METHODS];
    cost_stored(sizes, threads, slow, stored);
    by_blocks = seconds_of_lanczos(sizes, threads, slow);
    summed = stored[GRAM].cpu;
  } else {
    by_blocks = weft_on_core(slow, moments + blocks * one.block) / weft_memory_threads(threads);
    summed =
        square ? weft_on_core(slow, moments + one.gram + blocks * one.steps) / weft_memory_threads(threads) : INFINITY;
  }
  const double called = weft_called(slow, 0, 0);
  /* parts wait for each other at every step */
  out[KRYLOV] = (method_cost){ by_blocks, iterated, 8 * cells, called, weft_in_device_memory(slow, products / 2) };
  out[GRAM] = (method_cost){ .cpu = summed,
                             .cuda = formed_there ? formed + eigenvectors + there
                                     : sparse     ? iterated
                                                  : INFINITY,
                             .bytes = 8 * (cells + near * near),
                             .beside = called,
                             /* devices send halves side by side, and exchange what they found */
                             .divided = formed_there ? fmax(0, formed + weft_sent(slow, 4 * cells) - 0.015) : 0 };
  out[VECTORS] = (method_cost){ .cpu = 1000 * k * cells / core,
                                .cuda = weft_on_device(slow, 4000 * k * cells / 1e13) + there,
                                .bytes = 8 * cells,
                                .beside = called };
}

static void cost_methods(weft_pca_kind kind, const weft_pca_sizes *sizes, double threads, const weft_slowness *slow,
                         method_cost *out)
{
  if (kind == WEFT_PCA_STORED)
    cost_stored(sizes, threads, slow, out);
  else if (kind == WEFT_PCA_GENOTYPES)
    cost_genotypes(sizes, threads, slow, out);
  else
    cost_in_memory(kind, sizes, threads, slow, out);
}

/* ---- the choice ---- */

static const char *engine_on_cpu(weft_pca_kind kind, int method, const weft_pca_sizes *sizes)
{
  const double near = near_of(sizes);
  const int sparse = kind == WEFT_PCA_SPARSE || kind == WEFT_PCA_STORED;
  if (method == VECTORS) return engine_names[WEFT_PCA_VECTORS];
  if (method == KRYLOV)
    return engine_names[sparse && 2 * (2 * sizes->k + 68) <= near ? WEFT_PCA_LANCZOS : WEFT_PCA_KRYLOV];
  if (sparse) return engine_names[WEFT_PCA_SPARSE_GRAM];
  return engine_names[near >= WEFT_PCA_FILTER_ABOVE_CPU && sizes->k <= WEFT_PCA_FILTER_K ? WEFT_PCA_FILTERING
                                                                                         : WEFT_PCA_ALL_EIGENVECTORS];
}

static const char *engine_on_device(weft_pca_kind kind, int method, const weft_pca_sizes *sizes)
{
  const double near = near_of(sizes);
  if (method == VECTORS) return engine_names[WEFT_PCA_VECTORS];
  if (method == KRYLOV || (kind == WEFT_PCA_SPARSE && !sparse_gram(sizes))) return engine_names[WEFT_PCA_KRYLOV];
  if (sizes->k > WEFT_PCA_FILTER_K_DEVICE || near < WEFT_PCA_FILTER_ABOVE_DEVICE)
    return engine_names[WEFT_PCA_ALL_EIGENVECTORS];
  return engine_names[kind == WEFT_PCA_STORED && near >= WEFT_PCA_ROUGH_ORDER ? WEFT_PCA_ROUGH_GRAM
                                                                              : WEFT_PCA_FILTERING];
}

/* Bytes of the vectors of an iteration over a store or genotypes; for the former which cuda/sparse/stored.cu leaves
 * half of the device's memory. */
static double bytes_of_vectors(weft_pca_wish method, const weft_pca_sizes *sizes)
{
  const double blocks = method == WEFT_PCA_BY_KRYLOV ? 12 * block_of(sizes->k) : 0;
  const double gram = method == WEFT_PCA_BY_GRAM ? 3 * sizes->p * sizes->p : 0;
  return 8 * ((sizes->k + 192 + blocks) * (sizes->n + sizes->p) + gram);
}

static int method_of(weft_pca_wish wish)
{
  return wish == WEFT_PCA_BY_KRYLOV ? KRYLOV : wish == WEFT_PCA_BY_GRAM ? GRAM : VECTORS;
}

/* By itself a dense matrix in memory, whose rows are all here, begins with krylov on the CPU where that may pay. The
 * method is the same with any number of threads, and so are the results: it is chosen for four. */
weft_pca_plans weft_pca_plan(weft_pca_kind kind, weft_pca_wish wish, const weft_pca_sizes *sizes,
                             const weft_slowness *slow)
{
  method_cost costs[METHODS], usual[METHODS];
  weft_pca_plans out = { .cpu = wish, .cuda = wish };
  int predicted, trial = 0;
  cost_methods(kind, sizes, sizes->threads, slow, costs);
  cost_methods(kind, sizes, 4, slow, usual);
  if (wish == WEFT_PCA_BY_CHEAPEST) {
    out.cpu = out.cuda = WEFT_PCA_BY_KRYLOV;
    if (costs[GRAM].cpu < costs[KRYLOV].cpu) out.cpu = WEFT_PCA_BY_GRAM;
    if (costs[VECTORS].cpu < costs[method_of(out.cpu)].cpu) out.cpu = WEFT_PCA_BY_GS;
  } else if (wish == WEFT_PCA_BY_AUTO) {
    out.cpu = usual[GRAM].cpu < usual[KRYLOV].cpu ? WEFT_PCA_BY_GRAM : WEFT_PCA_BY_KRYLOV;
    out.cuda =
        usual[GRAM].cuda < usual[KRYLOV].cuda && kind != WEFT_PCA_GENOTYPES ? WEFT_PCA_BY_GRAM : WEFT_PCA_BY_KRYLOV;
    trial = kind == WEFT_PCA_DENSE && !sizes->shared && gives_way(sizes, &out);
  }
  predicted = method_of(out.cpu);
  if (trial) out.cpu = WEFT_PCA_BY_KRYLOV;
  const int on_cpu = method_of(out.cpu), on_device = method_of(out.cuda);
  out.plan =
      (weft_plan){ .on_cpu = engine_on_cpu(kind, on_cpu, sizes),
                   .on_device = engine_on_device(kind, on_device, sizes),
                   .cpu = costs[predicted].cpu,
                   .cuda = costs[on_device].cuda,
                   .bytes = costs[on_cpu].bytes,
                   .bytes_cuda = costs[on_device].bytes,
                   .device_bytes =
                       kind == WEFT_PCA_STORED || kind == WEFT_PCA_GENOTYPES ? bytes_of_vectors(out.cuda, sizes) : 0,
                   .beside = costs[on_device].beside,
                   .divided = costs[on_device].divided };
  if (sizes->again) { /* measured with noise among the components: 2 to 13 times, and 5 ms on a device */
    out.plan.cpu *= 9;
    out.plan.cuda += weft_launching(slow, 12 * 2e-4);
  }
  return out;
}
