// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

// --- Data -----------------------------------------------------------------------------------------

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func intSchema() *Schema { return must((&SchemaBuilder{Format: "i"}).Build()) }

// rowsOf returns a batch with this number of rows.
func rowsOf(rows int) *DeviceArray { return must(must(FromValues(make([]int32, rows))).ToDevice()) }

// liveBatches counts unreleased batches.
type liveBatches struct{ atomic.Int64 }

func (l *liveBatches) Close() { l.Add(-1) }

func (l *liveBatches) batch(rows int) *DeviceArray {
	batch := rowsOf(rows)
	l.Add(1)
	if err := batch.Attach(l); err != nil {
		panic(err)
	}
	return batch
}

func onCUDA(array *DeviceArray) *DeviceArray {
	array.get().DeviceType = abi.DeviceCUDA
	return array
}

func disk() error { return NewError(71, "disk", nil) }

func made(array *DeviceArray, err error) AsyncBatch {
	return AsyncBatch{Make: func() (*DeviceArray, error) { return array, err }}
}

// row closes the batch and returns its number of rows, the negative code, or 0 at the end.
func row(batch *DeviceArray, err error) int64 {
	switch {
	case err == io.EOF:
		return 0
	case err != nil:
		return -int64(codeOf(err))
	}
	defer batch.Close()
	return batch.Length()
}

func nextRow(stream *AsyncStream) int64 {
	batch, _, err := stream.Next(context.Background())
	return row(batch, err)
}

// allRows reads the stream. The last element is 0 or the negative code.
func allRows(stream *AsyncStream) []int64 {
	var rows []int64
	for len(rows) == 0 || rows[len(rows)-1] > 0 {
		rows = append(rows, nextRow(stream))
	}
	return rows
}

func expectText(t *testing.T, found, expected string) {
	t.Helper()
	if found != expected {
		t.Errorf("expected %q, got %q", expected, found)
	}
}

func expectRows(t *testing.T, found []int64, expected ...int64) {
	t.Helper()
	if !slices.Equal(found, expected) {
		t.Errorf("expected %v, got %v", expected, found)
	}
}

func expectCode(t *testing.T, found int32, expected syscall.Errno) {
	t.Helper()
	if found != int32(expected) {
		t.Errorf("expected the code %d, got %d", expected, found)
	}
}

func expectNone(t *testing.T, live *liveBatches) {
	t.Helper()
	if left := live.Load(); left != 0 {
		t.Errorf("expected that all is released, got %d batches", left)
	}
}

// calls records the calls to a peer in order.
type calls struct {
	mutex sync.Mutex
	lines []string
	news  sync.Cond
}

func (c *calls) add(line string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lines = append(c.lines, line)
	if c.news.L != nil {
		c.news.Broadcast()
	}
}

func (c *calls) take() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	defer func() { c.lines = nil }()
	return strings.Join(c.lines, ", ")
}
