# Writes inst/extdata/snps.csv.gz, the data set of the demo and of examples: 600 people, 120 SNPs as 0/1/2 copies of the
# rarer allele, and a disease. Planted: rs17 and rs42 raise the risk by themselves, rs58 weakly; rs80 and rs81 only
# together (an XOR of carrying the allele). rs18 is in linkage with rs17. 1 % of the genotypes are missing.
set.seed(20111)
n <- 600
p <- 120
frequency <- runif(p, 0.1, 0.5)
frequency[80:81] <- 1 - sqrt(0.5) # half of the people carry them
snps <- vapply(frequency, function(f) rbinom(n, 2, f), integer(n))
copied <- runif(n) < 0.85
snps[copied, 18] <- snps[copied, 17]
risk <- -4.3 + 2 * (snps[, 17] > 0) + 2 * (snps[, 42] > 0) + 0.7 * snps[, 58] +
  2.5 * xor(snps[, 80] > 0, snps[, 81] > 0)
disease <- ifelse(runif(n) < plogis(risk), "case", "control")
snps[sample(length(snps), 0.01 * length(snps))] <- NA
colnames(snps) <- paste0("rs", seq_len(p))
file <- gzfile("inst/extdata/snps.csv.gz", "w")
write.csv(data.frame(disease, snps), file, row.names = FALSE, quote = FALSE)
close(file)
