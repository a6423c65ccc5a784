/* Chooses among the room's engines and predicts what they take; see plan.h. */
/* Build: shared. */
#include "mi/plan.h"
#include "mi/features/both/columns.h"
#include "mi/matrix/kinds.h"
#include "mi/networks/kinds.h"
#include "mi/search/search.h"

#define NAME(id, name, ...) name,
static const char *const engine_names[] = { WEFT_MI_ENGINES(NAME) NULL };
#undef NAME

/* ---- engines of a device ---- */

weft_mi_facts weft_mi_facts_of(const weft_mi_pack *pack, int hopper)
{
  weft_mi_facts facts = { .n = pack->n,
                          .p = pack->p,
                          .classes = pack->classes,
                          .per = pack->per,
                          .groups = (uint32_t) pack->group_count,
                          .hopper = hopper };
  for (uint32_t c = 0; c < pack->classes; c++) {
    facts.occupied += pack->class_rows[c] > 0;
    if (pack->class_rows[c] > facts.max_class_rows) facts.max_class_rows = pack->class_rows[c];
  }
  for (size_t g = 0; g < pack->group_count; g++) {
    const weft_mi_group *group = &pack->groups[g];
    facts.coded |= group->coded;
    facts.missing |= group->shape.missing;
    if (group->shape.levels > facts.levels) facts.levels = group->shape.levels;
    if (group->shape.planes > facts.planes) facts.planes = group->shape.planes;
  }
  return facts;
}

/* Two classes, both with rows, without strata. */
static int two_classes(const weft_mi_facts *facts)
{
  return facts->classes == 2 && facts->per == 2 && facts->occupied == 2;
}

static int fits_binary(const weft_mi_facts *facts, weft_mi_side side)
{
  return !side.coded && side.shape.planes == 1 && !side.shape.missing && two_classes(facts) &&
         facts->max_class_rows <= WEFT_MI_PACKED_ROWS;
}

static int fits_ternary(const weft_mi_facts *facts, weft_mi_side side)
{
  const int packed = facts->classes == 2 && facts->n <= WEFT_MI_PACKED_ROWS;
  return !side.coded && side.shape.planes <= 2 && !side.shape.missing && facts->occupied >= 2 &&
         facts->per == facts->classes && facts->classes <= WEFT_MI_TERNARY_CLASSES &&
         (packed || facts->n > WEFT_MI_UNPACKED_ABOVE);
}

/* The shapes for which fused_hopper.cu has a kernel, and rows for which it takes less than counts through memory. */
int weft_mi_pairs_fused(const weft_mi_facts *facts, weft_mi_side a, weft_mi_side b)
{
  const uint32_t few = a.shape.planes < b.shape.planes ? a.shape.planes : b.shape.planes,
                 many = a.shape.planes < b.shape.planes ? b.shape.planes : a.shape.planes;
  const uint32_t limit = few * many > WEFT_MI_FUSED_FEW ? WEFT_MI_FUSED_ROWS_MANY : WEFT_MI_FUSED_ROWS;
  return facts->occupied >= 2 && facts->per == facts->classes && facts->n <= limit &&
         !a.shape.missing == !b.shape.missing && few >= (a.shape.missing ? 2u : 1u) && many <= WEFT_MI_FUSED_PLANES;
}

static int fits_counted(const weft_mi_facts *facts, weft_mi_side a, weft_mi_side b)
{
  const uint64_t words = facts->max_class_rows <= WEFT_MI_PACKED_ROWS ? (facts->per + 1) / 2 : facts->per;
  return a.shape.planes && b.shape.planes && facts->n && facts->classes <= WEFT_MI_PLANAR_CLASSES &&
         facts->classes / facts->per * words * a.shape.planes * b.shape.planes <= WEFT_MI_COUNTED_PRODUCTS;
}

