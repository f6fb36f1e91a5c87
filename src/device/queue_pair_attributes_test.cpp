// ibv_modify_qp and ibv_query_qp: InfiniBand Architecture Specification 1.4, 11.2.5.2 (attributes of each step).

#include "device/queue_pair_attributes.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>

#include "device/part_test_support.h"

namespace ringbolt::device {
namespace {

class AttributesTest : public testing::Test {
 protected:
  void begin(const std::string& like = {}, const std::string& faults = {}, ibv_qp_type type = IBV_QPT_RC) {
    end_.reset();
    own_.reset();
    device_.reset();
    device_ = std::make_unique<DeviceUnderTest>(like, faults);
    own_ = std::make_unique<CoreUnderTest>(*device_, type);
    end_ = std::make_unique<End>(*device_, type);
  }
  /// Attributes that are all right, whatever is asked for.
  ibv_qp_attr good() const {
    ibv_qp_attr attributes{};
    attributes.port_num = 1;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = device_->port().known_gids.front();
    return attributes;
  }
  int check(int mask, const std::function<void(ibv_qp_attr&)>& change) {
    ibv_qp_attr attributes = good();
    change(attributes);
    return check_attributes(own_->core, attributes, mask);
  }

  std::unique_ptr<DeviceUnderTest> device_;
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<End> end_;
};

/// The largest value that an attribute takes, and whether the next one is too many.
struct Bound {
  const char* name;
  int mask;
  uint32_t most;
  std::function<void(ibv_qp_attr&, uint32_t)> set;
};

TEST_F(AttributesTest, take_the_largest_value_and_no_larger_one) {
  begin();
  const std::vector<Bound> bounds{
      {"timeout", IBV_QP_TIMEOUT, 31, [](auto& a, uint32_t v) { a.timeout = static_cast<uint8_t>(v); }},
      {"retry_cnt", IBV_QP_RETRY_CNT, 7, [](auto& a, uint32_t v) { a.retry_cnt = static_cast<uint8_t>(v); }},
      {"rnr_retry", IBV_QP_RNR_RETRY, 7, [](auto& a, uint32_t v) { a.rnr_retry = static_cast<uint8_t>(v); }},
      {"min_rnr_timer", IBV_QP_MIN_RNR_TIMER, 31,
       [](auto& a, uint32_t v) { a.min_rnr_timer = static_cast<uint8_t>(v); }},
      {"max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC, kMaxReadAtomic,
       [](auto& a, uint32_t v) { a.max_rd_atomic = static_cast<uint8_t>(v); }},
      {"max_dest_rd_atomic", IBV_QP_MAX_DEST_RD_ATOMIC, kMaxReadAtomic,
       [](auto& a, uint32_t v) { a.max_dest_rd_atomic = static_cast<uint8_t>(v); }},
      {"dest_qp_num", IBV_QP_DEST_QPN, 0xffffff, [](auto& a, uint32_t v) { a.dest_qp_num = v; }},
      {"path_mtu", IBV_QP_PATH_MTU, IBV_MTU_4096, [](auto& a, uint32_t v) { a.path_mtu = static_cast<ibv_mtu>(v); }},
      {"port_num", IBV_QP_PORT, 1, [](auto& a, uint32_t v) { a.port_num = static_cast<uint8_t>(v); }},
      {"pkey_index", IBV_QP_PKEY_INDEX, 0, [](auto& a, uint32_t v) { a.pkey_index = static_cast<uint16_t>(v); }},
  };
  for (const Bound& bound : bounds) {
    EXPECT_EQ(check(bound.mask, [&](auto& a) { bound.set(a, bound.most); }), 0) << bound.name;
    EXPECT_EQ(check(bound.mask, [&](auto& a) { bound.set(a, bound.most + 1); }), EINVAL) << bound.name;
    EXPECT_EQ(check(0, [&](auto& a) { bound.set(a, bound.most + 1); }), 0) << bound.name << " that nobody asks for";
  }
}

TEST_F(AttributesTest, take_no_smaller_value_than_the_smallest) {
  begin();
  EXPECT_EQ(check(IBV_QP_PATH_MTU, [](auto& a) { a.path_mtu = IBV_MTU_256; }), 0);
  EXPECT_EQ(check(IBV_QP_PATH_MTU, [](auto& a) { a.path_mtu = static_cast<ibv_mtu>(0); }), EINVAL);
  EXPECT_EQ(check(IBV_QP_PORT, [](auto& a) { a.port_num = 0; }), EINVAL);
}

TEST_F(AttributesTest, path_needs_gids_a_port_and_somebody_at_its_end) {
  begin();
  EXPECT_EQ(check(IBV_QP_AV, [](auto&) {}), 0);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.is_global = 0; }), EINVAL);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.port_num = 0; }), EINVAL);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.port_num = 2; }), EINVAL);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.grh.sgid_index = 200; }), EINVAL);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.grh.dgid.raw[15] ^= 1; }), ETIMEDOUT);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.grh.dgid = {}; }), ETIMEDOUT);
}

