// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/internal/peer"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// Closes a stream while another goroutine reads it, at any point of the hostile peer's calls. The conformance suite
// does not cover this.
func TestHostileAsyncProducersAndCloseDuringRead(t *testing.T) {
	repository.Need(t)
	succeed(t, peer.Open())
	producers := peer.Producers()
	if len(producers) == 0 {
		t.Error("no case")
	}
	for _, name := range producers {
		t.Run(name, func(t *testing.T) {
			stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: 2})
			succeed(t, peer.StartProducer(name, stream.Handler()))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for batch, err := range stream.All(context.Background()) {
					if err == nil {
						batch.Close()
					}
				}
			}()
			stream.Close()
			stream.Close()
			<-done
			succeed(t, peer.Finish()) // reports leaks and broken rules
		})
	}
}
