// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

// --- A producer that is driven manually ------------------------------------------------------------

// manualSender runs the steps of a producer whose batches are always available, except after the last one.
type manualSender struct {
	*asyncSending
	idle     atomic.Bool
	released bool
	freed    bool
}

// items returns a list of batches and errors.
func items(all ...any) []any { return all }

// counting returns batches of 1 row, 2 rows and so on.
func counting(count int) (all []any) {
	for rows := 1; rows <= count; rows++ {
		all = append(all, rowsOf(rows))
	}
	return all
}

const endless = "endless" // as the last item: the batches do not end

func yieldAll(ctx context.Context, all []any, idle *atomic.Bool, yield func(AsyncBatch, error) bool) {
	for at, item := range all {
		more := false
		switch item := item.(type) {
		case *DeviceArray:
			more = yield(AsyncBatch{Array: item}, nil)
		case AsyncBatch:
			more = yield(item, nil)
		case error:
			more = yield(AsyncBatch{}, item)
		default:
			idle.Store(true)
			<-ctx.Done()
		}
		if !more {
			closeAll(all[at+1:])
			return
		}
	}
}

func closeAll(all []any) {
	for _, item := range all {
		discard(item)
	}
}

func opens(schema *Schema, idle *atomic.Bool, all []any) openBatches {
	return func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return schema, func(yield func(AsyncBatch, error) bool) { yieldAll(ctx, all, idle, yield) }, nil
	}
}

// sendTo starts a producer and steps it until it waits for the peer.
func sendTo(t *testing.T, p *consumerPeer, producer AsyncProducer, all []any) *manualSender {
	h := &manualSender{}
	if producer.DeviceType == 0 {
		producer.DeviceType = abi.DeviceCPU
	}
	h.asyncSending = newAsyncSending(context.Background(), producer, p.handler())
	if producer.Open == nil {
		producer.Open = opens(intSchema(), &h.idle, all)
	}
	h.start(producer.Open)
	t.Cleanup(func() {
		if !h.released {
			p.inside = nil
			h.stop(asyncByConsumer, nil)
			for len(p.tasks) > 0 {
				p.drop()
			}
			h.run()
		}
		if !h.freed {
			h.free()
		}
	})
	return h
}

// run makes all due calls. It returns true when the handler is released.
func (h *manualSender) run() bool {
	for !h.released {
		for settled := false; !settled; runtime.Gosched() {
			h.mutex.Lock()
			settled = h.stopped != asyncRunning || h.schema != nil || h.next != nil || h.ended || h.idle.Load()
			h.mutex.Unlock()
		}
		switch h.step() {
		case asyncWaits:
			return false
		case asyncReleases:
			h.released = true
		}
	}
	return true
}

// started returns a producer that has sent the schema.
func started(t *testing.T, all ...any) (*consumerPeer, *manualSender) {
	p := newConsumerPeer(t)
	h := sendTo(t, p, AsyncProducer{}, all)
	h.run()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.calls.mutex.Lock()
	defer p.calls.mutex.Unlock()
	if len(p.lines) == 0 || p.lines[0] != "schema" {
		t.Errorf("expected schema, got %q", p.lines)
		return p, h
	}
	p.lines = p.lines[1:]
	return p, h
}
