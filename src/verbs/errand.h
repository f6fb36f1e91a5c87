#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "verbs/errno_meaning.h"

// Calls of a driver that may never return: RTR towards a silent peer, or anything after an idle night. Nothing ends a
// thread inside a driver, so what may be stuck runs in a thread that can be left behind.
namespace ringbolt::verbs {

/// An errand was left behind, or there was no time for it: what() names the device, the call and what to do. No
/// base::Error, since there is no errno: who catches those is not to take this for a refusal.
class Stuck : public std::runtime_error {
 public:
  explicit Stuck(const std::string& text) : std::runtime_error(text) {}
};

/// Which call of the driver an errand is in. Thread-safe. Owned by its errand. `advice` views constants.
class Whereabouts {
 public:
  Whereabouts();
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;
  ~Whereabouts();

  /// What is being done, for messages: "cable 0-1 (rdma_en2 to rdma_en3)".
  void set_subject(std::string subject);
  /// "rdma_en2, UC queue pair 0x900, <subject>: ibv_modify_qp to RTR has not returned for 3.0 s: <advice>".
  std::string text() const;

 private:
  friend class DriverCall;
  struct Place;
  std::unique_ptr<Place> place_;
};

/// Stands around a call of the driver, so that whoever waits for the errand that it is part of can say where that is.
/// Does nothing in threads without an errand. One at a time in a thread; the inner one of two says where it is, and
/// the outer one is over with it.
class DriverCall {
 public:
  /// `object`: the device, and what else there is to say.
  DriverCall(Step step, std::string_view object);
  /// Of what the last call was about.
  explicit DriverCall(std::string_view call);
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
  ~DriverCall();

 private:
  Whereabouts* const at_;
};

/// Something that is done in a thread of its own, which keeps all that it works on: what `what` has captured goes when
/// that returns, by whichever thread is the last to know of it. Not thread-safe. What is captured must be owned: a
/// thread that is left behind may run until the process ends, and what it holds (a device, a protection domain) stays
/// taken.
class Errand {
 public:
  /// Begins at once. Throws std::system_error if there is no thread to be had. What `what` throws is kept for
  /// finish().
  explicit Errand(std::function<void(Whereabouts&)> what);
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;
  /// Leaves it behind if it is not over.
  ~Errand();

  /// These may be asked from any thread that has the errand.
  bool is_over() const;
  /// Blocks until it is over, or until `deadline_ns` (base::now_ns()): whether it is over.
  bool wait_until(uint64_t deadline_ns) const;
  /// For one that is over: throws what it has thrown. Once; blocks for the end of a thread that has nothing left to
  /// do.
  void finish();
  /// For one that is not: where it is.
  std::string whereabouts() const;

 private:
  struct Run;
  static void run(const std::shared_ptr<Run>& run);

  std::shared_ptr<Run> run_;
  std::thread thread_;
};

/// Runs `stage` as an errand. Blocks until `deadline_ns` (base::now_ns()) at most, UINT64_MAX being never; then throws
/// Stuck and leaves it behind. Throws what the stage throws. Throws std::system_error where no thread is to be had.
void within(uint64_t deadline_ns, std::function<void(Whereabouts&)> stage);

/// Likewise; returns what the stage returns.
template <class T>
T within(uint64_t deadline_ns, std::function<T(Whereabouts&)> stage) {
  struct Kept {
    std::function<T(Whereabouts&)> stage;
    std::optional<T> made;
  };
  const auto kept = std::make_shared<Kept>(Kept{std::move(stage), std::nullopt});
  within(deadline_ns, [kept](Whereabouts& where) { kept->made.emplace(kept->stage(where)); });
  return std::move(*kept->made);
}

}  // namespace ringbolt::verbs