TEST_F(AttributesTest, path_begins_at_a_slot_of_the_gid_table_that_holds_something) {
  begin();
  const auto addresses = device_->port().addresses();
  for (size_t index = 0; index < addresses->shown.size(); ++index) {
    EXPECT_EQ(check(IBV_QP_AV, [&](auto& a) { a.ah_attr.grh.sgid_index = static_cast<uint8_t>(index); }), 0) << index;
  }
  EXPECT_EQ(
      check(IBV_QP_AV, [&](auto& a) { a.ah_attr.grh.sgid_index = static_cast<uint8_t>(addresses->shown.size()); }),
      EINVAL);
}

TEST_F(AttributesTest, mac_has_empty_slots_and_refuses_paths_from_them) {
  begin("tn3205,gid=2", "", IBV_QPT_UC);
  const auto addresses = device_->port().addresses();
  ASSERT_FALSE(addresses->shown.empty());
  for (size_t index = 0; index < addresses->shown.size(); ++index) {
    constexpr ibv_gid kZero{};
    const bool is_empty = std::memcmp(addresses->shown[index].raw, kZero.raw, sizeof kZero.raw) == 0;
    EXPECT_EQ(check(IBV_QP_AV, [&](auto& a) { a.ah_attr.grh.sgid_index = static_cast<uint8_t>(index); }),
              is_empty ? EINVAL : 0)
        << index;
  }
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.grh.dgid = {}; }), EINVAL);
}

TEST_F(AttributesTest, port_with_an_empty_gid_table_has_no_paths) {
  begin("tn3205,gid=empty", "", IBV_QPT_UC);
  EXPECT_EQ(check(IBV_QP_AV, [](auto&) {}), ENODATA);
  begin("tn3205,gid=empty,empty-gid=einval", "", IBV_QPT_UC);
  EXPECT_EQ(check(IBV_QP_AV, [](auto&) {}), EINVAL);
  begin("tn3205,gid=empty,errno=darwin", "", IBV_QPT_UC);
  constexpr int kDarwinNoData = 96;
  EXPECT_EQ(check(IBV_QP_AV, [](auto&) {}), kDarwinNoData);
}

TEST_F(AttributesTest, mac_has_darwins_number_for_what_is_out_of_reach) {
  constexpr int kDarwinTimedOut = 60;
  begin("tn3205,errno=darwin", "", IBV_QPT_UC);
  EXPECT_EQ(check(IBV_QP_AV, [](auto& a) { a.ah_attr.grh.dgid.raw[15] ^= 1; }), kDarwinTimedOut);
}

TEST_F(AttributesTest, type_that_the_profile_lacks_takes_no_step) {
  begin("tn3205,type-at=modify", "", IBV_QPT_RC);
  EXPECT_EQ(check_step(own_->core, IBV_QPS_RESET, IBV_QPS_INIT, 0, true), EOPNOTSUPP);
  begin("tn3205", "", IBV_QPT_UC);
  EXPECT_EQ(check_step(own_->core, IBV_QPS_RESET, IBV_QPS_INIT, 0, true), 0);
  EXPECT_EQ(check_step(own_->core, IBV_QPS_RESET, IBV_QPS_INIT, 0, false), EINVAL);
}

