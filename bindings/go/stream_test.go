// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

type deviceBatches = iter.Seq2[*fletching.DeviceArray, error]

func intSchema() *fletching.Schema { return must((&fletching.SchemaBuilder{Format: "i"}).Build()) }

// numberedBatches yields batches of the lengths 1, 2, ... and logs its end.
func numberedBatches(log *log, count int) deviceBatches {
	return func(yield func(*fletching.DeviceArray, error) bool) {
		defer log.add("iterator ended")
		for i := range count {
			batch := must((&fletching.ArrayBuilder{Length: int64(i + 1)}).BuildOn(abi.DeviceCUDA, 0, 0, nil))
			if !yield(batch, nil) {
				return
			}
		}
	}
}

func newStream(batches deviceBatches) *fletching.DeviceArrayStream {
	return must(fletching.NewDeviceArrayStream(intSchema(), abi.DeviceCUDA, batches))
}

// overC moves the stream through C.
func overC(stream *fletching.DeviceArrayStream) *fletching.DeviceArrayStream {
	raw := peer.New[abi.ArrowDeviceArrayStream](1)
	defer peer.Free(raw)
	if err := stream.Export(unsafe.Pointer(&raw[0])); err != nil {
		panic(err)
	}
	return must(fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw[0])))
}

// readAll closes the stream and returns the sum of the batch lengths.
func readAll(stream *fletching.DeviceArrayStream) (sum int64, err error) {
	defer stream.Close()
	for batch, err := range stream.All(context.Background()) {
		if err != nil {
			return sum, err
		}
		sum += batch.Length()
		batch.Close()
	}
	return sum, nil
}

func TestStreamRoundTrips(t *testing.T) {
	var log log
	stream := overC(newStream(numberedBatches(&log, 3)))
	for range 2 {
		schema := must(stream.Schema())
		if schema.Format() != "i" || stream.DeviceType() != abi.DeviceCUDA {
			t.Error("another schema or device type")
		}
		schema.Close()
	}
	if sum, err := readAll(stream); sum != 6 || err != nil {
		t.Error(sum, err)
	}
	log.expect(t, "iterator ended")
	expectClosed(t, "next", second(stream.Next()))
}

// The table of handles drops an exported stream that was released.
func TestStreamCloseDropsState(t *testing.T) {
	var log log
	var raw abi.ArrowDeviceArrayStream
	if err := newStream(numberedBatches(&log, 1)).Export(unsafe.Pointer(&raw)); err != nil {
		t.Fatal(err)
	}
	handle := raw.PrivateData
	must(fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw))).Close()
	if _, live := callbacks.HandleValue(handle); live {
		t.Error("the state is kept")
	}
}

func TestLoopBreakKeepsRemainingBatches(t *testing.T) {
	var log log
	stream := overC(newStream(numberedBatches(&log, 5)))
	for range 2 {
		for batch, err := range stream.All(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			batch.Close()
			break
		}
	}
	log.expect(t)
	if batch := must(stream.Next()); batch.Length() != 3 {
		t.Error("a loop has taken more than it was given")
	} else {
		batch.Close()
	}
	stream.Close()
	log.expect(t, "iterator ended")

	newStream(numberedBatches(&log, 5)).Close() // the iterator never began
	log.expect(t)
}

func TestCloseInsideLoop(t *testing.T) {
	var log log
	stream := overC(newStream(numberedBatches(&log, 5)))
	var last error
	count := 0
	for batch, err := range stream.All(context.Background()) {
		if last = err; err != nil {
			break
		}
		count++
		stream.Close()
		log.expect(t, "iterator ended")
		if batch.Length() != 1 {
			t.Error("the batch ended with its stream")
		}
		batch.Close()
	}
	expectClosed(t, "the loop", last)
	if count != 1 {
		t.Error(count)
	}
}

// The iterator closes its own stream: the call ends before the release.
func TestCloseInsideIterator(t *testing.T) {
	var log log
	var stream *fletching.DeviceArrayStream
	stream = overC(newStream(func(yield func(*fletching.DeviceArray, error) bool) {
		defer log.add("iterator ended")
		if found := stream.DeviceType(); found != abi.DeviceCUDA {
			t.Errorf("expected cuda, got %v", found)
		}
		stream.Close()
		if !stream.IsReleased() {
			t.Error("not released")
		}
		stream.Close()
		yield(must((&fletching.ArrayBuilder{Length: 7}).BuildOn(abi.DeviceCUDA, 0, 0, nil)), nil)
	}))
	batch := must(stream.Next())
	log.expect(t, "iterator ended")
	if batch.Length() != 7 {
		t.Error(batch.Length())
	}
	batch.Close()
	expectClosed(t, "next", second(stream.Next()))
}

