// The state machine of queue pairs: every pair of states, every attribute bit, per type.
// After the InfiniBand specification, volume 1, section 11.2.5.2, tables of QP state transitions.
#include <map>

#include "far.h"

namespace ringbolt::conformance {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

const char* state_name(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[state];
}

/// What one transition demands and allows besides IBV_QP_STATE.
struct Rule {
  int required = 0;
  int optional = 0;
};

/// Attributes that depend on features a device may lack (migration, rate limits): never judged.
constexpr int kFeatureBits = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT |
                             IBV_QP_CAP | IBV_QP_CUR_STATE;

constexpr int kAllBits = IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
                         IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
                         IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN;

using Table = std::map<std::pair<ibv_qp_state, ibv_qp_state>, Rule>;

/// The transitions that exist for every type and take no attributes.
Table plain_transitions() {
  Table table;
  for (const ibv_qp_state from : kStates) {
    table[{from, IBV_QPS_RESET}] = {};
    table[{from, IBV_QPS_ERR}] = {};
  }
  table[{IBV_QPS_RTS, IBV_QPS_SQD}] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY};
  return table;
}

Table connected_transitions(ibv_qp_type type) {
  const bool is_rc = type == IBV_QPT_RC;
  const int timer = is_rc ? IBV_QP_MIN_RNR_TIMER : 0;
  const int first = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  Table table = plain_transitions();
  table[{IBV_QPS_RESET, IBV_QPS_INIT}] = {first, 0};
  table[{IBV_QPS_INIT, IBV_QPS_INIT}] = {0, first};
  table[{IBV_QPS_INIT, IBV_QPS_RTR}] = {
      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
          (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0),
      IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX};
  table[{IBV_QPS_RTR, IBV_QPS_RTS}] = {
      IBV_QP_SQ_PSN | (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_MAX_QP_RD_ATOMIC
                             : 0),
      IBV_QP_ACCESS_FLAGS | timer};
  table[{IBV_QPS_RTS, IBV_QPS_RTS}] = {0, IBV_QP_ACCESS_FLAGS | timer};
  table[{IBV_QPS_SQD, IBV_QPS_RTS}] = {0, IBV_QP_ACCESS_FLAGS | timer};
  table[{IBV_QPS_SQD, IBV_QPS_SQD}] = {
      0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
             (is_rc ? IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
                          IBV_QP_MIN_RNR_TIMER
                    : 0)};
  return table;
}

Table datagram_transitions() {
  const int first = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  Table table = plain_transitions();
  table[{IBV_QPS_RESET, IBV_QPS_INIT}] = {first, 0};
  table[{IBV_QPS_INIT, IBV_QPS_INIT}] = {0, first};
  table[{IBV_QPS_INIT, IBV_QPS_RTR}] = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY};
  table[{IBV_QPS_RTR, IBV_QPS_RTS}] = {IBV_QP_SQ_PSN, IBV_QP_QKEY};
  table[{IBV_QPS_RTS, IBV_QPS_RTS}] = {0, IBV_QP_QKEY};
  table[{IBV_QPS_SQD, IBV_QPS_RTS}] = {0, IBV_QP_QKEY};
  table[{IBV_QPS_SQD, IBV_QPS_SQD}] = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY};
  return table;
}

/// RESET -> ERR is left open by the specification's figure; SQE is entered by errors alone.
bool is_judged(ibv_qp_state from, ibv_qp_state to) {
  return from != IBV_QPS_SQE && !(from == IBV_QPS_RESET && to == IBV_QPS_ERR);
}

class StateTest : public testing::TestWithParam<ibv_qp_type> {
 protected:
  StateTest() : device(open_device()) {
    options.type = GetParam();
    table = GetParam() == IBV_QPT_UD ? datagram_transitions() : connected_transitions(GetParam());
    peer = std::make_unique<Endpoint>(device, options);
  }

