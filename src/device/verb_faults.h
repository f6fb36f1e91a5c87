#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "cluster/control_page.h"
#include "device/faults.h"
#include "fault/stream.h"
#include "shuffle/shuffle.h"

namespace ringbolt::device {

/// The faults of a process that befall calls, messages and states, not frames: of every port, whatever carries it.
/// Thread-safe; its lock is a leaf.
class VerbFaults {
 public:
  /// Both are its owner's. Has no faults before the first look().
  VerbFaults(const cluster::ControlPage& control, const FaultSource& source) : control_(control), source_(source) {}

  /// Whether anything of that kind may suffer something: one load.
  bool has(fault::Subject subject) const {
    return (subjects_.load(std::memory_order_relaxed) >> static_cast<unsigned>(subject) & 1U) != 0;
  }
  /// What RINGBOLT_SHUFFLE has happen, for as long as this lives; null: nothing. Only where has() says that calls may
  /// suffer something.
  const shuffle::Shuffle* shuffle() const { return shuffle_ ? &*shuffle_ : nullptr; }
  /// Before the first look(), and before others know of this.
  void set_shuffle(const shuffle::Shuffle& shuffle) { shuffle_ = shuffle; }
  /// Whether there are any faults but those of frames: one load.
  bool has_any() const { return subjects_.load(std::memory_order_relaxed) != 0; }
  /// The next call, message or completion of this kind at the port.
  fault::Verdict judge(fault::Subject subject, const Port& port, size_t bytes = kNoBytes) noexcept {
    return judge(subject, {}, port, bytes);
  }
  /// A repetition of message `number`, by RC: fault::Stream::judge_again().
  fault::Verdict judge_again(const Port& port, uint64_t number, uint32_t repetition, size_t bytes) noexcept;
  /// The next call that would make one more object than the `live` ones.
  fault::Verdict judge(fault::Object object, const Port& port, size_t live) noexcept {
    return judge(fault::Subject::object, object, port, live);
  }
  /// Another one after each change of the faults, from 1.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// The rules for that call on a queue pair with one of these numbers.
  fault::Plan rules_of(fault::Call call, std::span<const uint32_t> queue_pairs);
  /// The rule of this kind that holds at the port now, if any.
  std::optional<fault::Rule> holding(fault::Kind kind, const Port& port) noexcept;
  /// Whether the port may ever suffer this kind, as things are.
  bool has_rule(fault::Kind kind, const Port& port);
  /// The cluster's faults may have changed.
  void look();

 private:
  static constexpr size_t kNoBytes = 2;
  using Key = std::tuple<std::string, fault::Subject, std::optional<fault::Object>>;

  fault::Verdict judge(fault::Subject subject, std::optional<fault::Object> object, const Port& port,
                       size_t bytes) noexcept;
  fault::Stream& stream_of(fault::Subject subject, std::optional<fault::Object> object, const Port& port)
      RINGBOLT_REQUIRES(lock_);
  void read();

  const cluster::ControlPage& control_;
  const FaultSource& source_;
  std::optional<shuffle::Shuffle> shuffle_;
  std::atomic<uint32_t> subjects_{0};
  std::atomic<bool> has_looked_{false};
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint64_t> version_{0};
  base::Mutex lock_;
  fault::Plan plan_ RINGBOLT_GUARDED_BY(lock_);
  std::map<Key, fault::Stream> streams_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::device
