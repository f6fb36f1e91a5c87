#include "link/udp_faults.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>

#include "fault/plan_text.h"
#include "link/udp_test_support.h"
#include "trace/recorder.h"
#include "trace/trace_file.h"
#include "wire/bytes.h"

namespace ringbolt::link {
namespace {

using namespace testing;

constexpr size_t kLength = 64;  // BTH to pad
constexpr uint32_t kFrames = 2000;

UdpPath over_loopback(UdpPath path) {
  path.interface_index = if_nametoindex("lo");
  return path;
}

fault::Plan plan_of(const std::string& text) {
  auto plan = fault::parse_plan(text);
  EXPECT_TRUE(plan) << plan.error().text();
  return plan ? *plan : fault::Plan{};
}

void set_faults(UdpEndpoint& endpoint, const std::string& text) {
  const UdpFaultPort port{if_nametoindex("lo"), {{}, {}, "rdma_lo"}};
  endpoint.set_faults(plan_of(text), {&port, 1});
}

/// What the plan says of the first frames.
std::vector<fault::Verdict> expected(const std::string& text, fault::Direction direction, size_t frames) {
  fault::Stream stream({{}, {}, "rdma_lo"}, direction);
  stream.set_rules(plan_of(text), 0);
  std::vector<fault::Verdict> verdicts(frames);
  for (fault::Verdict& verdict : verdicts) {
    verdict = stream.judge(kLength + 4, 0);
  }
  return verdicts;
}

/// Sends `frames` numbered packets and returns those that came in by `wait_ns` after the last one came.
std::vector<Seen> exchange(UdpEndpoint& endpoint, const UdpPath& path, uint32_t frames, size_t count) {
  std::vector<Seen> seen;
  const auto take = [&] {
    endpoint.receive(
        [&seen](const UdpEndpoint::Arrived& arrived) {
          seen.push_back({arrived.flow, 0, arrived.segment, {arrived.packet.begin(), arrived.packet.end()}, {}});
        },
        64, true);
  };
  UdpBatch batch(endpoint);
  for (uint32_t i = 0; i < frames; ++i) {
    const auto packet = numbered_packet(qpn_of(3), i, kLength);
    if (!put(batch, path, packet)) {
      EXPECT_EQ(batch.flush().left, 0U);
      take();
      EXPECT_TRUE(put(batch, path, packet));
    }
  }
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  do {
    EXPECT_EQ(batch.flush().left, 0U);
    take();
  } while ((seen.size() < count || endpoint.has_late_packets(UINT64_MAX - 1)) && base::now_ns() < deadline);
  take();
  return seen;
}

std::vector<uint32_t> numbers_of(const std::vector<Seen>& all) {
  std::vector<uint32_t> numbers;
  for (const Seen& seen : all) {
    if (wire::check_icrc(seen.flow, seen.packet)) {
      numbers.push_back(number_of(seen.packet));
      EXPECT_TRUE(std::ranges::equal(numbered_packet(qpn_of(3), numbers.back(), kLength),
                                     std::span(seen.packet).first(kLength)));
    }
  }
  return numbers;
}

class UdpFaultsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(UdpFaultsTest, exactly_the_frames_of_the_plan_are_lost_and_doubled) {
  const std::string way = GetParam();
  in_own_network([&] {
    for (const UdpPath& path : {over_loopback(ipv4_path()), over_loopback(ipv6_path())}) {
      const SlotsFolder folder;
      const auto endpoint = folder.open(3);
      const std::string plan = "loss 10% direction " + way + "; duplicate 10% direction " + way;
      set_faults(*endpoint, plan);
      std::vector<uint32_t> wanted;
      const auto direction = way == "send" ? fault::Direction::send : fault::Direction::receive;
      const auto verdicts = expected(plan, direction, kFrames);
      for (uint32_t i = 0; i < kFrames; ++i) {
        wanted.insert(wanted.end(), verdicts[i].is_lost ? 0 : 1 + verdicts[i].copies, i);
      }
      EXPECT_GT(wanted.size(), kFrames * 9 / 10);
      EXPECT_EQ(numbers_of(exchange(*endpoint, path, kFrames, wanted.size())), wanted);
    }
  });
}

TEST_P(UdpFaultsTest, damaged_frames_arrive_with_an_icrc_that_does_not_fit) {
  const std::string way = GetParam();
  in_own_network([&] {
    for (const UdpPath& path : {over_loopback(ipv4_path()), over_loopback(ipv6_path())}) {
      const SlotsFolder folder;
      const auto endpoint = folder.open(3);
      // In the middle of a batch, so that those around it are segments of one call.
      set_faults(*endpoint, "corrupt 100% frames 5-5 direction " + way + "; truncate 100% frames 9-9 direction " + way);
      const auto seen = exchange(*endpoint, path, 16, 15);
      EXPECT_EQ(numbers_of(seen), (std::vector<uint32_t>{0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 15}));
      // The corrupt one may have lost its way by a bit of its QPN, the short one is a runt but for one length in four.
      EXPECT_LE(seen.size(), 16U);
    }
  });
}

TEST_P(UdpFaultsTest, so_many_frames_overtake_and_the_last_come_at_their_time) {
  const std::string way = GetParam();
  in_own_network([&] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    set_faults(*endpoint, "reorder 100% by 3 within 10s frames 2-2 direction " + way +
                              "; reorder 100% by 3 within 30ms frames 9-9 direction " + way);
    const uint64_t before = base::now_ns();
    const auto seen = exchange(*endpoint, over_loopback(ipv6_path()), 10, 10);
    EXPECT_GE(base::now_ns() - before, 30'000'000U);
    EXPECT_LT(base::now_ns() - before, 10'000'000'000U);
    EXPECT_EQ(numbers_of(seen), (std::vector<uint32_t>{0, 1, 3, 4, 5, 2, 6, 7, 8, 9}));
  });
}

TEST_P(UdpFaultsTest, delayed_frames_make_the_descriptor_readable_when_nothing_else_does) {
  const std::string way = GetParam();
  in_own_network([&] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    set_faults(*endpoint, "delay 100% by 50ms direction " + way);
    const uint64_t before = base::now_ns();
    UdpBatch batch(*endpoint);
    for (uint32_t i = 0; i < 10; ++i) {
      ASSERT_TRUE(put(batch, over_loopback(ipv6_path()), numbered_packet(qpn_of(3), i, kLength)));
    }
    std::vector<uint32_t> numbers;
    while (numbers.size() < 10 && base::now_ns() < before + kPatienceNs) {
      batch.flush();
      endpoint->receive([&](const UdpEndpoint::Arrived& arrived) { numbers.push_back(number_of(arrived.packet)); }, 64,
                        true);
      if (numbers.empty()) {
        pollfd waiting{endpoint->descriptor(), POLLIN, 0};
        EXPECT_EQ(poll(&waiting, 1, kPatienceNs / 1'000'000), 1);
      }
    }
    EXPECT_GE(base::now_ns() - before, 50'000'000U);
    std::vector<uint32_t> wanted(10);
    std::iota(wanted.begin(), wanted.end(), 0U);
    EXPECT_EQ(numbers, wanted);
    EXPECT_FALSE(is_readable(endpoint->descriptor()));
  });
}

TEST_P(UdpFaultsTest, clearing_lets_go_what_is_held_back_and_turns_the_layer_off) {
  const std::string way = GetParam();
  in_own_network([&] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    set_faults(*endpoint, "delay 100% by 10s direction " + way);
    const UdpPath path = over_loopback(ipv6_path());
    UdpBatch batch(*endpoint);
    for (uint32_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(put(batch, path, numbered_packet(qpn_of(3), i, kLength)));
    }
    batch.flush();
    EXPECT_EQ(drain(*endpoint), way == "send" ? 0U : 5U);  // counted as they come in, not as they are handed over
    set_faults(*endpoint, "");
    EXPECT_TRUE(is_readable(endpoint->descriptor()));
    EXPECT_EQ(numbers_of(exchange(*endpoint, path, 0, 5)).size(), 5U);
    EXPECT_FALSE(endpoint->has_late_packets(UINT64_MAX - 1));
    EXPECT_EQ(numbers_of(exchange(*endpoint, path, 100, 100)).size(), 100U);
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, UdpFaultsTest, ::testing::Values("send", "receive"),
                         [](const auto& one) { return one.param; });

TEST(UdpFaults, other_interfaces_and_ports_are_left_alone) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    set_faults(*endpoint, "loss 100% port rdma_other");
    EXPECT_EQ(exchange(*endpoint, over_loopback(ipv4_path()), 100, 100).size(), 100U);
    const UdpFaultPort other{if_nametoindex("lo") + 1, {{}, {}, "rdma_lo"}};
    endpoint->set_faults(plan_of("loss 100%"), {&other, 1});
    EXPECT_EQ(exchange(*endpoint, over_loopback(ipv4_path()), 100, 100).size(), 100U);
  });
}

