#' Choose where the work runs
#'
#' `weft_backend()` reads the default back end of the session, and `weft_backend("cpu")` sets it. A single call can
#' choose another one with `run`; see [weft_run()].
#'
#' `"cpu"` and `"cuda"` are always used as given; if `"cuda"` is not available, functions stop with an error that gives
#' the reason. `"auto"` weighs the amount of work against the time for transfers, and results record the choice with its
#' reason.
#'
#' @eval capability_section()
#' @param backend `"auto"`, `"cpu"` or `"cuda"`; without it, the setting is only returned.
#' @return The default back end. A call that sets it returns the previous one, invisibly.
#' @seealso [weft_sitrep()], [weft_options]
#' @export
#' @examples
#' weft_backend()
#' old <- weft_backend("cpu")
#' weft_backend(old)
weft_backend <- function(backend) {
  if (!missing(backend)) backend <- check_choice(backend, backends, "backend")
  named <- getOption("weft.backend")
  before <- if (!is.null(named)) check_choice(named, backends, "weft.backend")
            else check_choice(env_or("WEFT_BACKEND", "auto"), backends, "WEFT_BACKEND")
  if (missing(backend)) return(before)
  options(weft.backend = backend)
  invisible(before)
}

backends <- c("auto", "cpu", "cuda")

env_or <- function(name, default) {
  value <- Sys.getenv(name)
  if (nzchar(value)) value else default
}

#' Threads that weft uses on the CPU
#'
#' `weft_threads()` returns the number of threads that weft uses, and `weft_threads(2)` limits it for the session.
#' Results do not depend on the number of threads.
#'
#' The number is the smallest of the number of processors that this process may use, `OMP_NUM_THREADS`,
#' `OMP_THREAD_LIMIT` and the option `weft.threads`. It is at most two under R CMD check, and one in a forked child.
#'
#' Work of less than half a millisecond is done by one thread. OpenMP threads wait for each other by spinning. If other
#' programs need the same processors, this can make a call many times slower. In this case, start R with the environment
#' variable `OMP_WAIT_POLICY=passive`, or use fewer threads.
#'
#' @param threads the largest number of threads for the session; `NULL` to remove the limit; without it, the number is
#'   only returned.
#' @return The number of threads. A call that sets the limit returns the previous option, invisibly.
#' @export
#' @examples
#' weft_threads()
weft_threads <- function(threads) {
  if (missing(threads)) return(threads_for(NULL))
  if (!is.null(threads)) threads <- check_number(threads, "threads", min = 1, max = 4096, whole = TRUE)
  invisible(options(weft.threads = threads)[[1L]])
}

threads_for <- function(threads) {
  if (!is.null(threads)) threads <- check_number(threads, "threads", min = 1, max = 4096, whole = TRUE)
  option <- getOption("weft.threads")
  if (!is.null(option)) option <- check_number(option, "weft.threads", min = 1, max = 4096, whole = TRUE)
  .Call(C_weft_threads, as.integer(threads %||% 0L), as.integer(option %||% 0L))
}

# The reason why no CUDA device can be used, or NULL. Opens the CUDA object.
cuda_missing <- function() .Call(C_weft_cuda_missing, cuda_dir())

# Resolves `backend` of a run to list(name, reason). `predicted` is a plan (R/plan.R). The device is looked for only
# when it could pay. The choice carries the plan, and the seconds that several devices would share, for devices_for().
choose_backend <- function(backend, predicted = NULL) {
  if (!is.null(predicted) && predicted$cpu > worth_rates && predicted$cpu > predicted$cuda + cuda_start_seconds() &&
      identical(backend %||% weft_backend(), "auto") && is.null(cuda_missing()) && calibrate_once()) {
    predicted <- eval.parent(substitute(predicted))
  }
  chosen <- weigh_backends(backend, predicted)
  chosen$divided <- predicted$divided
  chosen$plan <- predicted
  chosen
}

