# pair_scan() beside lm() and glm(), PLINK 1.9 and FaST-LMM's pairs; its level and power where ancestry acts on variants
# and outcome. On the CPU, from the root of the sources.
#   Rscript inst/bench/pair-scan.R fits             10,000 random pairs: largest relative differences from lm(), glm()
#   Rscript inst/bench/pair-scan.R levels           share of p <= .05 without interactions, with and without components
#   Rscript inst/bench/pair-scan.R families         share of data sets without interactions whose least p_fwer is <= .05
#   Rscript inst/bench/pair-scan.R planted          planted pairs, with components
#   Rscript inst/bench/pair-scan.R plink 2000 400   PLINK 1.9 --epistasis, without covariates: values, seconds
#   Rscript inst/bench/pair-scan.R fastlmm FOLDER   pairs of FaST-LMM's tests: datasets/, expected-Windows/epistasis/
#   Rscript inst/bench/pair-scan.R gain             seconds beside a loop of lm.fit()
#   Rscript inst/bench/pair-scan.R check            on a device: the same tables as on the CPU, 40 random data sets
#   Rscript inst/bench/pair-scan.R device 500000 20000     on a device: seconds of the screen with 1 and 4 degrees of
#                                                   freedom, without and with 1 % missing genotypes; then lm(), glm()
#                                                   and PLINK, if it is there. Words and numbers behind it choose:
#                                                   "linear", "logistic", proportions of missing genotypes;
#                                                   "short": 64 different variants, the screen alone
library(weft)
source("tests/testthat/helper-genotypes.R")
source("tests/testthat/helper-pair-scan.R")

covariates_of <- function(n) {
  data.frame(age = rnorm(n, 50, 10), sex = factor(sample(c("f", "m"), n, TRUE)), one = rnorm(n), two = rexp(n))
}

furthest <- function(found, expected) apply(abs(found - expected) / pmax(abs(expected), 1e-3), 2L, max, na.rm = TRUE)

fits <- function(pairs = 10000, n = 400, p = 300) {
  set.seed(1)
  x <- matrix(rbinom(n * p, 2, rep(runif(p, 0.15, 0.5), each = n)), n)
  x[runif(n * p) < 0.03] <- NA
  covariates <- covariates_of(n)
  trait <- 0.05 * covariates$age + covariates$one + rnorm(n)
  outcomes <- list(linear = trait, logistic = trait > median(trait))
  for (kind in names(outcomes)) {
    y <- outcomes[[kind]]
    found <- as.data.frame(pair_scan(x, y, covariates, top = Inf))
    found <- found[sample(nrow(found), pairs), ]
    i <- as.integer(sub("V", "", found$feature1))
    j <- as.integer(sub("V", "", found$feature2))
    expected <- vapply(seq_len(pairs), function(k) {
      a <- x[, i[k]]
      b <- x[, j[k]]
      c(model_of_pair(a, b, y + 0, covariates, class = kind == "logistic"),
        model_score(a, b, y + 0, covariates, kind == "logistic"))
    }, numeric(6))
    columns <- c("n", "estimate", "std_error", "statistic", "p_value", "score")
    cat(kind, "model,", pairs, "pairs, largest relative differences:\n")
    print(signif(furthest(as.matrix(found[columns]), t(expected)), 2))
  }
}

# Two ancestries whose frequencies differ, the outcome as well. Components come from variants of their own.
structured <- function(n = 1500, p = 50, markers = 600) {
  ancestry <- rep(0:1, length.out = n)
  draw <- function(count) {
    middle <- runif(count, 0.3, 0.7)
    apart <- runif(count, -0.25, 0.25)
    vapply(seq_len(count), function(j) rbinom(n, 2, middle[j] + apart[j] * (ancestry - 0.5) * 2), integer(n))
  }
  list(x = draw(p), ancestry = ancestry, age = rnorm(n),
       components = pca(draw(markers) + 0, 2, scale = TRUE, run = "cpu")$x)
}

