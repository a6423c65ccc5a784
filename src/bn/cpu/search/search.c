/* Starts and kicks of a search; see search.h. Starts are independent of each other. With many Gaussian nodes, kicks
 * are tried in lanes (climb.h), several of them at once from the same order, and what they moved is joined in the
 * order of the lanes. Their number depends on the number of nodes alone, so that threads do not matter. With
 * other nodes, kicks follow each other: they lead away from an order step by step, which lanes from one order do less
 * well. Starts among few Gaussian nodes have several orders, one after the other, while that is cheap. All climbing is
 * done in portions, between which R is asked whether to go on. */
#include <math.h>
#include <string.h>
#include "bn/cpu/search/candidates.h"
#include "bn/cpu/search/climb.h"

#define PORTION 2000 /* parent sets scored and values asked for between two polls; grows with what they take */
#define MAX_WIDENINGS 50
#define MOSTLY 0.7      /* at most so much of the trees' room is filled before a climb */
#define MAX_LANES 64    /* of a start */
#define NODES_A_LANE 16 /* kicks that are near each other hinder each other */
#define ROUNDS_APART 20 /* in which starts without lanes use their kicks up, */
#define FEW_KICKS 20    /* a start has fewer kicks than this in a round */
#define ENOUGH 1e9      /* nanoseconds of work */
#define CHEAP 9e8       /* nanoseconds of work for which a start among few Gaussian nodes goes on */
#define SET_NS 100      /* for a Gaussian set, */
#define VALUE_NS 200    /* a value that is asked for, */
#define SWEEP_NS 0.5    /* and a step of thinning out; all are upper bounds, since machines may be busy */
#define FIRST_KICKS 400 /* of the first order among few Gaussian nodes, */
#define OF_NODES 40000  /* or this over the number of nodes, if that is less */
#define KICKS_AGAIN 4   /* for each node, of a later order */
#define OFTEN 20        /* orders that reach the best score */
#define ROUNDS 48       /* in which the kicks are used up, if each lane has more than one in a round */

typedef struct search_run {
  const weft_bn_search *search;
  weft_bn_climber *climbers;  /* one for each start */
  weft_bn_climber *lanes;     /* start by start */
  size_t lane_count;          /* of a start */
  weft_bn_climber **climbing; /* those that are at work, starts × lane_count at most */
  size_t *joined;             /* a start: how many lanes it has looked at; each twice */
  size_t kicks;               /* that each start has when it begins to climb, for progress */
  weft_bn_scorer *scorers;
  weft_bn_near near;
  weft_bn_listed listed;
  weft_bn_trees *trees; /* of each start; with lanes, one for all */
  double portion;
  double from, to; /* progress */
} search_run;

static void climb_task(void *data, size_t t, int thread)
{
  search_run *run = data;
  weft_bn_climber_advance(run->climbing[t], &run->scorers[thread], run->portion);
}

/* One portion of each task. */
static weft_status run_portion(weft_ctx *ctx, search_run *run, size_t tasks, weft_bn_task *task)
{
  double took;
  const weft_status st = weft_bn_run_timed(ctx, run->search->problem->threads, tasks, task, run, run->from, &took);
  run->portion *= took < 0.01 ? 2 : took > 0.1 ? 0.5 : 1;
  weft_bn_trees_tidy(run->trees, 1);
  return st;
}

/* Those that are at work, until all are done. */
static weft_status climb(weft_ctx *ctx, search_run *run, size_t count)
{
  weft_status st = WEFT_OK;
  const size_t starts = run->search->starts;
  weft_bn_trees_tidy(run->trees, MOSTLY);
  for (size_t left = count; left;) {
    WEFT_TRY(run_portion(ctx, run, left, climb_task));
    size_t still = 0;
    double kicks = 0;
    for (size_t t = 0; t < left; t++)
      if (!run->climbing[t]->done) run->climbing[still++] = run->climbing[t];
    left = still;
    for (size_t t = 0; t < starts; t++) kicks += (double) run->climbers[t].kicks_left;
    const double open = run->kicks ? kicks / (double) (run->kicks * starts) : (double) left / (double) count;
    run->from = fmax(run->from, run->to * (1 - open));
  }
done:
  return st;
}

