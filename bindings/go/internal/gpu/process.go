// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fletching/fletching/bindings/go/internal/repository"
)

const variable = "FLETCHING_GO_TEST_PROCESS"

// InProcess runs the body in a separate process, as the test of the same name: the dynamic loader prefers libraries
// that are already loaded, and a stand-in counts for the whole process. The goroutine keeps its thread, because
// contexts belong to threads.
func InProcess(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		body(t)
		return
	}
	// It must end before this process does, so that a hang is reported with its goroutines.
	timeout := time.Duration(0) // none
	if deadline, ok := t.Deadline(); ok {
		timeout = time.Until(deadline) * 9 / 10
	}
	// The emulator that runs this process, if any, also runs the new one (tests/targets).
	words := append(strings.Fields(os.Getenv("RUNNER")), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+timeout.String())
	command := exec.Command(words[0], words[1:]...)
	// The loader finds the interposers first (tests/faults), which forward calls that they do not make fail. The
	// race detector would sleep for a second at the end of a process.
	path := filepath.Join(repository.Libraries(), "interposers") + ":" + os.Getenv("LD_LIBRARY_PATH")
	command.Env = append(os.Environ(), variable+"="+t.Name(), "LD_LIBRARY_PATH="+path, "GORACE=atexit_sleep_ms=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	} else if testing.Verbose() {
		t.Logf("%s", output)
	}
}

// OnBoth runs the body for CUDA and for HIP, in a separate process with the stand-ins of a folder.
func OnBoth(t *testing.T, folder string, body func(t *testing.T, api *API)) {
	t.Helper()
	on(t, folder, body, CUDA, HIP)
}

func on(t *testing.T, folder string, body func(t *testing.T, api *API), open ...func(testing.TB, string) *API) {
	t.Helper()
	Need(t, filepath.Join(folder, "libcuda.so.1")) // a build for another machine leaves the folder empty
	InProcess(t, func(t *testing.T) {
		for _, open := range open {
			body(t, open(t, folder))
		}
	})
}

// Need skips the test if a library of the tests, or a folder of them, is not built.
func Need(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(repository.Libraries(), path)); err != nil {
		t.Skipf("%v; run `make`, or set FLETCHING_LIB_DIR", err)
	}
}

// OnThread runs the body on another thread, which has no context.
func OnThread(body func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		body()
	}()
	<-done
}
