#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::pair {

/// Texts to and from the other end, over a byte stream. Owns nothing. Not thread-safe.
/// Frames: four bytes of length in this machine's byte order, then the text.
class Channel {
 public:
  /// `read_fd` and `write_fd` may be one socket, or two pipes. SIGPIPE must be ignored.
  Channel(int read_fd, int write_fd) : read_fd_(read_fd), write_fd_(write_fd) {}

  int read_fd() const { return read_fd_; }
  /// A text of up to kMostTextBytes to the other end, which takes it by look().
  /// Throws ProbeFailure if the other end is gone, or does not take it within 10 s.
  /// Blocks for 10 s at most for each piece of 4 KiB. A longer text is refused with a ProbeFailure, and nothing is
  /// sent.
  void send_text(std::string_view text);
  /// The next text, if one has come whole; never waits. Throws ProbeFailure if the other end is gone.
  /// Reads up to `most_bytes` and takes those off it. Nothing: all whole texts of what was read are taken, so that who
  /// then waits until read_fd() is readable misses none.
  std::optional<std::string> look(size_t& most_bytes);

  static constexpr size_t kMostTextBytes = size_t{1} << 20U;

 private:
  int read_fd_;
  int write_fd_;
  std::string begun_;  // of texts: what has come and was not taken
};

/// The other end of a run, over a stream beside the verbs connections. Each text has a kind; texts of other kinds than
/// the awaited wait. All calls throw ProbeFailure that names the peer: if it is gone, or reports a failure of its own
/// (then is_echo()), or does not answer in time. The wish to stop (stop.h) goes from end to end with any call. Not
/// thread-safe.
/// Nothing is authenticated: any bytes of the other end are safe, and what it says of its failure is fit for a
/// terminal.
class Peer {
 public:
  /// `name`: for messages, "10.0.0.2". `timeout_ns`: the most for one wait.
  Peer(Channel channel, std::string name, uint64_t timeout_ns)
      : channel_(std::move(channel)), name_(std::move(name)), timeout_ns_(timeout_ns) {}

  const std::string& name() const { return name_; }
  /// No wait goes on beyond that time of base::now_ns().
  void set_end(uint64_t end_ns) { end_ns_ = end_ns; }
  /// How much longer a wait may take that began then; 0: it is over.
  uint64_t left_ns(uint64_t since_ns) const;
  /// Readable when a text may have come.
  int fd() const { return channel_.read_fd(); }

  void tell(std::string_view kind, std::string_view text);
  /// Numbers, for numbers_in() of the peer.
  void tell(std::string_view kind, const std::vector<uint64_t>& numbers);
  /// Exactly `count` numbers of a text that the peer has told; fails if it is no such text.
  std::vector<uint64_t> numbers_in(std::string_view text, size_t count);
  /// At most once a second: that this end is at work, for a peer that awaits its end and sees nothing else of it.
  void tell_working();
  /// `what`: the awaited, for messages. The time limit counts from when the peer last said that it works.
  /// Blocks until the text, the peer's end, or the time limit.
  std::string await(std::string_view kind, std::string_view what);
  /// The first text of that kind, if it has come; does not wait.
  std::optional<std::string> look(std::string_view kind, std::string_view what);
  /// A text of that kind says all that those before it have said: only the newest is kept.
  void keep_newest_of(std::string kind) { cumulative_.push_back(std::move(kind)); }
  /// Tells the peer why this end gives up, if the peer is still there. Never throws.
  void tell_failure(const std::string& problem) noexcept;
  /// Ends the run because of the problem in words; waits a moment for the peer, which may know better. Throws always.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    fail_by(fmt::format(text, std::forward<Args>(args)...));
  }
  /// Ends the run because what was awaited did not come for so long.
  [[noreturn]] void give_up(std::string_view what, uint64_t waited_ns) const;

 private:
  [[noreturn]] void fail_by(const std::string& problem);
  void take_texts(std::string_view what);
  void pass_stop_on();
  std::optional<std::string> take(std::string_view kind);

  Channel channel_;
  std::string name_;
  uint64_t timeout_ns_;
  uint64_t end_ns_ = UINT64_MAX;
  uint64_t told_ns_ = 0;                 // when this end last said that it works
  uint64_t heard_ns_ = 0;                // and the peer
  bool knows_stop_ = false;              // both ends are to stop
  std::optional<ProbeFailure> end_;      // after which nothing more comes; what came before still counts
  std::vector<std::string> cumulative_;  // kinds of which only the newest is kept
  std::deque<std::string> texts_;        // come and not taken; each "kind\ntext"
};

/// One thing that both ends must have been asked for alike.
struct HelloEntry {
  std::string name;   ///< "queue-pairs"
  std::string flag;   ///< "-q"
  std::string value;  ///< one line
};

/// The first text that the ends send each other: "ringbolt COMMAND 3" and a line "name value" for each entry.
std::string emit_hello(std::string_view command, const std::vector<HelloEntry>& mine);

/// Why an end with `mine` can't work with one that said `theirs`: in words, with both values and the flag. Empty: it
/// can. Any bytes are safe to pass. Thread-safe.
std::string hello_objection(std::string_view command, const std::vector<HelloEntry>& mine, std::string_view theirs);

/// Tells `peer` what this end was asked for, and compares. Throws ProbeFailure, and UsageError with the objection: the
/// peer finds out by itself.
void agree(std::string_view command, const std::vector<HelloEntry>& mine, Peer& peer);

}  // namespace ringbolt::tools::pair
