#!/usr/bin/env bash
# build.sh oracle|probe|roundtrip|libfletching_transit_zig.so...: into ../../build/zig; Zig reads the C headers itself.
set -euo pipefail
out=../../build/zig
mkdir -p $out
zig translate-c ../../tests/oracle/oracle.h >$out/oracle_h.zig
zig translate-c -I../../cpp/include ../../cpp/producer/producer.h >$out/producer_h.zig
for name in "$@"; do
  how=(build-exe -Mroot="$name/$name.zig")
  [[ $name != *.so ]] || how=(build-lib -dynamic -Mroot=roundtrip/roundtrip.zig)
  zig "${how[0]}" "-femit-bin=$out/$name" -L"${FLETCHING_LIB_DIR:-../../build/lib}" -lfletching_oracle \
    -lfletching_producer -lc --dep fletching --dep testing --dep oracle --dep producer "${how[@]:1}" \
    -Mfletching=src/fletching.zig -Mtesting=testing.zig -Moracle=$out/oracle_h.zig -Mproducer=$out/producer_h.zig
done
