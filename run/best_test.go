package run

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// bestStore has two variables of a model, one of them fixed, and one of an optimiser.
func bestStore(t *testing.T) (*model.Store, *Best) {
	t.Helper()
	store := model.NewStore()
	store.Scope("/theta/deep").VariableWithValue("w", []float32{1, 2})
	store.Scope("/theta").VariableWithValue("mean", []float32{3}).SetTrainable(false)
	store.Scope("/optim/theta").VariableWithValue("w", []float32{9})
	b, err := KeepBest(store, "/theta", "/phi")
	if err != nil {
		t.Fatal(err)
	}
	return store, b
}

func weights(t *testing.T, store *model.Store) []float32 {
	t.Helper()
	return tensors.MustCopyFlatData[float32](store.GetVariable("/theta/deep/w").MustValue())
}

func setWeights(t *testing.T, store *model.Store, to ...float32) {
	t.Helper()
	if err := store.GetVariable("/theta/deep/w").SetValue(tensors.FromValue(to)); err != nil {
		t.Fatal(err)
	}
}

func measured(t *testing.T, b *Best, step uint64, score float64) {
	t.Helper()
	if err := b.Measured(step, score); err != nil {
		t.Fatal(err)
	}
}

// seen are the weights that an evaluation sees.
func seen(t *testing.T, store *model.Store, b *Best) (out []float32) {
	t.Helper()
	if err := b.During(func() error { out = weights(t, store); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func same32(a, b []float32) bool { return len(a) == len(b) && a[0] == b[0] && a[1] == b[1] }

// The best state is what evaluations see, and training never does.
func TestBest(t *testing.T) {
	store, b := bestStore(t)
	if got := seen(t, store, b); !same32(got, []float32{1, 2}) || b.Standing(7) != (Standing{"last", 7, 7, 0}) {
		t.Errorf("nothing is measured: %v, %+v", got, b.Standing(7))
	}
	measured(t, b, 1, math.NaN())
	measured(t, b, 2, math.Inf(1))
	if b.Selection != (Selection{}) {
		t.Errorf("a score that is not finite: %+v", b.Selection)
	}
	for i, score := range []float64{-5, -4, -4, math.NaN(), -6} {
		setWeights(t, store, float32(i), -1)
		measured(t, b, uint64(10*i+10), score)
	}
	if b.Selection != (Selection{Step: 20, Score: -4, Since: 3}) {
		t.Errorf("%+v", b.Selection)
	}
	if got := seen(t, store, b); !same32(got, []float32{1, -1}) {
		t.Errorf("an evaluation sees %v", got)
	}
	failure := errors.New("no")
	if err := b.During(func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	func() {
		defer func() { recover() }()
		b.During(func() error { panic("no") })
	}()
	if got := weights(t, store); !same32(got, []float32{4, -1}) {
		t.Errorf("after evaluations %v", got)
	}
	setWeights(t, store, 8, 8) // the copy is no alias
	if got := seen(t, store, b); !same32(got, []float32{1, -1}) {
		t.Errorf("an evaluation sees %v", got)
	}
	if got := b.Standing(50); got != (Standing{"best", 20, 50, -4}) || got.Note() == "" {
		t.Errorf("%+v, %q", got, got.Note())
	}
	if err := b.Show(); err != nil || !same32(weights(t, store), []float32{1, -1}) || !same32(seen(t, store, b), []float32{1, -1}) {
		t.Errorf("shown for good: %v, error %v", weights(t, store), err)
	}
	var none *Best
	if err := none.During(func() error { return failure }); !errors.Is(err, failure) || none.Standing(3).State != "last" {
		t.Errorf("without a best state: %v, %+v", err, none.Standing(3))
	}
}

// A state has the copies, and comes back with them; its parameters for other programs are those of the state that counts.
func TestBestState(t *testing.T) {
	store, b := bestStore(t)
	measured(t, b, 1, 1)
	setWeights(t, store, 5, 6)
	s, err := StoreState(store, b.Selection)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Arrays) != 3+2+1 { // and the list of those that are fixed
		t.Errorf("%d arrays", len(s.Arrays))
	}
	other, again := bestStore(t)
	if err := RestoreStore(other, s, &again.Selection); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, other, again); !same32(got, []float32{1, 2}) || !same32(weights(t, other), []float32{5, 6}) {
		t.Errorf("restored: %v", got)
	}
	back, err := StoreState(other, again.Selection)
	if err != nil || StateHash(back) != StateHash(s) {
		t.Errorf("the restored state differs, error %v", err)
	}
	if p, err := Parameters(store); err != nil || len(p) != 2 {
		t.Errorf("%d parameters, error %v", len(p), err)
	}
	shown := b.Selection.Of(s.Arrays)
	if string(shown["/theta/deep/w"].Data) != string(s.Arrays["/best/theta/deep/w"].Data) ||
		string(shown["/optim/theta/w"].Data) != string(s.Arrays["/optim/theta/w"].Data) {
		t.Error("the arrays that count are others")
	}
	for _, none := range []*Selection{nil, {}} {
		if got := none.Of(s.Arrays); string(got["/theta/deep/w"].Data) != string(s.Arrays["/theta/deep/w"].Data) {
			t.Error("nothing was measured, and copies count")
		}
	}
}

// A state of a training that kept the last one alone is one that has measured nothing.
func TestOlderState(t *testing.T) {
	store, b := bestStore(t)
	setWeights(t, store, 5, 6)
	s, err := StoreState(store, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Older(s); ok {
		t.Error("a state with copies is an older one")
	}
	old := State{Arrays: Below(s.Arrays, "/theta", "/optim"), Extra: json.RawMessage("{}")}
	if err := SetStore(store, old.Arrays); err == nil {
		t.Error("a state without copies fits")
	}
	older, ok := b.Older(old)
	if !ok || len(old.Arrays) != 4 {
		t.Fatalf("%t, %d arrays", ok, len(old.Arrays))
	}
	other, again := bestStore(t)
	if err := SetStore(other, older.Arrays); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, other, again); !same32(got, []float32{5, 6}) || len(again.pairs) != 2 {
		t.Errorf("it is seen as %v", got)
	}
}

func TestSelectionCheck(t *testing.T) {
	for _, s := range []Selection{{}, {Step: 5}, {Step: 3, Since: 2}} {
		if err := s.Check(5); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, s := range []Selection{{Step: 6}, {Step: 4, Since: 2}, {Step: 1, Score: math.NaN()}} {
		if s.Check(5) == nil {
			t.Errorf("%+v passes", s)
		}
	}
}
