// Questions about devices, ports and tables, and creation with impossible wishes.
#include <dlfcn.h>

#include <algorithm>

#include "far.h"

namespace ringbolt::conformance {
namespace {

class QueryTest : public testing::Test {
 protected:
  QueryTest() : device(open_device()), context(device.context.get()) {}

  Device device;
  ibv_context* context;
};

TEST_F(QueryTest, device_limits_make_sense) {
  const ibv_device_attr& attr = device.attr;
  EXPECT_GE(attr.phys_port_cnt, 1);
  EXPECT_GT(attr.max_qp, 0);
  EXPECT_GT(attr.max_qp_wr, 0);
  EXPECT_GT(attr.max_sge, 0);
  EXPECT_GT(attr.max_cq, 0);
  EXPECT_GT(attr.max_cqe, 0);
  EXPECT_GT(attr.max_mr, 0);
  EXPECT_GT(attr.max_pd, 0);
  EXPECT_GT(attr.max_mr_size, 0u);
  EXPECT_GT(attr.max_srq, 0);
  EXPECT_GT(attr.max_ah, 0);
  EXPECT_GT(attr.max_qp_rd_atom, 0);
  EXPECT_NE(attr.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_EQ(attr.node_guid, ibv_get_device_guid(context->device));
  EXPECT_NE(attr.node_guid, 0u);
}

TEST_F(QueryTest, extended_device_query_agrees_with_the_plain_one) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(context, nullptr, &attr), 0);
  EXPECT_EQ(attr.orig_attr.max_qp, device.attr.max_qp);
  EXPECT_EQ(attr.orig_attr.max_qp_wr, device.attr.max_qp_wr);
  EXPECT_EQ(attr.orig_attr.node_guid, device.attr.node_guid);
  EXPECT_EQ(attr.phys_port_cnt_ex, device.attr.phys_port_cnt);
}

TEST_F(QueryTest, port_is_active_ethernet) {
  EXPECT_EQ(device.port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(device.port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_GE(device.port.active_mtu, IBV_MTU_1024);
  EXPECT_GE(device.port.max_mtu, device.port.active_mtu);
  EXPECT_GE(device.port.gid_tbl_len, 2);
  EXPECT_GE(device.port.pkey_tbl_len, 1);
  EXPECT_GE(device.port.max_msg_sz, 1u << 20);
}

TEST_F(QueryTest, port_that_is_not_there_is_refused) {
  ibv_port_attr attr{};
  EXPECT_EQ(ibv_query_port(context, 0, &attr), EINVAL);
  EXPECT_EQ(ibv_query_port(context, static_cast<uint8_t>(device.attr.phys_port_cnt + 1), &attr),
            EINVAL);
}

// The exported function is older than the macro of the same name and writes 48 bytes only.
TEST_F(QueryTest, exported_port_query_writes_the_old_length) {
  uint8_t bytes[64];
  std::fill(std::begin(bytes), std::end(bytes), uint8_t{0x77});
  ASSERT_EQ((ibv_query_port)(context, 1, reinterpret_cast<_compat_ibv_port_attr*>(bytes)), 0);
  ibv_port_attr old{};
  std::memcpy(&old, bytes, 48);
  EXPECT_EQ(old.state, device.port.state);
  EXPECT_EQ(old.max_msg_sz, device.port.max_msg_sz);
  EXPECT_EQ(old.gid_tbl_len, device.port.gid_tbl_len);
  EXPECT_EQ(old.link_layer, device.port.link_layer);
  for (size_t i = 48; i < sizeof bytes; ++i) {
    EXPECT_EQ(bytes[i], 0x77) << "byte " << i;
  }
}

TEST_F(QueryTest, gid_table_begins_link_local_then_mapped) {
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
  EXPECT_EQ(gid.raw[0], 0xfe);
  EXPECT_EQ(gid.raw[1], 0x80);
  ASSERT_EQ(ibv_query_gid(context, 1, 1, &gid), 0);
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  EXPECT_EQ(std::memcmp(gid.raw, kMapped, sizeof kMapped), 0);
}

TEST_F(QueryTest, gid_beyond_the_table_is_refused) {
  ibv_gid gid{};
  EXPECT_NE(ibv_query_gid(context, 1, -1, &gid), 0);
  EXPECT_NE(ibv_query_gid(context, 1, device.port.gid_tbl_len, &gid), 0);
  EXPECT_NE(ibv_query_gid(context, 9, 0, &gid), 0);
}

TEST_F(QueryTest, empty_gid_slot_is_zero_and_has_no_entry) {
  const int last = device.port.gid_tbl_len - 1;
  ibv_gid gid{};
  gid.raw[5] = 9;
  ASSERT_EQ(ibv_query_gid(context, 1, last, &gid), 0);
  EXPECT_EQ(std::count(std::begin(gid.raw), std::end(gid.raw), 0), 16);
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_ex(context, 1, static_cast<uint32_t>(last), &entry, 0), ENODATA);
}

TEST_F(QueryTest, gid_entries_agree_with_the_table) {
  ibv_gid_entry entries[16] = {};
  const ssize_t count = ibv_query_gid_table(context, entries, 16, 0);
  ASSERT_GE(count, 2);
  for (ssize_t i = 0; i < count; ++i) {
    ibv_gid_entry single{};
    ASSERT_EQ(ibv_query_gid_ex(context, entries[i].port_num, entries[i].gid_index, &single, 0), 0);
    EXPECT_EQ(std::memcmp(&single.gid, &entries[i].gid, sizeof single.gid), 0);
    EXPECT_EQ(single.gid_type, static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V2));
    ibv_gid plain{};
    ASSERT_EQ(ibv_query_gid(context, 1, static_cast<int>(entries[i].gid_index), &plain), 0);
    EXPECT_EQ(std::memcmp(&plain, &entries[i].gid, sizeof plain), 0);
  }
  EXPECT_LT(ibv_query_gid_table(context, entries, 1, 0), 0) << "one slot is too little";
  EXPECT_NE(ibv_query_gid_ex(context, 1, 0, &entries[0], 1), 0) << "unknown flag";
  EXPECT_NE(ibv_query_gid_ex(context, 7, 0, &entries[0], 0), 0) << "unknown port";
  EXPECT_NE(ibv_query_gid_ex(context, 1, 4000, &entries[0], 0), 0) << "beyond the table";
}

TEST_F(QueryTest, partition_key_is_the_default_one) {
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
  EXPECT_EQ(ibv_get_pkey_index(context, 1, pkey), 0);
  EXPECT_LT(ibv_get_pkey_index(context, 1, 0x3412), 0);
  EXPECT_NE(ibv_query_pkey(context, 1, -1, &pkey), 0);
  EXPECT_NE(ibv_query_pkey(context, 1, device.port.pkey_tbl_len, &pkey), 0);
}

TEST_F(QueryTest, real_time_values_are_said_or_refused) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  const int error = ibv_query_rt_values_ex(context, &values);
  EXPECT_TRUE(error == 0 || error == EOPNOTSUPP) << error;
}

