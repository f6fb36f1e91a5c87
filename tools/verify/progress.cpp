#include "verify/progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/say.h"

namespace ringbolt::tools::verify {

Progress::~Progress() {
  if (has_line_) {
    base::say("\n");
  }
}

void Progress::begin(const std::string& title) {
  title_ = title;
  moved_ns_ = base::now_ns();
  if (begin_ns_ == 0) {
    begin_ns_ = printed_ns_ = moved_ns_;
  }
}

void Progress::moved(uint64_t now_ns) {
  slowest_ns_ = std::max(slowest_ns_, now_ns - std::min(now_ns, moved_ns_));
  moved_ns_ = now_ns;
}

void Progress::tick(uint64_t now_ns) {
  if (style_ == Style::kNone || begin_ns_ == 0 || now_ns - printed_ns_ < period_ns_) {
    return;
  }
  printed_ns_ = now_ns;
  const std::string line = fmt::format(
      "{:.0f} s: {}: {:.1f} MB verified, {} messages, {} error{}, slowest gap {:.1f} ms",
      static_cast<double>(now_ns - begin_ns_) / 1e9, title_, static_cast<double>(bytes_) / 1e6, messages_, errors_,
      errors_ == 1 ? "" : "s", static_cast<double>(std::max(slowest_ns_, now_ns - moved_ns_)) / 1e6);
  switch (style_) {
    case Style::kTerminal:
      base::say(fmt::format("\r{}\x1b[K", line));
      has_line_ = true;
      break;
    case Style::kForParent:
      base::say(fmt::format("{}{}\n", kMark, line));
      break;
    default:
      base::say(fmt::format("ringbolt verify: {}\n", line));
      break;
  }
  std::fflush(stderr);
}

}  // namespace ringbolt::tools::verify
