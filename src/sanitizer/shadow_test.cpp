// Mistakes and their corrected twins, and that who makes none sees nothing of the sanitizer.

#include <sys/mman.h>

#include <array>
#include <random>

#include "sanitizer/shadow_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::device;
using testing::Rules;

class ShadowTest : public testing::Shadowed {};

TEST_F(ShadowTest, requests_go_under_numbers_of_ours_and_come_back_under_the_programs) {
  start();
  ibv_sge one = piece(0, 8);
  const ibv_sge before = one;
  ibv_send_wr second{};
  second.wr_id = 5;  // the same: programs need not tell their requests apart
  second.sg_list = &one;
  second.num_sge = 1;
  second.opcode = IBV_WR_SEND;
  second.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr first = second;
  first.next = &second;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(shadow->post_send(&qp, &first, &bad, here()), 0);
  EXPECT_EQ(first.wr_id, 5U);
  EXPECT_EQ(first.next, &second);
  EXPECT_EQ(one.addr, before.addr);
  EXPECT_EQ(one.lkey, before.lkey);
  ASSERT_EQ(device.sends.size(), 2U);
  EXPECT_NE(device.sends[0].wr_id, device.sends[1].wr_id);
  device.complete_send();
  device.complete_send();
  EXPECT_EQ(poll(), (std::vector<uint64_t>{5, 5}));
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, data_are_there_with_the_completion_and_not_before) {
  start();
  write(0, "as it was, in all of its bytes...");
  ASSERT_EQ(receive(0, 33), 0);
  const std::string poisoned = text(0, 33);
  EXPECT_NE(poisoned, "as it was, in all of its bytes...");
  device.receive("new bytes");
  EXPECT_EQ(text(0, 33), poisoned) << "it has arrived, and its completion is not polled";
  poll();
  EXPECT_EQ(text(0, 33), "new bytes, in all of its bytes...") << "behind what has come all is as it was";
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, buffers_that_are_touched_too_early) {
  start();
  send(0, 64);
  write(10, "x");
  device.complete_send();
  poll();
  EXPECT_EQ(rules(), Rules{"send-buffer-changed"});
  send(0, 64);
  device.complete_send();
  poll();
  write(10, "y");
  EXPECT_EQ(rules(), Rules{});
  send(0, 64);
  write(11, "z");
  device.complete_send(IBV_WC_SEND, "", IBV_WC_WR_FLUSH_ERR);
  poll();
  EXPECT_EQ(rules(), Rules{}) << "what was not sent may have been anything";
}

TEST_F(ShadowTest, receives_that_are_written_to_or_forwarded_too_early) {
  start();
  receive(0, 64);
  write(20, "mine");
  device.receive(std::string(64, 'r'));
  poll();
  EXPECT_EQ(rules(), Rules{"receive-buffer-changed"});
  receive(0, 64);
  std::memcpy(memory.data() + 1024, memory.data(), 64);  // copied before it has come
  send(1024, 64);
  EXPECT_EQ(rules(), Rules{"sent-before-received"});
  device.complete_send();
  device.receive(std::string(64, 'r'));
  poll();
  std::memcpy(memory.data() + 1024, memory.data(), 64);
  send(1024, 64);
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, memory_in_two_requests_at_once) {
  start();
  receive(0, 100);
  receive(99, 10);
  EXPECT_EQ(rules(), Rules{"receive-buffers-overlap"});
  receive(200, 100);
  send(250, 10);
  EXPECT_EQ(rules(), Rules{"sent-and-received"});
  send(400, 10);
  receive(405, 10);
  EXPECT_EQ(rules(), Rules{"sent-and-received"});
  send(600, 10);
  send(600, 10);
  receive(610, 10);
  EXPECT_EQ(rules(), Rules{}) << "two may send the same, and what lies beside it is free";
}

TEST_F(ShadowTest, regions_and_memory_that_go_under_a_request) {
  start();
  write(0, "program's");
  receive(0, 9);
  shadow->region_goes(mr, "ibv_dereg_mr", here());
  EXPECT_EQ(rules(), Rules{"region-gone-in-use"});
  EXPECT_EQ(text(0, 9), "program's") << "no poison stays in memory that nothing will be received into";
  start();
  receive(0, 9);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  shadow->queue_pair_changed(qp, attributes, IBV_QP_STATE, here());
  shadow->region_goes(mr, "ibv_dereg_mr", here());
  EXPECT_EQ(rules(), Rules{}) << "a queue pair that has ended does nothing but flush";
}

