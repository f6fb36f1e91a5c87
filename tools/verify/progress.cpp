#include "verify/progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/say.h"

namespace ringbolt::tools::verify {

void Progress::begin(const std::string& title) {
  title_ = title;
  moved_ns_ = base::now_ns();
}

void Progress::moved(uint64_t now_ns) {
  slowest_ns_ = std::max(slowest_ns_, now_ns - std::min(now_ns, moved_ns_));
  moved_ns_ = now_ns;
}

void Progress::tick(uint64_t now_ns) {
  if (title_.empty() || !out_.is_due(now_ns)) {
    return;
  }
  out_.show(fmt::format("{}: {:.1f} MB verified, {} messages, {} error{}, slowest gap {:.1f} ms", title_,
                        static_cast<double>(bytes_ + their_bytes_) / 1e6, messages_ + their_messages_, errors_,
                        errors_ == 1 ? "" : "s",
                        static_cast<double>(std::max(slowest_ns_, now_ns - std::min(now_ns, moved_ns_))) / 1e6));
}

}  // namespace ringbolt::tools::verify
