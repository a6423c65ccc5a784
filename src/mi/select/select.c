/* Greedy selection of features for a class; see mi.h for the interface.
 *
 * After every choice W each candidate X is counted against W and the class Y (CMI: against all chosen together), once:
 *   MIM    I(X;Y)                              JMI   sum over W of I(X,W;Y)      JMIM   the least of these
 *   MRMR   I(X;Y) - mean over W of I(X;W)      DISR  sum of I(X,W;Y)/H(X,W,Y)    NJMIM  the least of these
 *   CMIM   the least of I(X;Y) and I(X;Y|W)    CMI   I(X;Y|all W)                JIM    sum of G(X,W;Y)
 * with G(A;Y) = sum of p_ay^2 / p_a - sum of p_y^2, the Gini gain. The first is chosen, and scored, by I(X;Y), for JIM
 * by G(X;Y). Scores within 1e-12 of the best are ties, which the first feature wins; CMIM and CMI stop when the best is
 * not above 1e-12. Every table is over the rows where all of its variables are known.
 *
 * The scores of JMIM, NJMIM and CMIM are minima over every W, so one that is not up to date can only be too high. Only
 * candidates that may still be the best are brought up to date, the most promising first (Fleuret 2004). */
#include <math.h>
#include <string.h>
#include "core/call/arena.h"
#include "core/call/parallel.h"
#include "core/numbers/topk.h"
#include "mi/select/count.h"

#define TIE 1e-12
#define PLANE_LEVELS 16u   /* candidates with more levels are counted row by row */
#define PLANE_GROUPS 64u   /* likewise when W and Y have more combinations */
#define FIRST_PROMISING 64 /* candidates brought up to date at first, then twice as many */
#define BATCH_ROWS 3e7     /* rows × candidates that a thread counts between two polls, row by row */

typedef struct {
  const weft_mi_data *data;
  weft_select_method method;
  weft_select_features features;
  const double *f;           /* k log2 k */
  double *relevance, *score; /* by feature; a chosen one's score is -Inf */
  double *sum;               /* what has been added up, or the least so far */
  size_t *done;              /* by_minimum(): how many W a candidate's score knows */
  weft_scored *open;
} selection;

/* ---- what the rows of the sheet say ---- */

typedef enum { COMBINE_ONCE, COMBINE_SUM, COMBINE_MEAN, COMBINE_MIN, COMBINE_MIN_OR_ALONE, COMBINE_LATEST } combination;
typedef enum { GROUP_NONE, GROUP_FEATURE, GROUP_WITHOUT, GROUP_ALL } grouping;
typedef struct {
  grouping group;
  combination combine;
  int stops;
} properties;

static const properties *of(weft_select_method method)
{
#define PROPERTIES(kind, name, alone, group, says, combine, stops) { GROUP_##group, COMBINE_##combine, stops },
  static const properties rows[] = { WEFT_SELECT_KINDS(PROPERTIES) };
#undef PROPERTIES
  return &rows[method];
}

static int by_minimum(weft_select_method method)
{
  return of(method)->combine == COMBINE_MIN || of(method)->combine == COMBINE_MIN_OR_ALONE;
}

/* A row without its functions does not compile. */
#define THERE(kind, name, alone, group, says, ...) +sizeof &weft_select_##alone + sizeof &weft_select_##says
enum { CRITERIA_THERE = 0 WEFT_SELECT_KINDS(THERE) };
#undef THERE

/* What a count says about a candidate: before any choice, and after one. */
static double score_alone(weft_select_method method, const weft_select_sums *sums)
{
/* clang-format off */
#define ALONE(kind, name, alone, ...) case WEFT_SELECT_##kind: return weft_select_##alone(sums);
  /* clang-format on */
  switch (method) {
    WEFT_SELECT_KINDS(ALONE)
  }
#undef ALONE
  return NAN; /* never: every kind has its case */
}

