#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "pair/peer.h"
#include "progress_line.h"

namespace ringbolt::tools::verify {

/// How a run goes: what both ends have verified, and the longest time in which nothing moved here. Not thread-safe.
class Progress {
 public:
  explicit Progress(tools::Progress& out) : out_(out) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A step begins; what was before it is no gap.
  void begin(const std::string& title);
  /// Something came at `now_ns`.
  void moved(uint64_t now_ns);
  void count(uint64_t messages, uint64_t bytes) {
    messages_ += messages;
    bytes_ += bytes;
  }
  /// What the other end has counted so far: a sender sees nothing itself.
  void set_theirs(uint64_t messages, uint64_t bytes) {
    their_messages_ = messages;
    their_bytes_ = bytes;
  }
  void set_errors(uint64_t errors) { errors_ = errors; }
  /// Shows it, if it is time to.
  void tick(uint64_t now_ns);

  uint64_t slowest_gap_ns() const { return slowest_ns_; }
  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t last_moved_ns() const { return moved_ns_; }

 private:
  tools::Progress& out_;
  std::string title_ = {};
  uint64_t moved_ns_ = 0;
  uint64_t slowest_ns_ = 0;
  uint64_t messages_ = 0;
  uint64_t bytes_ = 0;
  uint64_t their_messages_ = 0;
  uint64_t their_bytes_ = 0;
  uint64_t errors_ = 0;
};

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

/// A wait in a polling loop: bounded; notices when the peer is gone, and the wish to stop; shows progress, and tells
/// the other end of it. Not thread-safe.
class Watch {
 public:
  Watch(pair::Peer& peer, Progress& progress, uint64_t stall_ns)
      : peer_(peer), progress_(progress), stall_ns_(stall_ns) {
    peer_.keep_newest_of(kVerified);
  }

  uint64_t stall_ns() const { return stall_ns_; }
  Progress& progress() const { return progress_; }
  /// How far the part under way is, or the last one was when it ended; empty if there was none.
  std::string where() const { return where_ ? where_() : last_where_; }

  /// After a turn of the loop that brought something. Mostly cheap.
  void moved();
  /// After one that brought nothing. `what`: the awaited, for messages. True now and then, when the caller may look at
  /// rare things too. Throws Stalled, and ProbeFailure if the peer is gone or has failed.
  bool idle(const char* what);
  /// The one or the other.
  void turn(bool has_moved, const char* what) {
    if (has_moved) {
      moved();
    } else {
      (void)idle(what);
    }
  }

 private:
  friend class Part;
  static constexpr const char* kVerified = "verified";
  void look(uint64_t now_ns, const char* what);

  pair::Peer& peer_;
  Progress& progress_;
  uint64_t stall_ns_;
  std::function<std::string()> where_;
  std::string last_where_;
  uint32_t turns_ = 0;
  uint32_t fruitless_ = 0;
  uint64_t told_ns_ = 0;  // when the other end last heard how much was verified here, and how much
  uint64_t told_bytes_ = 0;
};

/// While it lives the watch knows how far a step is. Made after what `where` looks at, and gone before it.
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
