// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// --- Tasks and requests -----------------------------------------------------------------------------

func TestRuleAsyncTaskExtractedOnce(t *testing.T) {
	// Taken, skipped, and dropped by a cancel before and after they arrive.
	p, stream := opened(t, 4)
	p.task(1)
	p.task(2)
	expectRows(t, []int64{nextRow(stream)}, 1)
	if !stream.Skip() {
		t.Error("nothing to skip")
	}
	expectText(t, p.take(), "request 4, extract 1, request 2, drop 2")
	p.task(3)
	stream.Close()
	p.task(4)
	expectText(t, p.take(), "cancel, drop 3, drop 4")
	p.release()
}

func TestRuleAsyncTaskNullDrops(t *testing.T) {
	p, stream := opened(t, 9)
	p.task(1)
	if !stream.Skip() || stream.Skip() {
		t.Error("expected one to skip")
	}
	expectText(t, p.take(), "request 9, drop 1")
	p.end()
	p.release()
}

func TestRuleAsyncTaskArrayReleasedSeparately(t *testing.T) {
	var live live
	p, stream := opened(t, 9)
	for rows := 1; rows <= 3; rows++ {
		p.give(&givenTask{number: rows, batch: live.batch(rows)}, nil)
	}
	first, _, err := stream.Next(context.Background())
	p.end()
	// What is queued is extracted in the release of a stream that has ended.
	p.release()
	expectText(t, p.take(), "request 9, extract 1, extract 2, extract 3")
	second, _, err2 := stream.Next(context.Background())
	if !stream.Skip() || stream.Skip() {
		t.Error("what is kept can be skipped")
	}
	expectRows(t, []int64{live.Load(), nextRow(stream)}, 2, 0)
	stream.Close()
	expectRows(t, []int64{row(first, err), row(second, err2)}, 1, 2)
	expectNone(t, &live)
}

func TestRuleAsyncTaskExtractSet(t *testing.T) {
	p, stream := opened(t, 1)
	raw := peer.New[abi.ArrowAsyncTask](1)
	defer peer.Free(raw)
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(p.handler, &raw[0], 0)
	expectCode(t, code, syscall.EINVAL)
	expectText(t, failure(t, stream).Message, "task.extract_data: NULL: expected a callback")
	p.release()
	// A producer sets it.
	q, h := started(t, rowsOf(1), endless)
	q.request(1)
	h.run()
	if q.tasks[0].ExtractData == 0 {
		t.Error("NULL")
	}
}

func TestRuleAsyncRequestNeeded(t *testing.T) {
	p, stream := created(t, AsyncOptions{Window: 3})
	_ = stream.Request(4)
	expectText(t, p.take(), "")
	p.schema(intSchema())
	_ = stream.Request(1)
	expectText(t, p.take(), "request 7, request 1")
	p.release()
}

func TestRuleAsyncRequestPositive(t *testing.T) {
	p, stream := opened(t, -1)
	for _, n := range []int64{0, -1, math.MinInt64} {
		if err := stream.Request(n); !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
	}
	expectText(t, p.take(), "")
	p.release()
}

func TestTheDemandStopsAtTheLargestValue(t *testing.T) {
	p, stream := created(t, AsyncOptions{Window: 1})
	_ = stream.Request(math.MaxInt64)
	p.schema(intSchema())
	_ = stream.Request(math.MaxInt64)
	_ = stream.Request(2)
	expectText(t, p.take(), "request 9223372036854775807, request 9223372036854775807, request 2")
	expectCode(t, p.task(1), 0)
	p.release()
}

func TestTheWindowOfAnAsyncStream(t *testing.T) {
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

func TestRuleAsyncCancelLateCallsAccepted(t *testing.T) {
	for _, ends := range []bool{false, true} {
		p, stream := opened(t, 2)
		p.task(1)
		stream.Close()
		expectCode(t, p.task(2), 0)
		if ends {
			expectCode(t, p.end(), 0)
		} else {
			p.fail(71, "too late")
		}
		p.release()
		expectText(t, p.take(), "request 2, cancel, drop 1, drop 2")
	}
}

func TestAnExtractionThatFailsEndsTheStream(t *testing.T) {
	p, stream := opened(t, 3)
	p.give(&givenTask{number: 1, batch: rowsOf(1), code: 71}, nil)
	p.task(2)
	if err := failure(t, stream); err.Code != 71 || err.Message != "extract_data: failed without a message" {
		t.Error(err)
	}
	p.fail(71, "") // which the application knows
	expectRows(t, allRows(stream), -71)
	expectText(t, p.take(), "request 3, extract 1, drop 2")
	p.release()
}

func TestAWrongBatchCancelsTheStream(t *testing.T) {
	var live live
	closed := rowsOf(1)
	closed.Close()
	for expected, wrong := range map[string]*DeviceArray{
		"batch: device_type differs from the stream's: expected cpu, got cuda (rule async-producer.one-device-type)": onCUDA(live.batch(1)),
		"batch: released: expected a live array": closed,
	} {
		p, stream := opened(t, 3)
		p.give(&givenTask{number: 1, batch: wrong}, nil)
		p.task(2)
		if err := failure(t, stream); err.Code != syscall.EINVAL || err.Message != expected {
			t.Error(err)
		}
		expectText(t, p.take(), "request 3, extract 1, cancel, drop 2")
		p.release()
	}
	expectNone(t, &live)
	p, stream := created(t, AsyncOptions{})
	p.schema(must((&SchemaBuilder{Format: "+s", Children: []SchemaBuilder{{Format: "i"}}}).Build()))
	p.task(1)
	if text := failure(t, stream).Message; !strings.HasSuffix(text, "(rule async-next.same-schema)") {
		t.Error(text)
	}
	p.release()
}

func TestAWrongBatchAfterTheEndIsLostAlone(t *testing.T) {
	p, stream := opened(t, 3)
	p.give(&givenTask{number: 1, batch: onCUDA(rowsOf(1))}, nil)
	p.task(2)
	p.end()
	p.release()
	expectRows(t, []int64{nextRow(stream), nextRow(stream), nextRow(stream)}, -22, 2, 0)
}

func TestWarningsOfAnAsyncStream(t *testing.T) {
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

func TestRuleAsyncTaskPrivateDataUntouched(t *testing.T) {
	p, stream := opened(t, 1) // the extraction finds its task by it
	p.task(1)
	p.end()
	expectRows(t, allRows(stream), 1, 0)
	p.release()
}

func TestRuleAsyncProducerPrivateDataUntouched(t *testing.T) {
	p, stream := opened(t, 1)
	before := p.objects[0].PrivateData
	stream.Close()
	p.release()
	expectText(t, p.take(), "request 1, cancel")
	if p.objects[0].PrivateData != before {
		t.Error("changed")
	}
}

// A batch that is dropped without NULL is extracted and released, once.
func TestSkipReleasesExtractedBatch(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var live live
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
