#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// What a posted receive buffer holds until its completion: 0xa5a5a5a5 and the number of the request, again and again,
/// at every address that is a multiple of eight. Who reads too early reads that; where it turns up in what is sent, it
/// says from which buffer it was copied. All pure. Thread-safe.
namespace ringbolt::sanitizer {

/// Any address and length, as for all of these. The word begins at multiples of eight of the address, so that ranges
/// which are poisoned apart fit together.
void fill_with_poison(std::span<std::byte> memory, uint32_t number);

/// The first byte that is not the poison of that number, or nothing.
/// By data alone: what is received by chance like the poison counts as poison.
std::optional<size_t> first_unpoisoned(std::span<const std::byte> memory, uint32_t number);

/// Copies `kept` back to where the poison still stands; where it doesn't, somebody else has written. In blocks of 64
/// bytes. `kept` is as long as `memory`.
void restore(std::span<std::byte> memory, const std::byte* kept, uint32_t number);

/// Poison that is found somewhere, whole, at any alignment: of the `count` numbers from `first` on, which may wrap.
struct FoundPoison {
  size_t offset;
  uint32_t number;
};
/// At the speed of memory where there is none; each byte is read while the program may write it.
std::optional<FoundPoison> find_poison(std::span<const std::byte> memory, uint32_t first, uint32_t count);

}  // namespace ringbolt::sanitizer
