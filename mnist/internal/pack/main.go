// Command pack makes the files of the built-in sets from folders of idx files.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/mnist/internal/bilevel"
)

func main() {
	out := flag.String("out", "", "the file to write")
	flag.Parse()
	if err := pack(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(out string, args []string) error {
	if out == "" || len(args) != 1 {
		return fmt.Errorf("usage: pack -out FILE FOLDER")
	}
	set, err := mnist.Open(args[0])
	if err != nil {
		return err
	}
	var bits []byte
	for _, part := range []mnist.Images{set.Train, set.Valid, set.Test} {
		bits = append(bits, part.Packed()...)
	}
	packed, err := bilevel.Encode(set.Height, set.Width, bits)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d + %d + %d images of %v, hash %s, %d bytes\n", set.Name, set.Train.Len(), set.Valid.Len(), set.Test.Len(),
		set.Size, set.Hash(), len(packed))
	return os.WriteFile(out, packed, 0o666)
}
