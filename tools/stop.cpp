#include "stop.h"

#include <csignal>

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

}  // namespace ringbolt::tools
