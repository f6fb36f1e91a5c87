// RC delivers every byte, once and in order, whatever befalls its frames; UC delivers whole messages or none.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "deadline.h"
#include "faulty_device.h"
#include "pattern.h"

namespace ringbolt::faults {
namespace {

using namespace conformance;

constexpr uint32_t kMostBytes = 24'000;
constexpr uint32_t kWindow = 16;
constexpr uint32_t kReceives = 64;
constexpr auto kOnItsWay = std::chrono::milliseconds(20);
constexpr auto kPatience = std::chrono::seconds(60);

std::string plan_of(const std::string& kind, const std::string& chance) {
  return kind + " " + chance + (kind == "delay" ? " by 300us jitter 200us" : "") + " direction send";
}

QpOptions options_of(ibv_qp_type type) {
  QpOptions options;
  options.type = type;
  options.recv_wr = kReceives;
  options.retry_cnt = 7;
  return options;
}

/// Two queue pairs of this process with verified messages between them. Message i has length_of(i) bytes of pattern i.
class Pair {
 public:
  Pair(ibv_qp_type type, uint32_t most_bytes)
      : most_bytes_(most_bytes),
        device_(open_device()),
        near_(device_, options_of(type)),
        far_(device_, options_of(type)),
        outgoing_(near_.pd(), size_t{kWindow} * most_bytes),
        incoming_(far_.pd(), size_t{kReceives} * most_bytes),
        written_(far_.pd(), size_t{kWindow} * most_bytes),
        read_back_(near_.pd(), size_t{kWindow} * most_bytes) {
    connect(near_, far_);
    for (uint32_t slot = 0; slot < kReceives; ++slot) {
      post(slot);
    }
  }

  uint32_t length_of(uint32_t message) const { return 1 + message * 7919 % most_bytes_; }

  void send(uint32_t message) {
    const uint64_t at = uint64_t{message % kWindow} * most_bytes_;
    fill_pattern(outgoing_.bytes().subspan(at, length_of(message)), message);
    SendWr wr(message, IBV_WR_SEND_WITH_IMM, {outgoing_.sge(at, length_of(message))});
    ASSERT_EQ(wr.immediate(message).post(near_.qp()), 0);
  }

  /// Writes the message into the peer's memory and reads it back.
  void write_and_read(uint32_t message) {
    const uint64_t at = uint64_t{message % kWindow} * most_bytes_;
    const uint32_t length = length_of(message);
    fill_pattern(outgoing_.bytes().subspan(at, length), message);
    SendWr write(message, IBV_WR_RDMA_WRITE, {outgoing_.sge(at, length)}, 0);
    ASSERT_EQ(write.remote(written_.address(at), written_.rkey()).post(near_.qp()), 0);
    SendWr read(message, IBV_WR_RDMA_READ, {read_back_.sge(at, length)});
    ASSERT_EQ(read.remote(written_.address(at), written_.rkey()).post(near_.qp()), 0);
  }

  /// What has arrived and what is done, since the beginning; every byte of it is compared.
  void take() {
    ibv_wc wc{};
    while (ibv_poll_cq(far_.recv_cq(), 1, &wc) == 1) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      const uint32_t message = ntohl(wc.imm_data);
      EXPECT_GE(static_cast<int64_t>(message), next_) << "out of order, or twice";
      next_ = static_cast<int64_t>(message) + 1;
      ASSERT_EQ(wc.byte_len, length_of(message));
      EXPECT_EQ(first_mismatch(incoming_.bytes().subspan(wc.wr_id * most_bytes_, wc.byte_len), message), -1)
          << "message " << message;
      ++received;
      post(static_cast<uint32_t>(wc.wr_id));
    }
    while (ibv_poll_cq(near_.send_cq(), 1, &wc) == 1) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << describe(wc);
      if (wc.opcode == IBV_WC_RDMA_READ) {
        const auto message = static_cast<uint32_t>(wc.wr_id);
        const uint64_t at = uint64_t{message % kWindow} * most_bytes_;
        EXPECT_EQ(first_mismatch(read_back_.bytes().subspan(at, length_of(message)), message), -1);
      }
      ++done;
    }
  }

  bool has_seen(uint32_t message) const { return next_ > static_cast<int64_t>(message); }

  uint32_t received = 0;
  uint32_t done = 0;

 private:
  void post(uint32_t slot) {
    ASSERT_EQ(post_recv(far_.qp(), slot, {incoming_.sge(uint64_t{slot} * most_bytes_, most_bytes_)}), 0);
  }

  uint32_t most_bytes_;
  Device device_;
  Endpoint near_;
  Endpoint far_;
  Region outgoing_;
  Region incoming_;
  Region written_;
  Region read_back_;
  int64_t next_ = 0;
};

