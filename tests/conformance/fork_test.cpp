// fork() in the middle of traffic: the child keeps out, the parent does not notice.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "far.h"

extern char** environ;

namespace ringbolt::conformance {
namespace {

class ForkTest : public testing::TestWithParam<Placement> {
 protected:
  /// One message there, checked, and one write back.
  static void exchange(Link& link, uint64_t seed) {
    const std::vector<Piece> piece = {{64, 20000}};
    link.memory.clear();
    link.memory.fill(piece, seed);
    link.far.clear();
    ASSERT_EQ(link.far.post_recv(seed, piece), 0);
    ASSERT_EQ(SendWr(seed, IBV_WR_SEND, link.memory.sges(piece)).post(link.near.qp()), 0);
    expect_success(wait_completion(link.near.send_cq()), seed, IBV_WC_SEND);
    expect_success(link.far.wait_recv(), seed, IBV_WC_RECV);
    EXPECT_EQ(link.far.check(piece, 20000, seed), "");
    link.memory.clear();
    ASSERT_EQ(link.far.post_send(seed, IBV_WR_RDMA_WRITE, piece, IBV_SEND_SIGNALED,
                                 link.memory.address(64), link.memory.rkey()),
              0);
    expect_success(link.far.wait_send(), seed, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(link.memory.check(piece, 20000, seed), "");
  }

  static void reap(pid_t child) {
    int status = 0;
    ASSERT_TRUE(wait_until([&] { return waitpid(child, &status, WNOHANG) == child; }))
        << "the child did not exit";
    EXPECT_EQ(status, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(All, ForkTest, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(ForkTest, child_that_exits_at_once_disturbs_nothing) {
  ASSERT_EQ(ibv_fork_init(), 0);
  Link link(GetParam(), {}, 32768);
  for (uint64_t i = 0; i < 5; ++i) {
    exchange(link, 2 * i);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      _exit(0);
    }
    exchange(link, 2 * i + 1);
    reap(child);
  }
}

TEST_P(ForkTest, living_child_disturbs_nothing) {
  Link link(GetParam(), {}, 32768);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Writes to its own copy of the buffers and waits until the parent is done.
    link.memory.clear();
    close(pipe_ends[1]);
    char byte = 0;
    _exit(read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(pipe_ends[0]);
  for (uint64_t i = 0; i < 10; ++i) {
    exchange(link, i);
  }
  close(pipe_ends[1]);
  reap(child);
  exchange(link, 99);
}

TEST_P(ForkTest, child_that_executes_another_program_disturbs_nothing) {
  Link link(GetParam(), {}, 32768);
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  for (uint64_t i = 0; i < 5; ++i) {
    pid_t child = -1;
    ASSERT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
    exchange(link, i);
    reap(child);
  }
}

TEST_P(ForkTest, connections_made_after_a_fork_work) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    _exit(0);
  }
  Link link(GetParam(), {}, 32768);
  exchange(link, 1);
  reap(child);
}

TEST(Fork, child_sees_that_forking_was_asked_for) {
  ASSERT_EQ(ibv_fork_init(), 0);
  EXPECT_NE(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
}

}  // namespace
}  // namespace ringbolt::conformance
