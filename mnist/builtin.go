package mnist

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"sync"
)

// The built-in sets, as Packed returns them. Anybody can make these files again from folders of the original idx files, of which
// LICENSE-DATA.md has the sums.
//
//go:generate go run ./internal/pack ../data/mnist ../data/mnist_binarized
var (
	//go:embed digits.gz
	packedDigits []byte
	//go:embed binarized.gz
	packedBinarized []byte
)

// builtIns are the sets that need no files, by name.
var builtIns = map[string]func() (*Set, error){
	Digits:    sync.OnceValues(func() (*Set, error) { return unpackSet(Digits, packedDigits, 60_000, 0, 10_000) }),
	Binarized: sync.OnceValues(func() (*Set, error) { return unpackSet(Binarized, packedBinarized, 50_000, 10_000, 10_000) }),
}

// unpackSet returns a packed set with the given numbers of images.
func unpackSet(name string, packed []byte, train, valid, test int) (*Set, error) {
	all := Images{Size: Size{28, 28}}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		all.bits, err = io.ReadAll(z)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack the set %s: %w", name, err)
	}
	if all.Len() != train+valid+test {
		return nil, fmt.Errorf("unpack the set %s: %d images instead of %d", name, all.Len(), train+valid+test)
	}
	return &Set{
		Name: name, Size: all.Size,
		Train: all.Slice(0, train), Valid: all.Slice(train, train+valid), Test: all.Slice(train+valid, all.Len()),
	}, nil
}
