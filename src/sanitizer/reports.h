#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/calling_place.h"
#include "base/mutex.h"
#include "sanitizer/suppressions.h"
#include "sanitizer/wish.h"

namespace ringbolt::sanitizer {

/// A place of the program that a finding names, and what was done there: "posted", "polled".
struct Mention {
  std::string_view done;
  base::CallSite site{};
};

/// A mistake of the program.
/// A value. The views are of constants.
struct Finding {
  Kind kind;
  std::string_view rule;  ///< short and stable: "send-buffer-changed"
  std::string what;       ///< one line
  std::string numbers;    ///< which request or object, and the numbers; one line
  std::vector<Mention> places;
  std::string fix;
};

/// "client.c:88 in connect_to()" in its parts. `line` 0: the place is not known as a line.
struct Place {
  std::string file;
  unsigned line = 0;
  std::string function;
  friend bool operator==(const Place&, const Place&) = default;
};
Place split_place(std::string_view place);

/// The paragraph, in the manner of AddressSanitizer. `places`: the words for those of the finding.
std::string finding_text(const Finding& finding, const std::vector<std::string>& places, int pid);
/// The same as a line of JSON (docs/sanitizer.md).
/// `events`: what happened to its queue pair before, in words.
std::string finding_json(const Finding& finding, const std::vector<std::string>& places, int pid,
                         const std::vector<std::string>& events = {});

/// Where findings go: standard error, or the file RINGBOLT_SANITIZE_LOG, and lines of JSON to RINGBOLT_SANITIZE_JSON.
/// Each is told once for its places in the program. Thread-safe.
class Reports {
 public:
  /// Reads the environment, opens the files, and says what is wrong with them.
  Reports();
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;

  /// May take milliseconds, to find lines of the program, and blocks for the log: under no lock of Shadow. Keeps
  /// errno. Two threads may tell of different findings at the same time, each in one write(2).
  void report(const Finding& finding) noexcept;
  /// How many different ones were told.
  size_t count() const;
  /// "SUMMARY: ..." in the log; nothing where there was nothing to tell.
  /// At the end of the process. Under its own lock, and writes.
  void summarize() noexcept;
  // Around fork(2): no other thread is in the middle of telling then, so the child finds the lock free. Analysed
  // nowhere: the lock is taken in one of them, and given back in another.
  void before_fork() RINGBOLT_NOT_ANALYSED { mutex_.lock(); }
  void in_parent() RINGBOLT_NOT_ANALYSED { mutex_.unlock(); }
  /// What the parent found is the parent's.
  void in_child() RINGBOLT_NOT_ANALYSED;

 private:
  void say(const std::string& text) const;

  mutable base::Mutex mutex_;
  std::unordered_set<std::string> told_ RINGBOLT_GUARDED_BY(mutex_);
  std::array<size_t, kKindNames.size()> counts_ RINGBOLT_GUARDED_BY(mutex_){};
  size_t repeats_ RINGBOLT_GUARDED_BY(mutex_) = 0;
  Suppressions suppressions_;
  // Opened with O_APPEND, so that processes which share a file don't overwrite each other (open(2)).
  int log_ = -1;   // standard error; for the life of the process, as the other
  int json_ = -1;  // none
};

}  // namespace ringbolt::sanitizer
