// What the device says of itself, and its GID table.
#include <gtest/gtest.h>

#include <array>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr ibv_gid kZero{};

bool is_mapped(const ibv_gid& gid) { return gid.raw[10] == 0xff && gid.raw[11] == 0xff && gid.raw[0] == 0; }
bool is_zero(const ibv_gid& gid) { return std::memcmp(gid.raw, kZero.raw, sizeof gid.raw) == 0; }
bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && gid.raw[1] == 0x80; }

class MacLook : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Like, MacLook, testing::Values("tn3205", "apple"), name_of_profile);

TEST_P(MacLook, advertises_what_the_contract_says) {
  const Rig rig(GetParam());
  const ibv_device_attr device = rig.device();
  EXPECT_EQ(device.max_qp, 11);
  EXPECT_EQ(device.max_pd, 11);
  EXPECT_EQ(device.max_cq, 11);
  EXPECT_EQ(device.max_mr, 100);
  EXPECT_EQ(device.max_qp_wr, 4095);
  EXPECT_EQ(device.max_cqe, 4096);
  EXPECT_EQ(device.max_sge, 1);
  EXPECT_EQ(device.max_srq, 0);
  EXPECT_EQ(device.max_mw, 0);
  EXPECT_EQ(device.max_qp_rd_atom, 0);
  EXPECT_EQ(device.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_EQ(device.max_mr_size, 0xfa0000U);
}

TEST_P(MacLook, shows_a_port_of_eight_lanes_with_a_lid) {
  const Rig rig(GetParam());
  const ibv_port_attr port = rig.port();
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.gid_tbl_len, 32);
  EXPECT_NE(port.lid, 0);
  EXPECT_EQ(port.active_width, 4);  // 8 lanes
  EXPECT_EQ(port.active_speed, 4);  // of 10 Gb/s
  EXPECT_EQ(port.max_msg_sz, 16'773'120U);
}

TEST_P(MacLook, has_the_ipv4_entry_at_1_between_two_link_local_ones) {
  const Rig rig(GetParam());
  EXPECT_TRUE(is_link_local(rig.gid(0)));
  EXPECT_TRUE(is_mapped(rig.gid(1)));
  EXPECT_TRUE(is_link_local(rig.gid(2)));
  EXPECT_NE(std::memcmp(rig.gid(0).raw, rig.gid(2).raw, 16), 0);
  EXPECT_TRUE(is_zero(rig.gid(31)));  // a zero slot is no error
  ibv_gid gid{};
  errno = 0;
  EXPECT_EQ(ibv_query_gid(rig.context.get(), 1, 32, &gid), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_P(MacLook, may_have_it_at_2_with_nothing_at_1) {
  const Rig rig(std::string(GetParam()) + ",gid=2");
  EXPECT_TRUE(is_link_local(rig.gid(0)));
  EXPECT_TRUE(is_zero(rig.gid(1)));
  EXPECT_TRUE(is_mapped(rig.gid(2)));
  std::array<ibv_gid_entry, 32> entries;
  ASSERT_EQ(ibv_query_gid_table(rig.context.get(), entries.data(), entries.size(), 0), 3);
  EXPECT_EQ(entries[1].gid_index, 2U);
  EXPECT_EQ(ibv_query_gid_ex(rig.context.get(), 1, 1, entries.data(), 0), ENODATA);
}

TEST_P(MacLook, has_an_empty_table_when_bridged) {
  const Rig rig(std::string(GetParam()) + ",gid=empty");
  for (int index = 0; index < 32; ++index) {
    EXPECT_TRUE(is_zero(rig.gid(index)));
  }
}

TEST_P(MacLook, has_a_guid_that_begins_with_e0_for_its_first_port) {
  const Rig rig(GetParam());
  const uint64_t guid = ibv_get_device_guid(rig.context->device);
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(&guid)[0], 0xe0);
  EXPECT_EQ(rig.device().node_guid, guid);
}

TEST_P(MacLook, has_a_transport_that_linux_does_not_name) {
  const auto transport = [](const std::string& profile) {
    const Rig rig(profile);
    int number = 0;
    std::memcpy(&number, &rig.context->device->transport_type, sizeof number);  // none of the enumeration's
    return number;
  };
  EXPECT_EQ(transport(GetParam()), IBV_TRANSPORT_UNSPECIFIED);
  EXPECT_EQ(transport(std::string(GetParam()) + ",transport=100"), 100);
}

TEST_P(MacLook, gives_regions_no_remote_key) {
  const Rig rig(GetParam());
  const Buffer buffer(rig, 4096);
  ASSERT_NE(buffer.mr, nullptr);
  EXPECT_EQ(buffer.mr->rkey, 0U);
  EXPECT_NE(buffer.mr->lkey, 0U);
}

TEST(Usb4Linux, advertises_what_the_contract_says) {
  const Rig rig("usb4-linux");
  const ibv_device_attr device = rig.device();
  EXPECT_EQ(device.max_qp, 256);
  EXPECT_EQ(device.max_pd, 256);
  EXPECT_EQ(device.max_cq, 256);
  EXPECT_EQ(device.max_mr, 1024);
  EXPECT_EQ(device.max_qp_wr, 1024);
  EXPECT_EQ(device.max_cqe, 4096);
  EXPECT_EQ(device.max_sge, 4);
  EXPECT_EQ(device.max_srq, 0);
  EXPECT_EQ(device.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_EQ(device.max_qp_rd_atom, 128);
  const ibv_port_attr port = rig.port();
  EXPECT_EQ(port.gid_tbl_len, 8);
  EXPECT_EQ(port.lid, 0);
  EXPECT_EQ(port.active_width, 2);
  EXPECT_EQ(port.max_msg_sz, 16U << 20U);
  EXPECT_EQ(rig.context->device->transport_type, IBV_TRANSPORT_IB);
}

TEST(Spark, has_each_gid_for_both_versions_of_roce) {
  const Rig rig("spark");
  std::array<ibv_gid_entry, 16> entries;
  ASSERT_EQ(ibv_query_gid_table(rig.context.get(), entries.data(), entries.size(), 0), 4);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].gid_type, i % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2) << i;
    EXPECT_EQ(is_mapped(entries[i].gid), i >= 2) << i;
  }
}

TEST(Roce, is_the_device_as_it_is) {
  const Rig rig("roce");
  const ibv_device_attr device = rig.device();
  EXPECT_GE(device.max_qp_wr, 16384);
  EXPECT_GE(device.max_cqe, 65536);
  EXPECT_GE(device.max_sge, 16);
  EXPECT_GE(device.max_qp_rd_atom, 16);
  EXPECT_EQ(device.atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_GT(device.max_srq, 0);
  EXPECT_EQ(rig.port().lid, 0);
}

TEST(Like, refuses_what_it_does_not_know_and_says_what_it_knows) {
  for (const char* text : {"appel", "apple,gid", "apple,gid=7", "apple,nonsense=1", "apple,", ","}) {
    const Like like(text);
    testing::internal::CaptureStderr();
    int count = -1;
    errno = 0;
    EXPECT_EQ(ibv_get_device_list(&count), nullptr) << text;
    EXPECT_EQ(errno, EINVAL);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("docs/profiles.md"), std::string::npos) << said;
    EXPECT_NE(said.find(text), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace ringbolt::profiles
