#include "ranks/work.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "collective/element.h"

namespace ringbolt::tools::ranks {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames{"all_reduce", "reduce_scatter", "all_gather", "all_gatherv",
                                                            "broadcast",  "reduce",         "gather",     "scatter",
                                                            "all_to_all", "all_to_allv",    "send_recv",  "barrier"};

/// The elements of all shares before that of `rank`.
size_t elements_before(const Work& work, uint32_t rank) {
  size_t count = 0;
  for (uint32_t r = 0; r < rank; ++r) {
    count += share_count(work, r);
  }
  return count;
}

/// What rank `to` finds at the beginning of what rank `from` has for it, in elements.
size_t elements_to_before(const Work& work, uint32_t from, uint32_t to) {
  size_t count = 0;
  for (uint32_t s = 0; s < to; ++s) {
    count += work.collective == Collective::all_to_allv ? pair_count(work, from, s) : work.count;
  }
  return count;
}

size_t elements_to(const Work& work, uint32_t from, uint32_t to) {
  return work.collective == Collective::all_to_allv ? pair_count(work, from, to) : work.count;
}

/// Elements in and out of rank `rank`.
std::pair<size_t, size_t> counts_of(const Work& work, uint32_t rank) {
  const size_t n = work.n_ranks;
  const size_t count = work.count;
  const bool is_root = rank == work.root;
  switch (work.collective) {
    case Collective::all_reduce:
    case Collective::send_recv:
      return {count, count};
    case Collective::reduce_scatter:
      return {n * count, count};
    case Collective::all_gather:
      return {count, n * count};
    case Collective::all_gatherv:
      return {share_count(work, rank), elements_before(work, work.n_ranks)};
    case Collective::broadcast:
      return {is_root ? count : 0, count};
    case Collective::reduce:
      return {count, is_root ? count : 0};
    case Collective::gather:
      return {count, is_root ? n * count : 0};
    case Collective::scatter:
      return {is_root ? n * count : 0, count};
    case Collective::all_to_all:
      return {n * count, n * count};
    case Collective::all_to_allv: {
      size_t received = 0;
      for (uint32_t from = 0; from < work.n_ranks; ++from) {
        received += pair_count(work, from, rank);
      }
      return {elements_to_before(work, rank, work.n_ranks), received};
    }
    case Collective::barrier:
      break;
  }
  return {0, 0};
}

/// All ranks' elements `first` and following, reduced.
void write_reduced(const Work& work, uint64_t first, std::span<std::byte> output) {
  constexpr size_t kBlockElements = 4096;
  const size_t element = bytes_of(work.data.type);
  std::vector<std::vector<std::byte>> blocks(work.n_ranks, std::vector<std::byte>(kBlockElements * element));
  for (size_t at = 0; at < output.size(); at += kBlockElements * element) {
    const std::span<std::byte> to = output.subspan(at, std::min(kBlockElements * element, output.size() - at));
    std::vector<std::span<const std::byte>> inputs;
    for (uint32_t rank = 0; rank < work.n_ranks; ++rank) {
      const std::span<std::byte> block(blocks[rank].data(), to.size());
      generate(work.data, rank, first + at / element, block);
      inputs.emplace_back(block);
    }
    reduce_serially(work.data.type, work.data.reduction, inputs, to);
  }
}

/// The calls that this rank makes of a ring of messages.
Status send_around(Group& group, const Work& work, const std::byte* input, std::byte* output,
                   const CallOptions& options) {
  const uint32_t n = group.size();
  Request receive = group.recv_async(output, work.count, work.data.type, (group.rank() + n - 1) % n, options);
  Request send = group.send_async(input, work.count, work.data.type, (group.rank() + 1) % n, options);
  Status sent = send.wait();
  Status received = receive.wait();
  return sent.is_ok() ? received : sent;
}

Status call_with_counts(Group& group, const Work& work, const std::byte* input, std::byte* output,
                        const CallOptions& options) {
  const uint32_t n = work.n_ranks;
  std::vector<size_t> sent(n);
  std::vector<size_t> received(n);
  for (uint32_t other = 0; other < n; ++other) {
    sent[other] = pair_count(work, group.rank(), other);
    received[other] = pair_count(work, other, group.rank());
  }
  if (work.collective == Collective::all_to_allv) {
    return group.all_to_allv(input, sent, output, received, work.data.type, options);
  }
  for (uint32_t other = 0; other < n; ++other) {
    sent[other] = share_count(work, other);
  }
  return group.all_gatherv(input, output, sent, work.data.type, options);
}

}  // namespace

std::string_view text(Collective collective) { return kNames.at(static_cast<size_t>(collective)); }