weft_mi_engine weft_mi_pairs_engine(const weft_mi_facts *facts, weft_mi_side a, weft_mi_side b)
{
  if (a.coded || b.coded) return WEFT_MI_DEVICE_CODES;
  if (!facts->hopper) return WEFT_MI_PANELS;
  if (fits_binary(facts, a) && fits_binary(facts, b)) return WEFT_MI_BINARY;
  if (fits_ternary(facts, a) && fits_ternary(facts, b)) return WEFT_MI_TERNARY;
  if (!fits_counted(facts, a, b)) return WEFT_MI_PANELS;
  return weft_mi_pairs_fused(facts, a, b) ? WEFT_MI_FUSED : WEFT_MI_COUNTED;
}

/* All attributes without missing values and of at most three levels, two classes whose counts share a word. */
static int packed_ternary(const weft_mi_facts *facts)
{
  return facts->hopper && !facts->coded && !facts->missing && facts->planes <= 2 && two_classes(facts) &&
         facts->n <= WEFT_MI_PACKED_ROWS;
}

weft_mi_engine weft_mi_triples_engine(const weft_mi_facts *facts, uint64_t sorted)
{
  const weft_mi_side side = { { facts->planes, facts->levels, facts->missing }, facts->coded };
  const int by_sorting = packed_ternary(facts) && facts->p < WEFT_MI_TRIPLES_PLACES;
  if (!facts->hopper || facts->p < 3) return WEFT_MI_TRIPLES;
  if (facts->groups == 1 && fits_binary(facts, side) && (facts->p > sorted || !by_sorting))
    return WEFT_MI_BINARY_TRIPLES;
  if (by_sorting) return WEFT_MI_SORTED_TRIPLES;
  if (!facts->coded && !facts->missing && facts->levels <= WEFT_MI_TRIPLE_LEVELS && facts->n &&
      facts->classes <= WEFT_MI_TRIPLE_CLASSES && facts->per == facts->classes)
    return WEFT_MI_FEW_LEVELS;
  return WEFT_MI_TRIPLES;
}

int weft_mi_fits_quadruples(const weft_mi_facts *facts, const weft_mi_search *search)
{
  return search->order == 4 && search->top <= WEFT_MI_TRIPLES_KEPT && !search->by_interaction &&
         !(search->min_gain > -INFINITY) && facts->p >= 4 && packed_ternary(facts);
}

weft_mi_engine weft_mi_permutation_engine(const weft_mi_facts *facts)
{
  return facts->p >= 2 && packed_ternary(facts) ? WEFT_MI_LABEL_SETS_TOGETHER : WEFT_MI_LABEL_SETS;
}

/* ---- seconds ---- */

/* A plan with its engines, its seconds on both back ends and bytes of the host. */
static weft_plan plan_of(weft_mi_engine on_cpu, double cpu, weft_mi_engine on_device, double cuda, double bytes)
{
  const weft_plan plan = {
    .on_cpu = engine_names[on_cpu], .on_device = engine_names[on_device], .cpu = cpu, .cuda = cuda, .bytes = bytes
  };
  return plan;
}

/* Reading the input bounds a ranking, and a device would have to be sent it. */
static weft_plan plan_rank(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double cells = sizes->n * sizes->p, read = weft_in_memory(slow, cells * 4e-10 / fmin(sizes->threads, 4));
  const int large = sizes->levels * sizes->classes > (double) WEFT_MI_TABLE_CELLS;
  weft_plan plan = plan_of(large ? WEFT_MI_SORTED_COLUMNS : WEFT_MI_COLUMNS, read, WEFT_MI_DEVICE_COLUMNS,
                           read + weft_sent(slow, cells), 64 * sizes->p);
  plan.beside = weft_called(slow, 0, 0);
  return plan;
}

static weft_plan plan_rank_permute(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double cells = sizes->n * sizes->p;
  weft_plan plan =
      plan_of(WEFT_MI_LABEL_SETS, weft_on_core(slow, cells * (1 + sizes->permutations) / 5e9 / sizes->threads),
              WEFT_MI_LABEL_SETS,
              weft_launching(slow, 0.003) + weft_on_device(slow, sizes->permutations * cells / 1e12), cells);
  plan.beside = weft_called(slow, sizes->n, sizes->p) + weft_on_core(slow, cells * 4e-9);
  return plan;
}

