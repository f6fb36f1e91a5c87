#include "device/port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "device/device_test_support.h"
#include "device/expected_refusals.h"
#include "device/gid_table.h"
#include "fault/plan_text.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::device {
namespace {

using profile::Counted;
using profile::Rule;
using testing::HasSubstr;

class PortTest : public testing::Test {
 protected:
  PortTest() {
    port_.name = "rdma_en2";
    port_.fabric = fabric_;
    port_.profile.name = "a machine of the test's";
    port_.known_gids = memory_gids(1, 0x0a000001);
    port_.live_gids = std::make_shared<LiveGids>(GidTables{port_.known_gids, port_.known_gids});
    port_.peer_gids = memory_gids(2, 0x0a000002);
    port_.ledger = std::make_shared<Ledger>(folder_.path() + "/rdma_en2.ledger", false);
  }
  std::string told_by(const std::function<void()>& act) {
    testing::internal::CaptureStderr();
    act();
    return testing::internal::GetCapturedStderr();
  }
  int claim_error(Counted kind) {
    const auto claim = port_.claim(kind);
    return claim ? 0 : claim.error().value;
  }

  link::testing::TempFolder folder_;
  std::shared_ptr<Fabric> fabric_ = std::make_shared<Fabric>();
  Port port_;
};

TEST_F(PortTest, reaches_itself_and_the_other_end_of_its_cable) {
  for (const auto* gids : {&port_.known_gids, &port_.peer_gids}) {
    for (const ibv_gid& gid : *gids) {
      EXPECT_TRUE(port_.reaches(gid));
      EXPECT_FALSE(port_.is_remote(gid));  // both ends are in memory
    }
  }
  EXPECT_FALSE(port_.reaches(mapped_gid(0x0a000003)));
  EXPECT_FALSE(port_.reaches(ibv_gid{}));
  EXPECT_TRUE(port_.owns(port_.known_gids[1]));
  EXPECT_FALSE(port_.owns(port_.peer_gids[1]));
}

TEST_F(PortTest, zero_gid_is_in_no_table) {
  const std::vector<ibv_gid> gids{port_.known_gids[0], ibv_gid{}, port_.known_gids[1]};
  EXPECT_EQ(Port::index_of(gids, ibv_gid{}), gids.size());
  EXPECT_EQ(Port::index_of(gids, port_.known_gids[1]), 2U);
  EXPECT_EQ(Port::index_of(gids, port_.peer_gids[0]), gids.size());
}

// docs/streams.md: their addresses are of 169.254.0.0/16 and fe80::/10.
TEST_F(PortTest, at_a_stream_reaches_whatever_streams_have_for_addresses) {
  port_.streams = {"pair:"};
  port_.netdev_index = kFirstStreamInterface;
  EXPECT_TRUE(port_.reaches(mapped_gid(0xa9fe0102)));
  EXPECT_TRUE(port_.reaches(link_local_gid(77)));
  EXPECT_FALSE(port_.reaches(mapped_gid(0xa9fd0102)));
  EXPECT_FALSE(port_.reaches(mapped_gid(0xa8fe0102)));
  ibv_gid site_local = link_local_gid(77);
  site_local.raw[1] = 0xc0;
  EXPECT_FALSE(port_.reaches(site_local));
}

TEST_F(PortTest, speaks_to_itself_through_memory_unless_it_was_asked_for_the_network) {
  port_.netdev_index = 7;
  EXPECT_TRUE(port_.is_remote(port_.peer_gids[0]));
  EXPECT_FALSE(port_.is_remote(port_.known_gids[0]));
  fabric_->loops_through_network = true;
  EXPECT_TRUE(port_.is_remote(port_.known_gids[0]));
}

TEST_F(PortTest, is_down_with_its_interface_or_the_end_of_its_stream) {
  EXPECT_TRUE(port_.is_up());
  port_.live->interface_is_down = true;
  EXPECT_FALSE(port_.is_up());
  EXPECT_TRUE(port_.carries());
  port_.live->interface_is_down = false;
  port_.live->stream_is_deserted = true;
  EXPECT_FALSE(port_.is_up());
  EXPECT_TRUE(port_.carries());  // RC keeps what it sends
}

// --- What profiles refuse.

TEST_F(PortTest, tells_of_each_rule_once_and_refuses_each_time) {
  const auto refuse = [&] { EXPECT_EQ(port_.refuse(Rule::srq, EOPNOTSUPP, "a shared receive queue"), EOPNOTSUPP); };
  const std::string told = told_by(refuse);
  EXPECT_THAT(told, HasSubstr("rdma_en2"));
  EXPECT_THAT(told, HasSubstr("a shared receive queue"));
  EXPECT_EQ(told_by(refuse), "");
  EXPECT_NE(told_by([&] { port_.warn(Rule::undelivered, "a queue pair was reset"); }), "");
}

TEST_F(PortTest, tells_nothing_of_refusals_that_are_expected) {
  const auto refuse = [&] { EXPECT_EQ(port_.refuse(Rule::srq, EOPNOTSUPP, "a shared receive queue"), EOPNOTSUPP); };
  expect_refusals(true);
  expect_refusals(true);
  expect_refusals(false);
  EXPECT_TRUE(are_refusals_expected());
  EXPECT_EQ(told_by(refuse), "");
  expect_refusals(false);
  EXPECT_FALSE(are_refusals_expected());
  expect_refusals(false);  // once too often
  expect_refusals(true);
  EXPECT_TRUE(are_refusals_expected());
  expect_refusals(false);
  EXPECT_NE(told_by(refuse), "");  // it is the first one that is to be told
}

TEST_F(PortTest, each_kind_of_object_runs_out_with_an_error_of_its_own) {
  port_.profile.limits.usable_qp = port_.profile.limits.pd = port_.profile.limits.cq = port_.profile.limits.mr = 1;
  const std::string told = told_by([&] {
    for (const auto& [kind, error] : {std::pair{Counted::qp, EBUSY}, std::pair{Counted::pd, ENOMEM},
                                      std::pair{Counted::cq, ENOMEM}, std::pair{Counted::mr, ENOMEM}}) {
      const auto only = port_.claim(kind);
      ASSERT_TRUE(only);
      EXPECT_EQ(claim_error(kind), error);
    }
  });
  EXPECT_THAT(told, HasSubstr("one more protection domain than the 1 that the device has"));
  EXPECT_EQ(claim_error(Counted::qp), 0);  // all were given back
}

TEST_F(PortTest, fault_takes_objects_away_before_the_profile_does) {
  fabric_->faults.own = *fault::parse_plan("exhaust object cq left 1 errno EAGAIN; exhaust object pd left 0");
  fabric_->verb_faults.look();
  EXPECT_EQ(claim_error(Counted::pd), ENOMEM);
  const auto first = port_.claim(Counted::cq);
  ASSERT_TRUE(first);
  EXPECT_EQ(claim_error(Counted::cq), EAGAIN);
  EXPECT_EQ(claim_error(Counted::mr), 0);
}

TEST_F(PortTest, ledger_that_can_not_be_used_is_no_leave) {
  port_.profile.limits.usable_qp = 10;
  port_.ledger = std::make_shared<Ledger>(folder_.path() + "/none/rdma_en2.ledger", false);
  told_by([&] { EXPECT_EQ(claim_error(Counted::qp), ENOENT); });
  EXPECT_EQ(port_.live->counts[static_cast<size_t>(Counted::qp)].load(), 0U);
}

// --- What queue pairs came upon.

TEST_F(PortTest, tells_of_an_overlong_message_once) {
  port_.live->overlong_messages.note(0x4321, 5000);
  EXPECT_EQ(told_by([&] { port_.tell_seen(); }),
            "ringbolt: rdma_en2: queue pair 0x4321: a message of 5000 bytes ends in LOC_LEN_ERR: datagrams of this "
            "port have 4096 at most, its path MTU; send it in parts\n");
  EXPECT_EQ(told_by([&] { port_.tell_seen(); }), "");
}

TEST_F(PortTest, tells_of_the_limit_that_a_message_exceeds) {
  port_.live->overlong_messages.note(0x4321, (1U << 30U) + 1);
  EXPECT_THAT(told_by([&] { port_.tell_seen(); }), HasSubstr("have 1073741824 at most, its max_msg_sz"));
  port_.live = std::make_shared<LiveObjects>();
  port_.netdev_index = 7;
  port_.mtu = IBV_MTU_1024;
  port_.live->overlong_messages.note(0x4321, 1025);
  EXPECT_THAT(told_by([&] { port_.tell_seen(); }), HasSubstr("have 1024 at most, its path MTU"));
}

TEST_F(PortTest, tells_of_packets_whose_interface_is_gone) {
  port_.netdev_index = 0x7ffffff0;
  port_.live->misfit_packets.note(0x4321, 4096);
  EXPECT_THAT(told_by([&] { port_.tell_seen(); }),
              HasSubstr("packets of its path MTU of 4096 bytes are lost: its network interface is gone"));
}

// --- The ports of a process.

class ListTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_NETDEVS", "RINGBOLT_STREAMS",
                             "RINGBOLT_LIKE", "RINGBOLT_FAULTS", "RINGBOLT_LOOPBACK"}) {
      unsetenv(name);
    }
  }
  /// The error number and the object of the refusal.
  static std::pair<int, std::string> refusal() {
    try {
      list_ports();
      return {0, ""};
    } catch (const base::Error& error) {
      return {error.errno_value(), error.object()};
    }
  }
  link::testing::TempFolder folder_;
  Variable runtime_{"RINGBOLT_RUNTIME_DIR", folder_.path()};
};

