#include "device/verb_faults.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "device/port.h"

namespace ringbolt::device {

void VerbFaults::look() {
  const bool is_news = control_.is_open() && control_.generation() != generation_.load(std::memory_order_relaxed);
  if (is_news || !has_looked_.load(std::memory_order_relaxed)) {
    read();
  }
}

void VerbFaults::read() {
  const base::LockGuard guard(lock_);
  has_looked_.store(true, std::memory_order_relaxed);
  if (control_.is_open()) {
    generation_.store(control_.generation());  // before the file: a change in between is seen the next time
  }
  std::string complaint;
  plan_ = source_.read(complaint);
  if (!complaint.empty()) {
    base::say("ringbolt: no faults of the cluster: " + complaint + "\n");
  }
  std::erase_if(plan_.rules,
                [](const fault::Rule& rule) { return fault::subject_of(rule.kind) == fault::Subject::frame; });
  uint32_t subjects = shuffle_ ? 1U << static_cast<unsigned>(fault::Subject::call) : 0;
  for (const fault::Rule& rule : plan_.rules) {
    subjects |= 1U << static_cast<unsigned>(fault::subject_of(rule.kind));
  }
  for (auto& [key, stream] : streams_) {
    stream.set_rules(plan_, base::now_ns());
  }
  version_.fetch_add(1, std::memory_order_release);
  subjects_.store(subjects);
}

fault::Stream& VerbFaults::stream_of(fault::Subject subject, std::optional<fault::Object> object, const Port& port) {
  const auto [found, is_new] =
      streams_.try_emplace({port.name, subject, object}, place_of(port), fault::Direction::send, subject, object);
  if (is_new) {
    found->second.set_rules(plan_, base::now_ns());
  }
  return found->second;
}

// Who asks is posting or polling, and can't wait or throw: without memory for its account nothing befalls it.

fault::Verdict VerbFaults::judge(fault::Subject subject, std::optional<fault::Object> object, const Port& port,
                                 size_t bytes) noexcept try {
  const base::LockGuard guard(lock_);
  return stream_of(subject, object, port).judge(bytes, base::now_ns());
} catch (const std::bad_alloc&) {
  return {};
}

fault::Verdict VerbFaults::judge_again(const Port& port, uint64_t number, uint32_t repetition, size_t bytes) noexcept
    try {
  const base::LockGuard guard(lock_);
  return stream_of(fault::Subject::message, {}, port).judge_again(number, repetition, bytes, base::now_ns());
} catch (const std::bad_alloc&) {
  return {};
}

std::optional<fault::Rule> VerbFaults::holding(fault::Kind kind, const Port& port) noexcept try {
  const base::LockGuard guard(lock_);
  const fault::Rule* rule = stream_of(fault::subject_of(kind), {}, port).holding(kind, base::now_ns());
  return rule == nullptr ? std::nullopt : std::optional(*rule);
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

fault::Plan VerbFaults::rules_of(fault::Call call, std::span<const uint32_t> queue_pairs) {
  const base::LockGuard guard(lock_);
  fault::Plan plan;
  std::ranges::copy_if(plan_.rules, std::back_inserter(plan.rules), [&](const fault::Rule& rule) {
    return rule.call == call &&
           (!rule.queue_pair || std::ranges::find(queue_pairs, *rule.queue_pair) != queue_pairs.end());
  });
  return plan;
}

bool VerbFaults::has_rule(fault::Kind kind, const Port& port) {
  if (!has(fault::subject_of(kind))) {
    return false;
  }
  const base::LockGuard guard(lock_);
  const fault::Place place = place_of(port);
  return std::ranges::any_of(plan_.rules, [&](const fault::Rule& rule) {
    return rule.kind == kind && rule.applies_to(place, fault::Direction::send);
  });
}

}  // namespace ringbolt::device
