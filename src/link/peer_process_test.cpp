#include "link/peer_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "base/process_descriptor.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

TEST(PeerProcess, memory_is_reachable_only_with_the_right_value) {
  if (!kernel_reads_other_memory()) {
    GTEST_SKIP() << "skip: no process_vm_readv(2) here (seccomp, an emulator)";
  }
  const uint64_t nonce = 0x123456789abcdef0;
  const auto address = reinterpret_cast<uintptr_t>(&nonce);
  EXPECT_TRUE(is_memory_reachable(getpid(), address, nonce));
  EXPECT_FALSE(is_memory_reachable(getpid(), address, nonce + 1));
  EXPECT_FALSE(is_memory_reachable(getpid(), 8, nonce));
  EXPECT_FALSE(is_memory_reachable(0, address, nonce));
  Child child([] {
    for (;;) {
      pause();
    }
    return 0;
  });
  EXPECT_TRUE(is_memory_reachable(child.pid(), address, nonce));  // our image, as it was at the fork
  const pid_t pid = child.pid();
  child.kill(SIGKILL);
  child.wait();
  EXPECT_FALSE(is_memory_reachable(pid, address, nonce));
}

TEST(PeerProcess, its_end_is_readable_and_a_dead_one_has_none) {
  Child child([] {
    for (;;) {
      pause();
    }
    return 0;
  });
  const pid_t pid = child.pid();
  const base::UniqueFd process = base::open_process(pid);
  ASSERT_TRUE(process.is_open());
  pollfd wanted{process.get(), POLLIN, 0};
  EXPECT_EQ(poll(&wanted, 1, 0), 0);
  child.kill(SIGKILL);
  EXPECT_EQ(poll(&wanted, 1, 20'000), 1);
  child.wait();
  EXPECT_FALSE(base::open_process(pid).is_open());
  EXPECT_EQ(errno, ESRCH);
}

TEST(PeerProcess, a_name_with_brackets_does_not_look_stopped) {
  Child child([] {
    prctl(PR_SET_NAME, "a) T (b");
    raise(SIGSTOP);
    for (;;) {
      pause();
    }
    return 0;
  });
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED), 0);
  EXPECT_TRUE(is_process_stopped(child.pid()));
  child.kill(SIGCONT);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WCONTINUED), 0);
  EXPECT_FALSE(is_process_stopped(child.pid()));
  EXPECT_FALSE(is_process_stopped(0x7ffffff0));
}

TEST(PeerProcess, bells_and_tables_are_told_from_other_files) {
  const base::UniqueFd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const base::UniqueFd blocking(eventfd(0, EFD_CLOEXEC));
  const base::UniqueFd memory = marked_memfd(9);
  const base::UniqueFd table = reopen_read_only(memory.get());
  EXPECT_TRUE(is_bell(bell.get()));
  EXPECT_FALSE(is_bell(blocking.get()));
  EXPECT_FALSE(is_bell(memory.get()));
  EXPECT_FALSE(is_bell(-1));
  EXPECT_TRUE(is_read_only_file(table.get()));
  EXPECT_EQ(mark_of(table.get()), 9U);
  EXPECT_FALSE(is_read_only_file(memory.get()));
  EXPECT_FALSE(is_read_only_file(bell.get()));
  EXPECT_FALSE(is_read_only_file(-1));
  EXPECT_FALSE(reopen_read_only(-1).is_open());
}

}  // namespace
}  // namespace ringbolt::link