  std::unique_ptr<Endpoint> in_state(ibv_qp_state state) {
    auto endpoint = std::make_unique<Endpoint>(device, options);
    if (state == IBV_QPS_RESET) {
      return endpoint;
    }
    must_succeed(endpoint->to_init(), "RESET -> INIT");
    if (state == IBV_QPS_INIT) {
      return endpoint;
    }
    must_succeed(endpoint->to_rtr(peer->address()), "INIT -> RTR");
    if (state == IBV_QPS_RTR) {
      return endpoint;
    }
    must_succeed(endpoint->to_rts(), "RTR -> RTS");
    if (state == IBV_QPS_SQD || state == IBV_QPS_ERR) {
      must_succeed(endpoint->to_state(state), "RTS -> SQD or ERR");
    }
    return endpoint;
  }

  /// Valid values for every attribute.
  ibv_qp_attr attributes(const Endpoint& endpoint, ibv_qp_state to) const {
    int ignored = 0;
    ibv_qp_attr attr = endpoint.rtr_attr(peer->address(), ignored);
    const ibv_qp_attr first = endpoint.init_attr(ignored);
    const ibv_qp_attr last = endpoint.rts_attr(ignored);
    attr.qp_state = to;
    attr.port_num = first.port_num;
    attr.qkey = first.qkey;
    attr.qp_access_flags = first.qp_access_flags;
    attr.sq_psn = last.sq_psn;
    attr.timeout = last.timeout;
    attr.retry_cnt = last.retry_cnt;
    attr.rnr_retry = last.rnr_retry;
    attr.max_rd_atomic = last.max_rd_atomic;
    return attr;
  }

  /// A mask that no judge could call incomplete for the target state.
  int full_mask(ibv_qp_state to) const {
    int mask = IBV_QP_STATE;
    for (const auto& [step, rule] : table) {
      mask |= step.second == to ? rule.required : 0;
    }
    return mask;
  }

  Device device;
  QpOptions options;
  Table table;
  std::unique_ptr<Endpoint> peer;
};

INSTANTIATE_TEST_SUITE_P(All, StateTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& parameter) { return type_name(parameter.param); });

TEST_P(StateTest, each_transition_is_allowed_or_refused_as_the_table_says) {
  for (const ibv_qp_state from : kStates) {
    for (const ibv_qp_state to : kStates) {
      if (!is_judged(from, to)) {
        continue;
      }
      SCOPED_TRACE(std::string(state_name(from)) + " -> " + state_name(to));
      const auto endpoint = in_state(from);
      const auto rule = table.find({from, to});
      const bool is_legal = rule != table.end() && to != IBV_QPS_SQE;
      ibv_qp_attr attr = attributes(*endpoint, to);
      const int mask = is_legal ? IBV_QP_STATE | rule->second.required : full_mask(to);
      EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask), is_legal ? 0 : EINVAL);
      EXPECT_EQ(endpoint->state(), is_legal ? to : from);
      EXPECT_EQ(endpoint->qp()->state, is_legal ? to : from);
    }
  }
}

TEST_P(StateTest, each_missing_attribute_is_refused) {
  for (const auto& [step, rule] : table) {
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((rule.required & bit) == 0) {
        continue;
      }
      SCOPED_TRACE(std::string(state_name(step.first)) + " -> " + state_name(step.second) +
                   " without bit " + std::to_string(bit));
      const auto endpoint = in_state(step.first);
      ibv_qp_attr attr = attributes(*endpoint, step.second);
      const int mask = IBV_QP_STATE | (rule.required & ~bit);
      EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask), EINVAL);
      EXPECT_EQ(endpoint->state(), step.first);
    }
  }
}

