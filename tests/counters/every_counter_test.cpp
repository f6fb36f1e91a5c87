// Each counter moves when what it counts happens, and stands still when it does not. A counter that no happening here
// moves fails the test: give it one.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "../faults/faulty_device.h"
#include "cluster/counter_page.h"
#include "deadline.h"
#include "far.h"
#include "port_counters.h"
#include "slow_interface.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::counters {
namespace {

using namespace conformance;

constexpr uint64_t kAny = UINT64_MAX;

/// So far a counter has moved after a happening.
struct Move {
  const char* counter;
  uint64_t least;
  uint64_t most;
};
using Moves = std::vector<Move>;

/// Something that happens, and all that moves by it: what is not named stands still.
struct Happening {
  const char* name;
  const char* faults;
  Moves moves;
  void (*provoke)();
};

/// Packets that leave and come, and what else moves.
Moves with_traffic(const Move& sent, const Move& received, Moves more = {}) {
  for (const char* name : {"port_xmit_packets", "unicast_xmit_packets", "sent_pkts", "port_xmit_data"}) {
    const bool is_words = std::string(name) == "port_xmit_data";
    more.push_back({name, is_words ? std::min<uint64_t>(sent.least, 1) : sent.least, is_words ? kAny : sent.most});
  }
  for (const char* name : {"port_rcv_packets", "unicast_rcv_packets", "rcvd_pkts", "port_rcv_data"}) {
    const bool is_words = std::string(name) == "port_rcv_data";
    more.push_back({name, is_words ? std::min<uint64_t>(received.least, 1) : received.least,
                    is_words && received.most != 0 ? kAny : received.most});
  }
  return more;
}
Moves exact_traffic(uint64_t packets, Moves more = {}) {
  return with_traffic({"", packets, packets}, {"", packets, packets}, std::move(more));
}
Moves some_traffic(Moves more = {}) { return with_traffic({"", 1, kAny}, {"", 0, kAny}, std::move(more)); }

QpOptions options_of(ibv_qp_type type) {
  QpOptions options;
  options.type = type;
  return options;
}

int send_to(Link& link, uint64_t wr_id, uint32_t length) {
  return SendWr(wr_id, IBV_WR_SEND, {link.memory.sge(0, length)}).post(link.near.qp());
}

// In memory, where a port reaches itself: what leaves it comes in again.

void messages() {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    Link link(Placement::same_process, options_of(type), 4096);
    ASSERT_EQ(link.far.post_recv(1, {{0, 64}}), 0);
    ASSERT_EQ(send_to(link, 1, 64), 0);
    expect_success(link.far.wait_recv(), 1, IBV_WC_RECV);
    expect_success(wait_completion(link.near.send_cq()), 1, IBV_WC_SEND);
  }
}

void one_sided_operations() {
  Link link(Placement::same_process, options_of(IBV_QPT_RC), 4096);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    SendWr wr(1, opcode, {link.memory.sge(0, 8)});
    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wr.atomic(link.far.region_address(), link.far.rkey(), 1)
                                          : wr.remote(link.far.region_address(), link.far.rkey());
    ASSERT_EQ(wr.post(link.near.qp()), 0);
    ASSERT_EQ(wait_completion(link.near.send_cq()).status, IBV_WC_SUCCESS);
  }
}

constexpr uint32_t kWaiting = 40;

void unreliable_messages_that_wait_for_receives() {
  Link link(Placement::same_process, options_of(IBV_QPT_UC), 4096);
  for (uint32_t i = 0; i < kWaiting; ++i) {
    ASSERT_EQ(send_to(link, i, 64), 0);
  }
  for (uint32_t i = 0; i < kWaiting; ++i) {
    ASSERT_EQ(link.far.post_recv(i, {{0, 64}}), 0);  // each one is awaited by the next message
    expect_success(link.far.wait_recv(), i, IBV_WC_RECV);
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_SEND);
  }
}

constexpr uint32_t kLongMessages = 20;

void long_messages_of_private_memory() {
  Link link(Placement::same_process, options_of(IBV_QPT_RC), 64 << 10);
  for (uint32_t i = 0; i < kLongMessages; ++i) {
    ASSERT_EQ(link.far.post_recv(i, {{0, 64 << 10}}), 0);
    ASSERT_EQ(send_to(link, i, 64 << 10), 0);
    expect_success(link.far.wait_recv(), i, IBV_WC_RECV);
    expect_success(wait_completion(link.near.send_cq()), i, IBV_WC_SEND);
  }
}

