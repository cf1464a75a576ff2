# Finds Fletching: -DWAY=find_package, add_subdirectory or fetch_content.
if(WAY STREQUAL "find_package")
  find_package(fletching ${FLETCHING_EXPECTED} REQUIRED COMPONENTS ${FLETCHING_COMPONENTS})
elseif(WAY STREQUAL "add_subdirectory")
  add_subdirectory("${FLETCHING_SOURCE}" fletching)
elseif(WAY STREQUAL "fetch_content")
  include(FetchContent)
  FetchContent_Declare(fletching SOURCE_DIR "${FLETCHING_SOURCE}")
  FetchContent_MakeAvailable(fletching)
else()
  message(FATAL_ERROR "WAY is \"${WAY}\": say find_package, add_subdirectory or fetch_content")
endif()

# A project that adds Fletching must not get its install rules and tests.
if(NOT WAY STREQUAL "find_package" AND (FLETCHING_INSTALL OR FLETCHING_BUILD_TESTS))
  message(FATAL_ERROR "Fletching's own tests or install rules came along unasked")
endif()
