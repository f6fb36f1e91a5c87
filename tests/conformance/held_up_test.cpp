// What a thread that is held up within the library costs others.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

/// A standard error that nobody reads, and that is full: whoever writes there waits until this goes.
class FullStandardError {
 public:
  FullStandardError() : kept_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe2(ends_.data(), O_NONBLOCK), 0);
    constexpr std::array<char, 4096> kBlock{};
    while (write(ends_[1], kBlock.data(), kBlock.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
    close(ends_[1]);
  }
  ~FullStandardError() {
    dup2(kept_, STDERR_FILENO);
    close(kept_);
    close(ends_[0]);  // who waits is told that nobody reads any more
  }
  FullStandardError(const FullStandardError&) = delete;
  FullStandardError& operator=(const FullStandardError&) = delete;

 private:
  int kept_;
  std::array<int, 2> ends_{};
};

uint64_t processor_ms() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * 1000 + static_cast<uint64_t>(used.tv_nsec) / 1'000'000;
}

/// The poller is held up where it reads the socket, by a line of RINGBOLT_LOG=debug about a packet that it drops. A
/// thread of the library that waits for packets as well must not ask for them again and again meanwhile: it may be on
/// the processor that the poller needs.
TEST(HeldUp, poller_that_is_held_up_at_the_socket_costs_no_processor) {
  if (std::getenv("RINGBOLT_LOOPBACK") == nullptr) {
    GTEST_SKIP() << "no packets here";
  }
  setenv("RINGBOLT_LOG", "debug", 1);
  signal(SIGPIPE, SIG_IGN);
  QpOptions options;
  options.type = IBV_QPT_UD;
  Link link(Placement::same_process, options, 4096);
  const Ah ah = make_ah(link.device, link.near.pd(), link.far.address().gid);
  const uint32_t nobody = link.near.qp()->qp_num ^ 0x1000;
  const auto send_to = [&](uint32_t qp_num) {
    SendWr wr(1, IBV_WR_SEND, {link.memory.sge(0, 8)});
    must_succeed(wr.datagram(ah.get(), qp_num).post(link.near.qp()), "ibv_post_send");
  };
  std::atomic<uint64_t> polls = 0;
  std::atomic<bool> shall_send = false;
  std::atomic<bool> is_done = false;
  std::thread poller([&] {
    for (ibv_wc wc; !is_done; ++polls) {
      if (shall_send.exchange(false)) {
        must_succeed(post_recv(link.near.qp(), 0, {link.memory.sge(64, 64)}), "ibv_post_recv");
        send_to(link.near.qp()->qp_num);
        (void)wait_completion(link.near.recv_cq());
        send_to(nobody);  // where something has just come in it is looked for at once, and by who polls
      }
      ibv_poll_cq(link.near.recv_cq(), 1, &wc);
    }
  });
  const auto is_held_up = [&] {
    const uint64_t before = polls;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return polls == before;
  };
  uint64_t used_ms = UINT64_MAX;
  for (int i = 0; used_ms == UINT64_MAX && i < 10; ++i) {  // a line is written once a second
    const FullStandardError full;
    shall_send = true;
    if (is_held_up()) {
      send_to(nobody);
      const uint64_t before_ms = processor_ms();
      EXPECT_TRUE(is_held_up());
      used_ms = processor_ms() - before_ms;
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
  is_done = true;
  poller.join();
  if (used_ms == UINT64_MAX) {
    GTEST_SKIP() << "on a busy processor the library's own thread was at the socket first, ten times";
  }
  EXPECT_LT(used_ms, 50U) << "of 200 ms";
}

}  // namespace
}  // namespace ringbolt::conformance