void unreliable_messages_that_outlive_their_sender() {
  const Device device = open_device();
  Endpoint near(device, options_of(IBV_QPT_UC));
  Endpoint far(device, options_of(IBV_QPT_UC));
  connect(near, far);
  Region memory(near.pd(), 64);
  const Counts before = read_ports();
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 64)}).post(near.qp()), 0);
  }
  EXPECT_TRUE(wait_until(
      [&] { return is_empty(near.send_cq()) && read_ports()["rdma_sends"] >= before.at("rdma_sends") + 3; }));
  EXPECT_TRUE(is_empty(far.recv_cq()));
  near.destroy_qp();
  EXPECT_TRUE(is_empty(far.recv_cq()));
}

void datagrams(bool has_target) {
  const Device device = open_device();
  Endpoint near(device, options_of(IBV_QPT_UD));
  Endpoint far(device, options_of(IBV_QPT_UD));
  connect(near, far);
  Region memory(near.pd(), 64);
  const Ah ah = make_ah(device, near.pd(), device.gid);
  const uint32_t target = far.qp()->qp_num;
  if (!has_target) {
    far.destroy_qp();
  }
  SendWr wr(1, IBV_WR_SEND, {memory.sge(0, 64)});
  ASSERT_EQ(wr.datagram(ah.get(), target).post(near.qp()), 0);
  expect_success(wait_completion(near.send_cq()), 1, IBV_WC_SEND);
  if (has_target) {
    EXPECT_TRUE(is_empty(far.recv_cq()));
  }
}

void reliable_message_without_a_receive() {
  QpOptions options = options_of(IBV_QPT_RC);
  options.rnr_retry = 1;
  Link link(Placement::same_process, options, 4096);
  ASSERT_EQ(send_to(link, 1, 64), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

void access_that_is_refused() {
  Link link(Placement::same_process, options_of(IBV_QPT_RC), 4096);
  SendWr write(1, IBV_WR_RDMA_WRITE, {link.memory.sge(0, 8)});
  ASSERT_EQ(write.remote(link.far.region_address(), link.far.rkey() ^ 0x100U).post(link.near.qp()), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_REM_ACCESS_ERR);
  ASSERT_EQ(send_to(link, 2, 8), 0);
  expect_status(wait_completion(link.near.send_cq()), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.far.wait_event(), IBV_EVENT_QP_ACCESS_ERR);
}

void message_longer_than_its_receive() {
  Link link(Placement::same_process, options_of(IBV_QPT_RC), 4096);
  ASSERT_EQ(link.far.post_recv(1, {{0, 8}}), 0);
  ASSERT_EQ(link.far.post_recv(2, {{0, 8}}), 0);
  ASSERT_EQ(send_to(link, 1, 9), 0);
  expect_status(link.far.wait_recv(), 1, IBV_WC_LOC_LEN_ERR);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_REM_INV_REQ_ERR);
  expect_status(link.far.wait_recv(), 2, IBV_WC_WR_FLUSH_ERR);
}

void peer_that_is_killed() {
  PeerProcess process;
  Link link(process, options_of(IBV_QPT_RC), 4096);
  process.kill();
  link.far.abandon();
  ASSERT_EQ(send_to(link, 1, 8), 0);
  expect_status(wait_completion(link.near.send_cq()), 1, IBV_WC_RETRY_EXC_ERR);
}

void early_messages_that_are_lost() {
  const Device device = open_device();
  Endpoint near(device, options_of(IBV_QPT_UC));
  Endpoint far(device, options_of(IBV_QPT_UC));
  connect(near, far);
  Region memory(near.pd(), 64);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(0, 64)}).post(near.qp()), 0);
    expect_success(wait_completion(near.send_cq()), i, IBV_WC_SEND);
  }
  near.destroy_qp();
}

