#include "base/explain.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/calling_place.h"
#include "base/clock.h"
#include "base/errno_name.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "base/say.h"

namespace ringbolt::base {
namespace {

// A program that retries in a loop writes one line a second, not a disk full.
constexpr uint64_t kPauseNs = 1'000'000'000;
// A bound on memory. Who says more different things than that is told some of them more often.
constexpr size_t kMostKnown = 1024;

/// Opened once; for the life of the process.
struct Target {
  bool is_wanted = false;
  bool is_json = false;
  int fd = -1;  ///< -1: standard error
};

// The static's guard makes it safe that threads come here at once; later calls find it set. The descriptor is never
// closed: exit handlers may explain, too.
// Allocates nothing but for words that then are not said: callers are noexcept.
const Target& target() noexcept {
  static const Target chosen = [] {
    const char* const variable = std::getenv("RINGBOLT_EXPLAIN");
    std::string_view wanted = variable == nullptr ? "" : variable;
    Target made;
    made.is_wanted = !wanted.empty() && wanted != "off";
    made.is_json = wanted == "json" || wanted.starts_with("json:");
    if (made.is_json) {
      wanted.remove_prefix(std::min(wanted.size(), std::string_view("json:").size()));
    }
    if (!made.is_wanted || wanted.find('/') == std::string_view::npos) {
      return made;
    }
    // 0600: explanations quote addresses and paths of the program.
    // The end of `variable`, and so ended by its zero.
    made.fd = ::open(wanted.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (made.fd < 0) {
      try {
        say(fmt::format("ringbolt: RINGBOLT_EXPLAIN={}: open: {}; explanations come here instead\n", variable,
                        std::strerror(errno)));
      } catch (...) {  // no memory for words
      }
    }
    return made;
  }();
  return chosen;
}

/// Whoever is refused reads errno after the explanation, and everything that makes it may change it.
class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = saved_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int saved_ = errno;
};

/// How often the same was said, and when last.
struct Said {
  uint64_t last_ns = 0;
  uint64_t held_back = 0;
};

/// How many were held back since it was said last; nothing: it is to be held back, too.
// By hash: two different texts that share one are held back together, which is as rare as it is harmless.
std::optional<uint64_t> may_say(const std::string& words) {
  static Mutex mutex;
  static std::unordered_map<size_t, Said> known;
  const uint64_t now = now_ns();
  const LockGuard guard(mutex);
  if (known.size() >= kMostKnown) {
    known.clear();
  }
  Said& said = known[std::hash<std::string>{}(words)];
  if (said.last_ns != 0 && now < said.last_ns + kPauseNs) {
    ++said.held_back;
    return std::nullopt;
  }
  said.last_ns = now;
  return std::exchange(said.held_back, 0);
}

/// As JSON has it; other bytes than ASCII are passed on as they are.
std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      all += '\\';
    }
    // RFC 8259, section 7: these must be escaped, all else need not be.
    all += static_cast<unsigned char>(letter) < 0x20 ? fmt::format("\\u{:04x}", letter) : std::string(1, letter);
  }
  return all + '"';
}

std::string error_text(int error) {
  const char* const name = errno_name(error);
  return fmt::format("{} ({})", name == nullptr ? fmt::format("errno {}", error) : name, std::strerror(error));
}

// A function of the device's library, set once as that is loaded; relaxed, since it points to code and to no data.
constinit std::atomic<ExplanationWitness> known_witness{nullptr};

/// The number that `ringbolt trace` takes; nothing of other objects.
std::string trace_hint(std::string_view object) {
  constexpr std::string_view kBefore = "queue pair ";
  const size_t at = object.find(kBefore);
  return at == std::string_view::npos ? ""
                                      : fmt::format("  before: ringbolt trace {}--process {} --queue-pair {}\n",
                                                    std::getenv("RINGBOLT_CLUSTER") == nullptr ? "local " : "",
                                                    ::getpid(), object.substr(at + kBefore.size()));
}