/* Takes all starts to where no move helps; with kicks, to where these are used up. */
static weft_status climb_all(weft_ctx *ctx, search_run *run, size_t kicks, const uint8_t *grown)
{
  run->kicks = kicks;
  for (size_t start = 0; start < run->search->starts; start++) {
    weft_bn_climber_begin(&run->climbers[start], kicks, grown);
    run->climbing[start] = &run->climbers[start];
  }
  return climb(ctx, run, run->search->starts);
}

/* The work of a start so far, in nanoseconds of one thread: counted, since networks must not depend on a clock. */
static double work_of(const search_run *run, const weft_bn_climber *climber)
{
  const weft_bn_problem *problem = run->search->problem;
  return weft_bn_gauss(problem) ? SET_NS * climber->scored + VALUE_NS * climber->asked + SWEEP_NS * climber->swept
                                : (double) problem->n * climber->scored;
}

static double largest_work(const search_run *run)
{
  double most = 0;
  for (size_t t = 0; t < run->search->starts; t++) most = fmax(most, work_of(run, &run->climbers[t]));
  return most;
}

static int few_numbers(const search_run *run)
{
  return weft_bn_gauss(run->search->problem) && run->search->problem->p < WEFT_BN_FEW_NODES;
}

static int64_t best_total(const search_run *run)
{
  int64_t best = INT64_MIN;
  for (size_t t = 0; t < run->search->starts; t++)
    if (run->climbers[t].best_total > best) best = run->climbers[t].best_total;
  return best;
}

/* Whether two starts, and at least half of them, have the best score of all, after half of the kicks or, where kicks
 * take long, after each start has done enough. */
static int starts_agree(const search_run *run, size_t used, size_t least)
{
  const size_t starts = run->search->starts;
  const int64_t best = best_total(run);
  size_t have = 0;
  double done = INFINITY;
  for (size_t t = 0; t < starts; t++) done = fmin(done, work_of(run, &run->climbers[t]));
  for (size_t t = 0; t < starts; t++) have += run->climbers[t].best_total == best;
  return have > 1 && 2 * have >= starts && (2 * used >= least || done > ENOUGH);
}

/* Lets all starts go on until no more than `pause` of `left` kicks are left. */
static weft_status resume_all(weft_ctx *ctx, search_run *run, size_t left, size_t pause)
{
  const int wide = few_numbers(run) && largest_work(run) < CHEAP;
  for (size_t start = 0; start < run->search->starts; start++) {
    run->climbing[start] = &run->climbers[start];
    run->climbers[start].wide = wide;
    weft_bn_climber_resume(run->climbing[start], left, pause);
  }
  return climb(ctx, run, run->search->starts);
}

/* In rounds, after which the starts are compared: two that came to the same score from different orders need no more
 * kicks. If they do not agree, they go on after `least` kicks only while that is cheap; what is not cheap ends after
 * half of these, too, when the best score has not risen for a quarter of them. */
static weft_status kick_until_agreed(weft_ctx *ctx, search_run *run, size_t least, size_t *used)
{
  weft_status st = WEFT_OK;
  const size_t most = run->search->kicks, share = least / ROUNDS_APART, each = share > FEW_KICKS ? share : FEW_KICKS;
  run->kicks = least;
  for (size_t start = 0; start < run->search->starts; start++)
    weft_bn_climber_begin(&run->climbers[start], least, NULL);
  int64_t best = INT64_MIN;
  for (size_t risen = *used = 0; *used < most;) {
    const size_t more = most - *used < each ? most - *used : each;
    const size_t rest = *used + more < least ? least - *used - more : 1;
    WEFT_TRY(resume_all(ctx, run, rest + more, rest));
    *used += more;
    const int64_t now = best_total(run);
    if (now > best) risen = *used;
    best = now;
    if (starts_agree(run, *used, least)) break;
    const double work = largest_work(run);
    if (least < most && *used >= least && (work > CHEAP || (work > CHEAP / 3 && work <= CHEAP / 2))) break;
    if (least < most && 2 * *used >= least && 4 * (*used - risen) >= least && work > ENOUGH) break;
  }
  WEFT_TRY(resume_all(ctx, run, 0, 0));
done:
  return st;
}