levels_of_tests <- function(sets = 30) {
  set.seed(2)
  shares <- replicate(sets, {
    d <- structured()
    trait <- 2 * d$ancestry + 0.5 * d$age + 0.2 * d$x[, 1] + rnorm(length(d$age))
    class <- runif(length(d$age)) < plogis(-1.5 + 2 * d$ancestry + 0.5 * d$age)
    level <- function(y, covariates) mean(pair_scan(d$x, y, covariates, top = Inf)$p_value <= 0.05, na.rm = TRUE)
    with <- cbind(d$components, d$age)
    c(linear_with = level(trait, with), linear_without = level(trait, d$age), logistic_with = level(class, with),
      logistic_without = level(class, d$age))
  })
  cat(sets, "data sets of 1,225 pairs, share of p <= .05 (standard error over data sets):\n")
  print(rbind(share = rowMeans(shares), error = apply(shares, 1L, sd) / sqrt(sets)), digits = 3)
}

families <- function(sets = 600, n = 200, p = 12) {
  set.seed(6)
  least <- replicate(sets, {
    ancestry <- rep(0:1, length.out = n)
    x <- vapply(seq_len(p), function(j) rbinom(n, 2, runif(1, 0.3, 0.6) + c(-0.2, 0.2)[1 + ancestry]), integer(n))
    x[runif(n * p) < 0.02] <- NA
    of <- function(y) min(pair_scan(x, y, ancestry, top = 1, permutations = 19)$p_fwer)
    c(linear = of(2 * ancestry + rexp(n)), logistic = of(runif(n) < plogis(2 * ancestry - 1.5)))
  })
  cat(sets, "data sets of 66 pairs, share with p_fwer <= .05 of 19 permutations (standard error .009):\n")
  print(rowMeans(least <= 0.05 + 1e-9), digits = 3)
}

planted <- function(sets = 20) {
  set.seed(3)
  first <- replicate(sets, {
    d <- structured()
    product <- d$x[, 7] * d$x[, 33]
    trait <- 2 * d$ancestry + 0.5 * d$age + 0.35 * product + rnorm(length(d$age))
    class <- runif(length(d$age)) < plogis(-1.5 + d$ancestry + 0.5 * d$age + 0.7 * (product - mean(product)))
    among <- function(y) {
      found <- pair_scan(d$x, y, cbind(d$components, d$age), top = 20)
      right <- found$feature1 == "V7" & found$feature2 == "V33"
      beyond <- found$p_bonferroni <= 0.05
      part <- !right & (found$feature1 %in% c("V7", "V33") | found$feature2 %in% c("V7", "V33"))
      c(found = any(right & beyond), with_one = sum(part & beyond), others = sum(!right & !part & beyond))
    }
    c(linear = among(trait), logistic = among(class))
  })
  cat(sets, "data sets with one planted pair: found at p_bonferroni <= .05; pairs with one of its variants (whose",
      "effect differs between ancestries, as its partner's frequency does), and other pairs:\n")
  print(rowSums(first))
}

