#include "agent/held_signals.h"

#include <sys/signalfd.h>

#include <cerrno>

#include "base/error.h"

namespace ringbolt::tools::agent {

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&held, signal);
  }
  signals_ = base::UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.is_open()) {
    throw base::Error(errno, "signalfd", "signals", "look at the limits of this process (ulimit -n)");
  }
  ::sigprocmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace ringbolt::tools::agent