TEST_F(AttributesTest, only_what_the_mask_names_is_stored) {
  ibv_qp_attr from;
  std::memset(static_cast<void*>(&from), 0x11, sizeof from);
  const std::array<std::pair<int, std::function<bool(const ibv_qp_attr&)>>, 6> masks{{
      {IBV_QP_ACCESS_FLAGS, [](const auto& a) { return a.qp_access_flags == 0x11111111U; }},
      {IBV_QP_QKEY, [](const auto& a) { return a.qkey == 0x11111111U; }},
      {IBV_QP_TIMEOUT, [](const auto& a) { return a.timeout == 0x11; }},
      {IBV_QP_RQ_PSN, [](const auto& a) { return a.rq_psn == 0x11111111U; }},
      {IBV_QP_DEST_QPN, [](const auto& a) { return a.dest_qp_num == 0x11111111U; }},
      {IBV_QP_AV, [](const auto& a) { return a.ah_attr.grh.hop_limit == 0x11; }},
  }};
  for (size_t chosen = 0; chosen < masks.size(); ++chosen) {
    ibv_qp_attr into{};
    store_attributes(from, masks[chosen].first, into);
    for (size_t i = 0; i < masks.size(); ++i) {
      EXPECT_EQ(masks[i].second(into), i == chosen) << chosen << " " << i;
    }
  }
}

// --- Through a whole queue pair.

TEST_F(AttributesTest, query_tells_what_was_set_and_granted) {
  begin();
  End other(*device_, IBV_QPT_RC);
  connect(*end_, other);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  end_->qp().query(attributes, init);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.dest_qp_num, other.qpn());
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attributes.timeout, 14);
  EXPECT_EQ(attributes.rnr_retry, 7);
  EXPECT_EQ(attributes.cap.max_send_wr, 16U);
  EXPECT_EQ(attributes.cap.max_inline_data, 64U);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_EQ(init.sq_sig_all, 1);
}

TEST_F(AttributesTest, reset_forgets_them) {
  begin();
  End other(*device_, IBV_QPT_RC);
  connect(*end_, other);
  ASSERT_EQ(end_->to(IBV_QPS_RESET), 0);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  end_->qp().query(attributes, init);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(attributes.dest_qp_num, 0U);
  EXPECT_EQ(attributes.qp_access_flags, 0U);
  EXPECT_EQ(attributes.cap.max_send_wr, 16U);  // what it was made with stays
}

