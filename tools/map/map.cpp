#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "base/unique_fd.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "map/view.h"
#include "port_counts.h"
#include "progress_line.h"

namespace ringbolt::tools::map {
namespace {

/// What ended a wait.
enum class Wish { kGoOn, kRedraw, kQuit };

/// Signals and keys of a program that shows something until it is told to stop: SIGINT, SIGTERM, SIGHUP, and on a
/// terminal the keys q and Ctrl-C. Blocks these signals for good; one per process. Not thread-safe.
class Keys {
 public:
  /// `has_keys`: standard input is the terminal's.
  explicit Keys(bool has_keys);
  /// Until `deadline_ns`, or what comes before. A size that changed asks for a redraw, and so does a program that was
  /// stopped and goes on. `suspended` is called before it stops, `resumed` after.
  template <class Suspended, class Resumed>
  Wish wait(uint64_t deadline_ns, const Suspended& suspended, const Resumed& resumed) {
    const int event = next(deadline_ns);
    if (event == kStop) {
      suspended();
      stop();
      resumed();
      return Wish::kRedraw;
    }
    return event == 0 ? Wish::kGoOn : event == kRedraw ? Wish::kRedraw : Wish::kQuit;
  }

  /// The signal that ended the last wait; 0: none did.
  int signal() const { return signal_; }

 private:
  static constexpr int kStop = 1;
  static constexpr int kRedraw = 2;
  static constexpr int kQuit = 3;
  int next(uint64_t deadline_ns);
  static void stop();

  base::UniqueFd signals_;
  bool has_keys_;
  int signal_ = 0;
};

/// The terminal while a picture is on it: another page, no cursor, keys at once and unseen. Destroying it gives the
/// terminal back as it was. Not thread-safe.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter();
  void leave();
  /// Draws the text over what was there, as much of it as fits.
  void show(const std::string& text);

 private:
  bool is_entered_ = false;
  std::optional<termios> before_;  // none: input is no terminal
};

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

sigset_t wanted_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) {
    sigaddset(&set, signal);
  }
  return set;
}

void write_all(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Keys::Keys(bool has_keys) : has_keys_(has_keys) {
  const sigset_t set = wanted_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = base::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open()) {
    throw base::Error(errno, "signalfd", "the keys of ringbolt map");
  }
}

int Keys::next(uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = base::now_ns();
    if (now >= deadline_ns) {
      return 0;
    }
    std::array<pollfd, 2> polled{pollfd{signals_.get(), POLLIN, 0}, pollfd{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
    const int timeout_ms = static_cast<int>(std::min<uint64_t>((deadline_ns - now) / 1'000'000 + 1, 60'000));
    if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) {
      continue;
    }
    signalfd_siginfo signal{};
    if (polled[0].revents != 0 && ::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      const auto number = static_cast<int>(signal.ssi_signo);
      if (number == SIGTSTP || number == SIGWINCH) {
        return number == SIGTSTP ? kStop : kRedraw;
      }
      signal_ = number;
      return kQuit;
    }
    if (polled[1].revents != 0) {
      char key = 0;
      const ssize_t got = ::read(STDIN_FILENO, &key, 1);
      constexpr char kControlC = 3;
      if (got <= 0) {
        has_keys_ = false;  // the end of input, not of the picture
      } else if (key == 'q' || key == 'Q' || key == kControlC) {
        return kQuit;
      }
    }
  }
}

void Keys::stop() { ::raise(SIGSTOP); }

Screen::Screen() {
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
  }
  enter();
}

Screen::~Screen() { leave(); }

void Screen::enter() {
  if (before_) {
    termios raw = *before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  write_all(kEnter);
  is_entered_ = true;
}

void Screen::leave() {
  if (!is_entered_) {
    return;
  }
  write_all(kLeave);
  if (before_) {
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
  }
  is_entered_ = false;
}

void Screen::show(const std::string& text) {
  winsize size{};
  const bool has_size = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  std::string page = clipped(text, has_size ? size.ws_col : 80, (has_size ? size.ws_row : 24U) - 1U);
  // Each line clears what was behind it, and the end what was below: nothing flickers.
  std::string out = "\x1b[H";
  for (const char c : page) {
    out += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  }
  write_all(out + "\x1b[J");
}

}  // namespace
}  // namespace ringbolt::tools::map

