#include "bench/parameters.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "collective/builder.h"
#include "collective/element.h"
#include "failure.h"

namespace ringbolt::tools::bench {
namespace {

using ranks::Collective;

constexpr uint64_t kMostBytes = uint64_t{1} << 36U;
constexpr size_t kMostSizes = 4096;

/// Whether its size is that of all ranks' parts.
bool has_parts(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::all_gather ||
         collective == Collective::gather || collective == Collective::scatter || collective == Collective::all_to_all;
}

Collective collective_of(const std::string& name) {
  const auto found = ranks::collective_of(name);
  if (!found || *found == Collective::all_gatherv || *found == Collective::all_to_allv) {
    throw UsageError(fmt::format(
        "{}: there are all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter, "
        "send_recv, barrier, stream",
        name));
  }
  return *found;
}

std::vector<Type> types_of(const std::string& name) {
  if (name == "all") {
    std::vector<Type> types;
    for (uint32_t i = 0; i < collective::kTypes; ++i) {
      types.push_back(static_cast<Type>(i));
    }
    return types;
  }
  const auto type = collective::type_of(name);
  if (!type) {
    throw UsageError(
        fmt::format("-d {}: give a type, such as float, half, bfloat16, double, int32, uint8, or all", name));
  }
  return {static_cast<Type>(*type)};
}

std::vector<Reduction> reductions_of(const std::string& name) {
  if (name == "all") {
    return {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min, Reduction::avg};
  }
  const auto reduction = collective::reduction_of(name);
  if (!reduction) {
    throw UsageError(fmt::format("-o {}: give sum, prod, max, min, avg, or all", name));
  }
  return {static_cast<Reduction>(*reduction)};
}

int64_t root_of(const std::string& text) {
  uint32_t root = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), root);
  if (text == "all" || text == "-1") {
    return kAllRoots;
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(fmt::format("-r {}: give a rank, or all", text));
  }
  return root;
}

/// A bare -c is yes, as JACCL's bench has it.
bool is_checked(const std::string& text) {
  if (text.empty() || text == "{}" || (text.find_first_not_of("0123456789") == std::string::npos && text != "0")) {
    return true;
  }
  if (text != "0") {
    throw UsageError(fmt::format("-c {}: give 1 to compare results, or 0", text));
  }
  return false;
}

}  // namespace

uint64_t bytes_of(const char* option, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string suffix(end, text.data() + text.size());
  const std::string_view known = "kKmMgG";
  const bool is_known = suffix.empty() || (suffix.size() == 1 && known.find(suffix[0]) != std::string_view::npos);
  if ((error != std::errc() && error != std::errc::result_out_of_range) || !is_known) {
    throw UsageError(fmt::format("{} {}: give bytes, such as 8, 64K, 1M or 2G", option, text));
  }
  const size_t shift = suffix.empty() ? 0 : 10 * (known.find(suffix[0]) / 2 + 1);
  if (error != std::errc() || value > kMostBytes >> shift) {
    throw UsageError(fmt::format("{} {}: 64 GiB is the most", option, text));
  }
  return value << shift;
}

std::vector<uint64_t> sizes_of(uint64_t least, uint64_t most, uint64_t step, uint64_t factor) {
  if (least == 0 && most > 0 && step == 0) {
    throw UsageError(
        fmt::format("-b 0: times {} it stays 0; give -b 1 or more, -i to add from size to size, or -e 0", factor));
  }
  if (step > 0 && (most - least) / step >= kMostSizes) {
    throw UsageError(
        fmt::format("-i {}: from {} to {} that makes {} sizes, and {} are the most; give a longer step, or -f", step,
                    least, most, (most - least) / step + 1, kMostSizes));
  }
  std::vector<uint64_t> sizes;
  for (uint64_t size = least; size <= most; size = step > 0 ? size + step : size * factor) {
    sizes.push_back(size);
    if (most == 0) {
      break;
    }
  }
  return sizes;
}

Parameters parameters_of(const BenchOptions& options) {
  Parameters asked;
  asked.collective = collective_of(options.collective);
  const uint64_t least = bytes_of("-b", options.least);
  const uint64_t most =
      options.most.empty() ? std::max<uint64_t>(least, uint64_t{4} << 20U) : bytes_of("-e", options.most);
  if (least > most) {
    throw UsageError(fmt::format("-b {} is above -e {}", options.least, options.most));
  }
  const uint64_t step = options.step.empty() ? 0 : bytes_of("-i", options.step);
  asked.types = types_of(options.type);
  asked.reductions = {Reduction::sum};
  if (ranks::reduces(asked.collective)) {
    asked.reductions = reductions_of(options.reduction);
  }
  asked.roots = {ranks::has_root(asked.collective) ? root_of(options.root) : 0};
  if (asked.collective == Collective::barrier) {
    asked.sizes = {0};
    asked.types = {Type::uint8};
  } else {
    asked.sizes = sizes_of(least, most, step, options.factor);
  }
  asked.iterations = options.iterations;
  asked.warmups = options.warmups;
  asked.cycles = options.cycles;
  asked.is_checked = is_checked(options.check);
  asked.is_reproducible = !options.is_fast;
  const std::vector<std::string> names = collective::schedule_names();
  if (!options.algorithm.empty() && std::find(names.begin(), names.end(), options.algorithm) == names.end()) {
    throw UsageError(fmt::format("--algorithm {}: there are {}", options.algorithm, fmt::join(names, ", ")));
  }
  asked.algorithm = options.algorithm;
  asked.timeout_ms = static_cast<uint64_t>(options.call_timeout_s.value_or(0) * 1000);
  return asked;
}

size_t count_of(Collective collective, uint64_t bytes, size_t element_bytes, uint32_t n_ranks) {
  return static_cast<size_t>(bytes / element_bytes / (has_parts(collective) ? n_ranks : 1));
}

uint64_t counted_bytes(Collective collective, size_t count, size_t element_bytes, uint32_t n_ranks) {
  return collective == Collective::barrier ? 0
                                           : uint64_t{count} * element_bytes * (has_parts(collective) ? n_ranks : 1);
}

double bus_factor(Collective collective, uint32_t n_ranks) {
  const auto n = static_cast<double>(n_ranks);
  if (collective == Collective::all_reduce) {
    return 2 * (n - 1) / n;
  }
  return has_parts(collective) ? (n - 1) / n : 1;
}

}  // namespace ringbolt::tools::bench
