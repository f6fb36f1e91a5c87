// Each field of the kernel's structures arrives in the field of its name, and nowhere else.

#include <gtest/gtest.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <cstring>

extern "C" {
void ibv_copy_ah_attr_from_kern(ibv_ah_attr* dst, const ib_uverbs_ah_attr* src);
void ibv_copy_qp_attr_from_kern(ibv_qp_attr* dst, const ib_uverbs_qp_attr* src);
void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* dst, const ib_user_path_rec* src);
void ibv_copy_path_rec_to_kern(ib_user_path_rec* dst, const ibv_sa_path_rec* src);
}

namespace {

/// Memory of programs holds anything before.
template <class T>
T dirty() {
  T one;
  std::memset(&one, 0xee, sizeof one);
  return one;
}

ib_uverbs_ah_attr kernel_path(uint8_t first) {
  ib_uverbs_ah_attr one{};
  std::memset(one.grh.dgid, first, sizeof one.grh.dgid);
  one.grh.flow_label = first + 0x10001U;
  one.grh.sgid_index = static_cast<uint8_t>(first + 1);
  one.grh.hop_limit = static_cast<uint8_t>(first + 2);
  one.grh.traffic_class = static_cast<uint8_t>(first + 3);
  one.dlid = static_cast<uint16_t>(first + 0x104);
  one.sl = static_cast<uint8_t>(first + 5);
  one.src_path_bits = static_cast<uint8_t>(first + 6);
  one.static_rate = static_cast<uint8_t>(first + 7);
  one.is_global = 1;
  one.port_num = static_cast<uint8_t>(first + 8);
  return one;
}

void expect_path(const ibv_ah_attr& path, uint8_t first) {
  EXPECT_EQ(path.grh.dgid.raw[0], first);
  EXPECT_EQ(path.grh.dgid.raw[15], first);
  EXPECT_EQ(path.grh.flow_label, first + 0x10001U);
  EXPECT_EQ(path.grh.sgid_index, first + 1);
  EXPECT_EQ(path.grh.hop_limit, first + 2);
  EXPECT_EQ(path.grh.traffic_class, first + 3);
  EXPECT_EQ(path.dlid, first + 0x104);
  EXPECT_EQ(path.sl, first + 5);
  EXPECT_EQ(path.src_path_bits, first + 6);
  EXPECT_EQ(path.static_rate, first + 7);
  EXPECT_EQ(path.is_global, 1);
  EXPECT_EQ(path.port_num, first + 8);
}

TEST(KernelStructs, address_handles) {
  const ib_uverbs_ah_attr kernel = kernel_path(0x30);
  auto path = dirty<ibv_ah_attr>();
  ibv_copy_ah_attr_from_kern(&path, &kernel);
  expect_path(path, 0x30);
}

TEST(KernelStructs, queue_pairs) {
  ib_uverbs_qp_attr kernel{};
  kernel.qp_state = IBV_QPS_RTS;
  kernel.cur_qp_state = IBV_QPS_RTR;
  kernel.path_mtu = IBV_MTU_2048;
  kernel.path_mig_state = IBV_MIG_REARM;
  kernel.qkey = 0x11111111;
  kernel.rq_psn = 0x222222;
  kernel.sq_psn = 0x333333;
  kernel.dest_qp_num = 0x444444;
  kernel.qp_access_flags = 0x55;
  kernel.ah_attr = kernel_path(0x30);
  kernel.alt_ah_attr = kernel_path(0x50);
  kernel.max_send_wr = 61;
  kernel.max_recv_wr = 62;
  kernel.max_send_sge = 63;
  kernel.max_recv_sge = 64;
  kernel.max_inline_data = 65;
  kernel.pkey_index = 71;
  kernel.alt_pkey_index = 72;
  kernel.en_sqd_async_notify = 73;
  kernel.sq_draining = 74;
  kernel.max_rd_atomic = 75;
  kernel.max_dest_rd_atomic = 76;
  kernel.min_rnr_timer = 77;
  kernel.port_num = 78;
  kernel.timeout = 79;
  kernel.retry_cnt = 80;
  kernel.rnr_retry = 81;
  kernel.alt_port_num = 82;
  kernel.alt_timeout = 83;
  auto attributes = dirty<ibv_qp_attr>();
  ibv_copy_qp_attr_from_kern(&attributes, &kernel);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.cur_qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(attributes.path_mig_state, IBV_MIG_REARM);
  EXPECT_EQ(attributes.qkey, 0x11111111U);
  EXPECT_EQ(attributes.rq_psn, 0x222222U);
  EXPECT_EQ(attributes.sq_psn, 0x333333U);
  EXPECT_EQ(attributes.dest_qp_num, 0x444444U);
  EXPECT_EQ(attributes.qp_access_flags, 0x55U);
  expect_path(attributes.ah_attr, 0x30);
  expect_path(attributes.alt_ah_attr, 0x50);
  EXPECT_EQ(attributes.cap.max_send_wr, 61U);
  EXPECT_EQ(attributes.cap.max_recv_wr, 62U);
  EXPECT_EQ(attributes.cap.max_send_sge, 63U);
  EXPECT_EQ(attributes.cap.max_recv_sge, 64U);
  EXPECT_EQ(attributes.cap.max_inline_data, 65U);
  EXPECT_EQ(attributes.pkey_index, 71);
  EXPECT_EQ(attributes.alt_pkey_index, 72);
  EXPECT_EQ(attributes.en_sqd_async_notify, 73);
  EXPECT_EQ(attributes.sq_draining, 74);
  EXPECT_EQ(attributes.max_rd_atomic, 75);
  EXPECT_EQ(attributes.max_dest_rd_atomic, 76);
  EXPECT_EQ(attributes.min_rnr_timer, 77);
  EXPECT_EQ(attributes.port_num, 78);
  EXPECT_EQ(attributes.timeout, 79);
  EXPECT_EQ(attributes.retry_cnt, 80);
  EXPECT_EQ(attributes.rnr_retry, 81);
  EXPECT_EQ(attributes.alt_port_num, 82);
  EXPECT_EQ(attributes.alt_timeout, 83);
  EXPECT_EQ(attributes.rate_limit, 0U) << "the kernel's has none, and nothing of before is seen";
}

TEST(KernelStructs, path_records_go_both_ways) {
  ibv_sa_path_rec path{};
  std::memset(path.dgid.raw, 1, 16);
  std::memset(path.sgid.raw, 2, 16);
  path.dlid = 0x103;
  path.slid = 0x104;
  path.raw_traffic = 1;
  path.flow_label = 0x10005;
  path.hop_limit = 6;
  path.traffic_class = 7;
  path.reversible = 1;
  path.numb_path = 9;
  path.pkey = 0x10a;
  path.sl = 11;
  path.mtu_selector = 12;
  path.mtu = 13;
  path.rate_selector = 14;
  path.rate = 15;
  path.packet_life_time_selector = 16;
  path.packet_life_time = 17;
  path.preference = 18;
  auto kernel = dirty<ib_user_path_rec>();
  ibv_copy_path_rec_to_kern(&kernel, &path);
  EXPECT_EQ(kernel.dgid[15], 1);
  EXPECT_EQ(kernel.sgid[0], 2);
  EXPECT_EQ(kernel.dlid, 0x103);
  EXPECT_EQ(kernel.slid, 0x104);
  EXPECT_EQ(kernel.raw_traffic, 1U);
  EXPECT_EQ(kernel.flow_label, 0x10005U);
  EXPECT_EQ(kernel.hop_limit, 6);
  EXPECT_EQ(kernel.traffic_class, 7);
  EXPECT_EQ(kernel.reversible, 1U);
  EXPECT_EQ(kernel.numb_path, 9);
  EXPECT_EQ(kernel.pkey, 0x10a);
  EXPECT_EQ(kernel.sl, 11);
  EXPECT_EQ(kernel.mtu_selector, 12);
  EXPECT_EQ(kernel.mtu, 13U);
  EXPECT_EQ(kernel.rate_selector, 14);
  EXPECT_EQ(kernel.rate, 15);
  EXPECT_EQ(kernel.packet_life_time_selector, 16);
  EXPECT_EQ(kernel.packet_life_time, 17);
  EXPECT_EQ(kernel.preference, 18);
  auto back = dirty<ibv_sa_path_rec>();
  ibv_copy_path_rec_from_kern(&back, &kernel);
  EXPECT_EQ(std::memcmp(back.dgid.raw, path.dgid.raw, 16), 0);
  EXPECT_EQ(std::memcmp(back.sgid.raw, path.sgid.raw, 16), 0);
  EXPECT_EQ(back.dlid, path.dlid);
  EXPECT_EQ(back.slid, path.slid);
  EXPECT_EQ(back.raw_traffic, path.raw_traffic);
  EXPECT_EQ(back.flow_label, path.flow_label);
  EXPECT_EQ(back.hop_limit, path.hop_limit);
  EXPECT_EQ(back.traffic_class, path.traffic_class);
  EXPECT_EQ(back.reversible, path.reversible);
  EXPECT_EQ(back.numb_path, path.numb_path);
  EXPECT_EQ(back.pkey, path.pkey);
  EXPECT_EQ(back.sl, path.sl);
  EXPECT_EQ(back.mtu_selector, path.mtu_selector);
  EXPECT_EQ(back.mtu, path.mtu);
  EXPECT_EQ(back.rate_selector, path.rate_selector);
  EXPECT_EQ(back.rate, path.rate);
  EXPECT_EQ(back.packet_life_time_selector, path.packet_life_time_selector);
  EXPECT_EQ(back.packet_life_time, path.packet_life_time);
  EXPECT_EQ(back.preference, path.preference);
}

}  // namespace
