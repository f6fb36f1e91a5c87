#include "link/arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace ringbolt::link {
namespace {

TEST(OwnArenas, finds_the_arena_around_a_piece_of_memory) {
  OwnArenas arenas;
  const auto made = arenas.make(10000).value();
  EXPECT_EQ(made.length_bytes, 12288U);
  const auto base = reinterpret_cast<uint64_t>(made.data);
  EXPECT_EQ(arenas.find(base + 100, 50)->offset, 100U);
  EXPECT_EQ(arenas.find(base, made.length_bytes)->arena_id, made.arena_id);
  EXPECT_FALSE(arenas.find(base, made.length_bytes + 1));
  EXPECT_FALSE(arenas.find(base - 1, 1));
  EXPECT_FALSE(arenas.find(base + made.length_bytes, 1));
}

TEST(OwnArenas, refuses_no_bytes_and_too_many) {
  OwnArenas arenas;
  EXPECT_EQ(arenas.make(0).error().value, ENOMEM);
  EXPECT_EQ(arenas.make(SIZE_MAX).error().value, ENOMEM);
}

TEST(OwnArenas, frees_once_and_by_the_first_address) {
  OwnArenas arenas;
  const auto made = arenas.make(4096).value();
  EXPECT_FALSE(arenas.free(made.data + 1));
  EXPECT_TRUE(arenas.free(made.data));
  EXPECT_FALSE(arenas.free(made.data));
}

TEST(PeerArenas, shows_the_same_bytes_and_nothing_beyond_them) {
  OwnArenas own;
  PeerArenas peer;
  const auto made = own.make(8192).value();
  EXPECT_EQ(peer.find(made.arena_id, 0, 1), nullptr);
  ASSERT_TRUE(peer.add(made.arena_id, made.length_bytes, base::UniqueFd(dup(made.descriptor))));
  made.data[8191] = std::byte{42};
  EXPECT_EQ(*peer.find(made.arena_id, 8191, 1), std::byte{42});
  EXPECT_EQ(peer.find(made.arena_id, 8191, 2), nullptr);
  EXPECT_EQ(peer.find(made.arena_id, UINT64_MAX, 2), nullptr);
  EXPECT_EQ(peer.find(kMaxArenas, 0, 1), nullptr);
}

TEST(PeerArenas, refuses_wrong_ids_lengths_and_repeats) {
  OwnArenas own;
  PeerArenas peer;
  const auto made = own.make(8192).value();
  const auto add = [&](uint32_t id, uint64_t length) {
    return peer.add(id, length, base::UniqueFd(dup(made.descriptor))).has_value();
  };
  EXPECT_FALSE(add(0, 8192));
  EXPECT_FALSE(add(kMaxArenas, 8192));
  EXPECT_FALSE(add(1, 4096));
  EXPECT_TRUE(add(1, 8192));
  EXPECT_FALSE(add(1, 8192));
}

}  // namespace
}  // namespace ringbolt::link