func TestRuleDeviceStreamCallsSerialized(t *testing.T) {
	var stream *fletching.DeviceArrayStream
	stream = newStream(func(func(*fletching.DeviceArray, error) bool) {
		expectBusy(t, second(stream.Next()), second(stream.Schema()))
	})
	expectEnd(t, second(stream.Next()))
	stream.Close()
}

func TestRuleStreamCallsSerialized(t *testing.T) {
	var stream *fletching.ArrayStream
	stream = must(fletching.NewArrayStream(intSchema(), func(func(*fletching.Array, error) bool) {
		expectBusy(t, second(stream.Next()), second(stream.Schema()))
	}))
	expectEnd(t, second(stream.Next()))
	stream.Close()
}

// expectBusy checks the errors of nested calls.
func expectBusy(t *testing.T, calls ...error) {
	t.Helper()
	for _, err := range calls {
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("a call during a call: %v", err)
		}
	}
}

func expectEnd(t *testing.T, err error) {
	t.Helper()
	if err != io.EOF {
		t.Errorf("expected the end, got %v", err)
	}
}

func TestIteratorErrorsReachConsumer(t *testing.T) {
	cause := errors.New("no more")
	closedBatch := must(batch(0).BuildOn(abi.DeviceCUDA, 0, 0, nil))
	closedBatch.Close()
	for _, c := range []struct {
		yield func(yield func(*fletching.DeviceArray, error) bool)
		code  syscall.Errno
		text  string
	}{
		{func(yield func(*fletching.DeviceArray, error) bool) { yield(nil, cause) }, syscall.EIO, "no more"},
		{func(yield func(*fletching.DeviceArray, error) bool) {
			yield(must(batch(1).BuildOn(abi.DeviceCUDA, 0, 0, nil)), fletching.NewError(syscall.ENOSPC, "a\xff\x00b", nil))
		}, syscall.ENOSPC, `a\xff\x00b`},
		{func(yield func(*fletching.DeviceArray, error) bool) { panic("in the iterator") }, syscall.EIO, "panic: in the iterator"},
		{func(yield func(*fletching.DeviceArray, error) bool) { runtime.Goexit() }, syscall.EIO, "iterator: ended by runtime.Goexit"},
		{func(yield func(*fletching.DeviceArray, error) bool) { yield(nil, nil) }, syscall.EINVAL, "get_next: batch is nil"},
		{func(yield func(*fletching.DeviceArray, error) bool) { yield(closedBatch, nil) }, syscall.EINVAL, "get_next: batch is released"},
		{func(yield func(*fletching.DeviceArray, error) bool) {
			yield(must(batch(1).BuildOn(abi.DeviceROCM, 0, 0, nil)), nil)
		}, syscall.EINVAL, "(rule device-stream-result.accessible)"},
	} {
		stream := overC(newStream(c.yield))
		for range 2 {
			_, err := stream.Next()
			expectError(t, err, c.code, c.text)
			expectError(t, second(stream.Schema()), c.code, c.text)
		}
		// The producer returns the error again to a consumer that continues.
		stream.Close()
	}
	_, err := fletching.NewDeviceArrayStream(intSchema(), 0, emptyBatches)
	expectError(t, err, syscall.EINVAL, "(rule device-stream.device-type-set)")
	var schema fletching.Schema
	expectClosed(t, "a stream of a closed schema", second(fletching.NewDeviceArrayStream(&schema, abi.DeviceCUDA, emptyBatches)))
}

// An exported stream fails again after an error. The message is valid until the next call.
func TestFailedStreamRepeatsError(t *testing.T) {
	raw := peer.New[abi.ArrowDeviceArrayStream](1)
	defer peer.Free(raw)
	succeed(t, newStream(func(yield func(*fletching.DeviceArray, error) bool) { yield(nil, errors.New("the text")) }).Export(unsafe.Pointer(&raw[0])))
	textOf := func() string {
		text, _ := callbacks.CallArrowDeviceArrayStreamGetLastError(&raw[0])
		return (&abi.ArrowSchema{Name: text, Release: 1}).NameString()
	}
	for range 2 {
		var out abi.ArrowDeviceArray
		if code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(&raw[0], &out); code != int32(syscall.EIO) || textOf() != "the text" || textOf() != "the text" {
			t.Error(code, textOf())
		}
		var schema abi.ArrowSchema
		if code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(&raw[0], &schema); code != 0 || textOf() != "" {
			t.Error(code, textOf())
		}
		callbacks.ReleaseArrowSchema(&schema)
	}
	callbacks.ReleaseArrowDeviceArrayStream(&raw[0])
}

