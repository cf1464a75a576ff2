// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"iter"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// The rules that a stream of ours keeps towards a consumer in C, once for both kinds.

// called is a stream of ours of either kind, through its callbacks.
type called interface {
	getSchema() (*fletching.Schema, int32)
	getNext() (batch readBatch, code int32) // nil for the end
	lastError() uintptr
	release()
	isReleased() bool
	move() // to another place; where it was there is nothing
}

// exportedStream is a stream in C of batches with these lengths.
type exportedStream func(t *testing.T, log *log, lengths iter.Seq2[int64, error]) called

type calledPlain struct {
	places []abi.ArrowArrayStream
	raw    *abi.ArrowArrayStream
}

// exportPlain lets each batch that was built write a line when it is released.
func exportPlain(t *testing.T, log *log, lengths iter.Seq2[int64, error]) called {
	stream := must(fletching.NewArrayStream(notedSchema(log), func(yield func(*fletching.Array, error) bool) {
		for length, err := range lengths {
			if err != nil {
				yield(nil, err)
			} else if !yield(must((&fletching.ArrayBuilder{Length: length}).Build(&note{log, "batch"})), nil) {
				return
			}
		}
	}))
	c := &calledPlain{places: peer.New[abi.ArrowArrayStream](2)}
	t.Cleanup(func() { peer.Free(c.places) })
	c.raw = &c.places[0]
	if err := stream.Export(unsafe.Pointer(c.raw)); err != nil {
		t.Fatal(err)
	}
	return c
}

func notedSchema(log *log) *fletching.Schema {
	schema := must((&fletching.SchemaBuilder{Format: "i", Name: "values"}).Build())
	_ = schema.Attach(&note{log, "schema"})
	return schema
}

func (c *calledPlain) getSchema() (*fletching.Schema, int32) {
	var out abi.ArrowSchema
	code, _ := callbacks.CallArrowArrayStreamGetSchema(c.raw, &out)
	schema, _ := fletching.ImportSchema(unsafe.Pointer(&out))
	return schema, code
}

func (c *calledPlain) getNext() (readBatch, int32) {
	var out abi.ArrowArray
	code, _ := callbacks.CallArrowArrayStreamGetNext(c.raw, &out)
	if out.IsReleased() {
		return nil, code
	}
	return must(fletching.ImportArray(unsafe.Pointer(&out))), code
}

func (c *calledPlain) lastError() uintptr {
	text, _ := callbacks.CallArrowArrayStreamGetLastError(c.raw)
	return text
}

func (c *calledPlain) release()         { callbacks.CallArrowArrayStreamRelease(c.raw) }
func (c *calledPlain) isReleased() bool { return c.raw.IsReleased() }

func (c *calledPlain) move() {
	c.places[1] = c.places[0]
	c.places[0], c.raw = abi.ArrowArrayStream{PrivateData: nowhere}, &c.places[1]
}

type calledDevice struct {
	places []abi.ArrowDeviceArrayStream
	raw    *abi.ArrowDeviceArrayStream
}

func exportOnDevice(t *testing.T, log *log, lengths iter.Seq2[int64, error]) called {
	stream := must(fletching.NewDeviceArrayStream(notedSchema(log), abi.DeviceCUDA, func(yield func(*fletching.DeviceArray, error) bool) {
		for length, err := range lengths {
			if err != nil {
				yield(nil, err)
			} else if !yield(must((&fletching.ArrayBuilder{Length: length}).BuildOn(abi.DeviceCUDA, 0, 0, &note{log, "batch"})), nil) {
				return
			}
		}
	}))
	c := &calledDevice{places: peer.New[abi.ArrowDeviceArrayStream](2)}
	t.Cleanup(func() { peer.Free(c.places) })
	c.raw = &c.places[0]
	if err := stream.Export(unsafe.Pointer(c.raw)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *calledDevice) getSchema() (*fletching.Schema, int32) {
	var out abi.ArrowSchema
	code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(c.raw, &out)
	schema, _ := fletching.ImportSchema(unsafe.Pointer(&out))
	return schema, code
}

func (c *calledDevice) getNext() (readBatch, int32) {
	var out abi.ArrowDeviceArray
	code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(c.raw, &out)
	if out.IsReleased() {
		return nil, code
	}
	return must(fletching.ImportDeviceArray(unsafe.Pointer(&out))), code
}

func (c *calledDevice) lastError() uintptr {
	text, _ := callbacks.CallArrowDeviceArrayStreamGetLastError(c.raw)
	return text
}

func (c *calledDevice) release()         { callbacks.CallArrowDeviceArrayStreamRelease(c.raw) }
func (c *calledDevice) isReleased() bool { return c.raw.IsReleased() }

func (c *calledDevice) move() {
	c.places[1] = c.places[0]
	c.places[0], c.raw = abi.ArrowDeviceArrayStream{PrivateData: nowhere}, &c.places[1]
}

// upTo yields the lengths 1, 2, ...
func upTo(count int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for length := int64(1); length <= count && yield(length, nil); length++ {
		}
	}
}

