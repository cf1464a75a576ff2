// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package fletching_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// releases builds and runs the C program with thread sanitizer, which the go command does not support.
func releases(t *testing.T, definitions ...string) (output string, err error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "releases")
	arguments := append([]string{"-fsanitize=thread", "-DFLETCHING_PREFIX=test_", "-g", "-O1", "-pthread", "-Itestdata/tsan", "-I.", "-o", program}, definitions...)
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if text, err := exec.Command(compiler, append(arguments, "testdata/tsan/releases.c", "block.c")...).CombinedOutput(); err != nil {
		t.Skipf("no thread sanitizer with %s: %v\n%s", compiler, err, text)
	}
	text, err := exec.Command(program).CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skipf("%s compiles for another machine: %v", compiler, err)
	}
	return string(text), err
}

func TestBlockCountsAreAtomic(t *testing.T) {
	if output, err := releases(t); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// Negative control of the test above.
func TestNonAtomicBlockCountsAreReported(t *testing.T) {
	output, err := releases(t, "-D__atomic_fetch_sub(count, number, order)=((*(count) -= (number)) + (number))", "-D__atomic_load_n(count, order)=(*(count))")
	if err == nil || !strings.Contains(output, "data race") {
		t.Errorf("expected a data race, got %v\n%s", err, output)
	}
}