using Refusal = std::pair<int, std::string>;

TEST_F(ListTest, one_device_where_nothing_is_said) {
  const auto ports = list_ports();
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports[0]->name, "rdma_lo");
  EXPECT_TRUE(ports[0]->is_up());
  EXPECT_FALSE(ports[0]->is_on_network());
  EXPECT_TRUE(ports[0]->owns(mapped_gid(0x7f000001)));
}

TEST_F(ListTest, cluster_and_node_are_named_together) {
  const Variable cluster("RINGBOLT_CLUSTER", "ring4");
  EXPECT_EQ(refusal(), (Refusal{EINVAL, "RINGBOLT_NODE is not set"}));
  {
    const Variable node("RINGBOLT_NODE", "0x1");
    EXPECT_EQ(refusal(), (Refusal{EINVAL, "RINGBOLT_NODE=0x1"}));
  }
  const Variable node("RINGBOLT_NODE", "1");
  EXPECT_EQ(refusal(), (Refusal{ENOENT, "RINGBOLT_CLUSTER=ring4"}));
  std::filesystem::create_directories(folder_.path() + "/clusters/ring4");
  EXPECT_EQ(refusal(), (Refusal{ENOENT, "RINGBOLT_NODE=1"}));
  const Variable strange("RINGBOLT_CLUSTER", "../ring4");
  EXPECT_EQ(refusal(), (Refusal{EINVAL, "RINGBOLT_CLUSTER=../ring4"}));
}

