# What this machine does in a second. Plans are seconds on the machine of `reference_rates`, each part bound
# by one of these rates; they are measured where a choice between CPU and device depends on them, once.

# An H200 and sixteen cores beside it, as weft_calibrate() measured them on 2026-11-23.
reference_rates <- c(core = 1.17e10, memory = 1.2e11, gather = 1.77e8, calls = 1.12e5, up = 3.65e10, down = 4.24e10,
                     device_memory = 2.7e12, device_core = 1.62e13, device_single = 2.9e13)

# How many times as long as on that machine work takes here that is bound by a rate.
slowness <- function(rate) {
  rates <- session$rates
  if (is.null(rates) || is.na(rates[rate])) 1 else reference_rates[[rate]] / rates[[rate]]
}

# What must be the same on every machine: decisions about how much is computed.
at_reference <- function(seconds) {
  known <- session$rates
  session$rates <- NULL
  on.exit(session$rates <- known)
  force(seconds)
}

#' Measure the speed of this machine
#'
#' The back end `"auto"` compares the predicted times of a call on the CPU and on a device: the amount of work, divided
#' by the rate at which the machine does it. `weft_calibrate()` measures these rates, which takes about a second, and
#' keeps them in a file for later sessions; without it, the rates are those of an H200 with sixteen cores. Results do
#' not depend on them.
#'
#' @section The file: `rates.dcf` in `tools::R_user_dir("weft", "cache")`; it holds the rates, and the version of weft,
#'   the machine and the devices to which they belong. A file of another machine or version, or a damaged one, is
#'   ignored. With the option `weft.calibrate = TRUE` or the variable `WEFT_CALIBRATE=yes` the first call that takes
#'   more than some hundredths of a second and could run on either back end measures and saves the missing rates; with
#'   `FALSE` or `no`, and always under R CMD check and in tests, calls do not read the file either.
#'
#' @param again whether to repeat measurements that are already known.
#' @param save whether to write the file.
#' @param threads the number of threads; see [weft_threads()].
#' @return A data frame of class `weft_rates`, one row per rate: `rate`, its `value` per second (`NA` where there is no
#'   device), the `reference` machine's value, and a description.
#' @seealso [weft_backend()]
#' @export
#' @examples
#' weft_calibrate(save = FALSE)
weft_calibrate <- function(again = FALSE, save = TRUE, threads = NULL) {
  again <- check_flag(again, "again")
  save <- check_flag(save, "save")
  threads <- threads_for(threads)
  known <- if (!again) session$rates %||% read_rates()
  session$rates <- known %||% measure_rates(threads)
  if (save && is.null(known)) write_rates(session$rates)
  means <- c(core = "double multiply-adds of one core", memory = "bytes read from memory by all threads",
             gather = "places of a large table that one core looks up", calls = "device kernels started and waited for",
             up = "bytes to the device", down = "bytes back", device_memory = "bytes that the device reads or writes",
             device_core = "double multiply-adds of the device", device_single = "single multiply-adds of the device")
  structure(list2DF(list(rate = names(reference_rates), value = unname(session$rates[names(reference_rates)]),
                         reference = unname(reference_rates), meaning = unname(means[names(reference_rates)]))),
            class = c("weft_rates", "data.frame"))
}

#' @export
print.weft_rates <- function(x, ...) {
  check_frame(x, "x")
  shown <- as.data.frame.list(unclass(x)[names(x)])
  for (column in intersect(c("value", "reference"), names(shown))) {
    if (is.numeric(shown[[column]])) shown[[column]] <- formatC(shown[[column]], digits = 2, format = "e")
  }
  print(shown, row.names = FALSE, right = FALSE)
  invisible(x)
}

measure_rates <- function(threads = NULL) {
  host <- .Call(C_weft_rates, run_control("cpu", threads, FALSE))
  device <- if (is.null(cuda_missing())) .Call(C_weft_rates, run_control("cuda", threads, FALSE))
  out <- stats::setNames(rep(NA_real_, length(reference_rates)), names(reference_rates))
  found <- c(host, device)
  out[names(found)] <- found
  out
}

# Before a choice that matters: TRUE when rates became known that had not been. Those of a file are taken, and where the
# user has said so, others are measured.
calibrate_once <- function() {
  if (!is.null(session$rates) || isTRUE(session$no_rates)) return(FALSE)
  asked <- asked_to_calibrate()
  known <- if (!isFALSE(asked)) read_rates()
  session$rates <- known %||% if (isTRUE(asked)) tryCatch(measure_rates(), weft_error = function(e) NULL)
  session$no_rates <- is.null(session$rates)
  if (is.null(known) && !is.null(session$rates)) write_rates(session$rates)
  !is.null(session$rates)
}

# TRUE, FALSE, or NULL where the user has said nothing. Checks and tests look at no file unless told to.
asked_to_calibrate <- function() {
  option <- getOption("weft.calibrate")
  if (!is.null(option)) return(check_flag(option, "weft.calibrate"))
  said <- Sys.getenv("WEFT_CALIBRATE")
  if (nzchar(said)) return(!tolower(said) %in% c("no", "false", "0", "off"))
  if (any(nzchar(Sys.getenv(c("_R_CHECK_PACKAGE_NAME_", "_R_CHECK_LIMIT_CORES_", "TESTTHAT"))))) FALSE
}

# ---- the file ----

rates_file <- function() file.path(user_folder("cache"), "rates.dcf")

# R's folder for the files of a package, which need not exist, where there is no home, either.
user_folder <- function(which) suppressWarnings(tools::R_user_dir("weft", which))

# What rates apply to, as text of one line.
machine_text <- function() {
  devices <- if (is.null(cuda_missing())) weft_devices()$name
  processor <- tryCatch(grep("^model name", readLines("/proc/cpuinfo", n = 50L, warn = FALSE), value = TRUE)[1L],
                        error = function(e) NA, warning = function(w) NA)
  text <- paste(c(Sys.info()[["nodename"]], R.version$platform, sub(".*: *", "", processor), threads_for(NULL),
                  devices),
                collapse = "; ")
  gsub("[^ -~]", "?", text)
}

# Named numbers, or NULL where there is no such file or not one of this machine and version.
read_rates <- function(file = rates_file()) {
  if (!is.null(file_problem(file)) || !isTRUE(file.size(file) < 1e5)) return(NULL)
  fields <- tryCatch(read.dcf(file), error = function(e) NULL, warning = function(w) NULL)
  if (is.null(fields) || nrow(fields) != 1L) return(NULL)
  here <- c(Machine = machine_text(), Version = weft_version())
  if (!all(c(names(here), names(reference_rates)) %in% colnames(fields))) return(NULL)
  if (!identical(unname(fields[1L, names(here)]), unname(here))) return(NULL)
  values <- suppressWarnings(as.numeric(fields[1L, names(reference_rates)]))
  names(values) <- names(reference_rates)
  on_host <- c("core", "memory", "gather")
  right <- is.finite(values) & values > 0
  if (!all(right[on_host]) || any(!right & !is.na(values))) return(NULL)
  values
}

# Where the file cannot be written, the session still knows the rates.
write_rates <- function(rates, file = rates_file()) {
  suppressWarnings(tryCatch({
    dir.create(dirname(file), recursive = TRUE, showWarnings = FALSE)
    fields <- c(Machine = machine_text(), Version = weft_version(),
                stats::setNames(formatC(unname(rates), digits = 3, format = "e", decimal.mark = "."), names(rates)))
    write_text(paste0(names(fields), ": ", fields), file)
    TRUE
  }, error = function(e) FALSE))
}
