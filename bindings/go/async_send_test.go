// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// --- The sending side ---------------------------------------------------------------------------------

func TestSendChannel(t *testing.T) {
	var live liveBatches
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	batches := make(chan *DeviceArray, 3)
	sent := start(func() error {
		return SendChannel(context.Background(), intSchema(), abi.DeviceCPU, batches, stream.Handler())
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
	// The producer notices a cancel while the channel is empty.
	stream = NewAsyncStream(context.Background(), AsyncOptions{})
	empty := make(chan *DeviceArray)
	sent = start(func() error {
		return SendChannel(context.Background(), intSchema(), abi.DeviceCPU, empty, stream.Handler())
	})
	schema := must(stream.Schema(context.Background()))
	schema.Close()
	stream.Close()
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestSendReportsInvalidBatches(t *testing.T) {
	var live liveBatches
	closed := rowsOf(1)
	closed.Close()
	for expected, batches := range map[string]func(yield func(*DeviceArray, error) bool){
		"panic: lost": func(func(*DeviceArray, error) bool) { panic("lost") },
		"batches: ended by runtime.Goexit: expected a return": func(func(*DeviceArray, error) bool) { runtime.Goexit() },
		"disk":                          func(yield func(*DeviceArray, error) bool) { yield(live.batch(1), disk()) },
		"batch: nil: expected an array": func(yield func(*DeviceArray, error) bool) { yield(nil, nil) },
		"batch: closed or moved: expected a live struct": func(yield func(*DeviceArray, error) bool) { yield(closed, nil) },
		"batch: device_type differs from the stream's: expected cpu, got cuda (rule async-producer.one-device-type)": func(yield func(*DeviceArray, error) bool) {
			yield(onCUDA(live.batch(1)), nil)
		},
	} {
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		sent := start(func() error {
			return Send(context.Background(), intSchema(), abi.DeviceCPU, batches, stream.Handler())
		})
		failure := failed(stream.All(context.Background()))
		if err := <-sent; err == nil || err.Error() != expected || failure == nil || failure.Error() != expected {
			t.Errorf("%s: %v, %v", expected, err, failure)
		}
	}
	// Calls yield again after it returned false.
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

func TestSendReportsOpenError(t *testing.T) {
	closed, malformed := intSchema(), must((&SchemaBuilder{Format: "+s", Children: []SchemaBuilder{{Format: "i"}}}).Build())
	closed.Close()
	must(malformed.TakeChild(0)).Close()
	for _, c := range []struct {
		schema   *Schema
		problem  error
		expected string
	}{
		{intSchema(), disk(), "disk"}, {closed, nil, "schema: released: expected a live schema"}, {nil, nil, "panic: lost"},
		{malformed, nil, "schema: the struct or a descendant is released or moved out"},
	} {
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		sent := start(func() error {
			return AsyncProducer{DeviceType: abi.DeviceCPU, Open: func(context.Context) (*Schema, seqOfBatches, error) {
				if c.schema == nil {
					panic("lost")
				}
				return c.schema, func(func(AsyncBatch, error) bool) {}, c.problem
			}}.Send(context.Background(), stream.Handler())
		})
		_, failure := stream.Schema(context.Background())
		if err := <-sent; err == nil || err.Error() != c.expected || failure == nil || failure.Error() != c.expected {
			t.Errorf("%s: %v, %v", c.expected, err, failure)
		}
		if c.schema != nil && !c.schema.IsReleased() {
			t.Errorf("%s: the schema is kept", c.expected)
		}
		stream.Close()
	}
	schema := intSchema()
	if err := Send(context.Background(), schema, abi.DeviceCPU, nil, nil); !errors.Is(err, syscall.EINVAL) || !schema.IsReleased() {
		t.Error(err)
	}
	schema.Close()
}

func TestSeveralReadersGetEachBatchOnce(t *testing.T) {
	var live liveBatches
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
	err := Send(context.Background(), intSchema(), abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) {
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

func TestSendReturnsConsumerError(t *testing.T) {
	for _, c := range []struct {
		call     string
		code     int32
		expected int32
		calls    string
	}{
		{"schema", 22, 22, "schema, release"}, {"task", abi.ENOMEM, abi.ENOMEM, "schema, task, release"},
		{"task", -3, abi.EIO, "schema, task, release"}, {"end", abi.ENOSPC, abi.ENOSPC, "schema, end, release"},
	} {
		p := newConsumerPeer(t)
		p.refuses, p.code = c.call, c.code
		var all []any
		if c.call != "end" {
			all = counting(2)
		}
		h := sendTo(t, p, AsyncProducer{}, all)
		p.request(5)
		h.run()
		expectText(t, p.take(), c.calls)
		text := fmt.Sprintf(": refused by the consumer: expected 0, got %d", c.code)
		if codeOf(h.result) != c.expected || !strings.HasSuffix(h.result.Error(), text) {
			t.Error(h.result)
		}
	}
}

func TestFailedDeferredBatchFailsStream(t *testing.T) {
	panicking := AsyncBatch{Make: func() (*DeviceArray, error) { panic("odd") }}
	for text, batch := range map[string]AsyncBatch{
		"error 5 panic: odd": panicking, "error 22 batch: nil: expected an array": made(nil, nil), "error 71 disk": made(nil, disk()),
	} {
		p, h := started(t, batch, endless)
		p.request(1)
		h.run()
		expectRows(t, []int64{p.extract()}, -int64(codeOf(h.failure)))
		h.run()
		expectText(t, p.take(), "task, "+text+", release")
	}
}

// Two concurrent calls extract the same task.
func TestTaskIsExtractedOnce(t *testing.T) {
	p, h := started(t, rowsOf(1), endless)
	p.request(1)
	h.run()
	first := p.oldest()
	second := first
	value, _ := callbacks.HandleValue(first.PrivateData)
	expectCode(t, value.(*asyncTask).ExtractData(&first, nil), 0)
	expectCode(t, value.(*asyncTask).ExtractData(&second, nil), syscall.EINVAL)
}

func TestCancelBeforeSchemaReleasesSchema(t *testing.T) {
	var live liveBatches
	live.Add(1)
	schema := intSchema()
	if err := schema.Attach(&live); err != nil {
		t.Fatal(err)
	}
	p := newConsumerPeer(t)
	h := sendTo(t, p, AsyncProducer{Open: func(context.Context) (*Schema, seqOfBatches, error) {
		return schema, func(func(AsyncBatch, error) bool) { t.Error("the batches are read") }, nil
	}}, nil)
	awaitSchema(h.asyncSending)
	p.cancel()
	h.run()
	expectText(t, p.take(), "release")
	expectNone(t, &live)
}

func TestSendRejectsMissingDeviceType(t *testing.T) {
	p := newConsumerPeer(t)
	schema := intSchema()
	err := Send(context.Background(), schema, 0, nil, p.handler())
	text := "Send: device_type: 0: expected the device type of the batches (rule async-producer.device-type-set)"
	expectText(t, err.Error(), text)
	expectText(t, p.take(), "error 22 "+text+", release")
	if !schema.IsReleased() {
		t.Error("a schema that was not sent is kept")
	}
}

// --- Waking -------------------------------------------------------------------------------------------

// isWoken consumes the wake signal of a producer.
func (h *manualSender) isWoken() bool {
	select {
	case <-h.news:
		return true
	default:
		return false
	}
}

// Only the extraction of the last task wakes the producer after the last call before the release. Earlier
// extractions do not.
func TestLastTaskWakesProducer(t *testing.T) {
	for name, stop := range map[string]func(p *consumerPeer){
		"end":    nil,
		"cancel": (*consumerPeer).cancel,
		"error":  func(p *consumerPeer) { p.request(0) },
		"refuse": func(p *consumerPeer) { p.refuses, p.code = "task", 22; p.request(1) },
	} {
		all := counting(2)
		if stop != nil {
			all = append(counting(3), endless)
		}
		p, h := started(t, all...)
		p.request(2)
		h.run()
		if stop != nil {
			stop(p)
		}
		h.run()
		<-h.sourceEnd
		for h.isWoken() {
		}
		p.drop()
		if h.isWoken() || h.run() {
			t.Errorf("%s: woken by a task that is not the last", name)
		}
		if p.drop(); !h.isWoken() || !h.run() {
			t.Errorf("%s: not woken by the last task", name)
		}
	}
	p, h := started(t, rowsOf(1), endless)
	p.request(1)
	h.run()
	for h.isWoken() {
	}
	if p.drop(); h.isWoken() {
		t.Error("woken by a task of a stream that goes on")
	}
}

// A consumer that never extracts a batch blocks Send until its context is done. The handler is released later.
func TestSendReturnsWhenContextIsDoneAndBatchIsHeld(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		p := newConsumerPeer(t)
		called := make(chan string, 10)
		p.inside = func(call string) { called <- call }
		await := func(expected string) {
			for call := range called {
				if call == expected {
					return
				}
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		sent := start(func() error {
			return Send(ctx, intSchema(), abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) {
				yield(rowsOf(1), nil)
				<-ctx.Done()
			}, p.handler())
		})
		await("schema")
		p.request(1)
		await("task")
		if cancelled {
			p.cancel()
		}
		cancel()
		if err := <-sent; !errors.Is(err, syscall.ECANCELED) {
			t.Errorf("cancelled by the consumer %v: %v", cancelled, err)
		}
		p.drop()
		await("release")
	}
}

func TestSendReturnsAfterBatchesEnd(t *testing.T) {
	for range raceRuns {
		var ended atomic.Bool
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		sent := start(func() error {
			err := Send(context.Background(), intSchema(), abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) {
				for yield(rowsOf(1), nil) {
				}
				for range 100 {
					runtime.Gosched()
				}
				ended.Store(true)
			}, stream.Handler())
			if !ended.Load() {
				return errors.New("the batches have not ended")
			}
			return err
		})
		nextRow(stream)
		stream.Close()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
}

// A done context ends the batches before the stream notices it.
func TestBatchesAfterContextEndAreDropped(t *testing.T) {
	var live liveBatches
	p := newConsumerPeer(t)
	ctx, cancel := context.WithCancel(context.Background())
	s := newAsyncSending(ctx, AsyncProducer{DeviceType: abi.DeviceCPU}, p.handler())
	s.start(func(context.Context) (*Schema, seqOfBatches, error) {
		return intSchema(), func(yield func(AsyncBatch, error) bool) {
			for range 3 {
				yield(AsyncBatch{Array: live.batch(1)}, nil)
			}
		}, nil
	})
	h := &manualSender{asyncSending: s}
	h.run()
	cancel()
	<-s.sourceEnd
	h.run()
	expectText(t, p.take(), "schema, error 125 producer: context canceled, release")
	expectNone(t, &live)
	s.free()
}

// The stream stops between the check of its context and the offer.
func TestLateBatchIsReleased(t *testing.T) {
	var live liveBatches
	p := newConsumerPeer(t)
	s := newAsyncSending(context.Background(), AsyncProducer{DeviceType: abi.DeviceCPU}, p.handler())
	set := func(stopped asyncStop) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.stopped = stopped
	}
	s.start(func(context.Context) (*Schema, seqOfBatches, error) {
		return intSchema(), func(yield func(AsyncBatch, error) bool) {
			set(asyncByFailure)
			yield(AsyncBatch{Array: live.batch(1)}, nil)
			expectNone(t, &live)
			set(asyncRunning)
		}, nil
	})
	awaitSchema(s)
	h := &manualSender{asyncSending: s}
	h.step() // sends the schema
	<-s.sourceEnd
	if !h.run() {
		t.Error("not released")
	}
	expectText(t, p.take(), "schema, end, release")
	s.free()
}

func awaitSchema(s *asyncSending) {
	for has := false; !has; runtime.Gosched() {
		s.mutex.Lock()
		has = s.schema != nil
		s.mutex.Unlock()
	}
}

// The batches may end while the schema is being sent. No goroutine waits for them then.
func TestSourceEndsWhileSchemaIsSent(t *testing.T) {
	p := newConsumerPeer(t)
	s := newAsyncSending(context.Background(), AsyncProducer{DeviceType: abi.DeviceCPU}, p.handler())
	s.start(func(context.Context) (*Schema, seqOfBatches, error) {
		return intSchema(), func(func(AsyncBatch, error) bool) { t.Error("the batches are read") }, nil
	})
	awaitSchema(s)
	s.endSource()
	<-s.sourceEnd
	h := &manualSender{asyncSending: s}
	if !h.run() {
		t.Error("not released")
	}
	expectText(t, p.take(), "schema, end, release")
	s.free()
}
