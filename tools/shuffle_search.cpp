#include "shuffle_search.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "failure.h"
#include "node_environment.h"

namespace ringbolt::tools {
namespace {

using shuffle::Range;
using shuffle::Wish;

constexpr double kNsPerSecond = 1e9;
constexpr uint32_t kMostNumbered = 1U << 20U;  // later operations are not looked for one by one

/// The program under one wish, in a process of its own: what runs programs is made for one run.
class Trial {
 public:
  Trial(const RunOptions& options, const std::function<int(const RunOptions&)>& run) : options_(options), run_(run) {
    void* const page = ::mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
      throw base::Error(errno, "mmap", "what a run says");
    }
    is_refused_ = static_cast<bool*>(page);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() { ::munmap(is_refused_, sizeof(bool)); }

  /// Exit code of the run; what it printed is kept.
  int operator()(const Wish& wish) {
    output_.reset(::memfd_create("output", MFD_CLOEXEC));
    if (!output_.is_open()) {
      throw base::Error(errno, "memfd_create", "output of a run");
    }
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
      throw base::Error(errno, "fork", "a run");
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) {
        ::_exit(kFoundProblem);
      }
      become(wish);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// The last one was never begun: what it was asked for can't be run.
  bool is_refused() const { return *is_refused_; }
  /// What the last one printed, to our standard error.
  void show() const {
    std::array<char, 4096> bytes;
    off_t at = 0;
    for (ssize_t got = 0; (got = ::pread(output_.get(), bytes.data(), bytes.size(), at)) > 0; at += got) {
      std::fwrite(bytes.data(), 1, static_cast<size_t>(got), stderr);
    }
  }

 private:
  [[noreturn]] void become(const Wish& wish) const {
    ::dup2(output_.get(), STDOUT_FILENO);
    ::dup2(output_.get(), STDERR_FILENO);
    RunOptions options = options_;
    options.shuffled = shuffle::text_of(wish);
    options.timeout_s = options.limit_s;
    options.shows_progress = false;
    int status = kWrongUsage;
    try {
      status = run_(options);
    } catch (const std::exception& error) {
      *is_refused_ = true;
      std::fprintf(stderr, "ringbolt run: %s\n", error.what());
    }
    std::fflush(nullptr);
    ::_exit(status);
  }