// C consumers do not check the device type of each batch.
func TestProducerRejectsBatchOfOtherDevice(t *testing.T) {
	raw := peer.New[abi.ArrowDeviceArrayStream](1)
	defer peer.Free(raw)
	stream := newStream(func(yield func(*fletching.DeviceArray, error) bool) {
		yield(must(batch(1).BuildOn(abi.DeviceROCM, 0, 0, nil)), nil)
	})
	succeed(t, stream.Export(unsafe.Pointer(&raw[0])))
	if !stream.IsReleased() {
		t.Error("an exported stream is still open")
	}
	var out abi.ArrowDeviceArray
	if code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(&raw[0], &out); code != int32(syscall.EINVAL) || out.Array.Release != 0 {
		t.Error(code, out)
	}
	callbacks.ReleaseArrowDeviceArrayStream(&raw[0])
}

// Rejected batches are closed.
func TestRejectedBatchIsClosed(t *testing.T) {
	var log log
	for _, failure := range []error{nil, syscall.EPERM} {
		stream := newStream(func(yield func(*fletching.DeviceArray, error) bool) {
			yield(must(batch(1).BuildOn(abi.DeviceROCM, 0, 0, &note{&log, "closed"})), failure)
		})
		if _, err := readAll(stream); err == nil {
			t.Error("no error")
		}
		log.expect(t, "closed")
	}
}

// An iterator that yields after it was told to stop, and panics at its end.
func TestBatchesAfterStreamCloseAreClosed(t *testing.T) {
	var log log
	stream := newStream(func(yield func(*fletching.DeviceArray, error) bool) {
		for range 3 {
			yield(must(batch(0).BuildOn(abi.DeviceCUDA, 0, 0, &note{&log, "closed"})), nil)
		}
		panic("at the end")
	})
	must(stream.Next()).Close()
	log.expect(t, "closed")
	stream.Close()
	log.expect(t, "closed", "closed")
}

func TestCanceledContextEndsLoop(t *testing.T) {
	var log log
	stream := overC(newStream(numberedBatches(&log, 5)))
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	cause := errors.New("enough")
	count := 0
	for batch, err := range stream.All(ctx) {
		if err != nil {
			if !errors.Is(err, syscall.ECANCELED) || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
				t.Error(err)
			}
			break
		}
		count++
		batch.Close()
		cancel(cause)
	}
	if count != 1 {
		t.Error(count)
	}
	must(stream.Next()).Close() // the stream is not dead
	stream.Close()
}

func TestCloseDuringNext(t *testing.T) {
	for range 50 {
		var log log
		stream := overC(newStream(numberedBatches(&log, 1000)))
		var wait sync.WaitGroup
		wait.Add(1)
		go func() {
			defer wait.Done()
			if _, err := readAll(stream); err != nil && !errors.Is(err, fletching.ErrClosed) {
				t.Error(err)
			}
		}()
		runtime.Gosched()
		stream.Close()
		wait.Wait()
	}
}

func TestStreamWarnings(t *testing.T) {
	managed := func(yield func(*fletching.DeviceArray, error) bool) {
		raw := rawDeviceArray(new(log), "a", 0, false)
		raw.DeviceType = abi.DeviceCUDAManaged
		raw.Reserved[2] = 1
		yield(must(fletching.ImportDeviceArray(unsafe.Pointer(&raw))), nil)
	}
	var warnings []string
	stream := overC(newStream(managed))
	stream.Options.OnWarning = func(warning fletching.Warning) { warnings = append(warnings, warning.String()) }
	must(stream.Next()).Close()
	stream.Close()
	if text := strings.Join(warnings, "\n"); len(warnings) != 2 ||
		!strings.Contains(text, "(rule device-stream.one-device-type)") || !strings.Contains(text, "(rule device-array.reserved-zero)") {
		t.Error(text)
	}
	stream = overC(newStream(managed))
	stream.Options.Strict = true
	expectError(t, second(stream.Next()), syscall.EINVAL, "expected cuda, got cuda_managed (rule device-stream.one-device-type)")
	stream.Close()
}

func TestArrayStreamReturnsBatchesAndError(t *testing.T) {
	stream := must(fletching.NewArrayStream(intSchema(), func(yield func(*fletching.Array, error) bool) {
		_ = yield(must(fletching.FromValues([]int32{1, 2})), nil) && yield(nil, syscall.ENOSPC)
	}))
	must(stream.Schema()).Close()
	var lengths []int64
	for batch, err := range stream.All(context.Background()) {
		if err != nil {
			expectError(t, err, syscall.ENOSPC, syscall.ENOSPC.Error())
			break
		}
		lengths = append(lengths, batch.Length())
		batch.Close()
	}
	stream.Close()
	if len(lengths) != 1 || lengths[0] != 2 {
		t.Error(lengths)
	}
}

// go doc does not show a field promoted from an unexported embedded type.
func TestDeviceArrayStreamOptionsIsDocumented(t *testing.T) {
	field, found := reflect.TypeFor[fletching.DeviceArrayStream]().FieldByName("Options")
	if !found || len(field.Index) != 1 {
		t.Errorf("expected a field of the struct itself, got %+v", field)
	}
}
