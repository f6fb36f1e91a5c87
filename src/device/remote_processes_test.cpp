#include "device/remote_processes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <variant>
#include <vector>

#include "link/peer_test_support.h"

namespace ringbolt::device {
namespace {

class RemoteProcessesTest : public testing::Test {
 protected:
  using FakePeer = link::testing::FakePeer;
  std::shared_ptr<FakePeer> known_peer() {
    auto peer = std::make_shared<FakePeer>();
    remotes_.of(peer);
    return peer;
  }
  static std::vector<uint64_t> lengths_sent(const FakePeer& peer) {
    std::vector<uint64_t> lengths;
    for (const link::Message& message : peer.sent) {
      if (const auto* arena = std::get_if<link::Arena>(&message)) {
        lengths.push_back(arena->length_bytes);
      }
    }
    return lengths;
  }
  static size_t releases_sent(const FakePeer& peer) {
    return static_cast<size_t>(std::ranges::count_if(
        peer.sent, [](const link::Message& message) { return std::holds_alternative<link::Release>(message); }));
  }

  RemoteProcesses remotes_;
};

TEST_F(RemoteProcessesTest, are_the_same_for_all_who_ask) {
  const auto peer = std::make_shared<FakePeer>();
  const auto other = std::make_shared<FakePeer>();
  const auto remote = remotes_.of(peer);
  EXPECT_EQ(&remote->peer(), peer.get());
  EXPECT_EQ(remotes_.of(peer), remote);
  EXPECT_NE(remotes_.of(other), remote);
  EXPECT_TRUE(peer->sent.empty());  // there is no arena yet
}

TEST_F(RemoteProcessesTest, are_forgotten_when_they_end_but_by_who_holds_them) {
  const auto peer = std::make_shared<FakePeer>();
  const auto held = remotes_.of(peer);
  remotes_.forget(*peer);
  remotes_.forget(*peer);
  ASSERT_TRUE(remotes_.allocate(4096));
  EXPECT_TRUE(peer->sent.empty());
  EXPECT_EQ(&held->peer(), peer.get());
  EXPECT_NE(remotes_.of(peer), held);  // known anew
  EXPECT_EQ(peer->sent.size(), 1U);
}

TEST_F(RemoteProcessesTest, are_told_of_memory_that_comes_and_the_new_ones_of_all_that_there_is) {
  const auto early = known_peer();
  ASSERT_TRUE(remotes_.allocate(4096));
  ASSERT_TRUE(remotes_.allocate(3 * 4096));
  const auto late = known_peer();
  EXPECT_EQ(lengths_sent(*early), (std::vector<uint64_t>{4096, 3 * 4096}));
  auto lengths = lengths_sent(*late);
  std::ranges::sort(lengths);  // by address
  EXPECT_EQ(lengths, (std::vector<uint64_t>{4096, 3 * 4096}));
  remotes_.of(late);  // no second time
  EXPECT_EQ(late->sent.size(), 2U);
}

TEST_F(RemoteProcessesTest, are_told_once_that_memory_is_gone) {
  const auto peer = known_peer();
  std::byte* const data = remotes_.allocate(4096).value();
  remotes_.free(data + 1);  // nobody's
  remotes_.free(nullptr);
  EXPECT_EQ(releases_sent(*peer), 0U);
  remotes_.free(data);
  remotes_.free(data);
  ASSERT_EQ(peer->sent.size(), 2U);
  const auto* made = std::get_if<link::Arena>(&peer->sent[0]);
  const auto* gone = std::get_if<link::Release>(&peer->sent[1]);
  ASSERT_TRUE(made != nullptr && gone != nullptr);
  EXPECT_EQ(gone->arena_id, made->arena_id);
  EXPECT_TRUE(known_peer()->sent.empty());
}

TEST_F(RemoteProcessesTest, keep_memory_until_the_last_region_over_it_is_gone) {
  const auto peer = known_peer();
  std::byte* const data = remotes_.allocate(8192).value();
  const auto address = reinterpret_cast<uint64_t>(data);
  const uint32_t arena = remotes_.arenas().use(address, 100).value().arena_id;
  ASSERT_TRUE(remotes_.arenas().use(address + 4096, 4096));
  remotes_.free(data);
  remotes_.drop(0);  // a region over other memory
  remotes_.drop(arena);
  EXPECT_EQ(releases_sent(*peer), 0U);
  data[8191] = std::byte{1};  // still there
  remotes_.drop(arena);
  EXPECT_EQ(releases_sent(*peer), 1U);
  remotes_.drop(arena);  // nobody's any more
  EXPECT_EQ(releases_sent(*peer), 1U);
}

TEST_F(RemoteProcessesTest, hear_of_a_place_that_is_given_out_anew_after_it_was_given_back) {
  const auto peer = known_peer();
  std::byte* const kept = remotes_.allocate(4096).value();
  for (uint32_t i = 0; i < link::kMaxArenas + 5; ++i) {
    remotes_.free(remotes_.allocate(4096).value());
  }
  remotes_.free(kept);
  std::map<uint32_t, uint32_t> at_place;
  std::set<uint32_t> ids;
  for (const link::Message& message : peer->sent) {
    if (const auto* made = std::get_if<link::Arena>(&message)) {
      EXPECT_TRUE(at_place.emplace(link::arena_index(made->arena_id), made->arena_id).second) << made->arena_id;
      EXPECT_TRUE(ids.insert(made->arena_id).second) << made->arena_id;
    } else {
      const uint32_t gone = std::get<link::Release>(message).arena_id;
      const auto place = at_place.find(link::arena_index(gone));
      ASSERT_TRUE(place != at_place.end() && place->second == gone) << gone;
      at_place.erase(place);
    }
  }
  EXPECT_EQ(ids.size(), link::kMaxArenas + 6);
  EXPECT_TRUE(at_place.empty());
}

TEST_F(RemoteProcessesTest, that_are_gone_harm_nobody) {
  const auto peer = known_peer();
  peer->gone = true;  // its messages fail
  std::byte* const data = remotes_.allocate(4096).value();
  remotes_.free(data);
  EXPECT_TRUE(remotes_.arenas().all().empty());
}

}  // namespace
}  // namespace ringbolt::device
