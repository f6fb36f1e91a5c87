#include "bringup/survey.h"
#include "base/condition.h"

#include <gmock/gmock.h>

#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "bringup/gid_test_support.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::bringup {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

PortCard only_card(const std::string& like) {
  if (!like.empty()) {
    setenv("RINGBOLT_LIKE", like.c_str(), 1);
  }
  const Survey found = survey(verbs::Library::open("soft"));
  EXPECT_THAT(found.unusable, IsEmpty());
  return found.usable.at(0).card;
}

TEST(Survey, describes_a_card_of_many_abilities) {
  const verbs::test::RuntimeFolder folder;
  const PortCard card = only_card("");
  EXPECT_EQ(card.device, "rdma_lo");
  EXPECT_EQ(card.gid(), test::gid("127.0.0.1"));
  EXPECT_TRUE(card.capabilities.has_rc);
  EXPECT_TRUE(card.capabilities.has_uc);
  EXPECT_TRUE(card.capabilities.has_channels);
  EXPECT_FALSE(card.capabilities.counts_frames);
  EXPECT_GE(card.capabilities.most_sge, 16U);
  EXPECT_EQ(*parse_cards(emit_cards(std::vector{card})), std::vector{card});
}

TEST(Survey, describes_a_mac) {
  const verbs::test::RuntimeFolder folder;
  const PortCard card = only_card("tn3205");
  EXPECT_EQ(card.capabilities, (Capabilities{.has_rc = false,
                                             .has_uc = true,
                                             .counts_frames = true,
                                             .has_channels = false,
                                             .most_queue_pairs = 10,
                                             .most_regions = 100,
                                             .most_work_requests = 4095,
                                             .most_sge = 1,
                                             .most_message_bytes = 16'773'120}));
  EXPECT_EQ(card.rate_mbps, 80000U);
  EXPECT_NE(card.lid, 0);
  EXPECT_EQ(card.gid_index, 1);
}

TEST(Survey, finds_the_ipv4_entry_where_a_profile_has_it) {
  const verbs::test::RuntimeFolder folder;
  EXPECT_EQ(only_card("apple,gid=2").gid_index, 2);
  EXPECT_EQ(only_card("spark").gid_index, 3);  // of RoCE v2; at 2 it is v1
}

TEST(Survey, leaves_no_queue_pair_behind) {
  const verbs::test::Device device("tn3205");
  for (int i = 0; i < 12; ++i) {
    probe(*device.pd, *device.cq, 1);
  }
  std::vector<verbs::UnconnectedQueuePair> all;
  for (int i = 0; i < 10; ++i) {
    EXPECT_NO_THROW(all.emplace_back(*device.pd, device.plan(IBV_QPT_UC)));
  }
  EXPECT_THROW(probe(*device.pd, *device.cq, 1), base::Error);  // that tells of no type
}

TEST(Survey, takes_the_least_that_is_known_where_nobody_can_be_asked) {
  const verbs::test::RuntimeFolder folder;
  setenv("RINGBOLT_LIKE", "tn3205", 1);
  verbs::Calls calls = verbs::Library::open("soft").calls();
  calls.query_device = nullptr;
  calls.query_gid_ex = nullptr;
  const Survey found = survey(verbs::Library("sixteen", calls));
  ASSERT_EQ(found.cards().size(), 1U);
  EXPECT_EQ(found.cards()[0].capabilities.most_queue_pairs, 10U);
  EXPECT_EQ(found.cards()[0].capabilities.most_work_requests, 4095U);
  EXPECT_EQ(found.cards()[0].capabilities.most_message_bytes, 16'773'120U);
}

