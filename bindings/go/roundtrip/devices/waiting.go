package main

import (
	"errors"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

// batch is an array, and a copy of its bits for the producer to read. The bits are an object of their own, since
// C may be passed no object that has pointers of Go in it.
type batch struct {
	owner *fletching.DeviceArray
	bits  *abi.ArrowDeviceArray
}

// requireWaits checks that with the gate shut no event has happened, and a wait on a queue returns at once
// and holds back what is read there, while a read on another queue completes. It opens the gate: then the
// new data are read, the host's wait returns, and the events have happened.
func (r *run) requireWaits(gate *producer.Gate, batches []batch) error {
	careful, err := producer.NewQueue(r.device.backend)
	if err != nil {
		return err
	}
	defer careful.Destroy()
	careless, err := producer.NewQueue(r.device.backend)
	if err != nil {
		return err
	}
	defer careless.Destroy()
	defer gate.Open() // before the queues are destroyed, which wait for what is on them
	for i := range batches {
		if err := r.hold(careful, &batches[i]); err != nil {
			return err
		}
	}
	if err := r.requireOld(careless, batches); err != nil { // while this one completes, the other would have
		return err
	}
	idle, err := careful.IsIdle()
	if err := errors.Join(err, r.checks.Require(!idle, "a read on a queue that waits is done, and the gate is shut")); err != nil {
		return err
	}
	if err := gate.Open(); err != nil {
		return err
	}
	compared, err := careful.Verify(producer.New)
	if err := r.checks.Compared("the read on a queue that has waited", compared, err); err != nil {
		return err
	}
	for i := range batches {
		if err := r.device.synchronize(batches[i].owner); err != nil {
			return err
		}
		if err := r.requireReady(batches[i].owner, true); err != nil {
			return err
		}
	}
	return nil
}

// hold lets a queue wait for the event of a batch, and read it.
func (r *run) hold(queue *producer.Queue, b *batch) error {
	if err := r.checks.Require(b.owner.SyncEvent() != 0, "sync_event is NULL"); err != nil {
		return err
	}
	if err := r.requireReady(b.owner, false); err != nil {
		return err
	}
	if err := r.device.waitOn(b.owner, queue.Handle()); err != nil {
		return err
	}
	return queue.Read(r.name, b.bits)
}

// requireOld checks that a queue that has not waited reads the old data.
func (r *run) requireOld(careless *producer.Queue, batches []batch) error {
	for i := range batches {
		if err := careless.Read(r.name, batches[i].bits); err != nil {
			return err
		}
	}
	compared, err := careless.Verify(producer.Old)
	return r.checks.Compared("the read on a queue that has not waited", compared, err)
}

// requireOldWithoutWait is the negative control: with the gate shut a queue that has not waited reads the
// old data, at once. It opens the gate then.
func (r *run) requireOldWithoutWait(gate *producer.Gate, batches []batch) error {
	careless, err := producer.NewQueue(r.device.backend)
	if err != nil {
		return err
	}
	defer careless.Destroy()
	defer gate.Open()
	if err := r.requireOld(careless, batches); err != nil {
		return err
	}
	for i := range batches {
		if err := r.requireReady(batches[i].owner, false); err != nil {
			return err
		}
	}
	return gate.Open()
}

// requireNothingToWaitFor is for a device without queues: there is no event, and each operation reports
// that at once.
func (r *run) requireNothingToWaitFor(batches []batch) error {
	for i := range batches {
		array := batches[i].owner
		if err := errors.Join(
			r.checks.Require(array.SyncEvent() == 0, "there is an event on a device without queues"),
			r.requireReady(array, true),
			r.checks.Succeeded("wait_on", r.device.waitOn(array, 0)),
			r.checks.Succeeded("synchronize", r.device.synchronize(array)),
		); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) requireReady(array *fletching.DeviceArray, expected bool) error {
	ready, err := r.device.ready(array)
	if err != nil {
		return err
	}
	return r.checks.Require(ready == expected, "ready: expected %t, got %t", expected, ready)
}
