// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// openHostile is a stream of a producer of the peer.
func openHostile(t *testing.T, c peer.Case, window int) *fletching.AsyncStream {
	t.Helper()
	stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: window})
	if err := peer.StartProducer(c.Name, stream.Handler()); err != nil {
		t.Fatal(err)
	}
	return stream
}

func readAsync(stream *fletching.AsyncStream) (batches int, err error) {
	for batch, err := range stream.All(context.Background()) {
		if err != nil {
			return batches, err
		}
		batches++
		batch.Close()
	}
	return batches, nil
}

func TestHostileAsyncProducers(t *testing.T) {
	for _, window := range []int{1, 3, 16} {
		each(t, peer.Producer, func(t *testing.T, c peer.Case) {
			stream := openHostile(t, c, window)
			if c.Outcome == peer.Stalled {
				if schema, err := stream.Schema(context.Background()); err == nil {
					schema.Close()
				}
				stream.Close()
				return
			}
			batches, err := readAsync(stream)
			check(t, c, err)
			expected := map[string]int{"producer.empty": 0, "producer.release-with-tasks": 2}
			count, known := expected[c.Name]
			if !known {
				count = 3
			}
			if c.Outcome == peer.Accepted && batches != count {
				t.Errorf("expected %d batches, got %d", count, batches)
			}
		})
	}
}

// Closed at whatever point the peer is, and while another goroutine reads.
func TestHostileAsyncProducersAndAConsumerThatIsGone(t *testing.T) {
	each(t, peer.Producer, func(t *testing.T, c peer.Case) {
		openHostile(t, c, 1).Close()
	})
	each(t, peer.Producer, func(t *testing.T, c peer.Case) {
		stream := openHostile(t, c, 2)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = readAsync(stream)
		}()
		stream.Close()
		stream.Close()
		<-done
	})
}

func TestHostileAsyncConsumers(t *testing.T) {
	const batches = 5
	each(t, peer.Handler, func(t *testing.T, c peer.Case) {
		handler, err := peer.OpenHandler(c.Name, batches)
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() {
			sent <- fletching.Send(context.Background(), intSchema(), abi.DeviceCPU, func(yield func(*fletching.DeviceArray, error) bool) {
				for i := 0; i < batches && yield(must(must(fletching.FromValues([]int32{1, 2, 3})).ToDevice()), nil); i++ {
				}
			}, handler)
		}()
		if err := peer.Finish(); err != nil { // which lets a consumer go on that has stalled
			t.Error(err)
		}
		err = <-sent
		missing := strings.HasSuffix(c.Name, "-null")
		if missing != (err != nil && strings.Contains(err.Error(), "NULL: expected a callback")) {
			t.Errorf("a callback that is NULL: %v", err)
		}
		if c.Outcome == peer.Accepted || c.Outcome == peer.Refused {
			check(t, c, err)
		}
	})
}