static double contribution(weft_select_method method, const weft_select_sums *sums)
{
/* clang-format off */
#define SAYS(kind, name, alone, group, says, ...) case WEFT_SELECT_##kind: return weft_select_##says(sums);
  /* clang-format on */
  switch (method) {
    WEFT_SELECT_KINDS(SAYS)
  }
#undef SAYS
  return NAN; /* never: every kind has its case */
}

/* ---- scores ---- */

/* Updates candidate j after W (or all chosen) became `group`; `turn` features are chosen. */
static void update(selection *state, size_t j, const weft_select_group *group, size_t turn, weft_select_workspace *w)
{
  weft_select_sums sums;
  weft_select_count(&state->features, j, group, state->f, w, &sums);
  const double now = contribution(state->method, &sums);
  switch (of(state->method)->combine) {
  case COMBINE_ONCE: break;
  case COMBINE_SUM:
    state->sum[j] += now;
    state->score[j] = state->sum[j];
    break;
  case COMBINE_MEAN:
    state->sum[j] += now;
    state->score[j] = state->relevance[j] - state->sum[j] / (double) turn;
    break;
  case COMBINE_MIN:
  case COMBINE_MIN_OR_ALONE: state->score[j] = state->sum[j] = now < state->sum[j] ? now : state->sum[j]; break;
  case COMBINE_LATEST: state->score[j] = now; break;
  }
}

static void first_scores(selection *state, size_t j, const weft_select_group *alone, weft_select_workspace *w)
{
  const combination combine = of(state->method)->combine;
  weft_select_sums sums;
  weft_select_count(&state->features, j, alone, state->f, w, &sums);
  state->relevance[j] = state->score[j] = score_alone(state->method, &sums);
  state->sum[j] = combine == COMBINE_MIN_OR_ALONE ? state->relevance[j] : combine == COMBINE_MIN ? INFINITY : 0;
}

/* Candidates between two polls. */
static size_t batch_of(const weft_ctx *ctx, const selection *state)
{
  return 1 + (size_t) (ctx->threads * BATCH_ROWS / 4 / ((double) state->data->n + 100));
}

/* Scores all candidates: turn 0 by themselves, later against `group`. */
static weft_status score_all(weft_ctx *ctx, selection *state, const weft_select_group *group, size_t turn, size_t k,
                             weft_select_workspace *work)
{
  weft_status st = WEFT_OK;
  const size_t p = state->data->p, batch = batch_of(ctx, state);
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) turn + (double) first / (double) p, (double) k));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, ((double) end - (double) first) * 4 * (double) state->data->n))
    {
      weft_select_workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(guided)
      for (int64_t j = (int64_t) first; j < end; j++) {
        if (!turn)
          first_scores(state, (size_t) j, group, w);
        else if (state->score[j] > -INFINITY)
          update(state, (size_t) j, group, turn, w);
      }
    }
  }
done:
  return st;
}

/* Brings those up to date that may be the best of turn `turn`, after `chosen`. */
static weft_status score_promising(weft_ctx *ctx, selection *state, const int32_t *chosen, weft_select_group *group,
                                   size_t turn, size_t k, weft_select_workspace *work)
{
  weft_status st = WEFT_OK;
  const size_t batch = batch_of(ctx, state);
  double best = -INFINITY;
  for (size_t at_once = FIRST_PROMISING;; at_once *= 2) {
    size_t open = 0;
    for (size_t j = 0; j < state->data->p; j++)
      if (state->score[j] > -INFINITY && state->done[j] < turn && state->sum[j] >= best - TIE)
        state->open[open++] = (weft_scored){ state->sum[j], j };
    if (!open) break;
    if (open > at_once) {
      weft_scored_select(state->open, open, at_once);
      open = at_once;
    }
    for (size_t w = 0; w < turn; w++) {
      int behind = 0;
      for (size_t i = 0; i < open && !behind; i++) behind = state->done[state->open[i].index] == w;
      if (!behind) continue;
      weft_select_group_one(&state->features, (size_t) chosen[w], 1, group);
      for (size_t first = 0; first < open; first += batch) {
        const int64_t end = (int64_t) (open - first < batch ? open : first + batch);
        WEFT_TRY(weft_poll(ctx, (double) turn, (double) k));
        WEFT_PARALLEL(weft_threads_worth(ctx->threads, ((double) end - (double) first) * 4 * (double) state->data->n))
        {
          weft_select_workspace *own = &work[WEFT_THREAD()];
          WEFT_FOR(guided)
          for (int64_t i = (int64_t) first; i < end; i++) {
            const size_t j = state->open[i].index;
            if (state->done[j] != w) continue;
            update(state, j, group, turn, own);
            state->done[j]++;
          }
        }
      }
    }
    for (size_t i = 0; i < open; i++)
      if (state->score[state->open[i].index] > best) best = state->score[state->open[i].index];
  }
done:
  return st;
}