TEST_F(QueryTest, names_of_statuses_are_there_and_differ) {
  EXPECT_STRNE(ibv_wc_status_str(IBV_WC_SUCCESS), ibv_wc_status_str(IBV_WC_LOC_LEN_ERR));
  EXPECT_NE(ibv_wc_status_str(IBV_WC_GENERAL_ERR), nullptr);
  EXPECT_NE(ibv_node_type_str(IBV_NODE_CA), nullptr);
  EXPECT_NE(ibv_port_state_str(IBV_PORT_ACTIVE), nullptr);
}

TEST_F(QueryTest, rates_convert_both_ways) {
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_10_GBPS), 4);
  EXPECT_EQ(mult_to_ibv_rate(4), IBV_RATE_10_GBPS);
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
  EXPECT_EQ(mbps_to_ibv_rate(103125), IBV_RATE_100_GBPS);
}

TEST_F(QueryTest, features_that_are_not_there_are_refused) {
  const Pd pd = make_pd(device);
  ibv_xrcd_init_attr domain{};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  errno = 0;
  EXPECT_EQ(ibv_open_xrcd(context, &domain), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_alloc_dm_attr memory{};
  memory.length = 64;
  errno = 0;
  EXPECT_EQ(ibv_alloc_dm(context, &memory), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_advise_mr(pd.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0), EOPNOTSUPP);
}

class CreateTest : public QueryTest {
 protected:
  CreateTest() : pd(make_pd(device)), cq(make_cq(device, 16)) {}

  ibv_qp_init_attr smallest() const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {1, 1, 1, 1, 0};
    return init;
  }

  template <typename Change>
  void expect_refused(Change change) {
    ibv_qp_init_attr init = smallest();
    change(init);
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd.get(), &init), nullptr);
    EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
  }

  Pd pd;
  Cq cq;
};

