// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// wrongBatches are arrays that do not match a schema, with the expected message.
var wrongBatches = []struct {
	name    string
	schema  fletching.SchemaBuilder
	batch   func() *fletching.Array
	message string
}{
	{"format", fletching.SchemaBuilder{Format: "l"}, func() *fletching.Array {
		return must(fletching.FromValues([]float64{1.5}))
	}, `expected format "l", got "g"`},
	{"width", fletching.SchemaBuilder{Format: "I"}, func() *fletching.Array {
		return must(fletching.FromValues([]uint8{1, 2, 3, 4}))
	}, `expected format "I", got "C"`},
	{"no values", fletching.SchemaBuilder{Format: "I"}, func() *fletching.Array {
		return must(fletching.FromValues([]uint8{}))
	}, `expected format "I", got "C"`},
	{"children", nested("l"), making(fletching.ArrayBuilder{}), "expected 2 children, got 0"},
	{"children below", nested("l"), making(fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{{}, {}}}),
		`field "a": expected 1 children, got 0`},
	{"dictionary", nested("l"), making(fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{
		{Children: []fletching.ArrayBuilder{{}}}, {}}}), `field "b": expected a dictionary, got none`},
	{"no dictionary", fletching.SchemaBuilder{Format: "i"}, making(fletching.ArrayBuilder{Dictionary: &fletching.ArrayBuilder{}}),
		"expected no dictionary, got one"},
	{"declared", nested("g"), func() *fletching.Array {
		array := fitting()
		array.DeclareType(func() (*fletching.SchemaBuilder, error) {
			declared := nested("l")
			return &declared, nil
		})
		return array
	}, `field "a.items": expected format "g", got "l"`},
}

// nested returns the schema of a record batch with a list of items and a dictionary.
func nested(items string) fletching.SchemaBuilder {
	return fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{
		{Format: "+l", Name: "a", Children: []fletching.SchemaBuilder{{Format: items, Name: "items"}}},
		{Format: "i", Name: "b", Dictionary: &fletching.SchemaBuilder{Format: "u"}},
	}}
}

func making(builder fletching.ArrayBuilder) func() *fletching.Array {
	return func() *fletching.Array { return must(builder.Build(nil)) }
}

// fitting returns an array of unknown type that matches nested.
func fitting() *fletching.Array {
	return making(fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{
		{Children: []fletching.ArrayBuilder{{}}}, {Dictionary: &fletching.ArrayBuilder{}},
	}})()
}

func noted(array *fletching.Array, log *log) *fletching.Array {
	if err := array.Attach(&note{log, "released"}); err != nil {
		panic(err)
	}
	return array
}

// listReader returns the batches made by a list of functions.
type listReader[T any] struct {
	next    int
	batches []func() T
}

func (m *listReader[T]) Next() (T, error) {
	if m.next == len(m.batches) {
		var none T
		return none, io.EOF
	}
	m.next++
	return m.batches[m.next-1](), nil
}

func (m *listReader[T]) Close() {}

func fits(schema fletching.SchemaBuilder) *fletching.Array {
	if schema.Format == "+s" {
		return fitting()
	}
	return must((&fletching.ArrayBuilder{Buffers: []uintptr{0, 0}}).Build(nil))
}

func expectWrong(t *testing.T, err error, message string) {
	t.Helper()
	if !errors.Is(err, syscall.EINVAL) || err == nil || !strings.Contains(err.Error(), "batch 1: "+message) {
		t.Errorf("expected EINVAL with %q, got %v", "batch 1: "+message, err)
	}
}

// Each function passes two batches, of which the second does not match the schema, and returns the error.
var refusals = map[string]func(schema *fletching.Schema, fits, wrong *fletching.Array) error{
	"array stream": func(schema *fletching.Schema, fits, wrong *fletching.Array) error {
		stream := must(fletching.NewArrayStream(schema, func(yield func(*fletching.Array, error) bool) {
			_ = yield(fits, nil) && yield(wrong, nil)
		}))
		defer stream.Close()
		must(stream.Next()).Close()
		return onlyError(stream.Next())
	},
	"device array stream": func(schema *fletching.Schema, fits, wrong *fletching.Array) error {
		stream := must(fletching.NewDeviceArrayStream(schema, abi.DeviceCPU, onHost(fits, wrong)))
		defer stream.Close()
		must(stream.Next()).Close()
		return onlyError(stream.Next())
	},
	"send": func(schema *fletching.Schema, fits, wrong *fletching.Array) error {
		consumer := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{})
		defer consumer.Close()
		go func() {
			for batch, err := range consumer.All(context.Background()) {
				if err == nil {
					batch.Close()
				}
			}
		}()
		return fletching.Send(context.Background(), schema, abi.DeviceCPU, onHost(fits, wrong), consumer.Handler())
	},
}

