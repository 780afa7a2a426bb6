package faults_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/faults"
)

// childDir names the folder in which the test binary plays a small program.
const childDir = "GFNEM_FAULTS_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child is what is followed: it makes a file in several writes, renames and removes it, on several threads beside
// others that are busy, and prints every error.
func child(dir string) {
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for range 20 {
				exec.LookPath("nothing") // calls on other files
			}
		})
	}
	report := func(err error) {
		if err != nil {
			fmt.Println(err)
		}
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	report(os.Mkdir(filepath.Join(dir, "folder"), 0o777))
	f, err := os.Create(a)
	report(err)
	for range 3 {
		_, err := f.Write([]byte("12345678"))
		report(err)
	}
	report(f.Sync())
	report(f.Close())
	report(os.Rename(a, b))
	_, err = os.ReadFile(b)
	report(err)
	_, err = os.Stat(b)
	report(err)
	report(os.Remove(b))
	busy.Wait()
}

// follow runs the child in a folder of its own and returns that and what it printed.
func follow(t *testing.T, o faults.Options) (faults.Result, string, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	o.Below = []string{dir}
	res, err := faults.Run(cmd, o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return res, dir, strings.ReplaceAll(out.String(), dir+"/", "")
}

// lines lists calls without the folder; the two tries of os.Remove, for example, are two calls.
func lines(dir string, calls []faults.Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, strings.ReplaceAll(c.String(), dir+"/", ""))
	}
	return out
}

func TestCallsAreFollowed(t *testing.T) {
	t.Parallel()
	res, dir, out := follow(t, faults.Options{})
	want := []string{
		"mkdirat of folder", "openat of a", "write of a", "write of a", "write of a", "fsync of a", "close of a",
		"newfstatat of b", "renameat of a to b", "openat of b", "fstat of b", "read of b", "read of b", "close of b",
		"newfstatat of b", "unlinkat of b",
	}
	if got := lines(dir, res.Calls); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if res.Exit != 0 || res.Signal != 0 || res.Late || res.Failed != 0 || out != "" {
		t.Errorf("%+v, output %q", res, out)
	}
}

// TestFaultsHappen lets one call after another fail, in every way. The program says so, and nothing of the call was
// done.
func TestFaultsHappen(t *testing.T) {
	t.Parallel()
	const (
		mkdir, open, second, sync, closing, rename, lookup = 1, 2, 4, 6, 7, 9, 16
	)
	eio := faults.Kind{Errno: syscall.EIO}
	tests := []struct {
		fault    faults.Fault
		out      string
		contents map[string]string // of the folder, in the end
	}{
		{faults.Fault{At: mkdir, Kind: faults.Kind{Errno: syscall.EACCES}}, "mkdir folder: permission denied\n", nil},
		{faults.Fault{At: second, Kind: eio}, "write a: input/output error\n", map[string]string{"folder": ""}},
		{faults.Fault{At: sync, Kind: eio}, "sync a: input/output error\n", map[string]string{"folder": ""}},
		{faults.Fault{At: closing, Kind: eio}, "close a: input/output error\n", map[string]string{"folder": ""}},
		{faults.Fault{At: rename, Kind: faults.Kind{Errno: syscall.ENOSPC}}, "rename a b: no space left on device\n" +
			"open b: no such file or directory\nstat b: no such file or directory\nremove b: no such file or directory\n",
			map[string]string{"folder": "", "a": "123456781234567812345678"}},
		{faults.Fault{At: second, Kind: faults.Kind{Errno: syscall.ENOSPC, Extent: faults.Full}},
			"write a: no space left on device\nwrite a: no space left on device\n", map[string]string{"folder": ""}},
		{faults.Fault{At: sync, Kind: faults.Kind{Errno: syscall.EIO, Extent: faults.SamePath}},
			"sync a: input/output error\nclose a: input/output error\nrename a b: input/output error\n" +
				"open b: no such file or directory\nstat b: no such file or directory\nremove b: no such file or directory\n",
			map[string]string{"folder": "", "a": "123456781234567812345678"}},
		{faults.Fault{At: second}, "", map[string]string{"folder": "", "a": "12345678"}},
		{faults.Fault{At: mkdir}, "", nil},
		{faults.Fault{At: lookup}, "", map[string]string{"folder": "", "b": "123456781234567812345678"}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.fault), func(t *testing.T) {
			t.Parallel()
			res, dir, out := follow(t, faults.Options{Fault: test.fault})
			if out != test.out {
				t.Errorf("output %q, want %q", out, test.out)
			}
			if killed := res.Signal == syscall.SIGKILL && res.Exit == -1; killed != (test.fault.Errno == 0) {
				t.Errorf("ended with %d, %v", res.Exit, res.Signal)
			}
			if res.Failed == 0 {
				t.Error("nothing failed")
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != len(test.contents) {
				t.Errorf("left: %v", entries)
			}
			for _, e := range entries {
				data, _ := os.ReadFile(filepath.Join(dir, e.Name())) // nothing of a folder
				if want, ok := test.contents[e.Name()]; !ok || string(data) != want {
					t.Errorf("%s holds %q", e.Name(), data)
				}
			}
		})
	}
}

// TestFullDiskWritesHalf looks between the calls of a program whose disk gets full.
func TestFullDiskWritesHalf(t *testing.T) {
	t.Parallel()
	var sizes []int64
	follow(t, faults.Options{
		Fault: faults.Fault{At: 4, Kind: faults.Kind{Errno: syscall.ENOSPC, Extent: faults.Full}},
		Before: func(c faults.Call) {
			if info, err := os.Stat(c.Path); err == nil && c.Writes() {
				sizes = append(sizes, info.Size())
			}
		},
	})
	// The second write wrote 4 of 8 bytes, was tried again for the others, and the third wrote nothing.
	if want := []int64{0, 8, 12, 12}; !slices.Equal(sizes, want) {
		t.Errorf("sizes %v, want %v", sizes, want)
	}
}

func TestLateProgramIsKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	begin := time.Now()
	res, err := faults.Run(cmd, faults.Options{Limit: 100 * time.Millisecond})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || !res.Late || res.Signal != syscall.SIGKILL || time.Since(begin) > 30*time.Second {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestOtherChildrenAreLeftAlone starts another program on the same thread, which ends while the first one is followed.
func TestOtherChildrenAreLeftAlone(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other := exec.Command("true")
	if err := other.Start(); err != nil {
		t.Skip(err)
	}
	follow(t, faults.Options{})
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}