const std::vector<Happening>& in_memory() {
  static const std::vector<Happening> all = {
      {"messages", "", exact_traffic(2, {{"rdma_sends", 2, 2}, {"rdma_recvs", 2, 2}}), messages},
      {"one_sided_operations", "",
       exact_traffic(5, {{"rx_write_requests", 1, 1}, {"rx_read_requests", 1, 1}, {"rx_atomic_requests", 1, 1}}),
       one_sided_operations},
      {"unreliable_messages_that_wait_for_receives", "",
       exact_traffic(kWaiting, {{"rdma_sends", kWaiting, kWaiting}, {"rdma_recvs", kWaiting, kWaiting}}),
       unreliable_messages_that_wait_for_receives},
      {"long_messages_of_private_memory", "",
       with_traffic({"", kLongMessages, kAny}, {"", kLongMessages, kAny},
                    {{"rdma_sends", kLongMessages, kLongMessages},
                     {"rdma_recvs", kLongMessages, kLongMessages},
                     {"rx_pulled_sends", 1, kLongMessages - 1}}),
       long_messages_of_private_memory},
      {"unreliable_messages_that_outlive_their_sender", "",
       with_traffic({"", 3, 3}, {"", 0, 0}, {{"rdma_sends", 3, 3}, {"out_of_buffer", 3, 3}}),
       unreliable_messages_that_outlive_their_sender},
      {"datagram_without_a_receive", "",
       exact_traffic(1, {{"rdma_sends", 1, 1}, {"out_of_buffer", 1, 1}, {"rx_drops", 1, 1}}), [] { datagrams(true); }},
      {"datagram_without_a_target", "", {{"port_xmit_discards", 1, 1}}, [] { datagrams(false); }},
      {"reliable_message_without_a_receive", "",
       with_traffic({"", 1, 1}, {"", 0, 0},
                    {{"rdma_sends", 1, 1},
                     {"out_of_buffer", 1, 1},
                     {"send_rnr_err", 1, 1},
                     {"rcvd_rnr_err", 1, 1},
                     {"rnr_nak_retry_err", 1, 1},
                     {"retry_rnr_exceeded_err", 1, 1},
                     {"req_cqe_error", 1, 1}}),
       reliable_message_without_a_receive},
      {"access_that_is_refused",
       "",
       {{"req_remote_access_errors", 1, 1},
        {"resp_remote_access_errors", 1, 1},
        {"req_cqe_error", 1, 1},
        {"req_cqe_flush_error", 1, 1}},
       access_that_is_refused},
      {"message_longer_than_its_receive", "",
       with_traffic({"", 1, 1}, {"", 0, 0},
                    {{"rdma_sends", 1, 1},
                     {"resp_local_length_error", 1, 1},
                     {"resp_cqe_error", 1, 1},
                     {"resp_cqe_flush_error", 1, 1},
                     {"req_remote_invalid_request", 1, 1},
                     {"req_cqe_error", 1, 1}}),
       message_longer_than_its_receive},
      {"peer_that_is_killed",
       "",
       // The send leaves before the death is known, or after.
       {{"retry_exceeded_err", 1, 1},
        {"req_cqe_error", 1, 1},
        {"port_xmit_data", 0, 6},
        {"port_xmit_packets", 0, 1},
        {"rdma_sends", 0, 1},
        {"sent_pkts", 0, 1},
        {"unicast_xmit_packets", 0, 1}},
       peer_that_is_killed},
      {"early_messages_that_are_lost",
       "completion-early by 10s",
       {{"port_xmit_discards", 3, 3}},
       early_messages_that_are_lost},
  };
  return all;
}

// Over UDP, under faults of frames.

bool has_all(const Counts& grown, const std::set<std::string>& wanted) {
  return std::ranges::all_of(wanted, [&](const std::string& name) { return grown.contains(name); });
}

/// Messages of several packets, and READs, until all of `wanted` have moved.
void transfer_until(const std::set<std::string>& wanted) {
  constexpr uint32_t kBytes = 20'000;
  QpOptions options;
  options.retry_cnt = 7;
  const Device device = open_device();
  Endpoint near(device, options);
  Endpoint far(device, options);
  connect(near, far);
  Region from(near.pd(), kBytes);
  Region to(far.pd(), kBytes);
  const Counts before = read_ports();
  const Deadline deadline;
  while (!deadline.has_passed() && !has_all(grown_since(before), wanted)) {
    ASSERT_EQ(post_recv(far.qp(), 1, {to.sge(0, kBytes)}), 0);
    ASSERT_EQ(SendWr(1, IBV_WR_SEND, {from.sge(0, kBytes)}).post(near.qp()), 0);
    ASSERT_EQ(wait_completion(far.recv_cq()).status, IBV_WC_SUCCESS);
    ASSERT_EQ(wait_completion(near.send_cq()).status, IBV_WC_SUCCESS);
    SendWr read(2, IBV_WR_RDMA_READ, {from.sge(0, kBytes)});
    ASSERT_EQ(read.remote(to.address(0), to.rkey()).post(near.qp()), 0);
    ASSERT_EQ(wait_completion(near.send_cq()).status, IBV_WC_SUCCESS);
  }
}

