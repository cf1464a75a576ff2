// SPDX-License-Identifier: Apache-2.0
#include "chain.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

namespace fletching::conformance {
namespace {

/// Never unloads the library, because its structs may outlive the case.
Link load(const std::string& name) {
  const char* const folder = std::getenv("FLETCHING_LIB_DIR");
  const std::string file = "libfletching_subject_" + name + ".so";
  const std::string path = folder == nullptr ? file : std::string(folder) + "/" + file;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {name, nullptr, std::string(dlerror()) + "; run `make`"};
  void* const symbol = dlsym(library, "FletchingConformanceSubject");
  if (symbol == nullptr) return {name, nullptr, dlerror()};
  return {name, reinterpret_cast<FletchingConformanceSubjectFunction>(symbol)(0), ""};
}

}  // namespace

std::vector<Link> links(const FletchingSubject& tested) {
  const char* const names = std::getenv("FLETCHING_CHAIN");
  std::istringstream words(names == nullptr ? "" : names);
  std::vector<Link> found;
  for (std::string name; words >> name;) {
    found.push_back(name == tested.name ? Link{name, &tested, ""} : load(name));
  }
  return found;
}

}  // namespace fletching::conformance