TEST_F(AttributesTest, current_state_that_is_not_the_current_one_refuses_the_step) {
  begin();
  End other(*device_, IBV_QPT_RC);
  connect(*end_, other);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.cur_qp_state = IBV_QPS_SQD;
  EXPECT_EQ(end_->qp().modify(attributes, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
  attributes.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(end_->qp().modify(attributes, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

TEST_F(AttributesTest, refused_attribute_leaves_the_others_as_they_were) {
  begin();
  End other(*device_, IBV_QPT_RC);
  connect(*end_, other);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  attributes.min_rnr_timer = 32;
  EXPECT_EQ(end_->qp().modify(attributes, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER), EINVAL);
  ibv_qp_init_attr init{};
  end_->qp().query(attributes, init);
  EXPECT_NE(attributes.qp_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_READ));
}

TEST_F(AttributesTest, drained_send_queue_is_announced_if_asked) {
  begin();
  End other(*device_, IBV_QPT_RC);
  connect(*end_, other);
  while (device_->next_event() != IBV_EVENT_CLIENT_REREGISTER) {
  }
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  attributes.en_sqd_async_notify = 1;
  ASSERT_EQ(end_->qp().modify(attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  EXPECT_EQ(device_->next_event(), IBV_EVENT_SQ_DRAINED);
  ASSERT_EQ(end_->to(IBV_QPS_RTS), 0);
  ASSERT_EQ(end_->to(IBV_QPS_SQD), 0);
  EXPECT_EQ(device_->next_event(), IBV_EVENT_CLIENT_REREGISTER);
}

TEST_F(AttributesTest, capabilities_out_of_range_make_no_queue_pair) {
  begin();
  ibv_qp handle{};
  const CompletionQueues queues{own_->sends, own_->receives, nullptr};
  const auto error_of = [&](const std::function<void(ibv_qp_init_attr&)>& change) {
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {1, 1, 1, 1, 0};
    change(wanted);
    const auto made = QueuePair::create(device_->pd(), queues, wanted, &handle);
    if (made) {
      (*made)->destroy();
    }
    return made ? 0 : made.error().value;
  };
  EXPECT_EQ(error_of([](auto&) {}), 0);
  EXPECT_EQ(error_of([](auto& a) { a.cap = {kMaxQueueDepth, kMaxQueueDepth, kMaxSge, kMaxSge, kMaxInlineBytes}; }), 0);
  EXPECT_EQ(error_of([](auto& a) { a.cap.max_send_wr = kMaxQueueDepth + 1; }), EINVAL);
  EXPECT_EQ(error_of([](auto& a) { a.cap.max_recv_wr = kMaxQueueDepth + 1; }), EINVAL);
  EXPECT_EQ(error_of([](auto& a) { a.cap.max_send_sge = kMaxSge + 1; }), EINVAL);
  EXPECT_EQ(error_of([](auto& a) { a.cap.max_recv_sge = kMaxSge + 1; }), EINVAL);
  EXPECT_EQ(error_of([](auto& a) { a.cap.max_inline_data = kMaxInlineBytes + 1; }), EINVAL);
  EXPECT_EQ(error_of([](auto& a) { a.qp_type = IBV_QPT_RAW_PACKET; }), EOPNOTSUPP);
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  EXPECT_EQ(QueuePair::create(device_->pd(), {nullptr, own_->receives, nullptr}, wanted, &handle).error().value,
            EINVAL);
  EXPECT_EQ(QueuePair::create(device_->pd(), {own_->sends, nullptr, nullptr}, wanted, &handle).error().value, EINVAL);
}

TEST_F(AttributesTest, queue_without_depth_is_granted_one) {
  begin();
  ibv_qp handle{};
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_UC;
  const auto made = *QueuePair::create(device_->pd(), {own_->sends, own_->receives, nullptr}, wanted, &handle);
  EXPECT_EQ(wanted.cap.max_send_wr, 1U);
  EXPECT_EQ(wanted.cap.max_recv_wr, 1U);
  EXPECT_EQ(wanted.cap.max_send_sge, 1U);
  made->destroy();
}

TEST_F(AttributesTest, step_to_rtr_may_be_refused_by_a_fault) {
  begin("", "rtr-errno errno ENODATA count 0-0");
  ASSERT_EQ(end_->to_init(), 0);
  EXPECT_EQ(end_->to_rtr(end_->qpn()), ENODATA);
  EXPECT_EQ(end_->state(), IBV_QPS_INIT);
  EXPECT_EQ(end_->to_rtr(end_->qpn()), 0);
}

// --- Every step, for every type: those of the table of 10.3.1, and no other one.

TEST_F(AttributesTest, states_lead_where_the_specification_has_them_lead) {
  constexpr std::array kStates{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                               IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
  // Without attributes; what needs some is refused even where the step is one.
  const auto is_bare_step = [](ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
      return true;
    }
    switch (from) {
      case IBV_QPS_INIT:
        return to == IBV_QPS_INIT || (type == IBV_QPT_UD && to == IBV_QPS_RTR);
      case IBV_QPS_RTS:
        return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
      case IBV_QPS_SQD:
        return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
      case IBV_QPS_SQE:
        return type != IBV_QPT_RC && to == IBV_QPS_RTS;
      default:
        return false;
    }
  };
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    for (const ibv_qp_state from : kStates) {
      if (from == IBV_QPS_SQE) {
        continue;  // no step leads there: a failed send does
      }
      for (const ibv_qp_state to : kStates) {
        begin("", "", type);
        const auto bring = [&] {
          const std::array<std::function<int()>, 3> steps{[&] { return end_->to_init(); },
                                                          [&] { return end_->to_rtr(end_->qpn()); },
                                                          [&] { return end_->to_rts(); }};
          const size_t many = from == IBV_QPS_INIT ? 1 : from == IBV_QPS_RTR ? 2 : from == IBV_QPS_RESET ? 0 : 3;
          int error = 0;
          for (size_t i = 0; i < many && error == 0; ++i) {
            error = steps[i]();
          }
          return error != 0 || from <= IBV_QPS_RTS ? error : end_->to(from);
        };
        ASSERT_EQ(bring(), 0) << type << " " << from;
        EXPECT_EQ(end_->to(to), is_bare_step(type, from, to) ? 0 : EINVAL) << type << ": " << from << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace ringbolt::device
