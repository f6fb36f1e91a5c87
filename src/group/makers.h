#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "group/failure.h"
#include "ringbolt/status.h"

namespace ringbolt::group {

/// Numbers of groups, as one rank can give them away: GroupNumbers, behind whatever lock guards them. Each function
/// takes that lock for itself.
class NumberSource {
 public:
  virtual ~NumberSource() = default;
  /// The first one that no group of this rank has had. kFirstShrunkGroup: they have run out.
  virtual uint16_t next() = 0;
  /// [number], kFirstShrunkGroup of them: which can be given, again or for the first time.
  virtual std::vector<bool> free() = 0;
  /// Keeps numbers for groups that are about to be made, until release(); false, and nothing is kept, if one of them
  /// is given away already.
  virtual bool reserve(std::span<const uint16_t> numbers) = 0;
  virtual void release(std::span<const uint16_t> numbers) = 0;
};

/// Numbers that this rank gives to nobody else meanwhile.
/// `source` must outlive it. Its lock must be free when this begins and ends.
class Reservation {
 public:
  Reservation(NumberSource& source, std::vector<uint16_t> numbers)
      : source_(source), numbers_(std::move(numbers)), is_granted_(source_.reserve(numbers_)) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (is_granted_) {
      source_.release(numbers_);
    }
  }
  bool is_granted() const { return is_granted_; }
  const std::vector<uint16_t>& numbers() const { return numbers_; }

 private:
  NumberSource& source_;
  std::vector<uint16_t> numbers_;
  bool is_granted_ = false;
};

/// What one maker wants. Goes from rank to rank as it lies in memory, 16 bytes.
struct Wish {
  int32_t color = 0;  ///< makers of one color become one group; negative: of none
  int32_t key = 0;    ///< their order in it
  uint32_t next_number = 0;
  uint32_t ranks = 0;  ///< hash_of() them where each maker says which they are
};
static_assert(sizeof(Wish) == 16);

/// FNV-1a.
/// Word by word, of their order, too.
uint32_t hash_of(const std::vector<uint32_t>& ranks);

/// What all makers wish, and the numbers that all of them have kept for the groups, one for each color.
struct Agreed {
  std::vector<Wish> wishes;     // [maker]
  std::vector<int32_t> colors;  // in order, each once, none negative
  std::unique_ptr<Reservation> numbers;

  /// `color`: one of the colors.
  uint16_t number_of(int32_t color) const;
  /// The makers of one color, in the order of their group: by key, and by their own order where keys are alike, as
  /// MPI_Comm_split() has it.
  std::vector<uint32_t> makers_of(int32_t color) const;
};

/// Ranks that make groups together, and how they tell each other bytes, alike many of each. All functions are called by
/// all makers, in the same order, and what each decides by, all have gathered: so all leave a function alike. They
/// block as the exchange does, and throw JoinError when it fails. One thread at a time.
class Makers {
 public:
  /// Brings `bytes` bytes of each maker, one after the other, to all of them.
  using Exchange = std::function<Status(const void* mine, void* all, size_t bytes)>;
  using Pause = std::function<void(std::chrono::milliseconds)>;

  /// `what`: the call, for words. `pause`: sleeps, but in tests.
  Makers(std::string what, size_t n, Exchange exchange, Pause pause = sleep);

  /// Other threads of any rank may make groups meanwhile, on each rank in another order: whoever has given a number
  /// away says so, and all try again after a pause. `group`: the number of the one that the makers are of, by which
  /// those of several groups pause for different times. JoinError also: too many groups are there, or others have come
  /// first too often.
  Agreed agree(NumberSource& source, uint16_t group, Wish mine) const;
  /// [cable]: what is so at any of the makers, who all say it of alike many.
  std::vector<bool> any_of(const std::vector<bool>& mine) const;

 private:
  static void sleep(std::chrono::milliseconds time);
  /// `n` of each of them.
  /// [n_ * n], by maker.
  template <class T>
  std::vector<T> gather(const T* mine, size_t n) const {
    std::vector<T> all(n_ * n);
    const Status status = exchange_(mine, all.data(), n * sizeof(T));
    if (!status.is_ok()) {
      throw JoinError(what_ + ": " + status.text, status.code);
    }
    return all;
  }
  std::vector<uint16_t> free_everywhere(NumberSource& source, size_t n) const;
  std::vector<uint16_t> numbers_for(NumberSource& source, uint32_t next_number, size_t n) const;

  std::string what_;
  size_t n_;
  Exchange exchange_;
  Pause pause_;
};

}  // namespace ringbolt::group
