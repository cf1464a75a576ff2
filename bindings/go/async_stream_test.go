// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// --- The options and methods of an AsyncStream -------------------------------------------------------

func TestOnSchemaKeepsOrRejectsSchema(t *testing.T) {
	for how, expected := range map[string]syscall.Errno{"keep": 0, "close": syscall.EINVAL, "refuse": syscall.ENOMEM, "panic": syscall.EIO} {
		var live liveBatches
		live.Add(1)
		p, stream := created(t, AsyncOptions{OnSchema: func(schema *Schema, _ Metadata) error {
			expectText(t, schema.Format(), "i")
			switch how {
			case "close":
				schema.Close()
			case "refuse":
				return syscall.ENOMEM
			case "panic":
				panic("no")
			}
			return nil
		}})
		schema := intSchema()
		if err := schema.Attach(&live); err != nil {
			t.Fatal(err)
		}
		raw := peer.New[abi.ArrowSchema](1)
		if err := schema.Export(unsafe.Pointer(&raw[0])); err != nil {
			t.Fatal(err)
		}
		code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnSchema(p.handler, &raw[0])
		expectCode(t, code, expected)
		if raw[0].IsReleased() != (how == "keep" || how == "close") {
			t.Errorf("%s: released %t", how, raw[0].IsReleased())
		}
		callbacks.ReleaseArrowSchema(&raw[0])
		peer.Free(raw)
		if left := live.Load(); (left == 1) != (how == "keep") {
			t.Errorf("%s: %d left", how, left)
		}
		stream.Close()
		p.release()
		expectNone(t, &live)
	}
}

// The handler is freed after its release and the stream's Close, in any order.
func TestHandlerLivesUntilReleaseAndClose(t *testing.T) {
	for _, closeFirst := range []bool{false, true} {
		p, stream := opened(t, 1)
		handle, core := p.handler.PrivateData, stream.core
		if closeFirst {
			stream.Close()
		} else {
			p.release()
			p.release() // has no effect while the stream is open
		}
		if _, lives := callbacks.HandleValue(handle); !lives || core.users.Load() != 1 {
			t.Error("freed too early")
		}
		if closeFirst {
			p.release()
		} else {
			stream.Close()
		}
		if _, lives := callbacks.HandleValue(handle); lives || core.users.Load() != 0 || stream.Handler() != nil {
			t.Error("not freed")
		}
	}
}

func TestRequestAddsToWindow(t *testing.T) {
	p, stream := created(t, AsyncOptions{Window: 1})
	for _, n := range []int64{0, -1, math.MinInt64} {
		if err := stream.Request(n); !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
	}
	_ = stream.Request(4)
	expectText(t, p.take(), "")
	p.schema(intSchema())
	_ = stream.Request(math.MaxInt64)
	_ = stream.Request(2)
	expectText(t, p.take(), "request 5, request 9223372036854775807, request 2")
	expectCode(t, p.task(1), 0)
	p.release()
}

func TestWindowLimitsRequests(t *testing.T) {
	for window, expected := range map[int]string{
		0: "request 16", 1: "request 1, request 1, extract 1, request 1, extract 2, request 1, extract 3",
		4: "request 4, extract 1, request 2, extract 2, extract 3", 5: "request 5, extract 1, extract 2, request 3, extract 3",
	} {
		p, stream := opened(t, window)
		for rows := 1; rows <= 3 && window > 0; rows++ {
			p.task(rows)
			expectRows(t, []int64{nextRow(stream)}, int64(rows))
		}
		expectText(t, p.take(), expected)
		p.release()
	}
}

func TestWrongBatchErrorNamesDifference(t *testing.T) {
	closed := rowsOf(1)
	closed.Close()
	for expected, wrong := range map[string]*DeviceArray{
		"batch: device_type differs from the stream's: expected cpu, got cuda (rule async-producer.one-device-type)": onCUDA(rowsOf(1)),
		"batch: children or dictionary differ from the stream's schema (rule async-next.same-schema)":                must((&ArrayBuilder{Children: []ArrayBuilder{{}}}).BuildOn(abi.DeviceCPU, -1, 0, nil)),
		"batch: released: expected a live array": closed,
	} {
		p, stream := opened(t, 3)
		p.give(&givenTask{number: 1, batch: wrong}, nil)
		if err := failure(t, stream); err.Code != syscall.EINVAL || err.Message != expected {
			t.Error(err)
		}
		p.release()
	}
}

