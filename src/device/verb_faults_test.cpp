// Where the faults of a process come from, and those of calls and of ports. What each fault does to messages and
// completions is in send_faults_test.cpp and receive_quirks_test.cpp.

#include "device/verb_faults.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "base/error.h"
#include "device/call_faults.h"
#include "device/device_test_support.h"
#include "device/gid_table.h"
#include "fault/plan_text.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::device {
namespace {

using fault::Call;
using fault::Object;
using fault::Subject;

/// Two ports of a fabric, without a device, under the faults of a test.
class VerbFaultsTest : public testing::Test {
 protected:
  VerbFaultsTest() {
    one_.name = "rdma_one";
    other_.name = "rdma_other";
    one_.fabric = other_.fabric = fabric_;
  }
  void own(const std::string& text) {
    const auto plan = fault::parse_plan(text);
    ASSERT_TRUE(plan) << plan.error().text();
    fabric_->faults.own = *plan;
  }
  /// These are the only ones.
  void begin(const std::string& text) {
    own(text);
    faults().look();
  }
  /// The node of a cluster whose faults lie in a file.
  void join_cluster(uint32_t node) {
    page_ = cluster::ControlPage::create(folder_.path() + "/control", 3);
    fabric_->control = cluster::ControlPage::open(folder_.path() + "/control");
    fabric_->faults.path = folder_.path() + "/faults";
    fabric_->faults.node = node;
  }
  void set_file(const std::string& text) { std::ofstream(folder_.path() + "/faults") << text; }
  /// As `ringbolt fault` does after it.
  void announce() {
    page_.announce();
    fabric_->control.refresh();
    faults().look();
  }
  VerbFaults& faults() { return fabric_->verb_faults; }
  bool is_refused(Subject subject, const Port& port) { return faults().judge(subject, port).is_refused; }

  link::testing::TempFolder folder_;
  std::shared_ptr<Fabric> fabric_ = std::make_shared<Fabric>();
  Port one_;
  Port other_;
  cluster::ControlPage page_;
};

TEST_F(VerbFaultsTest, there_are_none_before_the_first_look) {
  own("rtr-errno errno EIO");
  EXPECT_FALSE(faults().has_any());
  EXPECT_EQ(faults().version(), 0U);
  faults().look();
  EXPECT_TRUE(faults().has(Subject::rtr));
  EXPECT_FALSE(faults().has(Subject::destroy));
  EXPECT_EQ(faults().version(), 1U);
  faults().look();
  EXPECT_EQ(faults().version(), 1U);  // nothing has changed
}

TEST_F(VerbFaultsTest, faults_of_frames_are_none_of_theirs) {
  begin("loss 10%; duplicate 10%");
  EXPECT_FALSE(faults().has_any());
  EXPECT_EQ(faults().version(), 1U);
}

TEST_F(VerbFaultsTest, change_with_the_clusters_file_once_that_is_announced) {
  join_cluster(0);
  begin("destroy-hang by 1ms");
  EXPECT_FALSE(faults().has(Subject::rtr));
  set_file("rtr-errno errno EIO\n");
  faults().look();
  EXPECT_FALSE(faults().has(Subject::rtr));
  announce();
  EXPECT_TRUE(faults().has(Subject::rtr));
  EXPECT_TRUE(faults().has(Subject::destroy));  // the process' own stay
  EXPECT_TRUE(is_refused(Subject::rtr, one_));
  set_file("");
  announce();
  EXPECT_FALSE(faults().has(Subject::rtr));
  EXPECT_FALSE(is_refused(Subject::rtr, one_));
  EXPECT_EQ(faults().version(), 3U);
}

TEST_F(VerbFaultsTest, file_that_means_nothing_is_told_of_and_adds_none) {
  join_cluster(0);
  set_file("rtr-errno errno EIO\nnonsense\n");
  testing::internal::CaptureStderr();
  begin("destroy-hang by 1ms");
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find(folder_.path() + "/faults"), std::string::npos) << told;
  EXPECT_FALSE(faults().has(Subject::rtr));
  EXPECT_TRUE(faults().has(Subject::destroy));
}

