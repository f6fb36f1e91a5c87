#include "trace/begin.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/explain.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "base/process_start.h"
#include "base/say.h"
#include "base/unique_fd.h"
#include "trace/recorder.h"
#include "trace/words.h"

namespace ringbolt::trace {
namespace {

/// Of a ring, all of which is allocated at once.
constexpr uint64_t kMostBytes = uint64_t{4} << 30U;
/// Events told with an explanation.
constexpr size_t kRecent = 8;

std::string_view value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

/// What an explanation brings along, and where it is kept.
/// Called by whichever thread explains, under no lock of ours.
std::vector<std::string> keep_explanation(std::string_view object, std::string_view text) {
  Recorder* const to = recorder();
  if (to == nullptr) {
    return {};
  }
  const uint32_t qpn = queue_pair_in(object);
  auto events = qpn == 0 ? std::vector<std::string>() : to->recent(qpn, kRecent);
  to->note_words(qpn, false, text);
  return events;
}

std::string folder_of(const Wish& wish, const std::string& home) {
  if (!wish.folder.empty()) {
    return wish.folder;
  }
  const std::string folder = home + "/traces";
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw base::Error(errno, "mkdir", folder, "give RINGBOLT_RECORD a folder, or off");
  }
  return folder;
}

std::string program_name() {
  std::string name = ::program_invocation_short_name;
  std::ranges::replace_if(
      name, [](char one) { return one == '/' || static_cast<unsigned char>(one) <= ' '; }, '_');
  // A name of a file has 255 bytes at most, and number and suffix follow.
  name.resize(std::min<size_t>(name.size(), 32));
  return name;
}

/// Whether the process has gone whose file this is; false as well where that can't be told, or the file is no timeline.
bool is_of_dead(const std::string& path) {
  // O_NONBLOCK: somebody may have put a FIFO there.
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  FileHead head{};
  return file.is_open() && ::pread(file.get(), static_cast<void*>(&head), sizeof head, 0) == sizeof head &&
         head.magic == kMagic && !base::is_same_process(static_cast<pid_t>(head.pid), head.process_start);
}

/// In a forked child: the file is the parent's.
void abandon() noexcept {
  // Relaxed: the child has one thread when this runs (fork(2)).
  active.store(nullptr, std::memory_order_relaxed);  // its memory stays mapped: what is under way may look there
}

}  // namespace

Wish parse_wish(std::string_view text, bool is_on_by_default) {
  Wish wish;
  wish.is_on = text.empty() ? is_on_by_default : text != "off";
  if (text.empty() || text == "on" || text == "off") {
    return wish;
  }
  if (text.front() == '/') {
    wish.folder = text;
    return wish;
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  const bool is_size =
      error == std::errc{} && shift != 0 && number <= kMostBytes >> shift && number << shift >= kLeastBytes;
  if (is_size) {
    wish.bytes = number << shift;
  } else {
    wish.problem = fmt::format("give on, off, the path of a folder (it begins with /), or a size from {}K to {}G",
                               kLeastBytes >> 10U, kMostBytes >> 30U);
    wish.is_on = false;
  }
  return wish;
}

void begin(const std::string& home, const std::string& cluster) try {
  static base::Mutex mutex;
  const base::LockGuard guard(mutex);
  if (Recorder* const known = recorder(); known != nullptr) {
    known->note_going_on();
    return;
  }
  const std::string_view sanitized = value_of("RINGBOLT_SANITIZE");
  const std::string_view wanted = value_of("RINGBOLT_RECORD");
  const Wish wish = parse_wish(wanted, base::is_explaining() || (!sanitized.empty() && sanitized != "off"));
  if (!wish.problem.empty()) {
    base::say(fmt::format("ringbolt: RINGBOLT_RECORD={}: {}; nothing is recorded\n", wanted, wish.problem));
  }
  if (!wish.is_on) {
    return;
  }
  const std::string folder = folder_of(wish, home);
  if (wish.folder.empty()) {
    remove_dead(folder, kMostDead - 1);
  }
  Recorder::Options options;
  options.path = fmt::format("{}/{}-{}{}", folder, program_name(), ::getpid(), kSuffix);
  options.bytes = wish.bytes;
  options.cluster = cluster;
  options.node = cluster.empty() ? "" : value_of("RINGBOLT_NODE");
  // Once: there is no way to take a handler back.
  static const int is_watched = ::pthread_atfork(nullptr, nullptr, abandon);
  if (is_watched != 0) {
    throw base::Error(is_watched, "pthread_atfork", "the recorder", "free memory");
  }
  // For the life of the process: programs call us from their own destructors.
  // Release: who sees the pointer, and reads through it, sees the recorder made.
  active.store(Recorder::open(options).release(), std::memory_order_release);
  base::set_explanation_witness(keep_explanation);
} catch (const base::Error& error) {
  base::say(fmt::format("ringbolt: {}; nothing is recorded\n", error.what()));
} catch (const std::bad_alloc&) {  // nothing is recorded
}

void end() noexcept {
  if (Recorder* const to = recorder(); to != nullptr) {
    to->note_end();
  }
}

void remove_dead(const std::string& folder, size_t most) noexcept try {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, std::string>> dead;
  for (const fs::directory_entry& one : fs::directory_iterator(folder)) {
    const std::string path = one.path().string();
    if (path.ends_with(kSuffix) && is_of_dead(path)) {
      dead.emplace_back(one.last_write_time(), path);
    }
  }
  std::ranges::sort(dead);
  for (size_t i = 0; i + most < dead.size(); ++i) {
    ::unlink(dead[i].second.c_str());
  }
} catch (const std::exception&) {  // another process was faster, or nobody may look there: the next one tries again
}

}  // namespace ringbolt::trace
