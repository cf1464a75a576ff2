// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/targets"
)

// TestTargets type-checks the package for each target of the Go compiler, with the sizes and alignments
// of that target, and so detects assertions that do not hold there.
func TestTargets(t *testing.T) {
	list, err := exec.Command("go", "tool", "dist", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(list))
	for _, target := range known {
		goos, goarch, _ := strings.Cut(target, "/")
		_, err := targets.Check(sources(t, goos, goarch), goarch)
		switch {
		case goarch == "wasm" && (err == nil || !strings.Contains(err.Error(), "does not know the struct layouts")):
			t.Errorf("%s: %v, expected a refusal that says why", target, err)
		case goarch != "wasm" && err != nil:
			t.Errorf("%s: %v", target, err)
		}
	}
	if len(known) < 20 {
		t.Errorf("only %d targets: %s", len(known), known)
	}
}

// TestLayoutAssertionsDetectErrors narrows the first int64 field, and removes the padding, and expects assertion
// errors that name the mistake.
func TestLayoutAssertionsDetectErrors(t *testing.T) {
	field := regexp.MustCompile(`(\w+) int64\n`)
	padding := regexp.MustCompile(`\t_ \[\d+\]byte.*\n`)
	for _, class := range []struct {
		goos, goarch, file string
		padded             bool // the target needs padding that Go would not add
	}{
		{"linux", "amd64", "structs_64bit.go", false},
		{"linux", "arm", "structs_32bit_align8.go", true},
		{"windows", "386", "structs_32bit_align8.go", true},
		{"linux", "386", "structs_32bit_align4.go", false},
	} {
		narrow := sources(t, class.goos, class.goarch)
		name := field.FindStringSubmatch(narrow[class.file])[1]
		narrow[class.file] = strings.Replace(narrow[class.file], name+" int64", name+" int32", 1)
		if _, err := targets.Check(narrow, class.goarch); err == nil || !strings.Contains(err.Error(), "{}."+name+")") {
			t.Errorf("%s with %s as an int32: %v", class.file, name, err)
		}
		bare := sources(t, class.goos, class.goarch)
		bare[class.file] = padding.ReplaceAllString(bare[class.file], "")
		if _, err := targets.Check(bare, class.goarch); class.padded != (err != nil) {
			t.Errorf("%s without padding: %v", class.file, err)
		}
	}
}

func sources(t *testing.T, goos, goarch string) map[string]string {
	t.Helper()
	found, err := targets.Sources(".", goos, goarch)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
