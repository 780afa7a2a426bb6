// Command release builds what people download: an archive of the program for each platform, and SHA256SUMS.
//
//	go run ./scripts/release --out dist
//
// Programs are static (no cgo) and hold no path of the machine that made them. Whoever builds the same revision with
// the same version of Go gets the same bytes, in whichever folder and on whichever machine.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// platforms are those that are released.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	out := flag.String("out", "dist", "folder of the archives")
	on := flag.String("platforms", platforms, "which, as GOOS/GOARCH with commas")
	flag.Parse()
	err := release{root: ".", out: *out, platforms: strings.Split(*on, ","), log: os.Stderr}.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is a task for this command.
type release struct {
	root      string // of the repository
	out       string
	platforms []string
	log       io.Writer
	traces    bool // leave paths of this machine in programs, which a test must notice
}

// program is what a program says of itself by "version --json".
type program struct {
	Version  string
	Revision string
	Date     string
	Modified bool
}

// run builds everything.
func (r release) run() error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	// The program for this machine says which version it is, and prints its manual page and completions.
	here := filepath.Join(work, "here.exe")
	if err := r.build(here, runtime.GOOS+"/"+runtime.GOARCH); err != nil {
		return err
	}
	told, err := exec.Command(here, "version", "--json").Output()
	if err != nil {
		return fmt.Errorf("version of the program: %w", err)
	}
	var p program
	if err := json.Unmarshal(told, &p); err != nil {
		return fmt.Errorf("version of the program is %s: %w", told, err)
	}
	if p.Modified || p.Revision == "" {
		fmt.Fprintln(r.log, "warning: this is not a revision of the repository without changes")
	}
	shared, err := r.shared(here)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range r.platforms {
		name, data, err := r.archive(work, platform, p, shared)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, name), data, 0o666); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		fmt.Fprintf(r.log, "%s: %.1f MB\n", name, float64(len(data))/1e6)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o666)
}

// command is one of go, without what the environment could change in programs.
func (r release) command(platform string, args ...string) *exec.Cmd {
	system, machine, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = r.root, r.log
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	return cmd
}

// build compiles the program for a platform.
func (r release) build(to, platform string) error {
	args := []string{"build", "-buildvcs=auto", "-ldflags=-s -w", "-o", to}
	if !r.traces {
		args = append(args, "-trimpath")
	} else {
		args = append(args, "-ldflags=")
	}
	if err := r.command(platform, append(args, "./cmd/gfnem")...).Run(); err != nil {
		return fmt.Errorf("build for %s: %w", platform, err)
	}
	return nil
}

// shared are the files that all archives have: documents of the repository, and what the program prints.
func (r release) shared(program string) (files []file, err error) {
	for _, path := range []string{"README.md", "CHANGELOG.md", "LICENSE", "mnist/LICENSE-DATA.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, path))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: filepath.Base(path), data: data})
	}
	for name, args := range map[string][]string{
		"gfnem.1": {"man"}, "completions/gfnem.bash": {"completion", "bash"},
		"completions/_gfnem": {"completion", "zsh"}, "completions/gfnem.fish": {"completion", "fish"},
	} {
		data, err := exec.Command(program, args...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s of the program: %w", args[0], err)
		}
		files = append(files, file{name: name, data: data})
	}
	return files, nil
}

// archive builds the program for a platform and packs it; its name comes first.
func (r release) archive(work, platform string, p program, shared []file) (string, []byte, error) {
	system, machine, ok := strings.Cut(platform, "/")
	if !ok {
		return "", nil, fmt.Errorf("not GOOS/GOARCH")
	}
	exe, pack, suffix := "gfnem", packTar, ".tar.gz"
	if system == "windows" {
		exe, pack, suffix = "gfnem.exe", packZip, ".zip"
	}
	path := filepath.Join(work, system+"-"+machine)
	if err := r.build(path, platform); err != nil {
		return "", nil, err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	licences, err := r.licences(platform)
	if err != nil {
		return "", nil, err
	}
	files := append([]file{{name: exe, data: binary, runs: true}, {name: "THIRD-PARTY.txt", data: licences}}, shared...)
	name := fmt.Sprintf("gfnem-%s-%s-%s", p.Version, system, machine)
	at, err := time.Parse(time.RFC3339, p.Date)
	if err != nil { // not a revision of a repository
		at = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	data, err := pack(name, at, files)
	return name + suffix, data, err
}
