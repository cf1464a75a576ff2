// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/conformance"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// playGroup runs a group of the conformance suite and returns its results.
func playGroup(t *testing.T, subject int, group string) []conformance.Result {
	t.Helper()
	results, err := conformance.Play(subject, group)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// conforms runs a group, reports wrong results, and requires at least one result with the first expected verdict.
func conforms(t *testing.T, subject int, group string, expected ...string) {
	t.Helper()
	verdicts := map[string]int{}
	for _, result := range playGroup(t, subject, group) {
		verdicts[result.Verdict]++
		if result.Verdict == "wrong" {
			t.Errorf("%s %s: %s (rule %q)", group, result.Name, result.Message, result.Rule)
		}
	}
	t.Log(group, verdicts)
	for verdict := range verdicts {
		if !slices.Contains(expected, verdict) {
			t.Errorf("%s: expected %v, got %v", group, expected, verdicts)
		}
	}
	if verdicts[expected[0]] == 0 {
		t.Errorf("%s: expected a result that is %s", group, expected[0])
	}
}

func TestConformance(t *testing.T) {
	repository.Need(t)
	succeed(t, conformance.Open())
	elsewhere := []string{ // tested by TestConformanceEvents, and by the native replay, which -race covers
		"events", "devices", "producer-traces", "consumer-traces",
	}
	for _, subject := range []int{conformance.Views, conformance.Moves} {
		for _, group := range conformance.Groups() {
			if slices.Contains(elsewhere, group) {
				continue
			}
			name := conformance.Name(subject) + "/" + group
			t.Run(name, func(t *testing.T) { conforms(t, subject, group, "right") })
		}
	}
}

// Runs on the devices of the stand-ins and of the machine.
func TestConformanceEvents(t *testing.T) {
	gpu.Need(t, "standin/libcuda.so.1")
	gpu.InProcess(t, func(t *testing.T) {
		gpu.Open(t, "standin/libcuda.so.1")
		gpu.Open(t, "standin/libamdhip64.so.7")
		succeed(t, conformance.Open())
		conforms(t, conformance.Views, "events", "right", "absent")
		conforms(t, conformance.Views, "devices", "right", "absent")
		conforms(t, conformance.Moves, "devices", "right", "absent")
	})
}

func TestConformanceReportsDroppedBatch(t *testing.T) {
	repository.Need(t)
	succeed(t, conformance.Open())
	for _, result := range playGroup(t, conformance.Drops, "device-streams") {
		if result.Name == "stream.good" && result.Verdict == "wrong" && strings.Contains(result.Message, "batches") {
			return
		}
	}
	t.Error("expected a wrong result of stream.good")
}
