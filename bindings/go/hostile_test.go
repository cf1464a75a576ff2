// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/peer"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// each plays every case of a party; after it nothing may be left.
func each(t *testing.T, party int32, play func(t *testing.T, c peer.Case)) {
	repository.Need(t)
	if err := peer.Open(); err != nil {
		t.Fatal(err)
	}
	cases := peer.Cases(party)
	if len(cases) == 0 {
		t.Error("no case")
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			play(t, c)
			if err := peer.Finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Warnings are errors if the consumer asks for that, which the conformance suite does not.
func TestHostileStreamsStrict(t *testing.T) {
	each(t, peer.DeviceStream, func(t *testing.T, c peer.Case) {
		if c.Outcome != peer.Tolerated {
			return
		}
		var raw abi.ArrowDeviceArrayStream
		succeed(t, peer.ExportDeviceStream(c.Name, &raw))
		stream := must(fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw)))
		defer stream.Close()
		stream.Options.Strict = true
		var last error
		for batch, err := range stream.All(context.Background()) {
			if last = err; err == nil {
				batch.Close()
			}
		}
		if last == nil || !strings.Contains(last.Error(), "(rule ") {
			t.Errorf("strict: %v", last)
		}
	})
}

// A stream is closed while another goroutine reads it, at whatever point the peer is.
func TestHostileAsyncProducersAndCloseDuringRead(t *testing.T) {
	each(t, peer.Producer, func(t *testing.T, c peer.Case) {
		stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: 2})
		succeed(t, peer.StartProducer(c.Name, stream.Handler()))
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
	})
}