plink <- function(n = 1000, p = 60) {
  program <- Sys.which(c("plink1.9", "plink"))
  program <- program[nzchar(program)][1L]
  if (is.na(program)) return(cat("PLINK 1.9 is not installed: not compared\n"))
  set.seed(4)
  x <- matrix(rbinom(n * p, 2, rep(runif(p, 0.2, 0.5), each = n)), n)
  x[runif(n * p) < 0.02] <- NA
  stem <- write_genotypes(tempfile(), x, sprintf("1 rs%d 0 %d A G", seq_len(p), 5e6 * seq_len(p)))
  trait <- rnorm(n) + 0.3 * ifelse(is.na(x[, 3]), 1, x[, 3])
  outcomes <- list(qt = round(trait, 4), cc = trait > 0.3)
  for (kind in names(outcomes)) {
    y <- outcomes[[kind]]
    people <- plink_file(stem)$samples
    write.table(data.frame(people$family, people$individual, if (kind == "cc") 1 + y else y), paste0(stem, ".txt"),
                quote = FALSE, row.names = FALSE, col.names = FALSE)
    call <- c("--bfile", stem, "--pheno", paste0(stem, ".txt"), "--epistasis", "--epi1", "1", "--allow-no-sex",
              "--threads", "1", "--out", stem)
    theirs <- system.time(system2(program, call, stdout = FALSE, stderr = FALSE))
    told <- read.table(paste0(stem, ".epi.", kind), header = TRUE)
    one <- weft_run("cpu", threads = 1)
    ours <- system.time(found <- pair_scan(plink_file(stem), y, top = Inf, run = one))
    screen <- system.time(pair_scan(plink_file(stem), y, top = 100, run = one))
    at <- match(paste(told$SNP1, told$SNP2), paste(found$feature1, found$feature2))
    effect <- if (kind == "cc") log(told$OR_INT) else told$BETA_INT
    cat(kind, nrow(told), "of", nrow(found), "pairs; largest differences of |effect|, and relative ones of",
        "statistic^2:\n")
    print(signif(c(effect = max(abs(abs(found$estimate[at]) - abs(effect))),
                   statistic = max(abs(found$statistic[at]^2 - told$STAT) / pmax(told$STAT, 0.01))), 2))
    cat(sprintf("%d x %d, one thread: PLINK %.2f s; all pairs fitted %.2f, the 100 best of the screen %.2f\n", n, p,
                theirs[["elapsed"]], ours[["elapsed"]], screen[["elapsed"]]))
  }
}

# FaST-LMM has a random effect of all variants (share .13 of the variance here), which pair_scan() has not.
fastlmm <- function(folder) {
  data <- function(name) {
    d <- read.table(file.path(folder, "datasets", name))
    as.matrix(d[match(bed$samples$individual, d$V2), -(1:2)])
  }
  bed <- plink_file(file.path(folder, "datasets", "all_chr.maf0.001.N300"))
  trait <- data("phenSynthFrom22.23.N300.randcidorder.txt")[, 1]
  for (name in c("G1", "one", "no_cov", "no_sid_list_0")) {
    theirs <- read.delim(file.path(folder, "expected-Windows", "epistasis", paste0(name, ".txt")))
    ours <- pair_scan(bed, trait, if (name != "no_cov") data("all_chr.maf0.001.covariates.N300.txt"),
                      pairs = data.frame(feature1 = theirs$SNP0, feature2 = theirs$SNP1))
    tested <- !is.na(ours$p_value)
    cat(sprintf("%-14s %d pairs; %d without a test here, of which %d have p > .9999 there (and %d others)\n", name,
                nrow(theirs), sum(!tested), sum(theirs$PValue[!tested] > 0.9999), sum(theirs$PValue[tested] > 0.9999)))
    ratio <- ours$p_value[tested] / theirs$PValue[tested]
    cat(sprintf("    correlation of log p %.2f, middle half of ratios of p %.2f to %.2f, rank there of our first %d\n",
                cor(log(ours$p_value[tested]), log(theirs$PValue[tested])), quantile(ratio, 0.25),
                quantile(ratio, 0.75), which.min(ours$p_value)))
  }
}

gain <- function(n = 1000, p = 1000) {
  set.seed(5)
  x <- matrix(rbinom(n * p, 2, 0.3), n)
  covariates <- matrix(rnorm(n * 10), n)
  y <- rnorm(n)
  scan <- system.time(pair_scan(x, y, covariates, top = 100, run = weft_run(threads = 1)))[["user.self"]]
  loop <- system.time(for (j in 1:500) stats::lm.fit(cbind(1, covariates, x[, j], x[, j + 1], x[, j] * x[, j + 1]), y))
  each <- loop[["user.self"]] / 500
  cat(sprintf("%d pairs, 10 covariates, %d people, one thread: %.2g us a pair, lm.fit() %.2g: %.0f times\n",
              choose(p, 2), n, 1e6 * scan / choose(p, 2), 1e6 * each, each * choose(p, 2) / scan))
}

