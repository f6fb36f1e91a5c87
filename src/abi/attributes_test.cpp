// What programs are told of a device and its port, with the numbers of docs/profiles.

#include "abi/attributes.h"

#include <endian.h>
#include <gtest/gtest.h>

#include "profile/catalogue.h"

namespace ringbolt::abi {
namespace {

constexpr uint64_t kGuid = 0x0011223344556677;

profile::Profile named(const char* name) {
  auto parsed = profile::parse_profile(name);
  EXPECT_TRUE(parsed) << name;
  return parsed ? *parsed : profile::Profile{};
}

TEST(DeviceAttributes, of_a_plain_device_are_its_limits) {
  const ibv_device_attr all = device_attributes({}, kGuid, 0);
  EXPECT_STREQ(all.fw_ver, "ringbolt");
  EXPECT_EQ(be64toh(all.node_guid), kGuid);
  EXPECT_EQ(all.sys_image_guid, all.node_guid);
  EXPECT_EQ(all.max_qp, 16384);
  EXPECT_EQ(all.max_qp_wr, 16384);
  EXPECT_EQ(all.max_sge, 16);
  EXPECT_EQ(all.max_sge_rd, 16);
  EXPECT_EQ(all.max_cqe, 1 << 20);
  EXPECT_EQ(all.max_srq_wr, 32768);
  EXPECT_EQ(all.max_qp_rd_atom, 16);
  EXPECT_EQ(all.max_qp_init_rd_atom, 16);
  EXPECT_EQ(all.max_res_rd_atom, 16 * 16384);
  EXPECT_EQ(all.max_mr_size, UINT64_MAX);
  EXPECT_EQ(all.atomic_cap, IBV_ATOMIC_HCA);
  EXPECT_EQ(all.max_pkeys, 1);
  EXPECT_EQ(all.phys_port_cnt, 1);
  for (const unsigned flag : {unsigned{IBV_DEVICE_RC_RNR_NAK_GEN}, unsigned{IBV_DEVICE_SRQ_RESIZE},
                              unsigned{IBV_DEVICE_MEM_WINDOW}, unsigned{IBV_DEVICE_MEM_WINDOW_TYPE_2B}}) {
    EXPECT_NE(all.device_cap_flags & flag, 0U) << flag;
  }
}

TEST(DeviceAttributes, of_a_mac_have_what_the_technical_note_has) {
  // docs/profiles/tn3205.md: UC and SEND alone, 11 queue pairs advertised, 100 regions, 11 domains and queues of 4096.
  const ibv_device_attr all = device_attributes(named("tn3205"), kGuid, 2);
  EXPECT_EQ(all.max_qp, 11);
  EXPECT_EQ(all.max_qp_wr, 4095);
  EXPECT_EQ(all.max_sge, 1);
  EXPECT_EQ(all.max_mr, 100);
  EXPECT_EQ(all.max_pd, 11);
  EXPECT_EQ(all.max_cq, 11);
  EXPECT_EQ(all.max_cqe, 4096);
  EXPECT_EQ(all.max_srq, 0);
  EXPECT_EQ(all.max_srq_wr, 0);
  EXPECT_EQ(all.max_mw, 0);
  EXPECT_EQ(all.max_ah, 0) << "without UD";
  EXPECT_EQ(all.max_qp_rd_atom, 0) << "without READ";
  EXPECT_EQ(all.max_res_rd_atom, 0);
  EXPECT_EQ(all.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_EQ(all.device_cap_flags & (IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW), 0U);
  EXPECT_EQ(be64toh(all.node_guid) >> 56U, 0xe2U) << "GUIDs e0..., e1... by port";
}

TEST(PortAttributes, say_whether_it_is_up) {
  const ibv_port_attr up = port_attributes({}, {true, IBV_MTU_1024, kGuid, 100});
  EXPECT_EQ(up.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(up.phys_state, 5) << "LinkUp (InfiniBand Architecture Specification 1.4, 14.2.5.6)";
  EXPECT_EQ(up.active_mtu, IBV_MTU_1024);
  EXPECT_EQ(up.max_mtu, IBV_MTU_4096);
  EXPECT_EQ(up.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(up.lid, 0) << "Ethernet has none";
  EXPECT_EQ(up.gid_tbl_len, 8);
  EXPECT_EQ(up.max_msg_sz, 1U << 30U);
  EXPECT_EQ(up.active_width, 2) << "four lanes";
  EXPECT_EQ(up.active_speed, 32) << "of 25 Gb/s";
  const ibv_port_attr down = port_attributes({}, {false, IBV_MTU_4096, kGuid, 100});
  EXPECT_EQ(down.state, IBV_PORT_DOWN);
  EXPECT_EQ(down.phys_state, 3) << "Disabled";
}

TEST(PortAttributes, of_a_mac_are_eight_lanes_of_ten) {
  const ibv_port_attr mac = port_attributes(named("tn3205"), {true, IBV_MTU_4096, kGuid, 80});
  EXPECT_NE(mac.lid, 0);
  EXPECT_EQ(mac.gid_tbl_len, 32);
  EXPECT_EQ(mac.max_msg_sz, 16773120U);
  EXPECT_EQ(mac.active_width, 4) << "eight lanes";
  EXPECT_EQ(mac.active_speed, 4) << "of 10 Gb/s, whatever four lanes would need";
}

TEST(SpeedCode, is_the_smallest_that_carries_the_rate) {
  // InfiniBand Architecture Specification 1.4, 14.2.5.6, of four lanes: QDR 4, FDR 16, EDR 32, HDR 64, NDR 128.
  for (const auto& [gbps, code] : {std::pair<uint32_t, int>{0, 4},
                                   {1, 4},
                                   {40, 4},
                                   {41, 16},
                                   {56, 16},
                                   {57, 32},
                                   {100, 32},
                                   {101, 64},
                                   {200, 64},
                                   {201, 128},
                                   {400, 128}}) {
    EXPECT_EQ(speed_code(gbps), code) << gbps;
  }
}

}  // namespace
}  // namespace ringbolt::abi
