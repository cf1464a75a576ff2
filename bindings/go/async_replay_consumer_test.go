// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

var stateNames = [...]string{
	"created", "cancelled_early", "streaming", "cancelled", "ended", "broken", "failed", "refused", "releasing", "released",
}

// consumerPlayer plays the producer and the application of a consumer.
type consumerPlayer struct {
	replay
	stream    *AsyncStream
	core      *asyncConsumer
	handler   *abi.ArrowAsyncDeviceStreamHandler
	objects   []abi.ArrowAsyncProducer
	refusal   error
	known     *trackedObject
	refused   bool // the schema was rejected
	releases  []chan struct{}
	inside    atomic.Int32 // number of the consumer's calls that are playing steps
	told      sync.Mutex   // guards the following fields
	knows     struct{ schema, end, err bool }
	arriving  *peerTask
	cancelled bool
	tasks     []*peerTask
	running   []*extraction
	codes     []int
}

// extraction is a Next call of the application that is blocked inside extract_data.
type extraction struct {
	task    int
	inside  bool // extract_data was called
	answers chan int32
	orders  chan func() (code int32, returns bool)
}

// peerTask is a task of the producer.
type peerTask struct {
	*trackedObject
	player  *consumerPlayer
	isWrong bool // its array is on another device than the stream
}

func (p *peerTask) Release(*abi.ArrowArray) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.released++
}

func (p *peerTask) ExtractData(self *abi.ArrowAsyncTask, out *abi.ArrowDeviceArray) int32 {
	return p.player.extract(p, out)
}

func playConsumer(trace *trace) string {
	p := &consumerPlayer{replay: replay{trace: trace, counts: map[string]int{}}}
	refuse := func() error {
		defer func() { p.refusal = nil }()
		return p.refusal
	}
	p.stream = NewAsyncStream(context.Background(), AsyncOptions{
		DropWithNull: true,
		Window:       -1, OnSchema: func(*Schema, Metadata) error { return refuse() }, OnTask: func(Metadata) error { return refuse() },
	})
	defer p.stream.Close()
	p.core = p.stream.core
	p.core.woken = p.wake
	p.handler = (*abi.ArrowAsyncDeviceStreamHandler)(p.stream.Handler())
	p.objects = peer.New[abi.ArrowAsyncProducer](1)
	defer peer.Free(p.objects)
	handle := callbacks.NewHandle(p)
	defer callbacks.DeleteHandle(handle)
	p.objects[0] = abi.ArrowAsyncProducer{
		DeviceType: abi.DeviceCPU, PrivateData: handle,
		Request: callbacks.ArrowAsyncProducerRequestStub(), Cancel: callbacks.ArrowAsyncProducerCancelStub(),
	}
	p.handler.Producer = addressOf(p.objects)
	for step := p.next(); step != nil; step = p.next() {
		p.one(step)
		state := stateNames[p.core.current()]
		if step.State != state && !p.hasFailed() && step == &trace.Steps[p.at-1] {
			p.fail("expected the state %s, got %s", step.State, state)
		}
	}
	return p.finish()
}

func (p *consumerPlayer) one(step *traceStep) {
	inside := step.Within == "extract_data" && len(p.running) > 0
	p.perform(step, func() int32 {
		if !inside {
			return p.act(step)
		}
		result := make(chan int32)
		p.running[0].orders <- func() (int32, bool) { result <- p.act(step); return 0, false }
		return <-result
	})
}

func (p *consumerPlayer) act(step *traceStep) int32 {
	code := int32(step.Errno)
	switch step.Event {
	case "on_schema", "on_schema_refused":
		return p.giveSchema(step)
	case "on_task", "on_task_refused", "overlap":
		return p.giveTask(step)
	case "on_end":
		code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(p.handler, nil, 0)
		return code
	case "take":
		return p.take(step.Task)
	case "extract_ok", "extract_fails":
		p.finishExtraction(step, code, code)
	case "extract_invalid":
		p.finishExtraction(step, int32(syscall.EINVAL), 0)
	case "release", "release_inside":
		p.release(step)
	case "on_error", "on_error_foreign_code":
		callbacks.CallArrowAsyncDeviceStreamHandlerOnError(p.handler, code, 0, 0)
	case "request":
		_ = p.stream.Request(step.N)
	case "cancel":
		p.told.Lock()
		p.cancelled = true
		p.told.Unlock()
		p.core.cancel(errors.New("cancelled"))
	case "drop":
		if !p.stream.Skip() {
			p.fail("nothing to drop")
		}
	default:
		p.fail("no such event")
	}
	return 0
}