TEST_F(CreateTest, more_than_the_limits_is_refused) {
  const auto past = [](int limit) { return static_cast<uint32_t>(limit) + 1; };
  expect_refused([&](auto& init) { init.cap.max_send_wr = past(device.attr.max_qp_wr); });
  expect_refused([&](auto& init) { init.cap.max_recv_wr = past(device.attr.max_qp_wr); });
  expect_refused([&](auto& init) { init.cap.max_send_sge = past(device.attr.max_sge); });
  expect_refused([&](auto& init) { init.cap.max_recv_sge = past(device.attr.max_sge); });
  expect_refused([&](auto& init) { init.cap.max_send_wr = ~0u; });
}

TEST_F(CreateTest, exactly_the_limits_are_granted) {
  ibv_qp_init_attr init = smallest();
  init.cap.max_send_wr = init.cap.max_recv_wr = static_cast<uint32_t>(device.attr.max_qp_wr);
  init.cap.max_send_sge = init.cap.max_recv_sge = static_cast<uint32_t>(device.attr.max_sge);
  const Qp qp(must(ibv_create_qp(pd.get(), &init), "ibv_create_qp"));
  EXPECT_GE(init.cap.max_send_wr, static_cast<uint32_t>(device.attr.max_qp_wr));
}

TEST_F(CreateTest, types_that_are_not_there_are_refused) {
  for (const ibv_qp_type type : {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
                                 IBV_QPT_DRIVER, static_cast<ibv_qp_type>(0)}) {
    expect_refused([&](auto& init) { init.qp_type = type; });
  }
}

TEST_F(CreateTest, queue_pair_needs_its_completion_queues) {
  expect_refused([](auto& init) { init.send_cq = nullptr; });
  expect_refused([](auto& init) { init.recv_cq = nullptr; });
}

TEST_F(CreateTest, fields_say_what_was_created) {
  ibv_qp_init_attr init = smallest();
  int mark = 0;
  init.qp_context = &mark;
  const Qp qp(must(ibv_create_qp(pd.get(), &init), "ibv_create_qp"));
  EXPECT_EQ(qp->qp_context, &mark);
  EXPECT_EQ(qp->pd, pd.get());
  EXPECT_EQ(qp->send_cq, cq.get());
  EXPECT_EQ(qp->recv_cq, cq.get());
  EXPECT_EQ(qp->srq, nullptr);
  EXPECT_EQ(qp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_LT(qp->qp_num, 1u << 24);
  EXPECT_GT(qp->qp_num, 1u) << "0 and 1 are the management queue pairs";
}

TEST_F(CreateTest, send_only_and_receive_only_queue_pairs_exist) {
  ibv_qp_init_attr init = smallest();
  init.cap = {4, 0, 1, 0, 0};
  const Qp sender(must(ibv_create_qp(pd.get(), &init), "send only"));
  init.cap = {0, 4, 0, 1, 0};
  const Qp receiver(must(ibv_create_qp(pd.get(), &init), "receive only"));
  EXPECT_NE(sender->qp_num, receiver->qp_num);
}

TEST_F(CreateTest, numbers_are_not_reused_quickly) {
  std::vector<uint32_t> seen;
  for (int i = 0; i < 500; ++i) {
    ibv_qp_init_attr init = smallest();
    const Qp qp(must(ibv_create_qp(pd.get(), &init), "ibv_create_qp"));
    EXPECT_EQ(std::find(seen.begin(), seen.end(), qp->qp_num), seen.end()) << "after " << i;
    seen.push_back(qp->qp_num);
  }
}

// rdma-core 62, newer than some headers; NCCL looks it up by this name and version.
TEST(Query, port_speed_is_told_in_units_of_100_megabits) {
  using Query = int (*)(ibv_context*, uint32_t, uint64_t*);
  const auto query = reinterpret_cast<Query>(dlvsym(RTLD_DEFAULT, "ibv_query_port_speed", "IBVERBS_1.16"));
  if (query == nullptr) {
    GTEST_SKIP() << "an older library";
  }
  const Device device = open_device();
  uint64_t speed = 0;
  ASSERT_EQ(query(device.context.get(), 1, &speed), 0);
  EXPECT_EQ(speed, 1000U);  // 100 Gb/s
  EXPECT_EQ(query(device.context.get(), 2, &speed), EINVAL);
}

}  // namespace
}  // namespace ringbolt::conformance
