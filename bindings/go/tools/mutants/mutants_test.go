// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const tiny = "testdata/tiny"

// The tests of the tiny package detect all mutants except these.
var equivalents = map[string]bool{
	"replace < with <= of value < least in clamp": true,
}

func TestMutantsOfTinyPackage(t *testing.T) {
	out := t.TempDir()
	if err := run(out, []string{tiny}); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(out, "tiny.test")
	overlay := "-overlay=" + filepath.Join(out, "overlay.json")
	if text, err := exec.Command("go", "test", "-C", tiny, "-c", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	seen := filepath.Join(out, "seen")
	if err := os.WriteFile(seen, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := try(program, "FLETCHING_MUTANTS_SEEN="+seen); err != nil {
		t.Fatalf("without a mutant: %v: %s", err, text)
	}
	reached, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for number, mutant := range read(t, filepath.Join(out, "mutants.json")) {
		kind, _, _ := strings.Cut(mutant.Change, " ")
		kinds[kind]++
		if mutant.File != tiny+"/tiny.go" || mutant.Line == 0 || mutant.Nth == 0 || reached[number] != 1 {
			t.Errorf("%+v: reached: %d", mutant, reached[number])
		}
		_, err := try(program, "FLETCHING_MUTANT="+strconv.Itoa(number))
		if expected := !equivalents[mutant.Change]; (err != nil) != expected {
			t.Errorf("%s:%d: %s: noticed: expected %t", mutant.File, mutant.Line, mutant.Change, expected)
		}
	}
	for _, kind := range []string{"replace", "remove", "return", "invert", "swap"} {
		if kinds[kind] == 0 {
			t.Errorf("no mutant of the kind %q", kind)
		}
	}
}

func TestRunMissingPackageReturnsError(t *testing.T) {
	if err := run(t.TempDir(), []string{"testdata/missing"}); err == nil || !strings.HasPrefix(err.Error(), "testdata/missing: ") {
		t.Error(err)
	}
}

// The mutation run also rejects an entry without a mutant, but hours later.
func TestTableEntriesNameExistingMutants(t *testing.T) {
	out := t.TempDir()
	t.Chdir("../..")
	if err := run(out, []string{".", "abi/callbacks", "arrowgo"}); err != nil {
		t.Fatal(err)
	}
	known := map[Mutant]bool{}
	for _, mutant := range read(t, filepath.Join(out, "mutants.json")) {
		mutant.Line = 0
		known[mutant] = true
	}
	text, err := os.ReadFile("testdata/mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`(?m)^  - file: (.+)\n    change: (.+)\n(?:    nth: (\d+)\n)?`).FindAllStringSubmatch(string(text), -1)
	if count := strings.Count(string(text), "- file: "); len(entries) != count || count == 0 {
		t.Errorf("entries: expected %d, got %d", count, len(entries))
	}
	for _, entry := range entries {
		nth, err := strconv.Atoi(cmp.Or(entry[3], "1"))
		if mutant := (Mutant{File: entry[1], Change: entry[2], Nth: nth}); err != nil || !known[mutant] {
			t.Errorf("no such mutant: %+v", mutant)
		}
	}
}

func read(t *testing.T, path string) (mutants []Mutant) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &mutants); err != nil {
		t.Fatal(err)
	}
	return mutants
}

func try(program, setting string) ([]byte, error) {
	command := exec.Command(program, "-test.timeout=10s")
	command.Env = append(os.Environ(), setting)
	return command.CombinedOutput()
}
