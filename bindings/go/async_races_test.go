// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

type seqOfBatches = iter.Seq2[AsyncBatch, error]

// The races that such code has had: an error that is seen as an end, a release that wakes nobody, an
// extraction that happens twice, a producer that goes away while a request is pending.

const raceRuns = 300

// start runs a function on a goroutine.
func start[T any](body func() T) <-chan T {
	result := make(chan T, 1)
	go func() { result <- body() }()
	return result
}

func TestAnErrorIsNeverSeenAsTheEnd(t *testing.T) {
	for range raceRuns {
		p, stream := opened(t, 4)
		p.task(1)
		rows := start(func() []int64 { return allRows(stream) })
		p.fail(71, "")
		p.release()
		if found := <-rows; !slices.Equal(found, []int64{1, -71}) && !slices.Equal(found, []int64{-71}) {
			t.Fatal(found)
		}
	}
}

func TestAReleaseWakesTheReaders(t *testing.T) {
	for run := range raceRuns {
		p, stream := opened(t, 4)
		readers := []<-chan int64{start(func() int64 { return nextRow(stream) }), start(func() int64 { return nextRow(stream) })}
		expected := -int64(syscall.EIO)
		if run%2 == 0 {
			p.end()
			expected = 0
		}
		p.release()
		for _, reader := range readers {
			expectRows(t, []int64{<-reader}, expected)
		}
		// The same before the schema.
		p, stream = created(t, AsyncOptions{})
		failed := start(func() error { _, err := stream.Schema(context.Background()); return err })
		p.release()
		if err := <-failed; !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
}

func TestABrokenStreamWakesTheOtherReader(t *testing.T) {
	for range raceRuns {
		p, stream := opened(t, 4)
		first, second := start(func() int64 { return nextRow(stream) }), start(func() int64 { return nextRow(stream) })
		p.give(&givenTask{number: 1, batch: rowsOf(1), code: 71}, nil)
		expectRows(t, []int64{<-first, <-second}, -71, -71)
		p.release()
	}
}

func TestNothingIsLostWhenReleaseFollowsTheEnd(t *testing.T) {
	for range raceRuns {
		var live live
		p, stream := opened(t, 9)
		for rows := 1; rows <= 9; rows++ {
			p.give(&givenTask{number: rows, batch: live.batch(rows)}, nil)
		}
		rows := start(func() []int64 { return allRows(stream) })
		p.end()
		p.release()
		expectRows(t, <-rows, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0)
		expectNone(t, &live)
	}
}

func TestACancelAtAnyTimeLosesNoTask(t *testing.T) {
	for run := range raceRuns {
		var live live
		p, stream := opened(t, 9)
		canceller := start(func() bool { stream.Close(); return true })
		for rows := 1; rows <= 9; rows++ {
			expectCode(t, p.give(&givenTask{number: rows, batch: live.batch(rows)}, nil), 0)
		}
		if run%2 == 0 {
			p.end()
			p.release()
		}
		<-canceller
		expectNone(t, &live)
		if run%2 != 0 {
			p.release()
		}
	}
}

// Extracting the queue in the release and a cancel meet.
func TestACancelDuringTheReleaseDropsWhatIsKept(t *testing.T) {
	var live live
	p, stream := opened(t, 9)
	for rows := 1; rows <= 3; rows++ {
		p.give(&givenTask{number: rows, batch: live.batch(rows)}, nil)
	}
	p.end()
	cancel := func(string) { stream.Close() }
	p.inside.Store(&cancel)
	p.release()
	expectText(t, p.take(), "request 9, extract 1, drop 2, drop 3")
	expectNone(t, &live)
}

func TestAStreamHasNotEndedWhileReleaseExtracts(t *testing.T) {
	p, stream := opened(t, 2)
	p.task(1)
	p.end()
	var rows <-chan []int64
	look := func(string) {
		rows = start(func() []int64 { return allRows(stream) })
		for waits := false; !waits; runtime.Gosched() {
			stream.core.mutex.Lock()
			waits = stream.core.news != nil
			stream.core.mutex.Unlock()
		}
	}
	p.inside.Store(&look)
	p.release()
	expectRows(t, <-rows, 1, 0)
}

// releaseDuring calls release while a call of the stream runs on another thread.
func releaseDuring(t *testing.T, call string, action func(stream *AsyncStream)) {
	p, stream := opened(t, 4)
	if call == "extract 1" || call == "drop 1" {
		p.task(1)
	}
	p.take()
	inside, mayGoOn := make(chan string), make(chan struct{})
	hold := func(line string) { inside <- line; <-mayGoOn }
	p.inside.Store(&hold)
	acted := start(func() bool { action(stream); return true })
	expectText(t, <-inside, call)
	released := start(func() bool { p.release(); return true })
	for stream.core.current() != asyncReleasing {
		runtime.Gosched()
	}
	select { // it cannot be seen that it waits, only that it has not returned
	case <-released:
		t.Errorf("release does not wait for %s", call)
	default:
	}
	close(mayGoOn)
	<-released
	<-acted
	expectText(t, p.take(), call)
}

func TestReleaseWaitsForCallsOfOtherThreads(t *testing.T) {
	releaseDuring(t, "request 1", func(stream *AsyncStream) { _ = stream.Request(1) })
	releaseDuring(t, "cancel", (*AsyncStream).Close)
	releaseDuring(t, "extract 1", func(stream *AsyncStream) { nextRow(stream) })
	releaseDuring(t, "drop 1", func(stream *AsyncStream) { stream.Skip() })
}

func TestReleaseExtractsNothingWhileARequestRuns(t *testing.T) {
	p, stream := opened(t, 2)
	p.task(1)
	p.take()
	inside, mayGoOn := make(chan struct{}), make(chan struct{})
	hold := func(string) { close(inside); <-mayGoOn }
	p.inside.Store(&hold)
	requested := start(func() error { return stream.Request(1) })
	<-inside
	p.end()
	released := start(func() bool { p.release(); return true })
	for stream.core.current() != asyncReleasing {
		runtime.Gosched()
	}
	expectText(t, p.take(), "")
	close(mayGoOn)
	<-released
	<-requested
	expectText(t, p.take(), "request 1, extract 1") // the peer writes a call down when it is over
	expectRows(t, allRows(stream), 1, 0)
}

// A producer that breaks the rules calls release from inside of a call to it: no call is waited for
// that cannot return before.
func TestReleaseInsideACall(t *testing.T) {
	for _, ends := range []bool{false, true} {
		for _, call := range []string{"request", "cancel", "next", "skip"} {
			var live live
			p, stream := opened(t, 1)
			p.give(&givenTask{number: 1, batch: live.batch(1)}, nil)
			inside := func(string) {
				if ends {
					p.end()
				}
				p.release()
			}
			p.inside.Store(&inside)
			switch call {
			case "request":
				_ = stream.Request(1)
			case "cancel":
				stream.Close()
			case "next": // which requests first
				if found := nextRow(stream); found != 1 && ends || found != -5 && !ends {
					t.Error(call, found)
				}
			case "skip":
				if stream.Skip() != ends {
					t.Error("skipped")
				}
			}
			stream.Close()
			expectNone(t, &live)
		}
	}
}

func TestExtractionsAndTheEndReleaseOnce(t *testing.T) {
	for range raceRuns {
		var live live
		p := newConsumerPeer(t)
		arrived := make(chan bool, 3)
		p.inside = func(name string) {
			if name == "task" {
				arrived <- true
			}
			if name == "schema" {
				p.request(3)
			}
		}
		sent := start(func() error {
			batches := func(yield func(*DeviceArray, error) bool) {
				_ = yield(live.batch(1), nil) && yield(live.batch(2), nil) && yield(live.batch(3), nil)
			}
			return SendAsync(context.Background(), intSchema(), abi.DeviceCPU, batches, p.handler())
		})
		for rows := int64(1); rows <= 3; rows++ {
			<-arrived
			expectRows(t, []int64{p.extract()}, rows)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		expectText(t, p.take(), "schema, task, task, task, end, release")
		expectNone(t, &live)
	}
}

// The context of a producer is done, its batches end, and a request is pending.
func TestAProducerThatGoesAwayIsAnError(t *testing.T) {
	for range raceRuns {
		ctx, cancel := context.WithCancel(context.Background())
		stream := NewAsyncStream(context.Background(), AsyncOptions{Window: 2})
		sent := start(func() error {
			return AsyncProducer{DeviceType: abi.DeviceCPU, Open: opens(intSchema(), &new(hand).idle, items(rowsOf(1), endless))}.Send(ctx, stream.Handler())
		})
		expectRows(t, []int64{nextRow(stream)}, 1)
		rows := start(func() []int64 { return allRows(stream) })
		cancel()
		expectRows(t, <-rows, -int64(syscall.ECANCELED))
		if err := <-sent; !errors.Is(err, syscall.ECANCELED) || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		stream.Close()
	}
}

func TestAnIdleProducerIsNotWoken(t *testing.T) {
	_, h := started(t, rowsOf(1), endless)
	h.run()
	for range cap(h.news) {
		select {
		case <-h.news:
		default:
		}
	}
	h.run()
	select {
	case <-h.news:
		t.Error("woken without a reason")
	default:
	}
}

// --- Contexts, loops and collections ----------------------------------------------------------------

// endlessly sends a batch of 1 row, 2 rows and so on, until the consumer has enough.
func endlessly(t *testing.T, stream *AsyncStream, live *live) <-chan error {
	t.Helper()
	handler := stream.Handler()
	return start(func() error {
		return SendAsync(context.Background(), intSchema(), abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) {
			for rows := 1; yield(live.batch(rows), nil); rows++ {
			}
		}, handler)
	})
}

func TestALoopThatIsLeftCancels(t *testing.T) {
	var live live
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

func TestContextsOfAnAsyncStream(t *testing.T) {
	var live live
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
		ofStream := context.Background()
		if c.name == "the stream's" {
			ofStream = ctx
		}
		stream := NewAsyncStream(ofStream, AsyncOptions{})
		sent := endlessly(t, stream, &live)
		expectRows(t, []int64{nextRow(stream), nextRow(stream)}, 1, 2)
		failure := start(func() error { return c.wait(ctx, stream) })
		cancel(gone)
		err := <-failure
		if !errors.Is(err, syscall.ECANCELED) || !errors.Is(err, gone) || err.Error() != "async stream: enough" {
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
	// Before there is a producer, and with an errno value.
	ctx, cancel := context.WithCancelCause(context.Background())
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	cancel(syscall.ETIMEDOUT)
	if _, err := stream.Schema(ctx); !errors.Is(err, syscall.ETIMEDOUT) {
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

// A stream that nobody has any more is cancelled and counted, and not while a call of it waits.
func TestAForgottenAsyncStreamIsCancelled(t *testing.T) {
	var live live
	reports := make(chan Leak, 1)
	OnLeak(func(leak Leak) { reports <- leak })
	defer OnLeak(nil)
	before := Leaks()
	sent := endlessly(t, NewAsyncStream(context.Background(), AsyncOptions{}), &live)
	for done := false; !done; {
		runtime.GC()
		select {
		case err := <-sent:
			done = err == nil
		default: // the next collection
		}
	}
	expectText(t, (<-reports).Struct, "async stream")
	if Leaks() != before+1 {
		t.Error(Leaks() - before)
	}
	expectNone(t, &live)

	p, core := waitingReader()
	for ; ; runtime.Gosched() {
		core.mutex.Lock()
		waits := core.news != nil
		core.mutex.Unlock()
		if waits {
			break
		}
	}
	runtime.GC()
	runtime.GC()
	if state := core.current(); state != asyncCreated {
		t.Error("collected while a call waits:", state)
	}
	callbacks.ReleaseArrowAsyncDeviceStreamHandler(p)
}

// waitingReader keeps no reference to the stream, other than that of the reader.
func waitingReader() (handler *abi.ArrowAsyncDeviceStreamHandler, core *asyncConsumer) {
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	go func() { _ = nextRow(stream) }()
	return (*abi.ArrowAsyncDeviceStreamHandler)(stream.Handler()), stream.core
}

// --- The sending side ---------------------------------------------------------------------------------

func TestSendAsyncChannel(t *testing.T) {
	var live live
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	batches := make(chan *DeviceArray, 3)
	sent := start(func() error {
		return SendAsyncChannel(context.Background(), intSchema(), abi.DeviceCPU, batches, stream.Handler())
	})
	for rows := 1; rows <= 3; rows++ {
		batches <- live.batch(rows)
	}
	close(batches)
	expectRows(t, allRows(stream), 1, 2, 3, 0)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	stream.Close()
	expectNone(t, &live)
	// A cancel is noticed while the channel is empty.
	stream = NewAsyncStream(context.Background(), AsyncOptions{})
	empty := make(chan *DeviceArray)
	sent = start(func() error {
		return SendAsyncChannel(context.Background(), intSchema(), abi.DeviceCPU, empty, stream.Handler())
	})
	schema := must(stream.Schema(context.Background()))
	schema.Close()
	stream.Close()
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestBatchesThatMisbehave(t *testing.T) {
	var live live
	for expected, batches := range map[string]func(yield func(*DeviceArray, error) bool){
		"panic: lost": func(func(*DeviceArray, error) bool) { panic("lost") },
		"batches: ended by runtime.Goexit: expected a return": func(func(*DeviceArray, error) bool) { runtime.Goexit() },
		"disk":                          func(yield func(*DeviceArray, error) bool) { yield(live.batch(1), disk()) },
		"batch: nil: expected an array": func(yield func(*DeviceArray, error) bool) { yield(nil, nil) },
	} {
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		sent := start(func() error {
			return SendAsync(context.Background(), intSchema(), abi.DeviceCPU, batches, stream.Handler())
		})
		failure := failed(stream.All(context.Background()))
		if err := <-sent; err == nil || err.Error() != expected || failure == nil || failure.Error() != expected {
			t.Errorf("%s: %v, %v", expected, err, failure)
		}
	}
	// Yield is called after it has returned false.
	rude := AsyncProducer{DeviceType: abi.DeviceCPU, Open: func(context.Context) (*Schema, seqOfBatches, error) {
		return intSchema(), func(yield func(AsyncBatch, error) bool) {
			for yield(AsyncBatch{Array: live.batch(1)}, nil) {
			}
			for range 3 {
				if yield(AsyncBatch{Array: live.batch(1)}, nil) || yield(AsyncBatch{Array: live.batch(1)}, disk()) {
					t.Error("the stream goes on")
				}
			}
		}, nil
	}}
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	sent := start(func() error { return rude.Send(context.Background(), stream.Handler()) })
	nextRow(stream)
	stream.Close()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	expectNone(t, &live)
}

func TestOpenThatFails(t *testing.T) {
	closed := intSchema()
	closed.Close()
	for expected, open := range map[string]openBatches{
		"disk": func(context.Context) (*Schema, seqOfBatches, error) { return intSchema(), nil, disk() },
		"schema: released: expected a live schema": func(context.Context) (*Schema, seqOfBatches, error) { return closed, nil, nil },
		"panic: lost": func(context.Context) (*Schema, seqOfBatches, error) { panic("lost") },
	} {
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		sent := start(func() error {
			return AsyncProducer{DeviceType: abi.DeviceCPU, Open: open}.Send(context.Background(), stream.Handler())
		})
		_, failure := stream.Schema(context.Background())
		if err := <-sent; err == nil || err.Error() != expected || failure == nil || failure.Error() != expected {
			t.Errorf("%s: %v, %v", expected, err, failure)
		}
		stream.Close()
	}
	schema := intSchema()
	if err := SendAsync(context.Background(), schema, abi.DeviceCPU, nil, nil); !errors.Is(err, syscall.EINVAL) || schema.IsReleased() {
		t.Error(err)
	}
	schema.Close()
	if err := (AsyncProducer{}).Send(context.Background(), nil); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}

func TestSeveralReaders(t *testing.T) {
	var live live
	var wait sync.WaitGroup
	var mutex sync.Mutex
	seen := map[int64]bool{}
	stream := NewAsyncStream(context.Background(), AsyncOptions{Window: 3})
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for rows := nextRow(stream); rows > 0; rows = nextRow(stream) {
				mutex.Lock()
				if seen[rows] {
					t.Error("twice:", rows)
				}
				seen[rows] = true
				mutex.Unlock()
			}
		}()
	}
	err := SendAsync(context.Background(), intSchema(), abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) {
		for rows := 1; rows <= 500; rows++ {
			yield(live.batch(rows), nil)
		}
	}, stream.Handler())
	wait.Wait()
	stream.Close()
	if err != nil || len(seen) != 500 {
		t.Error(err, len(seen))
	}
	expectNone(t, &live)
}
