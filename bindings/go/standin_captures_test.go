// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

func TestStandinCapturingStreamIsRefused(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		exported, _, _ := countedArray(t, api.Type)
		succeed(t, exported.ExportWithEvent(streamOf(api, gated.Producer)))
		array, releases, _ := countedArray(t, api.Type)
		stream := streamOf(api, gated.Consumer)
		api.BeginCapture(gated.Consumer)
		for _, err := range []error{exported.WaitOn(stream), array.ExportWithEvent(stream), array.ReleaseAfter(stream),
			array.ReleaseAfter(stream.With(fletching.ExternalEvent))} {
			expectCode(t, err, syscall.EBUSY, "captured into a graph", "hint: ")
		}
		expectCount(t, "what was refused", releases, 0)
		if array.SyncEvent() != 0 || array.IsReleased() {
			t.Error("the array is not as it was")
		}
		api.DestroyGraph(api.EndCapture(gated.Consumer))
		succeed(t, array.ExportWithEvent(stream)) // it is over
		array.Close()
		exported.Close()
		gated.End()
	})
}

func TestStandinCaptureIsNotDisturbed(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		captured := api.MakeStream()
		memory, freed := api.MakeWord(), newReleases()
		array, _, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Consumer)))
		gated.Shut()
		behind, behindReleases, _ := countedArray(t, api.Type)
		succeed(t, behind.ReleaseAfter(streamOf(api, gated.Producer)))
		api.BeginCapture(captured)
		ask := func() {
			if err := array.Synchronize(background); err != nil {
				t.Error(err)
			}
			expectReady(t, array, true)
		}
		ask()
		gpu.OnThread(ask)
		// An event is made, recorded and destroyed as well, and the reaper asks all the time.
		second, _, _ := countedArray(t, api.Type)
		succeed(t, second.ExportWithEvent(streamOf(api, gated.Consumer)))
		second.Close()
		free, freeReleases, _ := countedArray(t, api.Type)
		succeed(t, free.ReleaseAfter(streamOf(api, gated.Consumer)))
		freeReleases.waitFor(1)
		expectCount(t, "what is behind the gate", behindReleases, 0)
		api.DestroyGraph(api.EndCapture(captured))
		// A callback may free memory of the device, which the driver calls unsafe.
		freeing := plainArray(t, api.Type, func() {
			api.OpenDevice(0)
			api.FreeWord(memory)
			api.CloseDevice(0)
			freed.add()
		})
		api.BeginCapture(captured)
		succeed(t, freeing.ReleaseAfter(streamOf(api, gated.Producer)))
		gated.OpenGate()
		freed.waitFor(1)
		behindReleases.waitFor(1)
		api.DestroyGraph(api.EndCapture(captured))
		array.Close()
		api.DestroyStream(captured)
		gated.End()
	})
}

func TestStandinInvalidCaptureIsRefused(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		incoming := awaited(t, api.Type, event)
		api.BeginCapture(gated.Consumer)
		if int32(api.Call(api.Query, *(*uintptr)(gpu.At(event)))) == 0 {
			t.Error("an unsafe call has not failed") // and has invalidated the capture
		}
		for _, choice := range []fletching.OnCapture{fletching.RefuseCapture, fletching.ExternalEvent} {
			err := incoming.WaitOn(streamOf(api, gated.Consumer).With(choice))
			expectCode(t, err, syscall.EBUSY, "whose capture is invalid and not ended")
		}
		api.AbandonCapture(gated.Consumer)
		incoming.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}

// The legacy default stream would depend on a captured one.
func TestStandinDefaultStreamBesideACapture(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event, blocking := api.MakeEvent(), api.MakeBlockingStream()
		incoming := awaited(t, api.Type, event)
		api.BeginCapture(blocking)
		expectCode(t, incoming.WaitOn(streamOf(api, 0)), syscall.EBUSY, "the legacy default stream", "hint: ")
		api.DestroyGraph(api.EndCapture(blocking))
		succeed(t, incoming.WaitOn(streamOf(api, 0)))
		incoming.Close()
		api.DestroyEvent(event)
		api.DestroyStream(blocking)
		gated.End()
	})
}

func TestStandinExternalEvents(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		captured := api.MakeStream()
		event := api.MakeEvent()
		incoming := awaited(t, api.Type, event)
		stream := streamOf(api, captured).With(fletching.ExternalEvent)
		array, _, _ := countedArray(t, api.Type)
		api.BeginCapture(captured)
		succeed(t, incoming.WaitOn(stream))
		succeed(t, array.ExportWithEvent(stream))
		graph := api.EndCapture(captured)
		executable := api.Instantiate(graph)
		api.DestroyGraph(graph)
		expectReady(t, array, true) // nothing has been recorded in it
		gated.Shut()
		api.RecordEvent(event, gated.Producer)
		api.Launch(executable, captured)
		expectReady(t, array, false)
		succeed(t, array.WaitOn(streamOf(api, gated.Consumer)))
		if !gated.IsBlocked(gated.Consumer) {
			t.Error("the consumer does not wait for the graph")
		}
		gated.OpenGate()
		succeed(t, array.Synchronize(background))
		api.SynchronizeStream(captured)
		api.DestroyExecutable(executable)
		api.SynchronizeStream(gated.Consumer)
		incoming.Close()
		array.Close()
		api.DestroyEvent(event)
		api.DestroyStream(captured)
		gated.End()
	})
}