func (p *consumerPlayer) setRefusal(step *traceStep) {
	if strings.HasSuffix(step.Event, "_refused") {
		p.refusal = NewError(syscall.Errno(step.Errno), "refused by the application", nil)
	}
}

func (p *consumerPlayer) giveSchema(step *traceStep) int32 {
	given := &trackedObject{}
	first := p.known == nil
	if first {
		p.known = given
	}
	schemas := peer.New[abi.ArrowSchema](1)
	defer peer.Free(schemas)
	schemas[0] = given.schema()
	p.setRefusal(step)
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnSchema(p.handler, &schemas[0])
	if (code == 0) != schemas[0].IsReleased() {
		p.fail("the schema was neither taken nor refused")
	}
	if !schemas[0].IsReleased() {
		callbacks.DeleteHandle(schemas[0].PrivateData)
		p.refused = p.refused || first
	}
	return code
}

func (p *consumerPlayer) giveTask(step *traceStep) int32 {
	task := &peerTask{trackedObject: &trackedObject{number: step.Task}, player: p}
	p.told.Lock()
	p.tasks = append(p.tasks, task)
	p.arriving = task
	p.told.Unlock()
	tasks := peer.New[abi.ArrowAsyncTask](1)
	defer peer.Free(tasks)
	tasks[0] = abi.ArrowAsyncTask{ExtractData: callbacks.ArrowAsyncTaskExtractDataStub(), PrivateData: callbacks.NewHandle(task)}
	p.setRefusal(step)
	code, _ := callbacks.CallArrowAsyncDeviceStreamHandlerOnNextTask(p.handler, &tasks[0], 0)
	tasks[0] = abi.ArrowAsyncTask{} // valid during the call only
	p.told.Lock()
	p.arriving = nil
	p.told.Unlock()
	if code != 0 {
		task.record("refused")
	}
	return code
}

func (p *consumerPlayer) take(task int) int32 {
	e := &extraction{task: task, answers: make(chan int32), orders: make(chan func() (int32, bool))}
	p.told.Lock()
	p.running = append(p.running, e)
	p.told.Unlock()
	go func() {
		batch, _, err := p.stream.Next(context.Background())
		if err == nil {
			batch.Close()
			e.answers <- 0
			return
		}
		e.answers <- int32(codeOf(err))
	}()
	return <-e.answers
}

// finishExtraction makes extract_data return `returned` and expects the take to return code.
func (p *consumerPlayer) finishExtraction(step *traceStep, code, returned int32) {
	p.told.Lock()
	at := slices.IndexFunc(p.running, func(e *extraction) bool { return e.task == step.Task })
	e, task := p.running[at], p.tasks[step.Task]
	p.running = slices.Delete(p.running, at, at+1)
	p.told.Unlock()
	outcome := "failed"
	if code == 0 {
		outcome = "extracted"
	}
	task.record(outcome)
	task.isWrong = code != returned
	e.orders <- func() (int32, bool) { return returned, true }
	if answer := <-e.answers; answer != code {
		p.fail("take: expected %d, got %d", code, answer)
	}
	if step.ThenReturns != "" {
		p.join()
	}
}

func (p *consumerPlayer) join() {
	for _, release := range p.releases {
		<-release
	}
	p.releases = nil
}

// release returns when the release is done or waits.
func (p *consumerPlayer) release(step *traceStep) {
	if step.Returns == nil {
		callbacks.CallArrowAsyncDeviceStreamHandlerRelease(p.handler)
		return
	}
	before := p.inside.Load()
	done := make(chan struct{})
	p.releases = append(p.releases, done)
	go func() {
		callbacks.CallArrowAsyncDeviceStreamHandlerRelease(p.handler)
		close(done)
	}()
	// Play the steps nested in its notification before the next step.
	for p.core.current() != asyncReleasing || p.expects() > 0 || p.inside.Load() > before {
		select {
		case <-done:
			p.fail("release does not wait")
			return
		default:
			runtime.Gosched()
		}
	}
}