# Tables of both back ends, with dependent variants, rare ones, missing calls, sets, distances and permutations.
check <- function(sets = 40) {
  same <- 0
  for (set in seq_len(sets)) {
    set.seed(set)
    n <- sample(c(40, 300, 1000, 5000), 1)
    p <- sample(c(5, 40, 130, 300), 1)
    x <- matrix(rbinom(n * p, 2, rep(runif(p, if (set %% 4) 0.05 else 0.002, 0.6), each = n)), n)
    x[, 2] <- 2L - x[, 1]
    x[, 3] <- (x[, 1] > 0) + 0L
    x[, 4] <- if (set %% 2) x[, 1] else replace(x[, 1], 1, 1L)
    if (set %% 3 == 0) x[sample(n, 3), sample(p, p %/% 2)] <- NA
    if (set %% 3 == 1) x[runif(n * p) < rep(runif(p, 0, 0.1), each = n) * (set %% 2)] <- NA
    covariates <- switch(1 + set %% 3, NULL, covariates_of(n), cbind(x[, 5], exp(2 * rnorm(n)), rnorm(n)))
    if (set %% 3 == 2 && set %% 2) covariates <- covariates[, -1]
    y <- rnorm(n) + 0.3 * ifelse(is.na(x[, 1] * x[, p]), 0, x[, 1] * x[, p])
    if (set %% 5 == 1) y <- y > 0.5
    scan <- function(run) {
      set.seed(set)
      pair_scan(x, y, covariates, top = sample(c(1, 20, 500), 1), df = sample(c(1, 4), 1),
                features = if (set %% 7 == 0) 1:4, permutations = if (set %% 4 == 0) 9 else 0, seed = 1, run = run)
    }
    tables <- lapply(c("cpu", "cuda"), scan)
    fine <- identical(as.data.frame(tables[[1]]), as.data.frame(tables[[2]])) &&
      identical(attr(tables[[1]], "tested"), attr(tables[[2]], "tested"))
    same <- same + fine
    if (!fine) {
      cat(sprintf("set %d (%d x %d, df %g, %s): %s\n", set, n, p, attr(tables[[1]], "model")$df,
                  attr(tables[[1]], "model")$kind,
                  toString(utils::head(all.equal(as.data.frame(tables[[1]]), as.data.frame(tables[[2]])), 3))),
          "tested", attr(tables[[1]], "tested"), attr(tables[[2]], "tested"), "\n")
    }
  }
  cat(same, "of", sets, "tables are the same on both back ends\n")
}

# A .bed file of random variants: `different` ones, and others with their rows moved.
long_file <- function(n, p, missing, different = 256, stem = tempfile()) {
  bytes <- ceiling(n / 4)
  of <- lapply(seq_len(min(different, p)), function(j) {
    g <- rbinom(4 * bytes, 2, runif(1, 0.05, 0.5))
    if (missing > 0) g[runif(4 * bytes) < missing] <- 3L
    as.raw(colSums(matrix(c(3L, 2L, 0L, 1L)[g + 1L], 4) * c(1L, 4L, 16L, 64L)))
  })
  connection <- file(paste0(stem, ".bed"), "wb")
  writeBin(as.raw(c(0x6c, 0x1b, 0x01)), connection)
  for (j in seq_len(p)) {
    by <- ((j - 1) %/% different) * 131 %% bytes
    b <- of[[1 + (j - 1) %% different]]
    writeBin(if (by) c(b[-seq_len(by)], b[seq_len(by)]) else b, connection)
  }
  close(connection)
  writeLines(sprintf("1 rs%d 0 %d A G", seq_len(p), 1000 * seq_len(p)), paste0(stem, ".bim"))
  writeLines(sprintf("f i%d 0 0 1 -9", seq_len(n)), paste0(stem, ".fam"))
  stem
}

