#!/usr/bin/env bash
# Builds and tests the repository's C++ as on a machine without vendor headers, compilers and libraries: everything
# builds, and the tests name what is missing.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=build/absent
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenCL=ON -DCMAKE_DISABLE_FIND_PACKAGE_Vulkan=ON \
  -DFLETCHING_CUDA_INCLUDE= -DFLETCHING_HIP_INCLUDE= \
  -DFLETCHING_NVCC= -DFLETCHING_HIPCC= -DFLETCHING_GLSLANG= | tee "$build.log"
for device in CUDA ROCm OpenCL; do
  grep -q "the gate is not tested on $device" "$build.log" ||
    { echo "absent: the configuration does not say that $device is not tested" >&2; exit 1; }
done
grep -q "The Vulkan backend is not built" "$build.log"
cmake --build "$build" -j2 "$@"
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^(absent_|c_api|producer_test|sync_event|vendor)'
LD_PRELOAD="$build/lib/libfletching_refuse.so" "$build/bin/fletching-inspect" devices
echo "absent: everything builds and passes without any vendor's header, compiler or library"