// wake is called on every change.
func (p *consumerPlayer) wake() {
	if what := p.news(); what != "" {
		p.reached(what, "notify")
	}
}

func (p *consumerPlayer) news() string {
	p.core.mutex.Lock()
	state, failure, hasSchema := p.core.state, p.core.failure, p.core.schema != nil
	p.core.mutex.Unlock()
	p.told.Lock()
	defer p.told.Unlock()
	arriving := p.arriving
	p.arriving = nil
	switch {
	case p.cancelled || state == asyncBroken: // the application knows
		p.knows.err = true
	case failure != nil && !p.knows.err:
		p.knows.err = true
		p.codes = append(p.codes, int(codeOf(failure)))
		return traceCall{Notify: "error", Code: &p.codes[0]}.String()
	case state == asyncEnded && !p.knows.end:
		p.knows.end = true
		return "notify end"
	case hasSchema && !p.knows.schema:
		p.knows.schema = true
		return "notify schema"
	case arriving != nil && state == asyncStreaming: // a waiting release may wake late
		return traceCall{Notify: "task", Task: &arriving.number}.String()
	}
	return ""
}

// reached plays the steps nested in this call, if it is the last call of its name.
func (p *consumerPlayer) reached(what, name string) {
	p.inside.Add(1)
	defer p.inside.Add(-1)
	p.happened("%s", what)
	more := p.expectsAnother(name)
	for step := p.next(); !more && step != nil && step.Within == name; step = p.next() {
		p.one(step)
	}
}

func (p *consumerPlayer) extract(task *peerTask, out *abi.ArrowDeviceArray) int32 {
	wanted := out != nil
	what := traceCall{Call: "extract_data", Task: &task.number, Out: &wanted}.String()
	p.told.Lock()
	at := slices.IndexFunc(p.running, func(e *extraction) bool { return e.task == task.number && !e.inside })
	var code int32
	if at < 0 {
		p.told.Unlock()
		outcome := "dropped"
		if wanted {
			outcome = "extracted"
		}
		task.record(outcome)
		p.reached(what, "extract_data")
	} else {
		e := p.running[at]
		e.inside = true
		p.told.Unlock()
		p.happened("%s", what)
		e.answers <- 0
		for returns := false; !returns; {
			code, returns = (<-e.orders)()
		}
	}
	if wanted {
		// Filled in even if the extraction fails: the consumer must not read it then.
		*out = task.array(task)
		if task.isWrong {
			out.DeviceType = abi.DeviceCUDA
		}
		if code == 0 {
			task.arrays++
		}
	}
	return code
}

func (p *consumerPlayer) Request(_ *abi.ArrowAsyncProducer, n int64) {
	p.reached(traceCall{Call: "request", N: &n}.String(), "request")
}

func (p *consumerPlayer) Cancel(*abi.ArrowAsyncProducer) { p.reached("cancel", "cancel") }

func (p *consumerPlayer) finish() string {
	for _, e := range p.running {
		p.fail("a task is still being extracted")
		e.orders <- func() (int32, bool) { return int32(syscall.EIO), true }
		<-e.answers
	}
	p.join()
	// The stream must end as the application was notified, with no batches left.
	batch, _, err := p.stream.Next(context.Background())
	for err == nil {
		batch.Close()
		batch, _, err = p.stream.Next(context.Background())
	}
	switch {
	case p.hasFailed() || p.cancelled || p.core.failure != nil && len(p.codes) == 0:
	case len(p.codes) == 0 && err != io.EOF:
		p.fail("expected the end, got %v", err)
	case len(p.codes) > 0 && int(codeOf(err)) != p.codes[0]:
		p.fail("expected the error %v, got %v", p.codes, err)
	}
	tasks := []string{}
	for _, task := range p.tasks {
		if task.arrays != task.released {
			p.fail("an array was not released, or twice")
		}
		tasks = append(tasks, task.outcome("freed"))
	}
	schema := "none"
	switch {
	case p.refused:
		schema = "refused"
	case p.known != nil && len(p.known.outcomes) == 0:
		schema = "taken" // the stream still has it
	case p.known != nil:
		schema = p.known.outcome("discarded")
	}
	return p.compareFinal(schema, tasks, p.codes)
}

func TestReplayConsumer(t *testing.T) { playAll(t, "consumer", 195, playConsumer) }
