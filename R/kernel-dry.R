# Dry runs of kernel sums: what would be done is planned, as kernel_run() does, and nothing is summed but the groups of
# queries by which a walk's work is known.

dry_sums <- function(problem, method, precision) {
  asked <- c(montecarlo = "Monte Carlo", features = "random features", nystrom = "Nystrom")
  if (problem$kernel == "polynomial") {
    dry_sum(cpu_only(problem$backend, "Polynomial kernels are summed"), "polynomial products")
  } else if (method %in% names(asked)) {
    what <- "Approximations by samples, features and reduced sets run"
    dry_sum(cpu_only(problem$backend, what), asked[[method]])
  } else if (!nrow(problem$query) || !nrow(problem$reference)) {
    dry_sum(list(name = "cpu", reason = "nothing to sum", plan = cost_of_direct(problem)), "direct")
  } else if (precision != "double") {
    dry_sum(direct_backend(problem, precision))
  } else {
    dry_plan_of(problem, dry_method(problem, method))
  }
}

# The row of a choice; `engine`: where the plan does not name it; `seconds`: where they are not the plan's.
dry_sum <- function(chosen, engine = NULL, seconds = NULL) {
  chosen$engine <- engine
  if (!is.null(seconds)) chosen$plan[c("cpu", "cuda")] <- seconds
  dry_plan("kernel_sum", chosen)
}

# What kernel_run() would do, as plan_method() says it.
dry_method <- function(problem, method) {
  if (method == "line") return(list(method = "line", reason = "requested"))
  if (method == "mesh") return(list(method = "mesh", mesh = mesh_anywhere(problem), reason = "requested"))
  if (method != "auto") return(list(method = method, reason = "requested"))
  if (line_pays(problem)) return(instead_of_line(problem) %||% list(method = "line", reason = "one dimension"))
  plan_method(problem, try = TRUE)
}

dry_plan_of <- function(problem, plan) {
  here <- slowness("core") / problem$control$threads
  unit <- kernel_limits()[["unit"]]
  chosen <- plan$chosen %||% list(name = if (problem$backend == "cuda") "cuda" else "cpu")
  chosen$reason <- plan$reason
  chosen$plan <- cost_of_direct(problem)
  if (plan$method == "tree" && chosen$name == "cpu") {
    work <- walk_work(problem, plan$trees %||% native_trees(problem))
    if (is.null(plan$budget) || work < plan$budget) return(dry_sum(chosen, "trees", work * unit * here))
    return(dry_plan_of(problem, plan$otherwise))
  }
  switch(plan$method,
    direct = {
      where <- plan$chosen %||% direct_backend(problem)
      chosen$name <- where$name
      chosen$reason <- paste0(plan$reason, "; ", where$reason)
      dry_sum(chosen)
    },
    line = dry_sum(chosen, "line", cost_of_line(problem)$cpu),
    mesh = {
      mesh <- plan$mesh
      chosen$name <- if (isTRUE(mesh$on_device)) "cuda" else "cpu"
      dry_sum(chosen, if (isTRUE(mesh$on_device)) "mesh on a device" else "mesh",
              if (is.null(mesh)) NA_real_ else mesh_seconds(mesh, problem$control$threads))
    },
    tree = dry_sum(chosen, "grid", plan$seconds %||% grid_seconds(problem, plan$near %||% 1))
  )
}