TEST(UdpFaults, more_frames_than_a_batch_has_room_for_leave_late_in_order_and_once) {
  in_own_network([] {
    constexpr uint32_t kHeld = 100;  // a batch holds fifteen of that length
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    set_faults(*endpoint, "delay 100% by 5ms direction send");
    UdpBatch batch(*endpoint);
    for (uint32_t i = 0; i < kHeld; ++i) {
      if (const auto frame = numbered_packet(qpn_of(3), i, 4096); !put(batch, over_loopback(ipv6_path()), frame)) {
        batch.flush();  // those whose time has come already
        ASSERT_TRUE(put(batch, over_loopback(ipv6_path()), frame));
      }
    }
    std::vector<uint32_t> numbers;
    for (const uint64_t deadline = base::now_ns() + kPatienceNs; numbers.size() < kHeld && base::now_ns() < deadline;) {
      batch.flush();
      endpoint->receive([&](const UdpEndpoint::Arrived& arrived) { numbers.push_back(number_of(arrived.packet)); }, 64,
                        true);
    }
    std::vector<uint32_t> wanted(kHeld);
    std::iota(wanted.begin(), wanted.end(), 0U);
    EXPECT_EQ(numbers, wanted);
    EXPECT_FALSE(endpoint->has_late_packets(UINT64_MAX - 1));
    EXPECT_TRUE(batch.is_empty());
  });
}