func onHost(batches ...*fletching.Array) deviceBatches {
	return func(yield func(*fletching.DeviceArray, error) bool) {
		for _, batch := range batches {
			if !yield(batch.ToDevice()) {
				return
			}
		}
	}
}

func TestBatchOfOtherTypeIsRejected(t *testing.T) {
	for _, each := range wrongBatches {
		for way, refuse := range refusals {
			t.Run(each.name+"/"+way, func(t *testing.T) {
				var log log
				expectWrong(t, refuse(must(each.schema.Build()), fits(each.schema), noted(each.batch(), &log)), each.message)
				log.expect(t, "released")
			})
		}
	}
}

func TestSendRejectsDeferredBatchOfOtherType(t *testing.T) {
	each := wrongBatches[0]
	consumer := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{})
	defer consumer.Close()
	sent := make(chan error, 1)
	go func() {
		sent <- fletching.AsyncProducer{
			DeviceType: abi.DeviceCPU,
			Open: func(ctx context.Context) (*fletching.Schema, iter.Seq2[fletching.AsyncBatch, error], error) {
				return must(each.schema.Build()), func(yield func(fletching.AsyncBatch, error) bool) {
					for _, batch := range []func() *fletching.Array{
						func() *fletching.Array { return fits(each.schema) },
						func() *fletching.Array { return each.batch() },
					} {
						if !yield(fletching.AsyncBatch{Make: func() (*fletching.DeviceArray, error) { return batch().ToDevice() }}, nil) {
							return
						}
					}
					<-ctx.Done() // the end must not overtake the failure
				}, nil
			},
		}.Send(context.Background(), consumer.Handler())
	}()
	batch, _, err := consumer.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	batch.Close()
	if batch, _, err = consumer.Next(context.Background()); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if batch != nil {
		batch.Close()
	}
	expectWrong(t, <-sent, each.message)
}

// A part of an array of known type also has a known type.
func TestStreamRejectsPartOfArrayOfOtherType(t *testing.T) {
	array := func() *fletching.Array {
		array := fitting()
		array.DeclareType(func() (*fletching.SchemaBuilder, error) {
			declared := nested("l")
			return &declared, nil
		})
		return array
	}
	for name, each := range map[string]struct {
		part   func() *fletching.Array
		format string
	}{
		"child":      {func() *fletching.Array { return must(must(array().TakeChild(0)).TakeChild(0)) }, "l"},
		"dictionary": {func() *fletching.Array { return must(must(array().TakeChild(1)).TakeDictionary()) }, "u"},
		"column":     {func() *fletching.Array { return must(must(must(must(array().Share()).Column(0)).Share()).Column(0)) }, "l"},
		"device": {func() *fletching.Array {
			shared := must(must(array().ToDevice()).Share())
			return must(must(must(must(shared.View()).TakeChild(0)).TakeChild(0)).ToHost())
		}, "l"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nextOfFloats(t, each.part)
			expectError(t, err, syscall.EINVAL, fmt.Sprintf(`batch 0: expected format "g", got %q`, each.format))
		})
	}
	part, err := nextOfFloats(t, func() *fletching.Array { return must(must(fitting().TakeChild(0)).TakeChild(0)) })
	if err != nil {
		t.Fatalf("part of an array of unknown type: %v", err)
	}
	part.Close()
}

// nextOfFloats returns the first batch of a float64 stream with the function's batch.
func nextOfFloats(t *testing.T, batch func() *fletching.Array) (*fletching.Array, error) {
	stream := must(fletching.NewArrayStreamFrom(must((&fletching.SchemaBuilder{Format: "g"}).Build()),
		&listReader[*fletching.Array]{batches: []func() *fletching.Array{batch}}))
	t.Cleanup(stream.Close)
	return stream.Next()
}

func TestStreamAcceptsOtherNamesFlagsAndMetadata(t *testing.T) {
	declared := nested("l")
	declared.Children[0].Name, declared.Children[0].Flags = "other", abi.FlagNullable
	declared.Metadata = fletching.Metadata{{Key: "k", Value: "v"}}
	stream := must(fletching.NewArrayStreamFrom(must((&declared).Build()), &listReader[*fletching.Array]{
		batches: []func() *fletching.Array{func() *fletching.Array {
			array := fitting()
			array.DeclareType(func() (*fletching.SchemaBuilder, error) {
				declared := nested("l")
				return &declared, nil
			})
			return array
		}}}))
	defer stream.Close()
	must(stream.Next()).Close()
	if _, err := stream.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestNewArrayStreamRejectsMalformedSchema(t *testing.T) {
	schema := must((&fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{{Format: "i"}}}).Build())
	must(schema.TakeChild(0)).Close()
	if _, err := fletching.NewArrayStream(schema, func(func(*fletching.Array, error) bool) {}); !errors.Is(err, syscall.EINVAL) || schema.IsReleased() {
		t.Error(err)
	}
	schema.Close()
}
