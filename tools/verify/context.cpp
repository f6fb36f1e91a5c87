#include "verify/context.h"

#include <charconv>

#include <fmt/format.h>

namespace ringbolt::tools::verify {

std::optional<std::vector<uint64_t>> numbers_in(std::string_view text, size_t count) {
  std::vector<uint64_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (size_t i = 0; i < count; ++i) {
    at += at != end && *at == ' ' ? 1 : 0;
    uint64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    at = next;
    numbers.push_back(number);
  }
  return at == end ? std::optional(numbers) : std::nullopt;
}

std::vector<uint64_t> numbers_of(pair::Peer& peer, std::string_view text, size_t count) {
  auto numbers = numbers_in(text, count);
  if (!numbers) {
    peer.fail("the figures of the other end make no sense");
  }
  return std::move(*numbers);
}

std::string text_of_numbers(const std::vector<uint64_t>& numbers) { return fmt::format("{}", fmt::join(numbers, " ")); }

}  // namespace ringbolt::tools::verify
