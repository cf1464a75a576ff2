#include "memory.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {

Allocation::Allocation(Backend& backend, const Bytes& bytes, bool inverted, Watch* watch)
    : backend_(backend) {
  Pages pages{};
  const bool is_watched = watch != nullptr && !bytes.empty();
  buffer_ =
      is_watched ? backend.allocate_in_pages(bytes.size(), &pages) : backend.allocate(bytes.size());
  bool is_known = false;
  try {
    Bytes content = bytes;
    if (inverted) std::ranges::transform(content, content.begin(), std::bit_not());
    if (!content.empty()) backend_.copy_to(buffer_, content.data(), content.size());
    add_allocation(buffer_, &bytes);
    is_known = true;
    if (is_watched) watch->add(pages);
  } catch (...) {
    if (is_known) remove_allocation(buffer_);
    backend_.free(buffer_);
    throw;
  }
}

Allocation::~Allocation() {
  remove_allocation(buffer_);  // first: the address may be reused at once
  backend_.free(buffer_);
}

// --- Filler

Filler::Filler(Backend& backend, bool shut) : backend_(backend) {
  if (!shut && !backend.has_queues()) return;
  queue_ = backend.new_queue();
  if (shut) gate_ = queue_->shut();
}

std::shared_ptr<Filler> Filler::ungated(Backend& backend) {
  // Never destroyed: arrays may be released at process exit.
  static auto& fillers = *new std::map<Backend*, std::shared_ptr<Filler>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Filler>& filler = fillers[&backend];
  if (filler == nullptr) filler = std::make_shared<Filler>(backend, false);
  return filler;
}

void Filler::open() {
  const std::lock_guard lock(mutex_);
  if (watch_ != nullptr) watch_->open();
  if (gate_ != nullptr) gate_->open();
}

void Filler::watch() {
  Pages pages{};
  backend_.free(backend_.allocate_in_pages(1, &pages));
  watch_ = std::make_unique<Watch>();
}

Accesses Filler::accesses() {
  if (watch_ == nullptr) fail(ENOENT, "gate: not watched: expected FletchingProducerGateWatch");
  queue_->finish();
  return watch_->accesses();
}

void Filler::close() {
  std::vector<std::shared_ptr<Memory>> kept;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
    if (gate_ != nullptr) gate_->open();
    if (queue_ != nullptr) queue_->finish();
    watch_.reset();
  }
}

// --- Work

Work::Work(std::shared_ptr<Filler> filler) : filler_(std::move(filler)) {}

Work::~Work() {
  if (event_ != nullptr) remove_event(event_.get());
}

void* Work::record() {
  if (filler_->queue_ == nullptr) return nullptr;
  const std::lock_guard lock(filler_->mutex_);
  std::unique_ptr<Event> event = filler_->queue_->record();
  add_event(event.get());
  event_ = std::move(event);
  return event_->address();
}

void Work::wait() {
  if (event_ != nullptr) return event_->wait();
  // Not recorded: the export failed halfway.
  if (filler_->queue_ != nullptr) filler_->queue_->finish();
}

// --- Memory

std::shared_ptr<Memory> Memory::make(std::shared_ptr<Work> work) {
  Filler& filler = *work->filler_;
  auto memory = std::shared_ptr<Memory>(new Memory(std::move(work)));
  if (filler.gate_ != nullptr) {
    const std::lock_guard lock(filler.mutex_);
    filler.kept_.push_back(memory);
  }
  return memory;
}

Memory::~Memory() {
  if (allocations_.empty()) return;
  try_twice([this] { work_->wait(); });
}

const void* Memory::add(const Bytes& bytes) {
  Filler& filler = *work_->filler_;
  const bool later = filler.queue_ != nullptr && filler.watch_ == nullptr;
  allocations_.push_back(
      std::make_unique<Allocation>(filler.backend_, bytes, later, filler.watch_.get()));
  void* buffer = allocations_.back()->buffer();
  if (later && !bytes.empty()) {
    const std::lock_guard lock(filler.mutex_);
    filler.queue_->invert(buffer, bytes.size());
  }
  return buffer;
}

const void* Memory::add_on_host(const Bytes& bytes) {
  allocations_.push_back(std::make_unique<Allocation>(*cpu_backend(), bytes, false));
  return allocations_.back()->buffer();
}

}  // namespace fletching::producer