func failsWith(err error) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) { yield(0, err) }
}

// textAt is a copy of a text of C.
func textAt(address uintptr) string {
	return (&abi.ArrowSchema{Format: address, Release: callbacks.ArrowSchemaReleaseStub()}).FormatString()
}

func TestRuleStreamResultEndIsReleasedArray(t *testing.T) { endsWithAReleasedArray(t, exportPlain) }
func TestRuleDeviceStreamResultEndIsReleasedArray(t *testing.T) {
	endsWithAReleasedArray(t, exportOnDevice)
}

func endsWithAReleasedArray(t *testing.T, export exportedStream) {
	var log log
	stream := export(t, &log, upTo(2))
	for length := int64(1); length <= 2; length++ {
		batch, code := stream.getNext()
		if code != 0 || batch == nil || batch.Length() != length {
			t.Fatal(code, batch)
		}
		batch.Close()
	}
	for range 3 {
		if batch, code := stream.getNext(); code != 0 || batch != nil {
			t.Error(code, batch)
		}
	}
	stream.release()
	log.expect(t, "batch", "batch", "schema")
}

func TestRuleStreamResultOutlivesStream(t *testing.T)       { resultsOutlive(t, exportPlain) }
func TestRuleDeviceStreamResultOutlivesStream(t *testing.T) { resultsOutlive(t, exportOnDevice) }

func resultsOutlive(t *testing.T, export exportedStream) {
	var log log
	stream := export(t, &log, upTo(3))
	schema, _ := stream.getSchema()
	batch, _ := stream.getNext()
	stream.release()
	log.expect(t)
	if schema.Name() != "values" || batch.Length() != 1 {
		t.Error(schema.Name(), batch.Length())
	}
	schema.Close()
	log.expect(t, "schema")
	batch.Close()
	log.expect(t, "batch")
}

func TestRuleStreamResultSchemaConstant(t *testing.T)       { schemaIsConstant(t, exportPlain) }
func TestRuleDeviceStreamResultSchemaConstant(t *testing.T) { schemaIsConstant(t, exportOnDevice) }

func schemaIsConstant(t *testing.T, export exportedStream) {
	var log log
	stream := export(t, &log, upTo(1))
	for range 3 {
		schema, code := stream.getSchema()
		if code != 0 || schema.Format() != "i" || schema.Name() != "values" {
			t.Fatal(code, schema)
		}
		schema.Close()
		if batch, _ := stream.getNext(); batch != nil {
			batch.Close()
		}
	}
	stream.release()
	log.expect(t, "batch", "schema")
}

func TestRuleStreamErrnoCodes(t *testing.T)       { returnsErrnoCodes(t, exportPlain) }
func TestRuleDeviceStreamErrnoCodes(t *testing.T) { returnsErrnoCodes(t, exportOnDevice) }

func returnsErrnoCodes(t *testing.T, export exportedStream) {
	panics := func(func(int64, error) bool) { panic("a text") }
	negative := -3
	for _, c := range []struct {
		lengths  iter.Seq2[int64, error]
		expected syscall.Errno
	}{
		{failsWith(fletching.NewError(syscall.ENOSPC, "full", nil)), syscall.ENOSPC},
		{failsWith(fletching.NewError(syscall.Errno(negative), "no errno value", nil)), syscall.EIO},
		{failsWith(fletching.NewError(0, "success", nil)), syscall.EIO},
		{failsWith(syscall.Errno(0)), syscall.EIO},
		{failsWith(errors.New("no code")), syscall.EIO},
		{failsWith(&os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}), syscall.ENOENT},
		{panics, syscall.EIO},
	} {
		var log log
		stream := export(t, &log, c.lengths)
		for range 2 {
			if batch, code := stream.getNext(); batch != nil || code != int32(c.expected) {
				t.Errorf("expected %d, got %d", c.expected, code)
			}
		}
		stream.release()
	}
}

func TestRuleStreamErrorText(t *testing.T)       { writesTheText(t, exportPlain) }
func TestRuleDeviceStreamErrorText(t *testing.T) { writesTheText(t, exportOnDevice) }

