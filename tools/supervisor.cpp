#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "failure.h"
#include "output.h"
#include "progress_line.h"

namespace ringbolt::tools {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
/// After a member failed the others may see its end and report it themselves.
constexpr uint64_t kAfterFailureNs = 5 * kSecondNs;
/// Between SIGTERM and SIGKILL.
constexpr uint64_t kPoliteNs = 2 * kSecondNs;
/// For the last output, once all have ended: something outside the groups may hold a pipe open.
constexpr uint64_t kDrainNs = kSecondNs;
/// How long programs are looked at before the time limit, to say which of them stand still.
constexpr uint64_t kLookNs = kSecondNs;
constexpr uint64_t kNever = UINT64_MAX;

base::UniqueFd catch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&set, one);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  base::UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) {
    throw base::Error(errno, "signalfd", "signals");
  }
  return fd;
}

/// A member that was started.
struct Running {
  std::string label;
  ChildProcess child;
  LineSplitter lines;
  LineSplitter error_lines;
  bool is_counted = false;  ///< its end was seen and dealt with
};

class Supervisor {
 public:
  Supervisor(std::vector<Member> members, const SuperviseOptions& options)
      : options_(options), signals_(catch_signals()) {
    if (options_.shows_progress) {
      progress_.emplace();
      progress_->show("waiting for the ranks to meet");
    }
    for (Member& member : members) {
      running_.push_back({member.label, ChildProcess::start(std::move(member.launch)), LineSplitter(member.prefix),
                          LineSplitter(member.prefix), false});
    }
    if (options_.timeout_s) {
      const auto timeout_ns = static_cast<uint64_t>(*options_.timeout_s * double{kSecondNs});
      limit_ns_ = base::now_ns() + timeout_ns;
      look_ns_ = options_.watch.before_limit ? limit_ns_ - std::min(timeout_ns / 2, kLookNs) : kNever;
    }
  }

  int wait() {
    while (!is_done()) {
      poll_once();
      take_signals();
      count_ends();
      act_on_time(base::now_ns());
    }
    return answer_;
  }

 private:
  bool all_ended() const {
    return std::all_of(running_.begin(), running_.end(), [](const Running& one) { return one.is_counted; });
  }

  bool is_done() {
    const bool is_drained = std::all_of(running_.begin(), running_.end(), [](Running& one) {
      return !one.child.output().is_open() && !one.child.error_output().is_open();
    });
    const bool is_late = base::now_ns() >= drain_ns_;
    return all_ended() && (has_given_up_ || is_late || (is_drained && out_.is_empty() && err_.is_empty()));
  }

  /// The soonest moment at which act_on_time() has something to do.
  int poll_timeout_ms() const {
    const uint64_t tick = progress_ ? base::now_ns() + kSecondNs : kNever;
    const uint64_t next = std::min({tick, limit_ns_, look_ns_, stop_ns_, kill_ns_, drain_ns_});
    if (next == kNever) {
      return -1;
    }
    const uint64_t now = base::now_ns();
    return next <= now ? 0 : static_cast<int>(std::min<uint64_t>((next - now) / 1'000'000 + 1, 60'000));
  }

  void poll_once() {
    std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
    for (OutputQueue* queue : {&out_, &err_}) {
      polled.push_back({queue->is_empty() ? -1 : queue->fd(), POLLOUT, 0});
    }
    polled.push_back({is_listening_ ? STDIN_FILENO : -1, POLLIN, 0});
    for (Running& one : running_) {
      polled.push_back({out_.is_full() ? -1 : one.child.output().get(), POLLIN, 0});
      polled.push_back({err_.is_full() ? -1 : one.child.error_output().get(), POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), poll_timeout_ms()) <= 0) {
      return;
    }
    for (OutputQueue* queue : {&out_, &err_}) {
      if (progress_ && polled[queue == &out_ ? 1 : 2].revents != 0) {
        progress_->clear();
      }
      if (polled[queue == &out_ ? 1 : 2].revents != 0 && !queue->write_some()) {
        lose_reader(*queue);
      }
    }
    if (polled[3].revents != 0) {
      listen();
    }
    for (size_t i = 0; i < running_.size(); ++i) {
      if (polled[4 + 2 * i].revents != 0) {
        pass_on(running_[i].child.output(), running_[i].lines, out_);
      }
      if (polled[5 + 2 * i].revents != 0) {
        pass_on(running_[i].child.error_output(), running_[i].error_lines, err_);
      }
    }
  }

  void pass_on(base::UniqueFd& from, LineSplitter& lines, OutputQueue& to) {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got > 0) {
      lines.feed({buffer.data(), static_cast<size_t>(got)}, to.bytes());
      if (progress_) {
        take_marked_lines(to.bytes(), Progress::kMark, [this](const std::string& line) { progress_->show(line); });
      }
    } else if (got == 0 || errno != EINTR) {
      lines.finish(to.bytes());
      from.reset();
    }
  }

  /// As a pipeline does when its reader ends: stop, without a word. But a disk that is full says nothing by itself.
  void lose_reader(OutputQueue& lost) {
    const int error = lost.error();
    lost.bytes().clear();
    if (std::exchange(has_lost_reader_, true)) {
      return;  // what has been said of it may still wait in the other queue
    }
    out_.bytes().clear();
    err_.bytes().clear();
    if (error != EPIPE && !is_stopping_) {
      say(error == EBADF ? "standard output is closed; open it, or throw it away with >/dev/null"
                         : fmt::format("the output can't be written: {}; make room there", base::reason_of(error)));
    }
    fail(error == EPIPE ? 128 + SIGPIPE : kWrongUsage);
    stop(SIGTERM);
  }

  /// The other end of ssh passes on what it was sent.
  void listen() {
    std::array<char, 256> buffer;
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      return;
    }
    if (got <= 0) {
      is_listening_ = false;
      obey(SIGHUP);
      return;
    }
    for (const char c : std::string_view(buffer.data(), static_cast<size_t>(got))) {
      if (c >= '0' && c <= '9' && heard_ < 100) {
        heard_ = heard_ * 10 + (c - '0');
      } else if (c == '\n') {
        if (heard_ == SIGINT || heard_ == SIGTERM || heard_ == SIGHUP) {
          obey(heard_);
        }
        heard_ = 0;
      }
    }
  }

