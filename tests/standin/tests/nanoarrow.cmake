# Independent check: nanoarrow's CUDA device and its tests, from its source package, compiled unchanged and run on the
# stand-in.
set(FLETCHING_NANOARROW_SOURCE "${PROJECT_SOURCE_DIR}/.venv/upstream/nanoarrow/subprojects/arrow-nanoarrow"
  CACHE PATH "Sources of nanoarrow 0.9.0")
set(_nanoarrow "${FLETCHING_NANOARROW_SOURCE}/src/nanoarrow")
if(NOT EXISTS "${_nanoarrow}/device/cuda_test.cc")
  message(STATUS "FLETCHING_NANOARROW_SOURCE is \"${FLETCHING_NANOARROW_SOURCE}\", and there is no "
    "src/nanoarrow/device/cuda_test.cc in it: nanoarrow does not judge the CUDA stand-in. `make setup` unpacks it.")
  return()
endif()

set(NANOARROW_VERSION 0.9.0)
string(REPLACE "." ";" _version "${NANOARROW_VERSION}")
list(GET _version 0 NANOARROW_VERSION_MAJOR)
list(GET _version 1 NANOARROW_VERSION_MINOR)
list(GET _version 2 NANOARROW_VERSION_PATCH)
configure_file("${_nanoarrow}/nanoarrow_config.h.in" nanoarrow/nanoarrow_config.h @ONLY)

add_executable(fletching_standin_nanoarrow_test
  "${_nanoarrow}/common/array.c" "${_nanoarrow}/common/array_stream.c"
  "${_nanoarrow}/common/schema.c" "${_nanoarrow}/common/utils.c"
  "${_nanoarrow}/device/cuda.c" "${_nanoarrow}/device/device.c"
  "${_nanoarrow}/device/cuda_test.cc")
target_include_directories(fletching_standin_nanoarrow_test SYSTEM PRIVATE
  "${FLETCHING_NANOARROW_SOURCE}/src" "${CMAKE_CURRENT_BINARY_DIR}" "${FLETCHING_CUDA_INCLUDE}")
target_compile_definitions(fletching_standin_nanoarrow_test PRIVATE NANOARROW_DEVICE_WITH_CUDA)
# Upstream code, not fixed here: for example, it copies 0 bytes from NULL.
target_compile_options(fletching_standin_nanoarrow_test PRIVATE -w -fno-sanitize=undefined)
target_link_libraries(fletching_standin_nanoarrow_test PRIVATE
  fletching_standin_libcuda GTest::gtest_main)

# Its tests destroy events and streams on threads without a current context, and free memory during copies to it.
set(_environment FLETCHING_STANDIN_MODE=driver)
add_test(NAME standin_nanoarrow COMMAND fletching_standin_nanoarrow_test)
set_tests_properties(standin_nanoarrow PROPERTIES TIMEOUT 300 ENVIRONMENT "${_environment}")
# Negative control: a test that must fail.
add_test(NAME standin_nanoarrow_control
  COMMAND fletching_standin_nanoarrow_test --gtest_filter=*ArrowDeviceCudaArrayViewString*)
set_tests_properties(standin_nanoarrow_control PROPERTIES
  TIMEOUT 300
  ENVIRONMENT "${_environment};FLETCHING_FAULT=cuMemcpyDtoHAsync:2:CUDA_ERROR_LAUNCH_FAILED"
  PASS_REGULAR_EXPRESSION "1 FAILED TEST")