func writesTheText(t *testing.T, export exportedStream) {
	for message, expected := range map[string]string{
		"café": "café", "a\x00b\x01\xff": `a\x00b\x01\xff`,
		strings.Repeat("x", 10_000): strings.Repeat("x", 4096) + "...",
	} {
		var log log
		stream := export(t, &log, failsWith(errors.New(message)))
		if stream.lastError() != 0 {
			t.Error("a text before an error")
		}
		stream.getNext()
		if text := textAt(stream.lastError()); text != expected {
			t.Errorf("expected %q, got %q", expected, text)
		}
		stream.release()
	}
	var log log
	stream := export(t, &log, failsWith(errors.New("")))
	if _, code := stream.getNext(); code == 0 || stream.lastError() != 0 {
		t.Error("an empty text is not NULL")
	}
	stream.release()
}

func TestRuleStreamErrorTextLifetime(t *testing.T)       { textStays(t, exportPlain) }
func TestRuleDeviceStreamErrorTextLifetime(t *testing.T) { textStays(t, exportOnDevice) }

func textStays(t *testing.T, export exportedStream) {
	var log log
	stream := export(t, &log, failsWith(errors.New("the text")))
	stream.getNext()
	first := stream.lastError()
	stream.move()
	if again := stream.lastError(); again != first || textAt(first) != "the text" {
		t.Errorf("%#x %#x %q", first, again, textAt(first))
	}
	// get_schema works still, and has no text; get_next fails again with the same one.
	schema, code := stream.getSchema()
	if code != 0 || stream.lastError() != 0 {
		t.Error(code, stream.lastError())
	}
	schema.Close()
	if _, code := stream.getNext(); code != int32(syscall.EIO) || textAt(stream.lastError()) != "the text" {
		t.Error(code)
	}
	stream.release()
}

func TestRuleStreamReleaseLikeArray(t *testing.T)       { releasesLikeAnArray(t, exportPlain) }
func TestRuleDeviceStreamReleaseLikeArray(t *testing.T) { releasesLikeAnArray(t, exportOnDevice) }

// At another place than where it was filled; a batch that was not read is not built, or closed.
func releasesLikeAnArray(t *testing.T, export exportedStream) {
	var log log
	stream := export(t, &log, func(yield func(int64, error) bool) {
		defer log.add("iterator")
		for yield(1, nil) {
		}
	})
	batch, _ := stream.getNext()
	batch.Close()
	stream.move()
	log.expect(t, "batch")
	if stream.release(); !stream.isReleased() {
		t.Error("not marked")
	}
	log.expect(t, "iterator", "schema")
	if stream.release(); !stream.isReleased() { // which has no callback any more
		t.Error("not marked")
	}
	log.expect(t)
}

func TestRuleDeviceStreamDeviceTypeSet(t *testing.T) {
	for _, deviceType := range []abi.DeviceType{abi.DeviceCUDA, 9999} {
		stream := must(fletching.NewDeviceArrayStream(intSchema(), deviceType, emptyBatches))
		if raw := rawStream(t, stream); raw.DeviceType != deviceType {
			t.Error(raw.DeviceType)
		} else {
			callbacks.CallArrowDeviceArrayStreamRelease(raw)
		}
	}
	schema := intSchema()
	_, err := fletching.NewDeviceArrayStream(schema, 0, nil)
	expectError(t, err, syscall.EINVAL, "(rule device-stream.device-type-set)")
	if schema.IsReleased() {
		t.Error("the schema was moved")
	}
	schema.Close()
}

func TestRuleDeviceStreamStreamPerDeviceType(t *testing.T) {
	var log log
	raw := rawStream(t, newStream(func(yield func(*fletching.DeviceArray, error) bool) {
		for _, deviceType := range []abi.DeviceType{abi.DeviceCUDA, abi.DeviceROCM} {
			if !yield(must(batch(0).BuildOn(deviceType, 0, 0, &note{&log, deviceType.String()})), nil) {
				return
			}
		}
	}))
	var first, other abi.ArrowDeviceArray
	if code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(raw, &first); code != 0 {
		t.Error(code)
	}
	for range 2 {
		if code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(raw, &other); code != int32(syscall.EINVAL) || !other.IsReleased() {
			t.Error(code)
		}
	}
	log.expect(t, abi.DeviceROCM.String())
	callbacks.ReleaseArrowArray(&first.Array)
	callbacks.CallArrowDeviceArrayStreamRelease(raw)
	log.expect(t, abi.DeviceCUDA.String())
}
