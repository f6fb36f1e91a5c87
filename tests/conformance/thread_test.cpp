// Threads: every call is thread-safe, whatever objects they share.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/mutex.h"
#include "deadline.h"
#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kThreads = 4;

/// Starts a thread whose exceptions fail the test instead of ending the program.
template <typename Work>
std::thread start(Work work) {
  return std::thread([work] {
    try {
      work();
    } catch (const std::exception& problem) {
      ADD_FAILURE() << problem.what();
    }
  });
}

class ThreadTest : public testing::TestWithParam<Placement> {};
INSTANTIATE_TEST_SUITE_P(All, ThreadTest, testing::ValuesIn(kPlacements), parameter_name);

TEST_P(ThreadTest, four_threads_post_on_one_queue_pair) {
  constexpr uint64_t kEach = 250;
  Link link(GetParam(), {}, 65536);
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.push_back(start([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        SendWr wr(t << 32 | i, IBV_WR_RDMA_WRITE, {link.memory.sge(t * 64, 64)});
        wr.remote(link.far.region_address(t * 64), link.far.rkey());
        const bool is_posted = wait_until([&] {
          const int error = wr.post(link.near.qp());
          failures += error != 0 && error != ENOMEM ? 1 : 0;
          return error != ENOMEM;
        });
        failures += is_posted ? 0 : 1;
      }
    }));
  }
  std::vector<uint64_t> next(kThreads, 0);
  for (uint64_t i = 0; i < kThreads * kEach; ++i) {
    const ibv_wc wc = wait_completion(link.near.send_cq());
    expect_success(wc, (wc.wr_id >> 32) << 32 | next[wc.wr_id >> 32]++, IBV_WC_RDMA_WRITE);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
}

TEST_P(ThreadTest, four_threads_poll_one_queue) {
  constexpr uint64_t kCount = 1000;
  Link link(GetParam(), {}, 65536);
  base::Mutex mutex;
  std::set<uint64_t> seen;
  std::atomic<uint64_t> total = 0;
  std::atomic<int> bad = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.push_back(start([&] {
      const Deadline deadline;
      while (total < kCount && !deadline.has_passed()) {
        ibv_wc wc[8];
        const int count = ibv_poll_cq(link.near.send_cq(), 8, wc);
        for (int i = 0; i < count; ++i) {
          const base::LockGuard lock(mutex);
          bad += wc[i].status == IBV_WC_SUCCESS && seen.insert(wc[i].wr_id).second ? 0 : 1;
          ++total;
        }
      }
    }));
  }
  for (uint64_t i = 0; i < kCount; ++i) {
    SendWr wr(i, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 64)});
    wr.remote(link.far.region_address(), link.far.rkey());
    ASSERT_TRUE(wait_until([&] { return wr.post(link.near.qp()) == 0; }));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(total, kCount);
  EXPECT_EQ(seen.size(), kCount);
  EXPECT_EQ(bad, 0);
}

/// Sends and receives `count` messages on `mine`, checking what came. Two receives are posted
/// already, and two stay posted at all times. One thread's work.
void exchange(Endpoint& mine, Region& memory, uint64_t count, uint64_t my_seed, uint64_t seed) {
  constexpr uint32_t kSize = 3000;
  const std::vector<Piece> out = {{0, kSize}};
  for (uint64_t i = 0; i < count; ++i) {
    memory.fill(out, my_seed + i);
    must_succeed(SendWr(i, IBV_WR_SEND, memory.sges(out)).post(mine.qp()), "ibv_post_send");
    const ibv_wc received = wait_completion(mine.recv_cq());
    expect_success(received, i, IBV_WC_RECV);
    expect_success(wait_completion(mine.send_cq()), i, IBV_WC_SEND);
    const uint64_t at = 4096 + 4096 * (i % 2);
    Region expected(mine.pd(), kSize);
    expected.fill(out, seed + i);
    EXPECT_EQ(std::memcmp(memory.data() + at, expected.data(), kSize), 0) << "message " << i;
    must_succeed(post_recv(mine.qp(), i + 2, {memory.sge(at, kSize)}), "ibv_post_recv");
  }
}

TEST(Thread, two_queue_pairs_talk_across_two_threads) {
  const Device device = open_device();
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    QpOptions options;
    options.type = type;
    Endpoint a(device, options), b(device, options);
    Region first(a.pd(), 12288), second(b.pd(), 12288);
    connect(a, b);
    for (uint64_t i = 0; i < 2; ++i) {
      ASSERT_EQ(post_recv(a.qp(), i, {first.sge(4096 + 4096 * i, 3000)}), 0);
      ASSERT_EQ(post_recv(b.qp(), i, {second.sge(4096 + 4096 * i, 3000)}), 0);
    }
    std::thread other = start([&] { exchange(b, second, 200, 5000, 1000); });
    exchange(a, first, 200, 1000, 5000);
    other.join();
  }
}

