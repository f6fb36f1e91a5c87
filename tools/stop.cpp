#include "stop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/start_thread.h"

namespace ringbolt::tools {
namespace {

// What a signal handler may touch.
volatile std::sig_atomic_t is_asked = 0;
volatile std::sig_atomic_t signal_that_asked = 0;

void ask(int signal) {
  is_asked = 1;
  signal_that_asked = signal;
}

}  // namespace

void catch_stop() {
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool is_stopped() { return is_asked != 0; }

void stop() { is_asked = 1; }

int answer_unless_stopped(int answer) { return signal_that_asked == 0 ? answer : 128 + signal_that_asked; }

LastWords::LastWords(std::function<void()> say) : say_(std::move(say)) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC));
  end_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!signals_.is_open() || !end_.is_open()) {
    throw base::Error(errno, "signalfd", "signals", "look at the limit of open files (ulimit -n)");
  }
  thread_ = base::start_thread([this] { listen(); });  // its signals come by the descriptor, blocked as they are
}

LastWords::~LastWords() {
  const uint64_t one = 1;
  (void)!::write(end_.get(), &one, sizeof one);
  thread_.join();
}

void LastWords::listen() {
  std::array<pollfd, 2> polled{pollfd{signals_.get(), POLLIN, 0}, pollfd{end_.get(), POLLIN, 0}};
  while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
  if (polled[0].revents == 0) {
    return;
  }
  signalfd_siginfo info{};
  (void)!::read(signals_.get(), &info, sizeof info);
  mutex_.lock();  // for good: who finds something now is too late
  if (say_) {
    say_();
  }
  // Not _exit(): the verbs library then says goodbye, and its files go. Whoever is in a call of it stays there.
  std::exit(128 + static_cast<int>(info.ssi_signo));
}

}  // namespace ringbolt::tools