TEST_F(ListTest, node_without_a_cluster_is_refused) {
  const Variable node("RINGBOLT_NODE", "1");
  EXPECT_EQ(refusal(), (Refusal{EINVAL, "RINGBOLT_CLUSTER is not set"}));
}

TEST_F(ListTest, what_nobody_knows_is_refused_by_its_variable) {
  {
    const Variable like("RINGBOLT_LIKE", "nothing-known");
    EXPECT_EQ(refusal(), (Refusal{EINVAL, "RINGBOLT_LIKE=nothing-known"}));
  }
  {
    const Variable netdevs("RINGBOLT_NETDEVS", "rb-none0");
    EXPECT_EQ(refusal(), (Refusal{ENODEV, "rb-none0"}));
    const Variable loopback("RINGBOLT_LOOPBACK", "both");
    EXPECT_EQ(refusal(), (Refusal{EINVAL, "RINGBOLT_LOOPBACK=both"}));
  }
  const Variable streams("RINGBOLT_STREAMS", "left=pair:");
  const Variable faults("RINGBOLT_FAULTS", "loss 1%");
  EXPECT_EQ(refusal(), (Refusal{EOPNOTSUPP, "RINGBOLT_FAULTS"}));
}

TEST_F(ListTest, streams_are_ports_in_their_order) {
  const Variable streams("RINGBOLT_STREAMS", "left=pair:;right,outage:30=pair:");
  const auto ports = list_ports();
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0]->name, "rdma_left");
  EXPECT_EQ(ports[1]->name, "rdma_right");
  EXPECT_EQ(ports[1]->index, 1U);
  EXPECT_EQ(ports[1]->netdev_index, kFirstStreamInterface + 1);
  EXPECT_EQ(ports[1]->stream_outage_ns, 30'000'000'000U);
  EXPECT_NE(ports[0]->guid, ports[1]->guid);
  EXPECT_TRUE(ports[0]->reaches(ports[1]->known_gids[1]));
}

