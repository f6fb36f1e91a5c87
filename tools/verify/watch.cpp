#include "verify/watch.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"

namespace ringbolt::tools::verify {

Part::Part(Watch& watch, const std::string& title, std::function<std::string()> where) : watch_(watch) {
  watch.where_ = std::move(where);
  watch.last_where_.clear();
  watch.fruitless_ = 0;
  watch.progress_.begin(title);
}

Part::~Part() {
  watch_.last_where_ = watch_.where();
  watch_.where_ = nullptr;
}

void Watch::look(uint64_t now_ns, const char* what) {
  progress_.tick(now_ns);
  constexpr uint64_t kOftenNs = 250'000'000;
  if (progress_.bytes() != told_bytes_ && now_ns - told_ns_ >= kOftenNs) {
    told_ns_ = now_ns;
    told_bytes_ = progress_.bytes();
    peer_.tell(kVerified, {progress_.messages(), progress_.bytes()});
  }
  if (const auto theirs = peer_.look(kVerified, what)) {
    const std::vector<uint64_t> counts = peer_.numbers_in(*theirs, 2);
    progress_.set_theirs(counts[0], counts[1]);
  }
}

void Watch::moved() {
  constexpr uint32_t kRare = 256;
  const uint64_t now = base::now_ns();
  progress_.moved(now);
  fruitless_ = 0;
  if (++turns_ % kRare == 0) {
    look(now, "its part");
  }
}

bool Watch::idle(const char* what) {
  // Both ends often share a processor with others: soon let them work.
  constexpr uint32_t kYield = 64;
  constexpr uint32_t kRare = 256;
  constexpr uint32_t kTired = 1U << 14U;
  if (++fruitless_ % kYield != 0) {
    return false;
  }
  if (fruitless_ > kTired) {
    constexpr timespec kNap{0, 100'000};
    ::nanosleep(&kNap, nullptr);
  } else {
    ::sched_yield();
    if (fruitless_ % kRare != 0) {
      return false;
    }
  }
  const uint64_t now = base::now_ns();
  look(now, what);
  const uint64_t silent = now - progress_.last_moved_ns();
  if (silent > stall_ns_) {
    const std::string stood = where();
    throw Stalled(fmt::format("nothing moved for {:.1f} s: awaited {} ({} is connected){}{}",
                              static_cast<double>(silent) / 1e9, what, peer_.name(), stood.empty() ? "" : "; ", stood));
  }
  return true;
}

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
