# Functions for the commands of platforms.toml, which run in the root of the repository.
. tools/packages.sh
. packages/zig.sh
export FLETCHING_ROOT=$PWD
work=$PWD/build/platforms
tools=$PWD/build/packages-tools/bin
mkdir -p "$work"

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
