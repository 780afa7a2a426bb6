// Package suggest finds what a mistyped name was meant to be.
package suggest

// Nearest returns the candidate fewest letters away from name, and false if none is near enough to be meant.
func Nearest(name string, candidates []string) (string, bool) {
	best, bestDistance := "", len(name)/3+2
	for _, c := range candidates {
		if d := Distance(name, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best, best != ""
}

// Distance is the number of letters to insert, delete or replace to get from a to b (Levenshtein).
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1) // row[j]: from the letters of a seen so far to the first j of b
	for j := range row {
		row[j] = j
	}
	for i, x := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			replace := diagonal
			if x != y {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
