// SPDX-License-Identifier: Apache-2.0
//
// Executors for the calls of an async stream: a queue of jobs, run on the caller's thread or on a
// worker thread.
#ifndef FLETCHING_EXECUTOR_HPP
#define FLETCHING_EXECUTOR_HPP

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Work that is done in steps. Its owner submits it and keeps it until `run` has returned false.
class Job {
 public:
  /// Runs the next step: for an async producer, at most one handler call.
  ///
  /// Returns true if there is more work: run it again, on any thread, now or after other jobs, such
  /// that the writes of this run are visible to the next. Returns false if the job is done; it may
  /// already be destroyed.
  virtual bool run() noexcept = 0;

  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

 protected:
  Job() = default;
  virtual ~Job() = default;

 private:
  friend class RunQueue;
  Job* next_ = nullptr;
};

/// Runs jobs. Derive from it to use a thread pool or an event loop:
///
///     void submit(Job& job) noexcept override { post([&job] { while (job.run()) {} }); }
class Executor {
 public:
  /// Arranges for `job` to run after this call has returned. Must not run it inside the call: the
  /// caller may be inside a function that must not call a handler. Must not fail: a producer whose
  /// job is lost never finishes. Called on any thread, never for a job that is already queued.
  virtual void submit(Job& job) noexcept = 0;

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

 protected:
  Executor() = default;
  ~Executor() = default;
};

/// A queue of jobs that the caller runs on its thread. It allocates no memory, so `submit` cannot
/// fail.
///
/// It must outlive every stream that uses it: keep it until the handlers are released.
class RunQueue final : public Executor {
 public:
  void submit(Job& job) noexcept override {
    const std::lock_guard lock(mutex_);
    append(job);
    // Under the lock, because the owner may destroy this queue once the job has run.
    if (sleeping_) wake_.notify_one();
  }

  /// Runs jobs on the calling thread until the queue is empty, without waiting for more. Returns
  /// false if the queue was empty. One thread at a time.
  bool run_ready() noexcept {
    bool any = false;
    while (first_.load(std::memory_order_acquire) != nullptr) {
      any = true;
      run_job(*pop());
    }
    return any;
  }

  /// Runs jobs on the calling thread, and sleeps while the queue is empty, until `stop`. Jobs
  /// submitted before the stop still run. One thread at a time.
  void run() noexcept {
    while (Job* job = wait()) run_job(*job);
  }

  /// Makes `run` return, now or when it is next called. Threads: any.
  void stop() noexcept {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    wake_.notify_all();
  }

 private:
  // The maximum number of consecutive runs of one job.
  static constexpr int kMaxRuns = 64;

  void run_job(Job& job) noexcept {
    for (int i = 0; i < kMaxRuns; ++i) {
      if (!job.run()) return;
    }
    const std::lock_guard lock(mutex_);
    append(job);
  }

  void append(Job& job) noexcept {
    job.next_ = nullptr;
    if (last_ == nullptr) {
      first_ = &job;
    } else {
      last_->next_ = &job;
    }
    last_ = &job;
  }

  Job* pop() noexcept {
    const std::lock_guard lock(mutex_);
    return pop_locked();
  }

  Job* wait() noexcept {
    std::unique_lock lock(mutex_);
    sleeping_ = true;
    wake_.wait(lock, [this] { return first_ != nullptr || stopped_; });
    sleeping_ = false;
    return pop_locked();
  }

  Job* pop_locked() noexcept {
    Job* job = first_;
    if (job == nullptr) return nullptr;
    first_ = job->next_;
    if (first_ == nullptr) last_ = nullptr;
    return job;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<Job*> first_{nullptr};  // written with the lock
  Job* last_ = nullptr;
  bool sleeping_ = false;
  bool stopped_ = false;
};

/// A thread that runs the jobs of any number of streams, and sleeps while idle.
///
/// It must outlive every stream that uses it. The destructor finishes the submitted jobs and joins
/// the thread. Do not destroy it on that thread.
class WorkerThread final : public Executor {
 public:
  /// Starts the thread. Errors: ENOMEM, or the error of the system if it cannot create a thread.
  static Result<std::unique_ptr<WorkerThread>> start() noexcept {
    return detail::guarded([]() -> Result<std::unique_ptr<WorkerThread>> {
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded catches it
      return std::unique_ptr<WorkerThread>(new WorkerThread);
    });
  }

  ~WorkerThread() {
    queue_.stop();
    thread_.join();
  }

  void submit(Job& job) noexcept override { queue_.submit(job); }

  /// The id of the thread, to find out on which thread a call runs.
  [[nodiscard]] std::thread::id id() const noexcept { return thread_.get_id(); }

 private:
  WorkerThread() : thread_([this] { queue_.run(); }) {}

  RunQueue queue_;
  std::thread thread_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EXECUTOR_HPP