/* Few Gaussian nodes: all starts begin again from other orders, until the best score was reached often, or kicks or
 * cheap work are used up; then each takes the best of its orders. Starts that agree may agree on a wrong one. */
static weft_status begin_again(weft_ctx *ctx, search_run *run, size_t used)
{
  weft_status st = WEFT_OK;
  const size_t starts = run->search->starts, p = run->search->problem->p, kicks = run->search->kicks;
  const int64_t tie = (int64_t) (WEFT_BN_TIE_UNITS * p);
  int64_t best = INT64_MIN;
  size_t reached = 0, orders = 1;
  run->kicks = 0;
  for (;; orders++) {
    for (size_t t = 0; t < starts; t++) {
      const int64_t total = run->climbers[t].total;
      weft_bn_climber_keep(&run->climbers[t]);
      if (total - tie > best) reached = 0;
      if (total > best) best = total;
      reached += total >= best - tie;
    }
    const size_t more = KICKS_AGAIN * p < kicks - used ? KICKS_AGAIN * p : kicks - used;
    if (reached >= OFTEN || !more || largest_work(run) * (double) (orders + 1) > CHEAP * (double) orders) break;
    for (size_t t = 0; t < starts; t++) {
      weft_bn_climber_restart(&run->climbers[t], orders * starts + t);
      weft_bn_climber_begin(&run->climbers[t], more, NULL);
      run->climbing[t] = &run->climbers[t];
    }
    used += more;
    WEFT_TRY(climb(ctx, run, starts));
  }
  for (size_t t = 0; t < starts; t++) weft_bn_climber_recall(&run->climbers[t]);
  WEFT_TRY(climb_all(ctx, run, 0, NULL));
done:
  return st;
}

static weft_status kick_apart(weft_ctx *ctx, search_run *run)
{
  weft_status st = WEFT_OK;
  const weft_bn_search *search = run->search;
  const size_t p = search->problem->p, few = p < OF_NODES / FIRST_KICKS ? FIRST_KICKS : OF_NODES / p;
  const int again = few_numbers(run);
  size_t used;
  WEFT_TRY(kick_until_agreed(ctx, run, again && few < search->kicks ? few : search->kicks, &used));
  if (again) WEFT_TRY(begin_again(ctx, run, used));
done:
  return st;
}

/* A start takes over what its lanes found: first what is better than the order from which they began, then what is
 * equally good, since many orders have the same network. */
static void join_task(void *data, size_t start, int thread)
{
  search_run *run = data;
  weft_bn_climber *climber = &run->climbers[start];
  weft_bn_scorer *scorer = &run->scorers[thread];
  const size_t count = run->lane_count;
  const double from = scorer->scored + climber->asked;
  while (run->joined[start] < 2 * count && scorer->scored + climber->asked - from < run->portion) {
    const weft_bn_climber *lane = &run->lanes[start * count + run->joined[start] % count];
    if ((lane->best_total > lane->began_total) == (run->joined[start] < count))
      weft_bn_climber_take_over(climber, lane, scorer);
    run->joined[start]++;
  }
}

