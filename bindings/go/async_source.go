// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"iter"
	"sync"
	"syscall"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// openBatches is the type of AsyncProducer.Open.
type openBatches = func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error)

// start reads the stream on a goroutine, unless the stream has already stopped.
func (s *asyncSending) start(open openBatches) {
	if !s.offer(func() {}) {
		close(s.sourceEnd)
		return
	}
	go func() {
		defer close(s.sourceEnd)
		var err error = NewError(syscall.EIO, "batches: ended by runtime.Goexit: expected a return", nil)
		defer func() {
			if s.user.Err() != nil { // which may be why the batches ended
				err = canceled("producer", s.user)
			}
			s.readAll(err)
		}()
		err = guarded(func() error { return s.read(open) })
	}()
}

// readAll is called after the last batch.
func (s *asyncSending) readAll(err error) {
	if err != nil {
		s.stop(asyncByFailure, err)
	}
	s.mutex.Lock()
	s.ended = true
	s.mutex.Unlock()
	s.wake()
}

func (s *asyncSending) read(open openBatches) (err error) {
	if open == nil {
		return invalid("AsyncProducer.Open: nil: expected a function")
	}
	schema, batches, err := open(s.source)
	if err != nil {
		discard(schema)
		return err
	}
	if schema == nil || schema.IsReleased() {
		return invalid("schema: released: expected a live schema")
	}
	if batches == nil {
		schema.Close()
		return noBatches("AsyncProducer.Open")
	}
	if s.types, err = typesOf("schema", schema); err != nil {
		discard(schema)
		return err
	}
	s.promise = asyncPromiseOf(schema.get(), s.promise.deviceType)
	if !s.offer(func() { s.schema = schema }) {
		schema.Close()
		return nil
	}
	if s.waitTaken(); s.source.Err() != nil {
		return nil
	}
	batches(func(batch AsyncBatch, problem error) bool {
		if problem == nil && s.source.Err() == nil {
			problem = s.pass(batch)
		} else {
			discard(batch.Array)
		}
		if problem != nil && err == nil {
			err = problem
		}
		return problem == nil && s.source.Err() == nil
	})
	return err
}

// offer returns false if the stream has stopped.
func (s *asyncSending) offer(set func()) bool {
	s.mutex.Lock()
	running := s.stopped == asyncRunning
	if running {
		set()
	}
	s.mutex.Unlock()
	s.wake()
	return running
}

// pass returns when the batch is being sent or the stream is over.
func (s *asyncSending) pass(batch AsyncBatch) error {
	task := asyncTasks.Get().(*asyncTask)
	task.sending, task.number = s, s.number
	s.number++
	var err error
	if task.metadata, err = encoded(batch.Metadata); err == nil && batch.Make == nil {
		task.slot, err = s.take(batch.Array, task.number)
	}
	if err != nil {
		discard(batch.Array)
		return err
	}
	task.make = batch.Make
	if !s.offer(func() { s.next = task }) {
		task.discard()
		return nil
	}
	s.waitTaken()
	return nil
}

// waitTaken waits until the last offer is taken or the stream is over.
func (s *asyncSending) waitTaken() {
	select {
	case <-s.taken:
	case <-s.source.Done():
	}
}

// take consumes an array. It closes an array that does not fit the stream.
func (s *asyncSending) take(array *DeviceArray, number int) (*slot[abi.ArrowDeviceArray], error) {
	if array == nil {
		return nil, invalid("batch: nil: expected an array")
	}
	taken, err := array.take("batch")
	if err != nil {
		return nil, err
	}
	if err = s.types.checkBatch("async-next.same-schema", number, &taken.raw.Array, array.known); err == nil {
		err = s.promise.check(taken.raw)
	}
	if err != nil {
		releaseSlot(taken)
		return nil, err
	}
	return taken, nil
}

func releaseSlot(taken *slot[abi.ArrowDeviceArray]) {
	taken.kind.release(taken.raw)
	taken.free()
}

// --- Tasks ----------------------------------------------------------------------------------------

// asyncTask is one batch, from the read to the consumer's extract_data. Tasks are pooled.
type asyncTask struct {
	sending  *asyncSending
	slot     *slot[abi.ArrowDeviceArray] // nil if the array is not made yet
	number   int                         // position in the stream, from 0
	make     func() (*DeviceArray, error)
	metadata []byte
}

var asyncTasks = sync.Pool{New: func() any { return new(asyncTask) }}

// nobody handles calls to an extracted task, and to the producer of a stream that did not begin.
type nobody struct{}

func (nobody) ExtractData(*abi.ArrowAsyncTask, *abi.ArrowDeviceArray) int32 {
	return abi.EINVAL
}

func (nobody) Request(*abi.ArrowAsyncProducer, int64) {}

func (nobody) Cancel(*abi.ArrowAsyncProducer) {}

var spent = callbacks.NewHandle(nobody{})

// ExtractData moves the array out or drops it. Of concurrent calls only one deletes the handle.
func (t *asyncTask) ExtractData(self *abi.ArrowAsyncTask, out *abi.ArrowDeviceArray) int32 {
	_, ours := callbacks.DeleteHandle(self.PrivateData)
	self.PrivateData = spent
	if !ours {
		return abi.EINVAL
	}
	err := guarded(func() error { return t.move(out) })
	if err != nil {
		t.sending.stop(asyncByFailure, err)
	}
	t.close()
	if err != nil {
		return codeOf(err)
	}
	return 0
}

func (t *asyncTask) move(out *abi.ArrowDeviceArray) (err error) {
	if out == nil {
		return nil
	}
	if t.slot == nil {
		array, err := t.make()
		if err != nil {
			discard(array)
			return err
		}
		if t.slot, err = t.sending.take(array, t.number); err != nil {
			return err
		}
	}
	*out = *t.slot.raw
	t.slot.free()
	t.slot = nil
	return nil
}

// discard releases the batch unless it was moved out, and returns the task to the pool.
func (t *asyncTask) discard() {
	if t.slot != nil {
		releaseSlot(t.slot)
	}
	*t = asyncTask{}
	asyncTasks.Put(t)
}

// takeBack drops a task that the consumer rejected and did not extract.
func takeBack(handle uintptr) {
	if value, ours := callbacks.DeleteHandle(handle); ours {
		value.(*asyncTask).close()
	}
}

// close ends a delivered task.
func (t *asyncTask) close() {
	s := t.sending
	t.discard()
	s.mutex.Lock()
	s.open--
	mayRelease := s.open == 0 && s.stopped != asyncRunning
	s.mutex.Unlock()
	if mayRelease {
		s.wake()
	}
}