namespace ringbolt::tools {
namespace {

using map::CableFlow;
using map::Sample;
using map::Wish;

Sample take_sample(const LiveCluster& live) {
  Sample sample;
  sample.is_up = cables_up(live);
  sample.ports = live.is_remote() ? host_counts(live.model, sample.problems) : cluster_counts(live, sample.problems);
  sample.time_ns = base::now_ns();
  return sample;
}

int answer_of(const std::vector<CableFlow>& flows) {
  for (const CableFlow& flow : flows) {
    if (flow.state != CableFlow::State::kActive) {
      return kFoundProblem;
    }
  }
  return kOk;
}

/// Shows the cluster again and again until a key, a signal, or, if it is to be shown once, the first time.
class Show {
 public:
  Show(const LiveCluster& live, const MapOptions& options)
      : live_(live),
        options_(options),
        interval_ns_(static_cast<uint64_t>(options.interval_s * 1e9)),
        is_terminal_(::isatty(STDOUT_FILENO) != 0),
        is_live_(is_terminal_ && !options.is_once && !options.is_json) {}

  int run() {
    map::Keys keys(is_live_ && ::isatty(STDIN_FILENO) != 0);
    std::optional<map::Screen> screen;
    if (is_live_) {
      screen.emplace();
    }
    Sample before = take_sample(live_);
    std::vector<CableFlow> flows = map::flows_between(live_.model, before, before);
    std::vector<std::string> problems = before.problems;
    for (;;) {
      if (screen) {
        screen->show(map::screen_text({live_.model, flows, problems, options_.interval_s}, has_colours()) +
                     "\nq ends\n");
      }
      std::optional<Waiting> waiting;
      if (options_.is_once) {
        waiting.emplace(fmt::format("counting for {} s", options_.interval_s));
      }
      const Wish wish = keys.wait(
          before.time_ns + interval_ns_, [&] { screen ? screen->leave() : void(); },
          [&] { screen ? screen->enter() : void(); });
      waiting.reset();
      if (wish == Wish::kQuit) {
        const bool is_unshown = options_.is_once && keys.signal() != 0;
        return is_unshown ? 128 + keys.signal() : answer_of(flows);
      }
      if (wish == Wish::kRedraw) {
        continue;
      }
      Sample now = take_sample(live_);
      flows = map::flows_between(live_.model, before, now);
      problems = now.problems;
      before = std::move(now);
      if (!screen && !print(flows, problems)) {
        return answer_of(flows);
      }
    }
  }

 private:
  bool has_colours() const {
    const char* no_color = std::getenv("NO_COLOR");
    return is_terminal_ && (no_color == nullptr || *no_color == '\0');
  }

  /// Whether there is more to print.
  bool print(const std::vector<CableFlow>& flows, const std::vector<std::string>& problems) const {
    const map::View view{live_.model, flows, problems, options_.interval_s};
    fmt::print("{}", options_.is_json   ? map::json_text(view)
                     : options_.is_once ? map::screen_text(view, has_colours())
                                        : map::lines_text(view) + "\n");
    const bool is_read = std::fflush(stdout) == 0;
    if (!options_.is_once && !options_.is_json) {
      for (const std::string& problem : problems) {
        base::say(fmt::format("ringbolt map: {}\n", problem));
      }
    }
    return is_read && !options_.is_once;
  }

  const LiveCluster& live_;
  const MapOptions& options_;
  uint64_t interval_ns_;
  bool is_terminal_;
  bool is_live_;
};

}  // namespace

int map_run(const MapOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  return Show(live, options).run();
}

}  // namespace ringbolt::tools
