#!/usr/bin/env bash
# build.sh oracle|probe|libfletching_subject_zig.so...: into ../../build/zig; Zig reads the C headers itself.
set -euo pipefail
out=../../build/zig
mkdir -p $out
zig translate-c ../../tests/oracle/oracle.h >$out/oracle_h.zig
zig translate-c -I../../cpp/include -I../../tests/conformance/include \
  ../../tests/conformance/include/fletching/conformance.h >$out/conformance_h.zig
for name in "$@"; do
  how=(build-exe -Mroot="$name/$name.zig")
  [[ $name != *.so ]] || how=(build-lib -dynamic -Mroot=subject/subject.zig)
  zig "${how[0]}" "-femit-bin=$out/$name" -L"${FLETCHING_LIB_DIR:-../../build/lib}" -lfletching_oracle \
    -lc --dep fletching --dep testing --dep oracle --dep conformance "${how[@]:1}" \
    -Mfletching=src/fletching.zig -Mtesting=testing.zig -Moracle=$out/oracle_h.zig -Mconformance=$out/conformance_h.zig
done
