# Files for `cmake --install`. No installed file contains the build or installation folder, so the
# prefix may be moved.
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/fletching")
set(_targets fletching fletching_core fletching_headers)
if(FLETCHING_BUILD_SHARED)
  list(APPEND _targets fletching_shared)
endif()

install(TARGETS ${_targets} EXPORT fletching-targets
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(FLETCHING_BUILD_SHARED)
  install(TARGETS fletching_inspect RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY include/fletching DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT fletching-targets NAMESPACE fletching:: DESTINATION "${_package}")
configure_package_config_file(cmake/fletching-config.cmake.in fletching-config.cmake
  INSTALL_DESTINATION "${_package}")
# Same compatibility as the library's soname: src/CMakeLists.txt.
write_basic_package_version_file(fletching-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/fletching-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/fletching-config-version.cmake"
  DESTINATION "${_package}")

# Relative path from the folder of the .pc files to the prefix, for example "../..".
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE _up)
# An absolute installation folder stays absolute.
cmake_path(APPEND _libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND _includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
# The flag is right whether or not threads are part of the C library.
set(_threads "-pthread")
set(_libs "${_threads}")
foreach(_library IN LISTS CMAKE_DL_LIBS)
  string(APPEND _libs " -l${_library}")
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
