// SPDX-License-Identifier: Apache-2.0

//go:build fletching_upstream

package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/fields"
	"github.com/fletching/fletching/bindings/go/internal/targets"
)

// triples maps Go targets to Clang targets: each GOARCH, and for 386 each GOOS with a different C layout.
var triples = []struct{ goos, goarch, triple string }{
	{"linux", "amd64", "x86_64-linux-gnu"},
	{"windows", "amd64", "x86_64-w64-mingw32"},
	{"linux", "arm64", "aarch64-linux-gnu"},
	{"linux", "loong64", "loongarch64-linux-gnu"},
	{"linux", "mips64", "mips64-linux-gnuabi64"},
	{"linux", "mips64le", "mips64el-linux-gnuabi64"},
	{"linux", "ppc64", "powerpc64-linux-gnu"},
	{"linux", "ppc64le", "powerpc64le-linux-gnu"},
	{"linux", "riscv64", "riscv64-linux-gnu"},
	{"linux", "s390x", "s390x-linux-gnu"},
	{"linux", "arm", "armv7-linux-gnueabihf"},
	{"freebsd", "arm", "armv7-unknown-freebsd"},
	{"linux", "mips", "mips-linux-gnu"},
	{"linux", "mipsle", "mipsel-linux-gnu"},
	{"windows", "386", "i686-windows-msvc"},
	{"windows", "386", "i686-w64-mingw32"},
	{"linux", "386", "i686-linux-gnu"},
	{"android", "386", "i686-linux-android"},
	{"freebsd", "386", "i386-unknown-freebsd"},
	{"netbsd", "386", "i386-unknown-netbsd"},
	{"openbsd", "386", "i386-unknown-openbsd"},
}

// TestTargets compares package abi in Go's layout for each target with upstream's structs in Clang's layout.
func TestTargets(t *testing.T) {
	for _, target := range triples {
		sources, err := targets.Sources("../../abi", target.goos, target.goarch)
		if err != nil {
			t.Fatal(err)
		}
		declared, err := targets.Check(sources, target.goarch)
		if err != nil {
			t.Errorf("%s: %v", target.triple, err)
			continue
		}
		definitions := map[string]string{"clang.go": clang(t, target.goos, target.goarch, target.triple)}
		expected, err := targets.Check(definitions, target.goarch)
		if err != nil {
			t.Fatalf("%s: %v", target.triple, err)
		}
		compareLayouts(t, target.triple, declared, expected)
	}
}

func compareLayouts(t *testing.T, triple string, declared, expected map[string]targets.Layout) {
	t.Helper()
	compared := 0
	equal := func(name, goName, clangName string) {
		compared++
		if declared[goName] != expected[clangName] {
			t.Errorf("%s: %s: %v to Clang, %v to Go", triple, name, expected[clangName], declared[goName])
		}
	}
	for _, s := range fields.Structs {
		equal(s.Name, s.Name, s.Name)
		for _, field := range s.Fields {
			equal(s.Name+"."+field.Name, s.Name+"."+field.GoName, s.Name+"."+exported(s, field.Name))
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// exported returns the name of a field in the definitions: the C name without the prefix that all names with an
// underscore share, capitalized.
func exported(s fields.Struct, name string) string {
	prefixes := map[string]bool{}
	for _, field := range s.Fields {
		if prefix, _, found := strings.Cut(field.Name, "_"); found {
			prefixes[prefix] = true
		}
	}
	if prefix, rest, found := strings.Cut(name, "_"); found && len(prefixes) == 1 && prefixes[prefix] {
		name = rest
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// clang returns upstream's structs as Go definitions by cgo, which queries Clang for the layouts.
func clang(t *testing.T, goos, goarch, triple string) string {
	t.Helper()
	source := "package clang\n\n// #include \"arrow/c/abi.h\"\n// #include \"dlpack/dlpack.h\"\nimport \"C\"\n\n"
	for name := range Structs {
		tag := "struct_"
		if strings.HasPrefix(name, "DL") {
			tag = "" // DLPack structs have typedef names
		}
		source += fmt.Sprintf("type %s C.%s%s\n", name, tag, name)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "clang.go"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	options := append(strings.Fields(os.Getenv("CGO_CFLAGS")), "--target="+triple, "-ffreestanding", "-nostdlibinc")
	command := exec.Command("go", append([]string{"tool", "cgo", "-godefs", "--"}, append(options, "clang.go")...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CC=clang-19", "CGO_ENABLED=1", "GOOS="+goos, "GOARCH="+goarch)
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: cgo with clang-19 (package clang-19 of Debian): %v\n%s", triple, err, &problems)
	}
	return string(output)
}
