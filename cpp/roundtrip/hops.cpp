#include "hops.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "text.hpp"

namespace fletching::roundtrip {
namespace {

std::string path_of(const std::string& language) {
  const char* folder = std::getenv("FLETCHING_LIB_DIR");
  const std::string name = "libfletching_transit_" + language + ".so";
  return folder == nullptr || *folder == '\0' ? name : std::string(folder) + "/" + name;
}

template <class Function>
void find(void* library, const char* symbol, Function& function) {
  void* found = dlsym(library, symbol);
  if (found == nullptr) fail(ENOSYS, printable(dlerror()));
  function = reinterpret_cast<Function>(found);
}

}  // namespace

Hop::Hop(std::string language) : language_(std::move(language)) {
  void* library = dlopen(path_of(language_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(ENOENT, printable(dlerror()) + "; run `make`");
  find(library, "FletchingTransitArray", array_);
  find(library, "FletchingTransitExported", exported_);
  find(library, "FletchingTransitReleased", released_);
}

void Hop::send(Schema& schema, DeviceArray& array) const {
  Schema out_schema;
  DeviceArray out_array;
  char message[1024] = "";
  const int code =
      array_(schema.get(), array.get(), out_schema.out(), out_array.out(), message, sizeof message);
  if (code != 0) fail(code, language_ + ": " + printable(message));
  schema = std::move(out_schema);
  array = std::move(out_array);
}

}  // namespace fletching::roundtrip
