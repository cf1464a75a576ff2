# CMAKE_PROJECT_TOP_LEVEL_INCLUDES of a cross build: compiles GoogleTest for the target from the sources in Debian's
# package `googletest`, because find_package would find the host's library.
include(FetchContent)
set(INSTALL_GTEST OFF)
set(BUILD_GMOCK OFF)
FetchContent_Declare(GTest SOURCE_DIR /usr/src/googletest OVERRIDE_FIND_PACKAGE)
