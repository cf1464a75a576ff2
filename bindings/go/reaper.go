// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "runtime.h"
import "C"

import (
	"sync"
	"time"

	"github.com/fletching/fletching/bindings/go/abi"
)

const (
	shortestPause = 20 * time.Microsecond
	longestPause  = 20 * time.Millisecond
	rest          = 50 // times the duration of a query of every entry
	longestRest   = 100 * time.Millisecond
	mostRefusals  = 4  // then every 16th time is often enough
	mostReleases  = 64 // at once: each may block a thread
)

// deferred is an array that is released when its event has passed.
type deferred struct {
	recorded *C.struct_recorded
	array    abi.ArrowArray
	// How often in a row the runtime has refused to answer, as far as it matters, and how often not
	// to ask from now on.
	refusals, skips uint
}

// reaper asks whether the work that reads an array has passed, on a goroutine that is there while
// something is pending. The release callbacks are called on goroutines of their own, so that a slow
// one delays no other.
type reaper struct {
	releases chan struct{}
	wake     chan struct{}
	exit     sync.Once
	mutex    sync.Mutex
	incoming []*deferred
	running  bool
	counts   ReleaseCounts
}

var theReaper = reaper{releases: make(chan struct{}, mostReleases), wake: make(chan struct{}, 1)}

// add takes an array that was moved.
func (r *reaper) add(entry *deferred) {
	r.exit.Do(func() { C.fletching_watch_exit() })
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.counts.Pending++
	r.incoming = append(r.incoming, entry)
	if !r.running {
		r.running = true
		go r.run()
	}
	select {
	case r.wake <- struct{}{}:
	default: // it is awake, and looks for new entries before it sleeps
	}
}

// ReleaseCounts are counts of the arrays that [DeviceArray.ReleaseAfter] has taken.
type ReleaseCounts struct {
	// Pending are arrays whose stream has not reached their point yet.
	Pending int64

	// Refused are, of these, those that the driver last said nothing about.
	Refused int64

	// LastRefusal is its newest error; empty when there was none.
	LastRefusal string

	// InheritedEvents are events that a release in a child of fork has left alone.
	InheritedEvents int64
}

// PendingReleases returns the counts as of now, in this process.
func PendingReleases() ReleaseCounts {
	theReaper.mutex.Lock()
	defer theReaper.mutex.Unlock()
	counts := theReaper.counts
	counts.InheritedEvents = int64(C.fletching_inherited_events())
	return counts
}

// run asks about new entries at once, and about every entry when that is due: often while things
// happen, then ever more rarely, and never for more than a fiftieth of the time.
func (r *reaper) run() {
	var entries []*deferred
	pause, due := shortestPause, time.Now()
	for {
		if len(entries) > 0 {
			r.sleep(time.Until(due))
		}
		known := len(entries)
		if entries = r.collect(entries); len(entries) == 0 {
			return
		}
		begin, count := time.Now(), len(entries)
		isDue := !begin.Before(due)
		if isDue {
			entries = r.handOver(entries, 0)
			pause = min(pause*2, longestPause)
		} else {
			entries = r.handOver(entries, known)
		}
		if known < count || len(entries) < count {
			pause = shortestPause
		}
		end := time.Now()
		switch next := end.Add(pause); {
		case isDue:
			due = end.Add(max(pause, min(end.Sub(begin)*rest, longestRest)))
		case next.Before(due):
			due = next
		}
	}
}

// sleep returns when something is due or new.
func (r *reaper) sleep(left time.Duration) {
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	}
}

// collect appends what is new. With nothing at all the goroutine ends.
func (r *reaper) collect(entries []*deferred) []*deferred {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	entries = append(entries, r.incoming...)
	r.incoming = nil
	r.running = len(entries) > 0
	return entries
}

// handOver lets what has passed be released, from an index on. It returns the rest.
func (r *reaper) handOver(entries []*deferred, from int) []*deferred {
	left := entries[:from]
	for _, entry := range entries[from:] {
		if r.hasPassed(entry) {
			go r.release(entry)
		} else {
			left = append(left, entry)
		}
	}
	clear(entries[len(left):])
	return left
}

// hasPassed asks the driver. An error says nothing about the work: however often it is returned, the
// array stays as it is, and is asked for again, ever more rarely.
func (r *reaper) hasPassed(entry *deferred) bool {
	if entry.skips > 0 {
		entry.skips--
		return false
	}
	var failure C.struct_failure
	passed := bool(C.fletching_has_passed(entry.recorded, &failure))
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if entry.refusals > 0 {
		r.counts.Refused--
	}
	switch {
	case passed:
		r.counts.Pending--
	case failure.code != 0:
		r.counts.Refused++
		r.counts.LastRefusal = errorOf(&failure).Error()
		entry.refusals = min(entry.refusals+1, mostRefusals)
		entry.skips = 1<<entry.refusals - 1
	default:
		entry.refusals = 0
	}
	return passed
}

func (r *reaper) release(entry *deferred) {
	r.releases <- struct{}{}
	C.fletching_end_event(entry.recorded, cArray(&entry.array))
	<-r.releases
}