TEST_F(VerbFaultsTest, cluster_without_a_file_has_no_faults_and_nothing_to_say) {
  join_cluster(0);
  testing::internal::CaptureStderr();
  begin("");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(faults().has_any());
}

// Counts begin at 0 for each port (docs/faults.md).
TEST_F(VerbFaultsTest, each_port_has_counts_of_its_own) {
  begin("rtr-errno errno EIO count 1-1");
  for (const Port* port : {&one_, &other_}) {
    EXPECT_FALSE(is_refused(Subject::rtr, *port));
    EXPECT_TRUE(is_refused(Subject::rtr, *port));
    EXPECT_FALSE(is_refused(Subject::rtr, *port));
  }
}

TEST_F(VerbFaultsTest, each_kind_of_object_runs_out_by_itself) {
  begin("exhaust object qp left 2; exhaust object cq left 0 errno EAGAIN");
  EXPECT_FALSE(faults().judge(Object::qp, one_, 1).is_refused);
  EXPECT_TRUE(faults().judge(Object::qp, one_, 2).is_refused);
  EXPECT_TRUE(faults().judge(Object::qp, one_, 3).is_refused);
  EXPECT_FALSE(faults().judge(Object::qp, one_, 1).is_refused);  // some were given back
  EXPECT_EQ(faults().judge(Object::cq, one_, 0).error, EAGAIN);
  EXPECT_FALSE(faults().judge(Object::mr, one_, 99).is_refused);
}

