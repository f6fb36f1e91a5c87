#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "circuit/circuit.h"
#include "circuit/control.h"
#include "circuit/endings.h"
#include "circuit/rail.h"

namespace ringbolt::circuit {

/// One rail of others' circuit that passes this member: what comes in at one queue pair goes out at the other one,
/// frames one way and answers the other way, from the memory in which they came. That memory is all that it takes,
/// however long messages are: a sender has kWindow frames under way on a rail at most. Of the relays' thread once it
/// runs. Shared by the endpoint, which makes it, and the relays; ended by Endings. Neither end understands what it
/// carries.
class RelayedRail {
 public:
  /// As many again as the window, for those whose completion is late.
  static constexpr uint32_t kFrames = 2 * kWindow + 2;
  static constexpr uint32_t kAnswers = 64;

  /// How the queue pair on one side of it is made.
  struct Side {
    ibv_qp_type type = IBV_QPT_RC;
    bool counts_frames = false;
  };
  /// Queue pairs in RESET. Throws base::Error.
  RelayedRail(const Devices& devices, CircuitId circuit, uint16_t rail, Path path, uint8_t position, Side in, Side out);

  CircuitId circuit() const { return circuit_; }
  uint16_t number() const { return number_; }
  const Path& path() const { return path_; }
  /// Of this member in the path: neither its first nor its last.
  uint8_t position() const { return position_; }
  Rail& in() { return in_; }
  Rail& out() { return out_; }

  /// Whether anything has been passed on. `has_failed()` then says whether it is over. Of the relays' thread alone.
  bool progress();
  bool has_failed() const { return in_.has_failed() || out_.has_failed(); }
  const std::string& failure() const { return in_.has_failed() ? in_.failure() : out_.failure(); }

  // Set by any thread, and never reset; the relays' thread takes it out at its next look.
  std::atomic<bool> is_ended = false;

 private:
  const CircuitId circuit_;
  const uint16_t number_;
  const Path path_;
  const uint8_t position_;
  Rail in_;
  Rail out_;
};

/// The thread that relays: polls while there is something to pass on, and sleeps otherwise. Thread-safe. `endings`
/// outlives it.
class Relays {
 public:
  /// `on_failed` is called in the relays' thread, once for a rail; it must not block.
  using OnFailed = std::function<void(const RelayedRail& rail)>;
  /// Throws base::Error.
  Relays(Endings& endings, OnFailed on_failed);
  /// The rails that it still has go with it, those of UC half a second each.
  ~Relays();
  Relays(const Relays&) = delete;
  Relays& operator=(const Relays&) = delete;

  /// Connected at both ends. The thread begins with the first one. Throws std::system_error if there is none to be had.
  void add(std::shared_ptr<RelayedRail> rail) RINGBOLT_EXCLUDES(lock_);
  /// Sets is_ended for those that `is_over` names.
  void end_if(const std::function<bool(const RelayedRail&)>& is_over) RINGBOLT_EXCLUDES(lock_);
  /// As of now; more may come.
  std::vector<std::shared_ptr<RelayedRail>> all() RINGBOLT_EXCLUDES(lock_);

 private:
  using Rails = std::vector<std::shared_ptr<RelayedRail>>;
  void run();
  bool run_once(Rails& rails, uint32_t& version);
  bool serve(Rails& rails);
  void sleep(Rails& rails);

  Endings& endings_;
  OnFailed on_failed_;
  base::Mutex lock_;
  Rails rails_ RINGBOLT_GUARDED_BY(lock_);
  std::atomic<uint32_t> version_ = 0;  // of rails_
  std::atomic<bool> is_ending_ = false;
  base::UniqueFd wake_;
  std::thread thread_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::circuit
