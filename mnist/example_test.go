package mnist_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/gfnem/gfnem/mnist"
)

// The digits need no files.
func ExampleOpen() {
	set, err := mnist.Open("digits")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Name, set.Train.Len(), "+", set.Test.Len(), "images of", set.Size)
	first := set.Train.Slice(0, 1).Floats()
	for y := 6; y < 26; y += 2 {
		line := ""
		for x := 3; x < 25; x++ {
			if first[y*set.Width+x] == 1 {
				line += "#"
			} else {
				line += "."
			}
		}
		fmt.Println(line)
	}
	// Output:
	// digits 60000 + 10000 images of 28x28
	// ........############..
	// .....##########.......
	// ........##............
	// .........##...........
	// ...........###........
	// ..............###.....
	// ............#####.....
	// .........######.......
	// ....#######...........
	// .#######..............
}

// A batch for a model is filled in place, from images in any order.
func ExampleImages_Fill() {
	corners := mnist.NewImages(mnist.Size{Height: 2, Width: 2}, []byte{
		1, 0, 0, 0,
		0, 0, 0, 1,
	})
	batch := make([]float32, 3*corners.Pixels())
	corners.Fill(batch, []int{1, 0, 1})
	fmt.Println(batch)
	// Output: [0 0 0 1 1 0 0 0 0 0 0 1]
}

// Images in several files are read in the order of their names; a wrong size is an error that names the file.
func ExampleRead() {
	_, _, err := mnist.Read(mnist.Size{Height: 28, Width: 28}, "testdata/smile.pgm")
	fmt.Println(err)
	images, names, err := mnist.Read(mnist.Size{}, "testdata/smile.pgm")
	fmt.Println(images.Len(), images.Size, names, err)
	// Output:
	// testdata/smile.pgm: images of 5x7, where 28x28 is needed
	// 1 5x7 [testdata/smile.pgm] <nil>
}

// Means between 0 and 1 become grays; several images become a grid.
func ExampleGray_Encode() {
	means := []float32{0, 0.5, 1, 0.25}
	var file bytes.Buffer
	if err := mnist.NewGray(mnist.Size{Height: 1, Width: 2}, means).Encode(&file, mnist.PGM); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", file.String())
	// Output: "P5\n6 1\n255\n\x00\x80``\xff@"
}
