#pragma once

#include <functional>
#include <thread>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace ringbolt::tools {

/// From now on SIGINT and SIGTERM ask long work to end with what it has so far; a second one ends the process.
/// Called again, the next one is a first one. No call is restarted for one: those that block return EINTR.
void catch_stop();
/// Whether it was asked to, by a signal or stop(). Thread-safe.
bool is_stopped();
/// Asks for it from within: the other end was interrupted.
void stop();
/// What the command answers: 128 and the signal that asked; `answer` if none has.
int answer_unless_stopped(int answer);

/// Lets SIGINT and SIGTERM end this process at once and still with what it has found, though its own thread may be in a
/// call that awaits others: after `say`, on a thread of this, the exit status is 128 and the signal. Made before other
/// threads are: they leave the signals to it. From its end on they are ignored.
class LastWords {
 public:
  /// `say` prints, and flushes.
  explicit LastWords(std::function<void()> say);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  /// Held while what `say` reads is changed, and at last while it is printed otherwise.
  base::Mutex& mutex() RINGBOLT_RETURNS_LOCK(mutex_) { return mutex_; }
  /// All is printed: what comes now ends the process without a word.
  void retire() RINGBOLT_REQUIRES(mutex_) { say_ = nullptr; }

 private:
  void listen();

  std::function<void()> say_ RINGBOLT_GUARDED_BY(mutex_);
  base::Mutex mutex_;
  base::UniqueFd signals_;
  base::UniqueFd end_;
  std::thread thread_;
};

}  // namespace ringbolt::tools