# Products of bytes for each pair: digits of ten covariates (2) and the outcome (3), weights (4); behind them, what
# missing genotypes add (src/mi/scan/cuda/gaps.cuh).
products_of_pair <- function(weighted, df, missing) {
  columns <- 10 + weighted
  known <- 4 + 16 * weighted + df * (2 * columns + 3)
  own <- if (df == 1) 2 else 4
  known + if (missing > 0) 5 + 16 * weighted + own * columns + 3 * (own + 1) + 4 else 0
}

device <- function(n, p, ..., run = "cuda") {
  asked <- c(...)
  kinds <- intersect(asked, c("linear", "logistic"))
  short <- "short" %in% asked
  shares <- as.numeric(setdiff(asked, c(kinds, "short")))
  for (missing in if (length(shares)) shares else c(0, 0.01)) {
    device_file(n, p, if (length(kinds)) kinds else c("linear", "logistic"), missing, short, run)
  }
  if (length(asked)) return(invisible())
  fits(500)
  plink()
}

device_file <- function(n, p, kinds, missing, short, run) {
  set.seed(8)
  stem <- long_file(n, p, missing, if (short) 64 else 256)
  on.exit(unlink(paste0(stem, c(".bed", ".bim", ".fam"))))
  file <- plink_file(stem)
  covariates <- matrix(rnorm(n * 10), n)
  two <- as.matrix(plink_file(stem, variants = c(3, p)))
  two[is.na(two)] <- 1
  trait <- rnorm(n) + 8 / sqrt(n) * two[, 1] * two[, 2]
  pairs <- choose(p, 2)
  variants <- weft:::scan_variants(file)
  control <- weft:::scan_settings(list())
  native <- weft:::run_control(run, NULL, FALSE)
  for (outcome in list(linear = trait, logistic = trait > 1)[kinds]) for (df in c(1, 4)) {
    if (df == 1) model <- weft:::scan_model(outcome, covariates, file, variants, control)
    use <- weft:::scanned_variants(variants, model, NULL, control, native)
    seconds <- vapply(1:3, function(time) { # the first one opens the device
      system.time(weft:::screen_pairs(variants, model, use, df, 20, control, native))[["elapsed"]]
    }, 0)
    whole <- system.time(if (!short) {
      found <- pair_scan(file, outcome, covariates, top = 20, df = df, run = run)
    })[["elapsed"]]
    products <- products_of_pair(model$kind == "logistic", df, missing)
    took <- mean(seconds[-1])
    operations <- 2e-12 * products * pairs * n
    cat(sprintf("%s, df %g, %g %% missing: %.0f x %.0f,", model$kind, df, 100 * missing, n, p),
        sprintf("screen %.2f s (standard error %.2f; first %.2f)", took, stats::sd(seconds[-1]) / sqrt(2), seconds[1]),
        if (!short) sprintf("whole call %.2f s;", whole),
        sprintf("%g products, %.0f T operations: %.0f T/s (peak 1,979: %.2f s);", products, operations,
                operations / took, operations / 1979),
        if (!short) c("best", unlist(found[1, 1:2]), "score", format(found$score[1], digits = 6)), "\n")
    if (!short && pairs * n < 2e11) {
      other <- pair_scan(file, outcome, covariates, top = 20, df = df, run = "cpu")
      cat("  the same table on the CPU:", identical(as.data.frame(found), as.data.frame(other)), "\n")
    }
  }
}

asked <- commandArgs(TRUE)
switch(asked[1L], fits = fits(), levels = levels_of_tests(), families = families(), planted = planted(),
       plink = do.call(plink, as.list(as.numeric(asked[-1]))), fastlmm = fastlmm(asked[2L]), gain = gain(),
       check = check(), device = do.call(device, c(as.list(as.numeric(asked[2:3])), asked[-(1:3)])))
