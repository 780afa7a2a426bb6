// Command gen writes the assembly of packages vec and gemm: zz_* in the folder where it is run, by go generate.
//
// builder.go, block.go and alloc.go build a function: a block is straight-line code on lanes whose registers are chosen
// here, between blocks stands text. file.go and constants.go write files of functions, walk.go makes loops over
// elements. Files vec*.go and gemm*.go are the functions of each package. Files neon*.go are what is of its own for ARM:
// neon_encode.go makes words of instructions that Go's assembler lacks, neon_block.go has the operations of blocks.
package main

import (
	"fmt"
	"log"
	"os"
)

// packages builds what is generated for a Go package, by its name.
var packages = map[string]func() *Package{"vec": vec, "gemm": gemm}

func main() {
	if len(os.Args) != 2 || packages[os.Args[1]] == nil {
		log.Fatal("usage: gen vec|gemm")
	}
	texts, err := packages[os.Args[1]]().texts()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range texts {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatal(fmt.Errorf("write %s: %w", name, err))
		}
	}
}
