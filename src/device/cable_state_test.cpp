#include "device/cable_state.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

/// A port with a cable of a cluster, without the cluster.
class CableStateTest : public testing::Test {
 protected:
  CableStateTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbc-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    port_.fabric = fabric_;
    port_.cable = 1;
    writer_ = cluster::ControlPage::create(folder_ + "/control", 3);
    fabric_->control = cluster::ControlPage::open(folder_ + "/control");
  }
  ~CableStateTest() override { std::filesystem::remove_all(folder_); }
  void set(uint32_t cable, bool is_up) {
    writer_.set_cable(cable, is_up);
    fabric_->control.refresh();
  }

  std::string folder_;
  std::shared_ptr<Fabric> fabric_ = std::make_shared<Fabric>();
  Port port_;
  cluster::ControlPage writer_;
};

TEST_F(CableStateTest, is_cut_off_while_its_own_cable_is_cut) {
  CableState cable(port_, fabric_->verb_faults, IBV_QPT_RC);
  cable.connect();
  EXPECT_FALSE(cable.is_cut_off());
  set(0, false);
  EXPECT_FALSE(cable.is_cut_off());
  set(1, false);
  EXPECT_TRUE(cable.is_cut_off());
  set(1, true);
  EXPECT_FALSE(cable.is_cut_off());
}

TEST_F(CableStateTest, overlay_has_no_cable_to_cut) {
  port_.is_overlay = true;
  set(1, false);
  EXPECT_FALSE(CableState(port_, fabric_->verb_faults, IBV_QPT_RC).is_cut_off());
}

/// The default device under a fault.
class FaultyCableTest : public testing::Test {
 protected:
  void begin(const std::string& faults, ibv_qp_type type = IBV_QPT_RC) {
    cable_.reset();
    device_.reset();
    device_ = std::make_unique<DeviceUnderTest>("", faults);
    cable_ = std::make_unique<CableState>(device_->port(), device_->port().fabric->verb_faults, type);
    cable_->connect();
  }
  bool becomes_cut_off() {
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    while (!cable_->is_cut_off() && base::now_ns() < deadline) {
    }
    return cable_->is_cut_off();
  }
  std::unique_ptr<DeviceUnderTest> device_;
  std::unique_ptr<CableState> cable_;
};

TEST_F(FaultyCableTest, device_without_faults_is_never_cut_off) {
  begin("");
  EXPECT_FALSE(cable_->is_cut_off());
}

TEST_F(FaultyCableTest, frozen_machine_and_a_cable_that_hangs_cut_off) {
  for (const char* fault : {"frozen", "unplug mode hang", "unplug mode port-event", "unplug mode flush"}) {
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD}) {
      begin(fault, type);
      EXPECT_TRUE(cable_->is_cut_off()) << fault;
    }
  }
}

TEST_F(FaultyCableTest, flapping_cable_goes_down_and_up_again) {
  begin("flap by 5ms every 10ms");
  EXPECT_TRUE(becomes_cut_off());
  const uint64_t deadline = base::now_ns() + 20'000'000'000;
  while (cable_->is_cut_off() && base::now_ns() < deadline) {
  }
  EXPECT_FALSE(cable_->is_cut_off());
}

TEST_F(FaultyCableTest, queue_pair_goes_silent_when_it_is_idle_for_too_long) {
  begin("qp-age after 20ms");
  const uint64_t began = base::now_ns();
  EXPECT_FALSE(cable_->is_cut_off());  // its clock starts here
  EXPECT_TRUE(becomes_cut_off());
  EXPECT_GE(base::now_ns() - began, 20'000'000U);
}

TEST_F(FaultyCableTest, traffic_keeps_a_queue_pair_young) {
  begin("qp-age after 10s");
  const uint64_t now = base::now_ns();
  EXPECT_EQ(cable_->idle_ns(now), 0U);  // who asks first starts the clock
  EXPECT_EQ(cable_->idle_ns(now + 500), 500U);
  cable_->note_traffic();
  EXPECT_LT(cable_->idle_ns(base::now_ns()), base::now_ns() - now + 1);
  cable_->reset();
  EXPECT_EQ(cable_->idle_ns(now + 900), 0U);
}

TEST_F(FaultyCableTest, traffic_is_noted_only_where_faults_may_ask_for_it) {
  begin("");
  const uint64_t now = base::now_ns();
  EXPECT_EQ(cable_->idle_ns(now), 0U);
  cable_->note_traffic();
  EXPECT_EQ(cable_->idle_ns(now + 1000), 1000U);
}

}  // namespace
}  // namespace ringbolt::device
