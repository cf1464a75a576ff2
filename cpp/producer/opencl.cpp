// The first OpenCL device. Its buffers are cl_mem handles, its events cl_event.
#include "runtimes/opencl.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backend.hpp"
#include "message.hpp"
#include "transfers.hpp"

namespace fletching::producer {
namespace {

using namespace fletching::opencl;

constexpr const char* kKernel =
    "__kernel void fletching_invert(__global uchar* buffer, ulong bytes) {\n"
    "  const size_t step = get_global_size(0);\n"
    "  for (size_t i = get_global_id(0); i < bytes; i += step) buffer[i] = ~buffer[i];\n"
    "}\n";

constexpr cl_bitfield kClMemUseHostPtr = 1 << 3;
constexpr cl_uint kClDeviceType = 0x1000;
constexpr cl_bitfield kClDeviceTypeCpu = 1 << 1;

// Set when the device is found; not used earlier.
const Functions* g_cl = nullptr;

void check(const char* function, cl_int status) {
  if (status == kClSuccess) return;
  const char* name = status_name(status);
  fail(EIO, std::string(function) + ": failed: got " + (name != nullptr ? name : "the error") +
                " (" + std::to_string(status) + ")");
}

// A handle with its release function; OpenCL counts references.
template <class Handle, auto Release>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) (g_cl->*Release)(handle_);
  }

  Handle get() const { return handle_; }
  Handle* address() { return &handle_; }

 private:
  Handle handle_ = nullptr;
};

using OwnedEvent = Owned<cl_event, &Functions::cl_release_event>;
using OwnedQueue = Owned<cl_command_queue, &Functions::cl_release_command_queue>;
using OwnedProgram = Owned<cl_program, &Functions::cl_release_program>;
using OwnedKernel = Owned<cl_kernel, &Functions::cl_release_kernel>;
using OwnedContext = Owned<cl_context, &Functions::cl_release_context>;

// Checks a call that returns a handle and writes its status to the last argument.
template <class Handle>
Handle checked(const char* function, Handle handle, const cl_int& status) {
  check(function, status);
  return handle;
}

// The device, context and program shared by all queues and buffers of this process.
struct Root {
  cl_device_id device = nullptr;
  OwnedContext context;
  OwnedProgram program;
};

void wait_for_event(const cl_event& event) {
  check("clWaitForEvents", g_cl->cl_wait_for_events(1, &event));
}

class OpenClEvent : public Event {
 public:
  explicit OpenClEvent(OwnedEvent event) : event_(std::move(event)) {}
  void* address() noexcept override { return event_.address(); }
  void wait() override { wait_for_event(event_.get()); }

 private:
  OwnedEvent event_;
};

// A user event that the host completes.
class OpenClGate : public Gate {
 public:
  explicit OpenClGate(cl_context context) {
    cl_int status = kClSuccess;
    event_ = OwnedEvent(
        checked("clCreateUserEvent", g_cl->cl_create_user_event(context, &status), status));
  }
  ~OpenClGate() override {
    if (!open_) g_cl->cl_set_user_event_status(event_.get(), kClComplete);
  }
  OpenClGate(const OpenClGate&) = delete;
  OpenClGate& operator=(const OpenClGate&) = delete;

  void open() override {
    if (open_) return;
    check("clSetUserEventStatus", g_cl->cl_set_user_event_status(event_.get(), kClComplete));
    open_ = true;
  }
  const cl_event* event() { return event_.address(); }

 private:
  OwnedEvent event_;
  bool open_ = false;
};

class OpenClQueue : public Queue {
 public:
  explicit OpenClQueue(const Root& root) : root_(root) {
    cl_int status = kClSuccess;
    cl_command_queue queue =
        g_cl->cl_create_command_queue(root.context.get(), root.device, 0, &status);
    queue_ = OwnedQueue(checked("clCreateCommandQueue", queue, status));
    // Each queue has a separate kernel object, because the arguments are part of it.
    cl_kernel kernel = g_cl->cl_create_kernel(root.program.get(), "fletching_invert", &status);
    kernel_ = OwnedKernel(checked("clCreateKernel", kernel, status));
  }
  ~OpenClQueue() override {
    // The first failure may come from earlier work; after a second one the device runs no work.
    if (has_work_ && g_cl->cl_finish(queue_.get()) != kClSuccess) g_cl->cl_finish(queue_.get());
  }
  OpenClQueue(const OpenClQueue&) = delete;
  OpenClQueue& operator=(const OpenClQueue&) = delete;

