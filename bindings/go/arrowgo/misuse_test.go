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

func TestNilArgumentsReturnEINVAL(t *testing.T) {
	ctx, options := context.Background(), arrowgo.Options{}
	releases := new(counter)
	table := func() *fletching.DeviceArray {
		return must(must((&fletching.ArrayBuilder{Buffers: []uintptr{0}}).Build(releases)).ToDevice())
	}
	fields := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.Null}}, nil)
	for _, each := range []struct {
		what string
		err  error
	}{
		{"ImportArray: array", onlyError(arrowgo.ImportArray(ctx, nil, arrow.Null, options))},
		{"ImportArray: type", onlyError(arrowgo.ImportArray(ctx, table(), nil, options))},
		{"ImportRecordBatch: array", onlyError(arrowgo.ImportRecordBatch(ctx, nil, fields, options))},
		{"ImportRecordBatch: schema", onlyError(arrowgo.ImportRecordBatch(ctx, table(), nil, options))},
		{"ImportBatch: schema", onlyError(arrowgo.ImportBatch(ctx, nil, nil, options))},
		{"ImportBatch: schema", onlyError(arrowgo.ImportBatch(ctx, table(), nil, options))},
		{"ImportSchema: schema", onlyError(arrowgo.ImportSchema(nil))},
		{"ImportField: schema", onlyError(arrowgo.ImportField(nil))},
		{"ImportReader: stream", onlyError(arrowgo.ImportReader(ctx, nil, options))},
		{"ImportHostReader: stream", onlyError(arrowgo.ImportHostReader(ctx, nil, options))},
		{"ExportArray: array", onlyError(arrowgo.ExportArray(nil))},
		{"ExportRecordBatch: batch", onlyError(arrowgo.ExportRecordBatch(nil))},
		{"ExportSchema: schema", onlyError(arrowgo.ExportSchema(nil))},
		{"ExportField: field: type", onlyError(arrowgo.ExportField(arrow.Field{Name: "a"}))},
		{"ExportReader: reader", onlyError(arrowgo.ExportReader(nil))},
	} {
		if text := each.what + " is nil: expected one"; !errors.Is(each.err, syscall.EINVAL) || each.err.Error() != text {
			t.Errorf("expected EINVAL with %q, got %v", text, each.err)
		}
	}
	if *releases != 3 {
		t.Errorf("expected 3 releases, got %d", *releases)
	}
}
