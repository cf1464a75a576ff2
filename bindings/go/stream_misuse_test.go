// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// As testing.T.FailNow does.
func TestAWarningThatEndsTheGoroutine(t *testing.T) {
	var log log
	stream := newStream(func(yield func(*fletching.DeviceArray, error) bool) {
		raw := rawDeviceArray(&log, "a", 0, false)
		raw.Reserved[2] = 1
		yield(must(fletching.ImportDeviceArray(unsafe.Pointer(&raw))), nil)
		log.add("returned")
	})
	stream.Options.OnWarning = func(fletching.Warning) { runtime.Goexit() }
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = stream.Next()
	}()
	<-done
	log.expect(t, "a", "event")
	expectError(t, second(stream.Next()), syscall.EIO, "stream: a call ended by runtime.Goexit: expected a return")
	stream.Close()
	log.expect(t, "returned")
}

// An error that is a pointer and nil is an error all the same, whose methods panic.
func TestAnErrorWithMethodsThatPanic(t *testing.T) {
	var none *fletching.Error
	batches := func(yield func(*fletching.DeviceArray, error) bool) { yield(nil, none) }
	stream := newStream(batches)
	expectError(t, second(stream.Next()), syscall.EIO, "")
	stream.Close()

	consumer := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{})
	defer consumer.Close()
	sent := make(chan error)
	go func() {
		handler := consumer.Handler()
		sent <- fletching.SendAsync(context.Background(), intSchema(), abi.DeviceCUDA, batches, handler)
	}()
	_, _, err := consumer.Next(context.Background())
	expectError(t, err, syscall.EIO, "producer: failed without a message")
	if err := <-sent; err != error(none) {
		t.Errorf("expected the error of the iterator, got %v", err)
	}
}
