package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func exitCode(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strconv.Itoa(exit.ExitCode())
	}
	return err.Error()
}

func countLines(text string) string { return strconv.Itoa(strings.Count(text, "\n")) }

// waitFor waits until a file has content.
func waitFor(ts *testscript.TestScript, path string) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return
		}
	}
	ts.Fatalf("%s did not get any content", path)
}

// damage flips a byte in the middle of the newest checkpoint's arrays.
func damage(states string) error {
	found, err := filepath.Glob(filepath.Join(states, "*", "arrays.safetensors"))
	if err != nil || len(found) == 0 {
		return errors.Join(err, errors.New("no checkpoint in "+states))
	}
	newest := found[len(found)-1]
	data, err := os.ReadFile(newest)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return os.WriteFile(newest, data, 0o666)
}

// withKeys adds the keys of a configuration file to a command, each by --set, before its other arguments.
func withKeys(file string, command []string) ([]string, error) {
	text, err := os.ReadFile(file)
	args, table := slices.Clone(command[:1]), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			table = strings.TrimSuffix(name, "]") + "."
		} else if key, value, ok := strings.Cut(line, " = "); ok {
			args = append(args, "--set", table+key+"="+value)
		}
	}
	return append(args, command[1:]...), err
}
