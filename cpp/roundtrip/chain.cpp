// libfletching_chain: the functions of chain.h.
#include "chain.h"

#include <memory>
#include <string>
#include <vector>

#include "asserter.hpp"
#include "device.hpp"
#include "fletching/owner.hpp"
#include "gated.hpp"
#include "producer.h"
#include "text.hpp"
#include "waiting.hpp"

using fletching::DeviceArray;
using fletching::Schema;
using fletching::roundtrip::Asserter;
using fletching::roundtrip::Device;
using fletching::roundtrip::fail;
using fletching::roundtrip::Gated;

struct FletchingChain {
  FletchingChain(const char* backend, const char* case_name)
      : backend_name(backend), name(case_name), device(backend_name.c_str()), gate(device) {}

  std::string backend_name;
  std::string name;
  Device device;
  Gated gate;
  const void* event = nullptr;
};

namespace {

template <class Work>
int answered(FletchingMessage* message, const Work& work) {
  std::string text;
  const int code = fletching::roundtrip::guarded(text, work);
  if (message != nullptr) {
    fletching::roundtrip::write_message(text, message->text, sizeof message->text);
  }
  return code;
}

void require_arrived(Asserter& asserter, FletchingChain& chain, const Schema& schema,
                     const std::vector<DeviceArray>& arrays) {
  asserter.require(!schema.is_released() && !arrays.front().is_released(),
                   "the chain has returned a released struct");
  asserter.require(arrays.front()->sync_event == chain.event,
                   "sync_event is another pointer than before");
  const char* name = chain.name.c_str();
  require_waits(asserter, chain.device, chain.gate, name, arrays);
  FletchingMessage message{};
  const int code = FletchingProducerVerifyArray(chain.device.backend(), name, schema.get(),
                                                arrays.front().get(), &message);
  asserter.require_success("verification", code, message);
}

}  // namespace

int FletchingChainBegin(const char* backend, const char* case_name, FletchingChain** chain,
                        ArrowSchema* schema, ArrowDeviceArray* array, FletchingMessage* message) {
  return answered(message, [&] {
    if (chain == nullptr || schema == nullptr || array == nullptr) fail(EINVAL, "NULL argument");
    *chain = nullptr;
    *schema = {};
    *array = {};
    if (backend == nullptr || case_name == nullptr) fail(EINVAL, "NULL argument");
    FletchingProducerResetCounters();
    auto made = std::make_unique<FletchingChain>(backend, case_name);
    made->gate.export_array(case_name, schema, array);
    made->event = array->sync_event;
    *chain = made.release();
  });
}

int FletchingChainEnd(FletchingChain* chain, ArrowSchema* schema, ArrowDeviceArray* array,
                      std::int64_t* asserted, FletchingMessage* message) {
  Asserter asserter;
  const int code = answered(message, [&] {
    std::unique_ptr<FletchingChain> owned(chain);
    if (chain == nullptr || schema == nullptr || array == nullptr) fail(EINVAL, "NULL argument");
    {
      const Schema taken_schema(schema);
      std::vector<DeviceArray> arrays;
      arrays.emplace_back(array);
      require_arrived(asserter, *owned, taken_schema, arrays);
    }
    owned.reset();
    require_producer_at_rest(asserter);
  });
  if (asserted != nullptr) *asserted = asserter.count();
  return code;
}
