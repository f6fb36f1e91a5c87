#include "map/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "map/view.h"

namespace ringbolt::tools::map {
namespace {

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

}  // namespace

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

}  // namespace ringbolt::tools::map
