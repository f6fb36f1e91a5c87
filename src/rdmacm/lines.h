#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "wire/flow.h"
#include "wire/lifeline.h"

namespace ringbolt::rdmacm {

/// The sockets of our lifelines (cm/lifelines.h). What of a line's end is taken for what:
///
///   end of file, after "welcome"    dead: a kernel says so (FIN) once the last descriptor is closed, by the death of
///                                   its process, its exec or its own doing, and then its device is gone, too
///   "bye" before it                 nothing
///   reset                           looked into: the process' listener refuses a call: dead; else: broken
///   anything else, at any time      broken: cables, routes, time limits and firewalls say nothing of a process
///
/// A stopped process' sockets stay as they are, and nothing is said over a line, so nothing can fail to be answered.
/// Never blocks. Thread-safe, though one thread serves it: the lock is what a fork waits for. Owns the sockets.
/// Tokens are 64-bit numbers of processes (cm::Token), never 0.
class Lines {
 public:
  /// A process and where it listens.
  struct Place {
    wire::Address local{};
    wire::Address remote{};
    uint32_t scope = 0;  ///< the interface, for link-local addresses
    uint16_t port = 0;
  };
  struct News {
    enum class Kind : uint8_t { dead, broken } kind = Kind::broken;
    uint64_t token = 0;
  };

  /// Not open when there are no descriptors left: then nothing listens, and nothing is heard of.
  explicit Lines(uint64_t own_token);

  /// Readable when serve() has work.
  int descriptor() const { return epoll_.get(); }
  /// The TCP port at which others can call us at that address; 0: none. In host order. A later call for the same
  /// address answers the same port.
  uint16_t listen_at(const wire::Address& local, uint32_t scope);
  /// Until somebody asks for a port again. Not while others may look whether we live.
  void stop_listening();
  /// Only who is expected is let in; and `place` is where it is asked whether it lives.
  void expect(uint64_t token, const Place& place);
  /// False: it can't be called; else news tell what comes of it.
  bool call(uint64_t now_ns, uint64_t token, const Place& place);
  /// Says "bye" first, so that its end means nothing to the other process.
  void drop(uint64_t token);
  /// Ends its line, if it called.
  void forget(uint64_t token);
  /// What has happened; one of a token at most tells of one line's end.
  std::vector<News> serve(uint64_t now_ns);
  uint64_t next_deadline_ns() const;
  /// Lines that both ends have agreed on. For tests.
  size_t standing() const;

  /// Around a fork. The child closes all: a line must not outlive our process in it.
  void before_fork() RINGBOLT_NOT_ANALYSED { mutex_.lock(); }
  void after_fork() RINGBOLT_NOT_ANALYSED { mutex_.unlock(); }
  void abandon_after_fork() RINGBOLT_NOT_ANALYSED;

 private:
  // connecting: TCP is; greeting: our hello is sent; called: theirs is awaited; checking: asks whether its process
  // lives.
  enum class State : uint8_t { connecting, greeting, called, stands, checking };
  struct Line {
    base::UniqueFd socket;
    State state = State::connecting;
    bool is_ours = false;  ///< we called
    uint64_t token = 0;    ///< 0: the caller has not said
    uint64_t deadline_ns = UINT64_MAX;
    std::array<std::byte, wire::kLifelineWordBytes> word{};
    size_t bytes = 0;  ///< of it
  };
  struct Listener {
    base::UniqueFd socket;
    uint16_t port = 0;
  };
  using Verdict = std::optional<News::Kind>;

  bool watch(int fd, uint64_t key, uint32_t events) RINGBOLT_REQUIRES(mutex_);
  bool has_room() const RINGBOLT_REQUIRES(mutex_);
  bool begin_call(uint64_t now_ns, uint64_t token, const Place& place, State state) RINGBOLT_REQUIRES(mutex_);
  void accept_all(const Listener& listener, uint64_t now_ns) RINGBOLT_REQUIRES(mutex_);
  void pause_accepting(uint64_t now_ns) RINGBOLT_REQUIRES(mutex_);
  void on_ready(uint64_t key, uint64_t now_ns, std::vector<News>& news) RINGBOLT_REQUIRES(mutex_);
  void end_late(uint64_t now_ns, std::vector<News>& news) RINGBOLT_REQUIRES(mutex_);
  bool on_connected(Line& line) RINGBOLT_REQUIRES(mutex_);
  /// Whether the line goes on; what its end means.
  bool read(Line& line, uint64_t now_ns, Verdict& verdict) RINGBOLT_REQUIRES(mutex_);
  bool on_word(Line& line, Verdict& verdict) RINGBOLT_REQUIRES(mutex_);
  bool say(const Line& line, wire::LifelineWord::Kind kind) const;

  const uint64_t own_;
  base::UniqueFd epoll_;
  mutable base::Mutex mutex_;
  std::map<std::pair<wire::Address, uint32_t>, Listener> listeners_ RINGBOLT_GUARDED_BY(mutex_);
  std::map<uint64_t, Place> places_ RINGBOLT_GUARDED_BY(mutex_);  // by token
  std::map<uint64_t, Line> lines_ RINGBOLT_GUARDED_BY(mutex_);    // by key
  uint64_t last_key_ RINGBOLT_GUARDED_BY(mutex_) = 0;
  uint64_t next_deadline_ns_ RINGBOLT_GUARDED_BY(mutex_) = UINT64_MAX;  // of lines_, or earlier
  uint64_t accepts_again_ns_ RINGBOLT_GUARDED_BY(mutex_) = UINT64_MAX;  // no descriptors were left
};

}  // namespace ringbolt::rdmacm
