// SPDX-License-Identifier: Apache-2.0
//
// Async streams of the C++ subject with an injected fault.
#ifndef FLETCHING_TESTS_CONFORMANCE_BREAKS_ASYNC_HPP
#define FLETCHING_TESTS_CONFORMANCE_BREAKS_ASYNC_HPP

#include <deque>
#include <memory>
#include <vector>

#include "breaks.hpp"

namespace fletching::conformance {

/// Sits between a producer and a consumer and forwards every call. A fault overrides a call.
struct Relay {
  struct Task {
    Relay* relay;
    ArrowAsyncTask inner;  // a copy of the producer's task
    ArrowAsyncTask* lent;  // the producer's task; invalid after on_next_task returns
  };

  Relay() = default;
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  virtual ~Relay() = default;

  /// Called before the producer gets `outer` and before the consumer gets `shown`.
  virtual void open() {}
  virtual void show() {}

  virtual int on_schema(ArrowSchema* schema) { return inner->on_schema(inner, schema); }
  virtual int on_next_task(ArrowAsyncTask* task, const char* metadata) {
    if (task == nullptr) return inner->on_next_task(inner, nullptr, metadata);
    ArrowAsyncTask given{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                           auto& kept = *static_cast<Task*>(self->private_data);
                           return kept.relay->extract(kept, out);
                         },
                         &tasks.emplace_back(Task{this, *task, task})};
    return inner->on_next_task(inner, &given, metadata);
  }
  virtual void on_error(int code, const char* message, const char* metadata) {
    inner->on_error(inner, code, message, metadata);
  }
  virtual void release() { inner->release(inner); }

  virtual void request(std::int64_t n) { outer.producer->request(outer.producer, n); }
  virtual void cancel() { outer.producer->cancel(outer.producer); }
  virtual int extract(Task& task, ArrowDeviceArray* out) {
    return task.inner.extract_data(&task.inner, out);
  }

  /// The relay of a handler. Call it before each call of the handler.
  static Relay& of(ArrowAsyncDeviceStreamHandler* self) {
    auto& relay = *static_cast<Relay*>(self->private_data);
    if (relay.shown.private_data == nullptr && self->producer != nullptr) {
      relay.shown = {self->producer->device_type,
                     [](ArrowAsyncProducer* producer, std::int64_t n) { of(producer).request(n); },
                     [](ArrowAsyncProducer* producer) { of(producer).cancel(); },
                     self->producer->additional_metadata, &relay};
      relay.inner->producer = &relay.shown;
      relay.show();
    }
    return relay;
  }
  static Relay& of(ArrowAsyncProducer* self) { return *static_cast<Relay*>(self->private_data); }

  ArrowAsyncDeviceStreamHandler outer{
      [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
        return of(self).on_schema(schema);
      },
      [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task, const char* metadata) {
        return of(self).on_next_task(task, metadata);
      },
      [](ArrowAsyncDeviceStreamHandler* self, int code, const char* message, const char* metadata) {
        of(self).on_error(code, message, metadata);
      },
      [](ArrowAsyncDeviceStreamHandler* self) { of(self).release(); },
      nullptr,
      this};
  ArrowAsyncDeviceStreamHandler* inner = nullptr;
  ArrowAsyncProducer shown{};
  std::deque<Task> tasks;
};

/// Gives the consumer a copy of the schema whose release does nothing.
struct SchemaCopied : Relay {
  int on_schema(ArrowSchema* schema) override {
    ArrowSchema copy = *schema;
    copy.release = [](ArrowSchema* self) { self->release = nullptr; };
    return Relay::on_schema(&copy);
  }
};

/// Relays, kept for late calls.
inline std::vector<std::unique_ptr<Relay>>& relays() {
  static auto& kept = *new std::vector<std::unique_ptr<Relay>>;
  return kept;
}

template <class Fault>
ArrowAsyncDeviceStreamHandler* relayed(ArrowAsyncDeviceStreamHandler* handler) {
  Relay& relay = *relays().emplace_back(std::make_unique<Fault>());
  relay.inner = handler;
  relay.open();
  return &relay.outer;
}

/// A subject with the fault in its producer: the relay's `inner` is the suite's handler.
template <class Fault>
FletchingSubject sends() {
  FletchingSubject subject = good();
  subject.send = [](void* context, ArrowDeviceArrayStream* stream,
                    ArrowAsyncDeviceStreamHandler* handler, FletchingMessage* message) {
    return good().send(context, stream, relayed<Fault>(handler), message);
  };
  return subject;
}

/// A subject with the fault in its consumer: the relay's `inner` is the subject's handler.
template <class Fault>
FletchingSubject receives() {
  struct Connection {
    FletchingSubjectConnect connect;
    void* context;
  };
  FletchingSubject subject = good();
  subject.receive = [](void* context, FletchingSubjectConnect connect, void* connect_context,
                       ArrowDeviceArrayStream* out, FletchingMessage* message) {
    Connection connection{connect, connect_context};
    const auto connect_relay = [](void* self, ArrowAsyncDeviceStreamHandler* handler) {
      const auto& given = *static_cast<Connection*>(self);
      return given.connect(given.context, relayed<Fault>(handler));
    };
    return good().receive(context, connect_relay, &connection, out, message);
  };
  return subject;
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_BREAKS_ASYNC_HPP
