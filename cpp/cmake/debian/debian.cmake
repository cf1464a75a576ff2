# The Debian packages: configure with -DFLETCHING_DEBIAN=ON -DCMAKE_INSTALL_PREFIX=/usr, run `cpack`.
# SOURCE_DATE_EPOCH is the date of their files.
set(_runtime "libfletching${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")  # Named after the soname.
set(_development libfletching-dev)
set(_revision 1)
set(_maintainer "The Fletching developers <fletching@users.noreply.github.com>")

string(TIMESTAMP _date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(cmake/debian/changelog.in changelog @ONLY)
find_program(FLETCHING_GZIP gzip REQUIRED)
execute_process(COMMAND "${FLETCHING_GZIP}" -9fn changelog
  WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" COMMAND_ERROR_IS_FATAL ANY)
foreach(_component runtime development)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/changelog.gz" RENAME changelog.Debian.gz
    DESTINATION "share/doc/${_${_component}}" COMPONENT fletching_${_component})
  install(FILES cmake/debian/copyright RENAME copyright
    DESTINATION "share/doc/${_${_component}}" COMPONENT fletching_${_component})
  install(FILES "${PROJECT_SOURCE_DIR}/NOTICE"
    DESTINATION "share/doc/${_${_component}}" COMPONENT fletching_${_component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL fletching_runtime fletching_development)
set(CPACK_PACKAGE_NAME fletching)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${_maintainer}")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${_revision})
set(CPACK_DEBIAN_PACKAGE_SOURCE fletching)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/cpp/src")
set(CPACK_COMPONENT_FLETCHING_RUNTIME_DESCRIPTION
  "The shared library: moves, releases and waits on the structs of the Arrow C
device data interface and of DLPack, and validates streams of them.")
set(CPACK_COMPONENT_FLETCHING_DEVELOPMENT_DESCRIPTION
  "The headers for C and C++, the static core, files for CMake and pkg-config,
and the program fletching-inspect.")
set(CPACK_DEBIAN_FLETCHING_RUNTIME_PACKAGE_NAME "${_runtime}")
set(CPACK_DEBIAN_FLETCHING_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_FLETCHING_RUNTIME_PACKAGE_CONTROL_EXTRA
  "${CMAKE_CURRENT_SOURCE_DIR}/cmake/debian/triggers")
set(CPACK_DEBIAN_FLETCHING_DEVELOPMENT_PACKAGE_NAME "${_development}")
set(CPACK_DEBIAN_FLETCHING_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_FLETCHING_DEVELOPMENT_PACKAGE_DEPENDS
  "${_runtime} (= ${PROJECT_VERSION}-${_revision})")
include(CPack)
