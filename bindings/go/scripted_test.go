// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// script is a foreign stream of either kind: what it returns, and what its consumer did.
type script struct {
	log     log
	batches int              // of the lengths 1, 2, ...
	codes   map[int]int32    // what get_next returns instead of a batch, by call
	schema  int32            // what get_schema returns
	text    []byte           // of C, or nil
	entered chan struct{}    // get_next waits for left, unless it is nil
	left    chan struct{}    //
	handle  uintptr          // private_data
	calling sync.Mutex       // during a call
	mistake error            // of the consumer
	calls   map[string]int   // by callback
	failed  bool             // the last call
	types   []abi.DeviceType // of the batches; that of the stream beyond
}

const foreignText = "the foreign text"

func newScript(t *testing.T, batches int) *script {
	t.Helper()
	s := &script{batches: batches, codes: map[int]int32{}, calls: map[string]int{}, text: peer.New[byte](len(foreignText) + 1)}
	copy(s.text, foreignText)
	text := s.text
	t.Cleanup(func() {
		peer.Free(text)
		if s.mistake != nil {
			t.Error(s.mistake)
		}
	})
	return s
}

// enter begins a call, and returns its end.
func (s *script) enter(callback string, privateData uintptr) func() {
	if !s.calling.TryLock() {
		s.mistake = errors.New(callback + ": during another call")
		return func() {}
	}
	s.calls[callback]++
	switch {
	case privateData != s.handle:
		s.mistake = errors.New(callback + ": another private_data")
	case s.calls["release"] > 1 || s.calls["release"] == 1 && callback != "release":
		s.mistake = errors.New(callback + ": after the release")
	case callback == "get_last_error" && !s.failed:
		s.mistake = errors.New("get_last_error: the last call has not failed")
	}
	return s.calling.Unlock
}

func (s *script) getSchema(privateData uintptr, out *abi.ArrowSchema) int32 {
	defer s.enter("get_schema", privateData)()
	if s.failed = s.schema != 0; s.failed {
		return s.schema
	}
	schema := intSchema()
	_ = schema.Attach(&note{&s.log, "schema"})
	_ = schema.Export(unsafe.Pointer(out))
	return 0
}

// getNext returns a batch, a released one for the end, or a code.
func (s *script) getNext(privateData uintptr) (abi.ArrowArray, int32) {
	defer s.enter("get_next", privateData)()
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.left
	}
	call := s.calls["get_next"]
	if code := s.codes[call]; code != 0 {
		s.failed = true
		return abi.ArrowArray{}, code
	}
	if s.failed = false; call > s.batches {
		return abi.ArrowArray{}, 0
	}
	raw := rawArray(&s.log, "batch", 0, false)
	raw.Length = int64(call)
	return raw, 0
}

func (s *script) getLastError(privateData uintptr) uintptr {
	defer s.enter("get_last_error", privateData)()
	if s.text == nil {
		return 0
	}
	return uintptr(unsafe.Pointer(&s.text[0]))
}

func (s *script) release(privateData uintptr) {
	defer s.enter("release", privateData)()
	callbacks.DeleteHandle(s.handle)
}

// plainScript and deviceScript have the callbacks.
type plainScript struct{ *script }

func (s plainScript) GetSchema(self *abi.ArrowArrayStream, out *abi.ArrowSchema) int32 {
	return s.getSchema(self.PrivateData, out)
}

func (s plainScript) GetNext(self *abi.ArrowArrayStream, out *abi.ArrowArray) (code int32) {
	*out, code = s.getNext(self.PrivateData)
	return code
}

func (s plainScript) GetLastError(self *abi.ArrowArrayStream) uintptr {
	return s.getLastError(self.PrivateData)
}

func (s plainScript) Release(self *abi.ArrowArrayStream) { s.release(self.PrivateData) }

type deviceScript struct{ *script }

func (s deviceScript) GetSchema(self *abi.ArrowDeviceArrayStream, out *abi.ArrowSchema) int32 {
	return s.getSchema(self.PrivateData, out)
}

func (s deviceScript) GetNext(self *abi.ArrowDeviceArrayStream, out *abi.ArrowDeviceArray) (code int32) {
	*out = abi.ArrowDeviceArray{DeviceType: self.DeviceType, DeviceID: 3}
	if out.Array, code = s.getNext(self.PrivateData); len(s.types) >= s.calls["get_next"] {
		out.DeviceType = s.types[s.calls["get_next"]-1]
	}
	return code
}

func (s deviceScript) GetLastError(self *abi.ArrowDeviceArrayStream) uintptr {
	return s.getLastError(self.PrivateData)
}

func (s deviceScript) Release(self *abi.ArrowDeviceArrayStream) { s.release(self.PrivateData) }

// reading is a stream of either kind.
type reading interface {
	Schema() (*fletching.Schema, error)
	next() (readBatch, error)
	IsReleased() bool
	Close()
}

type readBatch interface {
	Length() int64
	Close()
}

type plainReading struct{ *fletching.ArrayStream }

func (r plainReading) next() (readBatch, error) { return r.Next() }

type deviceReading struct{ *fletching.DeviceArrayStream }

func (r deviceReading) next() (readBatch, error) { return r.Next() }

// kinds of streams: how the stream of a script is imported, but for the callbacks that are removed.
type importer func(s *script, without ...string) reading

func remove[Schema, Next, Text ~uintptr](callbacks []string, schema *Schema, next *Next, text *Text) {
	for _, callback := range callbacks {
		switch callback {
		case "get_schema":
			*schema = 0
		case "get_next":
			*next = 0
		case "get_last_error":
			*text = 0
		}
	}
}

func importPlain(s *script, without ...string) reading {
	s.handle = callbacks.NewHandle(plainScript{s})
	raw := abi.ArrowArrayStream{
		GetSchema: callbacks.ArrowArrayStreamGetSchemaStub(), GetNext: callbacks.ArrowArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowArrayStreamGetLastErrorStub(), Release: callbacks.ArrowArrayStreamReleaseStub(),
		PrivateData: s.handle,
	}
	remove(without, &raw.GetSchema, &raw.GetNext, &raw.GetLastError)
	return plainReading{must(fletching.ImportArrayStream(unsafe.Pointer(&raw)))}
}

func importOnDevice(s *script, without ...string) reading {
	s.handle = callbacks.NewHandle(deviceScript{s})
	raw := abi.ArrowDeviceArrayStream{
		DeviceType: abi.DeviceCUDA,
		GetSchema:  callbacks.ArrowDeviceArrayStreamGetSchemaStub(), GetNext: callbacks.ArrowDeviceArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowDeviceArrayStreamGetLastErrorStub(), Release: callbacks.ArrowDeviceArrayStreamReleaseStub(),
		PrivateData: s.handle,
	}
	remove(without, &raw.GetSchema, &raw.GetNext, &raw.GetLastError)
	return deviceReading{must(fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw)))}
}
