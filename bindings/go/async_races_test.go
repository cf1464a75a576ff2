// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

type seqOfBatches = iter.Seq2[AsyncBatch, error]

// Races that similar code has had: an error mistaken for an end, a release that does not wake a waiting
// call, a double extraction, a producer that is destroyed while a request is pending.

const raceRuns = 300

// start runs a function on a goroutine.
func start[T any](body func() T) <-chan T {
	result := make(chan T, 1)
	go func() { result <- body() }()
	return result
}

func awaitReader(core *asyncConsumer) {
	for waits := false; !waits; runtime.Gosched() {
		core.mutex.Lock()
		waits = len(core.waiting) > 0
		core.mutex.Unlock()
	}
}

func TestErrorIsNotReadAsEnd(t *testing.T) {
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

func TestReleaseWakesReaders(t *testing.T) {
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

func TestBrokenStreamWakesOtherReader(t *testing.T) {
	for range raceRuns {
		p, stream := opened(t, 4)
		look := func(string) { awaitReader(stream.core) }
		p.inside.Store(&look)
		first, second := start(func() int64 { return nextRow(stream) }), start(func() int64 { return nextRow(stream) })
		p.give(&givenTask{number: 1, batch: rowsOf(1), code: 71}, nil)
		expectRows(t, []int64{<-first, <-second}, -71, -71)
		p.release()
	}
}

func TestReleaseAfterEndExtractsEachTaskOnce(t *testing.T) {
	for range raceRuns {
		var live liveBatches
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

func TestConcurrentCancelAndTasksDropEveryTask(t *testing.T) {
	for run := range raceRuns {
		var live liveBatches
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

// Cancels the stream while its release extracts the queue.
func TestCancelDuringReleaseDropsRemainingTasks(t *testing.T) {
	var live liveBatches
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

func TestStreamIsOpenWhileReleaseExtracts(t *testing.T) {
	p, stream := opened(t, 2)
	p.task(1)
	p.end()
	var rows <-chan []int64
	look := func(string) {
		rows = start(func() []int64 { return allRows(stream) })
		awaitReader(stream.core)
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
	select { // the test cannot observe the wait, only that release has not returned
	case <-released:
		t.Errorf("release does not wait for %s", call)
	default:
	}
	close(mayGoOn)
	<-released
	<-acted
	expectText(t, p.take(), call)
}

func TestReleaseWaitsForCallsOnOtherThreads(t *testing.T) {
	releaseDuring(t, "request 1", func(stream *AsyncStream) { _ = stream.Request(1) })
	releaseDuring(t, "cancel", (*AsyncStream).Close)
	releaseDuring(t, "extract 1", func(stream *AsyncStream) { nextRow(stream) })
	releaseDuring(t, "drop 1", func(stream *AsyncStream) { stream.Skip() })
}

func TestReleaseExtractsAfterRunningRequest(t *testing.T) {
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
	expectText(t, p.take(), "request 1, extract 1") // the peer records a call when it returns
	expectRows(t, allRows(stream), 1, 0)
}

// A producer that breaks the rules calls release from inside a call to it. The release must not wait for
// a call that cannot return before it.
func TestReleaseInsideCall(t *testing.T) {
	for _, ends := range []bool{false, true} {
		for _, call := range []string{"request", "cancel", "next", "skip"} {
			var live liveBatches
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
			case "next": // requests first
				if found := nextRow(stream); found != 1 {
					t.Error(call, found)
				}
			case "skip":
				if !stream.Skip() {
					t.Error("not skipped")
				}
			}
			stream.Close()
			expectNone(t, &live)
		}
	}
}

func TestConcurrentExtractionsAndEndReleaseOnce(t *testing.T) {
	for range raceRuns {
		var live liveBatches
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
			return Send(context.Background(), intSchema(), abi.DeviceCPU, batches, p.handler())
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

// The producer's context ends while a request is pending.
func TestCanceledProducerFailsStream(t *testing.T) {
	for range raceRuns {
		ctx, cancel := context.WithCancel(context.Background())
		stream := NewAsyncStream(context.Background(), AsyncOptions{Window: 2})
		sent := start(func() error {
			return AsyncProducer{DeviceType: abi.DeviceCPU, Open: opens(intSchema(), &new(manualSender).idle, items(rowsOf(1), endless))}.Send(ctx, stream.Handler())
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

func TestIdleProducerIsNotWoken(t *testing.T) {
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

// A caller that is about to take a batch requests more first, and the stream ends during the request. The
// caller still gets its batch, and the batches after it are dropped or kept as usual.
func TestEndDuringRequestKeepsBatch(t *testing.T) {
	for _, c := range []struct {
		inside   func(p *producerPeer)
		expected []int64
		calls    string
	}{
		{func(p *producerPeer) { p.fail(71, "") }, []int64{2, -71}, "drop 3, request 2, extract 2"},
		{func(p *producerPeer) { p.fail(71, ""); p.release() }, []int64{2, -71}, "drop 3, extract 2, request 2"},
		{func(p *producerPeer) { p.release() }, []int64{2, -int64(syscall.EIO)}, "drop 3, extract 2, request 2"},
		{func(p *producerPeer) { p.end(); p.release() }, []int64{2, 3, 0}, "extract 2, extract 3, request 2"},
		{func(p *producerPeer) { p.end() }, []int64{2, 3, 0}, "request 2, extract 2, extract 3"},
	} {
		for _, elsewhere := range []bool{false, true} {
			p, stream := opened(t, 3)
			for rows := 1; rows <= 3; rows++ {
				p.task(rows)
			}
			expectRows(t, []int64{nextRow(stream)}, 1)
			p.take()
			var ended <-chan bool
			inside := func(string) {
				if !elsewhere {
					c.inside(p)
					return
				}
				ended = start(func() bool { c.inside(p); return true }) // its release waits for the request
			}
			p.inside.Store(&inside)
			rows := allRows(stream)
			if !elsewhere {
				expectRows(t, rows, c.expected...)
				expectText(t, p.take(), c.calls)
			} else if <-ended; rows[0] != 2 {
				t.Errorf("expected 2 first, got %d", rows)
			}
			p.release()
		}
	}
}

func TestRemainingBatchCanBeSkipped(t *testing.T) {
	p, stream := opened(t, 1)
	p.task(1)
	p.take()
	inside := func(string) { p.fail(71, ""); p.release() }
	p.inside.Store(&inside)
	if !stream.Skip() || stream.Skip() {
		t.Error("not skipped once")
	}
	expectRows(t, allRows(stream), -71)
	expectText(t, p.take(), "extract 1, request 1")
}

// Two callers request at the same time, and each gets a batch.
func TestConcurrentReadersGetDifferentBatches(t *testing.T) {
	for range raceRuns {
		p, stream := opened(t, 2)
		p.task(1)
		p.task(2)
		inside := func(string) { p.fail(71, "") }
		p.inside.Store(&inside)
		first, second := start(func() int64 { return nextRow(stream) }), start(func() int64 { return nextRow(stream) })
		found := []int64{<-first, <-second}
		slices.Sort(found)
		if !slices.Equal(found, []int64{1, 2}) && !slices.Equal(found, []int64{-71, 1}) {
			t.Fatal(found)
		}
		expectRows(t, allRows(stream), -71)
		p.release()
	}
}

// A batch wakes one call. The wake is not lost if the context of that call ends at the same time.
func TestTaskWakesOneReader(t *testing.T) {
	p, stream := opened(t, 100)
	core := stream.core
	core.mutex.Lock()
	for range 50 {
		core.waiting = append(core.waiting, make(chan struct{}, 1))
	}
	core.mutex.Unlock()
	p.task(1)
	core.mutex.Lock()
	if waiting := len(core.waiting); waiting != 49 {
		t.Errorf("expected that 49 of 50 calls wait, got %d", waiting)
	}
	core.waiting = nil
	core.mutex.Unlock()
	expectRows(t, []int64{nextRow(stream)}, 1)
}

func TestCancelledReaderPassesWakeOn(t *testing.T) {
	for range raceRuns {
		p, stream := opened(t, 4)
		ctx, cancel := context.WithCancel(context.Background())
		first := start(func() error {
			batch, _, err := stream.Next(ctx)
			if err == nil {
				batch.Close()
			}
			return err
		})
		awaitReader(stream.core)
		second := start(func() int64 { return nextRow(stream) })
		cancelled := start(func() bool { cancel(); return true })
		p.task(1)
		if <-cancelled; <-first == nil {
			p.task(2)
			<-second
		} else if row := <-second; row != 1 {
			t.Fatal(row)
		}
	}
}
