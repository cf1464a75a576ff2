// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// onlyError drops the result of a call.
func onlyError[T any](_ T, err error) error { return err }

func TestNilArgumentsReturnEINVAL(t *testing.T) {
	var noContext context.Context
	var noSchema *fletching.Schema
	var noIterator iter.Seq2[*fletching.DeviceArray, error]
	schema := intSchema()
	defer schema.Close()
	batches := emptyBatches
	hostStream := must(fletching.NewArrayStream(intSchema(), func(func(*fletching.Array, error) bool) {}))
	defer hostStream.Close()
	consumer := fletching.NewAsyncStream(background, fletching.AsyncOptions{})
	defer consumer.Close()
	waits := waiterArray(t, abi.DeviceExtDev, func() {})
	defer waits.Close()
	succeed(t, fletching.RegisterWaiter(abi.DeviceExtDev, &checkingWaiter{t: t}))
	defer fletching.UnregisterWaiter(abi.DeviceExtDev)
	for name, err := range map[string]error{
		"schema of a stream":     onlyError(fletching.NewArrayStream(noSchema, func(func(*fletching.Array, error) bool) {})),
		"iterator of a stream":   onlyError(fletching.NewArrayStream(schema, nil)),
		"reader of a stream":     onlyError(fletching.NewArrayStreamFrom(schema, nil)),
		"device schema":          onlyError(fletching.NewDeviceArrayStream(noSchema, abi.DeviceCUDA, batches)),
		"device iterator":        onlyError(fletching.NewDeviceArrayStream(schema, abi.DeviceCUDA, noIterator)),
		"device reader":          onlyError(fletching.NewDeviceArrayStreamFrom(schema, abi.DeviceCUDA, nil)),
		"context of All":         allError(hostStream.All(noContext)),
		"context of Synchronize": waits.Synchronize(noContext),
		"async schema context":   onlyError(consumer.Schema(noContext)),
		"async next context":     nextError(consumer, noContext),
		"async stream context":   nextError(fletching.NewAsyncStream(noContext, fletching.AsyncOptions{}), background),
		"type to compare":        (&fletching.SchemaBuilder{Format: "i"}).CheckType(nil),
		"handler":                fletching.Send(background, intSchema(), abi.DeviceCUDA, batches, nil),
	} {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: expected EINVAL, got %v", name, err)
		}
	}
	if schema.IsReleased() {
		t.Error("a refused stream has taken the schema")
	}
	canceled, cancel := context.WithCancelCause(background)
	cancel(errors.New("enough"))
	expectError(t, allError(hostStream.All(canceled)), syscall.ECANCELED, "All: enough")
	released := new(abi.ArrowSchema)
	_, err := fletching.ImportSchema(unsafe.Pointer(released))
	expectError(t, err, syscall.EINVAL, "ImportSchema: schema is released: expected a live struct")
}

// A release by C ignores attached nil pointers.
func TestNilOwnersCanBeAttached(t *testing.T) {
	schema := intSchema()
	succeed(t, schema.Attach((*fletching.Shared[*fletching.Array])(nil)))
	succeed(t, schema.Attach((*fletching.Schema)(nil)))
	schema.Close()
}

func allError[T any](batches iter.Seq2[T, error]) (last error) {
	for _, err := range batches {
		last = err
	}
	return last
}

func nextError(consumer *fletching.AsyncStream, ctx context.Context) error {
	_, _, err := consumer.Next(ctx)
	return err
}

// The handler is released in any case.
func TestSendWithNilArgumentsReleasesHandler(t *testing.T) {
	var noContext context.Context
	batches := emptyBatches
	for name, send := range map[string]func(consumer *fletching.AsyncStream) error{
		"schema": func(consumer *fletching.AsyncStream) error {
			return fletching.Send(background, nil, abi.DeviceCUDA, batches, consumer.Handler())
		},
		"batches": func(consumer *fletching.AsyncStream) error {
			return fletching.Send(background, intSchema(), abi.DeviceCUDA, nil, consumer.Handler())
		},
		"context": func(consumer *fletching.AsyncStream) error {
			return fletching.Send(noContext, intSchema(), abi.DeviceCUDA, batches, consumer.Handler())
		},
		"Open": func(consumer *fletching.AsyncStream) error {
			return fletching.AsyncProducer{DeviceType: abi.DeviceCUDA}.Send(background, consumer.Handler())
		},
	} {
		consumer := fletching.NewAsyncStream(background, fletching.AsyncOptions{})
		if err := send(consumer); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: expected EINVAL, got %v", name, err)
		}
		if err := nextError(consumer, background); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: expected EINVAL at the consumer, got %v", name, err)
		}
		consumer.Close()
	}
}