std::optional<Collective> collective_of(std::string_view text) {
  const auto* found = std::find(kNames.begin(), kNames.end(), text);
  return found == kNames.end() ? std::nullopt
                               : std::optional(static_cast<Collective>(std::distance(kNames.begin(), found)));
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

bool can_be_in_place(Collective collective) {
  return reduces(collective) || collective == Collective::all_gather || collective == Collective::all_gatherv ||
         collective == Collective::broadcast;
}

bool has_algorithms(Collective collective) { return collective != Collective::send_recv; }

std::string Work::text() const {
  if (collective == Collective::barrier) {
    return "barrier";
  }
  std::string words = fmt::format("{} of {} {}", ranks::text(collective), count,
                                  collective::text(static_cast<collective::Type>(data.type)));
  if (reduces(collective)) {
    words += fmt::format(", {}", collective::text(static_cast<collective::Reduction>(data.reduction)));
  }
  if (has_root(collective)) {
    words += fmt::format(", root {}", root);
  }
  return words + (is_in_place ? ", in place" : "");
}

size_t pair_count(const Work& work, uint32_t from, uint32_t to) { return work.count * ((3 * from + 5 * to) % 4) / 2; }

size_t share_count(const Work& work, uint32_t rank) {
  return work.collective == Collective::all_gatherv ? work.count * (rank % 3) : work.count;
}

size_t Places::memory_bytes() const {
  return is_shared ? std::max(input_at + input_bytes, output_at + output_bytes) : output_bytes;
}

Places places_of(const Work& work, uint32_t rank) {
  const size_t element = bytes_of(work.data.type);
  const auto [in, out] = counts_of(work, rank);
  Places places{in * element, out * element, work.is_in_place, 0, 0};
  RINGBOLT_ASSERT(work.is_in_place ? can_be_in_place(work.collective) : work.collective != Collective::broadcast);
  if (work.is_in_place && work.collective == Collective::reduce_scatter) {
    places.output_at = rank * work.count * element;
  } else if (work.is_in_place &&
             (work.collective == Collective::all_gather || work.collective == Collective::all_gatherv)) {
    places.input_at = elements_before(work, rank) * element;
  }
  return places;
}

void write_input(const Work& work, uint32_t rank, std::span<std::byte> input) { generate(work.data, rank, 0, input); }

void write_expected(const Work& work, uint32_t rank, std::span<std::byte> output) {
  const size_t element = bytes_of(work.data.type);
  switch (work.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return write_reduced(work, 0, output);
    case Collective::reduce_scatter:
      return write_reduced(work, uint64_t{rank} * work.count, output);
    case Collective::all_gather:
    case Collective::all_gatherv:
    case Collective::gather:
      for (uint32_t from = 0; from < work.n_ranks && !output.empty(); ++from) {
        const size_t length = share_count(work, from) * element;
        generate(work.data, from, 0, output.first(length));
        output = output.subspan(length);
      }
      return;
    case Collective::broadcast:
      return generate(work.data, work.root, 0, output);
    case Collective::scatter:
      return generate(work.data, work.root, uint64_t{rank} * work.count, output);
    case Collective::all_to_all:
    case Collective::all_to_allv:
      for (uint32_t from = 0; from < work.n_ranks; ++from) {
        const size_t length = elements_to(work, from, rank) * element;
        generate(work.data, from, elements_to_before(work, from, rank), output.first(length));
        output = output.subspan(length);
      }
      return;
    case Collective::send_recv:
      return generate(work.data, (rank + work.n_ranks - 1) % work.n_ranks, 0, output);
    case Collective::barrier:
      return;
  }
}

Status call(Group& group, const Work& work, const std::byte* input, std::byte* output, const CallOptions& options) {
  const size_t count = work.count;
  const Type type = work.data.type;
  const Reduction reduction = work.data.reduction;
  switch (work.collective) {
    case Collective::all_reduce:
      return group.all_reduce(input, output, count, type, reduction, options);
    case Collective::reduce_scatter:
      return group.reduce_scatter(input, output, count, type, reduction, options);
    case Collective::all_gather:
      return group.all_gather(input, output, count, type, options);
    case Collective::broadcast:
      return group.broadcast(output, count, type, work.root, options);
    case Collective::reduce:
      return group.reduce(input, output, count, type, reduction, work.root, options);
    case Collective::gather:
      return group.gather(input, output, count, type, work.root, options);
    case Collective::scatter:
      return group.scatter(input, output, count, type, work.root, options);
    case Collective::all_to_all:
      return group.all_to_all(input, output, count, type, options);
    case Collective::all_gatherv:
    case Collective::all_to_allv:
      return call_with_counts(group, work, input, output, options);
    case Collective::send_recv:
      return send_around(group, work, input, output, options);
    case Collective::barrier:
      break;
  }
  return group.barrier(options);
}

GuardedMemory::GuardedMemory(size_t length_bytes) { resize(length_bytes); }

void GuardedMemory::resize(size_t length_bytes) {
  length_bytes_ = length_bytes;
  all_.resize(length_bytes + 2 * kGuardBytes);
  std::fill_n(all_.begin(), kGuardBytes, kGuard);
  std::fill_n(all_.end() - static_cast<ptrdiff_t>(kGuardBytes), kGuardBytes, kGuard);
}

void GuardedMemory::fill_with_canary() {
  const std::span<std::byte> to = bytes();
  for (size_t at = 0; at < to.size(); at += sizeof(kCanary)) {
    std::memcpy(to.data() + at, &kCanary, std::min(sizeof(kCanary), to.size() - at));
  }
}

bool GuardedMemory::is_guard_intact() const {
  const auto is_guard = [](std::byte one) { return one == kGuard; };
  return std::all_of(all_.begin(), all_.begin() + static_cast<ptrdiff_t>(kGuardBytes), is_guard) &&
         std::all_of(all_.end() - static_cast<ptrdiff_t>(kGuardBytes), all_.end(), is_guard);
}

size_t first_difference(std::span<const std::byte> got, std::span<const std::byte> want, size_t element_bytes) {
  RINGBOLT_ASSERT(got.size() == want.size() && element_bytes > 0);
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size()) == 0) {
    return got.size() / element_bytes;
  }
  const auto at = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
  return static_cast<size_t>(at) / element_bytes;
}

}  // namespace ringbolt::tools::ranks
