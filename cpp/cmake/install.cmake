# Files for `cmake --install`. No installed file contains the build or installation folder, so the
# prefix may be moved. Programs need the component `fletching_runtime` at run time.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME fletching_development)
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/fletching")
set(_targets fletching fletching_core fletching_abi)
if(FLETCHING_BUILD_SHARED)
  list(APPEND _targets fletching_shared)
endif()

install(TARGETS ${_targets} EXPORT fletching-targets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT fletching_runtime
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT fletching_runtime
    NAMELINK_COMPONENT fletching_development
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(FLETCHING_BUILD_SHARED)
  install(TARGETS fletching_inspect RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY include/fletching DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(FLETCHING_DEBIAN)
  include(cmake/debian/debian.cmake)
else()
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endif()

install(EXPORT fletching-targets NAMESPACE fletching:: DESTINATION "${_package}")
configure_package_config_file(cmake/fletching-config.cmake.in fletching-config.cmake
  INSTALL_DESTINATION "${_package}" NO_SET_AND_CHECK_MACRO)
# Same compatibility as the library's soname: src/CMakeLists.txt.
write_basic_package_version_file(fletching-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/fletching-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/fletching-config-version.cmake"
  DESTINATION "${_package}")

# Relative path from the folder of the .pc files to the prefix, for example "../..".
file(RELATIVE_PATH _up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" _up "${_up}")
# An absolute installation folder stays absolute.
foreach(_folder LIBDIR INCLUDEDIR)
  string(TOLOWER "_${_folder}" _name)
  set(${_name} "${CMAKE_INSTALL_${_folder}}")
  if(NOT IS_ABSOLUTE "${${_name}}")
    set(${_name} "\${prefix}/${${_name}}")
  endif()
endforeach()
# The flag is right whether or not threads are part of the C library.
set(_threads "-pthread")
set(_dl)
foreach(_library IN LISTS CMAKE_DL_LIBS)
  set(_dl "-l${_library}")
endforeach()
set(_files fletching.pc)
if(FLETCHING_BUILD_SHARED)
  list(APPEND _files fletching-shared.pc)
endif()
foreach(_file IN LISTS _files)
  configure_file("cmake/${_file}.in" "${_file}" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${_file}"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
