// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// OnWarning ends the goroutine, like testing.T.FailNow.
func TestGoexitInOnWarningFailsStream(t *testing.T) {
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

// A nil pointer in an error is an error whose methods panic.
func TestNilErrorPointerReturnsEIO(t *testing.T) {
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
		sent <- fletching.Send(context.Background(), intSchema(), abi.DeviceCUDA, batches, handler)
	}()
	_, _, err := consumer.Next(context.Background())
	expectError(t, err, syscall.EIO, "producer: failed without a message")
	if err := <-sent; err != error(none) {
		t.Errorf("expected the error of the iterator, got %v", err)
	}
}

// Close may be called at any time. The race detector checks this; the type must not be another stream's type.
func TestDeviceTypeDuringClose(t *testing.T) {
	for range 100 {
		stream := newStream(func(func(*fletching.DeviceArray, error) bool) {})
		var wait sync.WaitGroup
		wait.Add(1)
		go func() {
			defer wait.Done()
			if found := stream.DeviceType(); found != abi.DeviceCUDA && found != 0 {
				t.Errorf("expected cuda or none, got %v", found)
			}
		}()
		stream.Close()
		wait.Wait()
	}
}

func TestClosedStreamReturnsErrClosed(t *testing.T) {
	stream := newStream(func(func(*fletching.DeviceArray, error) bool) {})
	expectError(t, stream.Export(nil), syscall.EINVAL, "Export: address is nil")
	stream.Close()
	raw := new(abi.ArrowDeviceArrayStream)
	if err := stream.Export(unsafe.Pointer(raw)); !errors.Is(err, fletching.ErrClosed) {
		t.Error(err)
	}
	if found := stream.DeviceType(); found != 0 {
		t.Errorf("expected no device type, got %v", found)
	}
}