TEST(Thread, four_threads_make_and_destroy_everything) {
  const Device device = open_device();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.push_back(start([&, t] {
      for (uint64_t i = 0; i < 25; ++i) {
        Endpoint a(device, {}), b(device, {});
        connect(a, b);
        Region from(a.pd(), 4096), to(b.pd(), 4096);
        from.fill(std::vector<Piece>{{0, 4096}}, t * 100 + i);
        must_succeed(post_recv(b.qp(), i, {to.sge(0, 4096)}), "ibv_post_recv");
        must_succeed(SendWr(i, IBV_WR_SEND, {from.sge(0, 4096)}).post(a.qp()), "ibv_post_send");
        expect_success(wait_completion(a.send_cq()), i, IBV_WC_SEND);
        expect_success(wait_completion(b.recv_cq()), i, IBV_WC_RECV);
        EXPECT_EQ(to.check(std::vector<Piece>{{0, 4096}}, 4096, t * 100 + i), "");
      }
    }));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(Thread, queue_pairs_of_one_completion_queue_come_and_go_while_it_is_polled) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 1024);
  std::atomic<bool> is_done = false;
  std::thread poller([&] {
    while (!is_done) {
      ibv_wc wc[8];
      EXPECT_GE(ibv_poll_cq(cq.get(), 8, wc), 0);
    }
  });
  Region memory(pd.get(), 64);
  for (uint64_t i = 0; i < 50; ++i) {
    const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
    Endpoint a(device, {}, parts), b(device, {}, parts);
    connect(a, b);
    ASSERT_EQ(post_recv(b.qp(), i, {memory.sge(0, 8)}), 0);
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(8, 8)}).post(a.qp()), 0);
  }
  is_done = true;
  poller.join();
}

/// A page that holds up whoever reads it: he waits at a pipe, in a system call, until release(). One at a time.
class HeldUpPage {
 public:
  HeldUpPage() {
    void* page = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_succeed(page == MAP_FAILED ? errno : 0, "mmap");
    page_ = page;
    must_succeed(pipe(gate_) == 0 ? 0 : errno, "pipe");
    struct sigaction action {};
    action.sa_handler = hold_up;
    must_succeed(sigaction(SIGSEGV, &action, &before_) == 0 ? 0 : errno, "sigaction");
  }
  ~HeldUpPage() {
    sigaction(SIGSEGV, &before_, nullptr);
    close(gate_[0]);
    close(gate_[1]);
    munmap(page_, kBytes);
  }
  HeldUpPage(const HeldUpPage&) = delete;
  HeldUpPage& operator=(const HeldUpPage&) = delete;

  ibv_sge sge() const { return {reinterpret_cast<uint64_t>(page_), 8, 0}; }
  bool is_held_up() const { return is_held_up_; }
  void release() { EXPECT_EQ(write(gate_[1], "", 1), 1); }

 private:
  static void hold_up(int) {
    char word = 0;
    is_held_up_ = true;
    while (read(gate_[0], &word, 1) != 1) {
    }
    mprotect(page_, kBytes, PROT_READ);
  }

  static constexpr size_t kBytes = 4096;
  static inline void* page_ = nullptr;
  static inline int gate_[2] = {-1, -1};
  static inline std::atomic<bool> is_held_up_ = false;
  struct sigaction before_ {};
};

/// Whether it sleeps, as the kernel says.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::ostringstream text;
  text << file.rdbuf();
  const size_t at = text.str().rfind(") ");
  return at != std::string::npos && text.str()[at + 2] == 'S';
}

TEST(Thread, who_waits_for_a_post_that_is_held_up_burns_no_processor_time) {
  const Device device = open_device();
  QpOptions options;
  options.inline_bytes = 64;
  Endpoint a(device, options), b(device, options);
  connect(a, b);
  Region memory(b.pd(), 64);
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(post_recv(b.qp(), i, {memory.sge(8 * i, 8)}), 0);
  }
  HeldUpPage page;
  const auto post = [&](uint64_t wr_id) {
    must_succeed(SendWr(wr_id, IBV_WR_SEND, {page.sge()}, IBV_SEND_INLINE | IBV_SEND_SIGNALED).post(a.qp()), "post");
  };
  std::thread holder = start([&] { post(0); });
  EXPECT_TRUE(wait_until([&] { return page.is_held_up(); }));
  std::atomic<pid_t> waiter_id = 0;
  std::thread waiter = start([&] {
    waiter_id = gettid();
    post(1);
  });
  EXPECT_TRUE(wait_until([&] { return waiter_id != 0 && is_asleep(waiter_id); }));
  page.release();
  holder.join();
  waiter.join();
  for (uint64_t i = 0; i < 2; ++i) {
    expect_success(wait_completion(a.send_cq()), i, IBV_WC_SEND);
    expect_success(wait_completion(b.recv_cq()), i, IBV_WC_RECV);
  }
}

}  // namespace
}  // namespace ringbolt::conformance
