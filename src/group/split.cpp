// Groups of some of the ranks.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/lock_guard.h"
#include "group/failure.h"
#include "group/state.h"

namespace ringbolt::group {
namespace {

/// Threads that split or shrink other groups may take the numbers each time; so often in a row, they don't.
/// Waits between them are random, below 64 ms (wait_apart()).
constexpr int kMostTries = 100;

/// Goes from rank to rank as it lies in memory, 16 bytes.
struct Wish {
  int32_t color = 0;
  int32_t key = 0;
  uint32_t next_id = 0;
  uint32_t ranks = 0;  // a hash of them where each rank says which they are
};

/// Those who make groups together, and how they tell each other bytes, alike many of each.
struct Makers {
  const char* what = "";
  size_t n = 0;
  std::function<Status(const void* mine, void* all, size_t bytes)> exchange;
};

/// `n` of each of them.
/// [makers.n * n], by maker. Blocks as the exchange does. Throws JoinError.
template <class T>
std::vector<T> gather(const Makers& makers, const T* mine, size_t n) {
  std::vector<T> all(makers.n * n);
  const Status status = makers.exchange(mine, all.data(), n * sizeof(T));
  if (!status.is_ok()) {
    throw JoinError(std::string(makers.what) + ": " + status.text, status.code);
  }
  return all;
}

/// The cables that any rank takes to be down: news of one that is cut or healed right now has not come to all, and with
/// other cables a rank would make other schedules.
std::vector<bool> down_anywhere(const Makers& makers, Groups& groups) {
  std::vector<uint8_t> mine;
  {
    mesh::Mesh& mesh = groups.mesh();
    const base::LockGuard guard(mesh.lock);
    const std::vector<bool> down = mesh.down_cables();
    mine.assign(down.begin(), down.end());
  }
  const std::vector<uint8_t> all = gather(makers, mine.data(), mine.size());
  std::vector<bool> down(mine.size());
  for (size_t i = 0; i < all.size(); ++i) {
    down[i % down.size()] = down[i % down.size()] || all[i] != 0;
  }
  return down;
}

/// Numbers of groups that this rank gives to nobody else meanwhile.
/// `groups` must outlive it. Takes the lock in its constructor and its destructor, so it must not be held then.
class Reservation {
 public:
  Reservation(Groups& groups, std::vector<uint16_t> ids) : groups_(groups), ids_(std::move(ids)) {
    const base::LockGuard guard(groups_.lock());
    is_granted_ = groups_.reserve(ids_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (is_granted_) {
      const base::LockGuard guard(groups_.lock());
      groups_.unreserve(ids_);
    }
  }
  bool is_granted() const { return is_granted_; }
  const std::vector<uint16_t>& ids() const { return ids_; }

 private:
  Groups& groups_;
  std::vector<uint16_t> ids_;
  bool is_granted_ = false;
};

/// Two groups that meet again and again must not do so in step: all ranks of one wait alike, those of the other as long
/// as they do.
void wait_apart(uint16_t group, int n_tries) {
  std::minstd_rand random(group * 131U + static_cast<uint32_t>(n_tries) + 1);
  random.discard(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % (2U << std::min(n_tries, 5))));
}

/// What all ranks wish, and the numbers that all of them have kept for the groups, one for each color.
struct Agreed {
  std::vector<Wish> wishes;
  std::vector<int32_t> colors;  // in order
  std::unique_ptr<Reservation> numbers;
};

/// The first `n` numbers that all ranks can give, as all ranks find them: fewer if there are not as many just now.
/// An exchange of 2 KiB of each rank, a bit for each number.
std::vector<uint16_t> free_everywhere(const Makers& makers, Groups& groups, size_t n) {
  std::vector<uint8_t> mine(kFirstShrunkGroup / 8);
  {
    const base::LockGuard guard(groups.lock());
    const std::vector<bool> free = groups.free_group_ids();
    for (size_t i = 0; i < free.size(); ++i) {
      mine[i / 8] = static_cast<uint8_t>(mine[i / 8] | (free[i] ? 1U << (i % 8) : 0U));
    }
  }
  const std::vector<uint8_t> all = gather(makers, mine.data(), mine.size());
  std::vector<uint16_t> ids;
  for (size_t i = 0; i < 8 * mine.size() && ids.size() < n; ++i) {
    bool is_free = true;
    for (size_t at = i / 8; at < all.size(); at += mine.size()) {
      is_free = is_free && (uint32_t{all[at]} >> (i % 8) & 1U) != 0;
    }
    if (is_free) {
      ids.push_back(static_cast<uint16_t>(i));
    }
  }
  return ids;
}

/// Numbers that nobody has had are found at once; when these have run out, all ranks tell which they can give again.
std::vector<uint16_t> numbers_for(const Makers& makers, Groups& groups, uint32_t next_id, size_t n) {
  if (next_id + n > kFirstShrunkGroup) {
    return free_everywhere(makers, groups, n);
  }
  std::vector<uint16_t> ids(n);
  std::iota(ids.begin(), ids.end(), static_cast<uint16_t>(next_id));
  return ids;
}

/// Other threads of any rank may make groups meanwhile, on each rank in another order: whoever has given a number away
/// says so, and all try again.
/// All makers call it, and leave it alike: what each decides by, all have gathered. Throws JoinError on all.
Agreed agree(const Makers& makers, uint16_t number, Groups& groups, Wish mine) {
  size_t n_missing = 0;
  for (int n_tries = 0; n_tries < kMostTries; ++n_tries) {
    {
      const base::LockGuard guard(groups.lock());
      mine.next_id = groups.next_group_id();
    }
    Agreed agreed;
    uint32_t next_id = 0;
    agreed.wishes = gather(makers, &mine, 1);
    for (const Wish& wish : agreed.wishes) {
      next_id = std::max(next_id, wish.next_id);
      if (wish.color >= 0) {
        agreed.colors.push_back(wish.color);
      }
    }
    std::sort(agreed.colors.begin(), agreed.colors.end());
    agreed.colors.erase(std::unique(agreed.colors.begin(), agreed.colors.end()), agreed.colors.end());
    std::vector<uint16_t> ids = numbers_for(makers, groups, next_id, agreed.colors.size());
    n_missing = agreed.colors.size() - ids.size();
    if (n_missing > 0) {  // what groups that have just ended have sent may be under way still
      wait_apart(number, n_tries);
      continue;
    }
    agreed.numbers = std::make_unique<Reservation>(groups, std::move(ids));
    const auto is_granted_here = static_cast<uint8_t>(agreed.numbers->is_granted());
    const std::vector<uint8_t> granted = gather(makers, &is_granted_here, 1);
    if (std::all_of(granted.begin(), granted.end(), [](uint8_t is_granted) { return is_granted != 0; })) {
      return agreed;
    }
    agreed.numbers.reset();
    wait_apart(number, n_tries);
  }
  throw JoinError(n_missing > 0
                      ? fmt::format("{}: {} groups are there at the same time, and that is the most: destroy some",
                                    makers.what, kFirstShrunkGroup)
                      : fmt::format("{}: other threads have made groups {} times meanwhile", makers.what, kMostTries));
}

/// FNV-1a.
/// Word by word, of their order, too.
uint32_t hash_of(const std::vector<uint32_t>& ranks) {
  uint32_t hash = 2166136261U;
  for (const uint32_t rank : ranks) {
    hash = (hash ^ rank) * 16777619U;
  }
  return hash;
}

}  // namespace

Group Group::split(int color, int key) {
  if (!state_->communicator) {
    throw JoinError("split: this group has no ranks", EINVAL);
  }
  const Makers makers{"split", size(), [this](const void* mine, void* all, size_t bytes) {
                        return all_gather(mine, all, bytes, Type::uint8, {});
                      }};
  Groups& groups = *state_->groups;
  const Agreed agreed = agree(makers, state_->communicator->id(), groups, {color, key, 0, 0});
  std::vector<bool> avoided = down_anywhere(makers, groups);
  if (color < 0) {
    return made_of({}, 0, {});
  }
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < agreed.wishes.size(); ++rank) {
    if (agreed.wishes[rank].color == color) {
      ranks.push_back(rank);
    }
  }
  // Stable: ranks of one key stay in the order that they have in this group, as MPI_Comm_split() has it.
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](uint32_t a, uint32_t b) { return agreed.wishes[a].key < agreed.wishes[b].key; });
  const auto index = static_cast<uint32_t>(std::lower_bound(agreed.colors.begin(), agreed.colors.end(), color) -
                                           agreed.colors.begin());
  return made_of(std::move(ranks), agreed.numbers->ids()[index], std::move(avoided));
}