void say_it(Incident incident, const Explanation& explanation, const std::string& place, uint64_t held_back) {
  const Target& to = target();
  // The witness is asked without a lock of ours: it takes the recorder's.
  std::string text = explanation_text(incident, explanation, place, held_back);
  if (const ExplanationWitness witness = known_witness.load(std::memory_order_relaxed)) {
    incident.events = witness(incident.object, text);
  }
  if (to.is_json) {
    text = explanation_json(incident, explanation, place, held_back);
  } else if (!incident.events.empty() && explanation.peer.empty()) {
    text += trace_hint(incident.object);
  }
  if (to.fd >= 0) {
    (void)!::write(to.fd, text.data(), text.size());  // one write: processes may share the file
  } else {
    say(text);
  }
}

}  // namespace

bool is_explaining() noexcept { return target().is_wanted; }

void set_explanation_witness(ExplanationWitness witness) noexcept {
  known_witness.store(witness, std::memory_order_relaxed);
}

std::string explanation_text(const Incident& incident, const Explanation& explanation, std::string_view place,
                             uint64_t held_back) {
  std::string text = "ringbolt: " + incident.call;
  if (!incident.object.empty()) {
    text += fmt::format(" of {}", incident.object);
  }
  if (!incident.detail.empty()) {
    text += fmt::format(", {}", incident.detail);
  }
  text += ": " + (incident.status.empty() ? error_text(incident.error) : incident.status);
  if (!place.empty()) {
    text += fmt::format(", {} {}", incident.status.empty() || incident.is_call ? "at" : "posted at", place);
  }
  if (held_back != 0) {
    text += fmt::format(" (and {} times more since it was told)", held_back);
  }
  text += "\n  why: " + explanation.why;
  if (!explanation.peer.empty()) {
    text += "\n  peer: " + explanation.peer;
  }
  return text + "\n  fix: " + explanation.fix + "\n";
}

std::string explanation_json(const Incident& incident, const Explanation& explanation, std::string_view place,
                             uint64_t held_back) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::string line = fmt::format("{{\"time\": {}.{:06}, \"pid\": {}, \"thread\": {}, \"program\": {}, \"call\": {}",
                                 now.tv_sec, now.tv_nsec / 1000, ::getpid(), ::gettid(),
                                 quoted(::program_invocation_short_name), quoted(incident.call));
  if (incident.status.empty()) {
    line += fmt::format(", \"errno\": {}", incident.error);
  }
  const std::pair<const char*, std::string_view> words[] = {
      {"status", incident.status}, {"object", incident.object},
      {"detail", incident.detail}, {incident.status.empty() || incident.is_call ? "place" : "posted_at", place},
      {"why", explanation.why},    {"peer", explanation.peer},
      {"fix", explanation.fix}};
  for (const auto& [name, value] : words) {
    line += value.empty() ? "" : fmt::format(", \"{}\": {}", name, quoted(value));
  }
  for (size_t i = 0; i < incident.events.size(); ++i) {
    line += (i == 0 ? ", \"events\": [" : ", ") + quoted(incident.events[i]);
  }
  line += incident.events.empty() ? "" : "]";
  line += held_back == 0 ? "" : fmt::format(", \"held_back\": {}", held_back);
  return line + "}\n";
}

void explain(int error, std::string_view call, const Explanation& explanation) noexcept try {
  const KeptErrno kept;
  Incident incident;
  incident.call = call;
  incident.error = error;
  const std::string place = calling_place();
  if (const auto held_back = may_say(explanation_text(incident, explanation, place))) {
    say_it(incident, explanation, place, *held_back);
  }
} catch (...) {  // the program's error stands, with words or without
}

void explain(const Incident& incident, const Explanation& explanation) noexcept try {
  const KeptErrno kept;
  const std::string place = incident.posted           ? place_of(incident.posted)
                            : incident.status.empty() ? calling_place()
                                                      : "";
  const auto held_back = may_say(
      // Not `detail`, the words of why nor the time: a program that fails a thousand times with other wr_ids is told
      // once a second.
      fmt::format("{}\n{}\n{}\n{}\n{}", incident.call, incident.object, incident.error, incident.status, place));
  if (held_back) {
    say_it(incident, explanation, place, *held_back);
  }
} catch (...) {
}

}  // namespace ringbolt::base
