// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
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
