#include "base/explain.h"

#include <fcntl.h>
#include <unistd.h>

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
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "base/say.h"

namespace ringbolt::base {
namespace {

constexpr uint64_t kPauseNs = 1'000'000'000;
constexpr size_t kMostKnown = 1024;

enum class Wish : uint8_t { nothing, standard_error, file };

/// Opened once; for the life of the process.
struct Target {
  Wish wish = Wish::nothing;
  int fd = -1;
};

const Target& target() noexcept {
  static const Target chosen = [] {
    const char* const wanted = std::getenv("RINGBOLT_EXPLAIN");
    if (wanted == nullptr || *wanted == '\0' || std::strcmp(wanted, "off") == 0) {
      return Target{};
    }
    if (std::strchr(wanted, '/') == nullptr) {
      return Target{Wish::standard_error};
    }
    const int fd = ::open(wanted, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
      say(fmt::format("ringbolt: RINGBOLT_EXPLAIN={}: open: {}; explanations come here instead\n", wanted,
                      std::strerror(errno)));
      return Target{Wish::standard_error};
    }
    return Target{Wish::file, fd};
  }();
  return chosen;
}

/// How often the same was said, and when last.
struct Said {
  uint64_t last_ns = 0;
  uint64_t held_back = 0;
};

/// How many were held back since it was said last; nothing: it is to be held back, too.
std::optional<uint64_t> may_say(const std::string& text) {
  static Mutex mutex;
  static std::unordered_map<size_t, Said> known;
  const uint64_t now = now_ns();
  const LockGuard guard(mutex);
  if (known.size() >= kMostKnown) {
    known.clear();
  }
  Said& said = known[std::hash<std::string>{}(text)];
  if (said.last_ns != 0 && now < said.last_ns + kPauseNs) {
    ++said.held_back;
    return std::nullopt;
  }
  said.last_ns = now;
  return std::exchange(said.held_back, 0);
}

}  // namespace

bool is_explaining() noexcept { return target().wish != Wish::nothing; }

std::string explanation_text(int error, std::string_view call, const Explanation& explanation, std::string_view place) {
  const char* const name = ::strerrorname_np(error);
  return fmt::format("ringbolt: {}: {} ({}), at {}\n  why: {}\n  fix: {}\n", call,
                     name == nullptr ? fmt::format("errno {}", error) : name, std::strerror(error), place,
                     explanation.why, explanation.fix);
}

void explain(int error, std::string_view call, const Explanation& explanation) noexcept try {
  const int saved = errno;
  std::string text = explanation_text(error, call, explanation, calling_place());
  if (const auto held_back = may_say(text)) {
    if (*held_back != 0) {
      text += fmt::format("  and {} times more within the second before\n", *held_back);
    }
    if (target().wish == Wish::file) {
      (void)!::write(target().fd, text.data(), text.size());  // one write: processes may share the file
    } else {
      say(text);
    }
  }
  errno = saved;
} catch (...) {  // the program's error stands, with words or without
}

}  // namespace ringbolt::base
