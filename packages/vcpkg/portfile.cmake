# cpp/build-package fills in the checksum. Untested: no vcpkg runs in this repository's tests.
# The port has the headers and the core, but not libfletching, which is always a shared library.
vcpkg_download_distfile(ARCHIVE
  URLS "https://github.com/fletching/fletching/releases/download/v${VERSION}/fletching-${VERSION}.tar.gz"
  FILENAME "fletching-${VERSION}.tar.gz"
  SHA512 @SHA512@)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DFLETCHING_BUILD_SHARED=OFF -DFLETCHING_BUILD_TESTS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME fletching CONFIG_PATH lib/cmake/fletching)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/NOTICE")
