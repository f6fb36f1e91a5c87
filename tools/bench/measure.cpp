#include "bench/measure.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "ranks/memory.h"

namespace ringbolt::tools::bench {
namespace {

/// One rank's memory for a call.
class Buffers {
 public:
  Buffers(const ranks::Work& work, uint32_t rank)
      : work_(work),
        rank_(rank),
        places_(ranks::places_of(work, rank)),
        input_(places_.is_shared ? 0 : places_.input_bytes),
        memory_(places_.memory_bytes()) {}

  const ranks::Work& work() const { return work_; }
  void prepare() {
    memory_.fill_with_canary();
    ranks::write_input(work_, rank_, input());
  }
  Status call(Group& group, const CallOptions& options) {
    return ranks::call(group, work_, input().data(), memory_.bytes().data() + places_.output_at, options);
  }
  /// Elements that are not what they must be; one more if bytes beside them were written.
  uint64_t count_wrong() const {
    std::vector<std::byte> expected(places_.output_bytes);
    ranks::write_expected(work_, rank_, expected);
    const std::span<const std::byte> got = memory_.bytes().subspan(places_.output_at, places_.output_bytes);
    const size_t element = ranks::bytes_of(work_.data.type);
    uint64_t wrong = memory_.is_guard_intact() && input_.is_guard_intact() ? 0 : 1;
    for (size_t at = 0; at < expected.size(); at += element) {
      wrong += std::memcmp(got.data() + at, expected.data() + at, element) != 0 ? 1U : 0U;
    }
    return wrong;
  }

 private:
  std::span<std::byte> input() {
    return places_.is_shared ? memory_.bytes().subspan(places_.input_at, places_.input_bytes) : input_.bytes();
  }

  const ranks::Work& work_;
  uint32_t rank_;
  ranks::Places places_;
  ranks::GuardedMemory input_;
  ranks::GuardedMemory memory_;
};

/// Whether one result is right and no other: what rounds by the order of ranks may not be added up in any order.
bool has_one_result(const ranks::Work& work, const Parameters& asked) {
  return asked.is_reproducible || !ranks::reduces(work.collective) ||
         ranks::has_exact_data(work.data.type, work.data.reduction);
}

/// What each rank has, on all of them: `mine` is equally long everywhere.
tl::expected<std::vector<std::vector<uint64_t>>, Status> share(Group& group, const std::vector<uint64_t>& mine) {
  std::vector<uint64_t> all(mine.size() * group.size());
  if (Status status = group.all_gather(mine.data(), all.data(), mine.size(), Type::uint64); !status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  std::vector<std::vector<uint64_t>> shared;
  for (auto at = all.begin(); at != all.end(); at += static_cast<ptrdiff_t>(mine.size())) {
    shared.emplace_back(at, at + static_cast<ptrdiff_t>(mine.size()));
  }
  return shared;
}

/// Repeated calls, timed where `times` is given. In place, sums grow from call to call: what they hold means nothing.
Status repeat(Group& group, Buffers& buffers, uint32_t n, const CallOptions& options, std::vector<uint64_t>* times,
              Progress& progress) {
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t begin = base::now_ns();
    if (Status status = buffers.call(group, options); !status.is_ok()) {
      return status;
    }
    if (times != nullptr) {
      times->push_back(base::now_ns() - begin);
    }
    if (progress.is_due(begin)) {
      progress.show(
          fmt::format("{}: call {} of {}{}", buffers.work().text(), i + 1, n, times == nullptr ? " to warm up" : ""));
    }
  }
  return {};
}

}  // namespace

tl::expected<Figure, Status> measure(Group& group, const ranks::Work& work, const Parameters& asked,
                                     Progress& progress) {
  CallOptions options;
  options.algorithm = ranks::has_algorithms(work.collective) ? asked.algorithm : "";
  options.is_reproducible = asked.is_reproducible;
  options.timeout_ms = asked.timeout_ms;
  const bool is_checked = asked.is_checked && has_one_result(work, asked);
  Buffers buffers(work, group.rank());
  buffers.prepare();
  std::vector<uint64_t> mine;
  Status status = repeat(group, buffers, asked.warmups, options, nullptr, progress);
  if (status.is_ok()) {
    status = group.barrier();
  }
  if (status.is_ok()) {
    status = repeat(group, buffers, asked.iterations, options, &mine, progress);
  }
  if (status.is_ok() && is_checked) {
    buffers.prepare();
    status = buffers.call(group, options);
  }
  if (!status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  mine.push_back(is_checked ? buffers.count_wrong() : 0);
  auto all = share(group, mine);
  if (!all) {
    return tl::unexpected<Status>(all.error());
  }
  Figure figure;
  figure.is_checked = is_checked;
  for (std::vector<uint64_t>& one : *all) {
    figure.n_wrong += one.back();
    one.pop_back();
  }
  figure.times = statistics_of(slowest_of(*all));
  figure.skew_us = skew_us(*all);
  const uint64_t bytes = counted_bytes(work.collective, work.count, ranks::bytes_of(work.data.type), work.n_ranks);
  figure.alg_gbps = figure.times.avg_us > 0 ? static_cast<double>(bytes) / figure.times.avg_us / 1000 : 0;
  figure.bus_gbps = figure.alg_gbps * bus_factor(work.collective, work.n_ranks);
  return figure;
}

}  // namespace ringbolt::tools::bench
