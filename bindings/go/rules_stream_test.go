// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"io"
	"math"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// The rules that a consumer keeps towards a foreign stream, once for both kinds.

func TestRuleStreamResultEndChecked(t *testing.T)       { checksTheEnd(t, importPlain) }
func TestRuleDeviceStreamResultEndChecked(t *testing.T) { checksTheEnd(t, importOnDevice) }

func checksTheEnd(t *testing.T, open importer) {
	s := newScript(t, 2)
	stream := open(s)
	for length := int64(1); length <= 2; length++ {
		batch := must(stream.next())
		if batch.Length() != length {
			t.Error(batch.Length())
		}
		batch.Close()
	}
	for range 2 {
		if _, err := stream.next(); err != io.EOF {
			t.Error(err)
		}
	}
	if stream.Close(); s.calls["get_next"] != 3 {
		t.Errorf("expected 3 calls, got %d", s.calls["get_next"])
	}
	s.log.expect(t, "batch", "batch")
}

func TestRuleStreamResultReleasedIndependently(t *testing.T) { releasesEach(t, importPlain) }
func TestRuleDeviceStreamResultReleasedIndependently(t *testing.T) {
	releasesEach(t, importOnDevice)
}

func releasesEach(t *testing.T, open importer) {
	s := newScript(t, 2)
	stream := open(s)
	schema, first, second := must(stream.Schema()), must(stream.next()), must(stream.next())
	stream.Close()
	s.log.expect(t)
	if schema.Format() != "i" || second.Length() != 2 {
		t.Error(schema.Format(), second.Length())
	}
	second.Close()
	s.log.expect(t, "batch")
	schema.Close()
	s.log.expect(t, "schema")
	first.Close()
	s.log.expect(t, "batch")
}

func TestRuleStreamErrnoRead(t *testing.T) {
	for code, expected := range map[int32]syscall.Errno{
		int32(syscall.ENOSPC): syscall.ENOSPC, -1: syscall.EIO, math.MinInt32: syscall.EIO,
	} {
		keepsErrno(t, importPlain, code, expected)
		keepsErrno(t, importOnDevice, code, expected)
	}
}

func TestRuleStreamErrnoRecognized(t *testing.T) {
	for _, code := range []syscall.Errno{syscall.EINVAL, syscall.ENOMEM, syscall.EIO, math.MaxInt32} {
		keepsErrno(t, importPlain, int32(code), code)
		keepsErrno(t, importOnDevice, int32(code), code)
	}
}

func keepsErrno(t *testing.T, open importer, code int32, expected syscall.Errno) {
	t.Helper()
	s := newScript(t, 3)
	s.codes[2] = code
	stream := open(s)
	must(stream.next()).Close()
	for range 2 { // the stream is dead: no callback is called any more
		expectError(t, second(stream.next()), expected, foreignText)
		expectError(t, second(stream.Schema()), expected, foreignText)
	}
	stream.Close()
	if s.calls["get_next"] != 2 || s.calls["get_schema"] != 0 || s.calls["get_last_error"] != 1 || s.calls["release"] != 1 {
		t.Error(s.calls)
	}
}

func TestRuleStreamErrorTextCopied(t *testing.T)       { copiesTheText(t, importPlain) }
func TestRuleDeviceStreamErrorTextCopied(t *testing.T) { copiesTheText(t, importOnDevice) }

func copiesTheText(t *testing.T, open importer) {
	s := newScript(t, 0)
	s.codes[1] = int32(syscall.EIO)
	stream := open(s)
	_, err := stream.next()
	copy(s.text, "overwritten!!!!!")
	expectError(t, err, syscall.EIO, foreignText)
	stream.Close()
}

func TestRuleStreamErrorTextNullAccepted(t *testing.T)       { acceptsNoText(t, importPlain) }
func TestRuleDeviceStreamErrorTextNullAccepted(t *testing.T) { acceptsNoText(t, importOnDevice) }

func acceptsNoText(t *testing.T, open importer) {
	s := newScript(t, 0)
	s.codes[1], s.text = int32(syscall.ENOSPC), nil
	stream := open(s)
	_, err := stream.next()
	var ours *fletching.Error
	if !errors.As(err, &ours) || ours.Message != "" || !errors.Is(err, syscall.ENOSPC) || err.Error() == "" {
		t.Errorf("%v", err)
	}
	stream.Close()
}

