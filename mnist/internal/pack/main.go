// Command pack makes the files of the built-in sets, digits.gz and binarized.gz, from folders of the original idx files.
//
//	go run ./internal/pack FOLDER...
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"

	"github.com/gfnem/gfnem/mnist"
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
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(bits); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(set.Name+".gz", packed.Bytes(), 0o666)
}
