// Registered memory with guard bytes, filled and checked piece by piece.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "handles.h"

namespace ringbolt::conformance {

/// A part of a region: one entry of a scatter-gather list.
struct Piece {
  uint64_t offset;
  uint32_t length;
};

/// Cuts `length` bytes into `count` pieces of different sizes (zero among them) with gaps between.
std::vector<Piece> split(uint32_t length, uint32_t count, uint64_t first_offset = 64);

/// Bytes of a region that holds the pieces and a guard behind them.
uint64_t room_for(std::span<const Piece> pieces);

inline constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// ibv_reg_mr with the flags as one number; null and errno when refused.
Mr try_register(ibv_pd* pd, void* memory, size_t length_bytes, unsigned access);
/// The same; throws SetUpError when refused.
Mr register_memory(ibv_pd* pd, void* memory, size_t length_bytes, unsigned access);

/// Page-aligned memory, full of kGuard at first, and its registration.
class Region {
 public:
  Region(ibv_pd* pd, size_t length_bytes, unsigned access = kAllAccess);

  uint8_t* data() const { return memory_.get(); }
  size_t size() const { return length_; }
  uint64_t address(uint64_t offset = 0) const {
    return reinterpret_cast<uint64_t>(memory_.get()) + offset;
  }
  uint32_t lkey() const { return mr->lkey; }
  uint32_t rkey() const { return mr->rkey; }
  std::span<uint8_t> bytes() const { return {memory_.get(), length_}; }

  ibv_sge sge(uint64_t offset, uint32_t length) const;
  std::vector<ibv_sge> sges(std::span<const Piece> pieces) const;

  /// Writes the message `seed` through the pieces, in their order.
  void fill(std::span<const Piece> pieces, uint64_t seed);
  /// Sets every byte to kGuard.
  void clear();
  /// Empty when the first `length` bytes of the pieces hold the message `seed` and every other byte
  /// of the region is kGuard; else what is wrong and where.
  std::string check(std::span<const Piece> pieces, uint64_t length, uint64_t seed) const;

  /// Value of the 8 bytes at `offset`, and setting them (host byte order).
  uint64_t word(uint64_t offset) const;
  void set_word(uint64_t offset, uint64_t value);

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  size_t length_;
  std::unique_ptr<uint8_t, Free> memory_;

 public:
  /// The registration; tests may reset or re-register it.
  Mr mr;
};

}  // namespace ringbolt::conformance