// The release of an ended stream extracts the queue, and Skip drops from these batches too.
func TestWrongBatchAfterEndKeepsOtherBatches(t *testing.T) {
	p, stream := opened(t, 3)
	p.give(&givenTask{number: 1, batch: onCUDA(rowsOf(1))}, nil)
	p.task(2)
	p.task(3)
	p.end()
	p.release()
	expectRows(t, []int64{nextRow(stream)}, -22)
	if !stream.Skip() {
		t.Error("nothing to skip")
	}
	expectRows(t, allRows(stream), 3, 0)
}

func TestAsyncStreamWarnings(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var warnings []string
		p, stream := created(t, AsyncOptions{Options: Options{
			Strict: strict, OnWarning: func(w Warning) { warnings = append(warnings, w.Rule) },
		}})
		p.schema(intSchema())
		odd := rowsOf(1)
		odd.get().Reserved[1] = 1
		p.give(&givenTask{number: 1, batch: odd}, nil)
		found := nextRow(stream)
		if strict && found != -22 || !strict && (found != 1 || len(warnings) != 1 || warnings[0] != "device-array.reserved-zero") {
			t.Error(found, warnings)
		}
		p.release()
	}
}

// A batch that is dropped without NULL is extracted and released once.
func TestSkipReleasesExtractedBatch(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var live liveBatches
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		made := make(chan struct{}, 3)
		produce := func() (*DeviceArray, error) {
			made <- struct{}{}
			if fails {
				return nil, syscall.ENOSPC
			}
			return live.batch(1), nil
		}
		sent := start(func() error {
			return AsyncProducer{DeviceType: abi.DeviceCPU, Open: func(context.Context) (*Schema, seqOfBatches, error) {
				return intSchema(), func(yield func(AsyncBatch, error) bool) { yield(AsyncBatch{Make: produce}, nil) }, nil
			}}.Send(context.Background(), stream.Handler())
		})
		for !stream.Skip() {
			runtime.Gosched()
		}
		<-made
		if err := <-sent; err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		expectNone(t, &live)
		stream.Close()
	}
}

func TestRuleAsyncTaskNullDrops(t *testing.T) {
	p, stream := opened(t, 9) // with DropWithNull
	p.task(1)
	p.task(2)
	if !stream.Skip() {
		t.Error("nothing to skip")
	}
	stream.Close()
	expectText(t, p.take(), "request 9, drop 1, cancel, drop 2")
	p.release()
}

// --- Both sides --------------------------------------------------------------------------------------

func TestAsyncMetadata(t *testing.T) {
	ofStream, ofBatch := Metadata{{"stream", ""}, {"", "b\x00c"}}, Metadata{{"a", ""}, {"a", "again"}}
	for _, pairs := range []struct{ stream, batch Metadata }{{ofStream, ofBatch}, {nil, nil}} {
		stream := NewAsyncStream(context.Background(), AsyncOptions{})
		sent := start(func() error {
			return AsyncProducer{DeviceType: abi.DeviceCUDA, Metadata: pairs.stream, Open: func(context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
				return intSchema(), func(yield func(AsyncBatch, error) bool) { yield(AsyncBatch{onCUDA(rowsOf(1)), nil, pairs.batch}, nil) }, nil
			}}.Send(context.Background(), stream.Handler())
		})
		batch, found, err := stream.Next(context.Background())
		if row(batch, err) != 1 || !slices.Equal(found, pairs.batch) || !slices.Equal(stream.Metadata(), pairs.stream) || stream.DeviceType() != abi.DeviceCUDA {
			t.Error(found, stream.Metadata(), stream.DeviceType(), err)
		}
		expectRows(t, allRows(stream), 0)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		stream.Close()
	}
}

func TestRuleAsyncProducerMetadataLives(t *testing.T) {
	p := newConsumerPeer(t)
	p.inside = func(string) {
		if value, _ := must(metadataAt(p.object().AdditionalMetadata)).Get("key"); value != "value" {
			t.Error("the metadata is gone")
		}
	}
	sendTo(t, p, AsyncProducer{Metadata: Metadata{{"key", "value"}}}, nil).run()
	expectText(t, p.take(), "schema, end, release")
}

func TestRuleAsyncProducerFreedByProducer(t *testing.T) {
	p := newConsumerPeer(t)
	h := sendTo(t, p, AsyncProducer{}, items(endless))
	h.run()
	handle := h.producer.PrivateData
	p.cancel()
	if _, lives := callbacks.HandleValue(handle); !lives {
		t.Error("freed before the release")
	}
	h.run()
	h.freed = true
	h.free()
	if _, lives := callbacks.HandleValue(handle); lives {
		t.Error("not freed")
	}
}
