// SPDX-License-Identifier: Apache-2.0

package fletching

import (
	"iter"
	"syscall"
)

// source runs an iterator on a goroutine of its own, one item for each request. iter.Pull does not
// serve here: its coroutine has to be resumed with the thread lock with which it was made, and a
// callback from C runs locked to its thread, any other as a rule; the runtime ends the process then.
type source[T any] struct {
	batches  iter.Seq2[T, error]
	requests chan struct{} // closed by stop
	results  chan result[T]
}

type result[T any] struct {
	batch T
	err   error
}

// next returns the next item, and no more after the last. It is not called again after that.
func (s *source[T]) next() (batch T, err error, more bool) {
	if s.requests == nil {
		s.requests = make(chan struct{}, 1)
		s.results = make(chan result[T], 1)
		go s.run()
	}
	s.requests <- struct{}{}
	item, more := <-s.results
	return item.batch, item.err, more
}

// stop returns when the iterator has returned.
func (s *source[T]) stop() {
	if s.requests == nil {
		return
	}
	close(s.requests)
	for item := range s.results {
		discard(item.batch)
	}
}

func (s *source[T]) run() {
	var err error = NewError(syscall.EIO, "iterator: ended by runtime.Goexit: expected a return", nil)
	defer close(s.results)
	defer func() {
		if err != nil {
			s.results <- result[T]{err: err}
		}
	}()
	if _, requested := <-s.requests; requested {
		err = guarded(func() error {
			s.batches(s.yield)
			return nil
		})
	}
}

// yield waits for the next request.
func (s *source[T]) yield(batch T, err error) bool {
	s.results <- result[T]{batch, err}
	_, requested := <-s.requests
	return requested
}