weigh_backends <- function(backend, predicted) {
  backend <- if (is.null(backend)) weft_backend() else check_choice(backend, backends, "backend")
  if (backend == "cpu") return(list(name = "cpu", reason = "requested"))
  if (backend == "cuda") {
    why <- cuda_missing()
    if (is.null(why)) return(list(name = "cuda", reason = "requested"))
    weft_abort("device", "`run = \"cuda\"` is not available here.", x = paste0("CUDA: ", why, "."),
               i = "`weft_sitrep()` shows the devices of this machine; `run = \"cpu\"` gives the same result.")
  }
  if (is.null(predicted) || !worth_a_device(predicted$cpu - predicted$cuda)) {
    return(list(name = "cpu", reason = if (is.null(predicted)) "a device would not be faster"
                                       else sprintf("about %s of work, too little for a device",
                                                    seconds_text(predicted$cpu))))
  }
  why <- cuda_missing()
  if (!is.null(why)) return(list(name = "cpu", reason = why))
  list(name = "cuda", reason = sprintf("about %s on the CPU, %s on the device",
                                       seconds_text(predicted$cpu), seconds_text(predicted$cuda)))
}

# For work that has no device code: a named device is an error that says so. `what` is like "Kernel sums run"; `plan`:
# what it takes, for dry runs, where that is known.
cpu_only <- function(backend, what, plan = NULL) {
  backend <- if (is.null(backend)) weft_backend() else check_choice(backend, backends, "backend")
  if (backend == "cuda") {
    weft_abort("device", "`run = \"cuda\"` is not available here.", x = paste(what, "on the CPU only."),
               i = "Use `run = \"cpu\"` or \"auto\".")
  }
  list(name = "cpu", reason = if (backend == "cpu") "requested" else paste(what, "on the CPU only"), plan = plan)
}

worth_rates <- 0.05 # seconds on the CPU; a call that takes less does not wait for rates

# Starting the driver and opening a device costs this once per session; later calls find it open.
cuda_start_seconds <- function() {
  if (isTRUE(session$device_open) || .Call(C_weft_beside_opened, first_device())) 0 else 0.3
}

# Whether the seconds that a device would save are more than starting it takes. Where it is not open, but would have
# been worth it, later calls will find it open.
worth_a_device <- function(saved) {
  if (isTRUE(saved > cuda_start_seconds())) return(TRUE)
  if (isTRUE(saved > worth_opening)) open_beside(first_device())
  FALSE
}

# Asks the same of the seconds that work takes on the CPU, when the device's are not known yet.
device_may_pay <- function(seconds) worth_a_device(seconds) && is.null(cuda_missing())

worth_opening <- 0.05 # seconds that a device would save a call if it were open: it is opened beside the work

# Opens devices for later calls while this one works. R waits for the threads that do it before it ends.
# libraries: NVIDIA's, as in expect_libraries().
open_beside <- function(devices, libraries = character()) {
  if (!dir.exists(file.path(cuda_dir(), "cuda"))) return(invisible())
  if (is.null(session$waits)) {
    session$waits <- TRUE
    reg.finalizer(session, function(session) if (session$waits) .Call(C_weft_beside_wait), onexit = TRUE)
  }
  .Call(C_weft_beside_open, cuda_dir(), devices, libraries)
}

# For calls that will need NVIDIA's libraries ("cublas", "cusolver"), before they choose a back end: where a
# device is asked for and not open yet, a thread opens them while the call opens the device and sends data.
expect_libraries <- function(run, libraries = "cublas") {
  asked <- identical(run$backend %||% weft_backend(), "cuda") && !isTRUE(run$dry_run)
  if (asked && !isTRUE(session$device_open)) open_beside(first_device(), libraries)
}

session <- new.env(parent = emptyenv())

seconds_text <- function(s) {
  if (s < 1) sprintf("%.0f ms", 1000 * s + 0) else if (s < 120) sprintf("%.1f s", s) else sprintf("%.0f min", s / 60)
}

# What native code is handed: see weft_glue_run() in src/core/r/glue.c.
run_control <- function(backend = "cpu", threads = NULL, progress = NULL, columns = NULL, task = "Working",
                        devices = first_device()) {
  if (backend == "cuda") session$device_open <- TRUE
  list(
    backend = backend, libs = if (backend == "cuda") cuda_dir() else libs_dir(), threads = threads_for(threads),
    devices = devices,
    device_limit = check_number(getOption("weft.device_memory", 0), "weft.device_memory", min = 0),
    progress = ranks_progress(progress_function(progress, task)), poll = getOption("weft.poll", 0.1), columns = columns
  )
}

