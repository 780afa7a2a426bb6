package em

import "gonum.org/v1/gonum/mathext"

// Whether ranks are uniform is read from their counts in all intervals of bins, each of which is binomial then. So single
// bins and slow trends are seen alike, and Bonferroni's correction is right for any number of ranks.

// uneven returns how probable it is at most that some interval of bins is so full, or so empty, if all bins are equally
// probable.
func uneven(counts []int) float64 {
	bins, total := len(counts), 0
	for _, n := range counts {
		total += n
	}
	least := 1.0
	for from := range bins {
		inside := 0
		for to := from; to < bins-1; to++ { // intervals that end with the last bin are what is left by others
			inside += counts[to]
			least = min(least, tail(inside, total, float64(to-from+1)/float64(bins)))
		}
	}
	return min(1, least*float64(intervals(bins)))
}

// intervals is the number of those that uneven looks at.
func intervals(bins int) int { return bins * (bins - 1) / 2 }

// tail is twice the smaller one of P(X <= k) and P(X >= k), X being binomial.
func tail(k, n int, p float64) float64 { return 2 * min(atMost(k, n, p), atLeast(k, n, p)) }

// atMost is P(X <= k) and atLeast P(X >= k) of a binomial X, as incomplete beta functions, which are exact far out, too.
func atMost(k, n int, p float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

func atLeast(k, n int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// band returns the least and the greatest count of one bin at which uneven is at least alarm.
func band(total, bins int, alarm float64) (low, high float64) {
	p, level := 1/float64(bins), alarm/float64(intervals(bins))
	least, most := total/bins, total/bins
	for least > 0 && 2*atMost(least-1, total, p) >= level {
		least--
	}
	for most < total && 2*atLeast(most+1, total, p) >= level {
		most++
	}
	return float64(least), float64(most)
}