func TestRuleStreamGetLastErrorOnlyAfterError(t *testing.T)       { asksForNoText(t, importPlain) }
func TestRuleDeviceStreamGetLastErrorOnlyAfterError(t *testing.T) { asksForNoText(t, importOnDevice) }

func asksForNoText(t *testing.T, open importer) {
	s := newScript(t, 1)
	stream := open(s)
	must(stream.Schema()).Close()
	must(stream.next()).Close()
	_, _ = stream.next()
	must(stream.Schema()).Close()
	if stream.Close(); s.calls["get_last_error"] != 0 {
		t.Error(s.calls)
	}
}

func TestRuleStreamGetSchemaNotAfterRelease(t *testing.T) { nothingAfterRelease(t, importPlain) }
func TestRuleDeviceStreamGetSchemaNotAfterRelease(t *testing.T) {
	nothingAfterRelease(t, importOnDevice)
}
func TestRuleStreamGetNextNotAfterRelease(t *testing.T)       { nothingAfterRelease(t, importPlain) }
func TestRuleDeviceStreamGetNextNotAfterRelease(t *testing.T) { nothingAfterRelease(t, importOnDevice) }
func TestRuleStreamGetLastErrorNotAfterRelease(t *testing.T)  { nothingAfterRelease(t, importPlain) }
func TestRuleDeviceStreamGetLastErrorNotAfterRelease(t *testing.T) {
	nothingAfterRelease(t, importOnDevice)
}

// The script notes a call after the release. The last call has failed, or not.
func nothingAfterRelease(t *testing.T, open importer) {
	for _, code := range []int32{0, int32(syscall.EIO)} {
		s := newScript(t, 2)
		s.codes[1] = code
		stream := open(s)
		if batch, err := stream.next(); err == nil {
			batch.Close()
		}
		stream.Close()
		before := s.calls["get_last_error"]
		for range 2 {
			expectClosed(t, "next", second(stream.next()))
			expectClosed(t, "schema", second(stream.Schema()))
			stream.Close()
		}
		if !stream.IsReleased() || s.calls["get_last_error"] != before || s.calls["release"] != 1 {
			t.Error(s.calls)
		}
	}
	var released abi.ArrowDeviceArrayStream
	released.GetNext = nowhere
	if _, err := fletching.ImportDeviceArrayStream(unsafe.Pointer(&released)); err == nil {
		t.Error("a released stream is imported")
	}
}

func TestRuleStreamCallsSerialized(t *testing.T)       { callsOneAtATime(t, importPlain) }
func TestRuleDeviceStreamCallsSerialized(t *testing.T) { callsOneAtATime(t, importOnDevice) }

// A second call while get_next runs, and Close, which leaves the release to the first.
func callsOneAtATime(t *testing.T, open importer) {
	s := newScript(t, 1)
	s.entered, s.left = make(chan struct{}), make(chan struct{})
	stream := open(s)
	done := make(chan error, 1)
	go func() {
		batch, err := stream.next()
		if err == nil {
			batch.Close()
		}
		done <- err
	}()
	<-s.entered
	for _, err := range []error{second(stream.next()), second(stream.Schema())} {
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("expected EBUSY, got %v", err)
		}
	}
	stream.Close()
	close(s.left)
	if err := <-done; err != nil || s.calls["release"] != 1 {
		t.Error(err, s.calls)
	}
	s.log.expect(t, "batch")
}

func TestRuleStreamPrivateDataUntouched(t *testing.T)       { leavesPrivateData(t, importPlain) }
func TestRuleDeviceStreamPrivateDataUntouched(t *testing.T) { leavesPrivateData(t, importOnDevice) }

// Every callback compares it.
func leavesPrivateData(t *testing.T, open importer) {
	s := newScript(t, 1)
	s.codes[2] = int32(syscall.EIO)
	stream := open(s)
	must(stream.Schema()).Close()
	must(stream.next()).Close()
	_, _ = stream.next()
	stream.Close()
	for _, callback := range []string{"get_schema", "get_next", "get_last_error", "release"} {
		if s.calls[callback] == 0 {
			t.Errorf("%s: not called", callback)
		}
	}
}

// --- Device types -------------------------------------------------------------------------------