TEST_P(StateTest, each_attribute_is_taken_or_refused_as_the_table_says) {
  for (const auto& [step, rule] : table) {
    if (step.first == IBV_QPS_SQE || step.second == IBV_QPS_SQE ||
        !is_judged(step.first, step.second)) {
      continue;
    }
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((bit & kAllBits) == 0 || (bit & kFeatureBits) != 0 || (rule.required & bit) != 0) {
        continue;
      }
      const bool is_allowed = (rule.optional & bit) != 0;
      SCOPED_TRACE(std::string(state_name(step.first)) + " -> " + state_name(step.second) +
                   " with bit " + std::to_string(bit));
      const auto endpoint = in_state(step.first);
      ibv_qp_attr attr = attributes(*endpoint, step.second);
      const int mask = IBV_QP_STATE | rule.required | bit;
      EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask), is_allowed ? 0 : EINVAL);
    }
  }
}

TEST_P(StateTest, wrong_current_state_is_refused) {
  const auto endpoint = in_state(IBV_QPS_RTR);
  int mask = 0;
  ibv_qp_attr attr = endpoint->rts_attr(mask);
  attr.cur_qp_state = IBV_QPS_SQD;
  EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask | IBV_QP_CUR_STATE), EINVAL);
  EXPECT_EQ(endpoint->state(), IBV_QPS_RTR);
  attr.cur_qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask | IBV_QP_CUR_STATE), 0);
  EXPECT_EQ(endpoint->state(), IBV_QPS_RTS);
}

TEST_P(StateTest, unknown_attribute_bit_is_refused) {
  const auto endpoint = in_state(IBV_QPS_RESET);
  int mask = 0;
  ibv_qp_attr attr = endpoint->init_attr(mask);
  EXPECT_NE(ibv_modify_qp(endpoint->qp(), &attr, mask | (1 << 30)), 0);
  EXPECT_EQ(endpoint->state(), IBV_QPS_RESET);
}

TEST_P(StateTest, unknown_state_is_refused) {
  const auto endpoint = in_state(IBV_QPS_INIT);
  ibv_qp_attr attr = attributes(*endpoint, IBV_QPS_UNKNOWN);
  EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(endpoint->state(), IBV_QPS_INIT);
}

TEST_P(StateTest, bad_values_of_the_first_step_are_refused) {
  const auto endpoint = in_state(IBV_QPS_RESET);
  int mask = 0;
  ibv_qp_attr attr = endpoint->init_attr(mask);
  for (const uint8_t port : {uint8_t{0}, static_cast<uint8_t>(device.attr.phys_port_cnt + 1)}) {
    attr.port_num = port;
    EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask), EINVAL) << "port " << int{port};
  }
  attr.port_num = 1;
  attr.pkey_index = device.port.pkey_tbl_len;
  EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask), EINVAL);
  EXPECT_EQ(endpoint->state(), IBV_QPS_RESET);
}

TEST_P(StateTest, attributes_can_be_read_back) {
  const auto endpoint = in_state(IBV_QPS_RTS);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const int mask = GetParam() == IBV_QPT_UD ? IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_CAP
                                            : kAllBits | IBV_QP_STATE | IBV_QP_CAP;
  ASSERT_EQ(ibv_query_qp(endpoint->qp(), &attr, mask, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.cap.max_send_wr, endpoint->cap().max_send_wr);
  EXPECT_EQ(attr.cap.max_recv_sge, endpoint->cap().max_recv_sge);
  EXPECT_EQ(init.qp_type, GetParam());
  EXPECT_EQ(init.send_cq, endpoint->send_cq());
  EXPECT_EQ(init.recv_cq, endpoint->recv_cq());
  EXPECT_EQ(init.srq, nullptr);
  EXPECT_EQ(init.sq_sig_all, 0);
  EXPECT_EQ(init.cap.max_recv_wr, endpoint->cap().max_recv_wr);
  if (GetParam() == IBV_QPT_UD) {
    EXPECT_EQ(attr.qkey, kQkey);
    return;
  }
  EXPECT_EQ(attr.path_mtu, options.path_mtu);
  EXPECT_EQ(attr.dest_qp_num, peer->address().qp_num);
  EXPECT_EQ(attr.rq_psn, peer->address().psn);
  EXPECT_EQ(attr.sq_psn, endpoint->address().psn);
  EXPECT_EQ(attr.qp_access_flags, options.access);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, device.gid_index);
  EXPECT_EQ(std::memcmp(&attr.ah_attr.grh.dgid, &device.gid, sizeof device.gid), 0);
  if (GetParam() == IBV_QPT_RC) {
    EXPECT_EQ(attr.timeout, options.timeout);
    EXPECT_EQ(attr.retry_cnt, options.retry_cnt);
    EXPECT_EQ(attr.rnr_retry, options.rnr_retry);
    EXPECT_EQ(attr.min_rnr_timer, options.min_rnr_timer);
    EXPECT_EQ(attr.max_rd_atomic, options.rd_atomic);
    EXPECT_EQ(attr.max_dest_rd_atomic, options.rd_atomic);
  }
}