TEST_F(VerbFaultsTest, concern_the_port_that_they_name) {
  begin("completion-early port rdma_other; qp-age after 5s port rdma_other");
  EXPECT_FALSE(faults().has_rule(fault::Kind::early, one_));
  EXPECT_TRUE(faults().has_rule(fault::Kind::early, other_));
  EXPECT_FALSE(faults().has_rule(fault::Kind::rnr, other_));
  EXPECT_FALSE(faults().holding(fault::Kind::qp_age, one_));
  ASSERT_TRUE(faults().holding(fault::Kind::qp_age, other_));
  EXPECT_EQ(faults().holding(fault::Kind::qp_age, other_)->after_ns, 5'000'000'000U);
}

TEST_F(VerbFaultsTest, hold_from_their_time_on) {
  begin("frozen time 60min-");
  EXPECT_TRUE(faults().has(Subject::state));
  EXPECT_FALSE(faults().holding(fault::Kind::frozen, one_));
}

TEST_F(VerbFaultsTest, of_calls_are_those_of_the_call_and_the_queue_pair) {
  begin(
      "call-errno call post-send errno EAGAIN qp 1; call-errno call poll-cq errno EIO; "
      "call-errno call post-send errno EINVAL");
  const auto count = [&](Call call, std::vector<uint32_t> queue_pairs) {
    return faults().rules_of(call, queue_pairs).rules.size();
  };
  EXPECT_EQ(count(Call::post_send, {0}), 1U);
  EXPECT_EQ(count(Call::post_send, {1}), 2U);
  EXPECT_EQ(count(Call::post_send, {0, 1}), 2U);  // of a completion queue, that both use
  EXPECT_EQ(count(Call::post_send, {}), 1U);
  EXPECT_EQ(count(Call::poll_cq, {7}), 1U);
  EXPECT_EQ(count(Call::reg_mr, {0}), 0U);
}

TEST_F(VerbFaultsTest, oddities_are_looked_for_where_calls_are) {
  begin("");
  EXPECT_EQ(faults().shuffle(), nullptr);
  fabric_ = std::make_shared<Fabric>();
  faults().set_shuffle(shuffle::Shuffle(shuffle::Wish{}, 0));
  faults().look();
  EXPECT_NE(faults().shuffle(), nullptr);
  EXPECT_TRUE(faults().has(Subject::call));
}

// --- Calls.

TEST_F(VerbFaultsTest, step_to_rtr_takes_as_long_and_ends_as_the_fault_says) {
  constexpr uint64_t kTimeNs = 20'000'000;
  begin("");
  EXPECT_EQ(inject_at_rtr(one_), 0);
  fabric_ = one_.fabric = std::make_shared<Fabric>();
  begin("rtr-errno errno ENODATA count 1-1; rtr-block by 20ms count 0-0");
  const uint64_t began = base::now_ns();
  EXPECT_EQ(inject_at_rtr(one_), 0);
  EXPECT_GE(base::now_ns() - began, kTimeNs);
  EXPECT_EQ(inject_at_rtr(one_), ENODATA);
  EXPECT_EQ(inject_at_rtr(one_), 0);
}

TEST_F(VerbFaultsTest, numbers_are_those_of_the_profiles_system) {
  constexpr int kDarwinsEnodata = 96;  // sys/errno.h of macOS
  one_.profile.knobs.has_darwin_errno = true;
  begin("rtr-errno errno ENODATA");
  EXPECT_EQ(inject_at_rtr(one_), kDarwinsEnodata);
}

TEST_F(VerbFaultsTest, step_to_rtr_needs_memory_for_what_is_registered) {
  begin("exhaust object dma left 4096");
  one_.live->registered_bytes = 4095;
  EXPECT_EQ(inject_at_rtr(one_), 0);
  one_.live->registered_bytes = 4096;
  EXPECT_EQ(inject_at_rtr(one_), EFAULT);
}

TEST_F(VerbFaultsTest, destroying_and_asking_take_their_time) {
  constexpr uint64_t kTimeNs = 20'000'000;
  begin("destroy-hang by 20ms count 0-0; query-hang by 20ms count 0-0");
  for (void (*const inject)(const Port&) : {&inject_at_destruction, &inject_at_query}) {
    const uint64_t began = base::now_ns();
    inject(one_);
    EXPECT_GE(base::now_ns() - began, kTimeNs);
  }
}

TEST_F(VerbFaultsTest, registering_is_refused_by_its_number) {
  begin("call-errno call reg-mr errno ENOMEM count 1-1");
  EXPECT_EQ(inject_at_registration(one_), 0);
  EXPECT_EQ(inject_at_registration(one_), ENOMEM);
  EXPECT_EQ(inject_at_registration(one_), 0);
  EXPECT_EQ(inject_at_registration(other_), 0);
  EXPECT_EQ(inject_at_registration(other_), ENOMEM);
}

TEST_F(VerbFaultsTest, posting_ends_the_program_where_a_pulled_cable_does) {
  begin("unplug mode flush");
  inject_at_posting(one_);  // which is survived
  fabric_ = one_.fabric = std::make_shared<Fabric>();
  begin("unplug mode abort");
  EXPECT_DEATH(inject_at_posting(one_), "rdma_one: the cable is pulled");
}

// --- What holds for a port.

TEST_F(VerbFaultsTest, pulled_cable_is_shown_by_all_modes_but_one) {
  begin("unplug mode hang");
  EXPECT_TRUE(one_.is_up());
  EXPECT_TRUE(one_.is_frozen());
  for (const char* mode : {"unplug mode port-event", "unplug mode flush", "unplug mode abort"}) {
    fabric_ = one_.fabric = std::make_shared<Fabric>();
    begin(mode);
    EXPECT_FALSE(one_.is_up()) << mode;
    EXPECT_FALSE(one_.is_frozen()) << mode;
  }
  EXPECT_EQ(one_.unplugged(), fault::Unplug::abort);
}

TEST_F(VerbFaultsTest, frozen_machine_is_felt_at_both_ends_and_halts_its_own_programs) {
  join_cluster(1);
  one_.peer_node = 0;
  other_.peer_node = 2;
  begin("frozen node 0");
  EXPECT_TRUE(one_.is_frozen());
  EXPECT_FALSE(one_.is_halted());
  EXPECT_FALSE(other_.is_frozen());
  fabric_->faults.node = 0;
  own("frozen node 0");
  Port own_end;
  own_end.fabric = std::make_shared<Fabric>();
  own_end.fabric->faults.own = fabric_->faults.own;
  own_end.fabric->faults.node = 0;
  own_end.fabric->verb_faults.look();
  EXPECT_TRUE(own_end.is_halted());
  EXPECT_TRUE(own_end.is_up());  // it looks as if nothing were wrong
}

TEST_F(VerbFaultsTest, crossed_cables_change_places) {
  join_cluster(0);
  begin("cross-cables node 0 cable 1 with 2");
  for (const auto& [cable, plugged] : {std::pair{1U, 2U}, std::pair{2U, 1U}, std::pair{3U, 3U}}) {
    one_.name = "rdma_" + std::to_string(cable);
    one_.cable = cable;
    EXPECT_EQ(one_.plug(), plugged);
  }
}

TEST_F(VerbFaultsTest, address_goes_away_by_its_index) {
  const auto gids = memory_gids(1, 0x0a000001);
  one_.live_gids = std::make_shared<LiveGids>(GidTables{gids, gids});
  begin("gid-change index 2");
  one_.look_at_addresses(false);
  EXPECT_FALSE(is_zero(one_.addresses()->shown[1]));
  EXPECT_TRUE(is_zero(one_.addresses()->shown[2]));
  EXPECT_FALSE(one_.owns(gids[2]));
  EXPECT_TRUE(one_.owns(gids[1]));
}

// --- Where they come from.

TEST_F(VerbFaultsTest, place_has_a_node_in_clusters_alone) {
  one_.cable = 2;
  one_.peer_node = 1;
  EXPECT_EQ(place_of(one_), (fault::Place{std::nullopt, std::nullopt, "rdma_one", std::nullopt}));
  fabric_->faults.node = 5;
  EXPECT_EQ(place_of(one_), (fault::Place{5, 2, "rdma_one", 1}));
}

TEST_F(VerbFaultsTest, that_can_not_come_true_are_refused) {
  const auto refusal = [&](const char* text) {
    own(text);
    const std::array ports{std::make_shared<const Port>(one_), std::make_shared<const Port>(other_)};
    try {
      check_faults(fabric_->faults.own, ports);
      return 0;
    } catch (const base::Error& error) {
      return error.errno_value();
    }
  };
  EXPECT_EQ(refusal("rtr-errno errno EIO"), 0);
  EXPECT_EQ(refusal("loss 1%"), EOPNOTSUPP);  // in shared memory there are no frames
  EXPECT_EQ(refusal("rtr-errno errno EIO port rdma_none"), EINVAL);
  EXPECT_EQ(refusal("rtr-errno errno EIO node 3"), EINVAL);
  other_.netdev_index = 7;
  EXPECT_EQ(refusal("loss 1% port rdma_other"), 0);
  EXPECT_EQ(refusal("loss 1%"), EOPNOTSUPP);
  fabric_->faults.node = 0;
  EXPECT_EQ(refusal("rtr-errno errno EIO node 3"), 0);  // another node's processes read the same words
}

TEST_F(VerbFaultsTest, environment_has_them_in_words_or_in_a_file) {
  unsetenv("RINGBOLT_FAULTS");
  EXPECT_TRUE(faults_from_environment().rules.empty());
  {
    const Variable words("RINGBOLT_FAULTS", "loss 1%; rnr");
    EXPECT_EQ(faults_from_environment().rules.size(), 2U);
  }
  set_file("rnr\n");
  {
    const Variable file("RINGBOLT_FAULTS", folder_.path() + "/faults");
    EXPECT_EQ(faults_from_environment().rules.size(), 1U);
  }
  for (const std::string& wrong : {std::string("loss"), folder_.path() + "/none"}) {
    const Variable variable("RINGBOLT_FAULTS", wrong);
    EXPECT_THROW(faults_from_environment(), base::Error) << wrong;
  }
}

}  // namespace
}  // namespace ringbolt::device
