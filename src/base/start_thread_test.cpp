#include "base/start_thread.h"

#include <gtest/gtest.h>

namespace ringbolt::base {
namespace {

sigset_t blocked_here() {
  sigset_t set;
  ::sigemptyset(&set);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
  return set;
}

TEST(StartThread, blocks_the_programs_signals_in_the_thread_alone) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGUSR2);
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, &wanted, &before);
  sigset_t there;
  start_thread([&] { there = blocked_here(); }).join();
  const sigset_t here = blocked_here();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGPIPE}) {
    EXPECT_EQ(::sigismember(&there, signal), 1) << signal;
    EXPECT_EQ(::sigismember(&here, signal), signal == SIGUSR2 ? 1 : 0) << "the caller's are as they were: " << signal;
  }
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    EXPECT_EQ(::sigismember(&there, fault), 0) << "the program's handler tells of it: " << fault;
  }
}

}  // namespace
}  // namespace ringbolt::base
