package treebank

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// dataFile returns the path of a file of treebanks: below $GFNEM_DATA, or in the project's folder data. It skips the
// test where there is none.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("GFNEM_DATA")
	if folder == "" {
		folder = filepath.Join("..", "data")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here; set GFNEM_DATA to the folder of treebanks", path)
	}
	return path
}

// TestCountsOfTreebanks compares with counts made by an independent program.
func TestCountsOfTreebanks(t *testing.T) {
	for _, want := range []struct {
		file                                                    string
		trees, leaves, sentences, words, upTo10, upTo20, upTo40 int
		right                                                   float64 // sentence F1 of right-branching trees; 0 if not known
	}{
		{"craft/dev.trees.gz", 2780, 70620, 2717, 55385, 633, 1482, 2557, 0},
		{"craft/test.trees.gz", 8361, 223163, 8090, 176941, 1544, 4024, 7450, 30.5},
		{"craft/train.trees.gz", 18000, 487851, 17439, 388152, 3257, 8535, 15933, 0},
		{"genia/dev.trees.gz", 1361, 36181, 1361, 32436, 69, 613, 1264, 0},
		{"genia/future_use.trees.gz", 1494, 40229, 1494, 36006, 82, 590, 1419, 0},
		{"genia/test.trees.gz", 1360, 35641, 1359, 31879, 96, 600, 1288, 37.9},
		{"genia/train.trees.gz", 14326, 374438, 14310, 335610, 778, 6259, 13472, 0},
		{"gum/dev.trees.gz", 438, 10631, 426, 9204, 82, 228, 388, 0},
		{"gum/test.trees.gz", 491, 10972, 475, 9628, 107, 263, 446, 43.6},
		{"gum/train.trees.gz", 3707, 76760, 3582, 66280, 1034, 2225, 3405, 0},
		{"masc/all.trees.gz", 5570, 98207, 4863, 78749, 1999, 3461, 4626, 50.5},
		{"ptb_nltk/test.trees.gz", 444, 11188, 443, 9188, 54, 235, 433, 40.1},
		{"ptb_nltk/train.trees.gz", 2967, 76669, 2958, 62588, 432, 1540, 2833, 0},
		{"ptb_nltk/valid.trees.gz", 503, 12819, 500, 10580, 56, 248, 485, 0},
	} {
		t.Run(want.file, func(t *testing.T) {
			path := dataFile(t, want.file)
			d, err := Build(Inputs{Train: []string{path}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			st := d.Stats(&d.Splits[0])
			got := []int{st.Sentences, st.Words, st.UpTo10, st.UpTo20, st.UpTo40}
			for i, w := range []int{want.sentences, want.words, want.upTo10, want.upTo20, want.upTo40} {
				if got[i] != w {
					t.Errorf("sentences, words, ≤10, ≤20, ≤40 are %v; number %d should be %d", got, i, w)
				}
			}
			if trees, leaves := st.Sentences+d.Splits[0].Dropped.Short, d.Splits[0].Leaves; trees != want.trees || leaves != want.leaves {
				t.Errorf("%d trees with %d leaves, want %d with %d", trees, leaves, want.trees, want.leaves)
			}
			if want.right != 0 {
				checkRightBranching(t, d.Splits[0].Sentences, want.right)
			}
		})
	}
}

func checkRightBranching(t *testing.T, sentences []Sentence, want float64) {
	t.Helper()
	trees := make([][]Span, len(sentences))
	for i, s := range sentences {
		trees[i] = RightBranching(len(s.Words))
	}
	score, err := F1(sentences, trees, Standard)
	if err != nil {
		t.Fatal(err)
	}
	if score.Sentence < want-0.05 || score.Sentence >= want+0.05 { // the reference has one decimal
		t.Errorf("sentence F1 of right-branching trees is %.3f, want %.1f", score.Sentence, want)
	}
}

// TestReadFile reads a file tree by tree.
func TestReadFile(t *testing.T) {
	file, err := os.Open(dataFile(t, "gum/test.trees.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := NewReader(file, file.Name())
	if err != nil {
		t.Fatal(err)
	}
	trees, leaves := 0, 0
	for {
		tree, err := f.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		trees++
		leaves += tree.Leaves()
		if f.Line() != trees {
			t.Fatalf("tree %d begins in line %d", trees, f.Line())
		}
	}
	if trees != 491 || leaves != 10972 {
		t.Errorf("%d trees with %d leaves", trees, leaves)
	}
}

// BenchmarkRead reads and prepares a large treebank.
func BenchmarkRead(b *testing.B) {
	path := dataFile(b, "craft/train.trees.gz")
	for b.Loop() {
		if _, err := Build(Inputs{Train: []string{path}}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