/// A BTH alone, which ends where its memory does. What was at fault is in the timeline, by its queue pair and PSN.
TEST(UdpFaults, no_byte_behind_a_packet_is_read_to_record_a_fault) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const std::span first(static_cast<std::byte*>(pages), page_bytes);
  ASSERT_EQ(mprotect(first.data() + page_bytes, page_bytes, PROT_NONE), 0);
  constexpr size_t kBthBytes = 12;
  const std::span bth = first.last<kBthBytes>();
  wire::put_be24(bth, 5, 0x123456);
  wire::put_be24(bth, 9, 0xabcdef);
  const TempFolder folder;
  const auto recorder = trace::Recorder::open({folder.path() + "/a.trace", trace::kLeastBytes});
  UdpFaults faults;
  UdpPath path = ipv4_path();
  path.interface_index = 1;
  const UdpFaultPort port{path.interface_index, {{}, {}, "rdma_lo"}};
  faults.set(plan_of("loss 100%"), {&port, 1}, 0);
  std::vector<UdpDeparture> departures;
  trace::Recorder* const before = trace::active.exchange(recorder.get());
  EXPECT_FALSE(faults.send(path, bth, 0, departures));
  trace::active.store(before);
  munmap(pages, 2 * page_bytes);
  std::ifstream file(folder.path() + "/a.trace", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto events = trace::parse_trace(std::as_bytes(std::span(bytes)), "a.trace").events;
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, trace::Kind::fault);
  EXPECT_EQ(events[0].object, 0x123456U);
  EXPECT_EQ(events[0].number, 0xabcdefU);
}

TEST(UdpFaults, tells_what_happened) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    set_faults(*endpoint, "loss 10% direction send; duplicate 100% frames 0-4 direction receive");
    exchange(*endpoint, over_loopback(ipv6_path()), 1000, 900);
    const auto seen = endpoint->faults_seen();
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].tally.frames, 1000U);
    EXPECT_EQ(seen[1].tally.frames, 1000U - seen[0].tally.lost);
    EXPECT_GT(seen[0].tally.lost, 50U);
    EXPECT_EQ(seen[1].tally.duplicated, 5U);
    EXPECT_EQ(seen[1].place.port, "rdma_lo");
  });
}

}  // namespace
}  // namespace ringbolt::link
