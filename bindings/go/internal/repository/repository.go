// SPDX-License-Identifier: Apache-2.0

// Package repository finds the Fletching repository, which is not part of the published module.
package repository

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the repository folder that contains the current folder; "" outside of the repository.
func Root() string {
	folder, _ := os.Getwd()
	for {
		if _, err := os.Stat(filepath.Join(folder, "spec", "project.yaml")); err == nil {
			return folder
		}
		above := filepath.Dir(folder)
		if above == folder {
			return ""
		}
		folder = above
	}
}

// Libraries returns the folder of the test libraries: FLETCHING_LIB_DIR, or build/lib of the repository.
func Libraries() string {
	if folder := os.Getenv("FLETCHING_LIB_DIR"); folder != "" {
		return folder
	}
	return filepath.Join(Root(), "build", "lib")
}

// Need skips a test outside of the repository, unless FLETCHING_LIB_DIR is set.
func Need(tb testing.TB) {
	tb.Helper()
	if Root() == "" && os.Getenv("FLETCHING_LIB_DIR") == "" {
		tb.Skip("the test needs the repository of Fletching, or its libraries in FLETCHING_LIB_DIR")
	}
}
