// Address handles for answers, on the default device.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

/// The default device in a runtime directory of its own.
class Addresses : public testing::Test {
 protected:
  Addresses() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rb-ah-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    runtime_ = pattern;
    setenv("RINGBOLT_RUNTIME_DIR", runtime_.c_str(), 1);
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    EXPECT_EQ(count, 1);
    context_ = count == 1 ? ibv_open_device(list[0]) : nullptr;
    ibv_free_device_list(list);
  }
  ~Addresses() override {
    if (context_ != nullptr) {
      ibv_close_device(context_);
    }
    std::filesystem::remove_all(runtime_);
  }
  void SetUp() override { ASSERT_NE(context_, nullptr); }

  ibv_gid gid(int index) {
    ibv_gid result = {};
    EXPECT_EQ(ibv_query_gid(context_, 1, index, &result), 0);
    return result;
  }

  std::string runtime_;
  ibv_context* context_ = nullptr;
};

ibv_wc completion_with_route() {
  ibv_wc wc = {};
  wc.wc_flags = IBV_WC_GRH;
  wc.slid = 7;
  wc.sl = 3;
  wc.dlid_path_bits = 5;
  return wc;
}

TEST_F(Addresses, answer_an_ipv6_route_from_the_gid_it_came_to) {
  ibv_grh grh = {};
  const uint32_t version_class_flow = htonl((6U << 28) | (0xabU << 20) | 0x12345U);
  std::memcpy(&grh, &version_class_flow, sizeof version_class_flow);
  grh.sgid.raw[0] = 0xfe;
  grh.sgid.raw[15] = 9;
  grh.dgid = gid(0);
  ibv_wc wc = completion_with_route();
  ibv_ah_attr attr = {};
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, &grh, &attr), 0) << std::strerror(errno);
  EXPECT_EQ(attr.is_global, 1);
  EXPECT_EQ(attr.grh.sgid_index, 0);
  EXPECT_EQ(std::memcmp(&attr.grh.dgid, &grh.sgid, sizeof grh.sgid), 0);
  EXPECT_EQ(attr.grh.flow_label, 0x12345U);
  EXPECT_EQ(attr.grh.traffic_class, 0xab);
  EXPECT_EQ(attr.dlid, 7);
  EXPECT_EQ(attr.sl, 3);
  EXPECT_EQ(attr.src_path_bits, 5);
  EXPECT_EQ(attr.port_num, 1);
}

TEST_F(Addresses, answer_an_ipv4_route) {
  // The IPv4 header lies in the last 20 of the 40 bytes.
  std::array<uint8_t, 40> bytes = {};
  bytes[20] = 0x45;
  bytes[21] = 0x2e;
  const std::array<uint8_t, 8> source_and_destination = {127, 0, 0, 9, 127, 0, 0, 1};
  std::memcpy(&bytes[32], source_and_destination.data(), source_and_destination.size());
  ibv_grh grh;
  std::memcpy(&grh, bytes.data(), sizeof grh);
  ibv_wc wc = completion_with_route();
  ibv_ah_attr attr = {};
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, &grh, &attr), 0) << std::strerror(errno);
  EXPECT_EQ(attr.grh.sgid_index, 1);
  EXPECT_EQ(attr.grh.traffic_class, 0x2e);
  const std::array<uint8_t, 16> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 9};
  EXPECT_EQ(std::memcmp(attr.grh.dgid.raw, mapped.data(), mapped.size()), 0);
}

TEST_F(Addresses, refuse_a_route_to_somebody_else) {
  ibv_grh grh = {};
  grh.version_tclass_flow = htonl(6U << 28);
  grh.dgid.raw[0] = 0x20;
  ibv_wc wc = completion_with_route();
  ibv_ah_attr attr = {};
  attr.sl = 99;
  EXPECT_NE(ibv_init_ah_from_wc(context_, 1, &wc, &grh, &attr), 0);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(attr.sl, 99);  // expect: outputs are written on success only
}

TEST_F(Addresses, without_route_answer_locally) {
  ibv_wc wc = {};
  ibv_ah_attr attr = {};
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, nullptr, &attr), 0);
  EXPECT_EQ(attr.is_global, 0);
}

TEST_F(Addresses, have_the_ethernet_address_of_their_gid) {
  ibv_ah_attr attr = {};
  std::array<uint8_t, 6> mac = {};
  uint16_t vlan = 0;
  EXPECT_NE(ibv_resolve_eth_l2_from_gid(context_, &attr, mac.data(), &vlan), 0);
  attr.is_global = 1;
  const std::array<uint8_t, 16> from_mac = {0xfe, 0x80, 0,    0,    0,    0,    0,    0,
                                            0x00, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55};
  std::memcpy(attr.grh.dgid.raw, from_mac.data(), from_mac.size());
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(context_, &attr, mac.data(), &vlan), 0);
  EXPECT_EQ(mac, (std::array<uint8_t, 6>{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}));
  EXPECT_EQ(vlan, 0xffff);
  attr.grh.dgid = gid(1);
  ASSERT_EQ(ibv_resolve_eth_l2_from_gid(context_, &attr, mac.data(), &vlan), 0);
  EXPECT_EQ(mac, (std::array<uint8_t, 6>{0x02, 0, 127, 0, 0, 1}));
}

TEST_F(Addresses, gid_types_are_those_of_sysfs) {
  // Not in the public header, but ibv_devinfo and pyverbs call it.
  for (const char* node : {"IBVERBS_PRIVATE_34", "IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59", "IBVERBS_PRIVATE_65"}) {
    auto* query = reinterpret_cast<int (*)(ibv_context*, uint8_t, unsigned, int*)>(
        dlvsym(RTLD_DEFAULT, "ibv_query_gid_type", node));
    ASSERT_NE(query, nullptr) << node;
    int type = -1;
    EXPECT_EQ(query(context_, 1, 0, &type), 0) << node;
    EXPECT_EQ(type, 1) << node;
    EXPECT_EQ(query(context_, 1, 5, &type), 0) << node;
    EXPECT_EQ(type, 0) << node;
    EXPECT_EQ(query(context_, 1, 99, &type), -1) << node;
    EXPECT_EQ(errno, EINVAL) << node;
  }
}

}  // namespace
