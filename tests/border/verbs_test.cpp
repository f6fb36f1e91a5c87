// Every call of libibverbs that needs memory, with each piece of it refused in turn.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "device.h"
#include "endpoint.h"
#include "failing_memory.h"
#include "handles.h"
#include "region.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

// Newer than some headers, or in none.
extern "C" {
struct ibv_buf;
void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buffer);
void ibv_free_buf(ibv_buf* buffer);
int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size);
}

namespace ringbolt::border {
namespace {

using conformance::Endpoint;
using conformance::QpOptions;

class VerbsBorder : public testing::Test {
 protected:
  conformance::Device device = conformance::open_device();
  conformance::Pd pd = conformance::make_pd(device);
  alignas(4096) std::array<unsigned char, 16384> memory{};

  ibv_context* context() const { return device.context.get(); }

  /// A call that makes something, and the one that ends it.
  template <class Make, class End>
  void make_and_end(const char* what, Make make, End end) {
    decltype(make()) made = nullptr;
    survive(
        what,
        [&] {
          made = make();
          return error_of(made);
        },
        [&] { EXPECT_EQ(end(made), 0) << what; });
    succeed(
        what, [&] { made = make(); }, [&] { return end(made); });
  }

  ibv_qp_init_attr attributes_of(ibv_cq* cq, ibv_qp_type type) const {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {16, 16, 2, 2, 64};
    wanted.qp_type = type;
    return wanted;
  }
};

TEST_F(VerbsBorder, list_of_devices) {
  ibv_device** list = nullptr;
  int count = 0;
  survive(
      "ibv_get_device_list",
      [&] {
        list = (ibv_get_device_list)(&count);
        return error_of(list);
      },
      [&] {
        EXPECT_GE(count, 1);
        ibv_free_device_list(list);
      });
}

TEST_F(VerbsBorder, device) {
  make_and_end(
      "ibv_open_device", [&] { return ibv_open_device(context()->device); }, ibv_close_device);
}

/// Where no other device is open the process itself is set up, too.
TEST(FirstDeviceBorder, device) {
  ibv_device** list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  ibv_context* opened = nullptr;
  survive(
      "the first ibv_open_device",
      [&] {
        opened = ibv_open_device(list[0]);
        return error_of(opened);
      },
      [&] { EXPECT_EQ(ibv_close_device(opened), 0); });
  ibv_free_device_list(list);
}

TEST_F(VerbsBorder, protection_domain_channel_and_memory) {
  make_and_end(
      "ibv_alloc_pd", [&] { return ibv_alloc_pd(context()); }, ibv_dealloc_pd);
  make_and_end(
      "ibv_create_comp_channel", [&] { return ibv_create_comp_channel(context()); }, ibv_destroy_comp_channel);
  make_and_end(
      "ibv_reg_mr", [&] { return (ibv_reg_mr)(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE); },
      ibv_dereg_mr);
  make_and_end(
      "ibv_alloc_mw", [&] { return ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1); },
      [](ibv_mw* mw) { return ibv_dealloc_mw(mw); });
}

TEST_F(VerbsBorder, queues) {
  const auto channel = conformance::make_channel(device);
  make_and_end(
      "ibv_create_cq", [&] { return ibv_create_cq(context(), 16, nullptr, channel.get(), 0); }, ibv_destroy_cq);
  make_and_end(
      "ibv_create_cq_ex",
      [&] {
        ibv_cq_init_attr_ex wanted{};
        wanted.cqe = 16;
        return ibv_create_cq_ex(context(), &wanted);
      },
      [](ibv_cq_ex* cq) { return ibv_destroy_cq(ibv_cq_ex_to_cq(cq)); });
  make_and_end(
      "ibv_create_srq",
      [&] {
        ibv_srq_init_attr wanted{};
        wanted.attr = {16, 2, 0};
        return ibv_create_srq(pd.get(), &wanted);
      },
      ibv_destroy_srq);
}

TEST_F(VerbsBorder, queue_pairs) {
  const auto cq = conformance::make_cq(device, 64);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    make_and_end(
        "ibv_create_qp",
        [&] {
          ibv_qp_init_attr wanted = attributes_of(cq.get(), type);
          return ibv_create_qp(pd.get(), &wanted);
        },
        ibv_destroy_qp);
  }
  make_and_end(
      "ibv_create_qp_ex",
      [&] {
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = wanted.recv_cq = cq.get();
        wanted.cap = {16, 16, 2, 2, 64};
        wanted.qp_type = IBV_QPT_RC;
        wanted.pd = pd.get();
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
        return ibv_create_qp_ex(context(), &wanted);
      },
      ibv_destroy_qp);
}

