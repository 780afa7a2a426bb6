package em

// Linear is a number that moves from From to To over the first Over updates and then stays.
type Linear struct {
	From, To float64
	Over     uint64
}

// Constant is a number that does not move.
func Constant(v float64) Linear { return Linear{From: v, To: v} }

// At returns the number at an update, counted from 0.
func (l Linear) At(step uint64) float64 {
	if step >= l.Over {
		return l.To
	}
	return l.From + (l.To-l.From)*float64(step)/float64(l.Over)
}