/* The facts of a pack on a Hopper device, from R's sizes. */
static weft_mi_facts facts_of_sizes(const weft_mi_sizes *sizes)
{
  const uint32_t levels = (uint32_t) sizes->levels, classes = (uint32_t) sizes->classes;
  const uint32_t per = sizes->strata > 0 ? classes / (uint32_t) sizes->strata : classes;
  const int coded = levels > WEFT_MI_PLANAR_LEVELS || classes > WEFT_MI_PLANAR_CLASSES;
  const weft_mi_facts facts = { .n = (uint64_t) sizes->n,
                                .p = (uint64_t) sizes->p,
                                .classes = classes,
                                .per = per ? per : 1,
                                .occupied = classes - (uint32_t) sizes->empty_classes,
                                .max_class_rows = (uint64_t) sizes->rows_of_a_class,
                                .groups = 1,
                                .levels = levels,
                                .planes = levels < 2 || sizes->missing ? levels : levels - 1,
                                .coded = coded,
                                .missing = sizes->missing > 0,
                                .hopper = 1 };
  return facts;
}

/* Why a device does not search these triples; weft_mi_search_cuda() has an error for what does not meet the same. */
static const char *triples_stay(const weft_mi_sizes *sizes)
{
  if (sizes->searched < 3) return "Triples of fewer than three features are searched";
  if (sizes->searched_levels > WEFT_MI_TRIPLE_LEVELS)
    return "Triples of features with more than five levels are searched";
  if (sizes->missing) return "Triples with missing values are searched";
  if (sizes->classes > WEFT_MI_TRIPLE_CLASSES) return "Triples for a class of more than eight levels are searched";
  if (sizes->top > WEFT_MI_TRIPLES_KEPT) return "Triples without a small `top` are searched";
  return NULL;
}

/* Triples of up to three levels with two classes go by rows that are sorted by the fixed attribute. */
static int sorted_triples(const weft_mi_sizes *sizes)
{
  return sizes->order == 3 && sizes->levels <= 3 && (sizes->levels > 2 || sizes->p <= WEFT_MI_SORTED_BINARY) &&
         sizes->classes == 2 && sizes->n <= WEFT_MI_PACKED_ROWS;
}

/* Seconds of a device's turns, one for each fixed feature of triples. */
static double seconds_of_turns(const weft_mi_sizes *sizes, double features, int sorted, const weft_slowness *slow)
{
  if (sorted) return weft_launching(slow, 5e-6 * sizes->planes * features);
  if (sizes->order <= 2) return 0;
  return weft_launching(slow, (sizes->planes < 2 ? 1.8e-4 : sizes->planes <= 2 ? 3.3e-4 : 4.5e-4) * features);
}

/* Tables of pairs, triples or longer tuples: a few cells each, and the words counted for them. A device takes triples
 * one fixed feature after another, or many with their rows sorted. */
static weft_plan plan_tuples(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double tuples = sizes->tuples, n = sizes->n;
  const int triples = sizes->order > 2, sorted = sorted_triples(sizes);
  const double features = triples ? pow(6 * tuples, 1.0 / 3) : sqrt(2 * tuples);
  /* the screen spares a larger share of the triples of more features */
  const double each =
      pow(sizes->planes, triples ? 2.5 : 2) * (5e-9 + n * 5e-12) * (triples ? fmin(10, 2000 / features) : 1);
  const double turns = seconds_of_turns(sizes, features, sorted, slow);
  const double by_sorting = 1.5e-11 * tuples + 6e-13 * n * features * features;
  const double counted = sorted ? by_sorting : tuples * each / (triples ? 12000 : 2000);
  const double shared = sorted ? by_sorting : tuples * each / (triples ? 12000 : 8000);
  const weft_mi_facts facts = facts_of_sizes(sizes);
  const weft_mi_side side = { { facts.planes, facts.levels, facts.missing }, facts.coded };
  const weft_mi_engine on_cpu = triples ? WEFT_MI_TRIPLES : facts.coded ? WEFT_MI_CODES : WEFT_MI_PLANES;
  weft_plan plan = plan_of(on_cpu, weft_on_core(slow, tuples * each / sizes->threads),
                           triples       ? WEFT_MI_FEW_LEVELS
                           : facts.coded ? WEFT_MI_DEVICE_CODES
                                         : WEFT_MI_PANELS,
                           weft_launching(slow, sorted ? 0.001 : 0.002) + turns +
                               weft_sent(slow, 4 * sizes->packed_bytes) + weft_on_device(slow, counted),
                           sizes->packed_bytes);
  plan.on_hopper = engine_names[triples ? weft_mi_triples_engine(&facts, WEFT_MI_SORTED_BINARY)
                                        : weft_mi_pairs_engine(&facts, side, side)];
  plan.beside = weft_called(slow, n, features);
  plan.divided = turns + weft_on_device(slow, shared);
  plan.stays = triples ? triples_stay(sizes) : NULL;
  return plan;
}

