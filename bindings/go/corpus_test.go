// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/internal/corpus"
)

func TestCorpusSchemasAreMovedUnchanged(t *testing.T) {
	corpus.Each(t, corpus.Schema, func(t *testing.T, c corpus.Case) {
		raw := c.ExportSchema(t)
		schema, err := fletching.ImportSchema(unsafe.Pointer(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Export(unsafe.Pointer(raw)); err != nil {
			t.Fatal(err)
		}
		c.CompareSchema(t, unsafe.Pointer(raw))
		closeRaw(t, raw, fletching.ImportSchema)
	})
}

func TestCorpusArraysAreMovedUnchanged(t *testing.T) {
	corpus.Each(t, corpus.Array, func(t *testing.T, c corpus.Case) {
		raw := c.ExportArray(t)
		array, err := fletching.ImportDeviceArray(unsafe.Pointer(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := array.Export(unsafe.Pointer(raw)); err != nil {
			t.Fatal(err)
		}
		c.CompareArray(t, unsafe.Pointer(raw))
		closeRaw(t, raw, fletching.ImportDeviceArray)
	})
}

// closeRaw releases a struct.
func closeRaw[R any, O interface{ Close() }](t *testing.T, raw *R, imported func(unsafe.Pointer) (O, error)) {
	t.Helper()
	owner, err := imported(unsafe.Pointer(raw))
	if err != nil {
		t.Fatal(err)
	}
	owner.Close()
}

func TestCorpusStreamsGiveTheirBatchesAndTheirError(t *testing.T) {
	corpus.Each(t, corpus.Stream, func(t *testing.T, c corpus.Case) {
		stream, err := fletching.ImportArrayStream(unsafe.Pointer(c.ExportStream(t)))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		batches, code := 0, 0
		for batch, err := range stream.All(context.Background()) {
			var ours *fletching.Error
			if errors.As(err, &ours) {
				code = int(ours.Code)
				break
			}
			batches++
			batch.Close()
		}
		if batches != c.Batches || code != c.Code {
			t.Errorf("expected %d batches and code %d, got %d and %d", c.Batches, c.Code, batches, code)
		}
	})
}
