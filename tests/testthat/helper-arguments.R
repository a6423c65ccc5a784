# Arguments by name as `f` takes them: settings of how a call runs go into `run`, those that `f` has in `control`,
# `prior` or a polynomial kernel go there. For tests that draw or combine settings by name.
settings_of_run <- c("backend", "devices", "ranks", "threads", "memory", "progress", "verbose", "dry_run")

as_arguments <- function(f, args) {
  has <- names(formals(f))
  into <- function(args, group, names, make) {
    moved <- setdiff(intersect(names(args), names), has)
    if (!length(moved) || !group %in% has) return(args)
    made <- make(args[moved], args[[group]])
    args <- args[!names(args) %in% moved]
    args[[group]] <- made
    args
  }
  args <- into(args, "run", settings_of_run, function(new, old) {
    old <- if (inherits(old, "weft_run")) unclass(old) else list(backend = old)
    do.call(weft_run, c(new, old[setdiff(names(old), names(new))]))
  })
  args <- into(args, "prior", names(formals(irm_prior)), function(new, old) do.call(irm_prior, new))
  if ("kernel" %in% has) {
    args <- into(args, "kernel", names(formals(kernel_polynomial)), function(new, old) {
      if (identical(old, "polynomial")) do.call(kernel_polynomial, new) else old
    })
  }
  into(args, "control", control_settings(f), function(new, old) c(old, new))
}

# The settings that `control` of `f` may hold.
control_settings <- function(f) {
  for (name in ls(asNamespace("weft"), pattern = "_control$")) {
    own <- get0(sub("_control$", "", name), asNamespace("weft"))
    if (identical(own, f)) return(names(formals(get(name, asNamespace("weft")))))
  }
  if (identical(f, mi_tuples)) return(control_settings(mi_triples))
  if (identical(f, bn_exact)) return(control_settings(bn_scores))
  character()
}

call_with <- function(f, args, ...) do.call(f, as_arguments(if (is.character(f)) get(f) else f, args), ...)