/* Why a device does not search these tuples; weft_mi_fits_quadruples() says the same of a pack. */
static const char *tuples_stay(const weft_mi_sizes *sizes)
{
  if (sizes->order != 4) return "Tuples of an order other than 4 are counted";
  if (sizes->by_interaction) return "Interactions of tuples are counted";
  if (sizes->levels > 3) return "Tuples of features with more than three levels are counted";
  if (sizes->missing) return "Tuples with missing values are counted";
  if (sizes->classes != 2 || sizes->empty_classes || sizes->strata > 1)
    return "Tuples for a class without exactly two levels are counted";
  if (sizes->n > WEFT_MI_PACKED_ROWS) return "Tuples of more than 65,535 rows are counted";
  if (sizes->top > WEFT_MI_TRIPLES_KEPT) return "Tuples without a small `top` are counted";
  if (!(sizes->tuples >= 1)) return "Tuples of fewer than four features are counted";
  return NULL;
}

/* Tuples of any order, counted from codes: about as long for each row as pairs (README.md). On a device, those of four:
 * products of planes of pairs, and a table of up to 81 cells for each tuple. */
static weft_plan plan_long_tuples(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double work = sizes->tuples * sizes->n * 1e-8, products = sizes->levels > 2 ? 16 : 1;
  const double there = weft_launching(slow, 0.01) + weft_sent(slow, sizes->n * sizes->p / 4) +
                       weft_on_device(slow, sizes->tuples * products * (sizes->n * 5e-16 + 1.5e-11));
  weft_plan plan = plan_of(WEFT_MI_CODES, weft_on_core(slow, work / sizes->threads), WEFT_MI_QUADRUPLES, there, 0);
  plan.beside = weft_called(slow, sizes->n, sizes->p);
  plan.stays = tuples_stay(sizes);
  return plan;
}

/* A matrix of pairs of categorical columns of x, or of x and y. */
static weft_plan plan_counts(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double pairs = sizes->pairs, planes_y = sizes->planes_y > 0 ? sizes->planes_y : sizes->planes;
  const double each = sizes->planes * planes_y * (2e-9 + sizes->n * 5e-12);
  const double planes = sizes->p * sizes->planes + sizes->p_y * planes_y;
  weft_plan plan =
      plan_of(WEFT_MI_COUNTS_MATRIX, weft_on_core(slow, pairs * each / sizes->threads), WEFT_MI_COUNTS_MATRIX,
              weft_launching(slow, 0.002) + weft_sent(slow, planes * sizes->n / 2) +
                  weft_on_device(slow, pairs * each / 500) + weft_fetched(slow, 45 * pairs),
              16 * pairs);
  plan.beside = weft_called(slow, sizes->n, sizes->p + sizes->p_y) + weft_written(slow, 16 * pairs);
  return plan;
}

