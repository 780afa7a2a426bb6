package gfn

// Internals that the tests of package gfn_test compare with.
var (
	SpanLoss    = spanLoss
	ChooseState = chooseState
)
