/* Registration, and nothing else. Each room lists its entry points in <room>/r/routines.h. */
#define R_NO_REMAP
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include "core/call/backend.h"
#include "core/r/routines.h"
#include "bn/r/routines.h"
#include "clusters/r/routines.h"
#include "irm/r/routines.h"
#include "kernel/r/routines.h"
#include "mi/r/routines.h"
#include "modules/r/routines.h"
#include "pca/r/routines.h"
#include "ranking/r/routines.h"
#include "regulation/r/routines.h"
#include "store/r/routines.h"

/* clang-format off */
#define ALL_ROUTINES(R) \
  CORE_ROUTINES(R) BN_ROUTINES(R) CLUSTERS_ROUTINES(R) IRM_ROUTINES(R) KERNEL_ROUTINES(R) MI_ROUTINES(R) \
  MODULES_ROUTINES(R) PCA_ROUTINES(R) RANKING_ROUTINES(R) REGULATION_ROUTINES(R) STORE_ROUTINES(R) TEST_ROUTINES(R)
/* clang-format on */

/* Prototypes by number of arguments. */
#define ARGS0 void
#define ARGS1 SEXP
#define ARGS2 SEXP, SEXP
#define ARGS3 SEXP, SEXP, SEXP
#define ARGS4 SEXP, SEXP, SEXP, SEXP
#define ARGS5 SEXP, SEXP, SEXP, SEXP, SEXP
#define ARGS6 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define ARGS7 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define ARGS8 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define ARGS9 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define ARGS10 SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP, SEXP
#define DECLARE(name, n) SEXP name(ARGS##n);
ALL_ROUTINES(DECLARE)

#define ENTRY(name, n) { #name, (DL_FUNC) &name, n },
static const R_CallMethodDef entries[] = { ALL_ROUTINES(ENTRY){ NULL, NULL, 0 } };

void attribute_visible R_init_weft(DllInfo *dll)
{
  weft_remember_process();
  R_registerRoutines(dll, NULL, entries, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
}

void attribute_visible R_unload_weft(DllInfo *dll)
{
  (void) dll;
  weft_backends_close();
}
