#include "group/makers.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "group/word.h"

namespace ringbolt::group {
namespace {

/// Threads that split or shrink other groups may take the numbers each time; so often in a row, they don't.
/// Waits between them are random, below 64 ms (pause_apart()).
constexpr int kMostTries = 100;

/// Two groups that meet again and again must not do so in step: all ranks of one wait alike, those of the other as long
/// as they do.
std::chrono::milliseconds pause_apart(uint16_t group, int n_tries) {
  std::minstd_rand random(group * 131U + static_cast<uint32_t>(n_tries) + 1);
  random.discard(3);
  return std::chrono::milliseconds(random() % (2U << std::min(n_tries, 5)));
}

std::vector<int32_t> colors_of(const std::vector<Wish>& wishes) {
  std::vector<int32_t> colors;
  for (const Wish& wish : wishes) {
    if (wish.color >= 0) {
      colors.push_back(wish.color);
    }
  }
  std::sort(colors.begin(), colors.end());
  colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  return colors;
}

}  // namespace

uint32_t hash_of(const std::vector<uint32_t>& ranks) {
  uint32_t hash = 2166136261U;
  for (const uint32_t rank : ranks) {
    hash = (hash ^ rank) * 16777619U;
  }
  return hash;
}

uint16_t Agreed::number_of(int32_t color) const {
  const auto index = std::lower_bound(colors.begin(), colors.end(), color) - colors.begin();
  return numbers->numbers()[static_cast<size_t>(index)];
}

std::vector<uint32_t> Agreed::makers_of(int32_t color) const {
  std::vector<uint32_t> makers;
  for (uint32_t maker = 0; maker < wishes.size(); ++maker) {
    if (wishes[maker].color == color) {
      makers.push_back(maker);
    }
  }
  std::stable_sort(makers.begin(), makers.end(), [&](uint32_t a, uint32_t b) { return wishes[a].key < wishes[b].key; });
  return makers;
}

Makers::Makers(std::string what, size_t n, Exchange exchange, Pause pause)
    : what_(std::move(what)), n_(n), exchange_(std::move(exchange)), pause_(std::move(pause)) {}

void Makers::sleep(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

std::vector<bool> Makers::any_of(const std::vector<bool>& mine) const {
  const std::vector<uint8_t> told(mine.begin(), mine.end());
  const std::vector<uint8_t> all = gather(told.data(), told.size());
  std::vector<bool> any(mine.size());
  for (size_t i = 0; i < all.size(); ++i) {
    any[i % any.size()] = any[i % any.size()] || all[i] != 0;
  }
  return any;
}

/// The first `n` numbers that all ranks can give, as all ranks find them: fewer if there are not as many just now.
/// An exchange of 2 KiB of each rank, a bit for each number.
std::vector<uint16_t> Makers::free_everywhere(NumberSource& source, size_t n) const {
  std::vector<uint8_t> mine(kFirstShrunkGroup / 8);
  const std::vector<bool> free = source.free();
  for (size_t i = 0; i < free.size(); ++i) {
    mine[i / 8] = static_cast<uint8_t>(mine[i / 8] | (free[i] ? 1U << (i % 8) : 0U));
  }
  const std::vector<uint8_t> all = gather(mine.data(), mine.size());
  std::vector<uint16_t> numbers;
  for (size_t i = 0; i < 8 * mine.size() && numbers.size() < n; ++i) {
    bool is_free = true;
    for (size_t at = i / 8; at < all.size(); at += mine.size()) {
      is_free = is_free && (uint32_t{all[at]} >> (i % 8) & 1U) != 0;
    }
    if (is_free) {
      numbers.push_back(static_cast<uint16_t>(i));
    }
  }
  return numbers;
}

/// Numbers that nobody has had are found at once; when these have run out, all ranks tell which they can give again.
std::vector<uint16_t> Makers::numbers_for(NumberSource& source, uint32_t next_number, size_t n) const {
  if (next_number + n > kFirstShrunkGroup) {
    return free_everywhere(source, n);
  }
  std::vector<uint16_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), static_cast<uint16_t>(next_number));
  return numbers;
}

Agreed Makers::agree(NumberSource& source, uint16_t group, Wish mine) const {
  size_t n_missing = 0;
  for (int n_tries = 0; n_tries < kMostTries; ++n_tries) {
    mine.next_number = source.next();
    Agreed agreed;
    uint32_t next_number = 0;
    agreed.wishes = gather(&mine, 1);
    for (const Wish& wish : agreed.wishes) {
      next_number = std::max(next_number, wish.next_number);
    }
    agreed.colors = colors_of(agreed.wishes);
    std::vector<uint16_t> numbers = numbers_for(source, next_number, agreed.colors.size());
    n_missing = agreed.colors.size() - numbers.size();
    if (n_missing > 0) {  // what groups that have just ended have sent may be under way still
      pause_(pause_apart(group, n_tries));
      continue;
    }
    agreed.numbers = std::make_unique<Reservation>(source, std::move(numbers));
    const auto is_granted_here = static_cast<uint8_t>(agreed.numbers->is_granted());
    const std::vector<uint8_t> granted = gather(&is_granted_here, 1);
    if (std::all_of(granted.begin(), granted.end(), [](uint8_t is_granted) { return is_granted != 0; })) {
      return agreed;
    }
    agreed.numbers.reset();
    pause_(pause_apart(group, n_tries));
  }
  throw JoinError(n_missing > 0
                      ? fmt::format("{}: {} groups are there at the same time, and that is the most: destroy some",
                                    what_, kFirstShrunkGroup)
                      : fmt::format("{}: other threads have made groups {} times meanwhile", what_, kMostTries));
}

}  // namespace ringbolt::group
