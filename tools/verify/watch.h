#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "pair/peer.h"
#include "progress_line.h"

namespace ringbolt::tools::verify {

/// Nothing moved for longer than allowed: what() says what was awaited and where it stood.
class Stalled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The tally has what was found, and the run can't go on. what(): for the other end.
class Found : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A wait in a polling loop: bounded; notices when the peer is gone, and the wish to stop. Knows how the run goes, what
/// both ends have verified and the longest time in which nothing moved here; shows that, and tells the other end of it.
/// Not thread-safe.
/// Peer and progress outlive it. `stall_ns`: the longest silence, of this end's own turns.
class Watch {
 public:
  Watch(pair::Peer& peer, Progress& progress, uint64_t stall_ns)
      : peer_(peer), progress_(progress), stall_ns_(stall_ns) {
    peer_.keep_newest_of(kVerified);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// So many were verified here.
  void count(uint64_t messages, uint64_t bytes) {
    mine_.messages += messages;
    mine_.bytes += bytes;
  }
  void set_errors(uint64_t errors) { errors_ = errors; }
  uint64_t messages() const { return mine_.messages; }
  uint64_t bytes() const { return mine_.bytes; }
  uint64_t slowest_gap_ns() const { return slowest_ns_; }
  /// Whether something has moved, ever.
  bool has_moved() const { return moved_ns_ != 0; }
  /// How far the part under way is, or the last one was when it ended; empty if there was none.
  std::string where() const { return where_ ? where_() : last_where_; }

  /// After a turn of the loop that brought something. Mostly cheap.
  void moved();
  /// After one that brought nothing. `what`: the awaited, for messages. Throws Stalled, and ProbeFailure if the peer is
  /// gone or has failed. Mostly cheap.
  /// Sleeps for 100 us now and then after a long row of fruitless turns.
  void idle(const char* what);
  /// The one or the other.
  void turn(bool has_moved, const char* what) { has_moved ? moved() : idle(what); }

 private:
  friend class Part;
  static constexpr const char* kVerified = "verified";
  struct Verified {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };

  void look(uint64_t now_ns, const char* what);
  void show(uint64_t now_ns);

  pair::Peer& peer_;
  Progress& progress_;
  uint64_t stall_ns_;
  std::string title_;  // of the part under way
  std::function<std::string()> where_;
  std::string last_where_;
  uint64_t moved_ns_ = 0;
  uint64_t slowest_ns_ = 0;
  Verified mine_;
  Verified theirs_;  // as they have told: a sender sees nothing itself
  uint64_t errors_ = 0;
  uint32_t turns_ = 0;
  uint32_t fruitless_ = 0;
  uint64_t told_ns_ = 0;  // when the other end last heard how much was verified here, and how much
  uint64_t told_bytes_ = 0;
};

/// While it lives the watch knows how far a step is. Made after what `where` looks at, and gone before it.
/// Of several at once only the newest counts, and when it goes none does. where() must not throw.
class Part {
 public:
  Part(Watch& watch, const std::string& title, std::function<std::string()> where);
  ~Part();
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

 private:
  Watch& watch_;
};

}  // namespace ringbolt::tools::verify
