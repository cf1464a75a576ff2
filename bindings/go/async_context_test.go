// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// --- Contexts, loops and collections ----------------------------------------------------------------

// endlessly sends batches of 1 row, 2 rows and so on, until the consumer cancels.
func endlessly(t *testing.T, stream *AsyncStream, live *liveBatches) <-chan error {
	t.Helper()
	handler := stream.Handler()
	return start(func() error {
		return Send(context.Background(), intSchema(), abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) {
			for rows := 1; yield(live.batch(rows), nil); rows++ {
			}
		}, handler)
	})
}

func TestLoopBreakCancelsStream(t *testing.T) {
	var live liveBatches
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	sent := endlessly(t, stream, &live)
	for batch, err := range stream.All(context.Background()) {
		if row(batch, err) == 3 {
			break
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	expectNone(t, &live)
	if _, _, err := stream.Next(context.Background()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestAsyncStreamContextCancellation(t *testing.T) {
	var live liveBatches
	for _, c := range []struct {
		name          string
		cancelsStream bool
		wait          func(ctx context.Context, stream *AsyncStream) error
	}{
		{"the stream's", true, func(_ context.Context, stream *AsyncStream) error {
			return failed(stream.All(context.Background()))
		}},
		{"a loop's", true, func(ctx context.Context, stream *AsyncStream) error { return failed(stream.All(ctx)) }},
		{"a call's", false, func(ctx context.Context, stream *AsyncStream) error {
			for {
				batch, _, err := stream.Next(ctx)
				if err != nil {
					return err
				}
				batch.Close()
			}
		}},
	} {
		gone := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		ofStream, text := context.Background(), "Next: enough"
		if c.name == "the stream's" {
			ofStream, text = ctx, "AsyncStream: enough"
		}
		stream := NewAsyncStream(ofStream, AsyncOptions{})
		sent := endlessly(t, stream, &live)
		expectRows(t, []int64{nextRow(stream), nextRow(stream)}, 1, 2)
		failure := start(func() error { return c.wait(ctx, stream) })
		cancel(gone)
		err := <-failure
		if !errors.Is(err, syscall.ECANCELED) || !errors.Is(err, gone) || err.Error() != text {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.cancelsStream {
			if nextRow(stream) < 1 {
				t.Errorf("%s: the stream was cancelled", c.name)
			}
			stream.Close()
		}
		if err := <-sent; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		stream.Close()
	}
	expectNone(t, &live)
	// Before there is a producer, with a cause that has an errno value.
	ctx, cancel := context.WithCancelCause(context.Background())
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	cancel(syscall.ETIMEDOUT)
	if _, err := stream.Schema(ctx); codeOf(err) != abi.ETIMEDOUT {
		t.Error(err)
	}
	stream.Close()
}

func failed(batches func(func(*DeviceArray, error) bool)) (failure error) {
	for batch, err := range batches {
		if err == nil {
			batch.Close()
		}
		failure = err
	}
	return failure
}

func TestCloseWakesReaders(t *testing.T) {
	for range raceRuns {
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		next := start(func() error { _, _, err := stream.Next(context.Background()); return err })
		schema := start(func() error { _, err := stream.Schema(context.Background()); return err })
		stream.Close()
		stream.Close()
		if err := errors.Join(<-next, <-schema); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
}

// An unreachable stream is cancelled and reported, but not while one of its calls waits.
func TestCollectedAsyncStreamIsCancelled(t *testing.T) {
	var live liveBatches
	reports := make(chan Leak, 1)
	OnLeak(func(leak Leak) { // other tests leak too
		if leak.Struct == "async stream" {
			reports <- leak
		}
	})
	defer OnLeak(nil)
	before := Leaks()
	sent := endlessly(t, NewAsyncStream(context.Background(), AsyncOptions{}), &live)
	for done := false; !done; {
		runtime.GC()
		select {
		case err := <-sent:
			done = err == nil
		default: // collect again
		}
	}
	expectText(t, (<-reports).Struct, "async stream")
	if Leaks() <= before {
		t.Error("not counted")
	}
	expectNone(t, &live)

	p, core := waitingReader()
	awaitReader(core)
	runtime.GC()
	runtime.GC()
	if state := core.current(); state != asyncCreated {
		t.Error("collected while a call waits:", state)
	}
	callbacks.ReleaseArrowAsyncDeviceStreamHandler(p)
}

// waitingReader leaves the stream reachable only from a waiting Next.
func waitingReader() (handler *abi.ArrowAsyncDeviceStreamHandler, core *asyncConsumer) {
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	go func() { _ = nextRow(stream) }()
	return (*abi.ArrowAsyncDeviceStreamHandler)(stream.Handler()), stream.core
}

// watchedContext is a context that never ends and counts the goroutines that wait for its end.
type watchedContext struct {
	context.Context
	waiting atomic.Int32
}

func (w *watchedContext) Done() <-chan struct{} { return make(chan struct{}) }

func (w *watchedContext) AfterFunc(func()) (stop func() bool) {
	w.waiting.Add(1)
	return func() bool { w.waiting.Add(-1); return true }
}

func TestCollectedStreamUnregistersFromContext(t *testing.T) {
	ctx := &watchedContext{Context: context.Background()}
	NewAsyncStream(ctx, AsyncOptions{})
	if waiting := ctx.waiting.Load(); waiting != 1 {
		t.Fatalf("waiting: expected 1, got %d", waiting)
	}
	for ctx.waiting.Load() != 0 { // the timeout of go test ends it
		runtime.GC()
	}
}