TEST_F(ShadowTest, a_region_that_peers_may_write_to_from_here_on_holds_no_poison) {
  start();
  write(0, "program's");
  receive(0, 9);
  ASSERT_NE(text(0, 9), "program's");
  shadow->region_changed(mr, false, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(text(0, 9), "program's");
  write(3, "peer");  // a WRITE
  device.receive("");
  poll();
  EXPECT_EQ(rules(), Rules{}) << "the program has written nothing";
  receive(100, 9);
  EXPECT_EQ(text(100, 9), std::string(9, '\0')) << "nor is there any in later receives";
}

TEST_F(ShadowTest, memory_that_is_unmapped_under_a_request) {
  start();
  void* const pages = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ibv_mr other = mr;
  other.addr = pages;
  other.length = 8192;
  other.lkey = kLkey + 1;
  shadow->region_made(other, reinterpret_cast<uint64_t>(pages), IBV_ACCESS_LOCAL_WRITE, here());
  ibv_sge one{reinterpret_cast<uintptr_t>(pages) + 4000, 200, kLkey + 1};  // on both pages
  ibv_recv_wr wr{};
  wr.sg_list = &one;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(shadow->post_receive(&qp, &wr, &bad, here()), 0);
  ::munmap(static_cast<std::byte*>(pages) + 4096, 4096);
  device.receive("never seen");
  poll();
  EXPECT_EQ(rules(), Rules{"memory-unmapped-in-use"});
  ibv_send_wr late{};
  late.sg_list = &one;
  late.num_sge = 1;
  late.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(shadow->post_send(&qp, &late, &bad_send, here()), 0);
  EXPECT_EQ(rules(), Rules{"posted-memory-unmapped"});
  ::munmap(pages, 4096);
}

TEST_F(ShadowTest, send_queues_that_never_drain_or_run_over) {
  start("on", 4);
  for (int i = 0; i < 4; ++i) {
    send(0, 8, IBV_WR_SEND, 0);
  }
  EXPECT_EQ(rules(), Rules{}) << "full, and no more";
  send(0, 8, IBV_WR_SEND, 0);
  EXPECT_EQ(rules(), Rules{"send-queue-never-drains"});
  start("on", 4);
  device = {};
  for (int i = 0; i < 4; ++i) {
    send(0, 8, IBV_WR_SEND, i == 1 ? unsigned{IBV_SEND_SIGNALED} : 0U);
  }
  device.complete_send();
  device.complete_send();
  poll();  // makes room for the one before it, too
  send(0, 8);
  send(0, 8);
  EXPECT_EQ(rules(), Rules{});
  send(0, 8);
  EXPECT_EQ(rules(), Rules{"send-queue-overrun"});
}

TEST_F(ShadowTest, completion_queues_are_counted_with_all_that_completes_to_them) {
  cq.cqe = 3;
  start();
  receive(0, 8);
  send(100, 8);
  send(200, 8, IBV_WR_SEND, 0);  // completes to nothing
  receive(300, 8);
  EXPECT_EQ(rules(), Rules{});
  send(400, 8);
  EXPECT_EQ(rules(), Rules{"completion-queue-overrun"});
  cq.cqe = 4;
  shadow->queue_resized(cq);
  device.receive("12345678");
  poll();
  receive(0, 8);
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, a_queue_pair_on_queues_that_nobody_told_of_works) {
  start();
  ibv_cq untold{};
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = &untold;
  shadow->queue_pair_made(qp, wanted, {100, 100, 4, 4, 0}, {true, true, false}, here());
  EXPECT_EQ(receive(0, 8), 0);
  EXPECT_EQ(send(100, 8), 0);
  device.receive("12345678");
  device.complete_send();
  EXPECT_EQ(poll(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(text(0, 8), "12345678");
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, posts_after_a_failure_until_the_queue_pair_is_reset) {
  start();
  send(0, 8);
  device.complete_send(IBV_WC_SEND, "", IBV_WC_RETRY_EXC_ERR);
  send(0, 8);
  EXPECT_EQ(rules(), Rules{}) << "the program can't know yet";
  poll();
  send(0, 8);
  EXPECT_EQ(rules(), Rules{"posted-after-failure"});
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  shadow->queue_pair_changed(qp, attributes, IBV_QP_STATE, here());
  send(0, 8);
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, sleeps_that_may_miss_what_came_before_they_armed) {
  // InfiniBand specification, 11.4.2.2: a request for notification says nothing of what is in the queue already.
  ibv_comp_channel channel{};
  cq.channel = &channel;
  start();
  shadow->arming(&cq, here());
  shadow->sleeping(channel, false, here());
  EXPECT_EQ(rules(), Rules{}) << "nothing was awaited when it was armed";
  receive(0, 8);
  shadow->arming(&cq, here());
  shadow->sleeping(channel, true, here());
  EXPECT_EQ(rules(), Rules{}) << "an event is there";
  shadow->sleeping(channel, false, here());
  EXPECT_EQ(rules(), Rules{"wake-up-lost"});
  shadow->arming(&cq, here());
  poll();
  shadow->sleeping(channel, false, here());
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, accesses_to_a_peers_memory_that_nothing_orders) {
  start();
  send(0, 8, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0x10000);
  send(100, 8, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0x10007);
  EXPECT_EQ(rules(), Rules{"write-may-pass-read"});
  send(200, 8, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0x20000);
  send(300, 8, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED | IBV_SEND_FENCE, 0x20000);
  send(400, 8, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0x20008);
  send(500, 8, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0x20008);
  EXPECT_EQ(rules(), Rules{}) << "fenced, beside it, and a READ behind a WRITE, which is in order";
  ibv_qp other{};
  connect(other, 6);
  send(600, 8, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0x20010, &other);
  EXPECT_EQ(rules(), Rules{});
  send(700, 8, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0x20000, &other);
  EXPECT_EQ(rules(), Rules{"remote-accesses-unordered"});
}

TEST_F(ShadowTest, objects_that_are_left_are_told_by_where_they_were_made) {
  start("objects");
  const base::CallSite loop = here();
  std::array<ibv_pd, 3> domains{};
  for (const ibv_pd& one : domains) {
    shadow->made(ObjectKind::pd, &one, loop);
  }
  shadow->gone(domains.data());
  shadow->busy(&domains[1], here());
  shadow->queue_pair_gone(qp);
  shadow->queue_gone(cq);
  shadow->region_goes(mr, "ibv_dereg_mr", here());
  shadow->gone(&mr);
  shadow->report_leaks();
  Rules found = rules();
  std::ranges::sort(found);
  EXPECT_EQ(found, (Rules{"destroy-failed", "object-left"}));
}

TEST_F(ShadowTest, says_nothing_of_kinds_that_nobody_wished_for) {
  start("early");
  send(0, 64);
  write(1, "x");
  device.complete_send();
  poll();
  for (int i = 0; i < 300; ++i) {
    send(0, 8, IBV_WR_RDMA_WRITE, 0);
  }
  shadow->report_leaks();
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowTest, a_child_after_fork_knows_nothing_of_its_parents_requests) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "skip: what is left to the parent counts as a leak";
#endif
  start();
  receive(0, 64);
  const uint32_t registered = device.registered;
  shadow->before_fork();
  shadow->in_child();
  EXPECT_EQ(device.registered, registered) << "the parent's regions are not a child's to take away";
  shadow->report_leaks();
  device.receive("late");
  EXPECT_EQ(poll(), std::vector<uint64_t>{0});
  EXPECT_EQ(rules(), Rules{});
  device.registered = 0;
}

/// What a program does that makes no mistake, and what it must find in its memory.
TEST_F(ShadowTest, a_program_without_mistakes_sees_what_it_would_see_without_us) {
  constexpr size_t kPlaces = 32;
  constexpr uint32_t kBytes = 100;  // no multiple of the poison's eight
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    shadow.reset();
    device = {};
    start();
    std::array<bool, kPlaces> is_busy{};
    std::map<uint64_t, std::pair<size_t, std::string>> awaited;  // by wr_id: place, and what it will hold
    std::array<std::string, kPlaces> holds;
    for (size_t place = 0; place < kPlaces; ++place) {
      holds[place] = text(kBytes * place, kBytes);
    }
    std::deque<uint64_t> sends;
    std::deque<uint64_t> receives;
    for (int step = 0; step < 400; ++step) {
      const size_t place = random() % kPlaces;
      const std::string bytes(random() % (kBytes + 1), static_cast<char>('a' + random() % 26));
      const auto expect = [&] {
        is_busy[place] = true;
        awaited[wr_id] = {place, holds[place]};
      };
      switch (random() % 6) {
        case 0:
          if (!is_busy[place] && sends.size() < 90) {
            ASSERT_EQ(send(kBytes * place, kBytes, random() % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_READ,
                           IBV_SEND_SIGNALED, 0x10000 + kBytes * place),
                      0);
            sends.push_back(wr_id);
            expect();
          }
          break;
        case 1:
          if (!is_busy[place]) {
            ASSERT_EQ(receive(kBytes * place, kBytes), 0);
            receives.push_back(wr_id);
            expect();
          }
          break;
        case 2:
          if (!is_busy[place]) {
            write(kBytes * place, bytes);
            holds[place].replace(0, bytes.size(), bytes);
          }
          break;
        case 3:
          if (!receives.empty()) {
            device.receive(bytes);
            awaited[receives.front()].second.replace(0, bytes.size(), bytes);
            receives.pop_front();
          }
          break;
        case 4:
          if (!sends.empty()) {
            device.complete_send(IBV_WC_SEND);
            sends.pop_front();
          }
          break;
        default:
          for (const uint64_t id : poll()) {
            const auto known = awaited.find(id);
            ASSERT_NE(known, awaited.end()) << "seed " << seed;
            const auto& [where, what] = known->second;
            ASSERT_EQ(text(kBytes * where, kBytes), what) << "seed " << seed << " step " << step;
            holds[where] = what;
            is_busy[where] = false;
            awaited.erase(known);
          }
          break;
      }
    }
    ASSERT_EQ(rules(), Rules{}) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ringbolt::sanitizer
