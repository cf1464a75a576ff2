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
		{"import array: array", onlyError(arrowgo.ImportArray(ctx, nil, arrow.Null, options))},
		{"import array: type", onlyError(arrowgo.ImportArray(ctx, table(), nil, options))},
		{"import array: array", onlyError(arrowgo.ImportRecordBatch(ctx, nil, fields, options))},
		{"import record batch: schema", onlyError(arrowgo.ImportRecordBatch(ctx, table(), nil, options))},
		{"import schema: schema", onlyError(arrowgo.ImportBatch(ctx, nil, nil, options))},
		{"import schema: schema", onlyError(arrowgo.ImportBatch(ctx, table(), nil, options))},
		{"import schema: schema", onlyError(arrowgo.ImportSchema(nil))},
		{"import schema: schema", onlyError(arrowgo.ImportField(nil))},
		{"import reader: stream", onlyError(arrowgo.ImportReader(ctx, nil, options))},
		{"import reader: stream", onlyError(arrowgo.ImportHostReader(ctx, nil, options))},
		{"export array: array", onlyError(arrowgo.ExportArray(nil))},
		{"export record batch: batch", onlyError(arrowgo.ExportRecordBatch(nil))},
		{"export schema: schema", onlyError(arrowgo.ExportSchema(nil))},
		{"export schema: field: type", onlyError(arrowgo.ExportField(arrow.Field{Name: "a"}))},
		{"export reader: reader", onlyError(arrowgo.ExportReader(nil))},
	} {
		if text := each.what + " is nil: expected one"; !errors.Is(each.err, syscall.EINVAL) || each.err.Error() != text {
			t.Errorf("expected EINVAL with %q, got %v", text, each.err)
		}
	}
	if *releases != 3 {
		t.Errorf("expected 3 releases, got %d", *releases)
	}
}