/* In rounds, lane by lane: each has kicks of its own, which threads try in any order. */
static weft_status kick_in_lanes(weft_ctx *ctx, search_run *run)
{
  weft_status st = WEFT_OK;
  const size_t starts = run->search->starts, count = run->lane_count, kicks = run->search->kicks;
  const size_t share = kicks / (ROUNDS * count), each = share ? share : 1;
  run->kicks = kicks;
  for (size_t first = 0; first < kicks; first += each * count) {
    for (size_t start = 0; start < starts; start++) {
      run->climbers[start].kicks_left = kicks - first;
      for (size_t k = 0; k < count; k++) {
        const size_t from = first + k * each, left = from < kicks ? kicks - from : 0;
        weft_bn_climber *lane = run->climbing[start * count + k] = &run->lanes[start * count + k];
        weft_bn_climber_follow(lane, &run->climbers[start], from, left < each ? left : each);
      }
    }
    WEFT_TRY(climb(ctx, run, starts * count));
    memset(run->joined, 0, starts * sizeof *run->joined);
    for (size_t still = 1; still;) {
      WEFT_TRY(run_portion(ctx, run, starts, join_task));
      still = 0;
      for (size_t start = 0; start < starts; start++) still += run->joined[start] < 2 * count;
    }
  }
  WEFT_TRY(climb_all(ctx, run, 0, NULL));
done:
  return st;
}

/* The network of an order: each node's parents. */
static weft_status make_dag(weft_ctx *ctx, search_run *run, weft_bn_climber *climber, int32_t *dag, double *node_score)
{
  weft_status st = WEFT_OK;
  const size_t p = run->search->problem->p;
  memset(dag, 0, p * p * sizeof *dag);
  for (size_t i = 0; i < p; i++) {
    size_t parents[WEFT_BN_MAX_PARENTS + 2], m;
    const weft_bn_prefix prefix = { climber->place, climber->before, climber->place[i], -1, 0 };
    const int64_t value =
        weft_bn_trees_value(climber->trees, &run->scorers[0], i, prefix, &climber->asked_for[i], parents, &m);
    if (i % 64 == 0) WEFT_TRY(weft_poll(ctx, run->from, 1));
    if (node_score) node_score[i] = ldexp((double) value, -run->scorers[0].ready->bits);
    for (size_t k = 0; k < m; k++) dag[parents[k] + p * i] = 1;
  }
done:
  return st;
}

/* While any start's network would gain by a parent that is no candidate, that node becomes a candidate and the search
 * continues around it; when that has ended, it continues everywhere once more. */
static weft_status widen_all(weft_ctx *ctx, search_run *run, weft_arena *mem, weft_bn_found *out)
{
  weft_status st = WEFT_OK;
  int settled = 1;
  for (int round = 0; round < MAX_WIDENINGS; round++) {
    const size_t starts = run->search->starts;
    size_t all = 0;
    memset(run->near.grown, 0, run->search->problem->p);
    for (size_t start = 0; start < starts; start++) {
      size_t added;
      WEFT_TRY(make_dag(ctx, run, &run->climbers[start], out->dag, NULL));
      WEFT_TRY(weft_bn_near_widen(ctx, mem, run->search, run->scorers, run->climbers[start].order, out->dag, &run->near,
                                  &added));
      all += added;
    }
    if (!all && settled) break;
    for (size_t start = 0; start < starts; start++) weft_bn_trees_forget(run->climbers[start].trees, run->near.grown);
    out->rounds += all > 0;
    WEFT_TRY(climb_all(ctx, run, 0, all ? run->near.grown : NULL));
    settled = !all;
  }
done:
  return st;
}

static weft_status check_scored(weft_ctx *ctx, const search_run *run)
{
  size_t set[WEFT_BN_MAX_PARENTS + 1];
  for (size_t i = 0; i < run->search->problem->p; i++) {
    const size_t m = weft_bn_required_of(run->search->problem, i, set);
    if (weft_bn_scorer_value(&run->scorers[0], i, set, m) > WEFT_BN_NEVER) continue;
    return weft_fail_column(ctx, i,
                            "has no parent set that can be scored: its levels or those of required parents are too "
                            "many for the penalty of this score, or it is numeric and constant or has too few "
                            "rows.");
  }
  return WEFT_OK;
}

/* Makes a climber for each start, in a random order, and lanes where there are many Gaussian nodes. Lanes share one
 * set of trees, starts without lanes have one each. */
