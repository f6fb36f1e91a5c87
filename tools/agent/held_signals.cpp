#include "agent/held_signals.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "base/error.h"

namespace ringbolt::tools::agent {

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) {  // nohup, or a shell that runs us in the background
      sigaddset(&held, signal);
    }
  }
  signals_ = base::UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open()) {
    throw base::Error(errno, "signalfd", "signals", "look at the limits of this process (ulimit -n)");
  }
  ::sigprocmask(SIG_BLOCK, &held, &before_);
}

bool HeldSignals::has_come() const {
  pollfd come{signals_.get(), POLLIN, 0};
  return ::poll(&come, 1, 0) > 0;
}

/// A signal that is pending is delivered before this returns (sigprocmask(2)).
HeldSignals::~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace ringbolt::tools::agent
