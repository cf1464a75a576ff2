"""The recipe for Conan 2. cpp/build-package fills in the version and the checksum.

The version of the compiler's C++ standard is not checked, because C programs use the package too.
"""

from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir


class FletchingConan(ConanFile):
    name = "fletching"
    version = "@VERSION@"
    description = "Device-data binding kit for Apache Arrow"
    license = "Apache-2.0"
    homepage = url = "https://github.com/fletching/fletching"
    topics = ("arrow", "dlpack", "gpu", "zero-copy")
    settings = "os", "arch", "compiler", "build_type"
    options = {"libfletching": [True, False]}  # noqa: RUF012
    default_options = {"libfletching": True}  # noqa: RUF012

    def configure(self):
        if not self.options.libfletching:  # all that is left is C
            self.settings.rm_safe("compiler.cppstd")
            self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self, src_folder="src")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["FLETCHING_BUILD_SHARED"] = bool(self.options.libfletching)
        toolchain.cache_variables["FLETCHING_BUILD_TESTS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        package = Path(self.package_folder)
        for name in ("LICENSE", "NOTICE"):
            copy(self, name, self.source_folder, package / "licenses")
        CMake(self).install()
        # Conan writes its own files for CMake and pkg-config.
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):
            rmdir(self, package / folder)

    def package_info(self):
        # fletching::fletching is the component, not all of the package.
        self.cpp_info.set_property("cmake_target_name", "fletching::all")
        self.cpp_info.set_property("pkg_config_name", "fletching-all")
        unix = self.settings.os in ("Linux", "FreeBSD")
        components = self.cpp_info.components
        components["abi"].bindirs = components["abi"].libdirs = []
        components["core"].libs = ["fletching_core"]
        components["core"].requires = ["abi"]
        components["core"].system_libs = ["pthread", "dl"] if unix else []
        components["fletching"].requires = ["core"]
        components["fletching"].bindirs = components["fletching"].libdirs = []
        components["fletching"].set_property("pkg_config_name", "fletching")
        if self.options.libfletching:
            components["shared"].libs = ["fletching"]
            components["shared"].requires = ["abi"]
            components["shared"].defines = ["FLETCHING_SHARED"]
            components["shared"].system_libs = ["pthread"] if unix else []
            components["shared"].set_property("pkg_config_name", "fletching-shared")
