// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/arrowgo"
	"github.com/fletching/fletching/bindings/go/internal/corpus"
)

// expect compares an error with the verdict of a case.
func expect(t *testing.T, c corpus.Case, err error) {
	t.Helper()
	if accepted := c.Accepted && !c.IsException("arrow-go"); accepted != (err == nil) {
		t.Errorf("accepted: expected %v, got %v", accepted, err)
	}
}

func corpusSchema(t *testing.T, c corpus.Case) *fletching.Schema {
	t.Helper()
	schema, err := fletching.ImportSchema(unsafe.Pointer(c.ExportSchema(t)))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestCorpusSchemasMatchVerdicts(t *testing.T) {
	corpus.Each(t, corpus.Schema, func(t *testing.T, c corpus.Case) {
		schema := corpusSchema(t, c)
		defer schema.Close()
		_, err := arrowgo.ImportField(schema)
		expect(t, c, err)
	})
}

func TestCorpusArraysMatchVerdicts(t *testing.T) {
	corpus.Each(t, corpus.Array, func(t *testing.T, c corpus.Case) {
		if c.NeedsData() {
			return // arrow-go reads such buffers without a check and may crash
		}
		schema := corpusSchema(t, c)
		defer schema.Close()
		array, err := fletching.ImportDeviceArray(unsafe.Pointer(c.ExportArray(t)))
		if err != nil {
			t.Fatal(err)
		}
		defer array.Close()
		field, err := arrowgo.ImportField(schema)
		if err == nil {
			var imported interface{ Release() }
			if imported, err = arrowgo.ImportArray(context.Background(), array, field.Type, arrowgo.Options{}); err == nil {
				imported.Release()
			}
		}
		expect(t, c, err)
	})
}