/* The first feature whose score is within TIE of the highest; p when none is left. */
static size_t choose(const selection *state)
{
  double highest = -INFINITY;
  size_t j = 0;
  for (size_t i = 0; i < state->data->p; i++)
    if (state->score[i] > highest) highest = state->score[i];
  if (highest == -INFINITY) return state->data->p;
  while (state->score[j] < highest - TIE) j++;
  return j;
}

/* Scores all features, then chooses one after the other and scores the rest against it, until k are chosen, none is
 * left, or the method stops. */
weft_status weft_mi_select(weft_ctx *ctx, const weft_mi_data *data, weft_select_method method, size_t k,
                           int32_t *feature, double *score, size_t *found)
{
  weft_status st = WEFT_OK;
  weft_arena mem = weft_arena_begin(ctx);
  const size_t n = data->n, p = data->p;
  const properties *kind = of(method);
  selection state = { data, method, { 0 }, NULL, NULL, NULL, NULL, NULL, NULL };
  weft_select_group group;
  weft_select_workspace *work;
  double *f;
  *found = 0;
  WEFT_TAKE(f, &mem, n + 1);
  for (size_t c = 0; c <= n; c++) f[c] = c ? (double) c * log2((double) c) : 0;
  state.f = f;
  WEFT_TAKE(state.relevance, &mem, p);
  WEFT_TAKE(state.score, &mem, p);
  WEFT_TAKE(state.sum, &mem, p);
  WEFT_TAKE0(state.done, &mem, p);
  WEFT_TAKE(state.open, &mem, p);
  WEFT_TRY(weft_select_encode(ctx, &mem, data, &state.features, PLANE_LEVELS));
  WEFT_TRY(weft_select_group_take(&mem, &state.features, &group, PLANE_GROUPS));
  WEFT_TAKE0(work, &mem, (size_t) ctx->threads);
  for (int thread = 0; thread < ctx->threads; thread++) WEFT_TRY(weft_select_workspace_take(&mem, n, &work[thread]));
  weft_select_group_none(&state.features, &group);
  WEFT_TRY(score_all(ctx, &state, &group, 0, k, work));
  for (size_t turn = 0; turn < k; turn++) {
    const size_t j = choose(&state);
    if (j == p || (kind->stops && !(state.score[j] > TIE))) break;
    feature[turn] = (int32_t) j;
    score[turn] = state.score[j];
    state.score[j] = -INFINITY;
    *found = turn + 1;
    if (turn + 1 == k || kind->group == GROUP_NONE) continue;
    if (by_minimum(method)) {
      WEFT_TRY(score_promising(ctx, &state, feature, &group, turn + 1, k, work));
      continue;
    }
    if (kind->group == GROUP_ALL)
      WEFT_TRY(weft_select_group_join(ctx, &state.features, j, &group));
    else
      weft_select_group_one(&state.features, j, kind->group == GROUP_FEATURE, &group);
    WEFT_TRY(score_all(ctx, &state, &group, turn + 1, k, work));
  }
done:
  weft_arena_end(&mem);
  return st;
}
