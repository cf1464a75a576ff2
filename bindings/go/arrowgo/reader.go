// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/fletching/fletching/bindings/go"
)

// ImportReader returns a reader that owns the stream: the last Release closes it. Each batch is
// imported as by ImportRecordBatch, with the context. Only one goroutine at a time may call Next.
//
// Errors: the errors of the stream and of ImportSchema, after which the stream is closed. Err returns the errors of
// batches.
func ImportReader(ctx context.Context, stream *fletching.DeviceArrayStream, options Options) (array.RecordReader, error) {
	if stream == nil {
		return nil, missing("ImportReader", "stream")
	}
	return newReader(ctx, stream, stream.Next, options)
}

// ImportHostReader is ImportReader for batches in CPU memory.
func ImportHostReader(ctx context.Context, stream *fletching.ArrayStream, options Options) (array.RecordReader, error) {
	if stream == nil {
		return nil, missing("ImportHostReader", "stream")
	}
	next := func() (*fletching.DeviceArray, error) {
		batch, err := stream.Next()
		if err != nil {
			return nil, err
		}
		return batch.ToDevice()
	}
	return newReader(ctx, stream, next, options)
}

type stream interface {
	Schema() (*fletching.Schema, error)
	Close()
}

func newReader(ctx context.Context, source stream, next func() (*fletching.DeviceArray, error), options Options) (array.RecordReader, error) {
	raw, err := source.Schema()
	if err != nil {
		source.Close()
		return nil, err
	}
	schema, err := ImportSchema(raw)
	if err != nil {
		source.Close()
		return nil, err
	}
	r := &reader{ctx: ctx, schema: schema, next: next, close: source.Close, options: options}
	r.uses.Store(1)
	return r, nil
}

// reader implements array.RecordReader.
type reader struct {
	uses    atomic.Int64
	ctx     context.Context
	schema  *arrow.Schema
	next    func() (*fletching.DeviceArray, error)
	close   func()
	options Options
	current arrow.RecordBatch
	err     error
}

func (r *reader) Retain() { r.uses.Add(1) }

func (r *reader) Release() {
	if r.uses.Add(-1) == 0 {
		r.drop()
		r.close()
	}
}

func (r *reader) drop() {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
}

func (r *reader) Next() bool {
	r.drop()
	if r.err != nil {
		return false
	}
	batch, err := r.next()
	if err == nil {
		r.current, err = ImportRecordBatch(r.ctx, batch, r.schema, r.options)
	}
	r.err = err
	return err == nil
}

func (r *reader) Schema() *arrow.Schema          { return r.schema }
func (r *reader) RecordBatch() arrow.RecordBatch { return r.current }
func (r *reader) Record() arrow.RecordBatch      { return r.current }

func (r *reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// ExportReader returns a stream of the batches. It retains the reader until the stream is released, and
// calls Next on the consumer's thread.
//
// Errors: as ExportSchema.
func ExportReader(source array.RecordReader) (*fletching.ArrayStream, error) {
	if source == nil {
		return nil, missing("ExportReader", "reader")
	}
	schema, err := ExportSchema(source.Schema())
	if err != nil {
		return nil, err
	}
	source.Retain()
	result, err := fletching.NewArrayStreamFrom(schema, &batches{source})
	if err != nil {
		schema.Close()
		source.Release()
	}
	return result, err
}

// batches implements fletching.Reader.
type batches struct{ source array.RecordReader }

func (b *batches) Next() (*fletching.Array, error) {
	if b.source.Next() {
		return ExportRecordBatch(b.source.RecordBatch())
	}
	if err := b.source.Err(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

func (b *batches) Close() { b.source.Release() }