/// Two queue pairs of this process, with memory and a message of 8 bytes for it.
class Couple {
 public:
  Couple(const conformance::Device& device, ibv_qp_type type, ibv_comp_channel* channel = nullptr)
      : cq_(conformance::make_cq(device, 64, channel)),
        pd_(conformance::make_pd(device)),
        one(device, options(type), parts()),
        other(device, options(type), parts()),
        region_(pd_.get(), 4096),
        ah_(type == IBV_QPT_UD ? conformance::make_ah(device, pd_.get(), device.gid) : nullptr) {}

  ibv_cq* cq() const { return cq_.get(); }
  void connect() { conformance::connect(one, other); }

  int post_receive() {
    ibv_sge piece = region_.sge(0, 256);
    ibv_recv_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(other.qp(), &request, &bad);
  }
  /// The request's address says whether a refusal names it.
  int post_send() {
    ibv_sge piece = region_.sge(1024, 8);
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    if (ah_ != nullptr) {
      request.wr.ud = {ah_.get(), other.qp()->qp_num, conformance::kQkey};
    }
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(one.qp(), &request, &bad);
    return error != 0 && bad != &request ? EBADMSG : error;
  }
  /// Both completions of a message.
  void expect_both() {
    for (const ibv_wc& completion : conformance::wait_completions(cq(), 2)) {
      EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    }
  }
  void expect_that_a_message_goes() {
    ASSERT_EQ(post_receive(), 0);
    ASSERT_EQ(post_send(), 0);
    expect_both();
  }

 private:
  static QpOptions options(ibv_qp_type type) {
    QpOptions options;
    options.type = type;
    return options;
  }
  conformance::Parts parts() const { return {pd_.get(), cq_.get(), cq_.get(), nullptr}; }

  conformance::Cq cq_;
  conformance::Pd pd_;

 public:
  Endpoint one;
  Endpoint other;

 private:
  conformance::Region region_;
  conformance::Ah ah_;
};

class CoupleBorder : public VerbsBorder, public testing::WithParamInterface<ibv_qp_type> {};

std::string name_of(const testing::TestParamInfo<ibv_qp_type>& info) {
  return info.param == IBV_QPT_RC ? "RC" : info.param == IBV_QPT_UC ? "UC" : "UD";
}
INSTANTIATE_TEST_SUITE_P(All, CoupleBorder, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), name_of);

TEST_P(CoupleBorder, steps_leave_a_queue_pair_as_it_was) {
  Couple couple(device, GetParam());
  ASSERT_EQ(couple.other.to_init(), 0);
  ASSERT_EQ(couple.other.to_rtr(couple.one.address()), 0);
  ASSERT_EQ(couple.other.to_rts(), 0);
  Endpoint& one = couple.one;
  const auto is_in = [&](ibv_qp_state state) {
    return [&, state] {
      EXPECT_EQ(one.state(), state);
      EXPECT_EQ(one.qp()->state, state);
    };
  };
  const auto reset = [&] { EXPECT_EQ(one.to_state(IBV_QPS_RESET), 0); };
  survive(
      "RESET to INIT", [&] { return one.to_init(); }, reset, kNothing);
  ASSERT_EQ(one.state(), IBV_QPS_RESET);
  ASSERT_EQ(one.to_init(), 0);
  const auto back_to_init = [&] {
    reset();
    EXPECT_EQ(one.to_init(), 0);
  };
  survive(
      "INIT to RTR", [&] { return one.to_rtr(couple.other.address()); }, back_to_init, is_in(IBV_QPS_INIT));
  ASSERT_EQ(one.to_rtr(couple.other.address()), 0);
  const auto back_to_rtr = [&] {
    back_to_init();
    EXPECT_EQ(one.to_rtr(couple.other.address()), 0);
  };
  survive(
      "RTR to RTS", [&] { return one.to_rts(); }, back_to_rtr, is_in(IBV_QPS_RTR));
  reset();
  ASSERT_EQ(couple.other.to_state(IBV_QPS_RESET), 0);
  couple.connect();
  couple.expect_that_a_message_goes();
  succeed(
      "to ERR",
      [&] {
        EXPECT_EQ(one.to_state(IBV_QPS_RESET), 0);
        ASSERT_EQ(one.to_init(), 0);
      },
      [&] { return one.to_state(IBV_QPS_ERR); });
  succeed("to RESET", kNothing, [&] { return one.to_state(IBV_QPS_RESET); });
}