/* A matrix of pairs of numeric columns, which are sorted first. */
static weft_plan plan_numbers(int estimator, const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double n = sizes->n, pairs = sizes->pairs;
  const int ksg = estimator == WEFT_MI_KSG, kendall = estimator == WEFT_MI_KENDALL;
  const double each = ksg ? n * 7e-7 : kendall ? 3e-7 + n * n * 3e-11 : n * 4e-10;
  const double gain = ksg ? 1200 : kendall ? 30 : 250; /* of a device over one core */
  const double sorted = weft_on_core(slow, n * sqrt(2 * pairs) * 1e-7 / sizes->threads);
  const double threads = ksg ? fmin(sizes->threads, 1 + pairs / 64) : sizes->threads; /* tiles of 64 pairs */
  weft_plan plan =
      plan_of(WEFT_MI_NUMERIC_MATRIX, weft_on_core(slow, pairs * each / threads), WEFT_MI_NUMERIC_MATRIX,
              weft_launching(slow, 5e-4) + weft_on_device(slow, pairs * each / gain) + weft_fetched(slow, 24 * pairs),
              16 * pairs);
  plan.beside = weft_called(slow, 0, 0) + sorted + weft_written(slow, 16 * pairs);
  return plan;
}

/* Seconds of a network's p x p matrix: on the CPU p^power * cpu, shared by all threads or by those that memory can
 * serve; on a device where the work is more than a few readings of the matrix. ARACNE reads rows that no cache holds
 * for every triangle. */
typedef struct {
  double cpu, cuda;
  int cubed, shared; /* shared: 0 one thread, 1 those that memory can serve, 2 all */
} network_seconds;

static network_seconds seconds_of_network(weft_network_method method)
{
  static const network_seconds none = { 0, 0, 0, 0 };
  switch (method) {
  case WEFT_NETWORK_ARACNE: return (network_seconds){ 3e-12, 1.5e-13, 1, 1 };
  case WEFT_NETWORK_CLR: return (network_seconds){ 4e-9, INFINITY, 0, 1 };
  case WEFT_NETWORK_MRNET: return (network_seconds){ 2e-10, 2e-12, 1, 2 };
  case WEFT_NETWORK_MRNETB: return (network_seconds){ 1e-9, 1e-11, 1, 2 };
  case WEFT_NETWORK_RELNET: return (network_seconds){ 4e-9, INFINITY, 0, 0 };
  }
  return none;
}

/* A network from a p x p matrix, which travels both ways: some 6 ns a cell on an H100's host. */
static weft_plan plan_network(int method, const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const network_seconds seconds = seconds_of_network((weft_network_method) method);
  const double square = sizes->p * sizes->p, work = seconds.cubed ? square * sizes->p : square;
  const double there = isinf(seconds.cuda)
                           ? INFINITY
                           : weft_launching(slow, 4e-4) + weft_in_device_memory(slow, work * seconds.cuda) +
                                 weft_fetched(slow, 40 * square) + weft_in_memory(slow, 2e-9 * square);
  const double sharing[] = { 1, weft_memory_threads(sizes->threads), sizes->threads };
  weft_plan plan = plan_of(WEFT_MI_NETWORK, weft_in_memory(slow, work * seconds.cpu / sharing[seconds.shared]),
                           isinf(seconds.cuda) ? WEFT_MI_NO_ENGINE : WEFT_MI_DEVICE_NETWORK, there, 8 * square);
  plan.beside = weft_on_core(slow, 1.5e-4) + weft_written(slow, 8 * square);
  return plan;
}

/* Cutting numeric columns into bins of equal frequency, by sorting. */
static weft_plan plan_bins(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double cells = sizes->n * sizes->p;
  return plan_of(WEFT_MI_SELECTION, weft_on_core(slow, cells * 2e-8), WEFT_MI_NO_ENGINE, INFINITY, 4 * cells);
}

/* Transfer entropy: products of planes, and logarithms of as many counts, for the data twice and for every copy. A
 * device whose tensor cores have no engine for this number of levels counts without them. */