  void obey(int signal) {
    fail(128 + signal);
    if (is_stopping_) {
      kill_ns_ = 0;  // asked twice
    } else {
      stop(signal);
    }
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGCHLD) {
        continue;
      }
      obey(static_cast<int>(info.ssi_signo));
    }
  }

  void count_ends() {
    for (Running& one : running_) {
      if (one.is_counted || !one.child.has_ended()) {
        continue;
      }
      one.is_counted = true;
      if (one.child.exit_code() != 0 && !is_stopping_) {
        say(fmt::format("node {} (pid {}) {}", one.label, one.child.pid(), one.child.end_text()));
        if (options_.watch.on_failure) {
          options_.watch.on_failure(static_cast<size_t>(&one - running_.data()), one.child.pid(), one.child.end_text());
        }
        fail(one.child.exit_code());
        if (!options_.keeps_going && stop_ns_ == kNever) {
          stop_ns_ = base::now_ns() + kAfterFailureNs;
        }
      }
    }
    if (all_ended() && drain_ns_ == kNever) {
      // Our own reader may be slow: it is waited for, unless we were told to end. A pipe that something outside the
      // groups holds open is not waited for.
      stop_ns_ = kNever;
      kill_ns_ = is_stopping_ ? base::now_ns() + kPoliteNs : kNever;
      drain_ns_ = base::now_ns() + kDrainNs;
    }
  }

  void act_on_time(uint64_t now) {
    if (progress_ && out_.is_empty() && err_.is_empty()) {
      progress_->tick();
    }
    if (drain_ns_ != kNever && (!out_.is_empty() || !err_.is_empty())) {
      drain_ns_ = now + kDrainNs;
    }
    if (all_ended() && (now >= limit_ns_ || now >= kill_ns_)) {
      has_given_up_ = true;  // on our own reader
      return;
    }
    if (now >= look_ns_) {
      look_ns_ = kNever;
      options_.watch.before_limit();
    }
    if (now >= limit_ns_) {
      limit_ns_ = kNever;
      if (options_.watch.at_limit && !is_stopping_) {
        for (const std::string& line : options_.watch.at_limit()) {
          say(line);
        }
      }
      say(fmt::format("time limit of {} s reached; ending {}", *options_.timeout_s, alive()));
      fail(kTimedOut);
      stop(SIGTERM);
    }
    if (now >= stop_ns_) {
      stop_ns_ = kNever;
      say(fmt::format("ending {} {} s after the failure (--keep-going lets them run)", alive(),
                      kAfterFailureNs / kSecondNs));
      stop(SIGTERM);
    }
    if (now >= kill_ns_) {
      kill_ns_ = kNever;
      signal_all(SIGKILL);
    }
  }

  void stop(int signal) {
    if (!is_stopping_) {
      is_stopping_ = true;
      signal_all(signal);
      // A stopped process acts on the signal only when it goes on.
      signal_all(SIGCONT);
      kill_ns_ = base::now_ns() + kPoliteNs;
    }
  }

  void signal_all(int signal) {
    for (Running& one : running_) {
      if (!one.is_counted) {
        one.child.signal_group(signal);
      }
    }
  }

  std::string alive() const {
    std::string text;
    for (const Running& one : running_) {
      if (!one.is_counted) {
        text += fmt::format("{}node {} (pid {})", text.empty() ? "" : ", ", one.label, one.child.pid());
      }
    }
    return text;
  }

  void say(const std::string& message) {
    if (!options_.is_remote) {  // the other end says it
      err_.bytes() += options_.command_name + ": " + message + "\n";
    }
  }

  void fail(int code) {
    if (answer_ == kOk) {
      answer_ = code;
    }
  }

  const SuperviseOptions& options_;
  base::UniqueFd signals_;
  std::vector<Running> running_;
  OutputQueue out_{STDOUT_FILENO};
  OutputQueue err_{STDERR_FILENO};
  bool is_listening_ = options_.is_remote;
  int heard_ = 0;  // the digits of a line so far
  std::optional<Progress> progress_;
  bool is_stopping_ = false;
  bool has_lost_reader_ = false;
  bool has_given_up_ = false;
  int answer_ = kOk;
  // Moments of CLOCK_MONOTONIC:
  uint64_t limit_ns_ = kNever;  // the user's time limit
  uint64_t look_ns_ = kNever;   // when the watch looks for the first time, some while before
  uint64_t stop_ns_ = kNever;   // when a failure ends the others
  uint64_t kill_ns_ = kNever;   // when patience after SIGTERM ends
  uint64_t drain_ns_ = kNever;  // when we stop waiting for output of programs that have ended
};

}  // namespace

int supervise(std::vector<Member> members, const SuperviseOptions& options) {
  return Supervisor(std::move(members), options).wait();
}

}  // namespace ringbolt::tools
