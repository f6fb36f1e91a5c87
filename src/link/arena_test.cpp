#include "link/arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

namespace ringbolt::link {
namespace {

uint64_t address_of(const OwnArenas::Made& made) { return reinterpret_cast<uint64_t>(made.segment->data()); }

/// As it comes over a socket.
base::UniqueFd copy_of(const OwnArenas::Made& made) { return base::UniqueFd(dup(made.segment->descriptor())); }

int add(PeerArenas& peer, const OwnArenas::Made& made) {
  return peer.add(made.arena_id, made.segment->length_bytes(), copy_of(made));
}

/// An id of a place and a generation.
constexpr uint32_t id_of(uint32_t place, uint32_t generation) { return place | (generation << kArenaIndexBits); }

TEST(ArenaId, generations_wrap_without_a_zero) {
  EXPECT_EQ(next_arena_id(id_of(7, 1)), id_of(7, 2));
  constexpr uint32_t kLast = (1U << (32 - kArenaIndexBits)) - 1;
  EXPECT_EQ(next_arena_id(id_of(7, kLast)), id_of(7, 1));
  EXPECT_TRUE(is_newer_arena(id_of(7, 2), id_of(7, 1)));
  EXPECT_FALSE(is_newer_arena(id_of(7, 1), id_of(7, 2)));
  EXPECT_FALSE(is_newer_arena(id_of(7, 2), id_of(7, 2)));
  EXPECT_TRUE(is_newer_arena(id_of(7, 1), id_of(7, kLast)));
  EXPECT_FALSE(is_newer_arena(id_of(7, kLast), id_of(7, 1)));
}

TEST(OwnArenas, finds_the_arena_around_a_piece_of_memory) {
  OwnArenas arenas;
  const auto made = arenas.make(10000).value();
  const uint64_t length = made.segment->length_bytes();
  EXPECT_EQ(length, 12288U);
  const uint64_t base = address_of(made);
  EXPECT_EQ(arenas.use(base + 100, 50)->offset, 100U);
  EXPECT_EQ(arenas.use(base, length)->arena_id, made.arena_id);
  EXPECT_FALSE(arenas.use(base, length + 1));
  EXPECT_FALSE(arenas.use(base - 1, 1));
  EXPECT_FALSE(arenas.use(base + length, 1));
}

TEST(OwnArenas, refuses_no_bytes_and_too_many) {
  OwnArenas arenas;
  EXPECT_EQ(arenas.make(0).error().value, ENOMEM);
  EXPECT_EQ(arenas.make(SIZE_MAX).error().value, ENOMEM);
}

TEST(OwnArenas, frees_once_and_by_the_first_address) {
  OwnArenas arenas;
  const auto made = arenas.make(4096).value();
  EXPECT_FALSE(arenas.free(made.segment->data() + 1));
  EXPECT_EQ(arenas.free(made.segment->data()), made.arena_id);
  EXPECT_FALSE(arenas.free(made.segment->data()));
}

TEST(OwnArenas, memory_lives_as_long_as_its_last_user) {
  OwnArenas arenas;
  auto made = arenas.make(4096).value();
  const std::weak_ptr<const SharedSegment> memory = made.segment;
  std::byte* const data = made.segment->data();
  made.segment.reset();
  ASSERT_TRUE(arenas.use(reinterpret_cast<uint64_t>(data), 8));
  ASSERT_TRUE(arenas.use(reinterpret_cast<uint64_t>(data), 4096));
  EXPECT_FALSE(arenas.drop(made.arena_id));
  EXPECT_FALSE(arenas.free(data));  // a region is left
  EXPECT_FALSE(arenas.free(data));  // freed twice: the region's use is not the program's to give back
  EXPECT_FALSE(memory.expired());
  EXPECT_TRUE(arenas.drop(made.arena_id));
  EXPECT_TRUE(memory.expired());
  EXPECT_FALSE(arenas.drop(made.arena_id));
}

TEST(OwnArenas, gives_a_place_out_again_under_another_id) {
  OwnArenas arenas;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 3 * kMaxArenas; ++i) {
    const auto made = arenas.make(4096);
    ASSERT_TRUE(made) << i;
    ids.push_back(made->arena_id);
    ASSERT_EQ(arenas.free(made->segment->data()), made->arena_id);
    arenas.retire(made->arena_id);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(OwnArenas, a_place_is_not_given_out_before_it_is_retired) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit raised = before;
  raised.rlim_cur = std::min<rlim_t>(before.rlim_max, kMaxArenas + 256);
  setrlimit(RLIMIT_NOFILE, &raised);
  if (raised.rlim_cur < kMaxArenas + 256) {
    GTEST_SKIP() << "skip: the limit of open files is " << before.rlim_max;
  }
  OwnArenas arenas;
  std::vector<OwnArenas::Made> all;
  for (uint32_t i = 0; i < kMaxArenas; ++i) {
    all.push_back(arenas.make(4096).value());
  }
  EXPECT_EQ(arenas.make(4096).error().value, ENOMEM);
  ASSERT_TRUE(arenas.free(all[5].segment->data()));
  EXPECT_EQ(arenas.make(4096).error().value, ENOMEM);
  arenas.retire(all[5].arena_id);
  EXPECT_EQ(arenas.make(4096).value().arena_id, next_arena_id(all[5].arena_id));
  EXPECT_EQ(arenas.make(4096).error().value, ENOMEM);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(PeerArenas, shows_the_same_bytes_and_nothing_beyond_them) {
  OwnArenas own;
  PeerArenas peer;
  const auto made = own.make(8192).value();
  EXPECT_EQ(peer.find(made.arena_id, 0, 1), nullptr);
  ASSERT_EQ(add(peer, made), 0);
  made.segment->data()[8191] = std::byte{42};
  EXPECT_EQ(*peer.find(made.arena_id, 8191, 1), std::byte{42});
  EXPECT_EQ(peer.find(made.arena_id, 8191, 2), nullptr);
  EXPECT_EQ(peer.find(made.arena_id, UINT64_MAX, 2), nullptr);
  EXPECT_EQ(peer.find(0, 0, 1), nullptr);
  EXPECT_EQ(peer.find(next_arena_id(made.arena_id), 0, 1), nullptr);
}

TEST(PeerArenas, refuses_wrong_ids_lengths_and_repeats) {
  OwnArenas own;
  PeerArenas peer;
  const auto made = own.make(8192).value();
  EXPECT_EQ(peer.add(0, 8192, copy_of(made)), EINVAL);
  EXPECT_EQ(peer.add(id_of(kMaxArenas - 1, 0), 8192, copy_of(made)), EINVAL);
  EXPECT_EQ(peer.add(id_of(8, 1), 4096, copy_of(made)), EINVAL);
  EXPECT_EQ(peer.add(id_of(9, 1), 8192, {}), EMFILE);
  EXPECT_EQ(peer.add(id_of(1, 1), 8192, copy_of(made)), 0);
  EXPECT_EQ(peer.add(id_of(1, 1), 8192, copy_of(made)), EALREADY);
  EXPECT_EQ(peer.add(id_of(1, 2), 8192, copy_of(made)), EINVAL);  // it has not freed the one before
  EXPECT_NE(peer.find(id_of(1, 1), 0, 1), nullptr);
  EXPECT_EQ(peer.find(id_of(1, 2), 0, 1), nullptr);
}

TEST(PeerArenas, waits_for_what_is_to_come_and_for_nothing_else) {
  OwnArenas own;
  PeerArenas peer;
  const auto made = own.make(8192).value();
  const auto is_awaited = [&](uint32_t id) { return peer.look(id, 0, 1).is_awaited; };
  EXPECT_TRUE(is_awaited(made.arena_id));
  ASSERT_EQ(add(peer, made), 0);
  EXPECT_NE(peer.look(made.arena_id, 0, 8192).data, nullptr);
  EXPECT_EQ(peer.look(made.arena_id, 0, 8193).data, nullptr);
  EXPECT_FALSE(peer.look(made.arena_id, 0, 8193).is_awaited);
  EXPECT_TRUE(is_awaited(next_arena_id(made.arena_id)));
  // Freed.
  ASSERT_TRUE(peer.hide(made.arena_id));
  peer.forget(made.arena_id);
  EXPECT_EQ(peer.look(made.arena_id, 0, 1).data, nullptr);
  EXPECT_FALSE(is_awaited(made.arena_id));
  EXPECT_TRUE(is_awaited(next_arena_id(made.arena_id)));
  // Could not be mapped.
  EXPECT_EQ(peer.add(id_of(40, 3), 4096, copy_of(made)), EINVAL);
  EXPECT_FALSE(is_awaited(id_of(40, 2)));
  EXPECT_FALSE(is_awaited(id_of(40, 3)));
  EXPECT_TRUE(is_awaited(id_of(40, 4)));
  // Freed before this process was told of it.
  EXPECT_FALSE(peer.hide(id_of(50, 6)));
  EXPECT_FALSE(is_awaited(id_of(50, 6)));
  EXPECT_TRUE(is_awaited(id_of(50, 7)));
}

TEST(PeerArenas, an_old_id_never_names_the_memory_that_took_its_place) {
  OwnArenas own;
  PeerArenas peer;
  const auto first = own.make(4096).value();
  ASSERT_EQ(peer.add(id_of(3, 9), 4096, copy_of(first)), 0);
  ASSERT_TRUE(peer.hide(id_of(3, 9)));
  peer.forget(id_of(3, 9));
  const auto second = own.make(4096).value();
  second.segment->data()[0] = std::byte{2};
  ASSERT_EQ(peer.add(id_of(3, 10), 4096, copy_of(second)), 0);
  EXPECT_EQ(*peer.find(id_of(3, 10), 0, 1), std::byte{2});
  EXPECT_EQ(peer.find(id_of(3, 9), 0, 1), nullptr);
  EXPECT_FALSE(peer.look(id_of(3, 9), 0, 1).is_awaited);
  EXPECT_FALSE(peer.hide(id_of(3, 9)));  // a late word about the old one leaves the new one alone
  EXPECT_NE(peer.find(id_of(3, 10), 0, 1), nullptr);
}

TEST(PeerArenas, whoever_holds_one_may_go_on_reading) {
  OwnArenas own;
  PeerArenas peer;
  const auto made = own.make(4096).value();
  ASSERT_EQ(add(peer, made), 0);
  made.segment->data()[0] = std::byte{7};
  const auto held = peer.hold(made.arena_id);
  ASSERT_NE(held, nullptr);
  ASSERT_TRUE(peer.hide(made.arena_id));
  EXPECT_EQ(peer.hold(made.arena_id), nullptr);
  peer.forget(made.arena_id);
  EXPECT_EQ(held->data()[0], std::byte{7});
}

}  // namespace
}  // namespace ringbolt::link
