package cells_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/roundtrip/cells"
)

func TestAFailedComparisonIsAnErrorAndCounts(t *testing.T) {
	var c cells.Checks
	for expected, err := range map[string]error{
		"size: expected 2, got 1": c.Equal("size", 1, 2),
		"not so":                  c.Require(false, "not %s", "so"),
		"verify: no":              c.Succeeded("verify", errors.New("no")),
		"dump: compared nothing":  c.Compared("dump", 0, nil),
		"dump: line 1":            c.Compared("dump", 3, errors.New("line 1")),
	} {
		if err == nil || err.Error() != expected {
			t.Errorf("expected %s, got %v", expected, err)
		}
	}
	if err := errors.Join(c.Equal("size", 2, 2), c.Compared("dump", 10, nil)); err != nil || c.Asserted != 5+1+11 {
		t.Error(err, c.Asserted)
	}
}

func TestAPanicIsAnError(t *testing.T) {
	if err := cells.Protected(func() error { panic("ouch") }); err == nil || err.Error() != "panic: ouch" {
		t.Error(err)
	}
}

func TestCells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells")
	t.Setenv("FLETCHING_CELLS", path)
	cell := cells.Cell{Backend: "cpu", Case: "int32", Direction: "array", Status: "real", Asserted: 2, Releases: 1}
	if !cell.Report(nil) || cell.Report(errors.New("a\nb")) {
		t.Error("ok is not whether there was an error")
	}
	if cell.Asserted = 0; cell.Report(nil) {
		t.Error("a cell without a comparison is ok")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	expected := `{"language":"go","backend":"cpu","case":"int32","direction":"array","status":"real","reason":"","asserted":2,"releases":1,"ok":true}`
	if len(lines) != 4 || lines[0] != expected || !strings.Contains(lines[1], `"reason":"a; b"`) || !strings.Contains(lines[2], `"ok":false`) {
		t.Errorf("%q", lines)
	}
	t.Setenv("FLETCHING_CELLS", filepath.Join(path, "no"))
	if cell.Asserted = 2; cell.Report(nil) {
		t.Error("a cell that was not written is ok")
	}
}