TEST_F(ListTest, faults_change_the_look_of_a_port_and_not_its_addresses) {
  const Variable faults("RINGBOLT_FAULTS", "gid-empty");
  const auto ports = list_ports();
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_TRUE(ports[0]->addresses()->shown.empty());
  EXPECT_TRUE(ports[0]->owns(mapped_gid(0x7f000001)));
}

// --- A port that goes down and up while a program has it open.

class PortEventsTest : public testing::Test {
 protected:
  PortEventsTest() {
    page_ = cluster::ControlPage::create(folder_.path() + "/control", 2);
    std::filesystem::create_directory(folder_.slots());
    fabric_->slots_directory = folder_.slots();
    fabric_->control = cluster::ControlPage::open(folder_.path() + "/control");
    auto port = std::make_shared<Port>();
    port->name = "rdma_en2";
    port->cable = 1;
    port->fabric = fabric_;
    const auto gids = memory_gids(1, 0x0a000001);
    port->live_gids = std::make_shared<LiveGids>(GidTables{gids, gids});
    port_ = port;
    process_ = std::make_shared<Process>(fabric_);
    context_ = std::make_unique<Context>(port_, process_);
  }
  std::vector<ibv_event_type> events() {
    context_->look_at_port(false);
    std::vector<ibv_event_type> types;
    pollfd waiting{context_->events().descriptor(), POLLIN, 0};
    for (ibv_async_event event{}; poll(&waiting, 1, 0) == 1;) {
      context_->events().take(event, [](ibv_async_event&) {});
      EXPECT_EQ(event.element.port_num, 1);
      types.push_back(event.event_type);
    }
    return types;
  }
  using Types = std::vector<ibv_event_type>;

  link::testing::TempFolder folder_;
  Variable runtime_{"RINGBOLT_RUNTIME_DIR", folder_.path()};
  cluster::ControlPage page_;
  std::shared_ptr<Fabric> fabric_ = std::make_shared<Fabric>();
  std::shared_ptr<const Port> port_;
  std::shared_ptr<Process> process_;
  std::unique_ptr<Context> context_;
};

TEST_F(PortEventsTest, tells_of_its_own_cable_once_a_change) {
  EXPECT_EQ(events(), Types{});
  page_.set_cable(0, false);
  EXPECT_EQ(events(), Types{});
  page_.set_cable(1, false);
  EXPECT_EQ(events(), Types{IBV_EVENT_PORT_ERR});
  EXPECT_EQ(events(), Types{});
  page_.set_cable(1, true);
  EXPECT_EQ(events(), Types{IBV_EVENT_PORT_ACTIVE});
}

TEST_F(PortEventsTest, change_that_was_taken_back_meanwhile_is_none) {
  page_.set_cable(1, false);
  page_.set_cable(1, true);
  EXPECT_EQ(events(), Types{});
}

TEST_F(PortEventsTest, tells_that_the_gid_table_is_another) {
  const auto gids = memory_gids(1, 0x0a000001);
  port_->live_gids->find(profile::GidLayout::plain, gids, 8);
  EXPECT_EQ(events(), Types{});
  port_->live_gids->find(profile::GidLayout::plain, {gids[0], gids[1]}, 8);
  EXPECT_EQ(events(), Types{IBV_EVENT_GID_CHANGE});
  EXPECT_EQ(events(), Types{});
}

}  // namespace
}  // namespace ringbolt::device
