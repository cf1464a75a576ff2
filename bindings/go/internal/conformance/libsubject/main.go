// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// The library libfletching_subject_go exports the subjects of the Go module to fletching_conformance. Build it with
// -buildmode=c-shared. Like every Go library it is never unloaded.
package main

import _ "github.com/fletching/fletching/bindings/go/internal/conformance"

func main() {}
