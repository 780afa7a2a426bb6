// Command pack makes the files of the built-in sets, digits.bin and binarized.bin, from folders of the original idx files.
//
//	go run ./internal/pack FOLDER...
package main

import (
	"fmt"
	"os"

	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/mnist/internal/bilevel"
)

func main() {
	for _, folder := range os.Args[1:] {
		if err := pack(folder); err != nil {
			fmt.Fprintln(os.Stderr, "pack:", err)
			os.Exit(1)
		}
	}
}

func pack(folder string) error {
	set, err := mnist.Open(folder)
	if err != nil {
		return err
	}
	if set.Name != mnist.Digits && set.Name != mnist.Binarized {
		return fmt.Errorf("%s does not hold the original files: its hash is %s", folder, set.Hash())
	}
	var bits []byte
	for _, part := range []mnist.Images{set.Train, set.Valid, set.Test} {
		bits = append(bits, part.Packed()...)
	}
	packed, err := bilevel.Encode(set.Height, set.Width, bits)
	if err != nil {
		return err
	}
	name := set.Name + ".bin"
	fmt.Printf("%s: %d bytes\n", name, len(packed))
	return os.WriteFile(name, packed, 0o666)
}
