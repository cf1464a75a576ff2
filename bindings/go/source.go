// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"io"
	"iter"
	"syscall"
)

// Reader is a source of batches for exported streams. *ArrayStream and *DeviceArrayStream implement it. Next
// is called on the thread that calls get_next, by one thread at a time, until it returns io.EOF or another
// error. Close is called when the stream is released.
type Reader[T any] interface {
	Next() (T, error)
	Close()
}

// iterator runs an iterator on a separate goroutine, one item for each Next. iter.Pull cannot be used: its
// coroutine must be resumed with the same thread lock with which it was created. Callbacks from C run locked
// to their thread, other code usually does not, and the runtime terminates the process on a mismatch.
type iterator[T any] struct {
	batches  iter.Seq2[T, error]
	requests chan struct{} // closed by Close
	results  chan result[T]
}

// readerOf returns nil for a nil iterator.
func readerOf[T any](batches iter.Seq2[T, error]) Reader[T] {
	if batches == nil {
		return nil
	}
	return &iterator[T]{batches: batches}
}

type result[T any] struct {
	batch T
	err   error
}

// Next must not be called again after an error.
func (i *iterator[T]) Next() (T, error) {
	if i.requests == nil {
		i.requests = make(chan struct{}, 1)
		i.results = make(chan result[T], 1)
		go i.run()
	}
	i.requests <- struct{}{}
	item := <-i.results
	return item.batch, item.err
}

// Close waits for the return of the iterator.
func (i *iterator[T]) Close() {
	if i.requests == nil {
		return
	}
	close(i.requests)
	for item := range i.results {
		discard(item.batch)
	}
}

func (i *iterator[T]) run() {
	var err error = NewError(syscall.EIO, "iterator: ended by runtime.Goexit: expected a return", nil)
	defer func() {
		i.results <- result[T]{err: err}
		close(i.results)
	}()
	if _, requested := <-i.requests; requested {
		err = guarded(func() error {
			i.batches(i.yield)
			return io.EOF
		})
	}
}

// yield waits for the next request.
func (i *iterator[T]) yield(batch T, err error) bool {
	i.results <- result[T]{batch, err}
	_, requested := <-i.requests
	return requested
}
