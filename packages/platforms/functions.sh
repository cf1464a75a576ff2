# Functions for the commands of platforms.toml, which run in the root of the repository.
. tools/packages.sh
. packages/zig.sh
export FLETCHING_ROOT=$PWD
work=$PWD/build/platforms
tools=$PWD/build/packages-tools/bin
mkdir -p "$work"
# Zig leaves these where Go and the crate cc only ask which compiler it is.
trap 'rm -f "$FLETCHING_ROOT"/bindings/{go/,go/arrowgo/}-.o "$FLETCHING_ROOT/bindings/rust/fletching/a.o"' EXIT

# cmake_build NAME OPTION...: builds packages/platforms/CMakeLists.txt into build/platforms/NAME.
cmake_build() {
  cmake -S packages/platforms -B "$work/$1" -DCMAKE_BUILD_TYPE=Debug "${@:2}" && cmake --build "$work/$1" -j2
}

# wine: starts one server, so that each program does not wait for a new one, and sets RUNNER.
wine() {
  export WINEDEBUG=-all WINEPREFIX=$work/wine
  mkdir -p "$WINEPREFIX"
  # Without the caller's pipes, which the server would keep open.
  /usr/lib/wine/wineserver64 -p60 </dev/null >/dev/null 2>&1 || true
  /usr/lib/wine/wine64 wineboot </dev/null >/dev/null 2>&1
  x86_64-w64-mingw32-gcc-posix -O2 -shared packages/platforms/bcryptprimitives.c -ladvapi32 \
    -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll"
  export RUNNER=/usr/lib/wine/wine64
}

# in_debian NUMBER FOLDER COMMAND...: runs a command in a root of packages/platforms/setup, in a copy of FOLDER.
in_debian() {
  rm -rf "$work/debian-$1/try" && cp -r "$2" "$work/debian-$1/try"
  chroot "$work/debian-$1" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root bash -euo pipefail -c "cd /try && ${*:3}"
}

# sources FOLDER: copies the library to FOLDER.
sources() {
  rm -rf "$1" && mkdir -p "$1"
  git ls-files -z cpp/core cpp/include cpp/tests cpp/examples | xargs -0 cp --parents -t "$1"
}

# each_header: a C++ program that includes every public header but those for SYCL and Metal.
each_header() {
  (cd cpp/include && printf '#include <%s>\n' fletching/*.h fletching/*.hpp) | grep -v -e sycl.hpp -e metal.hpp
  echo 'int main() {}'
}

released_version() { "$FLETCHING_ROOT/.venv/bin/python" -c 'import json; print(json.load(open("build/packages/manifest.json"))["version"])'; }

# unpack_wheel TAG: the wheel of build/packages and the program of its package test in build/platforms/wheel.
unpack_wheel() {
  rm -rf "$work/wheel" && mkdir "$work/wheel"
  unzip -q "build/packages/python/fletching-$(released_version)-$1.whl" -d "$work/wheel"
  cp bindings/python/outside/program.py "$work/wheel"
}

# emulated PROGRAM ARGUMENT...: a program of Debian 12 for aarch64.
emulated() { qemu-aarch64 -L "$work/debian-12-arm64" "$work/debian-12-arm64/$1" "${@:2}"; }

# compile_go_for_macos: with CC of zig, and GOARCH.
compile_go_for_macos() {
  export GOOS=darwin CGO_ENABLED=1 GOFLAGS=-p=2
  (cd bindings/go && go build . ./abi/... && cd arrowgo && go build ./...)
}

# check_rust_for_macos TARGET: with CC of zig.
check_rust_for_macos() {
  export "CC_${1//-/_}=$CC" CARGO_TARGET_DIR=$work/rust CARGO_BUILD_JOBS=2 SDKROOT=/
  unset CC CXX
  (cd bindings/rust && cargo check --locked --target "$1" -p fletching-abi -p fletching \
    --features fletching/async,fletching/dlpack,fletching/runtime)
}

# go_programs: the programs of Go's README, in a module in build/platforms/go.
go_programs() {
  rm -rf "$work/go" && mkdir "$work/go"
  readme_programs bindings/go/README.md go main.go "$work/go"
  local module=github.com/fletching/fletching/bindings/go
  printf 'module programs\ngo 1.24\nrequire %s v0.0.0\nreplace %s => %s\n' $module $module "$PWD/bindings/go" >"$work/go/go.mod"
}
