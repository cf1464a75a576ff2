package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// cell is one result, as tests/roundtrip/README.md has it.
type cell struct {
	Language  string `json:"language"`
	Backend   string `json:"backend"`
	Case      string `json:"case"`
	Direction string `json:"direction"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Asserted  int    `json:"asserted"`
	Releases  int64  `json:"releases"`
	OK        bool   `json:"ok"`
}

// report appends the cell to the file that FLETCHING_CELLS names, if it names one.
func (c cell) report() error {
	path := os.Getenv("FLETCHING_CELLS")
	if path == "" {
		return nil
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("FLETCHING_CELLS: %w", err)
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}