  const RunOptions& options_;
  const std::function<int(const RunOptions&)>& run_;
  base::UniqueFd output_;
  bool* is_refused_ = nullptr;  // shared with the processes of the runs
};

std::string end_text(int status, double limit_s) {
  constexpr int kSignals = 128;
  return status == kTimedOut ? fmt::format("over its limit of {} s", limit_s)
         : status > kSignals ? fmt::format("ended by signal {}", status - kSignals)
                             : fmt::format("exit status {}", status);
}

bool is_sure(const Wish& wish, const std::function<bool(const Wish&)>& fails) {
  for (int i = 0; i < kSureRuns; ++i) {
    if (!fails(wish)) {
      return false;
    }
  }
  return true;
}

/// The fewest operations of that kind, at one stretch: first the last one that is needed, then the first.
void narrow(Wish& wish, size_t kind, const std::function<bool(const Wish&)>& fails) {
  const Range whole = wish.ranges[kind];
  const auto holds = [&](uint32_t first, uint32_t last) {
    Wish less = wish;
    less.ranges[kind] = {first, last};
    return is_sure(less, fails);
  };
  const uint32_t most = std::min(whole.last, kMostNumbered);
  uint64_t enough = whole.first;  // doubled until it is
  uint32_t below = whole.first - 1;
  while (enough < most && !holds(whole.first, static_cast<uint32_t>(enough))) {
    below = static_cast<uint32_t>(enough);
    enough = enough * 2;
  }
  if (enough >= most) {
    if (most != whole.last && !holds(whole.first, most)) {
      return;
    }
    enough = most;
  }
  auto last = static_cast<uint32_t>(enough);
  while (below + 1 < last) {
    const uint32_t middle = below + (last - below) / 2;
    (holds(whole.first, middle) ? last : below) = middle;
  }
  uint32_t first = whole.first;
  for (uint32_t beyond = last + 1; first + 1 < beyond;) {
    const uint32_t middle = first + (beyond - first) / 2;
    (holds(middle, last) ? first : beyond) = middle;
  }
  wish.ranges[kind] = {first, last};
}

void say_again(const RunOptions& options, const Wish& wish) {
  std::string words = "ringbolt run --shuffle " + shuffle::text_of(wish);
  if (!options.again_words.empty()) {
    words += options.again_words;  // its cluster will be gone
  } else if (!options.cluster.empty()) {
    words += " --cluster " + shell_quoted(options.cluster);
  }
  for (size_t i = 0; i < options.nodes.size(); ++i) {
    words += (i == 0 ? " --nodes " : ",") + shell_quoted(options.nodes[i]);
  }
  words += options.is_explained ? " --explain" : "";
  words += options.sanitized.empty() ? "" : " --sanitize=" + shell_quoted(options.sanitized);
  words += options.recorded.empty() ? "" : " --record=" + shell_quoted(options.recorded);
  words += options.keeps_going ? " --keep-going" : "";
  words += fmt::format(" --limit {} --", options.limit_s);
  for (const std::string& word : options.command) {
    words += " " + shell_quoted(word);
  }
  fmt::print("again: {}\n", words);
  for (size_t i = 0; i < shuffle::kKinds; ++i) {
    if (wish.ranges[i].last != 0) {
      fmt::print("  {}: {}\n", shuffle::kKindTexts[i].name, shuffle::kKindTexts[i].meaning);
    }
  }
}

int search(const shuffle::Seeds& seeds, Trial& trial, const RunOptions& options) {
  Wish wish = seeds.wish;
  for (uint64_t seed = seeds.first;; ++seed) {
    wish.seed = seed;
    const uint64_t begun_ns = base::now_ns();
    const int status = trial(wish);
    if (trial.is_refused() || status == 128 + SIGINT || status == 128 + SIGTERM) {
      trial.show();  // not the program's
      return status;
    }
    if (status != 0) {
      trial.show();
      fmt::print("seed {}: {}, after {:.1f} s and {} seed{} that passed\n", seed, end_text(status, options.limit_s),
                 static_cast<double>(base::now_ns() - begun_ns) / kNsPerSecond, seed - seeds.first,
                 seed - seeds.first == 1 ? "" : "s");
      std::fflush(stdout);
      int runs = 0;
      const auto fails = [&](const Wish& one) {
        ++runs;
        return trial(one) != 0;
      };
      const Wish least = shrunk(wish, fails);
      const bool is_again = least != wish || is_sure(wish, fails);
      fmt::print("{} in {} more runs\n", is_again ? "shrunk" : "not seen again", runs);
      say_again(options, least);
      return status;
    }
    if (seed == seeds.last) {
      fmt::print("{} seeds passed\n", seed - seeds.first + 1);
      return kOk;
    }
  }
}

}  // namespace

Wish shrunk(const Wish& wish, const std::function<bool(const Wish&)>& fails) {
  Wish least = wish;
  for (size_t kind = 0; kind < shuffle::kKinds; ++kind) {
    Wish alone = least;
    for (size_t other = 0; other < shuffle::kKinds; ++other) {
      if (other != kind) {
        alone.ranges[other] = {1, 0};
      }
    }
    if (least.ranges[kind].last != 0 && is_sure(alone, fails)) {  // mostly it is one
      narrow(alone, kind, fails);
      return alone;
    }
  }
  for (size_t kind = 0; kind < shuffle::kKinds; ++kind) {
    Wish less = least;
    less.ranges[kind] = {1, 0};
    if (least.ranges[kind].last != 0 && is_sure(less, fails)) {
      least = less;
    }
  }
  for (size_t kind = 0; kind < shuffle::kKinds; ++kind) {
    if (least.ranges[kind].last != 0 && least != wish) {
      narrow(least, kind, fails);
    }
  }
  return least;
}

int run_shuffled(const RunOptions& options, const std::function<int(const RunOptions&)>& run) {
  const auto seeds = shuffle::parse_seeds(options.shuffled);
  if (!seeds) {
    throw UsageError("--shuffle " + options.shuffled + ": " + seeds.error().text());
  }
  if (seeds->first == seeds->last) {
    RunOptions one = options;
    one.timeout_s = options.timeout_s ? options.timeout_s : std::optional(options.limit_s);
    return run(one);
  }
  if (!options.reports.empty()) {
    throw UsageError("--report takes one run: give --shuffle one seed, or leave --report out");
  }
  Trial trial(options, run);
  return search(*seeds, trial, options);
}

}  // namespace ringbolt::tools
