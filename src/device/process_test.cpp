// What a process knows of its queue pairs and completion queues.

#include "device/process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

class ProcessTest : public testing::Test {
 protected:
  std::set<uint32_t> queue_pairs() {
    std::set<uint32_t> all;
    device_.process().each_queue_pair([&](QueuePair& one) { all.insert(one.qpn()); });
    return all;
  }
  size_t count_completion_queues() {
    size_t count = 0;
    device_.process().each_completion_queue([&](CompletionQueue&) { ++count; });
    return count;
  }
  DeviceUnderTest device_;
};

TEST_F(ProcessTest, finds_a_queue_pair_by_its_number_as_long_as_it_lives) {
  uint32_t qpn = 0;
  {
    End one(device_, IBV_QPT_RC);
    qpn = one.qpn();
    EXPECT_EQ(device_.process().find(qpn).get(), &one.qp());
    EXPECT_EQ(device_.process().find(qpn + 1), nullptr);
  }
  EXPECT_EQ(device_.process().find(qpn), nullptr);
}

TEST_F(ProcessTest, numbers_name_the_process_and_are_never_those_of_management) {
  End one(device_, IBV_QPT_RC);
  End other(device_, IBV_QPT_UD);
  EXPECT_EQ(one.qpn() >> kQpnIndexBits, other.qpn() >> kQpnIndexBits);
  EXPECT_NE(one.qpn(), other.qpn());
  EXPECT_GT(std::min(one.qpn(), other.qpn()), 1U);
  EXPECT_LE(std::max(one.qpn(), other.qpn()), 0xffffffU);
}

TEST_F(ProcessTest, number_rests_before_it_is_given_out_again) {
  std::set<uint32_t> given;
  for (int i = 0; i < 300; ++i) {
    End one(device_, IBV_QPT_UC);
    EXPECT_TRUE(given.insert(one.qpn()).second) << one.qpn();
  }
}

TEST_F(ProcessTest, visits_each_of_its_objects_once) {
  const size_t queues_before = count_completion_queues();
  std::vector<std::unique_ptr<End>> ends;
  std::set<uint32_t> expected;
  for (int i = 0; i < 5; ++i) {
    ends.push_back(std::make_unique<End>(device_, IBV_QPT_RC));
    expected.insert(ends.back()->qpn());
  }
  EXPECT_EQ(queue_pairs(), expected);
  EXPECT_EQ(count_completion_queues(), queues_before + 10);
  expected.erase(ends[2]->qpn());
  ends.erase(ends.begin() + 2);
  EXPECT_EQ(queue_pairs(), expected);
}

TEST_F(ProcessTest, visitor_may_end_what_it_visits) {
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 4; ++i) {
    ends.push_back(std::make_unique<End>(device_, IBV_QPT_RC));
  }
  int visits = 0;
  device_.process().each_queue_pair([&](QueuePair& visited) {
    ++visits;
    std::erase_if(ends, [&](const auto& end) { return &end->qp() == &visited; });
  });
  EXPECT_EQ(visits, 4);
  EXPECT_TRUE(ends.empty());
}

TEST_F(ProcessTest, owner_of_a_number_is_the_process_whose_slot_it_names) {
  End one(device_, IBV_QPT_RC);
  const auto owner = device_.process().owner_of(one.qpn());
  ASSERT_NE(owner, nullptr);
  EXPECT_EQ(owner->peer().pid(), getpid());
  EXPECT_EQ(device_.process().owner_of(one.qpn() + 1), owner);  // a queue pair or not
  EXPECT_EQ(device_.process().owner_of(900U << kQpnIndexBits), nullptr);
}

TEST_F(ProcessTest, domain_counts_what_is_in_it) {
  const uint32_t before = device_.pd().users.load();
  {
    End one(device_, IBV_QPT_RC);
    Memory memory(device_.pd(), 64, IBV_ACCESS_LOCAL_WRITE);
    EXPECT_EQ(device_.pd().users.load(), before + 2);
  }
  EXPECT_EQ(device_.pd().users.load(), before);
}

TEST_F(ProcessTest, region_waits_for_the_access_that_is_under_way) {
  End owner(device_, IBV_QPT_RC);
  End user(device_, IBV_QPT_RC);
  connect(owner, user);
  Memory data(device_.pd(), 64, Memory::kAll);
  ASSERT_EQ(owner.receive(1, data.piece(8, 8)), 0);
  ASSERT_EQ(user.send(2, data.piece(0, 8)), 0);
  ASSERT_EQ(owner.await_receive().status, IBV_WC_SUCCESS);
  ASSERT_EQ(user.await_send().status, IBV_WC_SUCCESS);  // the service thread, which took the offer, is through
  auto memory = std::make_unique<Memory>(device_.pd(), 64, Memory::kAll);
  link::LaneProducer* lane = nullptr;
  user.qp().lanes().each_sending([&](Connection& connection) { lane = &*connection.sender; });
  lane->announce_access(memory->key());
  std::atomic<bool> is_gone{false};
  const uint64_t began = base::now_ns();
  std::thread deregisters([&] {
    memory.reset();
    is_gone = true;
  });
  for (int turns = 0; turns < 100; ++turns) {  // enough for the other one to be through, if it did not wait
    std::this_thread::yield();
  }
  const bool was_gone = is_gone.load();
  if (base::now_ns() - began < kAccessDrainNs) {  // so long it waits at most
    EXPECT_FALSE(was_gone);
  }
  lane->end_access();
  deregisters.join();
  EXPECT_TRUE(is_gone.load());
}

TEST_F(ProcessTest, shareable_memory_lives_as_long_as_a_region_over_it) {
  std::byte* const data = *device_.process().allocate_buffer(10'000);
  const auto address = reinterpret_cast<uint64_t>(data);
  auto region = *MemoryRegion::create(device_.pd(), address, 10'000, address, Memory::kAll);
  device_.process().free_buffer(data);
  EXPECT_EQ(device_.process().arenas().all().size(), 1U);
  data[9999] = std::byte{1};  // still there
  region.reset();
  EXPECT_TRUE(device_.process().arenas().all().empty());
}

}  // namespace
}  // namespace ringbolt::device
