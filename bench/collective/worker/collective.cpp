#include "collective.h"

#include <cstring>
#include <new>
#include <stdexcept>

namespace ringbolt::bench {

Work parse_work(const std::string& operation) {
  Work work;
  if (operation == "barrier") {
    return work;
  }
  const std::size_t first = operation.find('/');
  const std::size_t second = operation.rfind('/');
  const std::string kind = operation.substr(0, first);
  const std::string place = second == std::string::npos ? "" : operation.substr(second + 1);
  if (first == second || (kind != "all_reduce" && kind != "all_gather") || (place != "in" && place != "out")) {
    throw std::runtime_error(
        fmt::format("operation {}: must be barrier or all_reduce|all_gather/TYPE/in|out", operation));
  }
  work.kind = kind == "all_reduce" ? Work::Kind::all_reduce : Work::Kind::all_gather;
  work.type = operation.substr(first + 1, second - first - 1);
  work.is_in_place = place == "in";
  return work;
}

Buffers::Buffers() {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kBytes = 2 * kMostInput;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, kBytes)));
  if (memory_ == nullptr) {
    throw std::bad_alloc();
  }
  std::memset(memory_.get(), 1, kBytes);
}

Places places_of(const Work& work, const Buffers& buffers, std::size_t length_bytes, unsigned rank, unsigned ranks) {
  const std::size_t n_parts = work.kind == Work::Kind::all_gather ? ranks : 1;
  if (length_bytes % sizeof(uint32_t) != 0 || length_bytes > kMostInput / n_parts) {
    throw std::runtime_error(fmt::format("{} bytes of {} ranks: must be a multiple of 4, and all of them {} at most",
                                         length_bytes, n_parts, kMostInput));
  }
  std::byte* const out = buffers.output();
  if (!work.is_in_place) {
    return {buffers.input(), out};
  }
  return {work.kind == Work::Kind::all_gather ? out + rank * length_bytes : out, out};
}

void expect_output(const Work& work, const Pattern& pattern, const Places& places, std::size_t length_bytes,
                   unsigned ranks, uint64_t number) {
  if (work.kind == Work::Kind::all_reduce) {
    expect_sum(pattern, places.out, length_bytes, 0, ranks, number);
  } else if (work.kind == Work::Kind::all_gather) {
    for (unsigned rank = 0; rank < ranks; ++rank) {
      expect_sum(pattern, places.out + rank * length_bytes, length_bytes, rank, 1, number);
    }
  }
}

}  // namespace ringbolt::bench
