// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

func onlyError[T any](_ T, err error) error { return err }

func TestNilArgumentsAreInvalid(t *testing.T) {
	ctx, options := context.Background(), arrowgo.Options{}
	releases := new(counter)
	table := func() *fletching.DeviceArray {
		return must(must((&fletching.ArrayBuilder{Buffers: []uintptr{0}}).Build(releases)).ToDevice())
	}
	fields := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.Null}}, nil)
	for name, err := range map[string]error{
		"array":              onlyError(arrowgo.ImportArray(ctx, nil, arrow.Null, options)),
		"type":               onlyError(arrowgo.ImportArray(ctx, table(), nil, options)),
		"batch":              onlyError(arrowgo.ImportRecordBatch(ctx, nil, fields, options)),
		"schema of a batch":  onlyError(arrowgo.ImportRecordBatch(ctx, table(), nil, options)),
		"array and schema":   onlyError(arrowgo.ImportBatch(ctx, nil, nil, options)),
		"schema of an array": onlyError(arrowgo.ImportBatch(ctx, table(), nil, options)),
		"schema":             onlyError(arrowgo.ImportSchema(nil)),
		"field":              onlyError(arrowgo.ImportField(nil)),
		"stream":             onlyError(arrowgo.ImportReader(ctx, nil, options)),
		"host stream":        onlyError(arrowgo.ImportHostReader(ctx, nil, options)),
		"export array":       onlyError(arrowgo.ExportArray(nil)),
		"export batch":       onlyError(arrowgo.ExportRecordBatch(nil)),
		"export schema":      onlyError(arrowgo.ExportSchema(nil)),
		"export type":        onlyError(arrowgo.ExportField(arrow.Field{Name: "a"})),
		"export reader":      onlyError(arrowgo.ExportReader(nil)),
	} {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: expected EINVAL, got %v", name, err)
		}
	}
	if *releases != 3 {
		t.Errorf("expected 3 releases, got %d", *releases)
	}
}
