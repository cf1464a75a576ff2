// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"fmt"

	"github.com/fletching/fletching/bindings/go"
)

// It needs libfletching.
func ExampleArray_Check() {
	check := func(array *fletching.Array, schema *fletching.Schema) error {
		findings, err := array.Check(schema, fletching.ValidateShape)
		for _, finding := range findings {
			fmt.Println(finding)
		}
		return err
	}
	_ = check
}

// A stream of a producer whose calls, schemas and batches are validated. It needs libfletching.
func ExampleDeviceArrayStream_Validate() {
	read := func(stream *fletching.DeviceArrayStream) error {
		findings, err := stream.Validate(fletching.ValidateShape)
		if err != nil {
			return err
		}
		for batch, err := range stream.All(background) {
			if err != nil {
				return err
			}
			batch.Close()
		}
		if _, err := fletching.ReportLive(); err != nil { // structs that are not closed
			return err
		}
		for _, finding := range findings.Take() {
			fmt.Println(finding)
		}
		return nil
	}
	_ = read
}