  void* handle() override {
    has_work_ = true;
    return queue_.get();
  }

  std::unique_ptr<Gate> shut() override {
    has_work_ = true;
    auto gate = std::make_unique<OpenClGate>(root_.context.get());
    check("clEnqueueBarrierWithWaitList",
          g_cl->cl_enqueue_barrier_with_wait_list(queue_.get(), 1, gate->event(), nullptr));
    return gate;
  }
  void invert(void* buffer, size_t bytes) override {
    has_work_ = true;
    auto* memory = static_cast<cl_mem>(buffer);
    const std::uint64_t count = bytes;
    set_argument(0, sizeof memory, &memory);
    set_argument(1, sizeof count, &count);
    const size_t items = std::min<size_t>(bytes, kMostItems);
    check("clEnqueueNDRangeKernel",
          g_cl->cl_enqueue_nd_range_kernel(queue_.get(), kernel_.get(), 1, nullptr, &items, nullptr,
                                           0, nullptr, nullptr));
  }
  void read(void* staging, const void* buffer, size_t bytes) override {
    has_work_ = true;
    auto* memory = static_cast<cl_mem>(const_cast<void*>(buffer));
    OwnedEvent done;
    check("clEnqueueReadBuffer",
          g_cl->cl_enqueue_read_buffer(queue_.get(), memory, kClFalse, 0, bytes, staging, 0,
                                       nullptr, done.address()));
    last_ = std::move(done);
    check("clFlush", g_cl->cl_flush(queue_.get()));
  }
  // Blocks until the copy is done.
  void write(void* buffer, const void* host, size_t bytes) {
    check("clEnqueueWriteBuffer",
          g_cl->cl_enqueue_write_buffer(queue_.get(), static_cast<cl_mem>(buffer), kClTrue, 0,
                                        bytes, host, 0, nullptr, nullptr));
  }
  std::unique_ptr<Event> record() override {
    OwnedEvent event;
    check("clEnqueueMarkerWithWaitList",
          g_cl->cl_enqueue_marker_with_wait_list(queue_.get(), 0, nullptr, event.address()));
    auto recorded = std::make_unique<OpenClEvent>(std::move(event));
    check("clFlush", g_cl->cl_flush(queue_.get()));
    return recorded;
  }
  bool is_idle() override {
    if (last_.get() == nullptr) return true;
    cl_int answer = 0;
    check("clGetEventInfo", g_cl->cl_get_event_info(last_.get(), kClEventCommandExecutionStatus,
                                                    sizeof answer, &answer, nullptr));
    if (event_state(answer) == EventState::kFailed) check("the read on the queue", answer);
    return event_state(answer) == EventState::kDone;
  }
  void finish() override {
    check("clFinish", g_cl->cl_finish(queue_.get()));
    has_work_ = false;
  }

 private:
  static constexpr size_t kMostItems = 4096;

  void set_argument(cl_uint index, size_t bytes, const void* value) {
    check("clSetKernelArg", g_cl->cl_set_kernel_arg(kernel_.get(), index, bytes, value));
  }

  const Root& root_;
  OwnedQueue queue_;
  OwnedKernel kernel_;
  OwnedEvent last_;        // event of the last read
  bool has_work_ = false;  // false: certainly none
};

class OpenCl : public Backend {
 public:
  const char* name() const override { return "opencl"; }
  ArrowDeviceType device_type() const override { return ARROW_DEVICE_OPENCL; }
  int64_t device_id() const override { return 0; }  // index in the context

  Device find() override {
    return finding_.get([&]() -> Device { return {Presence::kReal, open()}; });
  }

