// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"fmt"
	"io"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
)

// printFindings prints the rules that an array breaks.
func printFindings(out io.Writer, array *fletching.Array, schema *fletching.Schema) error {
	findings, err := array.Check(schema, fletching.ValidateShape)
	for _, finding := range findings {
		fmt.Fprintln(out, finding)
	}
	return err
}

// Requires libfletching.
func ExampleArray_Check() {
	_ = printFindings
}

// readValidated reads a stream and validates the producer's calls, schemas and batches.
func readValidated(stream *fletching.DeviceArrayStream) ([]fletching.Finding, error) {
	findings, err := stream.Validate(fletching.ValidateShape, fletching.StressPoison, fletching.StressMove)
	if err != nil {
		return nil, err
	}
	must(stream.Schema()).Close() // the batches are compared with it
	for batch, err := range stream.All(background) {
		if err != nil {
			return nil, err
		}
		batch.Close()
	}
	_, err = fletching.ReportLive() // unclosed structs
	return findings.Take(), err
}

// Requires libfletching.
func ExampleDeviceArrayStream_Validate() {
	_ = readValidated
}

// sendValidated passes a producer a handler that validates its calls.
func sendValidated(stream *fletching.AsyncStream, produce func(handler unsafe.Pointer)) (fletching.Findings, error) {
	handler, findings, err := fletching.ValidateHandler(stream.Handler(), fletching.ValidateShape)
	if err == nil {
		produce(handler)
	}
	return findings, err
}

// Requires libfletching.
func ExampleValidateHandler() {
	_ = sendValidated
}
