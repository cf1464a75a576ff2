// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package oracle

import (
	"encoding/json"
	"os"
	"testing"
)

// cell is one result in the format of tests/roundtrip/README.md.
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

// report appends the cell to the file in FLETCHING_CELLS, if it is set.
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
