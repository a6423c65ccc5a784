# What the help of regulation() leaves out: the method, its statistics and its references.

#' How regulation() finds its edges
#'
#' The method of [regulation()], for those who want to know what a number means. `vignette("knock-outs-and-time")`
#' describes how interventions and time series enter.
#'
#' @section Scores: Values become normal scores z (from ranks, averaged over ties), so units and monotone
#'   transformations do not matter. With n < 100 samples the ranks alone say too little. Then z is a mixture: n / 100
#'   parts are normal scores, and 1 - n / 100 parts are the distance from the median, in units of the median absolute
#'   deviation and cut off where normal scores end. Such values should be on a scale on which they are not very skewed,
#'   such as a logarithmic one. A regulator offers its scores z and, with the setting `nonlinear`, max(z, 0) and
#'   min(z, 0), so that thresholds and saturation can be fitted.
#'
#' @section Halves: In every half of the samples, forward selection chooses `steps` features for each target. Each time
#'   it takes the feature that lowers the residual variance most. The default of `steps` is the logarithm to base 2 of
#'   the number of samples in a half, rounded down, less 1. It is at least 2 and at most 5 (for halves of 64 samples or
#'   more), and at most half the number of regulators, rounded up.
#'
#'   Halves come in pairs without a common sample. With fewer than 32 samples a "half" has 16 of them, but at most two
#'   thirds, and the two of a pair share some. Which samples a half holds depends only on the names of the samples, or
#'   on their values where they have no names. So neither reordering the samples nor adding one changes much. With
#'   names, the units of the genes change nothing; without, other units draw other halves, as another seed does.
#'
#' @section Weights: The *area* of an edge is the mean over halves of (steps - s + 1) / steps, where s is the step at
#'   which the regulator was chosen, and of 0 where it was not chosen (Haury et al. 2012). The *weight* is the area
#'   times the *standing* of the regulator. The standing is the variance of the regulator's areas, relative to the
#'   largest such variance, since a regulator that explains many genes well is more likely to explain another (Slawek
#'   and Arodz 2013). Where regulators are named, it is the mean of the areas, relative to the largest.
#'
#'   The selection itself slightly favours regulators that explain many genes, in the second half of the resamples. The
#'   factor is \eqn{(v / \max v + 0.1 \bar v)^g}, where v are the variances in the first half of the resamples and
#'   \eqn{g = 0.15 \min(1, 75 / m)} for m samples in a half, so the favour fades when there are many samples.
#'
#'   `regulators = NULL` takes all genes or, if there are more than 2,000, the 2,000 whose squared correlations with the
#'   others vary most.
#'
#' @section What genes have in common: In most expression data all genes follow the same few conditions. Then many
#'   regulators explain a gene about equally well, and the regulators with much standing are those that follow most
#'   genes. Let b be the mean squared correlation of two genes, less what independent genes have, 1 / (n - 1), and less
#'   0.8 / p, which the neighbours of a gene in a network of p genes account for. A share c of the weight is then of
#'   correlations; c grows from 0 at b = `r common_variation[1]` to 1 at b = `r common_variation[2]`. The weight is
#'   \eqn{((1 - c) a + c e) s^{1 - c}} with area a, standing s and *excess* e.
#'
#'   Correlations for the excess are of weighted samples, so that samples that resemble others count less. The weights
#'   are the inverse of \eqn{K + \lambda I}, where K are the products of samples and \eqn{\lambda} is the mean of its
#'   eigenvalues weighted by themselves (p / n times as much for n > p). \eqn{-\log(1 - r^2) / 2} becomes two standard
#'   scores, among all targets of the regulator and among all regulators of the target. Their signed squares are added,
#'   d is the signed root of the sum, and \eqn{e = (1 + d / (3 + |d|)) / 2} (after Faith et al. 2007).
#'
#'   Without a list of regulators, areas and the areas of the reversed edges may correlate so much that the data do not
#'   say which gene regulates. Then c is also at least what grows from 0 at a correlation of `r both_ways_alike[1]` to 1
#'   at `r both_ways_alike[2]`. The area a is then the mean of the edge's area, with weight 1, and the reversed edge's,
#'   with weight c, and `direction` goes to one half. q-values are of areas alone. Where there are more than 1,000
#'   samples of more than 1,000 genes, and for sparse cells, 1,000 samples stand for all.
#'
#' @section False discoveries: In a null copy, the samples of all targets are permuted together, once for the whole run,
#'   and everything is computed again. The default number of copies is 1,000 by the root of the number of pairs, from 1
#'   to 20, since few pairs say little about chance in one copy. The q-value compares the numbers of edges that reach an
#'   area in the copies and in the data. It controls edges between genes that do not depend on each other at all.
#'   Indirect and reversed edges are dependences too, and are not counted as false. `pair_q` does so for pairs, each of
#'   which counts once.
#'
#'   Directions have no such test. If a share d of both weights is one way, the weights mean that the edge points the
#'   wrong way with probability 1 - d. The mean of this over pairs with a clear direction (at least
#'   `r clear_direction`) is printed. It is too low for few samples, effects beyond thresholds and unmeasured causes:
#'   the report of [gene_network()] has a table of simulations.
#'
#' @section Comparing conditions: With `compare`, each condition has a network of its own. The same random draws choose
#'   halves of equal size in each. Scores are computed within the condition, so a gene that is merely higher in one of
#'   them does not matter. The *effect* of an edge is its area in the second condition less its area in the first or,
#'   with more than two conditions, the greatest less the smallest. The test is of the change: of this difference or, if
#'   it is greater, of the difference of the areas multiplied by the sign of their effect, so that an edge that turns
#'   from raising to lowering counts.
#'
#'   Everything is computed again `permutations` times with the condition labels permuted. The p-value of an edge is the
#'   share of these permutations, with the data as one of them, in which it changes at least as much. The q-value
#'   compares the number of edges that change as much in the data with the mean number in all permutations. It is at
#'   least the p-value of the whole comparison, which says whether the networks differ at all. Edges with areas below
#'   `r least_compared_area` in all conditions are not compared.
#'
#'   A condition that is noisier has weaker correlations, and the same network. Where the strongest correlations are
#'   weaker in one condition than in others (p at most `r noise_level` by permuting the labels), networks are also
#'   compared on equal noise: noise is added to the values of the others until correlations are as strong in all. Each
#'   gene gets noise as its variance is smaller than in the noisiest condition. Where this is not enough, all genes get
#'   the same amount more. What differs must do so in both comparisons: p- and q-values are the greater ones of the two.
#'   The part `noise` of the result is NULL or, where this was done, a list of `weakest`, the condition; `factor`, what
#'   the median correlation of each condition was multiplied by; and `p_value`.
#'
#' @section Counts and cells: Counts in a sparse matrix (whole numbers from 0) become log2(1 + x / size factor). The
#'   size factor of a sample is its total relative to the mean of all, so differences in depth do not create
#'   correlations; a message says so. For a dense matrix, `transform = "counts"` does the same; [gene_quality()]
#'   prepares bulk counts. A sparse matrix of `r least_cells` cells or more is never made dense: its halves are unions
#'   of `r cell_blocks` blocks of cells, whose products are computed once. With `compare` it is made dense.
#'
#' @section Stability: Take as many of the heaviest edges as there are targets, but at most 1,000. The stability is the
#'   share of them that are among the heaviest again when one sample, or one in a hundred, is left out. It is the mean
#'   of three such runs, stored in the attribute `stability` and printed. By default it is computed if that takes less
#'   than about a second and there are null copies.
#'
#' @references Faith et al. (2007). Large-scale mapping and validation of *Escherichia coli* transcriptional regulation
#' from a compendium of expression profiles. *PLoS Biology* 5, e8.
#'
#' Haury, Mordelet, Vera-Licona, Vert (2012). TIGRESS: trustful inference of gene regulation using stability selection.
#' *BMC Systems Biology* 6, 145.
#'
#' Shah, Samworth (2013). Variable selection with error control: another look at stability selection. *JRSS B* 75,
#' 55-80.
#'
#' Slawek, Arodz (2013). ENNET: inferring large gene regulatory networks from expression data using gradient boosting.
#' *BMC Systems Biology* 7, 106.
#' @seealso [regulation()], [as.data.frame.weft_regulation()]
#' @examples
#' net <- regulation(as.matrix(mtcars), seed = 1)
#' head(as.data.frame(net))
#' @name regulation_details
NULL
