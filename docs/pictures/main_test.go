package main

import (
	"bytes"
	"math"
	"os"
	"testing"
)

// The figure in the documents is what this program draws.
func TestFigure(t *testing.T) {
	var drawn bytes.Buffer
	if err := draw(&drawn); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../tutorial-posterior.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn.Bytes(), kept) {
		t.Error("draw it again: go run ./docs/pictures > docs/tutorial-posterior.svg")
	}
}

// Mean field is exact where the posterior is a product, and chooses one of two corners where it is not.
func TestMeanField(t *testing.T) {
	product := make([]float64, clusters*petals)
	for k := range product {
		product[k] = float64(1+k/petals) * float64(1+k%petals) / 100
	}
	for k, q := range meanField(product) {
		if math.Abs(q-product[k]) > 1e-9 {
			t.Errorf("of a product: %g, want %g", q, product[k])
		}
	}
	corners := make([]float64, clusters*petals)
	corners[0], corners[petals+1] = 0.6, 0.4
	if q := meanField(corners); math.Abs(q[0]+q[petals+1]-1) > 1e-9 || max(q[0], q[petals+1]) < 0.999 {
		t.Errorf("of two corners: %.3f", q)
	}
}
