// SPDX-License-Identifier: Apache-2.0
//
// Waits that need more than the event: for Vulkan, and for devices without a built-in runtime.
#include "fletching/waiter.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "interruptible.hpp"

namespace fletching::python {
namespace {

nb::int_ address(const void* pointer) { return nb::int_(reinterpret_cast<uintptr_t>(pointer)); }

void write(FletchingMessage* message, const std::string& text) noexcept {
  if (message == nullptr) return;
  const size_t size = (std::min)(text.size(), sizeof(message->text) - 1);
  std::memcpy(message->text, text.data(), size);
  message->text[size] = '\0';
}

/// A registered waiter. The struct lives as long as the process, the object until Python ends. Read
/// with the GIL held.
struct Registered {
  std::atomic<PyObject*> object;
  Registered* before;
};
std::atomic<Registered*> registered{nullptr};

/// Runs as an atexit function, after all other threads have stopped using Python.
void forget_waiters() {
  for (Registered* each = registered; each != nullptr; each = each->before) {
    Py_XDECREF(each->object.exchange(nullptr));
  }
}

/// Calls a method of the waiter on any thread. An exception becomes the error.
template <class Use>
int call(void* context, FletchingMessage* message, const Use& use) noexcept {
  const AnyThreadGil gil;
  PyObject* const waiter = gil ? static_cast<Registered*>(context)->object.load() : nullptr;
  if (waiter != nullptr) {
    Error error(EIO, "");
    try {
      use(nb::borrow(waiter));
      return 0;
    } catch (nb::python_error& raised) {
      raised.restore();
      error = current_python_error();
    } catch (const std::exception& raised) {
      error = Error(EIO, raised.what());
    }
    write(message, error.message());
    return error.code();
  }
  write(message, "the Python interpreter has ended");
  return EIO;
}

int synchronize(void* context, void* event, int64_t /*device_id*/, FletchingMessage* message) {
  return call(context, message,
              [&](const nb::object& waiter) { waiter.attr("synchronize")(address(event)); });
}

int wait_on(void* context, void* event, int64_t /*device_id*/, void* stream,
            FletchingMessage* message) {
  return call(context, message, [&](const nb::object& waiter) {
    waiter.attr("wait_on")(address(event), address(stream));
  });
}

int ready(void* context, void* event, int64_t /*device_id*/, int* ready,
          FletchingMessage* message) {
  return call(context, message, [&](const nb::object& waiter) {
    *ready = PyObject_IsTrue(nb::object(waiter.attr("ready")(address(event))).ptr());
    if (*ready < 0) throw nb::python_error();
  });
}

/// A replaced waiter is kept, because a wait may still use it on another thread.
void register_python_waiter(ArrowDeviceType device_type, nb::object object) {
  for (const char* method : {"synchronize", "wait_on", "ready"}) {
    if (nb::hasattr(object, method)) continue;
    raise_type_error(std::string("register_waiter: waiter has no ") + method +
                     ": expected synchronize, wait_on and ready");
  }
  auto made = std::make_unique<Registered>(object.ptr(), registered.load());
  unwrap(register_waiter(device_type, {&synchronize, &wait_on, &ready, made.get()}));
  object.release();
  while (!registered.compare_exchange_weak(made->before, made.get())) {
  }
  made.release();
}

const ArrowDeviceArray& raw(const PyDeviceArray& array) { return *(**array.shared).get(); }

void bind_vulkan(nb::module_& module) {
  using Context = vulkan::WaitContext;
  nb::class_<Context>(module, "VulkanContext", nb::is_final(),
                      "The Vulkan objects for a wait; the arguments are addresses.")
      .def(
          "__init__",
          [](Context* self, uintptr_t device, uintptr_t producer_queue, uintptr_t queue,
             uint32_t set_stages, uintptr_t get_device_proc_addr) {
            new (self) Context{
                reinterpret_cast<void*>(device), reinterpret_cast<void*>(producer_queue),
                reinterpret_cast<void*>(queue), set_stages,
                reinterpret_cast<decltype(Context::get_device_proc_addr)>(get_device_proc_addr)};
          },
          nb::kw_only(), nb::arg("device"), nb::arg("producer_queue") = 0, nb::arg("queue") = 0,
          nb::arg("set_stages") = Context{}.set_stages, nb::arg("get_device_proc_addr") = 0)
      .def(
          "synchronize",
          [](const Context& self, const PyDeviceArray& array) {
            wait_interruptibly(unwrap(array.shared->view()),
                               [context = self](const DeviceArray& waited) {
                                 return SyncEvent(waited).synchronize(context);
                               });
          },
          nb::arg("array"), "Blocks until the host may read the data.")
      .def(
          "wait_on",
          [](const Context& self, const PyDeviceArray& array, uintptr_t command_buffer) {
            void* const handle = reinterpret_cast<void*>(command_buffer);
            unwrap(without_gil([&] { return SyncEvent(raw(array)).wait_on(self, handle); }));
          },
          nb::arg("array"), nb::arg("command_buffer"),
          "Records a wait for the data into a VkCommandBuffer.")
      .def(
          "ready",
          [](const Context& self, const PyDeviceArray& array) {
            return unwrap(without_gil([&] { return SyncEvent(raw(array)).ready(self); }));
          },
          nb::arg("array"), "Whether the data may be read. Does not block.");
}

}  // namespace

void bind_end_of_waiters() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&forget_waiters));
}

void bind_waiter(nb::module_& module) {
  bind_vulkan(module);
  module.def(
      "register_waiter", &register_python_waiter, nb::arg("device_type"), nb::arg("waiter"),
      "Makes DeviceArray wait with `waiter` on a device type without a runtime in Fletching.\n"
      "`waiter` has the methods synchronize(event), wait_on(event, stream) and ready(event).\n"
      "They take addresses and are called on any thread. The waiter lives until the interpreter\n"
      "ends.",
      nb::sig("def register_waiter(device_type: int, waiter: object) -> None"));
}

}  // namespace fletching::python
