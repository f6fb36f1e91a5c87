#include "verify/stop.h"

#include <csignal>

namespace ringbolt::tools::verify {
namespace {

// What a signal handler may touch.
volatile std::sig_atomic_t is_asked = 0;

void ask(int) { is_asked = 1; }

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

}  // namespace ringbolt::tools::verify
