#include "verify/finding.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ringbolt::tools::verify {
namespace {

struct Text {
  const char* name;
  const char* hint;
};
constexpr const char* kBeforeData =
    "a completion came before its data: never trust the one without looking at the other here";
constexpr const char* kInTheTable = "what was verified before is in the table";
constexpr std::array<Text, static_cast<size_t>(Kind::kCount)> kTexts{{
    {"lost", "UC and UD may lose messages: --allow-loss PERCENT, if that is what you expect"},
    {"doubled", "the same message was delivered twice, or its buffer holds an earlier one"},
    {"order", ""},
    {"damaged", "data was altered on its way, or a buffer was read after its completion had given it back"},
    {"length", ""},
    {"outside", ""},
    {"late", kBeforeData},
    {"no-data", kBeforeData},
    {"stale", ""},
    {"foreign", ""},
    {"unasked", ""},
    {"status", "docs/errors.md has the meaning of each status"},
    {"nowhere", "look at the target's memory, never at the completion"},
    {"backwards", ""},
    {"account", ""},
    {"leak", "who ends a program gives its objects back; trying again does not help"},
    {"stall", kInTheTable},
    {"peer", kInTheTable},
}};

/// Counts may come from another end, and none of them may make a large sum a small one.
uint64_t saturating_sum(uint64_t a, uint64_t b) { return a + std::min(b, UINT64_MAX - a); }

}  // namespace

const char* text_of(Kind kind) { return kTexts[static_cast<size_t>(kind)].name; }

const char* hint_of(Kind kind) { return kTexts[static_cast<size_t>(kind)].hint; }

Tally::Tally(const Counts& counts, std::vector<Finding> findings)
    : counts_(counts), total_(std::accumulate(counts.begin(), counts.end(), uint64_t{0}, saturating_sum)) {
  for (Finding& one : findings) {
    if (has_room(one.kind)) {
      findings_.push_back(std::move(one));
    }
  }
}

bool Tally::has_room(Kind kind) const {
  return static_cast<size_t>(std::count_if(findings_.begin(), findings_.end(),
                                           [kind](const Finding& one) { return one.kind == kind; })) < kMostTexts;
}

void Tally::add(Kind kind, std::string text, uint64_t times) {
  uint64_t& count = counts_[static_cast<size_t>(kind)];
  count = saturating_sum(count, times);
  total_ = saturating_sum(total_, times);
  if (times > 0 && has_room(kind)) {
    findings_.push_back({kind, std::move(text)});
  }
}

void Tally::add(const Tally& other) {
  for (size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] = saturating_sum(counts_[i], other.counts_[i]);
  }
  total_ = saturating_sum(total_, other.total_);
  for (const Finding& one : other.findings_) {
    if (has_room(one.kind)) {
      findings_.push_back(one);
    }
  }
}

}  // namespace ringbolt::tools::verify
