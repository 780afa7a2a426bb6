// Command gen writes the assembly of package vec: zz_*_amd64.s and the Go files that declare it.
package main

import (
	"flag"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("dir", ".", "folder of package vec")
	flag.Parse()
	generate(*dir)
}

// generate writes all files to a folder.
func generate(dir string) {
	for _, is := range []isa{avx512, avx2} {
		g := newGen()
		for _, el := range []elem{i32, i64, u32, u64} {
			g.integerKernels(is, el)
			g.compareKernels(is, el)
			g.selectKernels(is, el)
		}
		g.write(dir, strings.ToLower("zz_int_"+is.name))
		g = newGen()
		g.extra = philoxData()
		g.philoxKernel(is)
		g.transposeKernels(is, 4)
		g.transposeKernels(is, 8)
		if is == avx512 {
			g.convertKernels()
			g.boolKernels()
		}
		g.write(dir, strings.ToLower("zz_misc_"+is.name))
		for _, el := range []elem{f32, f64} {
			g := newGen()
			g.binaryKernels(is, el, binaries)
			g.unaryKernels(is, el, unaries)
			g.fusedKernels(is, el)
			g.compareKernels(is, el)
			g.selectKernels(is, el)
			g.rowKernels(is, el)
			g.softmaxKernels(is, el)
			g.write(dir, strings.ToLower("zz_"+el.name+"_"+is.name))
		}
	}
}

func (g *Gen) write(dir, name string) {
	put := func(file string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	put(name+"_amd64.s", []byte(g.assembly()))
	text := g.stubs()
	if strings.Contains(text, "math.") {
		text = strings.Replace(text, "package vec\n", "package vec\n\nimport \"math\"\n", 1)
	}
	src, err := format.Source([]byte(text))
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	put(name+"_amd64.go", src)
}
