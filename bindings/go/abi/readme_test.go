// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme holds the example of README.md against the one that is run here.
func TestReadme(t *testing.T) {
	shown := between(t, "../README.md", "```go\n", "```")
	run := between(t, "example_test.go", "func Example() {\n", "\t// Output:")
	if unindented := strings.ReplaceAll("\n"+run, "\n\t", "\n")[1:]; shown != unindented {
		t.Errorf("README.md shows\n%s\nand the test runs\n%s", shown, unindented)
	}
}

func between(t *testing.T, path, begin, end string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), begin)
	inside, _, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	return inside
}
