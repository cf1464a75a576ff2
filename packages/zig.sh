# zig TARGET: sets CC and CXX to scripts that call Zig's compilers of the group publish for a target, such as aarch64-macos.
zig() {
  local root language script
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  mkdir -p "$root/build/zig"
  for language in cc c++; do
    script=$root/build/zig/zig-$language-$1
    # The crate cc adds a --target of Rust's, which Zig does not know.
    printf '#!/bin/bash\nfor a; do shift; [[ $a == --target=* ]] || set -- "$@" "$a"; done\nexec %q -m ziglang %s -target %s "$@"\n' \
      "$root/build/packages-tools/bin/python" $language "$1" >"$script.new"
    chmod +x "$script.new"
    cmp -s "$script.new" "$script" || mv "$script.new" "$script" # to ccache, a new file is another compiler
  done
  export CC=$root/build/zig/zig-cc-$1 CXX=$root/build/zig/zig-c++-$1
}