void silence() {
  QpOptions options;
  options.retry_cnt = 1;
  const Device device = open_device();
  Endpoint near(device, options);
  Endpoint far(device, options);
  connect(near, far);
  Region memory(near.pd(), 64);
  ASSERT_EQ(SendWr(1, IBV_WR_SEND, {memory.sge(0, 64)}).post(near.qp()), 0);
  expect_status(wait_completion(near.send_cq()), 1, IBV_WC_RETRY_EXC_ERR);
}

constexpr uint32_t kForeign = 5;

/// Packets of a partition that we are not in.
void foreign_packets() {
  const Device device = open_device();
  const Endpoint somebody(device, QpOptions());
  const int socket = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_addr = in6addr_loopback;
  socklen_t length = sizeof own;
  ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&own), length), 0);
  ASSERT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length), 0);
  wire::Flow flow;
  std::memcpy(flow.source.data(), &own.sin6_addr, flow.source.size());
  flow.destination = flow.source;
  flow.source_port = ntohs(own.sin6_port);
  wire::Headers headers;
  headers.bth.opcode = wire::kUdSendOnly;
  headers.bth.pkey = 0x1234;
  headers.bth.dest_qp = somebody.qp()->qp_num;
  std::array<std::byte, 64> packet{};
  const size_t bytes = wire::emit(headers, packet) + wire::kIcrcBytes;
  wire::put_icrc(flow, 0, std::span(packet.data(), bytes));
  sockaddr_in6 to = own;
  to.sin6_port = htons(wire::kRocePort);
  const Counts before = read_ports();
  for (uint32_t i = 0; i < kForeign; ++i) {
    ASSERT_EQ(sendto(socket, packet.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes));
  }
  close(socket);
  EXPECT_TRUE(wait_until([&] { return grown_since(before)["rx_drops"] >= kForeign; }));
}

/// What a lost packet can move besides.
Moves with_repairs(Moves more) {
  for (const char* name : {"completer_retry_err", "out_of_sequence", "out_of_seq_request", "packet_seq_err",
                           "rcvd_seq_err", "local_ack_timeout_err", "roce_adp_retrans", "implied_nak_seq_err",
                           "duplicate_request", "rdma_sends", "rdma_recvs", "rx_read_requests", "rx_drops"}) {
    if (std::ranges::none_of(more, [&](const Move& one) { return std::string(one.counter) == name; })) {
      more.push_back({name, 0, kAny});
    }
  }
  return some_traffic(std::move(more));
}

const std::vector<Happening>& on_a_wire() {
  static const std::vector<Happening> all = {
      {"losses", "loss 5% seed 1 direction send",
       with_repairs({{"completer_retry_err", 1, kAny},
                     {"out_of_sequence", 1, kAny},
                     {"out_of_seq_request", 1, kAny},
                     {"roce_adp_retrans", 1, kAny}}),
       [] {
         transfer_until({"completer_retry_err", "out_of_sequence", "roce_adp_retrans"});
       }},
      {"duplicates", "duplicate 20% seed 1 direction send", with_repairs({{"duplicate_request", 1, kAny}}),
       [] { transfer_until({"duplicate_request"}); }},
      {"corruption", "corrupt 10% seed 1 direction send",
       with_repairs({{"rx_icrc_encapsulated", 1, kAny}, {"port_rcv_errors", 1, kAny}, {"rx_drops", 1, kAny}}),
       [] {
         transfer_until({"rx_icrc_encapsulated", "port_rcv_errors", "rx_drops"});
       }},
      {"silence", "loss 100% direction send",
       with_repairs({{"local_ack_timeout_err", 1, kAny}, {"retry_exceeded_err", 1, 1}, {"req_cqe_error", 1, 1}}),
       silence},
      {"foreign_packets",
       "loss 0% direction send",
       {{"port_rcv_constraint_errors", kForeign, kForeign}, {"rx_drops", kForeign, kForeign}},
       foreign_packets},
      {"slow_interface", "loss 0% direction send",
       some_traffic(
           {{"port_xmit_wait", 1, kAny}, {"port_xmit_discards", 0, 0}, {"rdma_sends", 1, kAny}, {"rx_drops", 0, kAny}}),
       slow_interface},
      {"connected_while_slow", "loss 0% direction send",
       with_repairs({{"port_xmit_wait", 1, kAny}, {"port_xmit_discards", 0, 0}}), connected_while_slow},
      {"ended_while_slow", "loss 0% direction send",
       some_traffic({{"port_xmit_wait", 1, kAny},
                     {"port_xmit_discards", 1, kAny},
                     {"rdma_sends", 1, kAny},
                     {"rx_drops", 0, kAny}}),
       ended_while_slow},
  };
  return all;
}