TEST(Survey, says_why_a_port_is_not_usable) {
  const verbs::test::RuntimeFolder folder;
  verbs::Calls calls = verbs::Library::open("soft").calls();
  calls.query_gid = [](ibv_context*, uint8_t, int, ibv_gid* gid) {
    *gid = {};
    return 0;
  };
  Survey found = survey(verbs::Library("no addresses", calls));
  EXPECT_THAT(found.usable, IsEmpty());
  EXPECT_THAT(found.unusable.at(0).reason, HasSubstr("give the port's own interface an address"));
  calls.query_port = [](ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
    reinterpret_cast<ibv_port_attr*>(attributes)->state = IBV_PORT_DOWN;
    return 0;
  };
  found = survey(verbs::Library("down", calls));
  EXPECT_EQ(found.unusable.at(0).port, 1);
  EXPECT_THAT(found.unusable.at(0).reason, HasSubstr("it is down: is its cable in"));
  calls.open_device = [](ibv_device*) -> ibv_context* {
    errno = EACCES;
    return nullptr;
  };
  found = survey(verbs::Library("closed", calls));
  EXPECT_EQ(found.unusable.at(0).port, 0);
  EXPECT_THAT(found.unusable.at(0).reason, HasSubstr("may not open the device"));
}

TEST(Survey, keeps_a_port_that_was_usable_before_another_one_failed) {
  const verbs::test::RuntimeFolder folder;
  static int (*query_device)(ibv_context*, ibv_device_attr*);
  static int (*query_port)(ibv_context*, uint8_t, _compat_ibv_port_attr*);
  static int n_looks_at_second;
  verbs::Calls calls = verbs::Library::open("soft").calls();
  query_device = calls.query_device;
  query_port = calls.query_port;
  n_looks_at_second = 0;
  calls.query_device = [](ibv_context* context, ibv_device_attr* attributes) {
    const int error = query_device(context, attributes);
    attributes->phys_port_cnt = 2;
    return error;
  };
  // Active at the first look, and gone when its table is read.
  calls.query_port = [](ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes) {
    return port == 2 && ++n_looks_at_second > 1 ? EIO : query_port(context, 1, attributes);
  };
  const Survey found = survey(verbs::Library("of two ports", calls));
  ASSERT_EQ(found.usable.size(), 1U);
  EXPECT_EQ(found.usable[0].card.port, 1);
  ASSERT_EQ(found.unusable.size(), 1U);
  EXPECT_EQ(found.unusable[0].port, 2);
  EXPECT_THAT(found.unusable[0].reason, HasSubstr("ibv_query_port"));
}

/// Held by a device that has fallen asleep, until it is woken.
struct Sleep {
  base::Mutex mutex;
  base::Condition changed;
  bool is_woken RINGBOLT_GUARDED_BY(mutex) = false;
  int n_open RINGBOLT_GUARDED_BY(mutex) = 0;
  ibv_context* (*open_device)(ibv_device*) = nullptr;
  int (*close_device)(ibv_context*) = nullptr;
};
Sleep asleep;

TEST(Survey, gives_up_a_device_that_does_not_answer) {
  const verbs::test::RuntimeFolder folder;
  verbs::Calls calls = verbs::Library::open("soft").calls();
  asleep.open_device = calls.open_device;
  asleep.close_device = calls.close_device;
  calls.open_device = [](ibv_device* device) {
    const base::LockGuard lock(asleep.mutex);
    ++asleep.n_open;
    return asleep.open_device(device);
  };
  calls.close_device = [](ibv_context* context) {
    const int error = asleep.close_device(context);
    const base::LockGuard lock(asleep.mutex);
    --asleep.n_open;
    asleep.changed.notify_all();
    return error;
  };
  calls.query_device = [](ibv_context*, ibv_device_attr*) {
    const base::LockGuard lock(asleep.mutex);
    asleep.changed.wait(asleep.mutex, []() RINGBOLT_REQUIRES(asleep.mutex) { return asleep.is_woken; });
    return EIO;
  };
  const Survey found = survey(verbs::Library("asleep", calls), base::now_ns() + 300'000'000);
  EXPECT_THAT(found.usable, IsEmpty());
  ASSERT_EQ(found.unusable.size(), 1U);
  EXPECT_TRUE(found.unusable[0].is_stuck);
  EXPECT_THAT(found.unusable[0].reason, HasSubstr("rdma_lo: ibv_query_device has not returned for "));
  const base::LockGuard lock(asleep.mutex);
  asleep.is_woken = true;
  asleep.changed.notify_all();
  EXPECT_TRUE(asleep.changed.wait_for(asleep.mutex, std::chrono::seconds(20),
                                      []() RINGBOLT_REQUIRES(asleep.mutex) { return asleep.n_open == 0; }));
}

}  // namespace
}  // namespace ringbolt::bringup