// readOn reads a batch on a device type from a stream on another, and returns the rules of the warnings.
func readOn(t *testing.T, promised, found abi.DeviceType, strict bool) (rules []string, err error) {
	t.Helper()
	s := newScript(t, 1)
	s.types = []abi.DeviceType{found}
	stream := importOnDevice(s).(deviceReading)
	raw := bits[abi.ArrowDeviceArrayStream](t, stream)
	raw.DeviceType = promised
	again := must(fletching.ImportDeviceArrayStream(unsafe.Pointer(raw)))
	defer again.Close()
	again.Options = fletching.Options{Strict: strict, OnWarning: func(warning fletching.Warning) { rules = append(rules, warning.Rule) }}
	batch, err := again.Next()
	if err == nil {
		batch.Close()
	}
	s.log.expect(t, "batch")
	return rules, err
}

func TestRuleDeviceStreamOneDeviceType(t *testing.T) {
	if rules, err := readOn(t, abi.DeviceCUDA, abi.DeviceCUDA, true); err != nil || rules != nil {
		t.Error(rules, err)
	}
	rules, err := readOn(t, abi.DeviceCUDA, abi.DeviceCUDAManaged, false)
	if err != nil || len(rules) != 1 || rules[0] != "device-stream.one-device-type" {
		t.Error(rules, err)
	}
	_, err = readOn(t, abi.DeviceCUDA, abi.DeviceCUDAManaged, true)
	expectError(t, err, syscall.EINVAL, "(rule device-stream.one-device-type)")
}

func TestRuleDeviceStreamResultAccessible(t *testing.T) {
	for _, c := range []struct {
		promised, found abi.DeviceType
		accessible      bool
	}{
		{abi.DeviceCPU, abi.DeviceCUDAHost, true}, {abi.DeviceCPU, abi.DeviceCUDAManaged, true},
		{abi.DeviceCPU, abi.DeviceCUDA, false}, {abi.DeviceCUDA, abi.DeviceCPU, false},
		{abi.DeviceCUDAManaged, abi.DeviceCUDA, false}, {abi.DeviceVPI, abi.DeviceCPU, false},
		{abi.DeviceCUDA, 9999, false}, {9999, abi.DeviceCPU, false}, {9999, 9999, true},
	} {
		_, err := readOn(t, c.promised, c.found, false)
		if c.accessible {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		expectError(t, err, syscall.EINVAL, "memory that the stream's devices may not access (rule device-stream-result.accessible)")
	}
}

// --- Callbacks that are NULL --------------------------------------------------------------------

func TestRuleStreamCallbacksSet(t *testing.T) {
	refusesNull(t, importPlain, "(rule stream.callbacks-set)")
	raw := bits[abi.ArrowArrayStream](t, must(fletching.NewArrayStream(intSchema(), func(func(*fletching.Array, error) bool) {})))
	if raw.GetSchema == 0 || raw.GetNext == 0 || raw.GetLastError == 0 || raw.Release == 0 {
		t.Errorf("%+v", raw)
	}
	callbacks.CallArrowArrayStreamRelease(raw)
}

func TestRuleDeviceStreamCallbacksSet(t *testing.T) {
	refusesNull(t, importOnDevice, "(rule device-stream.callbacks-set)")
	raw := rawStream(t, newStream(emptyBatches))
	if raw.GetSchema == 0 || raw.GetNext == 0 || raw.GetLastError == 0 || raw.Release == 0 {
		t.Errorf("%+v", raw)
	}
	callbacks.CallArrowDeviceArrayStreamRelease(raw)
}

func refusesNull(t *testing.T, open importer, rule string) {
	t.Helper()
	for _, callback := range []string{"get_schema", "get_next"} {
		s := newScript(t, 1)
		stream := open(s, callback)
		schema, err := stream.Schema()
		if callback == "get_next" {
			schema.Close()
			s.log.expect(t, "schema")
			_, err = stream.next()
		}
		expectError(t, err, syscall.EINVAL, callback+": NULL")
		expectError(t, err, syscall.EINVAL, rule)
		if stream.Close(); s.calls["get_last_error"] != 0 || s.calls["release"] != 1 {
			t.Error(s.calls)
		}
	}
	s := newScript(t, 1)
	s.codes[1] = int32(syscall.ENOSPC)
	stream := open(s, "get_last_error")
	expectError(t, second(stream.next()), syscall.ENOSPC, "")
	stream.Close()
}
