// Sixty-four processes on one machine, all connected and all talking at the same time.
#include <filesystem>

#include "census.h"
#include "far.h"

namespace ringbolt::scale {
namespace {

using namespace conformance;

constexpr size_t kProcesses = 64;
constexpr uint32_t kSize = 20000;
const std::vector<Piece> kPiece = {{64, kSize}};

std::vector<std::unique_ptr<PeerProcess>> start_processes() {
  std::vector<std::unique_ptr<PeerProcess>> peers;
  for (size_t i = 0; i < kProcesses; ++i) {
    peers.push_back(std::make_unique<PeerProcess>());
  }
  return peers;
}

TEST(Processes, sixty_four_talk_in_pairs) {
  const auto peers = start_processes();
  std::vector<std::unique_ptr<Far>> sides;
  for (const auto& peer : peers) {
    sides.push_back(std::make_unique<Far>(*peer));
    sides.back()->open({}, 32768);
  }
  for (size_t i = 0; i < kProcesses; ++i) {
    sides[i]->connect(sides[i ^ 1]->address());
  }
  for (uint64_t round = 0; round < 5; ++round) {
    for (size_t i = 0; i < kProcesses; ++i) {
      sides[i]->clear();
      ASSERT_EQ(sides[i]->post_recv(round, {{8192, 8}}), 0);
    }
    // Half of them send, the other half receive and answer with a word.
    for (size_t i = 0; i < kProcesses; i += 2) {
      sides[i]->fill({{64, 8}}, i + 1000 * round);
      ASSERT_EQ(sides[i]->post_send(round, IBV_WR_SEND, {{64, 8}}), 0);
    }
    for (size_t i = 0; i < kProcesses; i += 2) {
      expect_success(sides[i ^ 1]->wait_recv(), round, IBV_WC_RECV);
      EXPECT_EQ(sides[i ^ 1]->check({{8192, 8}}, 8, i + 1000 * round), "");
      ASSERT_EQ(sides[i ^ 1]->post_send(round, IBV_WR_SEND, {{8192, 8}}), 0);
    }
    for (size_t i = 0; i < kProcesses; i += 2) {
      expect_success(sides[i]->wait_recv(), round, IBV_WC_RECV);
      expect_success(sides[i]->wait_send(), round, IBV_WC_SEND);
      expect_success(sides[i ^ 1]->wait_send(), round, IBV_WC_SEND);
    }
  }
}

TEST(Processes, one_serves_sixty_four) {
  const auto peers = start_processes();
  const Device device = open_device();
  const Pd pd = make_pd(device);
  const Cq cq = make_cq(device, 1024);
  Region source(pd.get(), 32768);
  source.fill(kPiece, 7);
  std::vector<std::unique_ptr<Endpoint>> ends;
  std::vector<std::unique_ptr<Far>> sides;
  for (const auto& peer : peers) {
    sides.push_back(std::make_unique<Far>(*peer));
    sides.back()->open({}, 32768);
    const Parts parts{pd.get(), cq.get(), cq.get(), nullptr};
    ends.push_back(std::make_unique<Endpoint>(device, QpOptions{}, parts));
    ends.back()->connect(sides.back()->address());
    sides.back()->connect(ends.back()->address());
    ASSERT_EQ(sides.back()->post_recv(1, kPiece), 0);
  }
  for (size_t i = 0; i < kProcesses; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, source.sges(kPiece)).post(ends[i]->qp()), 0);
  }
  for (const ibv_wc& wc : wait_completions(cq.get(), kProcesses)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << conformance::describe(wc);
  }
  for (const auto& side : sides) {
    expect_success(side->wait_recv(), 1, IBV_WC_RECV);
    EXPECT_EQ(side->check(kPiece, kSize, 7), "");
  }
}

TEST(Processes, leave_nothing_in_the_runtime_folder) {
  { const auto peers = start_processes(); }
  std::string left;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::getenv("RINGBOLT_RUNTIME_DIR"))) {
    // Folders stay for the next process, and so may a file that all share; sockets must not.
    if (entry.is_socket()) {
      left += entry.path().string() + " ";
    }
  }
  EXPECT_EQ(left, "");
}

}  // namespace
}  // namespace ringbolt::scale
