// fletching_roundtrip_chain_cpp: C++ as the host of the chain (tests/roundtrip/README.md), on a
// machine with a GPU, where only programs travel.
//
//     fletching_roundtrip_chain_cpp BACKEND...
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "asserter.hpp"
#include "cells.hpp"
#include "device.hpp"
#include "fletching/owner.hpp"
#include "gated.hpp"
#include "hops.hpp"
#include "producer.h"
#include "text.hpp"
#include "waiting.hpp"

namespace fletching::roundtrip {
namespace {

// One of each layout; devices.py has the same.
constexpr const char* kCases[] = {"int32",  "utf8",       "utf8_view",   "list",
                                  "struct", "dictionary", "dense_union", "record_batch"};
/// The releases that C++ has seen, by objects that it tied to them.
class Releases {
 public:
  template <class Raw>
  void hook(Asserter& asserter, Owner<Raw>& target) {
    asserter.require_success("attach", attach(target, Hook(this)));
    ++hooked_;
  }
  [[nodiscard]] std::int64_t hooked() const { return hooked_; }
  [[nodiscard]] std::int64_t seen() const { return seen_; }

 private:
  struct CountOne {
    void operator()(Releases* releases) const { ++releases->seen_; }
  };
  using Hook = std::unique_ptr<Releases, CountOne>;

  std::int64_t hooked_ = 0;
  std::int64_t seen_ = 0;
};

/// Loaded once, by the first chain: the languages that FLETCHING_CHAIN names, such as "cpp go
/// rust".
const std::vector<Hop>& hops() {
  static const std::vector<Hop> loaded = [] {
    const char* const names = std::getenv("FLETCHING_CHAIN");
    std::istringstream words(names == nullptr ? "" : names);
    std::vector<Hop> made;
    for (std::string language; words >> language;) made.emplace_back(language);
    if (made.empty()) fail(EINVAL, "FLETCHING_CHAIN: names no language: expected \"cpp ...\"");
    return made;
  }();
  return loaded;
}

/// All of these, this program, and the first of them again, while the gate is shut.
void pass_chain(Asserter& asserter, Releases& releases, Schema& schema, DeviceArray& array) {
  const void* const event = array->sync_event;
  for (const Hop& hop : hops()) hop.send(schema, array);
  releases.hook(asserter, schema);
  releases.hook(asserter, array);
  hops().front().send(schema, array);
  asserter.require(array->sync_event == event, "sync_event is another pointer than before");
}

void run_chain(Asserter& asserter, Releases& releases, const Device& device, const char* name) {
  std::vector<std::int64_t> before;
  for (const Hop& hop : hops()) before.push_back(hop.exported());
  {
    Gated gate(device);
    Schema schema;
    std::vector<DeviceArray> arrays(1);
    gate.export_array(name, schema.out(), arrays.front().out());
    pass_chain(asserter, releases, schema, arrays.front());
    require_waits(asserter, device, gate, name, arrays);
    FletchingMessage message{};
    const int code = FletchingProducerVerifyArray(device.backend(), name, schema.get(),
                                                  arrays.front().get(), &message);
    asserter.require_success("verification", code, message);
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Hop& hop = hops()[i];
    const std::string& language = hop.language();
    asserter.require(hop.exported() > before[i], language + " exported nothing");
    asserter.require_equal("the number of releases in " + language, hop.released(), hop.exported());
  }
  asserter.require_equal("the number of releases in C++", releases.seen(), releases.hooked());
  require_producer_at_rest(asserter);
}

bool run_cell(const Device& device, const char* name) {
  Cell cell;
  cell.backend = device.backend();
  cell.subject_kind = "case";
  cell.subject = name;
  cell.direction = "chain";
  cell.status = device.status();
  if (cell.status == "absent") {
    cell.reason = device.description();
  } else {
    Asserter asserter;
    Releases releases;
    FletchingProducerResetCounters();
    const auto work = [&] { run_chain(asserter, releases, device, name); };
    cell.ok = guarded(cell.reason, work) == 0;
    cell.asserted = asserter.count();
    cell.releases = releases.seen();
    if (!cell.ok) {
      std::fprintf(stderr, "%s %s: %s\n", device.backend(), name, cell.reason.c_str());
    }
  }
  const std::string trouble = append_cell(cell);
  if (!trouble.empty()) std::fprintf(stderr, "%s\n", trouble.c_str());
  return (cell.ok || cell.status == "absent") && trouble.empty();
}

int run_all(std::span<char*> backends) {
  int failed = 0;
  for (const char* backend : backends) {
    const Device device(backend);
    std::printf("%s: %s: %s\n", backend, device.status(), device.description().c_str());
    for (const char* name : kCases) failed += run_cell(device, name) ? 0 : 1;
  }
  std::printf("%d cells failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fletching::roundtrip

int main(int argc, char** argv) {
  const auto backends = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  std::string reason;
  int code = 1;
  fletching::roundtrip::guarded(reason, [&] { code = fletching::roundtrip::run_all(backends); });
  if (!reason.empty()) std::fprintf(stderr, "%s\n", reason.c_str());
  return code;
}