static weft_plan plan_transfer(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double n = sizes->n, levels = sizes->levels, states = levels * levels, passes = sizes->permutations + 2;
  const double bits = (levels - 1) * (states - 1) * n, cells = levels * states;
  const double pair = bits * 2.5e-12 + cells * 2e-9 + 5e-8,
               codes = weft_on_core(slow, n * sizes->p * 2e-8 / sizes->threads);
  const int tensor = levels <= WEFT_MI_TRANSFER_HOPPER;
  weft_plan plan =
      plan_of(WEFT_MI_TRANSFERS,
              weft_on_core(slow, passes * (1e-4 + (sizes->pairs * pair + n * sizes->p * 4e-9) / sizes->threads)),
              WEFT_MI_DEVICE_TRANSFERS,
              weft_launching(slow, 1e-3 * passes) + weft_sent(slow, n * sizes->p) +
                  weft_on_device(slow, passes * sizes->pairs * (bits / (tensor ? 2.5e15 : 5e13) + cells * 5e-12)),
              n * sizes->p * (1 + (states + levels) / 8));
  if (tensor) plan.on_hopper = engine_names[WEFT_MI_HOPPER_TRANSFERS];
  plan.bytes_cuda = n * sizes->p;
  plan.device_bytes = plan.bytes;
  plan.beside = weft_called(slow, n, sizes->p) + codes;
  return plan;
}

/* Why a device does not screen these pairs. It leaves to the CPU what it cannot do, and this is all of it. */
static const char *scan_stays(const weft_mi_sizes *sizes)
{
  if (sizes->top > WEFT_MI_SCAN_TOP) return "Scans that keep more than a million pairs run";
  if (sizes->n > WEFT_MI_SCAN_ROWS) return "Scans of more than 8.5 million rows run";
  return NULL;
}

/* Pairs of variants in models with covariates: a product for each column of a pair, on a device one for each digit of
 * it, and more products where genotypes are missing. Pairs of variants with many of these stay on the CPU. */
static weft_plan plan_scan(const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  const double outcomes = 1 + sizes->permutations, on_cpu = 4 + sizes->terms * (sizes->columns + outcomes),
               on_device = 4 + sizes->terms * (2 * sizes->columns + 3 * outcomes), own = sizes->terms > 1 ? 4 : 2,
               gaps = 7 + own * sizes->columns + (3 * own + 5) * outcomes;
  const double device_pairs = sizes->columns > WEFT_MI_SCAN_GAPS_COLUMNS ? sizes->whole_pairs : sizes->screened_pairs;
  const double each = sizes->n * on_cpu * 9e-11, codes = sizes->n * sizes->p;
  weft_plan plan =
      plan_of(WEFT_MI_PAIR_SCAN, weft_on_core(slow, sizes->pairs * each / sizes->threads), WEFT_MI_DEVICE_SCAN,
              weft_launching(slow, 0.05) + weft_sent(slow, codes / 4) +
                  weft_on_core(slow, codes * 1e-9 / sizes->threads) +
                  weft_on_device(slow, (device_pairs * on_device + (device_pairs - sizes->whole_pairs) * gaps) *
                                           sizes->n * 2.5e-15) +
                  weft_on_core(slow, (sizes->pairs - device_pairs) * each / sizes->threads),
              8 * sizes->n * (sizes->columns + outcomes + 1));
  plan.beside = weft_called(slow, 0, 0) + weft_on_core(slow, codes * 2e-9 / sizes->threads);
  plan.stays = scan_stays(sizes);
  return plan;
}

/* The plan of one operation: each has its function above. */
weft_plan weft_mi_plan(weft_mi_operation operation, int kind, const weft_mi_sizes *sizes, const weft_slowness *slow)
{
  switch (operation) {
  case WEFT_MI_RANK: return plan_rank(sizes, slow);
  case WEFT_MI_RANK_PERMUTE: return plan_rank_permute(sizes, slow);
  case WEFT_MI_LONG_TUPLES: return plan_long_tuples(sizes, slow);
  case WEFT_MI_TUPLES: return plan_tuples(sizes, slow);
  case WEFT_MI_COUNTS: return plan_counts(sizes, slow);
  case WEFT_MI_NUMBERS: return plan_numbers(kind, sizes, slow);
  case WEFT_MI_NETWORKS: return plan_network(kind, sizes, slow);
  case WEFT_MI_TRANSFER: return plan_transfer(sizes, slow);
  case WEFT_MI_SCANS: return plan_scan(sizes, slow);
  case WEFT_MI_BINS: break;
  }
  return plan_bins(sizes, slow);
}