// Calls the methods of zero values and of a closed array.
func TestZeroValuesAreClosed(t *testing.T) {
	shared := new(fletching.Shared[*fletching.Array])
	expectClosed(t, "view", onlyError(shared.View()))
	expectClosed(t, "column", onlyError(shared.Column(0)))
	if shared.Close(); !shared.IsReleased() || shared.NumColumns() != 0 {
		t.Error("a zero Shared has something")
	}
	var log log
	closed := importDeviceArray(t, rawDeviceArray(&log, "a", 1, true))
	closed.Close()
	log.expect(t, "a0", "ad", "a", "event")
	for _, array := range []*fletching.DeviceArray{new(fletching.DeviceArray), closed} {
		for name, err := range map[string]error{
			"Attach": array.Attach(1), "Share": onlyError(array.Share()), "TakeChild": onlyError(array.TakeChild(0)),
			"TakeDictionary": onlyError(array.TakeDictionary()), "ToHost": onlyError(array.ToHost()),
			"Export": array.Export(unsafe.Pointer(new(abi.ArrowDeviceArray))), "ReleaseAfter": array.ReleaseAfter(fletching.Stream{}),
			"ExportWithEvent": array.ExportWithEvent(fletching.Stream{}), "WaitOn": array.WaitOn(fletching.Stream{}),
			"Synchronize": array.Synchronize(background), "Ready": onlyError(array.Ready()),
			"ReadArray": onlyError(fletching.ReadArray(array.Root(), fletching.SchemaView{})), "Builder": onlyError(fletching.SchemaView{}.Builder()),
		} {
			expectClosed(t, name, err)
			if !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("%s: expected its name, got %v", name, err)
			}
		}
		if array.Close(); array.Child(-1).Length() != 0 || array.Dictionary().NumChildren() != 0 || array.Buffer(-1) != 0 || array.DeviceType() != 0 {
			t.Error("a closed array has something")
		}
	}
	log.expect(t)
	schema := new(fletching.Schema)
	expectClosed(t, "share of a schema", onlyError(schema.Share()))
	expectClosed(t, "attach to a schema", schema.Attach(1))
	if stream := new(fletching.ArrayStream); !errors.Is(onlyError(stream.Next()), fletching.ErrClosed) || !errors.Is(onlyError(stream.Schema()), fletching.ErrClosed) {
		t.Error("a zero stream is open")
	}
	if reader := (fletching.ColumnReader{}); reader.Len() != 0 || !errors.Is(onlyError(reader.Valid()), syscall.EINVAL) || !errors.Is(onlyError(reader.Strings()), syscall.EINVAL) {
		t.Error("a zero reader reads")
	}
	if _, _, err := fletching.NewRecordBatch(fletching.Column{}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("zero column: %v", err)
	}
}

func TestZeroAsyncStreamIsClosed(t *testing.T) {
	stream := new(fletching.AsyncStream)
	expectClosed(t, "async stream", onlyError(stream.Schema(background)))
	expectClosed(t, "async stream", nextError(stream, background))
	succeed(t, stream.Request(1))
	if stream.Close(); stream.Handler() != nil || stream.Skip() || stream.DeviceType() != 0 || stream.Metadata() != nil {
		t.Error("a zero async stream has something")
	}
}

// A type that contains itself.
func TestCheckTypeRejectsCyclicTypes(t *testing.T) {
	endless := &fletching.SchemaBuilder{Format: "i"}
	endless.Dictionary = endless
	expectError(t, endless.CheckType(endless), syscall.EINVAL, "nested too deep: expected at most 256 levels")

	deepest := &fletching.SchemaBuilder{Format: "i"}
	for range 255 {
		deepest = &fletching.SchemaBuilder{Format: "i", Dictionary: deepest}
	}
	succeed(t, deepest.CheckType(deepest))
}

// A declared type may have fewer children than the array.
func TestDeclaredTypeNilReturnsEINVAL(t *testing.T) {
	array := must((&fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{{}}}).Build(nil))
	defer array.Close()
	array.DeclareType(func() (*fletching.SchemaBuilder, error) { return nil, nil })
	child := must(array.TakeChild(0))
	stream := must(fletching.NewArrayStream(intSchema(), func(yield func(*fletching.Array, error) bool) { yield(child, nil) }))
	defer stream.Close()
	expectError(t, onlyError(stream.Next()), syscall.EINVAL, "batch 0: expected a type, got nil")
}

func emptyBatches(func(*fletching.DeviceArray, error) bool) {}
