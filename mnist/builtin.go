package mnist

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/gfnem/gfnem/mnist/internal/bilevel"
)

// The built-in sets. Anybody can make these files again, byte for byte, from folders of the original idx files, of which
// LICENSE-DATA.md has the sums.
//
//go:generate go run ./internal/pack ../data/mnist ../data/mnist_binarized
var (
	//go:embed digits.bin
	packedDigits []byte
	//go:embed binarized.bin
	packedBinarized []byte
)

// builtIns are the sets that need no files, by name.
var builtIns = map[string]func() (*Set, error){
	Digits:    sync.OnceValues(func() (*Set, error) { return unpackSet(Digits, packedDigits, 60_000, 0, 10_000) }),
	Binarized: sync.OnceValues(func() (*Set, error) { return unpackSet(Binarized, packedBinarized, 50_000, 10_000, 10_000) }),
}

// unpackSet returns a packed set with the given numbers of images.
func unpackSet(name string, packed []byte, train, valid, test int) (*Set, error) {
	height, width, bits, err := bilevel.Decode(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack the set %s: %w", name, err)
	}
	all := Images{Size{height, width}, bits}
	if all.Len() != train+valid+test {
		return nil, fmt.Errorf("unpack the set %s: %d images instead of %d", name, all.Len(), train+valid+test)
	}
	return &Set{
		Name: name, Size: all.Size,
		Train: all.Slice(0, train), Valid: all.Slice(train, train+valid), Test: all.Slice(train+valid, all.Len()),
	}, nil
}