  void* allocate(size_t bytes) override {
    cl_int status = kClSuccess;
    cl_mem memory = g_cl->cl_create_buffer(root_.context.get(), kClMemReadWrite,
                                           std::max<size_t>(bytes, 1), nullptr, &status);
    check("clCreateBuffer", status);
    transfers_.add_buffer();
    return memory;
  }
  void* allocate_in_pages(size_t bytes, Pages* pages) override {
    if (!is_cpu_) return Backend::allocate_in_pages(bytes, pages);
    void* memory = ::operator new(whole_pages(bytes), std::align_val_t{kPageBytes});
    {
      const std::lock_guard lock(mutex_);
      kept_.push_back(memory);
    }
    cl_int status = kClSuccess;
    cl_mem buffer = g_cl->cl_create_buffer(root_.context.get(), kClMemReadWrite | kClMemUseHostPtr,
                                           bytes, memory, &status);
    check("clCreateBuffer", status);
    transfers_.add_buffer();
    *pages = {memory, whole_pages(bytes)};
    return buffer;
  }
  void free(void* buffer) noexcept override {
    transfers_.remove_buffer();
    g_cl->cl_release_mem_object(static_cast<cl_mem>(buffer));
  }
  void copy_to(void* buffer, const void* host, size_t bytes) override {
    transfers_.run([&](OpenClQueue& queue) { queue.write(buffer, host, bytes); });
  }
  void copy_from(void* host, const void* buffer, size_t bytes) override {
    transfers_.run([&](OpenClQueue& queue) {
      queue.read(host, buffer, bytes);
      queue.finish();
    });
  }
  void* allocate_staging(size_t bytes) override { return cpu_backend()->allocate(bytes); }
  void free_staging(void* staging) noexcept override { cpu_backend()->free(staging); }

  std::unique_ptr<Queue> new_queue() override { return std::make_unique<OpenClQueue>(root_); }

 private:
  // Finds the device, compiles the kernel for it and returns its name. A failure leaves no state.
  std::string open() {
    Result<const Functions*> functions = opencl::functions();
    if (!functions) fail(functions.error().code(), functions.error().message());
    g_cl = *functions;
    Root root;
    root.device = first_device();
    cl_int status = kClSuccess;
    root.context = OwnedContext(checked(
        "clCreateContext",
        g_cl->cl_create_context(nullptr, 1, &root.device, nullptr, nullptr, &status), status));
    const char* text = kKernel;
    root.program = OwnedProgram(
        checked("clCreateProgramWithSource",
                g_cl->cl_create_program_with_source(root.context.get(), 1, &text, nullptr, &status),
                status));
    check("clBuildProgram",
          g_cl->cl_build_program(root.program.get(), 1, &root.device, "", nullptr, nullptr));
    char name[256] = {};
    check("clGetDeviceInfo",
          g_cl->cl_get_device_info(root.device, kClDeviceName, sizeof name - 1, name, nullptr));
    cl_bitfield type = 0;
    check("clGetDeviceInfo",
          g_cl->cl_get_device_info(root.device, kClDeviceType, sizeof type, &type, nullptr));
    is_cpu_ = (type & kClDeviceTypeCpu) != 0;
    root_ = std::move(root);
    return std::string("OpenCL: ") + name;
  }

  static cl_device_id first_device() {
    cl_uint count = 0;
    const cl_int status = g_cl->cl_get_platform_ids(0, nullptr, &count);
    if (count == 0) {
      fail(ENODEV, "clGetPlatformIDs found no driver (" + std::to_string(status) +
                       "); install one, such as pocl-opencl-icd");
    }
    check("clGetPlatformIDs", status);
    std::vector<cl_platform_id> platforms(count);
    check("clGetPlatformIDs", g_cl->cl_get_platform_ids(count, platforms.data(), nullptr));
    for (cl_platform_id platform : platforms) {
      cl_device_id device = nullptr;
      cl_uint devices = 0;
      g_cl->cl_get_device_ids(platform, kClDeviceTypeAll, 1, &device, &devices);
      if (devices > 0) return device;
    }
    fail(ENODEV, "clGetDeviceIDs: no device: expected one or more");
  }

  Finding finding_;
  Root root_;
  bool is_cpu_ = false;
  std::mutex mutex_;
  std::vector<void*> kept_;  // never freed: a command of the consumer may still read it
  Transfers<OpenClQueue> transfers_{[this] { return std::make_unique<OpenClQueue>(root_); }};
};

}  // namespace

Backend* opencl_backend() {
  // Never destroyed: arrays may be released at process exit.
  static auto& device = *new OpenCl;
  return &device;
}

}  // namespace fletching::producer
