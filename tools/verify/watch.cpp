#include "verify/watch.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"

namespace ringbolt::tools::verify {

Part::Part(Watch& watch, const std::string& title, std::function<std::string()> where) : watch_(watch) {
  watch.title_ = title;
  watch.where_ = std::move(where);
  watch.last_where_.clear();
  watch.fruitless_ = 0;
  watch.moved_ns_ = base::now_ns();  // what was before it is no gap
}

Part::~Part() {
  watch_.last_where_ = watch_.where();
  watch_.where_ = nullptr;
}

void Watch::show(uint64_t now_ns) {
  if (title_.empty() || !progress_.is_due(now_ns)) {
    return;
  }
  const uint64_t gap_ns = std::max(slowest_ns_, now_ns - std::min(now_ns, moved_ns_));
  progress_.show(fmt::format("{}: {:.1f} MB verified, {} messages, {} error{}, slowest gap {:.1f} ms", title_,
                             static_cast<double>(mine_.bytes + theirs_.bytes) / 1e6, mine_.messages + theirs_.messages,
                             errors_, errors_ == 1 ? "" : "s", static_cast<double>(gap_ns) / 1e6));
}

void Watch::look(uint64_t now_ns, const char* what) {
  show(now_ns);
  constexpr uint64_t kOftenNs = 250'000'000;
  if (mine_.bytes != told_bytes_ && now_ns - told_ns_ >= kOftenNs) {
    told_ns_ = now_ns;
    told_bytes_ = mine_.bytes;
    peer_.tell(kVerified, {mine_.messages, mine_.bytes});
  }
  if (const auto theirs = peer_.look(kVerified, what)) {
    const std::vector<uint64_t> counts = peer_.numbers_in(*theirs, 2);
    theirs_ = {counts[0], counts[1]};
  }
}

void Watch::moved() {
  constexpr uint32_t kRare = 256;
  const uint64_t now = base::now_ns();
  slowest_ns_ = std::max(slowest_ns_, now - std::min(now, moved_ns_));
  moved_ns_ = now;
  fruitless_ = 0;
  if (++turns_ % kRare == 0) {
    look(now, "its part");
  }
}

void Watch::idle(const char* what) {
  // Both ends often share a processor with others: soon let them work.
  constexpr uint32_t kYield = 64;
  constexpr uint32_t kRare = 256;
  constexpr uint32_t kTired = 1U << 14U;
  if (++fruitless_ % kYield != 0) {
    return;
  }
  if (fruitless_ > kTired) {
    constexpr timespec kNap{0, 100'000};
    ::nanosleep(&kNap, nullptr);
  } else {
    ::sched_yield();
    if (fruitless_ % kRare != 0) {
      return;
    }
  }
  const uint64_t now = base::now_ns();
  look(now, what);
  const uint64_t silent = now - moved_ns_;
  if (silent > stall_ns_) {
    const std::string stood = where();
    throw Stalled(fmt::format("nothing moved for {:.1f} s: awaited {} ({} is connected){}{}",
                              static_cast<double>(silent) / 1e9, what, peer_.name(), stood.empty() ? "" : "; ", stood));
  }
}

}  // namespace ringbolt::tools::verify