TEST_P(CoupleBorder, messages) {
  Couple couple(device, GetParam());
  couple.connect();
  couple.expect_that_a_message_goes();
  survive(
      "ibv_post_recv", [&] { return couple.post_receive(); },
      [&] {
        EXPECT_EQ(couple.post_send(), 0);
        couple.expect_both();
      });
  ASSERT_EQ(couple.post_receive(), 0);
  survive(
      "ibv_post_send", [&] { return couple.post_send(); },
      [&] {
        couple.expect_both();
        EXPECT_EQ(couple.post_receive(), 0);
      });
  const auto post_both = [&] {
    EXPECT_EQ(couple.post_receive(), 0);
    EXPECT_EQ(couple.post_send(), 0);
  };
  succeed("ibv_poll_cq", post_both, [&] {
    std::array<ibv_wc, 2> completions{};
    for (int found = 0; found < 2;) {
      const int more = ibv_poll_cq(couple.cq(), 2 - found, &completions[static_cast<size_t>(found)]);
      if (more < 0) {
        return EIO;
      }
      found += more;
    }
    return completions[0].status == IBV_WC_SUCCESS && completions[1].status == IBV_WC_SUCCESS ? 0 : EBADMSG;
  });
}

/// The first datagram to a queue pair makes the way there. Where memory is short it may get lost, as datagrams do; the
/// next one arrives.
TEST_F(VerbsBorder, first_datagram) {
  for (uint32_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    Couple couple(device, IBV_QPT_UD);
    couple.connect();
    ASSERT_EQ(couple.post_receive(), 0);
    ASSERT_EQ(couple.post_receive(), 0);
    int error = 0;
    bool has_struck = false;
    {
      const Shortage shortage(nth);
      error = couple.post_send();
      has_struck = shortage.has_struck();
    }
    ASSERT_TRUE(error == 0 || (error == ENOMEM && has_struck)) << std::strerror(error);
    ASSERT_EQ(couple.post_send(), 0);
    const size_t sends = error == 0 ? 2 : 1;
    for (const ibv_wc& completion : conformance::wait_completions(couple.cq(), sends + 1)) {
      EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    }
    if (HasFailure() || !has_struck) {
      return;
    }
  }
}

TEST_F(VerbsBorder, completion_queue_that_was_not_resized_works) {
  Couple couple(device, IBV_QPT_RC);
  couple.connect();
  ASSERT_EQ(couple.post_receive(), 0);
  ASSERT_EQ(couple.post_send(), 0);
  const int before = couple.cq()->cqe;
  survive(
      "ibv_resize_cq", [&] { return ibv_resize_cq(couple.cq(), 128); },
      [&] { EXPECT_EQ(ibv_resize_cq(couple.cq(), before), 0); }, [&] { EXPECT_EQ(couple.cq()->cqe, before); });
  couple.expect_both();
  couple.expect_that_a_message_goes();
}

TEST_F(VerbsBorder, shared_receive_queue_that_was_not_resized_works) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {16, 2, 0};
  const conformance::Srq srq(ibv_create_srq(pd.get(), &wanted));
  ASSERT_NE(srq, nullptr);
  const auto resize = [&](uint32_t depth) {
    ibv_srq_attr attributes{};
    attributes.max_wr = depth;
    return ibv_modify_srq(srq.get(), &attributes, IBV_SRQ_MAX_WR);
  };
  survive(
      "ibv_modify_srq", [&] { return resize(32); }, [&] { EXPECT_EQ(resize(16), 0); },
      [&] {
        ibv_srq_attr now{};
        EXPECT_EQ(ibv_query_srq(srq.get(), &now), 0);
        EXPECT_EQ(now.max_wr, 16U);
      });
}

