// Groups of some of the ranks.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "group/failure.h"
#include "group/state.h"

namespace ringbolt {
namespace {

/// Threads that split or shrink other groups may take the numbers each time; so often in a row, they don't.
constexpr int kMostTries = 100;

struct Wish {
  int32_t color = 0;
  int32_t key = 0;
  uint32_t next_id = 0;
};

/// `n` of each rank.
template <class T>
std::vector<T> gather(Group& group, const T* mine, size_t n) {
  std::vector<T> all(group.size() * n);
  const Status status = group.all_gather(mine, all.data(), n * sizeof(T), Type::uint8);
  if (!status.is_ok()) {
    throw group::JoinError("split: " + status.text, status.code);
  }
  return all;
}

/// The cables that any rank takes to be down: news of one that is cut or healed right now has not come to all, and with
/// other cables a rank would make other schedules.
std::vector<bool> down_anywhere(Group& group, group::World& world) {
  std::vector<uint8_t> mine;
  {
    const std::lock_guard<std::mutex> guard(world.lock());
    const std::vector<bool> down = world.down_cables();
    mine.assign(down.begin(), down.end());
  }
  const std::vector<uint8_t> all = gather(group, mine.data(), mine.size());
  std::vector<bool> down(mine.size());
  for (size_t i = 0; i < all.size(); ++i) {
    down[i % down.size()] = down[i % down.size()] || all[i] != 0;
  }
  return down;
}

/// Numbers of groups that this rank gives to nobody else meanwhile.
class Reservation {
 public:
  Reservation(group::World& world, uint32_t id, size_t n) : world_(world), id_(id), n_(n) {
    const std::lock_guard<std::mutex> guard(world_.lock());
    is_granted_ = world_.reserve(id_, n_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (is_granted_) {
      const std::lock_guard<std::mutex> guard(world_.lock());
      world_.unreserve(id_, n_);
    }
  }
  bool is_granted() const { return is_granted_; }

 private:
  group::World& world_;
  uint32_t id_;
  size_t n_;
  bool is_granted_ = false;
};

/// Two groups that meet again and again must not do so in step: all ranks of one wait alike, those of the other as long
/// as they do.
void wait_apart(uint16_t group, int n_tries) {
  std::minstd_rand random(group * 131U + static_cast<uint32_t>(n_tries) + 1);
  random.discard(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % (2U << std::min(n_tries, 5))));
}

/// What all ranks wish, and the numbers that all of them have kept for the groups, one for each color from `id` on.
struct Agreed {
  std::vector<Wish> wishes;
  std::vector<int32_t> colors;  // in order
  uint32_t id = 0;
  std::unique_ptr<Reservation> numbers;
};

/// Other threads of any rank may make groups meanwhile, on each rank in another order: whoever has given a number away
/// says so, and all try again.
Agreed agree(Group& group, uint16_t number, group::World& world, Wish mine) {
  for (int n_tries = 0; n_tries < kMostTries; ++n_tries) {
    {
      const std::lock_guard<std::mutex> guard(world.lock());
      mine.next_id = world.next_group_id();
    }
    Agreed agreed;
    agreed.wishes = gather(group, &mine, 1);
    for (const Wish& wish : agreed.wishes) {
      agreed.id = std::max(agreed.id, wish.next_id);
      if (wish.color >= 0) {
        agreed.colors.push_back(wish.color);
      }
    }
    std::sort(agreed.colors.begin(), agreed.colors.end());
    agreed.colors.erase(std::unique(agreed.colors.begin(), agreed.colors.end()), agreed.colors.end());
    if (agreed.id + agreed.colors.size() > group::kFirstShrunkGroup) {
      throw group::JoinError(
          fmt::format("split: {} groups have been made, and {} is the most", agreed.id, group::kFirstShrunkGroup));
    }
    agreed.numbers = std::make_unique<Reservation>(world, agreed.id, agreed.colors.size());
    const auto is_granted_here = static_cast<uint8_t>(agreed.numbers->is_granted());
    const std::vector<uint8_t> granted = gather(group, &is_granted_here, 1);
    if (std::all_of(granted.begin(), granted.end(), [](uint8_t is_granted) { return is_granted != 0; })) {
      return agreed;
    }
    agreed.numbers.reset();
    wait_apart(number, n_tries);
  }
  throw group::JoinError(fmt::format("split: other threads have made groups {} times meanwhile", kMostTries));
}

}  // namespace

Group Group::split(int color, int key) {
  if (!state_->communicator) {
    throw group::JoinError("split: this group has no ranks", EINVAL);
  }
  group::World& world = *state_->world;
  const Agreed agreed = agree(*this, state_->communicator->id(), world, {color, key, 0});
  std::vector<bool> avoided = down_anywhere(*this, world);
  auto made = std::make_unique<State>();
  made->options = state_->options;
  made->world = state_->world;
  if (color >= 0) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < agreed.wishes.size(); ++rank) {
      if (agreed.wishes[rank].color == color) {
        ranks.push_back(rank);
      }
    }
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](uint32_t a, uint32_t b) { return agreed.wishes[a].key < agreed.wishes[b].key; });
    const auto self = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
    std::transform(ranks.begin(), ranks.end(), ranks.begin(),
                   [&](uint32_t rank) { return state_->communicator->member(rank); });
    const auto index = static_cast<uint32_t>(std::lower_bound(agreed.colors.begin(), agreed.colors.end(), color) -
                                             agreed.colors.begin());
    const std::lock_guard<std::mutex> guard(world.lock());
    if (!world.are_joined(ranks, avoided)) {
      avoided.clear();  // old news of one cable, and news of another
    }
    made->communicator =
        world.make_communicator(static_cast<uint16_t>(agreed.id + index), std::move(ranks), self, std::move(avoided));
  }
  return Group(std::move(made));
}

}  // namespace ringbolt
