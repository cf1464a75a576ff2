package main

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/roundtrip/cells"
	"github.com/fletching/fletching/bindings/go/roundtrip/dump"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

const (
	batchCount = 3
	failAt     = 2 // before the third
	never      = -1
)

// run is what one cell works with.
type run struct {
	device    *device
	name      string // of the case
	direction direction
	checks    cells.Checks
	hooked    int64
	seen      atomic.Int64 // releases, by values that were attached
	closers   []func()     // the last first
}

func (r *run) defers(closer func()) { r.closers = append(r.closers, closer) }

// end releases what the cell has, and destroys the gate behind it.
func (r *run) end() {
	for len(r.closers) > 0 {
		last := r.closers[len(r.closers)-1]
		r.closers = r.closers[:len(r.closers)-1]
		last()
	}
}

func (r *run) gate() (*producer.Gate, error) {
	gate, err := producer.NewGate(r.device.backend, r.device.hasQueues())
	if err == nil {
		r.defers(gate.Destroy)
	}
	return gate, err
}

func (r *run) failAt() int64 {
	if r.direction.fails {
		return failAt
	}
	return never
}

type hook struct {
	seen *atomic.Int64
}

func (h hook) Close() { h.seen.Add(1) }

// hook counts the release of an owner.
func (r *run) hook(owner interface{ Attach(any) error }) error {
	if err := owner.Attach(hook{&r.seen}); err != nil {
		return err
	}
	r.hooked++
	return nil
}

// content is what was received, as raw structs, and how a stream ended: nil when it did well.
type content struct {
	schema     *abi.ArrowSchema
	batches    []*abi.ArrowDeviceArray
	deviceType abi.DeviceType
	ended      error
}

// newContent returns an empty one. What it has at the end of the cell is released.
func (r *run) newContent(deviceType abi.DeviceType) *content {
	c := &content{schema: &abi.ArrowSchema{}, deviceType: deviceType}
	r.defers(func() {
		callbacks.ReleaseArrowSchema(c.schema)
		for _, batch := range c.batches {
			callbacks.ReleaseArrowArray(&batch.Array)
		}
	})
	return c
}

// addBatch moves an owner in.
func (c *content) addBatch(owner *fletching.DeviceArray) error {
	raw := &abi.ArrowDeviceArray{}
	c.batches = append(c.batches, raw)
	return owner.Export(unsafe.Pointer(raw))
}

// received is the content in owners, which are closed at the end, and copies of the bits for the producer to
// read.
type received struct {
	schema     *fletching.Schema
	schemaBits *abi.ArrowSchema
	batches    []batch
}

// receive moves the content in.
func (r *run) receive(c *content) (*received, error) {
	schema, err := fletching.ImportSchema(unsafe.Pointer(c.schema))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(r.hook(schema), schema.Export(unsafe.Pointer(c.schema))); err != nil {
		return nil, err
	}
	bits := *c.schema
	to := &received{schemaBits: &bits}
	if to.schema, err = fletching.ImportSchema(unsafe.Pointer(c.schema)); err != nil {
		return nil, err
	}
	r.defers(to.schema.Close)
	for i := range c.batches {
		b, err := r.receiveBatch(c.batches[i])
		if err != nil {
			return nil, err
		}
		to.batches = append(to.batches, b)
	}
	return to, nil
}

func (r *run) receiveBatch(raw *abi.ArrowDeviceArray) (b batch, err error) {
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(raw))
	if err != nil {
		return b, err
	}
	if err := errors.Join(r.hook(array), array.Export(unsafe.Pointer(raw))); err != nil {
		return b, err
	}
	bits := *raw
	b.bits = &bits
	if b.owner, err = fletching.ImportDeviceArray(unsafe.Pointer(raw)); err == nil {
		r.defers(b.owner.Close)
	}
	return b, err
}

// requireDumps compares every field, before any release is hooked: a hook is another private_data.
func (r *run) requireDumps(c *content) error {
	for i := range c.batches {
		text, err := dump.Of(c.schema, c.batches[i])
		if err != nil {
			return err
		}
		lines, err := producer.VerifyDump(text)
		if err := r.checks.Compared("dump", lines, err); err != nil {
			return err
		}
	}
	return nil
}

// requireArrived hooks everything, and does the steps of the direction.
func (r *run) requireArrived(gate *producer.Gate, c *content) (*received, error) {
	arrived, err := r.receive(c)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.device.hasQueues():
		err = r.requireNothingToWaitFor(arrived.batches)
	case r.direction.control:
		err = r.requireOldWithoutWait(gate, arrived.batches)
	default:
		err = r.requireWaits(gate, arrived.batches)
	}
	if err != nil {
		return nil, err
	}
	for i := range arrived.batches {
		verified := producer.VerifyArray(r.device.backend, r.name, arrived.schemaBits, arrived.batches[i].bits)
		if err := r.checks.Succeeded("verification", verified); err != nil {
			return nil, err
		}
	}
	return arrived, nil
}