TEST_P(StateTest, a_reset_queue_pair_connects_again) {
  if (GetParam() == IBV_QPT_UD) {
    GTEST_SKIP() << "datagrams have no connection";
  }
  Endpoint a(device, options), b(device, options);
  Region from(a.pd(), 64), to(b.pd(), 64);
  for (uint64_t round = 0; round < 5; ++round) {
    connect(a, b);
    from.fill(std::vector<Piece>{{0, 64}}, round);
    ASSERT_EQ(post_recv(b.qp(), round, {to.sge(0, 64)}), 0);
    ASSERT_EQ(SendWr(round, IBV_WR_SEND, {from.sge(0, 64)}).post(a.qp()), 0);
    expect_success(wait_completion(a.send_cq()), round, IBV_WC_SEND);
    expect_success(wait_completion(b.recv_cq()), round, IBV_WC_RECV);
    EXPECT_EQ(to.check(std::vector<Piece>{{0, 64}}, 64, round), "");
    ASSERT_EQ(a.to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b.to_state(IBV_QPS_RESET), 0);
  }
}

TEST_P(StateTest, unreachable_destination_times_out) {
  ibv_gid nowhere{};
  // The documentation range 2001:db8::/32 is nobody's.
  nowhere.raw[0] = 0x20;
  nowhere.raw[1] = 0x01;
  nowhere.raw[2] = 0x0d;
  nowhere.raw[3] = 0xb8;
  nowhere.raw[15] = 1;
  if (GetParam() == IBV_QPT_UD) {
    ibv_ah_attr attr = address_vector(device, nowhere);
    EXPECT_EQ(ibv_create_ah(peer->pd(), &attr), nullptr);
    EXPECT_EQ(errno, ETIMEDOUT);
    return;
  }
  const auto endpoint = in_state(IBV_QPS_INIT);
  QpAddress address = peer->address();
  address.gid = nowhere;
  EXPECT_EQ(endpoint->to_rtr(address), ETIMEDOUT);
  EXPECT_EQ(endpoint->state(), IBV_QPS_INIT);
  EXPECT_EQ(endpoint->to_rtr(peer->address()), 0);
}

TEST_P(StateTest, bad_values_of_the_path_are_refused) {
  if (GetParam() == IBV_QPT_UD) {
    GTEST_SKIP() << "datagrams have no path";
  }
  const auto refused = [&](const char* what, auto change) {
    SCOPED_TRACE(what);
    const auto endpoint = in_state(IBV_QPS_INIT);
    int mask = 0;
    ibv_qp_attr attr = endpoint->rtr_attr(peer->address(), mask);
    change(attr);
    EXPECT_EQ(ibv_modify_qp(endpoint->qp(), &attr, mask), EINVAL);
    EXPECT_EQ(endpoint->state(), IBV_QPS_INIT);
  };
  refused("MTU code 0", [](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(0); });
  refused("MTU code 6", [](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(6); });
  refused("source GID index", [&](ibv_qp_attr& attr) {
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(device.port.gid_tbl_len);
  });
  refused("port of the path", [](ibv_qp_attr& attr) { attr.ah_attr.port_num = 2; });
  if (GetParam() == IBV_QPT_RC) {
    refused("read depth", [&](ibv_qp_attr& attr) {
      attr.max_dest_rd_atomic = static_cast<uint8_t>(device.attr.max_qp_rd_atom + 1);
    });
  }
}

