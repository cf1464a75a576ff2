# CMAKE_PROJECT_TOP_LEVEL_INCLUDES of a cross build: GoogleTest is compiled for the target, from the sources of
# Debian's package `googletest`, in place of the host's library that find_package would find.
include(FetchContent)
set(INSTALL_GTEST OFF)
set(BUILD_GMOCK OFF)
FetchContent_Declare(GTest SOURCE_DIR /usr/src/googletest OVERRIDE_FIND_PACKAGE)
