#include "ranks/texts.h"

#include <cstdint>
#include <numeric>

namespace ringbolt::tools::ranks {

tl::expected<std::vector<std::string>, Status> exchange_texts(Group& group, const std::string& mine,
                                                              uint64_t timeout_ms) {
  CallOptions options;
  options.timeout_ms = timeout_ms;
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(group.size());
  if (Status status = group.all_gather(&length, lengths.data(), 1, Type::uint64, options); !status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  const std::vector<size_t> counts(lengths.begin(), lengths.end());
  std::string all(std::accumulate(counts.begin(), counts.end(), size_t{0}), '\0');
  if (Status status = group.all_gatherv(mine.data(), all.data(), counts, Type::uint8, options); !status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  std::vector<std::string> texts;
  size_t at = 0;
  for (const size_t count : counts) {
    texts.push_back(all.substr(at, count));
    at += count;
  }
  return texts;
}

}  // namespace ringbolt::tools::ranks
