package mnist

import (
	"crypto/sha256"
	"fmt"
)

// Names of the sets that are known by their content, whatever folder they come from.
const (
	Digits    = "digits"    // the 60,000 + 10,000 digits of MNIST, gray values of 128 and more being 1
	Binarized = "binarized" // the fixed stochastic binarisation of MNIST, 50,000 + 10,000 + 10,000 images
)

// Set is images to learn from and to test with, all of one size.
type Set struct {
	// Name says what the pixels are, so that likelihoods of different sets are not compared: Digits, Binarized, or the
	// name of a folder followed by " (thresholded)" if its pixels were gray values or " (binary)" if they were 0 and 1.
	Name string
	Size
	Train Images
	Valid Images // may be empty, as MNIST's is
	Test  Images
}

// Hash returns the SHA-256 of the size and all pixels. It is the same for files compressed or not, gray or thresholded
// before.
func (s *Set) Hash() string {
	h := sha256.New()
	for _, part := range []struct {
		name   string
		images Images
	}{{"train", s.Train}, {"valid", s.Valid}, {"test", s.Test}} {
		fmt.Fprintf(h, "%s %d %v\n", part.name, part.images.Len(), s.Size)
		h.Write(part.images.bits)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
