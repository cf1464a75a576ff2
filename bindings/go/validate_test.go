// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/corpus"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// openFletching loads the library by path, after which the loader also finds it by name.
func openFletching(t *testing.T) {
	t.Helper()
	gpu.Open(t, "libfletching.so")
}

func rulesOf(findings []fletching.Finding) (rules []string) {
	for _, finding := range findings {
		rules = append(rules, finding.Rule)
	}
	return rules
}

func TestCheckCorpusArrayFindsExpectedRule(t *testing.T) {
	openFletching(t)
	corpus.Each(t, corpus.Array, func(t *testing.T, c corpus.Case) {
		schema := must(fletching.ImportSchema(unsafe.Pointer(c.ExportSchema(t))))
		defer schema.Close()
		array := must(fletching.ImportDeviceArray(unsafe.Pointer(c.ExportArray(t))))
		defer array.Close()
		shape := must(array.Check(schema, fletching.ValidateShape))
		if isFound := !c.Accepted && !c.NeedsData(); (len(shape) > 0) != isFound {
			t.Errorf("shape: %v", shape)
		}
		all := must(array.Check(schema, fletching.ValidateData))
		if (len(all) == 0) != c.Accepted || (c.Rule() != "" && !slices.Contains(rulesOf(all), c.Rule())) {
			t.Errorf("expected %q, got %v", c.Rule(), all)
		}
	})
}

// intsOf returns an int32 array in C memory.
func intsOf() *fletching.Array { return must(fletching.FromValues([]int32{1, 2})) }

func schemaOf(format string) *fletching.Schema {
	return must((&fletching.SchemaBuilder{Format: format}).Build())
}

func TestCheckArrayOfOtherTypeDescribesFinding(t *testing.T) {
	openFletching(t)
	array, ints, texts := intsOf(), schemaOf("i"), schemaOf("u")
	defer ints.Close()
	defer texts.Close()
	if findings := must(array.Check(ints, fletching.ValidateShape)); findings != nil {
		t.Errorf("a correct array: %v", findings)
	}
	findings := must(array.Check(texts, fletching.ValidateShape))
	if len(findings) != 1 || findings[0].Severity != "error" || findings[0].Party != "producer" {
		t.Fatalf("%+v", findings)
	}
	var text strings.Builder
	succeed(t, printFindings(&text, array, texts))
	if text.String() != "array: n_buffers is wrong: expected 3, got 2 (rule array.n-buffers-of-type)\n" {
		t.Error(text.String())
	}
	array.Close()
	_, err := array.Check(ints, fletching.ValidateShape)
	expectErrno(t, err, syscall.EINVAL)
}

func TestCheckRejectsInvalidArguments(t *testing.T) {
	openFletching(t)
	array := intsOf()
	defer array.Close()
	_, err := array.Check(nil, fletching.ValidateShape)
	expectErrno(t, err, syscall.EINVAL)
	schema := schemaOf("i")
	defer schema.Close()
	_, err = array.Check(schema, 9)
	expectErrno(t, err, syscall.EINVAL)
	_, err = new(fletching.ArrayStream).Validate(fletching.ValidateShape)
	expectErrno(t, err, syscall.EINVAL)
	var noArray *fletching.DeviceArray
	expectClosed(t, "a nil array", onlyError(noArray.Check(schema, fletching.ValidateShape)))
	expectClosed(t, "a closed array", onlyError(new(fletching.DeviceArray).Check(schema, fletching.ValidateShape)))
	expectClosed(t, "a closed host array", onlyError(new(fletching.Array).Check(schema, fletching.ValidateShape)))
}

func expectErrno(t *testing.T, err error, code syscall.Errno) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("expected %v, got %v", code, err)
	}
}

// intStream yields empty arrays with the buffers of an int32, without declaring their type.
func intStream(format string) *fletching.ArrayStream {
	return must(fletching.NewArrayStream(schemaOf(format), func(yield func(*fletching.Array, error) bool) {
		for yield(must((&fletching.ArrayBuilder{Buffers: []uintptr{0, 0}}).Build(nil)), nil) {
		}
	}))
}

func TestValidateStreamReportsBatchOfOtherTypeAtShapeLevel(t *testing.T) {
	openFletching(t)
	for level, count := range map[fletching.ValidationLevel]int{fletching.ValidateProtocol: 0, fletching.ValidateShape: 1} {
		for format, expected := range map[string]int{"i": 0, "u": count} {
			stream := intStream(format)
			found := must(stream.Validate(level))
			must(stream.Schema()).Close()
			must(stream.Next()).Close()
			stream.Close()
			findings := found.Take()
			if len(findings) != expected || expected == 1 && !strings.Contains(findings[0].History, "get_next") {
				t.Errorf("level %d, %q: %+v", level, format, findings)
			}
			if again := found.Take(); again != nil {
				t.Errorf("taken twice: %v", again)
			}
		}
	}
}

