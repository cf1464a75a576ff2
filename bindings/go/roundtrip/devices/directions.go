package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

type direction struct {
	name    string
	work    func(*run) error
	control bool // read without a wait, and see the old data
	fails   bool // the stream does, midway
}

var directions = []direction{
	{"array", passArray, false, false},
	{"array_control", passArray, true, false},
	{"stream", passStream, false, false},
	{"stream_control", passStream, true, false},
	{"stream_failure", passStream, false, true},
	{"stream_failure_control", passStream, true, true},
	{"async", passAsync, false, false},
	{"async_control", passAsync, true, false},
	{"async_failure", passAsync, false, true},
	{"async_failure_control", passAsync, true, true},
	{"chain", passChain, false, false},
}

// concerns reports whether the device has the direction. Without queues there is nothing to see too early,
// and the cases have array and stream already.
func (d *direction) concerns(device *device) bool {
	return device.hasQueues() || d.name == "async" || d.name == "async_failure" || d.name == "chain"
}

func passArray(r *run) error {
	gate, err := r.gate()
	if err != nil {
		return err
	}
	c, err := r.exportArray(gate)
	if err != nil {
		return err
	}
	_, err = r.requireArrived(gate, c)
	return err
}

func (r *run) exportArray(gate *producer.Gate) (*content, error) {
	c := r.newContent(0)
	c.batches = []*abi.ArrowDeviceArray{{}}
	if err := gate.ExportArray(r.name, c.schema, c.batches[0]); err != nil {
		return nil, err
	}
	return c, r.requireDumps(c)
}

func passStream(r *run) error {
	gate, err := r.gate()
	if err != nil {
		return err
	}
	var raw abi.ArrowDeviceArrayStream
	if err := gate.ExportStream(r.name, batchCount, r.failAt(), &raw); err != nil {
		return err
	}
	stream, err := fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw))
	if err != nil {
		return err
	}
	c, err := r.readStream(stream)
	stream.Close() // the batches outlive it
	if err != nil {
		return err
	}
	if err := r.requireDumps(c); err != nil {
		return err
	}
	return r.requireContent(gate, c)
}

func (r *run) readStream(stream *fletching.DeviceArrayStream) (*content, error) {
	schema, err := stream.Schema()
	if err != nil {
		return nil, err
	}
	return r.readBatches(stream.DeviceType(), schema, stream.All(context.Background()))
}

func (r *run) readBatches(deviceType abi.DeviceType, schema *fletching.Schema, batches iter.Seq2[*fletching.DeviceArray, error]) (*content, error) {
	c := r.newContent(deviceType)
	if err := schema.Export(unsafe.Pointer(c.schema)); err != nil {
		return nil, err
	}
	for array, err := range batches {
		if err != nil {
			c.ended = err
		} else if err := c.addBatch(array); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// requireContent checks what a stream has returned, and how it ended.
func (r *run) requireContent(gate *producer.Gate, c *content) error {
	expected := int64(batchCount)
	if r.direction.fails {
		expected = failAt
	}
	if err := r.checks.Equal("the number of batches", int64(len(c.batches)), expected); err != nil {
		return errors.Join(err, c.ended)
	}
	if r.direction.fails {
		if err := r.requireFailure(c.ended); err != nil {
			return err
		}
	}
	arrived, err := r.requireArrived(gate, c)
	switch {
	case err != nil:
		return err
	case r.direction.fails:
		return r.requireKept(c, arrived)
	}
	return c.ended
}

// requireFailure checks that the errno value and the text are the producer's.
func (r *run) requireFailure(ended error) error {
	text := fmt.Sprintf("case %s: the stream fails on purpose before batch %d", r.name, failAt)
	var failure *fletching.Error
	found := errors.As(ended, &failure)
	if err := r.checks.Require(found, "the stream ends: expected a failure, got %v", ended); err != nil {
		return err
	}
	return errors.Join(
		r.checks.Require(failure.Code == syscall.EIO, "the errno value: expected EIO, got %d", failure.Code),
		r.checks.Require(failure.Message == text, "the text: expected '%s', got '%s'", text, failure.Message),
	)
}

// requireKept passes the batches and the failure on as a stream of Go's, in which the producer has to find
// both unchanged.
func (r *run) requireKept(c *content, arrived *received) error {
	stream, err := fletching.NewDeviceArrayStream(arrived.schema, c.deviceType, func(yield func(*fletching.DeviceArray, error) bool) {
		for i := range arrived.batches {
			if !yield(arrived.batches[i].owner, nil) {
				return
			}
		}
		yield(nil, c.ended)
	})
	if err != nil {
		return err
	}
	var raw abi.ArrowDeviceArrayStream
	if err := stream.Export(unsafe.Pointer(&raw)); err != nil {
		return err
	}
	verified := producer.VerifyStream(r.device.backend, r.name, batchCount, failAt, &raw)
	return r.checks.Succeeded("verification of the stream", verified)
}

// passChain sends an array through all languages, through this program, and through the first of them again,
// while the gate is shut.
func passChain(r *run) error {
	hops, err := loadHops()
	if err != nil {
		return err
	}
	before := make([]int64, len(hops))
	for i := range hops {
		before[i] = hops[i].exported()
	}
	if err := r.sendThrough(hops); err != nil {
		return err
	}
	r.end()
	for i := range hops {
		language := hops[i].language
		err = errors.Join(err,
			r.checks.Require(hops[i].exported() > before[i], "%s exported nothing", language),
			r.checks.Equal("the number of releases in "+language, hops[i].released(), hops[i].exported()))
	}
	return err
}

func (r *run) sendThrough(hops []hop) error {
	gate, err := r.gate()
	if err != nil {
		return err
	}
	c, err := r.exportArray(gate)
	if err != nil {
		return err
	}
	event := c.batches[0].SyncEvent
	for i := range hops {
		if err := hops[i].send(c.schema, c.batches[0]); err != nil {
			return err
		}
	}
	if err := r.hookRaw(c); err != nil {
		return err
	}
	if err := hops[0].send(c.schema, c.batches[0]); err != nil {
		return err
	}
	if err := r.checks.Require(c.batches[0].SyncEvent == event, "sync_event is another pointer than before"); err != nil {
		return err
	}
	_, err = r.requireArrived(gate, c)
	return err
}

// hookRaw is the program's own place in the chain.
func (r *run) hookRaw(c *content) error {
	schema, err := fletching.ImportSchema(unsafe.Pointer(c.schema))
	if err != nil {
		return err
	}
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(c.batches[0]))
	if err != nil {
		return err
	}
	return errors.Join(r.hook(schema), r.hook(array),
		schema.Export(unsafe.Pointer(c.schema)), array.Export(unsafe.Pointer(c.batches[0])))
}