/// Keeps a window of messages in flight; every third goes by WRITE and READ where `is_reliable`.
void run(Pair& pair, uint32_t messages, bool is_reliable) {
  const Deadline deadline(kPatience);
  uint32_t sends = 0;
  for (uint32_t posted = 0; posted < messages || pair.done < messages;) {
    if (posted < messages && posted - pair.done < kWindow) {
      const bool is_one_sided = is_reliable && posted % 3 == 2;
      sends += is_one_sided ? 0 : 1;
      is_one_sided ? pair.write_and_read(posted) : pair.send(posted);
      ++posted;
      if (!is_reliable && posted % kWindow == 0) {
        // Nothing paces a sender that loses: so that none lacks a receive, a batch ends with its last message, or, if
        // that is lost, when nothing can be on its way any more.
        wait_until([&] { return pair.take(), pair.has_seen(posted - 1); }, Deadline(kOnItsWay));
      }
      continue;
    }
    pair.take();
    ASSERT_FALSE(testing::Test::HasFailure());
    ASSERT_FALSE(deadline.has_passed()) << pair.done << " of " << messages << " done";
  }
  if (is_reliable) {
    ASSERT_TRUE(wait_until([&] { return pair.take(), pair.received >= sends; }, deadline))
        << pair.received << " of " << sends;
    EXPECT_EQ(pair.received, sends);
  }
}

class Connections : public testing::TestWithParam<const char*> {};

TEST_P(Connections, reliable_ones_deliver_every_byte_once_and_in_order) {
  for (const char* chance : kChances) {
    const std::string plan = plan_of(GetParam(), chance);
    SCOPED_TRACE(plan);
    const std::string said = with_faults(plan, [] {
      Pair pair(IBV_QPT_RC, kMostBytes);
      run(pair, 1000, true);
    });
    EXPECT_GT(count_in(said, "faults on sending", "frames"), 3000U) << said;
  }
}

TEST_P(Connections, unreliable_ones_deliver_whole_messages_or_none) {
  const std::string kind = GetParam();
  const char* const words[] = {"lost", "reordered", "corrupted", "truncated", "delayed"};
  for (const char* chance : kChances) {
    const std::string plan = plan_of(kind, chance);
    SCOPED_TRACE(plan);
    constexpr uint32_t kMessages = 4000;
    // One packet each: a frame that is harmed or late costs its own message and no other. Pairs of pages are checked
    // by the simulator.
    const int counts = memfd_create("counts", MFD_CLOEXEC);
    const std::string said = with_faults(plan, [&] {
      Pair pair(IBV_QPT_UC, 1000);
      run(pair, kMessages, false);
      // What still comes comes soon; a plan that loses none is known to be through.
      wait_until([&] { return pair.take(), pair.received == kMessages; }, Deadline(std::chrono::milliseconds(200)));
      ASSERT_EQ(write(counts, &pair.received, sizeof pair.received), static_cast<ssize_t>(sizeof pair.received));
    });
    uint32_t received = 0;
    ASSERT_EQ(pread(counts, &received, sizeof received, 0), static_cast<ssize_t>(sizeof received)) << said;
    close(counts);
    unsigned long affected = 0;
    for (const char* word : words) {
      affected += count_in(said, "faults on sending", word);
    }
    EXPECT_LE(kMessages - received, affected) << said;
    if (kind == "loss" || kind == "corrupt" || kind == "truncate") {
      // But for the few frames that are no messages, and the byte that the ICRC leaves out.
      EXPECT_GE((kMessages - received) * 10 + 50, affected * 9) << said;
    } else if (kind == "duplicate") {
      EXPECT_EQ(received, kMessages) << said;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Connections,
                         testing::Values("loss", "duplicate", "reorder", "corrupt", "truncate", "delay"),
                         [](const auto& one) { return std::string(one.param); });

/// What a program sees that has no list of devices.
int open_errno(const char* variable, const char* value) {
  setenv(variable, value, 1);
  int count = 0;
  errno = 0;
  ibv_device** list = ibv_get_device_list(&count);
  const int error = errno;
  if (list != nullptr) {
    ibv_free_device_list(list);
  }
  return list != nullptr ? 0 : error;
}

TEST(Setting, refused_values_name_the_variable_and_the_remedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"los 1%", "ringbolt: RINGBOLT_FAULTS: line 1: \"los\" is no fault"},
      {"loss 1% port rdma_eth9", "\"loss 1% port rdma_eth9\" fits none of the ports"},
      {"loss 1% node 0", "fits none of the ports"},
      {"/nowhere/faults", "/nowhere/faults: open:"}};
  for (const auto& [value, message] : cases) {
    const std::string said = with_faults(value, [&] { EXPECT_NE(open_errno("RINGBOLT_FAULTS", value), 0); });
    EXPECT_NE(said.find(message), std::string::npos) << said;
  }
}

TEST(Setting, memory_has_no_frames_and_says_so) {
  const std::string said = with_faults("loss 1%", [] {
    unsetenv("RINGBOLT_NETDEVS");
    EXPECT_EQ(open_errno("RINGBOLT_FAULTS", "loss 1%"), EOPNOTSUPP);
  });
  EXPECT_NE(said.find("shared memory, which carries no frames"), std::string::npos) << said;
}

TEST(Setting, loopback_takes_memory_or_network_only) {
  const std::string said = with_faults("", [] { EXPECT_EQ(open_errno("RINGBOLT_LOOPBACK", "netwrk"), EINVAL); });
  EXPECT_NE(said.find("RINGBOLT_LOOPBACK=netwrk"), std::string::npos) << said;
  EXPECT_NE(said.find("say memory (the default) or network"), std::string::npos) << said;
  for (const char* value : {"memory", "network"}) {
    with_faults("", [&] { EXPECT_EQ(open_errno("RINGBOLT_LOOPBACK", value), 0); });
  }
}

}  // namespace
}  // namespace ringbolt::faults