func TestValidateStreamUnderStressHidesPrivateData(t *testing.T) {
	openFletching(t)
	for _, stress := range [][]fletching.Stress{nil, {fletching.StressMove, fletching.StressPrivateData}} {
		stream := intStream("i")
		found := must(stream.Validate(fletching.ValidateShape, stress...))
		must(stream.Schema()).Close()
		raw := new(abi.ArrowArray)
		succeed(t, must(stream.Next()).Export(unsafe.Pointer(raw)))
		if isAddress := raw.PrivateData%4 == 0; isAddress != (stress == nil) { // all bits of a hidden address are inverted
			t.Errorf("%v: %#x", stress, raw.PrivateData)
		}
		callbacks.ReleaseArrowArray(raw)
		stream.Close()
		if findings := found.Take(); findings != nil {
			t.Errorf("%v: %v", stress, findings)
		}
	}
}

// handlerOf returns a stream with a validated handler.
func handlerOf(t *testing.T) (*fletching.AsyncStream, unsafe.Pointer, fletching.Findings) {
	openFletching(t)
	stream := fletching.NewAsyncStream(background, fletching.AsyncOptions{})
	var handler unsafe.Pointer
	found := must(sendValidated(stream, func(given unsafe.Pointer) { handler = given }))
	return stream, handler, found
}

func TestValidateHandlerCorrectStreamReportsNoFinding(t *testing.T) {
	stream, handler, found := handlerOf(t)
	batches := func(yield func(*fletching.DeviceArray, error) bool) { yield(must(intsOf().ToDevice()), nil) }
	sent := make(chan error)
	go func() { sent <- fletching.Send(background, schemaOf("i"), abi.DeviceCPU, batches, handler) }()
	count := 0
	for batch, err := range stream.All(background) {
		if err != nil {
			t.Fatal(err)
		}
		batch.Close()
		count++
	}
	stream.Close()
	if err := <-sent; err != nil || count != 1 {
		t.Error(err, count)
	}
	if findings := found.Take(); findings != nil {
		t.Errorf("%v", findings)
	}
}

func TestValidateHandlerReportsBatchBeforeSchema(t *testing.T) {
	stream, handler, found := handlerOf(t)
	defer stream.Close()
	raw := (*abi.ArrowAsyncDeviceStreamHandler)(handler)
	if code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(raw, nil, 0); code != int32(syscall.EINVAL) {
		t.Error(code)
	}
	callbacks.ReleaseArrowAsyncDeviceStreamHandler(raw)
	if rules := rulesOf(found.Take()); !slices.Contains(rules, "async-schema.first-and-once") {
		t.Error(rules)
	}
}

func TestValidateHandlerRejectsNil(t *testing.T) {
	openFletching(t)
	_, _, err := fletching.ValidateHandler(nil, fletching.ValidateShape)
	expectErrno(t, err, syscall.EINVAL)
}

func TestValidateStreamsOnSeveralGoroutines(t *testing.T) {
	openFletching(t)
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			stream := intStream("u")
			found := must(stream.Validate(fletching.ValidateShape))
			must(stream.Schema()).Close()
			must(stream.Next()).Close()
			must(stream.Next()).Close()
			stream.Close()
			if findings := found.Take(); len(findings) != 2 || findings[0].Path >= findings[1].Path {
				t.Errorf("expected the older first: %v", findings)
			}
		}()
	}
	group.Wait()
}

func TestValidateStreamDuringCallReturnsEBUSY(t *testing.T) {
	openFletching(t)
	var stream *fletching.ArrayStream
	stream = must(fletching.NewArrayStream(schemaOf("i"), func(func(*fletching.Array, error) bool) {
		_, err := stream.Validate(fletching.ValidateShape)
		expectErrno(t, err, syscall.EBUSY)
		stream.Close()
	}))
	if _, err := stream.Next(); err != io.EOF {
		t.Error(err)
	}
	_, err := stream.Validate(fletching.ValidateShape)
	expectErrno(t, err, syscall.EINVAL)
}

// deviceStream yields one empty array with the buffers of an int32.
func deviceStream(format string) *fletching.DeviceArrayStream {
	return must(fletching.NewDeviceArrayStream(schemaOf(format), abi.DeviceCPU, func(yield func(*fletching.DeviceArray, error) bool) {
		yield(must((&fletching.ArrayBuilder{Buffers: []uintptr{0, 0}}).BuildOn(abi.DeviceCPU, -1, 0, nil)), nil)
	}))
}

func TestValidateDeviceStreamReportsBatchOfOtherType(t *testing.T) {
	openFletching(t)
	for format, expected := range map[string][]string{"i": nil, "u": {"array.n-buffers-of-type"}} {
		if rules := rulesOf(must(readValidated(deviceStream(format)))); !slices.Equal(rules, expected) {
			t.Errorf("%q: %v", format, rules)
		}
	}
}

func TestReportLiveCountsBatchOfCaller(t *testing.T) {
	openFletching(t)
	batch := deviceStream("i")
	found := must(batch.Validate(fletching.ValidateProtocol))
	array := must(batch.Next())
	batch.Close()
	if live := must(fletching.ReportLive()); live < 1 || len(found.Take()) != 1 {
		t.Errorf("%d", live)
	}
	array.Close()
}
