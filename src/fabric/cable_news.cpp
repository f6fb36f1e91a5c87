#include "fabric/cable_news.h"

#include <algorithm>
#include <cerrno>

#include "base/little_endian.h"

namespace ringbolt::fabric {
namespace {

constexpr size_t kNewsBytes = 4;

}  // namespace

std::vector<std::byte> emit_news(std::span<const uint16_t> versions, uint64_t turn) {
  std::vector<uint16_t> changed;
  for (size_t cable = 0; cable < versions.size(); ++cable) {
    if (versions[cable] != 0) {
      changed.push_back(static_cast<uint16_t>(cable));
    }
  }
  const size_t n = std::min(changed.size(), kMostNews);
  if (n < changed.size()) {
    // The product may wrap around, which repeats some and leaves out others for one turn.
    const auto first = static_cast<std::ptrdiff_t>(turn * kMostNews % changed.size());
    std::rotate(changed.begin(), changed.begin() + first, changed.end());
  }
  std::vector<std::byte> out(n * kNewsBytes);
  for (size_t i = 0; i < n; ++i) {
    base::put_le<uint16_t>(out, i * kNewsBytes, changed[i]);
    base::put_le<uint16_t>(out, i * kNewsBytes + 2, versions[changed[i]]);
  }
  return out;
}

base::Result<std::vector<CableNews>> parse_news(std::span<const std::byte> in) {
  if (in.size() % kNewsBytes != 0) {
    return base::fail(EBADMSG);
  }
  std::vector<CableNews> news;
  for (size_t at = 0; at < in.size(); at += kNewsBytes) {
    news.push_back({base::get_le<uint16_t>(in, at), base::get_le<uint16_t>(in, at + 2)});
  }
  std::stable_partition(news.begin(), news.end(), [](const CableNews& one) { return one.works(); });
  return news;
}

}  // namespace ringbolt::fabric
