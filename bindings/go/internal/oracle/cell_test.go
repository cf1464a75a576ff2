// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package oracle

import (
	"encoding/json"
	"os"
	"testing"
)

// cell is one result, as tests/roundtrip/README.md has it.
type cell struct {
	Language  string `json:"language"`
	Backend   string `json:"backend"`
	Struct    string `json:"struct"`
	Direction string `json:"direction"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Asserted  int    `json:"asserted"`
	Releases  int    `json:"releases"`
	OK        bool   `json:"ok"`
}

// report appends the cell to the file that FLETCHING_CELLS names, if it names one.
func report(t *testing.T, c cell) {
	t.Helper()
	path := os.Getenv("FLETCHING_CELLS")
	if path == "" {
		return
	}
	line, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
