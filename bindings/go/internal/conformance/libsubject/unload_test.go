// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Unloads and reloads a host while structs exported by Go are alive. The test runs a C program because this
// process already contains a Go runtime.
func TestHostOfGoLibraryCanBeUnloaded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("testdata/unload.c is for Linux")
	}
	run := func(name string, arguments ...string) string {
		t.Helper()
		output, err := exec.Command(name, arguments...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, output)
		}
		return strings.TrimSpace(string(output))
	}
	folder := t.TempDir()
	library := filepath.Join(folder, "libfletching_subject_go.so")
	host, program := filepath.Join(folder, "libhost.so"), filepath.Join(folder, "unload")
	compiler := strings.Fields(run("go", "env", "CC"))
	compile := func(arguments ...string) {
		t.Helper()
		include := []string{"-std=gnu11", "-Wall", "-Werror", "-I../../headers"}
		run(compiler[0], append(append(compiler[1:len(compiler):len(compiler)], include...), arguments...)...)
	}
	run("go", "build", "-buildmode=c-shared", "-o", library, ".")
	compile("-shared", "-fPIC", "-o", host, "testdata/host.c", library, "-Wl,-rpath,"+folder)
	compile("-o", program, "testdata/unload.c", "-ldl")
	if printed := run(program, host, library); printed != "unloaded" {
		t.Error(printed)
	}
}
