// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/fields"
	"github.com/fletching/fletching/bindings/go/internal/repository"
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

// TestUpstream compares package abi, as Go lays it out on each target, with upstream's headers, as Clang lays them out
// there: offset, size and kind of each field, and the value of each macro. The oracle compares memory and calls.
func TestUpstream(t *testing.T) {
	if include() == "" {
		t.Skip("the test needs the repository of Fletching, or upstream's headers in FLETCHING_UPSTREAM_INCLUDE")
	}
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
		for name, value := range constants() {
			if there := expected[name].Kind; there != value {
				t.Errorf("%s: %s: %s upstream, %s in Go", target.triple, name, there, value)
			}
		}
	}
}

func compareLayouts(t *testing.T, triple string, declared, expected map[string]targets.Layout) {
	t.Helper()
	compared := 0
	equal := func(name, goName, clangName string) {
		compared++
		found := expected[clangName]
		if name == "DLDevice.device_type" {
			found.Kind = "int32" // a C enum, whose signedness the compiler chooses
		}
		if declared[goName] != found {
			t.Errorf("%s: %s: %v to Clang, %v to Go", triple, name, found, declared[goName])
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

// constants returns the value of each macro as Go source.
func constants() map[string]string {
	values := map[string]string{}
	for _, macro := range fields.Integers {
		values[macro.Name] = strconv.FormatInt(macro.Value, 10)
	}
	for _, macro := range fields.Texts {
		values[macro.Name] = strconv.Quote(macro.Value)
	}
	return values
}

// clang returns upstream's structs as Go definitions by cgo, which queries Clang for the layouts.
func clang(t *testing.T, goos, goarch, triple string) string {
	t.Helper()
	source := "package clang\n\n// #include \"arrow/c/abi.h\"\n// #include \"dlpack/dlpack.h\"\nimport \"C\"\n\n"
	for _, s := range fields.Structs {
		tag := "struct_"
		if strings.HasPrefix(s.Name, "DL") {
			tag = "" // DLPack structs have typedef names
		}
		source += fmt.Sprintf("type %s C.%s%s\n", s.Name, tag, s.Name)
	}
	for name := range constants() {
		source += fmt.Sprintf("const %s = C.%s\n", name, name)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "clang.go"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	options := []string{"-I" + include(), "--target=" + triple, "-ffreestanding", "-nostdlibinc", "clang.go"}
	command := exec.Command("go", append([]string{"tool", "cgo", "-godefs", "--"}, options...)...)
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

// include returns the folder of upstream's headers: FLETCHING_UPSTREAM_INCLUDE, or the one of the repository; "" for none.
func include() string {
	folder := os.Getenv("FLETCHING_UPSTREAM_INCLUDE")
	if root := repository.Root(); folder == "" && root != "" {
		folder = filepath.Join(root, ".venv", "upstream")
	}
	return folder
}
