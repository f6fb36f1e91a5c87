#include "sanitizer/reports.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/json_reader.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "trace/recorder.h"
#include "trace/words.h"

namespace ringbolt::sanitizer {
namespace {

constexpr size_t kMostTold = 4096;  // different ones; a program that has more has said enough

int open_for_adding(const char* variable) {
  const char* const path = std::getenv(variable);
  if (path == nullptr || *path == '\0') {
    return -1;
  }
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) {
    base::say(
        fmt::format("ringbolt: {}={}: open: {}; findings come here alone\n", variable, path, std::strerror(errno)));
  }
  return fd;
}

Suppressions read_suppressions() {
  const char* const path = std::getenv("RINGBOLT_SANITIZE_SUPPRESSIONS");
  if (path == nullptr || *path == '\0') {
    return {};
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    base::say(fmt::format("ringbolt: RINGBOLT_SANITIZE_SUPPRESSIONS={}: read: {}; nothing is suppressed\n", path,
                          std::strerror(errno)));
    return {};
  }
  std::vector<std::string> objections;
  Suppressions made(text, objections);
  for (const std::string& one : objections) {
    base::say(fmt::format("ringbolt: RINGBOLT_SANITIZE_SUPPRESSIONS={}: {}\n", path, one));
  }
  return made;
}

/// What is the same mistake: the rule, and the calls that it is made of.
std::string key_of(const Finding& finding) {
  std::string key(finding.rule);
  for (const Mention& one : finding.places) {
    for (const uintptr_t address : one.site.returns) {
      key.append(reinterpret_cast<const char*>(&address), sizeof address);
    }
  }
  return key;
}

/// In the timeline of this process, if there is one; what happened to the finding's queue pair last.
std::vector<std::string> keep(const Finding& finding, const std::string& text) {
  constexpr size_t kMost = 8;
  trace::Recorder* const to = trace::recorder();
  if (to == nullptr) {
    return {};
  }
  const uint32_t qpn = trace::queue_pair_in(finding.numbers);
  auto events = qpn == 0 ? std::vector<std::string>() : to->recent(qpn, kMost);
  to->note_words(qpn, true, text);
  return events;
}

}  // namespace

Place split_place(std::string_view place) {
  Place parts;
  const size_t in = std::min(place.find(" in "), place.size());
  const size_t colon = place.substr(0, in).rfind(':');
  parts.file = place.substr(0, std::min(colon, in));
  if (colon != std::string_view::npos) {
    std::from_chars(place.data() + colon + 1, place.data() + in, parts.line);
  }
  if (in < place.size()) {
    parts.function = place.substr(in + 4);
    parts.function.resize(std::min(parts.function.size(), parts.function.find('(')));
  }
  return parts;
}

std::string finding_text(const Finding& finding, const std::vector<std::string>& places, int pid) {
  std::string text = fmt::format("=={}==RINGBOLT: {}: {} ({})\n  what: {}\n", pid, name_of(finding.kind), finding.what,
                                 finding.rule, finding.numbers);
  for (size_t i = 0; i < places.size(); ++i) {
    text += fmt::format("  {} at: {}\n", finding.places[i].done, places[i]);
  }
  return text + fmt::format("  fix: {}\n", finding.fix);
}

std::string finding_json(const Finding& finding, const std::vector<std::string>& places, int pid,
                         const std::vector<std::string>& events) {
  const auto quoted = [](std::string_view text) {
    return base::Json(std::string(text)).dump(-1, ' ', true, base::Json::error_handler_t::replace);
  };
  std::string line = fmt::format(R"({{"pid":{},"kind":"{}","rule":"{}","what":{},"numbers":{},"fix":{},"places":[)",
                                 pid, name_of(finding.kind), finding.rule, quoted(finding.what),
                                 quoted(finding.numbers), quoted(finding.fix));
  for (size_t i = 0; i < places.size(); ++i) {
    const Place parts = split_place(places[i]);
    line += fmt::format(R"({}{{"done":"{}","file":{},"line":{},"function":{}}})", i == 0 ? "" : ",",
                        finding.places[i].done, quoted(parts.file), parts.line, quoted(parts.function));
  }
  for (size_t i = 0; i < events.size(); ++i) {
    line += (i == 0 ? "],\"events\":[" : ",") + quoted(events[i]);
  }
  return line + "]}\n";
}

Reports::Reports()
    : suppressions_(read_suppressions()),
      log_(open_for_adding("RINGBOLT_SANITIZE_LOG")),
      json_(open_for_adding("RINGBOLT_SANITIZE_JSON")) {}

void Reports::report(const Finding& finding) noexcept try {
  const int saved = errno;
  {
    const base::LockGuard guard(mutex_);
    // Counted as repeats from here on, whatever they are.
    if (told_.size() >= kMostTold || !told_.insert(key_of(finding)).second) {
      ++repeats_;
      return;
    }
  }
  std::vector<std::string> places;
  for (const Mention& one : finding.places) {
    places.push_back(base::place_of(one.site));
  }
  const bool is_suppressed = std::ranges::any_of(places, [&](const std::string& place) {
    return suppressions_.match(name_of(finding.kind), finding.rule, place);
  });
  if (!is_suppressed) {
    {
      const base::LockGuard guard(mutex_);
      ++counts_[static_cast<size_t>(finding.kind)];
    }
    const std::string text = finding_text(finding, places, ::getpid());
    say(text);
    const std::vector<std::string> events = keep(finding, text);
    if (json_ >= 0) {
      const std::string line = finding_json(finding, places, ::getpid(), events);
      (void)!::write(json_, line.data(), line.size());  // one write: processes may share the file
    }
  }
  errno = saved;
} catch (...) {  // no memory for words; the program goes on
}

size_t Reports::count() const {
  const base::LockGuard guard(mutex_);
  size_t all = 0;
  for (const size_t one : counts_) {
    all += one;
  }
  return all;
}

void Reports::summarize() noexcept try {
  const base::LockGuard guard(mutex_);
  std::string kinds;
  size_t all = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    all += counts_[i];
    kinds += counts_[i] == 0 ? "" : fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kKindNames[i], counts_[i]);
  }
  if (all != 0) {
    say(fmt::format("SUMMARY: ringbolt-sanitizer: {} finding{} in process {}: {}{}\n", all, all == 1 ? "" : "s",
                    ::getpid(), kinds, repeats_ == 0 ? "" : fmt::format("; {} more of the same", repeats_)));
  }
} catch (...) {
}

void Reports::in_child() {
  told_.clear();
  counts_ = {};
  repeats_ = 0;
  mutex_.unlock();  // before_fork() has taken it, in the thread that is the child's only one
}

void Reports::say(const std::string& text) const {
  if (log_ < 0) {
    base::say(text);
  } else {
    (void)!::write(log_, text.data(), text.size());  // one write: processes may share the file
  }
}

}  // namespace ringbolt::sanitizer
