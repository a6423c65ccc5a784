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
#include "mi/select/select.h"

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
  size_t *done;              /* by_least(): how many W a candidate's score knows */
  weft_scored *open;
} selection;

/* ---- what the rows of the sheet say ---- */

typedef enum {
  COMBINE_ONCE,
  COMBINE_SUM,
  COMBINE_MEAN,
  COMBINE_LEAST,
  COMBINE_LEAST_OR_ALONE,
  COMBINE_LATEST
} combination;
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

static int by_least(weft_select_method m)
{
  return of(m)->combine == COMBINE_LEAST || of(m)->combine == COMBINE_LEAST_OR_ALONE;
}

/* A row without its functions does not compile. */
#define THERE(kind, name, alone, group, says, ...) +sizeof &weft_select_##alone + sizeof &weft_select_##says
enum { CRITERIA_THERE = 0 WEFT_SELECT_KINDS(THERE) };
#undef THERE

/* What a count says about a candidate: before any choice, and after one. */
static double score_alone(weft_select_method method, const weft_select_sums *s)
{
/* clang-format off */
#define ALONE(kind, name, alone, ...) case WEFT_SELECT_##kind: return weft_select_##alone(s);
  /* clang-format on */
  switch (method) {
    WEFT_SELECT_KINDS(ALONE)
  }
#undef ALONE
  return NAN; /* never: every kind has its case */
}

static double contribution(weft_select_method method, const weft_select_sums *s)
{
/* clang-format off */
#define SAYS(kind, name, alone, group, says, ...) case WEFT_SELECT_##kind: return weft_select_##says(s);
  /* clang-format on */
  switch (method) {
    WEFT_SELECT_KINDS(SAYS)
  }
#undef SAYS
  return NAN; /* never: every kind has its case */
}

/* ---- scores ---- */

/* Updates candidate j after W (or all chosen) became `group`; `turn` features are chosen. */
static void update(selection *s, size_t j, const weft_select_group *group, size_t turn, weft_select_workspace *w)
{
  weft_select_sums sums;
  weft_select_count(&s->features, j, group, s->f, w, &sums);
  const double now = contribution(s->method, &sums);
  switch (of(s->method)->combine) {
  case COMBINE_ONCE: break;
  case COMBINE_SUM:
    s->sum[j] += now;
    s->score[j] = s->sum[j];
    break;
  case COMBINE_MEAN:
    s->sum[j] += now;
    s->score[j] = s->relevance[j] - s->sum[j] / (double) turn;
    break;
  case COMBINE_LEAST:
  case COMBINE_LEAST_OR_ALONE: s->score[j] = s->sum[j] = now < s->sum[j] ? now : s->sum[j]; break;
  case COMBINE_LATEST: s->score[j] = now; break;
  }
}

static void first_scores(selection *s, size_t j, const weft_select_group *alone, weft_select_workspace *w)
{
  const combination combine = of(s->method)->combine;
  weft_select_sums sums;
  weft_select_count(&s->features, j, alone, s->f, w, &sums);
  s->relevance[j] = s->score[j] = score_alone(s->method, &sums);
  s->sum[j] = combine == COMBINE_LEAST_OR_ALONE ? s->relevance[j] : combine == COMBINE_LEAST ? INFINITY : 0;
}

/* Candidates between two polls. */
static size_t batch_of(const weft_ctx *ctx, const selection *s)
{
  return 1 + (size_t) (ctx->threads * BATCH_ROWS / 4 / ((double) s->data->n + 100));
}

/* Scores all candidates: turn 0 by themselves, later against `group`. */
static weft_status score_all(weft_ctx *ctx, selection *s, const weft_select_group *group, size_t turn, size_t k,
                             weft_select_workspace *work)
{
  weft_status st = WEFT_OK;
  const size_t p = s->data->p, batch = batch_of(ctx, s);
  for (size_t first = 0; first < p; first += batch) {
    const int64_t end = (int64_t) (p - first < batch ? p : first + batch);
    WEFT_TRY(weft_poll(ctx, (double) turn + (double) first / (double) p, (double) k));
    WEFT_PARALLEL(weft_threads_worth(ctx->threads, ((double) end - (double) first) * 4 * (double) s->data->n))
    {
      weft_select_workspace *w = &work[WEFT_THREAD()];
      WEFT_FOR(guided)
      for (int64_t j = (int64_t) first; j < end; j++) {
        if (!turn)
          first_scores(s, (size_t) j, group, w);
        else if (s->score[j] > -INFINITY)
          update(s, (size_t) j, group, turn, w);
      }
    }
  }
done:
  return st;
}