first_device <- function() as.integer(check_number(getOption("weft.device", 0), "weft.device", min = 0, max = 1023,
                                                   whole = TRUE))

# The devices of a run, as integers from 0. What runs on the CPU needs none. `divided`: the seconds that they would
# share, as choose_backend() has them; "all" takes as many as pay then. `again`: see devices_worth().
devices_for <- function(devices, backend, divided = NULL, again = 0) {
  arg <- if (is.null(devices)) "weft.devices" else "devices"
  devices <- devices %||% getOption("weft.devices")
  if (is.null(devices)) return(first_device())
  all <- identical(devices, "all")
  numbers <- is.numeric(devices) && length(devices) %in% 1:64 && !anyNA(devices) && all(devices %in% 0:1023)
  if (!all && !numbers) {
    abort_input(sprintf("`%s` must be NULL, \"all\" or at most 64 device numbers, counted from 0.", arg),
                x = paste0("It is ", describe(devices), "."))
  }
  if (backend != "cuda") return(first_device())
  open <- .Call(C_weft_devices_opened, cuda_dir())
  there <- length(open)
  if (all) return(all_devices(divided, utils::head(open, 64L), again))
  if (any(devices >= there)) {
    abort_input(sprintf("`%s` must be device numbers from 0 to %d.", arg, there - 1L),
                x = sprintf("There is no device %s.", label_some(as.character(unique(devices[devices >= there])))))
  }
  as.integer(devices)
}

# `devices = "all"`: as many as pay for this call, those first that are open. Others that would have paid had they been
# open are opened beside the call's work, for later calls.
all_devices <- function(divided, open, again) {
  numbers <- order(!open) - 1L
  if (is.null(divided)) return(sort(numbers))
  now <- devices_worth(divided, length(open), sum(open), again)
  later <- devices_worth(divided, length(open), length(open), again)
  if (later > now) open_beside(numbers[(now + 1L):later])
  sort(numbers[seq_len(now)])
}

#' The CUDA devices of this machine
#'
#' `weft_devices()` lists the CUDA devices that weft can use, as a table with one row per device.
#'
#' @section Several devices:
#' [mi_pairs()], [mi_triples()], [bn_learn()], [irm()], [pca()] and [kernel_sum()] take `weft_run(devices = )`:
#' * `NULL` uses one device, which the option `weft.device` chooses. The option `weft.devices` changes this default,
#'   also for the functions that are built on [kernel_sum()].
#' * `"all"` uses as many devices as are predicted to save time, which is one device for small tasks. Opening a device
#'   takes a third of a second, once per session. If this is longer than it saves, `"all"` opens the devices while it
#'   works, and later calls use them.
#' * Numbers from 0, in the order of the rows of this table, use exactly these devices, even if this is slower.
#'
#' The result is the same as on one device: bit for bit for tuples and chains, and up to rounding for [pca()] and direct
#' kernel sums. Tuples or chains are distributed over the devices, with one host thread per device. If a co-clustering
#' has fewer chains than devices, each sweep is distributed: each device has a part of the nodes with their links, and
#' they exchange labels and counts. [pca()] gives each device a block of rows, and the devices exchange sums over rows.
#' [kernel_sum()] distributes queries.
#'
#' Each device has a copy of the packed data, the table of scores, the points, or, if there are as many chains as
#' devices, the graph. `weft.device_memory` applies to each device. On the CPU, `devices` has no effect.
#'
#' @return A data frame with one row per device: `name`, `capability`, `processors`, `total` and `available` memory in
#'   bytes, `driver` and `runtime` versions, and the capabilities that weft was `built_for`. Without a device, the table
#'   has no rows, and the attribute `"reason"` gives the reason.
#' @export
#' @examples
#' weft_devices()
weft_devices <- function() {
  why <- cuda_missing()
  control <- run_control(if (is.null(why)) "cuda" else "cpu")
  out <- as_frame(.Call(C_weft_devices, control))
  attr(out, "reason") <- why
  out
}

# Bytes of memory that are free on this machine, below 0 where that is unknown.
host_free <- function() .Call(C_weft_host_available)