Group Group::subgroup(const std::vector<uint32_t>& ranks, const Exchange& exchange) {
  if (!state_->communicator || exchange.call == nullptr) {
    throw JoinError(exchange.call == nullptr ? "subgroup: there is no exchange" : "subgroup: this group has no ranks",
                    EINVAL);
  }
  std::vector<uint32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (ranks.empty() || sorted.back() >= size() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      !std::binary_search(sorted.begin(), sorted.end(), rank())) {
    throw JoinError(fmt::format("subgroup: ranks {} are no different ones of {}, with rank {}, who calls, among them",
                                fmt::join(ranks, ", "), size(), rank()),
                    EINVAL);
  }
  const Makers makers{"subgroup", ranks.size(), [&](const void* mine, void* all, size_t bytes) -> Status {
                        const int code = exchange.call(exchange.context, mine, all, bytes);
                        return code == 0 ? Status() : Status{code, fmt::format("the exchange failed with {}", code)};
                      }};
  Groups& groups = *state_->groups;
  const Agreed agreed = agree(makers, state_->communicator->id(), groups, {0, 0, 0, hash_of(ranks)});
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (agreed.wishes[i].ranks != hash_of(ranks)) {
      throw JoinError(fmt::format("subgroup: rank {} names other ranks than {}", ranks[i], fmt::join(ranks, ", ")),
                      EPROTO);
    }
  }
  return made_of(ranks, agreed.numbers->ids().front(), down_anywhere(makers, groups));
}

/// The group of these ranks of this one; none: of no rank.
Group Group::made_of(std::vector<uint32_t> ranks, uint16_t number, std::vector<bool> avoided) {
  Groups& groups = *state_->groups;
  auto made = std::make_unique<State>();
  made->options = state_->options;
  made->groups = state_->groups;
  if (!ranks.empty()) {
    const auto self = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
    std::transform(ranks.begin(), ranks.end(), ranks.begin(),
                   [&](uint32_t rank) { return state_->communicator->member(rank); });
    const base::LockGuard guard(groups.lock());
    if (!groups.are_joined(ranks, avoided)) {
      avoided.clear();  // old news of one cable, and news of another
    }
    made->communicator = groups.make_communicator(number, std::move(ranks), self, std::move(avoided));
  }
  return Group(std::move(made));
}

}  // namespace ringbolt::group