/* Brings those up to date that may be the best of turn `turn`, after `chosen`. */
static weft_status score_promising(weft_ctx *ctx, selection *s, const int32_t *chosen, weft_select_group *group,
                                   size_t turn, size_t k, weft_select_workspace *work)
{
  weft_status st = WEFT_OK;
  const size_t batch = batch_of(ctx, s);
  double best = -INFINITY;
  for (size_t at_once = FIRST_PROMISING;; at_once *= 2) {
    size_t open = 0;
    for (size_t j = 0; j < s->data->p; j++)
      if (s->score[j] > -INFINITY && s->done[j] < turn && s->sum[j] >= best - TIE)
        s->open[open++] = (weft_scored){ s->sum[j], j };
    if (!open) break;
    if (open > at_once) {
      weft_scored_select(s->open, open, at_once);
      open = at_once;
    }
    for (size_t w = 0; w < turn; w++) {
      int behind = 0;
      for (size_t i = 0; i < open && !behind; i++) behind = s->done[s->open[i].index] == w;
      if (!behind) continue;
      weft_select_group_one(&s->features, (size_t) chosen[w], 1, group);
      for (size_t first = 0; first < open; first += batch) {
        const int64_t end = (int64_t) (open - first < batch ? open : first + batch);
        WEFT_TRY(weft_poll(ctx, (double) turn, (double) k));
        WEFT_PARALLEL(weft_threads_worth(ctx->threads, ((double) end - (double) first) * 4 * (double) s->data->n))
        {
          weft_select_workspace *own = &work[WEFT_THREAD()];
          WEFT_FOR(guided)
          for (int64_t i = (int64_t) first; i < end; i++) {
            const size_t j = s->open[i].index;
            if (s->done[j] != w) continue;
            update(s, j, group, turn, own);
            s->done[j]++;
          }
        }
      }
    }
    for (size_t i = 0; i < open; i++)
      if (s->score[s->open[i].index] > best) best = s->score[s->open[i].index];
  }
done:
  return st;
}

/* The first feature whose score is within TIE of the highest; p when none is left. */
static size_t choose(const selection *s)
{
  double highest = -INFINITY;
  size_t j = 0;
  for (size_t i = 0; i < s->data->p; i++)
    if (s->score[i] > highest) highest = s->score[i];
  if (highest == -INFINITY) return s->data->p;
  while (s->score[j] < highest - TIE) j++;
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
  selection s = { data, method, { 0 }, NULL, NULL, NULL, NULL, NULL, NULL };
  weft_select_group group;
  weft_select_workspace *work;
  double *f;
  *found = 0;
  WEFT_TAKE(f, &mem, n + 1);
  for (size_t c = 0; c <= n; c++) f[c] = c ? (double) c * log2((double) c) : 0;
  s.f = f;
  WEFT_TAKE(s.relevance, &mem, p);
  WEFT_TAKE(s.score, &mem, p);
  WEFT_TAKE(s.sum, &mem, p);
  WEFT_TAKE0(s.done, &mem, p);
  WEFT_TAKE(s.open, &mem, p);
  WEFT_TRY(weft_select_encode(ctx, &mem, data, &s.features, PLANE_LEVELS));
  WEFT_TRY(weft_select_group_take(&mem, &s.features, &group, PLANE_GROUPS));
  WEFT_TAKE0(work, &mem, (size_t) ctx->threads);
  for (int t = 0; t < ctx->threads; t++) WEFT_TRY(weft_select_workspace_take(&mem, n, &work[t]));
  weft_select_group_none(&s.features, &group);
  WEFT_TRY(score_all(ctx, &s, &group, 0, k, work));
  for (size_t turn = 0; turn < k; turn++) {
    const size_t j = choose(&s);
    if (j == p || (kind->stops && !(s.score[j] > TIE))) break;
    feature[turn] = (int32_t) j;
    score[turn] = s.score[j];
    s.score[j] = -INFINITY;
    *found = turn + 1;
    if (turn + 1 == k || kind->group == GROUP_NONE) continue;
    if (by_least(method)) {
      WEFT_TRY(score_promising(ctx, &s, feature, &group, turn + 1, k, work));
      continue;
    }
    if (kind->group == GROUP_ALL)
      WEFT_TRY(weft_select_group_join(ctx, &s.features, j, &group));
    else
      weft_select_group_one(&s.features, j, kind->group == GROUP_FEATURE, &group);
    WEFT_TRY(score_all(ctx, &s, &group, turn + 1, k, work));
  }
done:
  weft_arena_end(&mem);
  return st;
}