/// Counters that something else than a program's own doing moves, and the test of that.
struct Elsewhere {
  const char* counter;
  const char* test;
};
constexpr Elsewhere kElsewhere[] = {{"link_downed", "tests/command/metrics_test.py"},
                                    // Peers of our own never send what these count.
                                    {"packet_seq_err", "src/device/counting_test.cpp"},
                                    {"rcvd_seq_err", "src/device/counting_test.cpp"},
                                    {"implied_nak_seq_err", "src/device/counting_test.cpp"}};

/// Those that nothing moves.
bool is_zero_by_nature(const RingboltCounter& counter) { return counter.lane_word < 0 && counter.shared_word < 0; }

void expect_moves(const Happening& happening, const Counts& before) {
  const Counts grown = grown_since(before);
  for (const auto& [name, value] : read_ports()) {
    uint64_t least = 0;
    uint64_t most = 0;
    for (const Move& move : happening.moves) {
      if (name == move.counter) {
        least = move.least;
        most = move.most;
      }
    }
    const auto found = grown.find(name);
    const uint64_t by = found == grown.end() ? 0 : found->second;
    EXPECT_GE(by, least) << happening.name << ": " << name;
    EXPECT_LE(by, most) << happening.name << ": " << name;
  }
}

void PrintTo(const Happening& given, std::ostream* out) { *out << given.name; }

class EveryMemory : public testing::TestWithParam<Happening> {};
INSTANTIATE_TEST_SUITE_P(All, EveryMemory, testing::ValuesIn(in_memory()), testing::PrintToStringParamName());

TEST_P(EveryMemory, counter_moves_as_things_happen) {
  open_device();  // its files are there
  const Counts before = read_ports();
  setenv("RINGBOLT_FAULTS", GetParam().faults, 1);
  GetParam().provoke();
  unsetenv("RINGBOLT_FAULTS");
  expect_moves(GetParam(), before);
}

class EveryWire : public testing::TestWithParam<Happening> {};
INSTANTIATE_TEST_SUITE_P(All, EveryWire, testing::ValuesIn(on_a_wire()), testing::PrintToStringParamName());

TEST_P(EveryWire, counter_moves_as_things_happen) {
  faults::with_faults(GetParam().faults, [&] {
    GetParam().provoke();
    expect_moves(GetParam(), {});  // its runtime folder is new
  });
}

TEST(EveryMemoryCounter, has_something_that_moves_it) {
  std::set<std::string> moved;
  for (const auto* all : {&in_memory(), &on_a_wire()}) {
    for (const Happening& happening : *all) {
      for (const Move& move : happening.moves) {
        if (move.least != 0) {
          moved.insert(move.counter);
        }
      }
    }
  }
  for (const Elsewhere& one : kElsewhere) {
    std::ifstream file(std::filesystem::path(RINGBOLT_ROOT) / one.test);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_NE(text.find(one.counter), std::string::npos) << one.test;
    moved.insert(one.counter);
  }
  for (const RingboltCounter& counter : cluster::all_counters()) {
    EXPECT_NE(moved.contains(counter.name), is_zero_by_nature(counter)) << counter.folder << "/" << counter.name;
  }
}

}  // namespace
}  // namespace ringbolt::counters