static weft_status make_climbers(weft_arena *mem, search_run *run)
{
  weft_status st = WEFT_OK;
  const weft_bn_search *search = run->search;
  const size_t p = search->problem->p, starts = search->starts;
  const int lanes = weft_bn_gauss(search->problem) && p >= WEFT_BN_FEW_NODES && search->kicks;
  const size_t count = lanes ? p / NODES_A_LANE : 0;
  run->lane_count = count < MAX_LANES ? count : MAX_LANES;
  WEFT_TAKE(run->climbers, mem, starts);
  WEFT_TAKE(run->lanes, mem, starts * run->lane_count);
  WEFT_TAKE(run->climbing, mem, starts * (run->lane_count + 1));
  WEFT_TAKE(run->joined, mem, starts);
  const size_t shares = lanes ? 1 : starts;
  WEFT_TAKE(run->trees, mem, shares);
  for (size_t t = 0; t < shares; t++) {
    WEFT_TRY(weft_bn_trees_make(mem, search, &run->near, &run->listed, shares, &run->trees[t]));
    run->trees[t].shared = lanes;
  }
  for (size_t t = 0; t < starts; t++) {
    weft_bn_trees *trees = &run->trees[t < shares ? t : 0];
    WEFT_TRY(weft_bn_climber_make(mem, search, &run->near, trees, t, &run->climbers[t]));
    weft_bn_climber_shuffle(&run->climbers[t]);
    for (size_t k = 0; k < run->lane_count; k++)
      WEFT_TRY(weft_bn_climber_make(mem, search, &run->near, trees, t, &run->lanes[t * run->lane_count + k]));
  }
done:
  return st;
}

/* The whole of bn_search(): candidates, small sets, first climbs, widening, kicks, widening again; `out` gets the
 * best start's network and counts. Refuses a node none of whose sets can be scored. */
weft_status weft_bn_search_run(weft_ctx *ctx, const weft_bn_search *search, weft_bn_found *out)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  search_run run = { .search = search, .portion = PORTION, .from = 0.3, .to = search->kicks ? 0.4 : 0.9 };
  weft_bn_ready ready;
  size_t best = 0;
  WEFT_TRY(weft_bn_ready_make(ctx, &mem, search->problem, &ready));
  WEFT_TAKE(run.scorers, &mem, search->problem->threads);
  WEFT_TRY(weft_bn_scorers_make(&mem, &ready, run.scorers));
  WEFT_TRY(check_scored(ctx, &run));
  WEFT_TRY(weft_bn_near_find(ctx, &mem, search, run.scorers, &run.near));
  WEFT_TRY(weft_bn_listed_make(ctx, &mem, search, &run.near, run.scorers, &run.listed));
  WEFT_TRY(make_climbers(&mem, &run));
  WEFT_TRY(climb_all(ctx, &run, 0, NULL));
  WEFT_TRY(widen_all(ctx, &run, &mem, out));
  if (search->kicks) {
    run.to = 0.9;
    WEFT_TRY(run.lane_count ? kick_in_lanes(ctx, &run) : kick_apart(ctx, &run));
    WEFT_TRY(widen_all(ctx, &run, &mem, out));
  }
  for (size_t t = 0; t < search->starts; t++) {
    const weft_bn_climber *climber = &run.climbers[t];
    out->start_score[t] = ldexp((double) climber->total, -ready.bits);
    out->moves += climber->moves;
    if (climber->total > run.climbers[best].total) best = t;
  }
  WEFT_TRY(make_dag(ctx, &run, &run.climbers[best], out->dag, out->node_score));
  memcpy(out->order, run.climbers[best].order, search->problem->p * sizeof *out->order);
  for (size_t k = 0; k < search->starts * run.lane_count; k++) out->moves += run.lanes[k].moves;
  for (size_t t = 0; t < search->problem->threads; t++) out->scored += run.scorers[t].scored;
  out->candidates = (double) run.near.pairs;
done:
  weft_arena_end(&mem);
  return st;
}