TEST(State, drained_queue_holds_its_sends_and_says_so) {
  const Device device = open_device();
  Endpoint a(device, {}), b(device, {});
  Region from(a.pd(), 64), to(b.pd(), 64);
  connect(a, b);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  ASSERT_EQ(ibv_modify_qp(a.qp(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  const ibv_async_event event = wait_async_event(device);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.element.qp, a.qp());
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(a.qp(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_SQD);
  EXPECT_EQ(attr.sq_draining, 0);
  // Posted now, it waits; traffic the other way shows that the device had its chance.
  ASSERT_EQ(post_recv(b.qp(), 1, {to.sge(0, 32)}), 0);
  ASSERT_EQ(SendWr(2, IBV_WR_SEND, {from.sge(0, 32)}).post(a.qp()), 0);
  ASSERT_EQ(post_recv(a.qp(), 3, {from.sge(32, 8)}), 0);
  ASSERT_EQ(SendWr(4, IBV_WR_SEND, {to.sge(32, 8)}).post(b.qp()), 0);
  expect_success(wait_completion(b.send_cq()), 4, IBV_WC_SEND);
  expect_success(wait_completion(a.recv_cq()), 3, IBV_WC_RECV);
  EXPECT_TRUE(is_empty(a.send_cq()));
  EXPECT_TRUE(is_empty(b.recv_cq()));
  ASSERT_EQ(a.to_state(IBV_QPS_RTS), 0);
  expect_success(wait_completion(a.send_cq()), 2, IBV_WC_SEND);
  expect_success(wait_completion(b.recv_cq()), 1, IBV_WC_RECV);
}

// The attribute mask and values of a program written for another system, bit for bit.
TEST(State, unreliable_connection_with_the_least_attributes) {
  const Device device = open_device();
  QpOptions options;
  options.type = IBV_QPT_UC;
  Endpoint a(device, options), b(device, options);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = 7;
  ASSERT_EQ(ibv_modify_qp(a.qp(), &attr, 0x39), 0);
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.rq_psn = 7;
  attr.dest_qp_num = b.qp()->qp_num;
  attr.ah_attr = address_vector(device, device.gid);
  ASSERT_EQ(ibv_modify_qp(a.qp(), &attr, 0x101181), 0);
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 7;
  ASSERT_EQ(ibv_modify_qp(a.qp(), &attr, 0x10001), 0);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
}

// The other side resets before it is connected to: news of that is on its way while we connect.
class StateRaceTest : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(All, StateRaceTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& parameter) { return type_name(parameter.param); });

TEST_P(StateRaceTest, peer_that_connects_twice_is_reached) {
  const Device device = open_device();
  const Pd pd = make_pd(device);
  Region memory(pd.get(), 64);
  QpOptions options;
  options.type = GetParam();
  options.timeout = 8;
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    Endpoint a(device, options, {pd.get(), nullptr, nullptr, nullptr});
    Endpoint b(device, options, {pd.get(), nullptr, nullptr, nullptr});
    ASSERT_EQ(a.to_init(), 0);
    ASSERT_EQ(b.to_init(), 0);
    ASSERT_EQ(b.to_rtr(a.address()), 0);
    for (int i = 0; i < round * 10; ++i) {
      is_empty(a.recv_cq());  // some other moment in each round
    }
    ASSERT_EQ(b.to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(a.to_rtr(b.address()), 0);
    ASSERT_EQ(a.to_rts(), 0);
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {memory.sge(0, 8)}).post(a.qp()), 0);
    b.connect(a.address());
    ASSERT_EQ(post_recv(b.qp(), 2, {memory.sge(8, 8)}), 0);
    expect_success(wait_completion(a.send_cq()), 1, IBV_WC_SEND);
    expect_success(wait_completion(b.recv_cq()), 2, IBV_WC_RECV);
  }
}

}  // namespace
}  // namespace ringbolt::conformance