TEST_F(VerbsBorder, region_that_was_not_registered_anew_is_as_before) {
  const auto region = conformance::register_memory(pd.get(), memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
  const auto again = [&](size_t length) {
    return ibv_rereg_mr(region.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data(), length, 0) == 0 ? 0
                                                                                                               : errno;
  };
  survive(
      "ibv_rereg_mr", [&] { return again(8192); }, [&] { EXPECT_EQ(again(4096), 0); },
      [&] { EXPECT_EQ(region->length, 4096U); });
}

TEST_F(VerbsBorder, buffers) {
  ibv_buf* buffer = nullptr;
  void* address = nullptr;
  survive(
      "ibv_alloc_buf",
      [&] {
        address = ibv_alloc_buf(pd.get(), 65536, &buffer);
        return error_of(address);
      },
      [&] { ibv_free_buf(buffer); });
  succeed(
      "ibv_free_buf", [&] { ASSERT_NE(ibv_alloc_buf(pd.get(), 65536, &buffer), nullptr); },
      [&] {
        ibv_free_buf(buffer);
        return 0;
      });
}

TEST_F(VerbsBorder, address_handles) {
  ibv_ah_attr vector = conformance::address_vector(device, device.gid);
  make_and_end(
      "ibv_create_ah", [&] { return ibv_create_ah(pd.get(), &vector); }, ibv_destroy_ah);
}

TEST_F(VerbsBorder, questions) {
  const auto cq = conformance::make_cq(device, 16);
  ibv_gid gid{};
  ibv_port_attr port{};
  ibv_device_attr attributes{};
  ibv_device_attr_ex extended{};
  std::array<ibv_gid_entry, 256> entries{};
  std::array<char, 256> text{};
  survive(
      "ibv_query_device", [&] { return ibv_query_device(context(), &attributes); }, kNothing);
  survive(
      "ibv_query_device_ex", [&] { return ibv_query_device_ex(context(), nullptr, &extended); }, kNothing);
  survive(
      "ibv_query_port", [&] { return ibv_query_port(context(), 1, &port); }, kNothing);
  survive(
      "ibv_query_gid", [&] { return error_of(ibv_query_gid(context(), 1, device.gid_index, &gid)); }, kNothing);
  survive(
      "ibv_query_gid_ex", [&] { return ibv_query_gid_ex(context(), 1, device.gid_index, entries.data(), 0); },
      kNothing);
  survive(
      "ibv_query_gid_table",
      [&] {
        const auto found = ibv_query_gid_table(context(), entries.data(), entries.size(), 0);
        return found > 0 ? 0 : static_cast<int>(-found);
      },
      kNothing);
  survive(
      "ibv_read_sysfs_file",
      [&] {
        const int length = ibv_read_sysfs_file("/proc/self/a_folder_with_a_name_that_needs_memory/..", "/../comm",
                                               text.data(), text.size());
        return length < 0 && errno == ENOMEM ? ENOMEM : 0;
      },
      kNothing);
  survive(
      "ibv_req_notify_cq", [&] { return ibv_req_notify_cq(cq.get(), 0); }, kNothing);
}

TEST_F(VerbsBorder, no_event_of_a_channel_is_lost) {
  const auto channel = conformance::make_channel(device);
  Couple couple(device, IBV_QPT_RC, channel.get());
  couple.connect();
  const auto arm_and_post = [&] {
    ASSERT_EQ(ibv_req_notify_cq(couple.cq(), 0), 0);
    ASSERT_EQ(couple.post_receive(), 0);
  };
  succeed("what raises an event", arm_and_post, [&] {
    if (const int error = couple.post_send()) {
      return error;
    }
    std::array<ibv_wc, 2> completions{};
    for (int found = 0; found < 2;) {
      found += ibv_poll_cq(couple.cq(), 2 - found, &completions[static_cast<size_t>(found)]);
    }
    ibv_cq* raised = nullptr;
    void* of_program = nullptr;
    const int error = error_of(ibv_get_cq_event(channel.get(), &raised, &of_program));
    ibv_ack_cq_events(couple.cq(), 1);
    return error;
  });
}

TEST_F(VerbsBorder, no_asynchronous_event_is_lost) {
  Couple couple(device, IBV_QPT_RC);
  couple.connect();
  conformance::set_nonblocking(context()->async_fd);
  const auto back_to_work = [&] { EXPECT_EQ(couple.one.to_state(IBV_QPS_RTS), 0); };
  succeed("what drains a send queue", back_to_work, [&] {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_SQD;
    attributes.en_sqd_async_notify = 1;
    if (const int error = ibv_modify_qp(couple.one.qp(), &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY)) {
      return error;
    }
    ibv_async_event event{};
    if (ibv_get_async_event(context(), &event) != 0) {
      return errno;
    }
    ibv_ack_async_event(&event);
    return event.event_type == IBV_EVENT_SQ_DRAINED ? 0 : EBADMSG;
  });
}

}  // namespace
}  // namespace ringbolt::border
